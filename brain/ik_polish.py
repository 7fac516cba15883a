"""From the branches of the nominal chain to those of the chain as calibrated, by Newton's method.

A calibrated robot has no closed form: no two axes quite parallel, square or meeting. Its branches
lie near the nominal ones, except where those merge; there the search starts from the branches of
all poses around, and what converges to the same joints counts once.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from brain.damped import orthogonalise
from brain.geometry import (
    Array,
    axis_angle_to_matrix,
    invert,
    rotation_angle,
    rotvec_to_matrix,
    transform,
)
from brain.ik_closed import Shape, closed_form, wrapped
from brain.jit import kernel, lean_kernel
from brain.kinematics import compose, pose_error, tool_jacobian
from brain.robot import ArmArrays, Chain

SEEDS = 128
BRANCHES_MAX = 32
POSES_AROUND = 48
ITERATIONS = 20
STEP_MAX_RAD = 0.2
# Newton stops at the first figure; what has not reached the second is no solution (m and rad).
EXACT = 1e-12
ACCEPTED = 1e-10
# Branches whose joints all lie closer than this are one.
SAME_RAD = 1e-5
TWIN_MAX_RAD = 1.0


class Deviation(NamedTuple):
    """The nominal shape with how far off it is, and poses of the tool (k, 4, 4) that far around."""

    shape: Shape
    T_tool_near: Array


def _flange(chain: Chain, q_rad: Array) -> Array:
    T = np.eye(4)
    for k, q in enumerate(q_rad):
        T = T @ chain.T_link_joint[k]
        T = T @ transform(rotation=axis_angle_to_matrix(np.array(chain.axis[k]), q))
    return T @ chain.T_link_flange


def _spread_samples(n: int) -> Array:
    """Points (n, 6) evenly in the unit cube.

    Source: M. Roberts, "The unreasonable effectiveness of quasirandom sequences", 2018 (additive
    recurrence on the root of x^7 = x + 1).
    """
    root = 1.1127756842787055
    steps = root ** -np.arange(1.0, 7.0)
    return np.asarray((0.5 + np.arange(1, n + 1)[:, None] * steps) % 1.0)


def deviation(shape: Shape, nominal: Chain, chain: Chain, T_flange_tool: Array) -> Deviation:
    """Measure how far the poses of two chains lie apart at equal joints, over 100 samples."""
    far = np.zeros(2)
    for turns in _spread_samples(100):
        q_rad = 2.0 * math.pi * turns - math.pi
        a, b = _flange(nominal, q_rad), _flange(chain, q_rad)
        apart_m = float(np.linalg.norm(a[:3, 3] - b[:3, 3]))
        far = np.maximum(far, (apart_m, rotation_angle(a, b)))
    near = np.empty((POSES_AROUND, 4, 4))
    for i, at in enumerate(2.0 * _spread_samples(POSES_AROUND) - 1.0):
        # Half of them near, half far.
        moved = at * (2.0 if i % 2 else 0.7)
        turn = rotvec_to_matrix(moved[3:] * far[1])
        T_flange_near = transform(moved[:3] * far[0], turn)
        near[i] = invert(T_flange_tool) @ T_flange_near @ T_flange_tool
    return Deviation(shape=shape._replace(spread=2.0 * far), T_tool_near=near)


@lean_kernel
def solve_linear(A: Array, b: Array) -> None:
    """Replace b (n,) by the solution of A x = b, by elimination; overwrites A (n, n)."""
    n = b.shape[0]
    for i in range(n):
        pivot = i
        for r in range(i + 1, n):
            if abs(A[r, i]) > abs(A[pivot, i]):
                pivot = r
        if pivot != i:
            for c in range(i, n):
                A[i, c], A[pivot, c] = A[pivot, c], A[i, c]
            b[i], b[pivot] = b[pivot], b[i]
        if A[i, i] == 0.0:
            A[i, i] = 1e-300
        for r in range(i + 1, n):
            factor = A[r, i] / A[i, i]
            for c in range(i + 1, n):
                A[r, c] -= factor * A[i, c]
            b[r] -= factor * b[i]
    for i in range(n - 1, -1, -1):
        for c in range(i + 1, n):
            b[i] -= A[i, c] * b[c]
        b[i] /= A[i, i]


@lean_kernel
def newton(
    arrays: ArmArrays,
    T_base_tool: Array,
    q_rad: Array,
    J: Array,
    T_links: Array,
    T: Array,
    error: Array,
) -> bool:
    """Move joints q (6,) to where the tool is at the pose; false where that fails.

    J (6, 6), T_links (7, 4, 4), T (4, 4) and error (6,) are scratch.
    """
    for i in range(ITERATIONS + 1):
        tool_jacobian(arrays, q_rad, J, T_links, T)
        pose_error(T, T_base_tool, error)
        left = step = 0.0
        for k in range(6):
            left = max(left, abs(error[k]))
        if left < EXACT or i == ITERATIONS:
            return bool(left < ACCEPTED)
        solve_linear(J, error)
        for k in range(6):
            step = max(step, abs(error[k]))
        if not step < 1e9:
            return False
        for k in range(6):
            q_rad[k] += error[k] * min(1.0, STEP_MAX_RAD / step)
    return False


@lean_kernel
def _is_new(q_rad: Array, known_rad: Array, count: int) -> bool:
    """Bring q (6,) into (-pi, pi]; whether it is none of the first `count` rows."""
    for k in range(6):
        q_rad[k] = wrapped(q_rad[k])
    for other in range(count):
        apart = 0.0
        for k in range(6):
            apart = max(apart, abs(wrapped(q_rad[k] - known_rad[other, k])))
        if apart < SAME_RAD:
            return False
    return True


@kernel
def _twin(arrays: ArmArrays, q_rad: Array, q_twin_rad: Array) -> bool:
    """Write where the branch that q (6,) may be about to merge with should lie; false if far.

    Along the weakest direction v the lost coordinate runs as sigma t + bend t^2 / 2: it comes back
    to zero at t = -2 sigma / bend.
    """
    J, J_near = np.empty((6, 6)), np.empty((6, 6))
    T_links, T = np.empty((7, 4, 4)), np.empty((4, 4))
    rows, right, sigma = np.empty((6, 6)), np.empty((6, 6)), np.empty(6)
    tool_jacobian(arrays, q_rad, J, T_links, T)
    rows[:] = J.T
    orthogonalise(rows, right, sigma)
    i = int(np.argmin(sigma))
    h = 1e-5
    q_twin_rad[:] = q_rad + h * right[i]
    tool_jacobian(arrays, q_twin_rad, J_near, T_links, T)
    bend = 0.0
    for r in range(6):
        for k in range(6):
            bend += rows[i, r] * (J_near[r, k] - J[r, k]) * right[i, k] / (h * sigma[i])
    t = -2.0 * sigma[i] / bend
    q_twin_rad[:] = q_rad + t * right[i]
    return bool(abs(t) < TWIN_MAX_RAD)


@kernel
def polish(
    arrays: ArmArrays, off: Deviation, T_base_tool: Array, q_ref_rad: Array, q_rad: Array
) -> tuple[int, int, int]:
    """Write all branches of a calibrated arm, rows of `q_rad` (m, 6) in (-pi, pi].

    Returns their count (-1 where the pose is not rigid), the flags of `closed_form`, and how many
    branches the nominal chain has beyond those found. Where branches are near merging, the starting
    points are the nominal branches of all poses around, and the twin of each branch found.
    """
    seeds, q = np.empty((SEEDS, 6)), np.empty(6)
    J, T_links, T, error = np.empty((6, 6)), np.empty((7, 4, 4)), np.empty((4, 4)), np.empty(6)
    nominal, flags = closed_form(off.shape, T_base_tool, q_ref_rad, seeds)
    if nominal < 0:
        return -1, flags, 0
    count, count_seeds, around, twins = 0, nominal, 0, 0
    while True:
        for s in range(min(count_seeds, SEEDS)):
            q[:] = seeds[s]
            found = newton(arrays, T_base_tool, q, J, T_links, T, error)
            if found and count < q_rad.shape[0] and _is_new(q, q_rad, count):
                q_rad[count] = q
                count += 1
        # Away from merging branches the nominal ones lead to all there are.
        if flags == 0 and count >= nominal:
            break
        if twins < count:
            count_seeds = 1 if _twin(arrays, q_rad[twins], seeds[0]) else 0
            twins += 1
        elif around < POSES_AROUND:
            compose(T_base_tool, off.T_tool_near[around], T)
            count_seeds, _ = closed_form(off.shape, T, q_ref_rad, seeds)
            around += 1
        else:
            break
    return count, flags, max(0, nominal - count)
