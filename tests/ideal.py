"""Devices that do at once what they are told, for tests of everything above the devices."""

import numpy as np

from brain.cell import CellModel
from brain.geometry import frozen, transform
from brain.limits import DEFAULT, LimitProfile
from brain.motion import Motion, at_rest, brake, step_to
from brain.rehearsal import Refused, Rehearsal
from brain.state import Finished, Request
from brain.types import (
    ArmCommand,
    ArmState,
    Goal,
    GripperCommand,
    GripperState,
    Intent,
    Mode,
    ObjectPose,
    OperatorInput,
    Wrench,
)
from brain.world import BOX, SceneObject, World, make_world
from hardware.api import ArmSpec, ForceTorqueSpec, GripperSpec
from hardware.receive import Heard
from hardware.spine import CellDevices, Spine, TickRecord
from tests.values import replace

TICK_NS = 2_000_000


class IdealArm:
    """Follows every command exactly, one tick later; brakes by itself when told to stop."""

    def __init__(self, name: str, q_rad, simulated: bool = True) -> None:
        self.motion: Motion = at_rest(np.array(q_rad))
        self.commands: list[ArmCommand] = []
        self.stopped = True
        self.silent = False
        self.read_error: Exception | None = None
        self.write_error: Exception | None = None
        self.closed = False
        self.seq = 0
        self._spec = ArmSpec(
            name=name,
            robot="ur5e",
            joint_names=tuple("abcdef"),
            period_ns=TICK_NS,
            watchdog_ns=50_000_000,
            simulated=simulated,
        )
        self.t_ns = 0

    @property
    def spec(self) -> ArmSpec:
        return self._spec

    def start(self) -> None:
        self.stopped = False

    def stop(self) -> None:
        self.stopped = self.closed = True

    def read(self) -> ArmState | None:
        if self.read_error is not None:
            raise self.read_error
        if self.silent:
            return None
        self.seq += 1
        return ArmState(
            t_ns=self.t_ns,
            seq=self.seq,
            q_rad=self.motion.q_rad,
            dq_rad_s=frozen(self.motion.dq_rad_s),
            tau_nm=None,
            stopped=self.stopped,
        )

    def write(self, command: ArmCommand) -> None:
        if self.write_error is not None:
            raise self.write_error
        self.commands.append(command)
        self.stopped |= command.stop
        if self.stopped:
            self.motion = brake(self.motion, 10.0, TICK_NS * 1e-9)
        elif command.q_rad is not None:
            self.motion = step_to(self.motion, command.q_rad, TICK_NS * 1e-9)


class IdealGripper:
    """Fingers that are at once where they are told to be, plus an error that a test may set."""

    def __init__(self, opening_m: float = 0.0) -> None:
        self.opening_m = opening_m
        self.off_m = 0.0
        self.commands: list[GripperCommand] = []
        self.t_ns = 0
        self.closed = False
        self.spec = GripperSpec(
            name="grip",
            model="test",
            opening_min_m=0.0,
            opening_max_m=0.05,
            force_max_n=130.0,
            speed_max_m_s=0.15,
            simulated=True,
        )

    def start(self) -> None:
        pass

    def stop(self) -> None:
        self.closed = True

    def read(self) -> GripperState | None:
        opening_m = self.opening_m + self.off_m
        return GripperState(t_ns=self.t_ns, seq=0, opening_m=opening_m, holding=None, force_n=None)

    def write(self, command: GripperCommand) -> None:
        self.commands.append(command)
        self.opening_m = command.opening_m


class IdealWrench:
    """A wrist sensor that reads what a test sets; `frozen_ns` is when it stopped measuring."""

    def __init__(self) -> None:
        self.force_n = np.zeros(3)
        self.t_ns = 0
        self.frozen_ns: int | None = None
        self.closed = False
        self.spec = ForceTorqueSpec(
            name="ft",
            force_max_n=300.0,
            torque_max_nm=30.0,
            T_flange_sensor=np.eye(4),
            simulated=True,
        )

    def start(self) -> None:
        pass

    def stop(self) -> None:
        self.closed = True

    def read(self) -> Wrench | None:
        t_ns = self.t_ns if self.frozen_ns is None else self.frozen_ns
        return Wrench(t_ns=t_ns, seq=0, force_n=frozen(self.force_n), torque_nm=frozen(np.zeros(3)))


class IdealTracker:
    """Reports the poses that a test has put into it."""

    def __init__(self) -> None:
        self.poses: dict[str, np.ndarray] = {}
        self.t_ns = 0

    def start(self) -> None:
        pass

    def stop(self) -> None:
        pass

    def read(self) -> tuple[ObjectPose, ...]:
        return tuple(
            ObjectPose(t_ns=self.t_ns, seq=0, name=name, T_world_object=frozen(pose))
            for name, pose in self.poses.items()
        )


