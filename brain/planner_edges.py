"""Whether a motion along a polyline in joint space keeps its margins, sixteen places at a time.

The motion is cut into intervals, none of them round a corner. Each stands for its middle: what is
on a link moves by at most the sum over joints of turn times lever (see `certify`) between there and
its ends, so an interval is certified where every gap at its middle is larger than the margin by
that. An interval with a gap under margin and tolerance ends it; the others are halved. Sixteen
middles are looked at in one go, one in each lane, so that the compiler can use the processor's
vectors.

The answer yes is a certificate; a no may be wrong by the tolerance. NaN is never free.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from brain.body import Body, BodyArrays
from brain.distance import ObstacleArrays
from brain.geometry import Array
from brain.jit import inline_kernel, lean_kernel
from brain.occupied import OccupiedArrays, occupied_distance
from brain.world import BOX, CAPSULE, CYLINDER, SPHERE

LANES = 16
STACK = 1024
"""Intervals that can wait; a motion that needs more is called blocked."""

AHEAD_M, ROUNDED_M = 0.1, 1e-9
"""The map is asked for this much more than a lane needs; more than rounding takes off a bound."""


class Lanes(NamedTuple):
    """Scratch; the last axis of all but `u` and `half` is the lane.

    `u` and `half` are the intervals that wait: their middles, and half their lengths, counted in
    rows of the motion. `at` has those in hand; `turn_rad` (n, lane) is how far each joint turns
    within half an interval. Row k c + i of `move_m` is how far cluster i can move by joints k and
    beyond within half an interval; the other rows are components, three or twelve for each thing.
    """

    u: Array
    half: Array
    at: Array
    turn_rad: Array
    frame: Array
    axis: Array
    bound_m: Array
    move_m: Array
    sphere_m: Array
    distance_m: Array
    flag: npt.NDArray[np.int64]


def lanes(body: Body) -> Lanes:
    """Make scratch for a body."""
    n, c = body.model.dof, len(body.arrays.link)
    frame = np.zeros(((n + 1) * 12, LANES))
    for i in range(3):
        frame[5 * i] = 1.0
    return Lanes(
        u=np.zeros(STACK),
        half=np.zeros(STACK),
        at=np.zeros((5, LANES)),
        turn_rad=np.zeros((n, LANES)),
        frame=frame,
        axis=np.zeros((3 * n, LANES)),
        bound_m=np.zeros((3 * c, LANES)),
        move_m=np.zeros((n * c, LANES)),
        sphere_m=np.zeros((6, LANES)),
        distance_m=np.zeros(LANES),
        flag=np.zeros(LANES, dtype=np.int64),
    )


@lean_kernel
def keeps_margin(
    body: BodyArrays,
    near: ObstacleArrays,
    path_rad: Array,
    s: Lanes,
    margin_m: float,
    tolerance_m: float,
    self_extra_m: float,
) -> tuple[bool, int]:
    """Whether the motion along `path_rad` (k, n), k > 1, is certified to keep its margins.

    Self gaps count as larger by `self_extra_m`; infinite: they are not looked at. Answers also how
    many configurations were looked at.
    """
    edges = path_rad.shape[0] - 1
    for row in range(edges):
        for k in range(path_rad.shape[1]):
            if not math.isfinite(path_rad[row + 1, k] - path_rad[row, k]):
                return False, 0
    parts = (LANES + edges - 1) // edges
    begun, waiting, looks = 0, 0, 0
    while begun < edges * parts or waiting > 0:
        while waiting < LANES and begun < edges * parts:
            s.u[waiting], s.half[waiting] = (begun + 0.5) / parts, 0.5 / parts
            begun += 1
            waiting += 1
        count = min(waiting, LANES)
        waiting -= count
        for lane in range(LANES):
            i = waiting + (lane if lane < count else 0)
            s.at[0, lane], s.at[1, lane] = s.u[i], s.half[i]
        looks += count
        _pose(body, path_rad, s)
        _moves(body, s)
        for lane in range(LANES):
            s.flag[lane] = 0
        if _around(body, near, s, margin_m, tolerance_m):
            return False, looks
        if self_extra_m < math.inf and _own(body, s, margin_m - self_extra_m, tolerance_m):
            return False, looks
        for lane in range(count):
            if s.flag[lane] != 0:
                if waiting + 2 + LANES > STACK:
                    return False, looks
                half = 0.5 * s.at[1, lane]
                s.u[waiting], s.u[waiting + 1] = s.at[0, lane] - half, s.at[0, lane] + half
                s.half[waiting] = s.half[waiting + 1] = half
                waiting += 2
    return True, looks


@lean_kernel
def _turns(q: Array, sin: Array, cos: Array) -> None:
    """Write sine and cosine by their series within half a turn; exact to 1e-12."""
    for lane in range(LANES):
        x = q[lane] - 2.0 * math.pi * math.floor(q[lane] / (2.0 * math.pi) + 0.5)
        y = -x * x
        a = 1.0 + y / 600.0
        a = 1.0 + y / 506.0 * a
        a = 1.0 + y / 420.0 * a
        a = 1.0 + y / 342.0 * a
        a = 1.0 + y / 272.0 * a
        a = 1.0 + y / 210.0 * a
        a = 1.0 + y / 156.0 * a
        a = 1.0 + y / 110.0 * a
        a = 1.0 + y / 72.0 * a
        a = 1.0 + y / 42.0 * a
        a = 1.0 + y / 20.0 * a
        sin[lane] = x * (1.0 + y / 6.0 * a)
        a = 1.0 + y / 552.0
        a = 1.0 + y / 462.0 * a
        a = 1.0 + y / 380.0 * a
        a = 1.0 + y / 306.0 * a
        a = 1.0 + y / 240.0 * a
        a = 1.0 + y / 182.0 * a
        a = 1.0 + y / 132.0 * a
        a = 1.0 + y / 90.0 * a
        a = 1.0 + y / 56.0 * a
        a = 1.0 + y / 30.0 * a
        a = 1.0 + y / 12.0 * a
        cos[lane] = 1.0 + y / 2.0 * a


@lean_kernel
def _turn_row(
    a0: Array, a1: Array, a2: Array, a3: Array, b: Array, axis: Array, sin: Array, cos: Array,
    c0: Array, c1: Array, c2: Array, c3: Array,
) -> None:  # fmt: skip
    """Write a row of a link's frame from the same row of the frame before (see `links`)."""
    x, y, z = axis[0], axis[1], axis[2]
    b00, b01, b02, b03 = b[0, 0], b[0, 1], b[0, 2], b[0, 3]
    b10, b11, b12, b13 = b[1, 0], b[1, 1], b[1, 2], b[1, 3]
    b20, b21, b22, b23 = b[2, 0], b[2, 1], b[2, 2], b[2, 3]
    for lane in range(LANES):
        p, q, r = a0[lane], a1[lane], a2[lane]
        u = p * b00 + q * b10 + r * b20
        v = p * b01 + q * b11 + r * b21
        w = p * b02 + q * b12 + r * b22
        along = (1.0 - cos[lane]) * (u * x + v * y + w * z)
        c0[lane] = cos[lane] * u + along * x + sin[lane] * (v * z - w * y)
        c1[lane] = cos[lane] * v + along * y + sin[lane] * (w * x - u * z)
        c2[lane] = cos[lane] * w + along * z + sin[lane] * (u * y - v * x)
        c3[lane] = p * b03 + q * b13 + r * b23 + a3[lane]


