"""The joint speeds nearest to those wanted with which an arm keeps clear of everything.

A small quadratic program per tick. Its constraints: where an arm would be after HORIZON_S at
these speeds it still keeps its distance, from every part that is near; no joint is faster than it
may be. What it costs: the tool's deviation from the motion wanted, and a little joint speed. So
the part of a motion that leads into an obstacle goes, and the tool slides along. Standing still is
always allowed, and never left to make room. Singular poses are `brain/servo.py`'s.

Source: B. Faverjon and P. Tournassoud, "A local based approach for path planning of manipulators
with a high number of degrees of freedom", ICRA 1987 (velocity damper); C. Hildreth, "A quadratic
programming procedure", Naval Research Logistics Quarterly 4, 1957 (the solver).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from brain.body import BodyArrays, Work, pose
from brain.distance import ObstacleArrays, cluster_gap, pair_gap
from brain.geometry import Array
from brain.jit import lean_kernel
from brain.kinematics import tool_jacobian
from brain.occupied import occupied_distance
from brain.shapes import point_normal
from brain.types import Manner

ROWS = 128
"""Constraints of one tick; an arm with more near parts than this stays where it is."""
SWEEPS = 200
SETTLED_RAD_S = 1e-9
ROUNDING_M_S = 1e-7
"""A part that approaches no faster than this beyond what is allowed is no reason to stop."""
SMOOTH = 0.01
"""Joint speed against tool speed: 1 rad/s costs as much as 0.01 m/s or rad/s of the tool."""
HORIZON_S = 0.2
"""What is asked of the speeds holds so far ahead."""
FREE, NARROWED, NOT_FINITE, CROWDED = range(4)
"""Answers of `steer`."""


class Weights(NamedTuple):
    """What a manner of following the hand means.

    `distance`: weight of keeping away, on the distance kept and on how slowly it is approached.
    `pull_1_s`: natural frequency of the pull from the tool's reference to the hand; 40 settles in
    about 0.1 s. `speed_up_s`: the reference takes this long to its full speed.
    """

    distance: float
    pull_1_s: float
    speed_up_s: float


MANNERS: dict[Manner, Weights] = {
    "normal": Weights(distance=1.0, pull_1_s=40.0, speed_up_s=0.15),
    "gently": Weights(distance=2.3, pull_1_s=20.0, speed_up_s=0.3),
    "quickly": Weights(distance=1.0, pull_1_s=40.0, speed_up_s=0.08),
}


class Scratch(NamedTuple):
    """Answer `dq_rad_s` (n,) and scratch: the rows say `row . dq >= -room`."""

    dq_rad_s: Array
    lower_rad_s: Array
    upper_rad_s: Array
    row: Array
    room: Array
    reply: Array
    force: Array
    H: Array
    J: Array
    T_links: Array
    T_world_tool: Array
    normal: Array


def scratch(n: int) -> Scratch:
    """Make the scratch for an arm of n joints."""
    rows = ROWS + 2 * n
    return Scratch(
        dq_rad_s=np.zeros(n),
        lower_rad_s=np.zeros(n),
        upper_rad_s=np.zeros(n),
        row=np.zeros((rows, n)),
        room=np.zeros(rows),
        reply=np.zeros((rows, n)),
        force=np.zeros(rows),
        H=np.zeros((n, n)),
        J=np.zeros((6, n)),
        T_links=np.zeros((n + 1, 4, 4)),
        T_world_tool=np.zeros((4, 4)),
        normal=np.zeros(3),
    )


@lean_kernel
def _add_row(body: BodyArrays, at: Work, sphere: int, sign: float, row: Array, s: Scratch) -> None:
    """Add to a row what the joints do to a sphere along `s.normal`, times a sign."""
    p, normal = at.centre_m[sphere], s.normal
    for k in range(body.arm.sphere_link[sphere]):
        T, axis = at.T_links[k + 1], body.arm.axis[k]
        x = T[0, 0] * axis[0] + T[0, 1] * axis[1] + T[0, 2] * axis[2]
        y = T[1, 0] * axis[0] + T[1, 1] * axis[1] + T[1, 2] * axis[2]
        z = T[2, 0] * axis[0] + T[2, 1] * axis[1] + T[2, 2] * axis[2]
        rx, ry, rz = p[0] - T[0, 3], p[1] - T[1, 3], p[2] - T[2, 3]
        along = normal[0] * (y * rz - z * ry)
        along += normal[1] * (z * rx - x * rz)
        along += normal[2] * (x * ry - y * rx)
        row[k] += sign * along


@lean_kernel
def _away(near: ObstacleArrays, p: Array, against: int, normal: Array) -> None:
    """Write the unit vector from an obstacle (see `cluster_gap`) to a point."""
    shapes, others = near.shapes.kind.shape[0], near.others.radius_m.shape[0]
    if against < shapes:
        point_normal(near.shapes, against, p, normal)
        return
    if against < shapes + others:
        e = near.others.centre_m[against - shapes]
        x, y, z = e[0], e[1], e[2]
    else:
        _, x, y, z = occupied_distance(near.seen, p[0], p[1], p[2], math.inf)
    _towards(p, x, y, z, normal)


@lean_kernel
def _towards(p: Array, x: float, y: float, z: float, normal: Array) -> None:
    normal[0], normal[1], normal[2] = p[0] - x, p[1] - y, p[2] - z
    length = math.sqrt(normal[0] ** 2 + normal[1] ** 2 + normal[2] ** 2)
    if length == 0.0:
        normal[2], length = 1.0, 1.0
    for a in range(3):
        normal[a] /= length


@lean_kernel
def _near_rows(
    body: BodyArrays,
    near: ObstacleArrays,
    at: Work,
    keep_m: float,
    horizon_s: float,
    reach_m: float,
    s: Scratch,
) -> int:
    """Write a row for each cluster and pair of clusters nearer than `reach_m`; -1: too many."""
    count = 0
    for c in range(body.link.shape[0]):
        if body.link[c] == 0:
            continue
        d, i, k = cluster_gap(body, near, at, c, reach_m)
        if i < 0:
            continue
        if count == ROWS:
            return -1
        s.row[count, :] = 0.0
        _away(near, at.centre_m[i], k, s.normal)
        _add_row(body, at, i, 1.0, s.row[count], s)
        s.room[count] = (d - keep_m) / horizon_s
        count += 1
    for p in range(body.pair.shape[0]):
        d, i, j = pair_gap(body, at, p, reach_m)
        if i < 0:
            continue
        if count == ROWS:
            return -1
        s.row[count, :] = 0.0
        e = at.centre_m[j]
        _towards(at.centre_m[i], e[0], e[1], e[2], s.normal)
        _add_row(body, at, i, 1.0, s.row[count], s)
        _add_row(body, at, j, -1.0, s.row[count], s)
        s.room[count] = (d - keep_m) / horizon_s
        count += 1
    for r in range(count):
        if s.room[r] < 0.0:  # not a reason to move
            s.room[r] = 0.0
    return count


@lean_kernel
def _factor(s: Scratch) -> None:
    """Write the Cholesky factor of J^T J + SMOOTH^2 into the lower half of H."""
    n = s.H.shape[0]
    for i in range(n):
        for j in range(i + 1):
            total = SMOOTH * SMOOTH if i == j else 0.0
            for r in range(6):
                total += s.J[r, i] * s.J[r, j]
            for k in range(j):
                total -= s.H[i, k] * s.H[j, k]
            s.H[i, j] = math.sqrt(total) if i == j else total / s.H[j, j]


@lean_kernel
def _reply(H: Array, row: Array, out: Array) -> None:
    """Write how the speeds (n,) answer to a unit force along a row."""
    n = H.shape[0]
    for i in range(n):
        total = row[i]
        for k in range(i):
            total -= H[i, k] * out[k]
        out[i] = total / H[i, i]
    for i in range(n - 1, -1, -1):
        total = out[i]
        for k in range(i + 1, n):
            total -= H[k, i] * out[k]
        out[i] = total / H[i, i]


@lean_kernel
def _solve(count: int, s: Scratch) -> None:
    """Change the speeds as little as the rows ask for, in the metric whose factor is H."""
    n = s.H.shape[0]
    for r in range(count):
        _reply(s.H, s.row[r], s.reply[r])
        s.force[r] = 0.0
    for _ in range(SWEEPS):
        moved = 0.0
        for r in range(count):
            value, gain = s.room[r], 0.0
            for k in range(n):
                value += s.row[r, k] * s.dq_rad_s[k]
                gain += s.row[r, k] * s.reply[r, k]
            if not gain > 1e-12:
                continue
            force = max(s.force[r] - value / gain, 0.0)
            change = force - s.force[r]
            s.force[r] = force
            for k in range(n):
                step = change * s.reply[r, k]
                s.dq_rad_s[k] += step
                moved = max(moved, abs(step))
        if moved < SETTLED_RAD_S:
            break
    share = 1.0  # standing still is allowed, and so is the way there
    for r in range(count):
        along = 0.0
        for k in range(n):
            along += s.row[r, k] * s.dq_rad_s[k]
        if along < -s.room[r] - ROUNDING_M_S:
            share = min(share, s.room[r] / -along)
    for k in range(n):
        s.dq_rad_s[k] *= share


@lean_kernel
def steer(
    body: BodyArrays,
    near: ObstacleArrays,
    q_rad: Array,
    keep_m: float,
    horizon_s: float,
    at: Work,
    s: Scratch,
) -> int:
    """Change the wanted speeds `s.dq_rad_s` (n,), at q (n,), so that all stays `keep_m` away.

    The speeds stay within `s.lower_rad_s` to `s.upper_rad_s`, which contain 0. Answers FREE
    (nothing changed, not by a bit), NARROWED, or NOT_FINITE or CROWDED with speeds of 0.
    """
    n, fastest_m_s = q_rad.shape[0], 0.0
    finite = pose(body, q_rad, at)
    for k in range(n):
        finite = finite and math.isfinite(s.dq_rad_s[k])
    count = 0
    if finite:
        for c in range(body.link.shape[0]):
            speed = 0.0
            for k in range(body.link[c]):
                speed += abs(s.dq_rad_s[k]) * body.reach_m[k, c]
            fastest_m_s = max(fastest_m_s, speed)
        # What does not come within reach at these speeds, or at ones turned aside, is no matter.
        reach_m = keep_m + max(2.0 * fastest_m_s * horizon_s, keep_m)
        count = _near_rows(body, near, at, keep_m, horizon_s, reach_m, s)
    met = True
    for r in range(count):
        along = 0.0
        for k in range(n):
            along += s.row[r, k] * s.dq_rad_s[k]
        finite = finite and math.isfinite(along + s.room[r])
        met = met and along >= -s.room[r]
    if not finite or count < 0:
        s.dq_rad_s[:] = 0.0
        return CROWDED if finite else NOT_FINITE
    if met:
        return FREE
    for k in range(n):
        for sign in range(2):
            s.row[count, :] = 0.0
            s.row[count, k] = 1.0 if sign == 0 else -1.0
            s.room[count] = max(-s.lower_rad_s[k] if sign == 0 else s.upper_rad_s[k], 0.0)
            count += 1
    tool_jacobian(body.arm, q_rad, s.J, s.T_links, s.T_world_tool)
    _factor(s)
    _solve(count, s)
    return NARROWED