class IdealWorker:
    """Answers a request in the next tick with what a test has put into `result`, unless busy."""

    def __init__(self, result: Rehearsal | Refused | None = None) -> None:
        self.result = result
        self.requests: list[Request] = []
        self.busy = False
        self.ready: Finished | None = None

    def observe(self, commands) -> None:
        pass

    def submit(self, request: Request) -> None:
        self.requests.append(request)
        if self.result is not None:
            self.ready = Finished(number=request.number, result=self.result)

    def finished(self, t_ns: int) -> Finished | None:
        if self.busy:
            return None
        ready, self.ready = self.ready, None
        return ready


def box(name: str, size, position, role="fixed") -> SceneObject:
    return SceneObject(
        name=name,
        role=role,
        kinds=(BOX,),
        size_m=frozen([np.array(size) / 2]),
        T_object_shape=frozen([np.eye(4)]),
        T_world_object=frozen(transform(position)),
    )


class Bench:
    """A spine over ideal arms with an operator that a test moves by hand."""

    def __init__(
        self,
        cell: CellModel,
        world: World | None = None,
        limits: LimitProfile = DEFAULT,
        worker: IdealWorker | None = None,
        simulated: bool = True,
        grippers: bool = False,
        wrenches: bool = False,
    ) -> None:
        self.cell = cell
        self.worker = IdealWorker() if worker is None else worker
        self.arms = [IdealArm(a.name, a.home_q_rad, simulated) for a in cell.arms]
        self.grippers = [IdealGripper() if grippers else None for _ in cell.arms]
        self.wrenches = [IdealWrench() if wrenches else None for _ in cell.arms]
        self.tracker = IdealTracker()
        self.tracker.poses |= {
            o.name: o.T_world_object for o in (world.objects if world else ()) if o.role == "moving"
        }
        self.spine = Spine(
            cell,
            limits,
            make_world(()) if world is None else world,
            CellDevices(
                arms=tuple(self.arms),
                grippers=tuple(self.grippers),
                wrenches=tuple(self.wrenches),
                tracker=self.tracker,
            ),
            self.worker,
            0,
        )
        self.t_ns = 0
        self.seq = 0
        self.hand = transform((0.3, 0.2, 1.1))
        self.engaged = False
        self.tracked = True
        self.talking = True
        self.grip = None
        self.manner = "normal"
        self.intents: list[Intent] = []
        self.stop = False
        self.records: list[TickRecord | None] = []
        self.spine.start(0)

    @property
    def mode(self):
        return self.spine.state.mode.mode

    @property
    def reason(self):
        return self.spine.state.mode.reason

    @property
    def note(self):
        return self.spine.state.note

    def sample(self) -> OperatorInput:
        self.seq += 1
        return OperatorInput(
            t_ns=self.t_ns,
            seq=self.seq,
            expires_ns=self.t_ns + 100_000_000,
            source="script",
            tracked=self.tracked,
            T_seat_hand=frozen(self.hand) if self.tracked else None,
            engaged=self.engaged,
            grip=self.grip,
            arm=self.cell.arms[0].name,
            manner=self.manner,
        )

    def tick(self, operator: OperatorInput | None = None) -> TickRecord | None:
        """One tick; a sample of the hand every fifth, unless one is given."""
        self.t_ns += TICK_NS
        for device in (*self.arms, *self.grippers, *self.wrenches, self.tracker):
            if device is not None:
                device.t_ns = self.t_ns
        if operator is None and self.talking and (self.t_ns // TICK_NS) % 5 == 0:
            operator = self.sample()
        heard = Heard(operator=operator, intents=tuple(self.intents), stop=self.stop)
        self.intents, self.stop = [], False
        record = self.spine.cycle(self.t_ns, heard)
        self.records.append(record)
        return record

    def run(self, ticks: int) -> None:
        for _ in range(ticks):
            self.tick()

    def say(self, kind, **over) -> None:
        intent = Intent(t_ns=self.t_ns, seq=len(self.records), kind=kind, source="script")
        self.intents.append(replace(intent, **over))

    def press(self, ticks: int = 12) -> None:
        """Let the dead-man up, be seen, and press it."""
        self.engaged = False
        self.run(ticks)
        self.engaged = True
        self.run(ticks)

    def arm_and_drive(self) -> None:
        self.press()
        self.press()

    def preview(self, made: Rehearsal) -> None:
        """Arm the cell and have that rehearsal shown, with the dead-man held down."""
        self.press()
        assert self.mode is Mode.HOLD, self.reason
        self.worker.result = made
        self.say("rehearse", goal=Goal(kind="task", task="test"))
        self.run(2)
        assert self.mode is Mode.PREVIEW, f"{self.reason} {self.note}"

    def commit(self, made: Rehearsal) -> None:
        """Have a rehearsal shown and commit it; the first row is sent."""
        self.preview(made)
        self.say("commit", digest=made.digest, nonce="nonce")
        self.tick()
        assert self.mode is Mode.COMMIT, f"{self.reason} {self.note}"

    def commands(self, arm: int = 0) -> np.ndarray:
        """All joints that an arm was sent (k, n), in order; stops left out."""
        return np.array([c.q_rad for c in self.arms[arm].commands if c.q_rad is not None])

    def joints(self, arm: int = 0) -> np.ndarray:
        return self.arms[arm].motion.q_rad