@lean_kernel
def _dot(a: Array, b: Array, c: Array, x: float, y: float, z: float, out: Array) -> None:
    for lane in range(LANES):
        out[lane] = a[lane] * x + b[lane] * y + c[lane] * z


@lean_kernel
def _point(frame: Array, link: int, x: float, y: float, z: float, out: Array, row: int) -> None:
    """Write where a point of a link is in the world, into three rows."""
    for i in range(3):
        r = 12 * link + 4 * i
        a, b, c, d, to = frame[r], frame[r + 1], frame[r + 2], frame[r + 3], out[row + i]
        for lane in range(LANES):
            to[lane] = a[lane] * x + b[lane] * y + c[lane] * z + d[lane]


@lean_kernel
def _pose(body: BodyArrays, path_rad: Array, s: Lanes) -> None:
    """Write turns, frames, joint axes and cluster centres at the lanes' places."""
    q, sin, cos, at, half, f = s.at[2], s.at[3], s.at[4], s.at[0], s.at[1], s.frame
    for k in range(path_rad.shape[1]):
        turn = s.turn_rad[k]
        for lane in range(LANES):
            row = int(at[lane])
            a, step = path_rad[row, k], path_rad[row + 1, k] - path_rad[row, k]
            q[lane] = a + (at[lane] - row) * step
            turn[lane] = abs(step) * half[lane]
        _turns(q, sin, cos)
        axis = body.arm.axis[k]
        for i in range(3):
            r, t = 12 * k + 4 * i, 12 * (k + 1) + 4 * i
            _turn_row(
                f[r], f[r + 1], f[r + 2], f[r + 3], body.arm.T_link_joint[k], axis, sin, cos,
                f[t], f[t + 1], f[t + 2], f[t + 3],
            )  # fmt: skip
            _dot(f[t], f[t + 1], f[t + 2], axis[0], axis[1], axis[2], s.axis[3 * k + i])
    for c in range(body.link.shape[0]):
        b = body.bound[c]
        _point(f, body.link[c], b[0], b[1], b[2], s.bound_m, 3 * c)


