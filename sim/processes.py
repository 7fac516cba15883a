"""The processes of a live simulated cell that need physics: the cell itself, cameras, planner.

The cell's physics keeps the wall's time, a little ahead of it: what the devices report of a time is
there when the tick of that time begins, and what that tick commands is there before physics goes
on, as in lockstep. Where physics falls behind, it is caught up with and counted.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from multiprocessing.connection import Connection

import mujoco
import numpy as np

from brain.geometry import Array, frozen, quat_from_matrix
from brain.rehearsal import Finished, Refused, Request
from brain.types import Goal
from brain.world import World
from hardware.bus import Slot
from hardware.device_bytes import pack_frame
from hardware.journal import StreamJournal
from hardware.live import LATE_NS, Begin, RunClock, still_heap
from hardware.process import Station
from hardware.remote import SlotNames
from hardware.scene import parse_resolved, start_q_rad
from hardware.serving import Serving
from hardware.spine import Commands
from hardware.streams import Inbox, Outbox
from hardware.worker import Follow, serve_requests
from sim.build import Brief, brief_of
from sim.camera import connect_cameras
from sim.faults import Fault
from sim.plant import PlantChange, build_plant
from sim.runlog import TRUTH
from sim.scene import Models, SceneModel, build_model
from sim.twin import Twin
from sim.worker import Desk
from sim.world import SimWorld

AHEAD_NS = 500_000
"""A step that ends at a time is done so long before it: after what came in the 1.5 ms before."""
STOP_STEPS = 10
"""The word to stop is looked for every so many steps: each 20 ms."""
TRUTH_NS = 100_000_000
"""The simulator's own state is logged 10 times a second, for pictures."""
LOOK_S = 0.005
NUDGE_RAD, SETTLE_NS = 0.02, 200_000_000
_HEAD = struct.Struct("<qqqq")


# ------------------------------------------------------------------------------------ the truth


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Truth:
    """The simulator's state at a time, for pictures and outcomes; the brain never sees it.

    `steps` of physics so far, `late` of them over 0.5 ms, `behind_ns` the worst.
    """

    t_ns: int
    steps: int
    late: int
    behind_ns: int
    qpos: Array
    qvel: Array
    mocap_pos: Array
    mocap_quat: Array


def truth_bytes(model: mujoco.MjModel) -> int:
    """Bytes of the truth of a model."""
    return int(_HEAD.size + 8 * (model.nq + model.nv + 7 * model.nmocap))


def pack_truth(world: SimWorld, steps: int, late: int, behind_ns: int) -> bytes:
    """Return the bytes of the truth now."""
    data = world.data
    arrays = (data.qpos, data.qvel, data.mocap_pos, data.mocap_quat)
    head = _HEAD.pack(world.t_ns, steps, late, behind_ns)
    return head + b"".join(a.tobytes() for a in arrays)


def unpack_truth(data: bytes, model: mujoco.MjModel) -> Truth:
    """Read a truth."""
    t_ns, steps, late, behind_ns = _HEAD.unpack_from(data)
    n = model.nmocap
    values = np.frombuffer(data, np.float64, offset=_HEAD.size)
    at = np.cumsum([model.nq, model.nv, 3 * n])
    qpos, qvel, pos, quat = np.split(values, at)
    return Truth(
        t_ns=t_ns,
        steps=steps,
        late=late,
        behind_ns=behind_ns,
        qpos=qpos,
        qvel=qvel,
        mocap_pos=pos.reshape(n, 3),
        mocap_quat=quat.reshape(n, 4),
    )


# ------------------------------------------------------------------------------------- the cell


@dataclass(frozen=True, slots=True, kw_only=True)
class CellSetup:
    """What a cell's process needs."""

    scene_text: str
    change: PlantChange | None
    faults: tuple[Fault, ...]
    slots: SlotNames
    truth: str
    log: Connection | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CellReport:
    """How physics kept the wall's time: steps, those that began over 0.5 ms late, the worst."""

    steps: int
    late: int
    behind_max_ms: float


