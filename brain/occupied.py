"""How far a point is from what the cameras see: the distance to the nearest occupied voxel.

Exact to the cubes of the voxels, so that a gap wider than an edge is a gap. What known shapes
explain is left out: those are measured exactly, and some of them may be touched. A field over the
bricks says at once that nothing is near.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from brain.geometry import Array
from brain.jit import inline_kernel, kernel, lean_kernel
from brain.shapes import point_distance
from brain.voxel_kernels import OCCUPIED, MapArrays, corner_of
from brain.voxels import VoxelMap
from brain.world import ShapeArrays, World

SIDE = 8
"""Voxels along a brick."""
BRICKS_MAX = 1_000_000
"""A window holds no more bricks: 100 in each direction."""


class OccupiedArrays(NamedTuple):
    """Occupied voxels in a window as kernels take them; n bricks have some.

    `grid` (3,): index of the window's first brick. `brick` (a, b, c): number of the brick there, -1
    where nothing is occupied. `apart` (a, b, c): how many brick edges a brick is apart from the
    nearest one with something in it. `row` (n, 64): a byte of eight voxels along z for each x, y.
    `edge_m` (1,): of a voxel.
    """

    grid: npt.NDArray[np.int64]
    brick: npt.NDArray[np.int32]
    apart: npt.NDArray[np.float32]
    row: npt.NDArray[np.uint8]
    edge_m: Array


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Occupied:
    """What is occupied and nothing known explains, at a version of the map.

    `complete` is false where the map had no memory for all that was seen.
    """

    version: int
    arrays: OccupiedArrays
    voxels: int
    complete: bool


NOTHING = OccupiedArrays(
    grid=np.zeros(3, dtype=np.int64),
    brick=np.full((1, 1, 1), -1, dtype=np.int32),
    apart=np.full((1, 1, 1), np.inf, dtype=np.float32),
    row=np.zeros((0, SIDE * SIDE), dtype=np.uint8),
    edge_m=np.ones(1),
)


def occupied(seen: VoxelMap, world: World, window_m: Array, explained_m: float) -> Occupied:
    """Take what is occupied in a window (2, 3) from a map, but what known shapes explain.

    A voxel is explained if its centre is inside a shape or less than `explained_m` from it.

    Raises:
        ValueError: the window is not finite, empty or too large for this edge.
    """
    size_m = SIDE * seen.edge_m
    if not np.isfinite(window_m).all() or not (window_m[0] < window_m[1]).all():
        raise ValueError(f"window_m: {window_m.tolist()}, must be two finite corners in order")
    low = np.floor(window_m[0] / size_m).astype(np.int64)
    shape = np.ceil(window_m[1] / size_m).astype(np.int64) - low
    if float(np.prod(shape.astype(np.float64))) > BRICKS_MAX:
        raise ValueError(
            f"window_m: {window_m.tolist()} has over {BRICKS_MAX} bricks of {size_m} m"
        )
    brick = np.full(tuple(shape), -1, dtype=np.int32)
    row = np.zeros((seen.bricks, SIDE * SIDE), dtype=np.uint8)
    bricks, voxels = _take(seen.arrays, seen.edge_m, world.shapes, explained_m, low, brick, row)
    apart = np.empty(tuple(shape), dtype=np.float32)
    _spread(brick, apart)
    arrays = OccupiedArrays(
        grid=low, brick=brick, apart=apart, row=row[:bricks], edge_m=np.array([seen.edge_m])
    )
    return Occupied(version=seen.version, arrays=arrays, voxels=voxels, complete=seen.refused == 0)


# ---------------------------------------------------------------- taking over from the map


@kernel
def _take(
    a: MapArrays,
    edge_m: float,
    shapes: ShapeArrays,
    explained_m: float,
    low: npt.NDArray[np.int64],
    brick: npt.NDArray[np.int32],
    row: npt.NDArray[np.uint8],
) -> tuple[int, int]:
    """Fill grid and rows; answers how many bricks and voxels there are."""
    bricks, voxels = 0, 0
    near = np.empty(shapes.kind.shape[0], dtype=np.int64)
    reach_m = explained_m + 0.5 * SIDE * math.sqrt(3.0) * edge_m
    for b in range(a.used[0]):
        if a.top[b] < OCCUPIED:
            continue
        x0, y0, z0 = corner_of(a.brick[b])
        i, j, k = x0 // SIDE - low[0], y0 // SIDE - low[1], z0 // SIDE - low[2]
        if min(i, j, k) < 0:
            continue
        if i >= brick.shape[0] or j >= brick.shape[1] or k >= brick.shape[2]:
            continue
        half = 0.5 * SIDE
        x, y, z = (x0 + half) * edge_m, (y0 + half) * edge_m, (z0 + half) * edge_m
        count = 0
        for s in range(shapes.kind.shape[0]):
            if point_distance(shapes, s, x, y, z) < reach_m:
                near[count] = s
                count += 1
        found = 0
        for w in range(512):
            if a.occupancy[b, w] < OCCUPIED:
                continue
            x = (x0 + (w >> 6) + 0.5) * edge_m
            y = (y0 + ((w >> 3) & 7) + 0.5) * edge_m
            z = (z0 + (w & 7) + 0.5) * edge_m
            known = False
            for n in range(count):
                if point_distance(shapes, near[n], x, y, z) < explained_m:
                    known = True
                    break
            if not known:
                row[bricks, w >> 3] |= np.uint8(1 << (w & 7))
                found += 1
        if found > 0:
            brick[i, j, k] = bricks
            bricks += 1
            voxels += found
    return bricks, voxels


def came(before: OccupiedArrays, now: OccupiedArrays) -> OccupiedArrays:
    """The voxels of `now` that are not among those of `before`; all of them in another window."""
    if before is now or len(now.row) == 0:
        return NOTHING
    alike = all(
        np.array_equal(a, b) for a, b in ((before.grid, now.grid), (before.edge_m, now.edge_m))
    )
    if not alike or before.brick.shape != now.brick.shape:
        return now
    brick, row = np.full_like(now.brick, -1), np.empty_like(now.row)
    bricks = _new_rows(before.brick, before.row, now.brick, now.row, brick, row)
    if bricks == 0:
        return NOTHING
    apart = np.empty_like(now.apart)
    _spread(brick, apart)
    return OccupiedArrays(
        grid=now.grid, brick=brick, apart=apart, row=row[:bricks], edge_m=now.edge_m
    )


@kernel
def _new_rows(
    brick_before: npt.NDArray[np.int32],
    row_before: npt.NDArray[np.uint8],
    brick_now: npt.NDArray[np.int32],
    row_now: npt.NDArray[np.uint8],
    brick: npt.NDArray[np.int32],
    row: npt.NDArray[np.uint8],
) -> int:
    """Write the bricks with bits that are new, without the others; answers how many there are."""
    bricks = 0
    na, nb, nc = brick_now.shape
    for i in range(na):
        for j in range(nb):
            for k in range(nc):
                a, b = brick_before[i, j, k], brick_now[i, j, k]
                if b < 0:
                    continue
                some = np.uint8(0)
                for w in range(SIDE * SIDE):
                    bits = row_now[b, w]
                    if a >= 0:
                        bits &= ~row_before[a, w]
                    row[bricks, w] = bits
                    some |= bits
                if some != 0:
                    brick[i, j, k] = bricks
                    bricks += 1
    return bricks


@kernel
def _spread(brick: npt.NDArray[np.int32], apart: npt.NDArray[np.float32]) -> None:
    """Write how many edges each brick is apart from the nearest brick that has a number.

    Neighbours touch: they are 0 apart. So this is the distance, in bricks, to the nearest one that
    has a number or touches one that does.
    Source: P. Felzenszwalb, D. Huttenlocher, "Distance transforms of sampled functions", 2012.
    """
    na, nb, nc = brick.shape
    for i in range(na):
        for j in range(nb):
            for k in range(nc):
                apart[i, j, k] = np.float32(math.inf)
    for i in range(na):
        for j in range(nb):
            for k in range(nc):
                if brick[i, j, k] < 0:
                    continue
                for u in range(max(i - 1, 0), min(i + 2, na)):
                    for v in range(max(j - 1, 0), min(j + 2, nb)):
                        for w in range(max(k - 1, 0), min(k + 2, nc)):
                            apart[u, v, w] = np.float32(0.0)
    most = max(na, max(nb, nc))
    line, out = np.empty(most), np.empty(most)
    at, edge = np.empty(most, dtype=np.int64), np.empty(most + 1)
    for i in range(na):
        for j in range(nb):
            for k in range(nc):
                line[k] = apart[i, j, k]
            _squares(line[:nc], out[:nc], at, edge)
            for k in range(nc):
                apart[i, j, k] = np.float32(out[k])
    for i in range(na):
        for k in range(nc):
            for j in range(nb):
                line[j] = apart[i, j, k]
            _squares(line[:nb], out[:nb], at, edge)
            for j in range(nb):
                apart[i, j, k] = np.float32(out[j])
    for j in range(nb):
        for k in range(nc):
            for i in range(na):
                line[i] = apart[i, j, k]
            _squares(line[:na], out[:na], at, edge)
            for i in range(na):
                apart[i, j, k] = np.float32(math.sqrt(out[i]))


@lean_kernel
def _squares(line: Array, out: Array, at: npt.NDArray[np.int64], edge: Array) -> None:
    """Write min over q of (p - q)^2 + line[q] for each p: the lower envelope of parabolas."""
    n, last = line.shape[0], -1
    for q in range(n):
        if line[q] == math.inf:
            continue
        meet = -math.inf
        while last >= 0:
            v = at[last]
            meet = ((line[q] + q * q) - (line[v] + v * v)) / (2.0 * (q - v))
            if meet > edge[last]:
                break
            last -= 1
        if last < 0:
            meet = -math.inf
        last += 1
        at[last], edge[last], edge[last + 1] = q, meet, math.inf
    if last < 0:
        for p in range(n):
            out[p] = math.inf
        return
    k = 0
    for p in range(n):
        while k < last and edge[k + 1] < p:
            k += 1
        out[p] = (p - at[k]) ** 2 + line[at[k]]


# ---------------------------------------------------------------- the distance of a point


@inline_kernel
def _outside(x: float, low: float, high: float) -> float:
    """How far a number is from an interval."""
    return max(max(low - x, x - high), 0.0)


@lean_kernel
def occupied_distance(
    a: OccupiedArrays, x: float, y: float, z: float, below_m: float
) -> tuple[float, float, float, float]:
    """Distance in m of a point to the nearest occupied voxel, if less than `below_m`.

    0 inside one; `below_m` if there is none, NaN if the point is not finite. Answers also the
    nearest place in that voxel, the point itself where there is none.
    """
    if not (math.isfinite(x) and math.isfinite(y) and math.isfinite(z)):
        return math.nan, x, y, z
    if a.row.shape[0] == 0 or not below_m > 0.0:
        return below_m, x, y, z
    size = SIDE * a.edge_m[0]
    na, nb, nc = a.brick.shape
    u, v, w = x / size - a.grid[0], y / size - a.grid[1], z / size - a.grid[2]  # in bricks
    i0 = int(min(max(math.floor(u), 0.0), na - 1.0))
    j0 = int(min(max(math.floor(v), 0.0), nb - 1.0))
    k0 = int(min(max(math.floor(w), 0.0), nc - 1.0))
    # What is seen from outside of the window is no nearer than from the place in it nearest to us.
    if a.apart[i0, j0, k0] * size >= below_m:
        return below_m, x, y, z
    du = _outside(u, 0.0, float(na))
    dv = _outside(v, 0.0, float(nb))
    dw = _outside(w, 0.0, float(nc))
    # Two places in bricks g apart are at most g and two diagonals of a brick apart.
    most = a.apart[i0, j0, k0] + 2.0 * math.sqrt(3.0) + math.sqrt(du * du + dv * dv + dw * dw)
    squared = min(below_m / size, most + 0.01) ** 2
    found, reach = False, 1
    px, py, pz = u, v, w
    while True:  # the bricks around first, then all that may still be nearer
        ia, ib = max(i0 - reach, 0), min(i0 + reach, na - 1)
        ja, jb = max(j0 - reach, 0), min(j0 + reach, nb - 1)
        ka, kb = max(k0 - reach, 0), min(k0 + reach, nc - 1)
        for i in range(ia, ib + 1):
            di = _outside(u, float(i), i + 1.0)
            if di * di >= squared:
                continue
            for j in range(ja, jb + 1):
                dj = _outside(v, float(j), j + 1.0)
                if di * di + dj * dj >= squared:
                    continue
                for k in range(ka, kb + 1):
                    b = a.brick[i, j, k]
                    if b < 0:
                        continue
                    if reach > 1 and abs(i - i0) <= 1 and abs(j - j0) <= 1 and abs(k - k0) <= 1:
                        continue
                    dk = _outside(w, float(k), k + 1.0)
                    if di * di + dj * dj + dk * dk >= squared:
                        continue
                    at = _in_brick(a, b, u - i, v - j, w - k, squared)
                    if at < 0:
                        continue
                    low = (
                        i + (at >> 6) / SIDE,
                        j + ((at >> 3) & 7) / SIDE,
                        k + (at & 7) / SIDE,
                    )
                    du = _outside(u, low[0], low[0] + 1.0 / SIDE)
                    dv = _outside(v, low[1], low[1] + 1.0 / SIDE)
                    dw = _outside(w, low[2], low[2] + 1.0 / SIDE)
                    squared, found = du * du + dv * dv + dw * dw, True
                    px = min(max(u, low[0]), low[0] + 1.0 / SIDE)
                    py = min(max(v, low[1]), low[1] + 1.0 / SIDE)
                    pz = min(max(w, low[2]), low[2] + 1.0 / SIDE)
        if reach > 1 or squared == 0.0:
            break
        reach = int(min(math.sqrt(squared) + 2.0, float(max(na, max(nb, nc)))))
        if reach <= 1:
            break
    if not found:
        return below_m, x, y, z
    px, py, pz = px + a.grid[0], py + a.grid[1], pz + a.grid[2]
    return math.sqrt(squared) * size, px * size, py * size, pz * size


@inline_kernel
def _in_brick(a: OccupiedArrays, b: int, u: float, v: float, w: float, squared: float) -> int:
    """The voxel of a brick nearest to a point (brick = unit cube), if nearer; -1 otherwise."""
    best, at = squared * SIDE * SIDE, -1
    u, v, w = u * SIDE, v * SIDE, w * SIDE
    for i in range(SIDE):
        di = _outside(u, float(i), i + 1.0)
        for j in range(SIDE):
            byte = int(a.row[b, SIDE * i + j])
            if byte == 0:
                continue
            dj = _outside(v, float(j), j + 1.0)
            across = di * di + dj * dj
            if across >= best:
                continue
            for k in range(SIDE):
                if byte >> k & 1:
                    dk = _outside(w, float(k), k + 1.0)
                    d = across + dk * dk
                    if d < best:
                        best, at = d, (i << 6) | (j << 3) | k
    return at
