"""The simulated cell's hardware: one world with all devices of a scene.

`PlantChange` makes the plant differ from what the twin expects, as real cells do by themselves;
`sim/faults.py` has what goes wrong with devices and their wires.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar, cast

import mujoco
import numpy as np

from brain.errors import ConfigError
from brain.geometry import Array, quat_from_matrix
from brain.types import NS_PER_MS
from hardware.api import Arm, Camera, ForceTorque, Tracker
from hardware.api import Gripper as GripperDevice
from hardware.description import Gripper, Sensor
from hardware.scene import object_pose
from hardware.spine import CellDevices
from sim.camera import connect_cameras
from sim.devices import SimArm, SimForceTorque, SimGripper, SimTracker
from sim.faults import Fault, Kind, check_targets, of_device
from sim.faulty import FaultyArm, FaultyCamera, FaultyForceTorque, FaultyGripper, FaultyTracker
from sim.scene import ArmIds, SceneModel, build_model
from sim.world import Actor, SimWorld

Device = TypeVar("Device")


@dataclass(frozen=True, slots=True, kw_only=True)
class PlantChange:
    """How a plant differs from its scene.

    `payload_kg` hangs undeclared on every arm's tool; joint friction is `friction_scale` times
    what it should be; arm commands come `delay_ms` late; parts lie `part_shift_m` along world x
    from where they should; the part named `missing` ("task": the one that the task picks first) is
    taken out of the cell at `missing_at_s`.
    """

    payload_kg: float = 0.0
    friction_scale: float = 1.0
    delay_ms: int = 0
    part_shift_m: float = 0.0
    missing: str | None = None
    missing_at_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Plant:
    """A world with its devices; cameras draw only while they are started and read."""

    world: SimWorld
    devices: CellDevices
    cameras: tuple[Camera, ...]


def build_plant(
    scene: SceneModel,
    seed: int,
    change: PlantChange | None = None,
    t_ns: int = 0,
    faults: Sequence[Fault] = (),
) -> Plant:
    """Build the simulated hardware of a scene, with moving objects on their schedule.

    Raises:
        ConfigError: the change or a fault does not fit the scene.
    """
    if change is not None:
        _check(change)
        scene = _changed(scene, change)
        if change.delay_ms:
            late = Fault(device="arm", kind=Kind.DELAY, delay_ns=change.delay_ms * NS_PER_MS)
            faults = (*faults, late)
    world = SimWorld(scene, t_ns)
    wire = _Wire(world, seed, tuple(faults))
    devices = connect(world, seed, wire)
    if scene.moving_mocap:
        world.actors.append(Schedule(world))
    if change is not None and change.missing is not None:
        world.actors.append(Removal(world, change.missing, round(change.missing_at_s * 1e9)))
    cameras: tuple[Camera, ...] = connect_cameras(world, seed)  # last: they see where all is now
    cameras = tuple(wire.to(FaultyCamera, c, "camera", c.spec.name) for c in cameras)
    check_targets(faults, wire.ends)
    return Plant(world=world, devices=devices, cameras=cameras)


def connect(world: SimWorld, seed: int, wire: _Wire | None = None) -> CellDevices:
    """Make the devices of a world; without a wire nothing is ever wrong with them."""
    wire = _Wire(world, seed, ()) if wire is None else wire
    arms: list[Arm] = []
    grippers: list[GripperDevice | None] = []
    wrenches: list[ForceTorque | None] = []
    for ids in world.scene.arms:
        arm: Arm = SimArm(world, ids)
        arms.append(wire.to(FaultyArm, arm, "arm", ids.name))
        gripper, sensor = ids.assembly.gripper, ids.assembly.sensor
        grippers.append(None)
        if gripper is not None and isinstance(gripper.tool, Gripper):
            fingers: GripperDevice = SimGripper(world, ids)
            grippers[-1] = wire.to(FaultyGripper, fingers, "gripper", ids.name)
        wrenches.append(None)
        if sensor is not None and isinstance(sensor.tool, Sensor):
            wrist: ForceTorque = SimForceTorque(world, ids, seed)
            wrenches[-1] = wire.to(FaultyForceTorque, wrist, "ft", ids.name)
    tracker: Tracker | None = None
    if world.scene.moving_mocap:
        watching: Tracker = SimTracker(world)
        tracker = wire.to(FaultyTracker, watching, "tracker", "tracker")
    return CellDevices(
        arms=tuple(arms), grippers=tuple(grippers), wrenches=tuple(wrenches), tracker=tracker
    )


class _Wire:
    """Puts the wrapper of its faults in front of a device that has some; notes who is there."""

    def __init__(self, world: SimWorld, seed: int, faults: tuple[Fault, ...]) -> None:
        self._world = world
        self._seed = seed
        self._faults = faults
        self.ends: dict[str, list[str]] = {}

    def to(self, wrapper: Callable[..., Device], device: Device, sort: str, name: str) -> Device:
        """Return the device, or its wrapper, which acts before it in each step."""
        self.ends.setdefault(sort, []).append(name)
        mine = of_device(self._faults, sort, name)
        if not mine:
            return device
        label, world = f"{name}/{sort}", self._world
        wrapped = wrapper(device, mine, lambda: world.t_ns, self._seed, label)
        world.actors.insert(0, cast(Actor, wrapped))
        return wrapped


class Schedule:
    """Drives the moving objects of a scene along their schedules."""

    def __init__(self, world: SimWorld) -> None:
        """Take hold of the moving objects of a world."""
        self._world = world
        scene = world.scene
        self._items = [
            (scene.resolved.scene.object(name), i) for name, i in scene.moving_mocap.items()
        ]
        self.before_step(world.t_ns)

    def before_step(self, t_ns: int) -> None:
        """Put every object where it should be now."""
        for item, i in self._items:
            T = object_pose(item, t_ns * 1e-9)
            self._world.data.mocap_pos[i] = T[:3, 3]
            self._world.data.mocap_quat[i] = quat_from_matrix(np.ascontiguousarray(T[:3, :3]))

    def snapshot(self) -> Any:
        """Nothing to remember: places follow from the time."""
        return None

    def restore(self, state: Any) -> None:
        """Nothing to remember."""


class Removal:
    """Takes a part out of the cell at a time, as a hand would."""

    def __init__(self, world: SimWorld, name: str, t_ns: int) -> None:
        """Name the part and the time."""
        if name not in world.scene.part_qpos:
            known = ", ".join(world.scene.part_qpos)
            raise ConfigError(f"missing: no part {name!r} in this scene; it has {known}")
        self._world = world
        self._adr = world.scene.part_qpos[name]
        self._dof = int(world.model.body_dofadr[world.scene.part_body[name]])
        self._t_ns = t_ns

    def before_step(self, t_ns: int) -> None:
        """From its time on the part lies far away, at rest."""
        if t_ns >= self._t_ns:
            self._world.data.qpos[self._adr : self._adr + 3] = (5.0, 5.0, 0.5)
            self._world.data.qvel[self._dof : self._dof + 6] = 0.0

    def snapshot(self) -> Any:
        """Nothing to remember."""
        return None

    def restore(self, state: Any) -> None:
        """Nothing to remember."""


_ALLOWED = {
    "payload_kg": (0.0, 100.0),
    "friction_scale": (0.0, 100.0),
    "delay_ms": (0, 1000),
    "part_shift_m": (-1.0, 1.0),
    "missing_at_s": (0.0, 3600.0),
}


def _check(change: PlantChange) -> None:
    for name, (low, high) in _ALLOWED.items():
        if not low <= (value := getattr(change, name)) <= high:
            raise ConfigError(f"change.{name}: {value}, allowed are {low} to {high}")


def _changed(scene: SceneModel, change: PlantChange) -> SceneModel:
    """Build the same scene with another physics."""
    fresh = build_model(scene.resolved)
    model = fresh.model
    for ids in fresh.arms:
        model.dof_frictionloss[ids.dof] *= change.friction_scale
        model.dof_damping[ids.dof] *= change.friction_scale
        if change.payload_kg:
            _hang(model, _outermost(model, ids), change.payload_kg)
    qpos: Array = np.array(fresh.qpos_start)
    for adr in fresh.part_qpos.values():
        qpos[adr] += change.part_shift_m
    mujoco.mj_setConst(model, mujoco.MjData(model))
    return SceneModel(
        **{
            name: getattr(fresh, name)
            for name in SceneModel.__slots__
            if name not in ("model", "qpos_start")
        },
        model=model,
        qpos_start=qpos,
    )


def _outermost(model: mujoco.MjModel, ids: ArmIds) -> int:
    """The body of the last tool, which a wrist sensor weighs; the last link without one."""
    tools = ids.assembly.tools
    if tools:
        return int(model.body(f"{ids.name}/{tools[-1].tool.body.name}").id)
    return int(model.site_bodyid[ids.tool_site])


def _hang(model: mujoco.MjModel, body: int, mass_kg: float) -> None:
    """Add a point mass to a body that no gravity compensation knows of."""
    known_kg = float(model.body_mass[body])
    model.body_mass[body] = known_kg + mass_kg
    model.body_gravcomp[body] *= known_kg / (known_kg + mass_kg)
