"""Random strokes of the hand in our scenes, and whether physics touches along them."""

from __future__ import annotations

from dataclasses import dataclass

import mujoco
import numpy as np

from brain.body import Body, place
from brain.certify import path_at, travel
from brain.clearing import changed, sides_of
from brain.distance import Obstacles, arm_clearance, obstacles
from brain.geometry import Array, rotvec_to_matrix
from brain.kinematics import tool_pose
from brain.path_verdict import TOUCH_M, PathVerdict
from brain.stroke_path import joints_along, resample
from hardware.resolve import resolve
from hardware.scene import cell_model, load_scene, world_of
from sim.clearance import ClearanceMeter
from sim.scene import SceneModel, build_model

SCENES = ("bench_pick", "two_arms")
HAND_HZ, STROKE_S = 90, 1.2
LONG_M, BENT_M, TURN_RAD = (0.05, 0.6), 0.15, 0.5
START_RAD = 0.5
"""Strokes start where every joint is at most this far from home."""
SAMPLE_RAD = 0.005


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Stroke:
    """Joints (6,) to start at and tool poses (k, 4, 4) in the base of one arm of a cell."""

    arm: str
    q_rad: Array
    poses: Array


def drawn_of(body: Body, stroke: Stroke) -> Array:
    """The poses that a stroke is judged at."""
    return resample(np.concatenate([tool_pose(body.model, stroke.q_rad)[None], stroke.poses]))[0]


def path_of(body: Body, stroke: Stroke) -> Array:
    """The joints (k, 6) of a stroke as far as it can be followed."""
    path, end, _, _ = joints_along(body, stroke.q_rad, drawn_of(body, stroke))
    return path[:end]


def path_of_change(body: Body, stroke: Stroke, found: PathVerdict) -> Array:
    """The joints (k, 6) of a stroke with the change that its verdict proposes."""
    assert found.change is not None
    assert found.place is not None
    drawn = drawn_of(body, stroke)
    moved = changed(drawn, found.change, sides_of(body, drawn, found.place.normal))
    path, end, _, _ = joints_along(body, stroke.q_rad, moved)
    assert end == len(moved)
    return path


class StrokeCell:
    """A scene as the brain knows it and as physics has it; the arms that do not move are home."""

    def __init__(self, name: str, seed: int) -> None:
        resolved = resolve(load_scene(name), seed)
        world, cell = world_of(resolved), cell_model(resolved)
        self.home = {arm.name: arm.home_q_rad for arm in cell.arms}
        self.bodies = {
            arm.name: place(arm.model, arm.T_world_base, name=arm.name) for arm in cell.arms
        }
        self.near: dict[str, Obstacles] = {
            name: obstacles(
                world, [(b, self.home[other]) for other, b in self.bodies.items() if other != name]
            )
            for name in self.bodies
        }
        self.scene: SceneModel = build_model(resolved)
        self._data = mujoco.MjData(self.scene.model)
        self._meter = ClearanceMeter(self.scene, world.contacts)

    def draw(self, rng: np.random.Generator) -> Stroke:
        """Draw an arm, a start from which it touches nothing, and a bent stroke with a turn."""
        name = str(rng.choice(list(self.bodies)))
        body, near = self.bodies[name], self.near[name]
        limits = body.model.limits
        while True:
            q = self.home[name] + rng.uniform(-START_RAD, START_RAD, body.model.dof)
            q = np.clip(q, limits.q_min_rad, limits.q_max_rad)
            if arm_clearance(body, near, q).distance_m > TOUCH_M:
                break
        t = np.linspace(0.0, 1.0, round(HAND_HZ * STROKE_S))[:, None]
        to, side = rng.normal(size=3), rng.normal(size=3)
        to *= rng.uniform(*LONG_M) / np.linalg.norm(to)
        side *= rng.uniform(0.0, BENT_M) / np.linalg.norm(side)
        smooth = t * t * (3.0 - 2.0 * t)  # a hand starts and ends at rest
        axis = rng.normal(size=3)
        axis *= rng.uniform(0.0, TURN_RAD) / np.linalg.norm(axis)
        start = tool_pose(body.model, q)
        poses = np.repeat(start[None], len(t), axis=0)
        poses[:, :3, 3] += smooth * to + np.sin(np.pi * smooth) * side
        for i, share in enumerate(smooth[:, 0]):
            poses[i, :3, :3] = rotvec_to_matrix(share * axis) @ start[:3, :3]
        return Stroke(arm=name, q_rad=q, poses=poses)

    def touched(self, arm: str, path: Array) -> str | None:
        """Say what MuJoCo's shapes of an arm touch along a joint path (k, 6), None for nothing.

        Against others by `mj_geomDistance`, of the arm's own links by the contacts that it finds.
        """
        model, data = self.scene.model, self._data
        ids = {item.name: item for item in self.scene.arms}
        turned = travel(path)
        for i in range(max(len(path) - 1, 1)):
            turn = float(np.abs(turned[min(i + 1, len(path) - 1)] - turned[i]).max())
            for share in np.linspace(0.0, 1.0, 2 + int(turn / SAMPLE_RAD)):
                data.qpos[:] = self.scene.qpos_start
                for name, home in self.home.items():
                    data.qpos[ids[name].qpos] = home
                data.qpos[ids[arm].qpos] = path_at(path, min(i + share, len(path) - 1.0))
                mujoco.mj_kinematics(model, data)
                mujoco.mj_collision(model, data)
                found = self._meter.measure(data, {}, 1e-9)
                if found is not None and found.distance_m <= 0.0:
                    return f"{found.link} touches {found.against} in row {i + share:.2f}"
                own = self._own(arm)
                if own is not None:
                    return f"{own} in row {i + share:.2f}"
        return None

    def _own(self, arm: str) -> str | None:
        owner, model = self.scene.geom_owner, self.scene.model
        for contact in self._data.contact[: self._data.ncon]:
            a, b = contact.geom
            if contact.dist <= 0.0 and owner[a] == owner[b] == arm:
                one, other = (model.body(model.geom_bodyid[g]).name for g in (a, b))
                return f"{one} touches {other}"
        return None