@lean_kernel
def _move(
    x: Array, y: Array, z: Array, px: Array, py: Array, pz: Array, ax: Array, ay: Array, az: Array,
    turn: Array, beyond: Array, spread_m: float, reach_m: float, out: Array,
) -> None:  # fmt: skip
    """Add what one joint can move a cluster: turn times lever, which the joints beyond stretch."""
    for lane in range(LANES):
        u, v, w = x[lane] - px[lane], y[lane] - py[lane], z[lane] - pz[lane]
        a, b, c = (
            v * az[lane] - w * ay[lane],
            w * ax[lane] - u * az[lane],
            u * ay[lane] - v * ax[lane],
        )
        lever = math.sqrt(a * a + b * b + c * c) + spread_m + beyond[lane]
        out[lane] = beyond[lane] + turn[lane] * (lever if lever < reach_m else reach_m)


@lean_kernel
def _moves(body: BodyArrays, s: Lanes) -> None:
    """Write how far each cluster can move within half an interval."""
    clusters, f, zero = body.link.shape[0], s.frame, s.distance_m
    for lane in range(LANES):
        zero[lane] = 0.0
    for c in range(clusters):
        x, y, z = s.bound_m[3 * c], s.bound_m[3 * c + 1], s.bound_m[3 * c + 2]
        for k in range(body.link[c] - 1, -1, -1):
            r = 12 * (k + 1)
            beyond = zero if k == body.link[c] - 1 else s.move_m[(k + 1) * clusters + c]
            _move(
                x, y, z, f[r + 3], f[r + 7], f[r + 11],
                s.axis[3 * k], s.axis[3 * k + 1], s.axis[3 * k + 2], s.turn_rad[k], beyond,
                body.spread_m[c], body.reach_m[k, c], s.move_m[k * clusters + c],
            )  # fmt: skip


@lean_kernel
def _shape(kind: int, size: Array, T: Array, x: Array, y: Array, z: Array, out: Array) -> None:
    """Write the signed distance of points to a shape (see `shapes.local_distance`).

    Comparisons are such that a NaN anywhere stays.
    """
    a, b, c = size[0], size[1], size[2]
    r00, r01, r02, px = T[0, 0], T[0, 1], T[0, 2], T[0, 3]
    r10, r11, r12, py = T[1, 0], T[1, 1], T[1, 2], T[1, 3]
    r20, r21, r22, pz = T[2, 0], T[2, 1], T[2, 2], T[2, 3]
    if kind == BOX:
        for lane in range(LANES):
            dx, dy, dz = x[lane] - px, y[lane] - py, z[lane] - pz
            u = abs(r00 * dx + r10 * dy + r20 * dz) - a
            v = abs(r01 * dx + r11 * dy + r21 * dz) - b
            w = abs(r02 * dx + r12 * dy + r22 * dz) - c
            most = u if u > v else v
            most = most if most > w else w
            u, v, w = (0.0 if u < 0.0 else u), (0.0 if v < 0.0 else v), (0.0 if w < 0.0 else w)
            out[lane] = math.sqrt(u * u + v * v + w * w) + (most if most < 0.0 else 0.0)
    elif kind == CYLINDER:
        for lane in range(LANES):
            dx, dy, dz = x[lane] - px, y[lane] - py, z[lane] - pz
            u = r00 * dx + r10 * dy + r20 * dz
            v = r01 * dx + r11 * dy + r21 * dz
            w = abs(r02 * dx + r12 * dy + r22 * dz) - b
            u = math.sqrt(u * u + v * v) - a
            most = u if u > w else w
            u, w = (0.0 if u < 0.0 else u), (0.0 if w < 0.0 else w)
            out[lane] = math.sqrt(u * u + w * w) + (most if most < 0.0 else 0.0)
    elif kind in (CAPSULE, SPHERE):
        long = b if kind == CAPSULE else 0.0
        for lane in range(LANES):
            dx, dy, dz = x[lane] - px, y[lane] - py, z[lane] - pz
            u = r00 * dx + r10 * dy + r20 * dz
            v = r01 * dx + r11 * dy + r21 * dz
            w = abs(r02 * dx + r12 * dy + r22 * dz) - long
            w = 0.0 if w < 0.0 else w
            out[lane] = math.sqrt(u * u + v * v + w * w) - a
    else:
        for lane in range(LANES):
            out[lane] = r02 * (x[lane] - px) + r12 * (y[lane] - py) + r22 * (z[lane] - pz)


