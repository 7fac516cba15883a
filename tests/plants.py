"""Small simulated cells for the tests of devices: one arm on the floor, perhaps over a part."""

from __future__ import annotations

from functools import cache

import numpy as np

from brain.geometry import Array
from brain.types import ArmCommand, ArmState, GripperCommand
from hardware.arm_model import assemble
from hardware.scene import resolved_from
from hardware.scene_file import Scene
from hardware.strict import check
from sim.plant import Plant, build_plant
from sim.scene import SceneModel, build_model
from tests.sim.rigs import above

MS = 1_000_000
UR_HOME = (0.0, -90.0, 90.0, -90.0, -90.0, 0.0)
Z1_HOME = (0.0, 90.0, -70.0, 60.0, 0.0, 0.0)
TABLE_M = 0.10
PART = (0.034, 0.034, 0.05)


def camera(name: str, mount: str, position_m, rpy_deg) -> dict:
    return {
        "name": name,
        "model": "d435i",
        "mount": mount,
        "position_m": list(position_m),
        "rpy_deg": list(rpy_deg),
    }


def box(name: str, centre_m, size_m, **more) -> dict:
    shape = {"shape": "box", "size_m": list(size_m)}
    return {
        "name": name,
        "role": "fixed",
        "position_m": list(centre_m),
        "shapes": [shape],
        **more,
    }


def part(at_m) -> dict:
    x, y = at_m
    return box(
        "part",
        (x, y, TABLE_M + PART[2] / 2),
        PART,
        role="part",
        mass_kg=0.1,
        rests_on="table",
        grasp={"closing_deg": [0.0], "width_m": PART[0]},
    )


def scene(robot="ur5e", tools=(), home_deg=None, objects=(), cameras=()) -> SceneModel:
    """Build a cell of one arm at the world's origin and whatever stands around it."""
    default = Z1_HOME if robot == "z1" else UR_HOME
    arm = {
        "name": "arm",
        "robot": robot,
        "tools": list(tools),
        "position_m": [0, 0, 0],
        "home_deg": list(default if home_deg is None else home_deg),
    }
    floor = {"name": "floor", "role": "fixed", "shapes": [{"shape": "plane"}]}
    data = {
        "cell": "test_cell",
        "tick_ms": 4 if robot == "z1" else 2,
        "workspace": {"min_m": [-2, -2, -1], "max_m": [2, 2, 3]},
        "view": {
            "look_at_m": [0, 0, 0.5],
            "distance_m": 2,
            "azimuth_deg": 90,
            "elevation_deg": -30,
        },
        "arms": [arm],
        "cameras": list(cameras),
        "objects": [floor, *objects],
    }
    return build_model(resolved_from(check(data, Scene, "test"), seed=1))


@cache
def arm_scene(robot: str, tools: tuple[str, ...] = (), home_deg=None) -> SceneModel:
    """An arm above the floor, nothing else."""
    return scene(robot, tools, home_deg)


@cache
def grasp_scene(robot: str, tools: tuple[str, ...]) -> SceneModel:
    """An arm with its open fingers on both sides of a part on a table."""
    at_m = (0.35, 0.0) if robot == "z1" else (-0.45, -0.13)
    home = Z1_HOME if robot == "z1" else UR_HOME
    q = above(assemble(robot, tools), (*at_m, TABLE_M + PART[2] / 2 + 0.01), home)
    table = box("table", (*at_m, TABLE_M / 2), (0.3, 0.3, TABLE_M), role="support")
    home_deg = tuple(float(x) for x in np.degrees(q))
    return scene(robot, tools, home_deg, [table, part(at_m)])


def plant(model: SceneModel, *, change=None, faults=(), seed=1) -> Plant:
    """Make a plant of it, devices not started."""
    return build_plant(model, seed, change, faults=faults)


class Driver:
    """Streams joint targets to an arm at its own rate, over any way to let time pass."""

    def __init__(self, arm, now, wait) -> None:
        self.arm = arm
        self.now = now
        self.wait = wait
        self.seq = 0
        self.states: list[ArmState] = []

    def command(self, q_rad, **over) -> ArmCommand:
        self.seq += 1
        t_ns = self.now()
        fields = {
            "t_ns": t_ns,
            "seq": self.seq,
            "expires_ns": t_ns + 50 * MS,
            "q_rad": None if q_rad is None else np.array(q_rad),
        }
        return ArmCommand(**(fields | over))

    def send(self, q_rad, **over) -> None:
        self.arm.write(self.command(q_rad, **over))

    def stop(self) -> None:
        self.send(None, stop=True)

    def pause(self, seconds: float) -> None:
        """Let time pass without a command, looking once per period."""
        for _ in range(round(seconds * 1e9 / self.arm.spec.period_ns)):
            self.wait(self.arm.spec.period_ns)
            self.states.append(self.arm.read())

    def stream(self, q_of_t, seconds: float) -> None:
        """Send q_of_t(s) once per period, looking as often."""
        start_ns = self.now()
        for _ in range(round(seconds * 1e9 / self.arm.spec.period_ns)):
            self.send(q_of_t((self.now() - start_ns) * 1e-9))
            self.wait(self.arm.spec.period_ns)
            self.states.append(self.arm.read())

    def hold(self, seconds: float) -> Array:
        """Command the measured joints for some time; return them."""
        q = self.arm.read().q_rad
        self.stream(lambda t: q, seconds)
        return q

    def speeds(self) -> Array:
        return np.array([s.dq_rad_s for s in self.states])


def driver(made: Plant) -> Driver:
    """Drive the only arm of a plant."""
    world = made.world
    return Driver(
        made.devices.arms[0], lambda: world.t_ns, lambda ns: world.step_to(world.t_ns + ns)
    )


def grip(now_ns: int, opening_m: float, force_n=40.0, speed_m_s=0.1, **over) -> GripperCommand:
    fields = {
        "t_ns": now_ns,
        "seq": 1 + now_ns // MS,
        "expires_ns": now_ns + 50 * MS,
        "opening_m": opening_m,
        "force_n": force_n,
        "speed_m_s": speed_m_s,
    }
    return GripperCommand(**(fields | over))
