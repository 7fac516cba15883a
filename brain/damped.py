"""Damped steps toward a pose: what the Jacobian still gives where it loses directions.

One unit of error is one m or one rad, one unit of Jacobian one m or rad per rad.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from brain.geometry import Array
from brain.jit import lean_kernel

# Below this singular value a direction is damped, at most by the second figure.
SIGMA_DAMPED = 0.1
DAMPING_MAX = 0.05
# A position error is compared with a rotation error at this distance from the tool.
LEVER_M = 0.2


class Workspace(NamedTuple):
    """Inputs, answer and scratch for an arm of n joints; the levels are explained at `dls_step`."""

    q_ref_rad: Array
    q_min_rad: Array
    q_max_rad: Array
    step_max_rad: Array
    T_base_target: Array
    q_rad: Array
    T_links: Array
    T_base_tool: Array
    J: Array
    J_near: Array
    q_near_rad: Array
    error: Array
    error_near: Array
    columns: Array
    right: Array
    sigma: Array
    level_rows: Array
    level_turn: Array
    level_sigma: Array
    level_error: Array
    dq_rad: Array
    total_rad: Array
    lower_rad: Array
    upper_rad: Array


def workspace(n: int) -> Workspace:
    """Make the scratch for an arm of n joints."""
    return Workspace(
        q_ref_rad=np.zeros(n),
        q_min_rad=np.zeros(n),
        q_max_rad=np.zeros(n),
        step_max_rad=np.zeros(n),
        T_base_target=np.zeros((4, 4)),
        q_rad=np.zeros(n),
        T_links=np.zeros((n + 1, 4, 4)),
        T_base_tool=np.zeros((4, 4)),
        J=np.zeros((6, n)),
        J_near=np.zeros((6, n)),
        q_near_rad=np.zeros(n),
        error=np.zeros(6),
        error_near=np.zeros(6),
        columns=np.zeros((n, 6)),
        right=np.zeros((n, n)),
        sigma=np.zeros(n),
        level_rows=np.zeros((2, 3, n)),
        level_turn=np.zeros((2, 3, 3)),
        level_sigma=np.zeros((2, 3)),
        level_error=np.zeros((3, 3)),
        dq_rad=np.zeros((3, n)),
        total_rad=np.zeros(n),
        lower_rad=np.zeros(n),
        upper_rad=np.zeros(n),
    )


@lean_kernel
def orthogonalise(rows: Array, turn: Array, sigma: Array) -> None:
    """Turn the rows (m, n) of a matrix until they are orthogonal: its singular value decomposition.

    Afterwards `rows` = `turn` (m, m) times what they were; row i is its singular value `sigma` (m,)
    times the right singular vector, row i of `turn` the left one. Unsorted.

    Source: M. R. Hestenes, "Inversion of matrices by biorthogonalization", J. SIAM 6(1), 1958
    (one-sided Jacobi rotations).
    """
    m, n = rows.shape
    for i in range(m):
        for j in range(m):
            turn[i, j] = 1.0 if i == j else 0.0
    for _ in range(30):
        turned = False
        for i in range(m - 1):
            for j in range(i + 1, m):
                a = b = c = 0.0
                for k in range(n):
                    a += rows[i, k] * rows[i, k]
                    b += rows[j, k] * rows[j, k]
                    c += rows[i, k] * rows[j, k]
                if not c * c > 1e-26 * a * b:  # also where they are not finite
                    continue
                turned = True
                zeta = (b - a) / (2.0 * c)
                t = (1.0 if zeta >= 0.0 else -1.0) / (abs(zeta) + math.sqrt(1.0 + zeta * zeta))
                cos = 1.0 / math.sqrt(1.0 + t * t)
                sin = cos * t
                for k in range(n):
                    u, v = rows[i, k], rows[j, k]
                    rows[i, k], rows[j, k] = cos * u - sin * v, sin * u + cos * v
                for k in range(m):
                    u, v = turn[i, k], turn[j, k]
                    turn[i, k], turn[j, k] = cos * u - sin * v, sin * u + cos * v
        if not turned:
            break
    for i in range(m):
        total = 0.0
        for k in range(n):
            total += rows[i, k] * rows[i, k]
        sigma[i] = math.sqrt(total)


@lean_kernel
def smallest_singular_value(J: Array, work: Workspace) -> float:
    """Smallest singular value of a Jacobian (6, n <= 6), m and rad per rad taken as one unit.

    Leaves all of them in `work.sigma`, and the right singular vectors as rows of `work.right`.
    """
    n = J.shape[1]
    for k in range(n):
        for r in range(6):
            work.columns[k, r] = J[r, k]
    orthogonalise(work.columns, work.right, work.sigma)
    smallest = work.sigma[0]
    for k in range(1, n):
        smallest = min(smallest, work.sigma[k])
    return float(smallest)


@lean_kernel
def damped_inverse(sigma: float) -> float:
    """What stands in for 1 / sigma^2: 1 / (sigma^2 + damping^2), exact for directions that work.

    damping^2 = DAMPING_MAX^2 (1 - (sigma / SIGMA_DAMPED)^2) below SIGMA_DAMPED, taken direction by
    direction; the figures are ours, for arms of about a metre.

    Source: Y. Nakamura and H. Hanafusa, "Inverse kinematic solutions with singularity robustness",
    J. Dyn. Sys. Meas. Control 108(3), 1986; S. Chiaverini, "Singularity-robust task-priority
    redundancy resolution", IEEE Trans. Robotics and Automation 13(3), 1997.
    """
    damping2 = 0.0
    if sigma < SIGMA_DAMPED:
        damping2 = DAMPING_MAX * DAMPING_MAX * (1.0 - (sigma / SIGMA_DAMPED) ** 2)
    return 1.0 / (sigma * sigma + damping2)


@lean_kernel
def gain(level: int, i: int, wanted: Array, work: Workspace) -> float:
    """How much of row i of a level goes into the damped solution for three wanted rates."""
    along = 0.0
    for r in range(3):
        along += work.level_turn[level, i, r] * wanted[r]
    return along * damped_inverse(work.level_sigma[level, i])


@lean_kernel
def solve_level(level: int, wanted: Array, dq_rad: Array, work: Workspace) -> None:
    """Write the damped least squares solution dq (n,) of one level."""
    dq_rad[:] = 0.0
    for i in range(3):
        share = gain(level, i, wanted, work)
        for k in range(dq_rad.shape[0]):
            dq_rad[k] += share * work.level_rows[level, i, k]


@lean_kernel
def first_row(error: Array) -> int:
    """Row of the Jacobian where the first level begins: 0 position, 3 rotation."""
    position2 = error[0] ** 2 + error[1] ** 2 + error[2] ** 2
    rotation2 = error[3] ** 2 + error[4] ** 2 + error[5] ** 2
    return 0 if position2 <= LEVER_M * LEVER_M * rotation2 else 3


@lean_kernel
def dls_step(work: Workspace) -> None:
    """Write the damped least squares step for `work.error` and `work.J` into `work.dq_rad` [:2].

    Position and rotation are two levels: the one with the smaller error is solved first, the other
    with the joint motion that does not disturb the first. So what is satisfied is kept: a rotation
    that cannot be had does not move the tool, and a reach that cannot be had does not tilt it.
    Where both can be had the sum is the exact Newton step.

    Source: S. Chiaverini (1997), see `damped_inverse`.
    """
    n, dq = work.J.shape[1], work.dq_rad
    top = first_row(work.error)
    for level in range(2):
        first = top if level == 0 else 3 - top
        rows, wanted = work.level_rows[level], work.level_error[level]
        for r in range(3):
            wanted[r] = work.error[first + r]
            for k in range(n):
                rows[r, k] = work.J[first + r, k]
                if level == 1:
                    wanted[r] -= rows[r, k] * dq[0, k]
        if level == 1:
            for i in range(3):
                norm2 = work.level_sigma[0, i] ** 2
                if norm2 < 1e-24:
                    continue
                for r in range(3):
                    along = 0.0
                    for k in range(n):
                        along += rows[r, k] * work.level_rows[0, i, k]
                    for k in range(n):
                        rows[r, k] -= along / norm2 * work.level_rows[0, i, k]
        orthogonalise(rows, work.level_turn[level], work.level_sigma[level])
        solve_level(level, wanted, dq[level], work)
