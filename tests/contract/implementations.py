"""Every device that we have, each with a way to let time pass; the suite asks all of them.

A real device is one more entry, marked `pytest.mark.hardware`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from brain.geometry import Array, frozen, invert
from brain.kinematics import flange_pose
from examples.sample_arm import SampleArm
from hardware.api import Camera, ForceTorque, Gripper, Tracker
from hardware.arm_model import arm_model, parts_on_flange
from hardware.clock import SimClock
from sim.faults import Fault, Kind
from tests import plants
from tests.ideal import IdealArm
from tests.plants import MS, PART, Driver

NEVER_NS = 10**18
ARMS = ("ur5e", "ur3e", "ur10e", "z1", "ur5e, wrapped", "the sample to copy")
GRIPPERS = ("hand_e", "robotiq_2f85", "z1_gripper", "hand_e, wrapped")
SENSORS = ("ft_sensor", "ft_sensor, wrapped")
CAMERAS = ("d435i", "d435i, wrapped")
TRACKERS = ("tracker", "tracker, wrapped")


def idle(name: str) -> tuple[Fault, ...]:
    """Faults that put every wrapper in front of its device, and never come into force."""
    if "wrapped" not in name:
        return ()
    kinds = (Kind.DELAY, Kind.DELAY_SAMPLES, Kind.DROP_SAMPLES, Kind.FREEZE, Kind.NAN, Kind.DIE)
    sorts = ("arm", "gripper", "ft", "camera", "tracker")
    return tuple(Fault(device=s, kind=k, share=1.0, from_ns=NEVER_NS) for s in sorts for k in kinds)


def fitting(faults, model) -> tuple[Fault, ...]:
    """Those faults whose devices a scene has."""
    assembly = model.arms[0].assembly
    there = {
        "arm": True,
        "gripper": assembly.gripper is not None,
        "ft": assembly.sensor is not None,
        "camera": bool(model.camera_id),
        "tracker": bool(model.moving_mocap),
    }
    return tuple(f for f in faults if there[f.device])


def make_plant(model, name: str):
    return plants.plant(model, faults=fitting(idle(name), model))


def arm(name: str) -> Driver:
    """Return an arm that is not started, in free air."""
    if name == ARMS[-1]:
        clock = SimClock()
        sample = SampleArm("sample", tuple("abcdef"), clock)
        return Driver(sample, clock.now_ns, lambda ns: clock.wait_until_ns(clock.now_ns() + ns))
    robot = name.split(",")[0]
    return plants.driver(make_plant(plants.arm_scene(robot), name))


def ideal_arm() -> Driver:
    """Return the tests' own arm, which keeps the part of the contract that concerns reading."""
    device = IdealArm("ideal", np.zeros(6))

    def wait(ns: int) -> None:
        device.t_ns += ns

    return Driver(device, lambda: device.t_ns, wait)


@dataclass
class Bench:
    """A device and its time; `step_ns` is how often its samples are looked at."""

    device: Gripper | ForceTorque | Camera | Tracker
    world: object
    step_ns: int = 4 * MS

    @property
    def now_ns(self) -> int:
        return self.world.t_ns

    def wait(self, ns: int) -> None:
        self.world.step_to(self.world.t_ns + ns)

    def watch(self, seconds: float) -> list:
        """Let time pass, read at every step."""
        seen = []
        for _ in range(round(seconds * 1e9 / self.step_ns)):
            self.wait(self.step_ns)
            seen.append(self.device.read())
        return seen


def gripper(name: str) -> Bench:
    """Return a gripper, not started, open on both sides of a part that is `PART[0]` wide."""
    tool = name.split(",")[0]
    robot, tools = ("z1", (tool,)) if tool == "z1_gripper" else ("ur5e", ("ft_sensor", tool))
    made = make_plant(plants.grasp_scene(robot, tools), name)
    return Bench(made.devices.grippers[0], made.world)


def free_gripper(name: str) -> Bench:
    """Return a gripper, not started, with nothing between its fingers."""
    tool = name.split(",")[0]
    robot, tools = ("z1", (tool,)) if tool == "z1_gripper" else ("ur5e", ("ft_sensor", tool))
    made = make_plant(plants.arm_scene(robot, tools), name)
    return Bench(made.devices.grippers[0], made.world)


@dataclass
class WristBench(Bench):
    """A wrist sensor at rest; what hangs on it, and which way is up, in its own axes."""

    mass_kg: float = 0.0
    com_m: Array | None = None
    up: Array | None = None


def wrist(name: str, home_deg) -> WristBench:
    """Return a sensor, not started, that carries a gripper, on an arm at some joints."""
    model = plants.arm_scene("ur5e", ("ft_sensor", "hand_e"), home_deg)
    made = make_plant(model, name)
    assembly = model.arms[0].assembly
    sensor = assembly.sensor.tool
    hanging = [
        (body.mass_kg, T[:3, :3] @ np.array(body.com_m) + T[:3, 3])
        for body, T in parts_on_flange(assembly)
        if body.name != sensor.body.name
    ]
    mass_kg = sum(m for m, _ in hanging)
    com_flange = sum(m * c for m, c in hanging) / mass_kg
    device = made.devices.wrenches[0]
    T_flange_sensor = np.array(device.spec.T_flange_sensor)
    T_base_flange = flange_pose(arm_model(assembly), np.radians(np.array(home_deg)))
    return WristBench(
        device,
        made.world,
        mass_kg=mass_kg,
        com_m=(invert(T_flange_sensor) @ np.append(com_flange, 1.0))[:3],
        up=frozen((T_base_flange @ T_flange_sensor)[2, :3]),
    )


def camera(name: str) -> Bench:
    """Return a camera, not started, that looks down at a box on the floor."""
    box = plants.box("box", (1.0, 0.0, 0.1), (0.2, 0.2, 0.2))
    overhead = plants.camera("overhead", "world", (1.0, 0.0, 1.0), (180, 0, -90))
    made = make_plant(plants.scene(objects=[box], cameras=[overhead]), name)
    return Bench(made.cameras[0], made.world)


def tracker(name: str) -> Bench:
    """Return a tracker, not started, of a box that goes along x at 0.5 m/s."""
    schedule = [{"t_s": 0, "position_m": [1, 1, 0.2]}, {"t_s": 4, "position_m": [3, 1, 0.2]}]
    moving = plants.box("cart", (0, 0, 0), (0.2, 0.2, 0.2), role="moving", schedule=schedule)
    made = make_plant(plants.scene(objects=[moving]), name)
    return Bench(made.devices.tracker, made.world)


PART_WIDTH_M = PART[0]
