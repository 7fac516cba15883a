"""Loads every kernel of a tick before an arm is armed: a still cell goes through all modes.

A kernel that is met for the first time inside a tick takes as long as hundreds of ticks.
"""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np

from brain.cell import CellArm, CellModel
from brain.errors import DeviceFault
from brain.geometry import Array, frozen, invert, rotation_angle, transform
from brain.kinematics import tool_pose
from brain.limits import LimitProfile
from brain.rehearsal import (
    Finished,
    GripEvent,
    Prediction,
    Rehearsal,
    Request,
    Stream,
    Verdict,
    sealed,
)
from brain.swept import blocked
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
from brain.world import World
from brain.wrench import tool_weight
from hardware.api import ArmSpec, ForceTorqueSpec, GripperSpec
from hardware.messages import pack_preview, pack_status
from hardware.receive import Heard
from hardware.record import RunHash, tick_json
from hardware.spine import CellDevices, Commands, Spine
from hardware.telemetry import Pace, preview_of, status_of
from hardware.wire import Message, pack_pose, unpack, unpack_pose

ROWS = 20
STEP_M, TREMBLE_M = 1e-4, 2e-3


def warm(
    cell: CellModel, limits: LimitProfile, world: World, q_rad: tuple[Array, ...]
) -> frozenset[Mode]:
    """Run a cell whose devices stand still, arms at `q_rad`, through its modes; return which.

    Raises:
        DeviceFault: the cycle fails, or does not come to a commit.
    """
    still = _Still(cell, limits, q_rad)
    spine = Spine(cell, limits, world, still.devices(world), still, 0)
    run_hash, pace = RunHash(), Pace()
    modes: set[Mode] = set()

    def tick(engaged: bool, intent: Intent | None = None) -> None:
        still.t_ns += cell.tick_ns
        sample = _arrived(_sample(cell, still.t_ns, engaged))
        heard = Heard(operator=sample, intents=() if intent is None else (intent,))
        record = spine.cycle(still.t_ns, heard)
        if record is None:
            raise DeviceFault(f"the cycle fails on a cell that stands still: {spine.fault!r}")
        modes.add(record.state.mode.mode)
        tick_json(record, run_hash.add(record))
        pack_status(status_of(spine, record, pace), 0)

    for engaged in (False, True, True, False, True, True, True, False, False):
        tick(engaged)  # armed, let go, driven, let go
    goal = Goal(kind="home", arm=cell.arms[0].name)
    tick(True, Intent(t_ns=still.t_ns, seq=0, kind="rehearse", source="window", goal=goal))
    tick(True)
    if spine.state.store:
        made = spine.state.store[-1].rehearsal
        pack_preview(preview_of(cell, made), session=0, seq=0, t_ns=0)
        commit = Intent(
            t_ns=still.t_ns,
            seq=1,
            kind="commit",
            source="window",
            digest=made.digest,
            nonce="warm",
        )
        tick(True, commit)
    play = spine.state.playback
    if play is not None and play.swept is not None:
        everything = {item.name for item in world.objects}
        blocked(play.swept, world, everything, 0, limits.clearance_stop_m)
    rotation_angle(np.eye(4), np.eye(4))  # how a commit compares what is held
    for engaged in (*[True] * ROWS, False, False):
        tick(engaged)  # played, let go
    if Mode.COMMIT not in modes:  # the first commit would meet cold kernels
        raise DeviceFault(f"a cell that stands still does not commit: {spine.state.note}")
    return frozenset(modes)


class _Still:
    """Devices that stand still, and a worker that rehearses standing still."""

    def __init__(self, cell: CellModel, limits: LimitProfile, q_rad: tuple[Array, ...]) -> None:
        self._cell = cell
        self._limits = limits
        self.q_rad = tuple(frozen(q) for q in q_rad)
        self.t_ns, self.tick_ns = 0, cell.tick_ns
        self._asked: Request | None = None

    def devices(self, world: World) -> CellDevices:
        arms = self._cell.arms
        return CellDevices(
            arms=tuple(_Arm(self, i, arm) for i, arm in enumerate(arms)),
            grippers=tuple(None if a.model.gripper is None else _Gripper(self, a) for a in arms),
            wrenches=tuple(
                _Wrist(self, i, a) if a.has_wrench else None for i, a in enumerate(arms)
            ),
            tracker=_Tracker(self, world),
        )

    def observe(self, commands: Commands) -> None:
        """No twin follows."""

    def submit(self, request: Request) -> None:
        self._asked = request

    def finished(self, t_ns: int) -> Finished | None:
        asked, self._asked = self._asked, None
        if asked is None:
            return None
        found = Finished(number=asked.number, result=self._made(asked))
        finished: Finished = pickle.loads(pickle.dumps(found, protocol=5))  # as from a process
        return finished

    def _made(self, request: Request) -> Rehearsal:
        arms = len(self._cell.arms)
        q_rad = frozen(np.tile(np.concatenate(request.q_rad), (ROWS, 1)))
        opening_m, zeros = np.tile(request.opening_m, (ROWS, 1)), np.zeros((ROWS, arms))
        name = self._cell.arms[0].name
        return sealed(
            Rehearsal(
                cell=self._cell.name,
                scene_digest=self._cell.scene_digest,
                goal=request.goal,
                limits=self._limits.name,
                tick_ns=self._cell.tick_ns,
                made_ns=request.t_ns,
                world_version=request.world.version,
                held=(),
                tool_mass_kg=tuple(a.model.tool_mass_kg for a in self._cell.arms),
                stream=Stream(
                    q_rad=q_rad,
                    opening_m=frozen(opening_m),
                    grip_force_n=frozen(zeros),
                    events=self._events(request.world),
                ),
                prediction=Prediction(
                    q_rad=q_rad,
                    opening_m=frozen(opening_m),
                    force_n=frozen(zeros),
                    clearance_m=frozen(zeros),
                ),
                verdict=Verdict(
                    kind="safe", clearance_m=1.0, along_m=0.0, arm=name, link="", against=""
                ),
                digest="",
            )
        )

    def _events(self, world: World) -> tuple[GripEvent, ...]:
        """Grasp the first part from afar, and put it down where it was."""
        arm = self._cell.arms[0]
        part = next((item for item in world.objects if item.role == "part"), None)
        if part is None:
            return ()
        T_world_tool = arm.T_world_base @ tool_pose(arm.model, self.q_rad[0])
        T_tool_object = frozen(invert(T_world_tool) @ part.T_world_object)
        grasped = GripEvent(
            row=3, arm=arm.name, name=part.name, T_tool_object=T_tool_object, T_world_object=None
        )
        put_down = replace(grasped, row=6, T_tool_object=None, T_world_object=part.T_world_object)
        return grasped, put_down


