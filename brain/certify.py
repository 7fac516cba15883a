"""Clearance between the samples: a lower bound that holds along a whole motion.

A sphere on a link moves by at most the sum over joints of turn times lever, the lever being its
distance from the joint's axis. Distances change no faster than spheres move. So two checked
configurations bound the clearance of everything between them, and bisection stops where that bound
is good enough.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from brain.body import Body, BodyArrays, Work, pose, work
from brain.distance import (
    Clearance,
    ObstacleArrays,
    Obstacles,
    arm_clearance,
    cluster_gap,
    pair_gap,
)
from brain.geometry import Array
from brain.jit import inline_kernel, lean_kernel
from brain.kinematics import links, tool
from brain.robot import ArmArrays

LOOK_BEYOND_M = 0.1
"""A cluster farther than this beyond what matters is not looked at sphere by sphere."""

DEPTH = 48
"""Bisection goes no deeper; the bound that holds there is taken."""


class Bisection(NamedTuple):
    """Scratch of a bisection: per level the place, its gaps (c + p) and its levers (n, c)."""

    u: Array
    gap_m: Array
    lever_m: Array
    move_m: Array
    q_rad: Array
    turn_rad: Array


def bisection(body: Body) -> Bisection:
    """Make scratch for a body."""
    n, c, p = body.model.dof, len(body.arrays.link), len(body.arrays.pair)
    return Bisection(
        u=np.zeros(DEPTH),
        gap_m=np.zeros((DEPTH, c + p)),
        lever_m=np.zeros((DEPTH, n, c)),
        move_m=np.zeros((n, c)),
        q_rad=np.zeros(n),
        turn_rad=np.zeros(n),
    )


@inline_kernel
def look(
    body: BodyArrays,
    near: ObstacleArrays,
    q_rad: Array,
    at: Work,
    below_m: float,
    self_extra_m: float,
    gap_m: Array,
    lever_m: Array,
) -> float:
    """Write a body's gaps (c + p), each at most `below_m`, and levers (n, c) at q (n,).

    Self gaps are enlarged by `self_extra_m`, so that one margin serves both. Returns the smallest
    gap, NaN unless q is finite.
    """
    if not pose(body, q_rad, at):
        return math.nan
    clusters, lowest = body.link.shape[0], math.inf
    for c in range(clusters):
        gap = cluster_gap(body, near, at, c, below_m)[0] if body.link[c] > 0 else below_m
        gap_m[c] = gap
        if gap < lowest or gap != gap:
            lowest = gap
        for k in range(body.link[c]):
            T, axis = at.T_links[k + 1], body.arm.axis[k]
            x = T[0, 0] * axis[0] + T[0, 1] * axis[1] + T[0, 2] * axis[2]
            y = T[1, 0] * axis[0] + T[1, 1] * axis[1] + T[1, 2] * axis[2]
            z = T[2, 0] * axis[0] + T[2, 1] * axis[1] + T[2, 2] * axis[2]
            u, v, w = (
                at.bound_m[c, 0] - T[0, 3],
                at.bound_m[c, 1] - T[1, 3],
                at.bound_m[c, 2] - T[2, 3],
            )
            a, b, d = v * z - w * y, w * x - u * z, u * y - v * x
            lever_m[k, c] = math.sqrt(a * a + b * b + d * d) + body.spread_m[c]
    for p in range(body.pair.shape[0]):
        gap = pair_gap(body, at, p, below_m - self_extra_m)[0] + self_extra_m
        gap_m[clusters + p] = gap
        lowest = min(lowest, gap)
    return lowest


@inline_kernel
def between(
    body: BodyArrays,
    gap_a_m: Array,
    lever_a_m: Array,
    gap_b_m: Array,
    lever_b_m: Array,
    turn_rad: Array,
    move_m: Array,
) -> float:
    """Lower bound in m on every gap along a motion from a to b in which joints turn by `turn_rad`.

    A lever is a distance too: between a and b it stays under the mean of its ends plus half of what
    the joints beyond it can add. `move_m` (n, c) is scratch: motion by joints k and beyond.
    """
    clusters, lowest = body.link.shape[0], math.inf
    for c in range(clusters):
        moved = 0.0
        for k in range(body.link[c] - 1, -1, -1):
            lever = 0.5 * (lever_a_m[k, c] + lever_b_m[k, c] + moved)
            moved += turn_rad[k] * min(lever, body.reach_m[k, c])
            move_m[k, c] = moved
        lowest = min(lowest, 0.5 * (gap_a_m[c] + gap_b_m[c] - moved))
    for p in range(body.pair.shape[0]):
        # Seen from the inner link only the joints between the two move the outer one.
        moved = move_m[body.link[body.pair[p, 0]], body.pair[p, 1]]
        gaps = gap_a_m[clusters + p] + gap_b_m[clusters + p]
        lowest = min(lowest, 0.5 * (gaps - moved))
    return lowest


@lean_kernel
def narrowest(
    body: BodyArrays,
    near: ObstacleArrays,
    path_rad: Array,
    travel_rad: Array,
    at: Work,
    scratch: Bisection,
    enough_m: float,
    tolerance_m: float,
    stop_m: float,
    self_extra_m: float,
) -> tuple[float, float, float, int]:
    """Bound the clearance along a polyline (k, n) in joint space from below.

    `travel_rad` (k, n) is how far each joint has turned up to each row. Intervals are halved until
    their bound reaches `enough_m` or comes within `tolerance_m` of the smallest sampled value; a
    sample under `stop_m` ends it at once, without a bound. Answers bound, smallest sample, where
    that is in rows, and the number of configurations looked at.
    """
    u, gap, lever, q, last = (
        scratch.u,
        scratch.gap_m,
        scratch.lever_m,
        scratch.q_rad,
        path_rad.shape[0] - 1,
    )
    looks, top, bound, lowest, where = 0, 1, math.inf, math.inf, 0.0
    u[0], u[1] = 0.0, float(last)
    fresh = 0  # level that was not looked at yet
    while True:
        row = min(int(u[fresh]), max(last - 1, 0))
        share = u[fresh] - row
        for k in range(q.shape[0]):
            q[k] = path_rad[row, k]
            if share > 0.0:
                q[k] += share * (path_rad[row + 1, k] - path_rad[row, k])
        below = min(enough_m, lowest) + LOOK_BEYOND_M
        value = look(body, near, q, at, below, self_extra_m, gap[fresh], lever[fresh])
        looks += 1
        if not value >= lowest:
            lowest, where = value, u[fresh]
        if not value >= stop_m:
            return -math.inf if value == value else value, lowest, where, looks
        if fresh == 0:
            if last == 0:
                return lowest, lowest, where, looks
            fresh = 1
            continue
        while True:
            for k in range(q.shape[0]):
                scratch.turn_rad[k] = _turned(path_rad, travel_rad, u[top], k) - _turned(
                    path_rad, travel_rad, u[0], k
                )
            here = between(
                body, gap[0], lever[0], gap[top], lever[top], scratch.turn_rad, scratch.move_m
            )
            if not (here >= enough_m or here >= lowest - tolerance_m or top + 1 >= DEPTH):
                break
            bound = min(bound, here)
            if top == 1 and u[top] == last:
                return bound, lowest, where, looks
            u[0] = u[top]
            for i in range(gap.shape[1]):
                gap[0, i] = gap[top, i]
            for k in range(lever.shape[1]):
                for c in range(lever.shape[2]):
                    lever[0, k, c] = lever[top, k, c]
            top -= 1
        u[top + 1] = 0.5 * (u[0] + u[top])
        top += 1
        fresh = top


@lean_kernel
def _turned(path_rad: Array, travel_rad: Array, u: float, k: int) -> float:
    """How far joint k has turned up to the place u."""
    row = min(int(u), path_rad.shape[0] - 2)
    step = abs(path_rad[row + 1, k] - path_rad[row, k])
    return float(travel_rad[row, k] + (u - row) * step)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Certificate:
    """What holds along a whole motion: nowhere nearer than `certified_m` (NaN: not finite).

    `nearest` is the narrowest place that was looked at, at most the tolerance above; it lies at
    `row` (with a fraction) of the path, and the tool has gone `along_m` there.
    """

    certified_m: float
    nearest: Clearance
    row: float
    along_m: float
    looks: int


def certify(
    body: Body,
    near: Obstacles,
    path_rad: Array,
    tolerance_m: float = 0.001,
    enough_m: float = math.inf,
) -> Certificate:
    """Certify a motion along the polyline `path_rad` (k, n), sparse or one row per tick.

    Where clearance is certainly above `enough_m` it is not looked at more closely.
    """
    path = np.ascontiguousarray(path_rad, dtype=np.float64)
    at = work(body)
    bound_m, _, row, looks = narrowest(
        body.arrays,
        near.arrays,
        path,
        travel(path),
        at,
        bisection(body),
        enough_m,
        tolerance_m,
        -math.inf,
        0.0,
    )
    q_rad = path_at(path, row)
    return Certificate(
        certified_m=bound_m,
        nearest=arm_clearance(body, near, q_rad, at),
        row=row,
        along_m=tool_travel(body, path, row),
        looks=looks,
    )


def travel(path_rad: Array) -> Array:
    """How far each joint has turned up to each row (k, n), rad."""
    return np.concatenate(
        [np.zeros((1, path_rad.shape[1])), np.cumsum(np.abs(np.diff(path_rad, axis=0)), axis=0)]
    )


def path_at(path_rad: Array, row: float) -> Array:
    """Joints (n,) at a place of a polyline, counted in rows."""
    i = min(int(row), max(len(path_rad) - 2, 0))
    if row == i:
        return np.array(path_rad[i])
    return np.array(path_rad[i] + (row - i) * (path_rad[i + 1] - path_rad[i]))


@lean_kernel
def _tool_travel(
    arm: ArmArrays, path_rad: Array, row: float, step_rad: float, at: Work, q: Array, T: Array
) -> float:
    total, x, y, z = 0.0, 0.0, 0.0, 0.0
    for i in range(path_rad.shape[0]):
        share = min(row - i, 1.0)
        steps = 1
        if i + 1 < path_rad.shape[0]:
            for k in range(q.shape[0]):
                turn = abs(path_rad[i + 1, k] - path_rad[i, k])
                steps = max(steps, int(math.ceil(turn / step_rad)))
        for j in range(steps + 1):
            for k in range(q.shape[0]):
                q[k] = path_rad[i, k]
                if share > 0.0 and i + 1 < path_rad.shape[0]:
                    q[k] += share * j / steps * (path_rad[i + 1, k] - path_rad[i, k])
            links(arm, q, at.T_links)
            tool(arm, at.T_links, T)
            if i > 0 or j > 0:
                dx, dy, dz = T[0, 3] - x, T[1, 3] - y, T[2, 3] - z
                total += math.sqrt(dx * dx + dy * dy + dz * dz)
            x, y, z = T[0, 3], T[1, 3], T[2, 3]
        if row <= i + 1:
            break
    return total


def tool_travel(body: Body, path_rad: Array, row: float | None = None) -> float:
    """Length in m of the tool's way along a polyline, up to a row (to its end for None)."""
    end = float(len(path_rad) - 1) if row is None else row
    q, T = np.zeros(body.model.dof), np.zeros((4, 4))
    return _tool_travel(body.arrays.arm, path_rad, end, 0.02, work(body), q, T)


def displacement_m(body: Body, turn_rad: Array) -> float:
    """How far any sphere of a body can move, at most, when the joints turn by `turn_rad` (n,)."""
    return float(np.max(np.abs(turn_rad) @ body.arrays.reach_m, initial=0.0))
