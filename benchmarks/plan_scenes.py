"""Five scenes to plan in, for the arms that we describe: start and goals by inverse kinematics."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from brain.body import Body, place
from brain.distance import Obstacles, arm_clearance, obstacles
from brain.geometry import Array, frozen, transform
from brain.ik import solve
from brain.planner import goal_wraps
from brain.world import BOX, SceneObject, make_world
from hardware.arm_model import load_arm

MARGIN_M, SELF_MARGIN_M = 0.01, 0.002
START_M = 0.013
"""Starts and goals keep this from everything."""
JITTER_RAD = 0.03

DOWN = np.diag((1.0, -1.0, -1.0))
FORWARD = np.array(((0.0, 0.0, 1.0), (0.0, -1.0, 0.0), (1.0, 0.0, 0.0)))

Boxes = tuple[tuple[tuple[float, float, float], tuple[float, float, float]], ...]
Place = tuple[tuple[float, float, float], Array]

TABLE: Boxes = (((0.35, 0.0, -0.03), (0.6, 0.9, 0.03)),)

# Boxes (centre, half), where the tool starts and where it shall get; m, for a UR5e.
SCENES: dict[str, tuple[Boxes, Place, Place]] = {
    "over_two_boxes": (
        (((0.45, 0.12, 0.16), (0.15, 0.04, 0.16)), ((0.45, -0.12, 0.16), (0.15, 0.04, 0.16))),
        ((0.45, -0.36, 0.14), DOWN),
        ((0.45, 0.36, 0.14), DOWN),
    ),
    "into_shelf": (
        (
            ((0.67, 0.0, 0.25), (0.15, 0.3, 0.01)),
            ((0.67, 0.0, 0.60), (0.15, 0.3, 0.01)),
            ((0.67, 0.3, 0.42), (0.15, 0.01, 0.18)),
            ((0.67, -0.3, 0.42), (0.15, 0.01, 0.18)),
            ((0.83, 0.0, 0.42), (0.01, 0.3, 0.18)),
        ),
        ((0.45, -0.36, 0.14), DOWN),
        ((0.62, 0.0, 0.42), FORWARD),
    ),
    "into_bin": (
        (
            ((0.61, 0.35, 0.11), (0.01, 0.17, 0.11)),
            ((0.29, 0.35, 0.11), (0.01, 0.17, 0.11)),
            ((0.45, 0.51, 0.11), (0.17, 0.01, 0.11)),
            ((0.45, 0.19, 0.11), (0.17, 0.01, 0.11)),
        ),
        ((0.45, -0.35, 0.15), DOWN),
        ((0.45, 0.35, 0.10), DOWN),
    ),
    "narrow_gap": (
        (((0.5, 0.38, 0.4), (0.15, 0.2, 0.4)), ((0.5, -0.38, 0.4), (0.15, 0.2, 0.4))),
        ((0.10, -0.45, 0.20), DOWN),
        ((0.60, 0.0, 0.40), FORWARD),
    ),
    "under_overhang": (
        (((0.6, 0.0, 0.62), (0.2, 0.2, 0.02)),),
        ((0.45, -0.36, 0.14), DOWN),
        ((0.60, 0.0, 0.42), FORWARD),
    ),
}
ARMS = {"ur5e": ("hand_e", 1.0), "z1": ("z1_gripper", 0.75)}
"""Tool of each arm, and how large the scenes are for it."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Case:
    """One scene for one arm: start (6,), goals (g, 6), nearest first."""

    name: str
    body: Body
    near: Obstacles
    start_rad: Array
    goals_rad: Array
    q_range_rad: tuple[Array, Array]

    def start(self, seed: int) -> Array:
        """Draw a start near the scene's own that is free."""
        rng = np.random.default_rng(seed)
        while True:
            q = self.start_rad + rng.normal(0.0, JITTER_RAD, len(self.start_rad))
            inside = (q > self.q_range_rad[0]).all() and (q < self.q_range_rad[1]).all()
            if inside and _free(self.body, self.near, q):
                return np.asarray(q)


def _free(body: Body, near: Obstacles, q_rad: Array) -> bool:
    found = arm_clearance(body, near, q_rad, self_extra_m=MARGIN_M - SELF_MARGIN_M)
    return found.distance_m >= START_M


def cases() -> list[Case]:
    """Make all scenes for all arms."""
    return [case(arm, scene) for arm in ARMS for scene in SCENES]


def case(arm: str, scene: str) -> Case:
    """Make a scene for an arm.

    Raises:
        ValueError: no branch of the start or of the goal is free.
    """
    tool, scale = ARMS[arm]
    boxes, start, goal = SCENES[scene]
    model = load_arm(arm, [tool])
    body, limits = place(model, np.eye(4)), model.limits
    q_range = limits.q_min_rad + 0.05, limits.q_max_rad - 0.05
    near = obstacles(
        make_world(
            tuple(
                SceneObject(
                    name=f"box {i}",
                    role="fixed",
                    kinds=(BOX,),
                    size_m=frozen(scale * np.array(half)[None]),
                    T_object_shape=frozen(np.eye(4)[None]),
                    T_world_object=frozen(transform(scale * np.array(centre))),
                )
                for i, (centre, half) in enumerate((*TABLE, *boxes))
            )
        )
    )

    def free_branches(at: Place, close_rad: Array) -> Array:
        T = transform(scale * np.array(at[0]), at[1])
        branches = np.asarray(solve(model, T).q_rad).reshape(-1, 6)
        found = [q for q in goal_wraps(branches, close_rad, q_range) if _free(body, near, q)]
        if not found:
            raise ValueError(f"{arm} {scene}: no free branch at {at[0]}")
        return np.array(found)

    starts = free_branches(start, np.zeros(6))
    return Case(
        name=f"{arm}/{scene}",
        body=body,
        near=near,
        start_rad=starts[0],
        goals_rad=free_branches(goal, starts[0]),
        q_range_rad=q_range,
    )