@lean_kernel
def _apart(a: Array, i: int, b: Array, j: int, out: Array) -> None:
    """Write the distance of two points, each three rows."""
    x, y, z, u, v, w = a[i], a[i + 1], a[i + 2], b[j], b[j + 1], b[j + 2]
    for lane in range(LANES):
        dx, dy, dz = x[lane] - u[lane], y[lane] - v[lane], z[lane] - w[lane]
        out[lane] = math.sqrt(dx * dx + dy * dy + dz * dz)


@lean_kernel
def _apart_from(a: Array, i: int, p: Array, out: Array) -> None:
    """Write the distance of points from one that rests."""
    x, y, z = a[i], a[i + 1], a[i + 2]
    u, v, w = p[0], p[1], p[2]
    for lane in range(LANES):
        dx, dy, dz = x[lane] - u, y[lane] - v, z[lane] - w
        out[lane] = math.sqrt(dx * dx + dy * dy + dz * dz)


@lean_kernel
def _within(d: Array, reach_m: float, tolerance_m: float, move: Array) -> bool:
    """Whether a distance in any lane is not above a reach with tolerance and motion."""
    found = 0
    for lane in range(LANES):
        more = tolerance_m if move[lane] < tolerance_m else move[lane]
        found += 0 if d[lane] >= reach_m + more else 1
    return found > 0


@lean_kernel
def _mark(
    d: Array, reach_m: float, tolerance_m: float, move: Array, flag: npt.NDArray[np.int64]
) -> bool:
    """Flag lanes that are too near for their interval; true if one is too near for any."""
    bad = 0
    for lane in range(LANES):
        flag[lane] |= 0 if d[lane] >= reach_m + move[lane] else 1
        bad += 0 if d[lane] >= reach_m + tolerance_m else 1
    return bad > 0


@lean_kernel
def _around(
    body: BodyArrays, near: ObstacleArrays, s: Lanes, margin_m: float, tolerance_m: float
) -> bool:
    """Flag the lanes by what is around; true if one of them is blocked."""
    shapes, others, d = near.shapes, near.others, s.distance_m
    radius = body.arm.sphere_radius_m
    for c in range(body.link.shape[0] - 1, -1, -1):
        if body.link[c] == 0:
            continue
        move, reach = s.move_m[c], body.bound[c, 3] + margin_m
        x, y, z = s.bound_m[3 * c], s.bound_m[3 * c + 1], s.bound_m[3 * c + 2]
        for k in range(shapes.kind.shape[0]):
            if shapes.may_touch[body.group[c], k]:
                continue
            T, size = shapes.T_world_shape[k], shapes.size_m[k]
            _shape(shapes.kind[k], size, T, x, y, z, d)
            if not _within(d, reach, tolerance_m, move):
                continue
            for i in range(body.first[c], body.first[c + 1]):
                _sphere(body, s, c, i, 0)
                _shape(shapes.kind[k], size, T, s.sphere_m[0], s.sphere_m[1], s.sphere_m[2], d)
                if _mark(d, radius[i] + margin_m, tolerance_m, move, s.flag):
                    return True
        for b in range(others.bound.shape[0]):
            _apart_from(s.bound_m, 3 * c, others.bound[b], d)
            if not _within(d, reach + others.bound[b, 3], tolerance_m, move):
                continue
            for i in range(body.first[c], body.first[c + 1]):
                _sphere(body, s, c, i, 0)
                for j in range(others.first[b], others.first[b + 1]):
                    _apart_from(s.sphere_m, 0, others.centre_m[j], d)
                    near_m = radius[i] + others.radius_m[j] + margin_m
                    if _mark(d, near_m, tolerance_m, move, s.flag):
                        return True
        if near.seen.row.shape[0] > 0 and _mapped(body, near, s, c, margin_m, tolerance_m):
            return True
    return False