def cell_main(station: Station, setup: CellSetup) -> CellReport | None:
    """Be the cell's process: physics, devices and their watchdogs."""
    resolved = parse_resolved(setup.scene_text)
    scene = build_model(resolved)
    plant = build_plant(scene, resolved.seed, setup.change, faults=setup.faults)
    world = plant.world
    serving = Serving(setup.slots, plant.devices)
    truth = Slot.attach(setup.truth)
    journal = None if setup.log is None else StreamJournal(Outbox(setup.log))
    serving.publish(world.t_ns)
    still_heap()
    begin: Begin | None = station.ready(serving.specs)
    if begin is None:
        return None
    clock = RunClock(begin.zero_ns)
    steps = late = behind_ns = 0
    while steps % STOP_STEPS or not station.stopping():
        due_ns = world.t_ns + world.step_ns - AHEAD_NS
        clock.wait_until_ns(due_ns)
        late_ns = clock.now_ns() - due_ns
        late += late_ns > LATE_NS
        behind_ns = max(behind_ns, late_ns)
        serving.call(world.t_ns)
        world.step_to(world.t_ns + world.step_ns)
        steps += 1
        serving.publish(world.t_ns)
        truth.write(pack_truth(world, steps, late, behind_ns), world.t_ns)
        if journal is not None and world.t_ns % TRUTH_NS == 0:
            journal.event(TRUTH, world.t_ns, _truth_json(world))
    for arm in plant.devices.arms:
        arm.stop()
    return CellReport(steps=steps, late=late, behind_max_ms=behind_ns * 1e-6)


def _truth_json(world: SimWorld) -> dict[str, object]:
    data = world.data
    return {
        "t_ns": world.t_ns,
        "qpos": data.qpos,
        "mocap_pos": data.mocap_pos,
        "mocap_quat": data.mocap_quat,
        "clearance_m": None,
        "nearest": None,
    }


# ------------------------------------------------------------------------------------- cameras


@dataclass(frozen=True, slots=True, kw_only=True)
class CameraSetup:
    """What the cameras' process needs; `frames` are the slots by the cameras' order."""

    scene_text: str
    models: Models
    truth: str
    frames: tuple[str, ...]


def cameras_main(station: Station, setup: CameraSetup) -> tuple[int, ...] | None:
    """Be the cameras' process: look at the newest truth, draw, hand out; return frames drawn."""
    resolved = parse_resolved(setup.scene_text)
    world = SimWorld(build_model(resolved, models=setup.models))
    cameras = connect_cameras(world, resolved.seed)
    slots = [Slot.attach(name) for name in setup.frames]
    truth = Slot.attach(setup.truth)
    for camera in cameras:
        camera.start()
    if station.ready() is None:
        return None
    drawn, newest, seen = [0] * len(cameras), [-1] * len(cameras), 0
    while not station.pause(LOOK_S):
        value = truth.read(seen)
        if value is None:
            continue
        seen = value.seq
        _show(world, unpack_truth(value.data, world.model))
        for i, camera in enumerate(cameras):
            camera.before_step(world.t_ns)
            frame = camera.read()
            if frame is not None and frame.seq != newest[i]:
                slots[i].write(pack_frame(frame), frame.t_ns)
                newest[i] = frame.seq
                drawn[i] += 1
    return tuple(drawn)


def _show(world: SimWorld, truth: Truth) -> None:
    """Put a world that only cameras look at to where the cell's is."""
    world.t_ns = truth.t_ns
    world.data.qpos[:] = truth.qpos
    world.data.mocap_pos[:] = truth.mocap_pos
    world.data.mocap_quat[:] = truth.mocap_quat


# -------------------------------------------------------------------------------------- planner


def planner_main(station: Station, reader: Connection, writer: Connection, scene_text: str) -> None:
    """Be the planner's process: the desk, on a twin that follows the commands."""
    inbox, outbox = Inbox(reader), Outbox(writer)
    resolved = parse_resolved(scene_text)
    brief, scene = brief_of(resolved), build_model(resolved)
    FollowingDesk(brief, scene, from_the_start=True).warm()
    follow: Follow | None = station.ready()
    if follow is not None:
        desk = FollowingDesk(brief, scene, from_the_start=follow.from_the_start)
        serve_requests(station, inbox, outbox, desk.observe, desk.catch_up, desk.work)


