"""Straight ways of the tool: followed in small steps on one branch, then certified like any other.

Used to approach, lift and place. What may be touched on the way is the world's matter: give
obstacles of a world that allows it (`world.allowing`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from brain.body import Body
from brain.certify import Certificate, certify
from brain.distance import Obstacles
from brain.geometry import Array, frozen, matrix_to_rotvec, rotvec_to_matrix
from brain.kinematics import pose_error, tool_jacobian

STEP_M, STEP_RAD = 0.005, math.radians(2.0)
"""The tool goes and turns no farther than this from row to row."""
JUMP_RAD = 0.15
"""A joint that would turn more than this in one step is close to a singular pose."""
ERROR_M = 1e-9
"""Rows meet the straight way as closely as this, in m and rad."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Straight:
    """Joints (rows, n) that lead the tool along a straight way, with the certificate."""

    rows_rad: Array
    certificate: Certificate


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NotStraight:
    """Why there is no straight way, and how far along it the trouble is."""

    reason: Literal["not finite", "limits", "singular", "collision"]
    sentence: str
    along_m: float


def cartesian_path(
    body: Body,
    near: Obstacles,
    start_rad: Array,
    T_world_tool: Array,
    q_range_rad: tuple[Array, Array],
    margin_m: float = 0.005,
) -> Straight | NotStraight:
    """Lead the tool straight from where it is at the joints (n,) to a pose (4, 4) in the world.

    The tool turns about one axis at a steady rate. The joints follow without changing branch.
    """
    if not (np.isfinite(start_rad).all() and np.isfinite(T_world_tool).all()):
        return NotStraight(reason="not finite", sentence="start or goal is not finite", along_m=0.0)
    follower = _Follower(body)
    T_from = follower.pose(start_rad)
    way_m = T_world_tool[:3, 3] - T_from[:3, 3]
    length_m = float(np.linalg.norm(way_m))
    turn = matrix_to_rotvec(np.ascontiguousarray(T_from[:3, :3].T @ T_world_tool[:3, :3]))
    steps = max(math.ceil(length_m / STEP_M), math.ceil(float(np.linalg.norm(turn)) / STEP_RAD), 1)
    rows = [np.array(start_rad, dtype=np.float64)]
    for i in range(1, steps + 1):
        share, T = i / steps, np.eye(4)
        T[:3, :3] = T_from[:3, :3] @ rotvec_to_matrix(turn * share)
        T[:3, 3] = T_from[:3, 3] + share * way_m
        q = follower.step(rows[-1], T)
        along_m = share * length_m
        if q is None or np.max(np.abs(q - rows[-1])) > JUMP_RAD:
            sentence = f"the arm is singular or stretched out {100 * along_m:.0f} cm along"
            return NotStraight(reason="singular", sentence=sentence, along_m=along_m)
        outside = np.flatnonzero((q < q_range_rad[0]) | (q > q_range_rad[1]))
        if len(outside):
            name = body.model.chain.joint_names[outside[0]]
            sentence = f"{name} reaches its limit {100 * along_m:.0f} cm along"
            return NotStraight(reason="limits", sentence=sentence, along_m=along_m)
        rows.append(q)
    certificate = certify(body, near, np.array(rows))
    if not certificate.certified_m >= margin_m:
        sentence = (
            f"{certificate.nearest.sentence()} {100 * certificate.along_m:.0f} cm along, "
            f"{1000 * margin_m:.0f} mm needed"
        )
        return NotStraight(reason="collision", sentence=sentence, along_m=certificate.along_m)
    return Straight(rows_rad=frozen(rows), certificate=certificate)


class _Follower:
    """Newton steps from a neighbouring configuration, with scratch."""

    def __init__(self, body: Body) -> None:
        n = body.model.dof
        self._arm = body.arrays.arm
        self._J, self._T_links, self._T = (
            np.empty((6, n)),
            np.empty((n + 1, 4, 4)),
            np.empty((4, 4)),
        )
        self._error = np.empty(6)

    def pose(self, q_rad: Array) -> Array:
        """Tool pose (4, 4) in the world."""
        q = np.array(q_rad, dtype=np.float64)
        tool_jacobian(self._arm, q, self._J, self._T_links, self._T)
        return self._T.copy()

    def step(self, q_rad: Array, T_world_tool: Array) -> Array | None:
        """Joints (n,) for a pose close to the present one; None where steps do not converge."""
        q = q_rad.copy()
        for _ in range(10):
            tool_jacobian(self._arm, q, self._J, self._T_links, self._T)
            pose_error(self._T, T_world_tool, self._error)
            if float(np.max(np.abs(self._error))) <= ERROR_M:
                return q
            turn = np.linalg.lstsq(self._J, self._error, rcond=None)[0]
            if float(np.max(np.abs(turn))) > 2.0 * JUMP_RAD:
                return None
            q += turn
        return None