class _Arm:
    """An arm that stands still."""

    def __init__(self, still: _Still, index: int, arm: CellArm) -> None:
        self._still = still
        self._index = index
        self._rest = frozen(np.zeros(arm.model.dof))
        self.spec = ArmSpec(
            name=arm.name,
            robot=arm.model.name,
            joint_names=arm.model.chain.joint_names,
            period_ns=arm.period_ns,
            watchdog_ns=arm.period_ns,
            simulated=True,
        )

    def start(self) -> None:
        """Nothing to open."""

    def stop(self) -> None:
        """Nothing to close."""

    def read(self) -> ArmState:
        still = self._still
        return ArmState(
            t_ns=still.t_ns,
            seq=0,
            q_rad=still.q_rad[self._index],
            dq_rad_s=self._rest,
            tau_nm=None,
            stopped=False,
        )

    def write(self, command: ArmCommand) -> None:
        """It stands still."""


class _Gripper:
    """A gripper that stands open."""

    def __init__(self, still: _Still, arm: CellArm) -> None:
        self._still = still
        gripper = arm.model.gripper
        assert gripper is not None
        self.spec = GripperSpec(
            name=arm.name,
            model=gripper.name,
            opening_min_m=gripper.opening_min_m,
            opening_max_m=gripper.opening_max_m,
            force_max_n=gripper.force_max_n,
            speed_max_m_s=gripper.speed_max_m_s,
            simulated=True,
        )

    def start(self) -> None:
        """Nothing to open."""

    def stop(self) -> None:
        """Nothing to close."""

    def read(self) -> GripperState:
        opening_m = self.spec.opening_max_m
        t_ns = self._still.t_ns
        return GripperState(t_ns=t_ns, seq=0, opening_m=opening_m, holding=None, force_n=None)

    def write(self, command: GripperCommand) -> None:
        """It stands still."""


class _Wrist:
    """A wrist sensor that feels the weight of the tool."""

    def __init__(self, still: _Still, index: int, arm: CellArm) -> None:
        self._still = still
        self._force_n = frozen(tool_weight(arm, still.q_rad[index]))
        self._zero = frozen(np.zeros(3))
        self.spec = ForceTorqueSpec(
            name=arm.name,
            force_max_n=1.0,
            torque_max_nm=1.0,
            T_flange_sensor=frozen(np.eye(4)),
            simulated=True,
        )

    def start(self) -> None:
        """Nothing to open."""

    def stop(self) -> None:
        """Nothing to close."""

    def read(self) -> Wrench:
        t_ns = self._still.t_ns
        return Wrench(t_ns=t_ns, seq=0, force_n=self._force_n, torque_nm=self._zero)


class _Tracker:
    """A tracker that sees things tremble by `TREMBLE_M`."""

    def __init__(self, still: _Still, world: World) -> None:
        self._still = still
        self._seen = [o for o in world.objects if o.role == "moving"]

    def start(self) -> None:
        """Nothing to open."""

    def stop(self) -> None:
        """Nothing to close."""

    def read(self) -> tuple[ObjectPose, ...]:
        t_ns = self._still.t_ns
        away = transform((0.0, 0.0, TREMBLE_M * (t_ns // self._still.tick_ns % 2)))
        return tuple(
            ObjectPose(
                t_ns=t_ns, seq=0, name=o.name, T_world_object=frozen(o.T_world_object @ away)
            )
            for o in self._seen
        )


def _sample(cell: CellModel, t_ns: int, engaged: bool) -> OperatorInput:
    """A hand that moves by `STEP_M` a tick."""
    return OperatorInput(
        t_ns=t_ns,
        seq=t_ns // cell.tick_ns,
        expires_ns=t_ns + cell.tick_ns,
        source="window",
        tracked=True,
        T_seat_hand=frozen(transform((STEP_M * t_ns / cell.tick_ns, 0.0, 1.0))),
        engaged=engaged,
        grip=None,
        arm=cell.arms[0].name,
    )


def _arrived(sample: OperatorInput) -> OperatorInput:
    """The sample as it comes out of a link."""
    message = unpack(pack_pose(sample, session=0))
    assert isinstance(message, Message)
    found = unpack_pose(message)
    assert isinstance(found, OperatorInput)
    return found
