"""From a stroke of the hand to joints: poses at equal steps, followed on the arm's branch."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from brain.body import Body
from brain.geometry import Array, rotvec_to_matrix
from brain.ik_polish import newton
from brain.jit import kernel, lean_kernel
from brain.kinematics import pose_error
from brain.robot import ArmArrays

ROWS_MAX = 1000
STEP_M = 0.02
LONGEST_M = STEP_M * ROWS_MAX
"""A longer stroke would have its corners cut; a shorter one has them cut within a step."""
LEVER_M = 0.2
"""A turn counts as the way of a point this far from the tool."""
JUMP_RAD = 0.5
"""A joint that turns farther within a step has changed its branch."""
LIMIT, UNREACHABLE, JUMP = 1, 2, 3


@kernel
def resample(poses: Array) -> tuple[Array, Array, float]:
    """Poses at equal steps along a stroke, both ends kept, and which pose each is on its way to.

    Answers the length in m too, turns counted by `LEVER_M`; no poses if it is over `LONGEST_M`.
    """
    k = poses.shape[0]
    error, far = np.zeros((k, 6)), np.zeros(k)
    for i in range(1, k):
        pose_error(poses[i - 1], poses[i], error[i])
        e = error[i]
        way = math.sqrt(e[0] ** 2 + e[1] ** 2 + e[2] ** 2)
        turn = math.sqrt(e[3] ** 2 + e[4] ** 2 + e[5] ** 2)
        far[i] = far[i - 1] + max(way, LEVER_M * turn)
    if not far[k - 1] <= LONGEST_M:
        return np.zeros((0, 4, 4)), np.zeros(0), far[k - 1]
    rows = 1 + int(math.ceil(far[k - 1] / STEP_M))
    out, to, i = np.zeros((rows, 4, 4)), np.zeros(rows), 1
    for r in range(rows):
        if r == 0 or k == 1:
            out[r] = poses[0]
            continue
        s = far[k - 1] * r / (rows - 1)
        while i < k - 1 and far[i] < s:
            i += 1
        to[r] = i
        t = min(1.0, (s - far[i - 1]) / max(far[i] - far[i - 1], 1e-300))
        out[r] = poses[i - 1]
        turn_R = rotvec_to_matrix(t * error[i, 3:])
        for a in range(3):
            out[r, a, 3] += t * error[i, a]
            for b in range(3):
                out[r, a, b] = 0.0
                for c in range(3):
                    out[r, a, b] += turn_R[a, c] * poses[i - 1, c, b]
    return out, to, far[k - 1]


class Follow(NamedTuple):
    """The joint range (6,) to stay in, and scratch of Newton's method."""

    low_rad: Array
    high_rad: Array
    J: Array
    T_links: Array
    T: Array
    error: Array


def follower(body: Body, q_rad: Array) -> Follow:
    """Make it for an arm; joints that are outside of their range now may stay where they are."""
    limits = body.model.limits
    return Follow(
        low_rad=np.minimum(limits.q_min_rad, q_rad),
        high_rad=np.maximum(limits.q_max_rad, q_rad),
        J=np.empty((6, 6)),
        T_links=np.empty((7, 4, 4)),
        T=np.empty((4, 4)),
        error=np.empty(6),
    )


@lean_kernel
def step_to(arm: ArmArrays, pose: Array, path_rad: Array, i: int, f: Follow) -> tuple[int, int]:
    """Write row i of joints (k, 6) for a pose, on from the row before; reason, joint of failure."""
    for k in range(6):
        path_rad[i, k] = path_rad[i - 1, k]
    if not newton(arm, pose, path_rad[i], f.J, f.T_links, f.T, f.error):
        return UNREACHABLE, 0
    for k in range(6):
        if not abs(path_rad[i, k] - path_rad[i - 1, k]) <= JUMP_RAD:
            return JUMP, k
        if not f.low_rad[k] <= path_rad[i, k] <= f.high_rad[k]:
            return LIMIT, k
    return 0, 0


@lean_kernel
def _follow(arm: ArmArrays, poses: Array, path_rad: Array, f: Follow) -> tuple[int, int, int]:
    """Write joints (k, 6) of each pose, on from row 0; row, reason and joint where that ends."""
    for i in range(1, poses.shape[0]):
        reason, joint = step_to(arm, poses[i], path_rad, i, f)
        if reason:
            return i, reason, joint
    return poses.shape[0], 0, 0


def joints_along(body: Body, q_rad: Array, drawn: Array) -> tuple[Array, int, int, int]:
    """Joints (k, 6) along poses (k, 4, 4) from q (6,) on; row, reason and joint where that ends."""
    path = np.empty((len(drawn), 6))
    path[0] = q_rad
    end, reason, joint = _follow(body.model.arrays, drawn, path, follower(body, q_rad))
    return path, end, reason, joint