@lean_kernel
def _mapped(
    body: BodyArrays, near: ObstacleArrays, s: Lanes, c: int, margin_m: float, tolerance_m: float
) -> bool:
    """Flag the lanes by the map; true if one of them is blocked."""
    d, move, reach = s.distance_m, s.move_m[c], body.bound[c, 3] + margin_m
    _apart_from_map(near.seen, s.bound_m, 3 * c, reach, tolerance_m, move, d)
    if not _within(d, reach, tolerance_m, move):
        return False
    for i in range(body.first[c], body.first[c + 1]):
        _sphere(body, s, c, i, 0)
        reach = body.arm.sphere_radius_m[i] + margin_m
        _apart_from_map(near.seen, s.sphere_m, 0, reach, tolerance_m, move, d)
        if _mark(d, reach, tolerance_m, move, s.flag):
            return True
    return False


@lean_kernel
def _apart_from_map(
    seen: OccupiedArrays,
    p: Array,
    i: int,
    reach_m: float,
    tolerance_m: float,
    move: Array,
    out: Array,
) -> None:
    """Write how far points are from the map, or a bound that is enough.

    Lanes are near each other: the map is asked where the last answer, less the way since, is not
    enough; and then for some more than is needed there.
    """
    x, y, z = p[i], p[i + 1], p[i + 2]
    u = v = w = known_m = math.nan
    for lane in range(LANES):
        needed_m = reach_m + max(move[lane], tolerance_m)
        dx, dy, dz = x[lane] - u, y[lane] - v, z[lane] - w
        out[lane] = known_m - math.sqrt(dx * dx + dy * dy + dz * dz) - ROUNDED_M
        if out[lane] >= needed_m:
            continue
        u, v, w = x[lane], y[lane], z[lane]
        known_m = occupied_distance(seen, u, v, w, needed_m + AHEAD_M)[0]
        out[lane] = known_m


@inline_kernel
def _sphere(body: BodyArrays, s: Lanes, c: int, i: int, row: int) -> None:
    """Write where a sphere of a cluster is."""
    p = body.arm.sphere_centre_m[i]
    _point(s.frame, body.link[c], p[0], p[1], p[2], s.sphere_m, row)


@lean_kernel
def _own(body: BodyArrays, s: Lanes, margin_m: float, tolerance_m: float) -> bool:
    """Flag the lanes by the arm's distances to itself; true if one of them is blocked."""
    d, radius, clusters = s.distance_m, body.arm.sphere_radius_m, body.link.shape[0]
    for p in range(body.pair.shape[0]):
        a, b = body.pair[p, 0], body.pair[p, 1]
        # Seen from the inner link only the joints between the two move the outer one.
        move = s.move_m[body.link[a] * clusters + b]
        _apart(s.bound_m, 3 * a, s.bound_m, 3 * b, d)
        if not _within(d, body.bound[a, 3] + body.bound[b, 3] + margin_m, tolerance_m, move):
            continue
        last, far = -1, False
        for k in range(body.pair_first[p], body.pair_first[p + 1]):
            i, j = body.arm.self_pairs[k, 0], body.arm.self_pairs[k, 1]
            if i != last:
                last = i
                _sphere(body, s, a, i, 0)
                _apart(s.sphere_m, 0, s.bound_m, 3 * b, d)
                reach = radius[i] + body.bound[b, 3] + margin_m
                far = not _within(d, reach, tolerance_m, move)
            if far:
                continue
            _sphere(body, s, b, j, 3)
            _apart(s.sphere_m, 0, s.sphere_m, 3, d)
            if _mark(d, radius[i] + radius[j] + margin_m, tolerance_m, move, s.flag):
                return True
    return False