class FollowingDesk:
    """A desk whose twin begins with the first commands; it may have missed what came before.

    Then an arm is put where it is first told to be, and parts where the brain believes them to be,
    which cannot be done for one that is in the hand.
    """

    def __init__(self, brief: Brief, scene: SceneModel, *, from_the_start: bool) -> None:
        """Prepare for a cell."""
        self._brief = brief
        self._scene = scene
        self._desk: Desk | None = self._at(0) if from_the_start else None
        self._parts_known = from_the_start
        self._arms_unknown = set() if from_the_start else set(range(len(scene.arms)))

    def observe(self, commands: Commands) -> None:
        """Let the twin follow."""
        if self._desk is None:
            self._desk = self._at(commands.t_ns)
        for i in tuple(self._arms_unknown):
            q_rad = commands.arms[i].q_rad
            if q_rad is not None:
                self._desk.twin.catch_up()
                place_arm(self._desk.twin, i, q_rad)
                self._arms_unknown.discard(i)
        self._desk.twin.observe(commands)

    def catch_up(self) -> None:
        """Do all that was observed."""
        if self._desk is not None:
            self._desk.twin.catch_up()

    def work(self, request: Request) -> Finished:
        """Answer a request."""
        desk = self._desk or self._at(request.t_ns)
        desk.twin.catch_up()
        for arm in desk.twin.devices.arms:
            state = arm.read()
            if state is not None and state.stopped:
                arm.start()  # where ticks were late, a watchdog may have ended here alone
        if not self._parts_known:
            if request.world.held:
                held = ", ".join(h.name for h in request.world.held)
                reason = f"the planner was started anew while {held} was held; put it down first"
                return Finished(number=request.number, result=Refused(reason=reason))
            place_parts(desk.twin, request.world)
            self._desk, self._parts_known = desk, True
        return desk.work(request)

    def warm(self) -> None:
        """Plan and rehearse a small motion on a twin of its own, so that every kernel is loaded."""
        desk, arm = self._at(0), self._brief.cell.arms[0]
        desk.twin.world.step_to(SETTLE_NS)
        for device in desk.twin.devices.arms:
            device.start()
        q_rad = start_q_rad(self._scene.resolved.scene)
        nudge = np.zeros(arm.model.dof)
        nudge[-1] = NUDGE_RAD
        states = [None if g is None else g.read() for g in desk.twin.devices.grippers]
        desk.work(
            Request(
                number=0,
                t_ns=SETTLE_NS,
                goal=Goal(kind="joints", arm=arm.name, q_rad=frozen(q_rad[0] + nudge)),
                world=self._brief.world,
                q_rad=q_rad,
                measured_rad=q_rad,
                opening_m=tuple(0.0 if s is None else s.opening_m for s in states),
            )
        )

    def _at(self, t_ns: int) -> Desk:
        brief, seed = self._brief, self._scene.resolved.seed
        twin = Twin(self._scene, seed, brief.cell.tick_ns, t_ns)
        return Desk(brief.cell, brief.limits, brief.tasks, twin, seed)


def place_arm(twin: Twin, index: int, q_rad: Array) -> None:
    """Put an arm of a twin to rest at joints, under power."""
    data, ids = twin.world.data, twin.world.scene.arms[index]
    data.qpos[ids.qpos] = q_rad
    data.qvel[ids.dof] = 0.0
    mujoco.mj_forward(twin.world.model, data)
    twin.devices.arms[index].start()


def place_parts(twin: Twin, world: World) -> None:
    """Put a twin's parts at rest where they are believed to be."""
    scene, data = twin.world.scene, twin.world.data
    for name, at in scene.part_qpos.items():
        T = world.object(name).T_world_object
        data.qpos[at : at + 3] = T[:3, 3]
        data.qpos[at + 3 : at + 7] = quat_from_matrix(np.ascontiguousarray(T[:3, :3]))
        dof = int(scene.model.body_dofadr[scene.part_body[name]])
        data.qvel[dof : dof + 6] = 0.0
    mujoco.mj_forward(scene.model, data)
