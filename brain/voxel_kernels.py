"""Kernels of the voxel map: exact keys, insertion, seeing through, regions, normals.

A voxel's index along an axis is floor(x / edge); its brick is that divided by 8. Three brick
numbers of 21 bits make one key, without a collision over +-8 million voxels.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from brain.geometry import Array
from brain.jit import inline_kernel, kernel

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float32]
Image = npt.NDArray[np.float32]
Mask = npt.NDArray[np.uint8]

HIT, KEPT = np.float32(0.8), np.float32(0.2)
OCCUPIED = 0.5
FAINT = 0.02
"""What is less is as good as never seen."""
_HALF = 1 << 20
_LOW = (1 << 21) - 1
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_SHIFT = np.uint64(32)
_FREE = -1
_AROUND = 2  # voxels to each side that a normal is made from
_POINTS_MIN = 4


class MapArrays(NamedTuple):
    """A map as kernels take it; `used` holds how many bricks there are.

    `key`, `number` (slots,): the hash. `brick` (n,): the key of each brick. `occupancy`, `frame`
    (n, 512): per voxel its value and the last frame that hit it. `top` (n,) is at least the largest
    value in a brick; `looked_ns` (n,) is when a camera last looked into it.
    """

    key: Ints
    number: npt.NDArray[np.int32]
    brick: Ints
    occupancy: Floats
    frame: npt.NDArray[np.int32]
    top: Floats
    looked_ns: Ints
    used: Ints

    @staticmethod
    def empty(slots: int) -> MapArrays:
        """Make the arrays of an empty map."""
        bricks = slots * 7 // 8
        return MapArrays(
            key=np.full(slots, _FREE, dtype=np.int64),
            number=np.zeros(slots, dtype=np.int32),
            brick=np.zeros(bricks, dtype=np.int64),
            occupancy=np.zeros((bricks, 512), dtype=np.float32),
            frame=np.zeros((bricks, 512), dtype=np.int32),
            top=np.zeros(bricks, dtype=np.float32),
            looked_ns=np.zeros(bricks, dtype=np.int64),
            used=np.zeros(1, dtype=np.int64),
        )


@inline_kernel
def key_of(x: int, y: int, z: int) -> int:
    """The key of the brick that a voxel is in."""
    return (((x >> 3) + _HALF) << 42) | (((y >> 3) + _HALF) << 21) | ((z >> 3) + _HALF)


@inline_kernel
def corner_of(key: int) -> tuple[int, int, int]:
    """The index of a brick's first voxel."""
    return (
        ((key >> 42) - _HALF) * 8,
        (((key >> 21) & _LOW) - _HALF) * 8,
        ((key & _LOW) - _HALF) * 8,
    )


@inline_kernel
def _slot(a: MapArrays, key: int) -> int:
    """The slot of the hash that a key is in, or the free one that it would go to."""
    slots = len(a.key)
    i = int(np.int64((np.uint64(key) * _GOLDEN) >> _SHIFT)) & (slots - 1)
    while a.key[i] != _FREE and a.key[i] != key:
        i = (i + 1) & (slots - 1)
    return i


@inline_kernel
def find(a: MapArrays, key: int) -> int:
    """The number of a brick, -1 if there is none."""
    i = _slot(a, key)
    return -1 if a.key[i] == _FREE else int(np.int64(a.number[i]))


@kernel
def find_or_make(a: MapArrays, key: int) -> int:
    """The number of a brick, which is made if there is none; -1 if the memory is full."""
    i = _slot(a, key)
    if a.key[i] != _FREE:
        return int(np.int64(a.number[i]))
    b = a.used[0]
    if b >= a.brick.shape[0]:
        return -1
    a.used[0] = b + 1
    a.key[i], a.number[i], a.brick[b] = key, b, key
    a.occupancy[b, :], a.frame[b, :] = np.float32(0.0), 0
    a.top[b], a.looked_ns[b] = np.float32(0.0), 0
    return int(b)


@kernel
def compact(a: MapArrays) -> None:
    """Give up bricks in which nothing is left."""
    kept = 0
    for b in range(a.used[0]):
        if a.top[b] < FAINT:
            continue
        if kept != b:
            a.brick[kept], a.top[kept] = a.brick[b], a.top[b]
            a.looked_ns[kept] = a.looked_ns[b]
            a.occupancy[kept, :] = a.occupancy[b, :]
            a.frame[kept, :] = a.frame[b, :]
        kept += 1
    a.used[0] = kept
    a.key[:] = _FREE
    for b in range(kept):
        i = _slot(a, a.brick[b])
        a.key[i], a.number[i] = a.brick[b], b


@kernel
def farthest(depth_m: Image) -> float:
    """The largest depth of an image (h, w) that is a number, 0 if there is none."""
    most = 0.0
    for v in range(depth_m.shape[0]):
        for u in range(depth_m.shape[1]):
            d = float(depth_m[v, u])
            if d > most and d < math.inf:
                most = d
    return most


@kernel
def mark_body(
    depth_m: Image, K: Array, T: Array, reach: tuple[float, float], body: Array, mask: Mask
) -> None:
    """Set the mask (h, w) where the point of a pixel lies in one of some spheres (n, 4)."""
    height, width = depth_m.shape
    fx, fy, cx, cy = K[0, 0], K[1, 1], K[0, 2], K[1, 2]
    for s in range(body.shape[0]):
        dx, dy, dz = body[s, 0] - T[0, 3], body[s, 1] - T[1, 3], body[s, 2] - T[2, 3]
        x = T[0, 0] * dx + T[1, 0] * dy + T[2, 0] * dz
        y = T[0, 1] * dx + T[1, 1] * dy + T[2, 1] * dz
        z = T[0, 2] * dx + T[1, 2] * dy + T[2, 2] * dz
        r = body[s, 3]
        front, back = max(z - r, reach[0]), min(z + r, reach[1])
        if front > back:
            continue
        left = min((x - r) / front, (x - r) / back) * fx + cx
        right = max((x + r) / front, (x + r) / back) * fx + cx
        high = min((y - r) / front, (y - r) / back) * fy + cy
        low = max((y + r) / front, (y + r) / back) * fy + cy
        if right < 0.0 or left > width - 1.0 or low < 0.0 or high > height - 1.0:
            continue
        for v in range(max(int(high), 0), min(int(low) + 1, height - 1) + 1):
            for u in range(max(int(left), 0), min(int(right) + 1, width - 1) + 1):
                d = np.float64(depth_m[v, u])
                if d >= front and d <= back:
                    px, py = (u - cx) / fx * d - x, (v - cy) / fy * d - y
                    if px * px + py * py + (d - z) * (d - z) <= r * r:
                        mask[v, u] = 1


@kernel
def see_hits(
    a: MapArrays,
    edge_m: float,
    depth_m: Image,
    K: Array,
    T: Array,
    reach: tuple[float, float],
    mask: Mask,
    stamp: tuple[int, int],
) -> tuple[int, int, int, int]:
    """Raise every voxel that a frame hits, once; count points, own points, voxels, refusals."""
    height, width = depth_m.shape
    inv_x, inv_y = 1.0 / K[0, 0], 1.0 / K[1, 1]
    scale = 1.0 / edge_m
    t0, t1, t2 = T[0, 3] * scale, T[1, 3] * scale, T[2, 3] * scale
    a0, a1, a2 = T[0, 0] * inv_x * scale, T[1, 0] * inv_x * scale, T[2, 0] * inv_x * scale
    points, own, voxels, refused = 0, 0, 0, 0
    last_key, b = -2, -1
    for v in range(height):
        y, x = (v - K[1, 2]) * inv_y, -K[0, 2] * inv_x
        b0 = (T[0, 0] * x + T[0, 1] * y + T[0, 2]) * scale
        b1 = (T[1, 0] * x + T[1, 1] * y + T[1, 2]) * scale
        b2 = (T[2, 0] * x + T[2, 1] * y + T[2, 2]) * scale
        for u in range(width):
            d = np.float64(depth_m[v, u])
            if not (d >= reach[0] and d <= reach[1]):
                continue
            if mask[v, u] != 0:
                own += 1
                continue
            points += 1
            i = math.floor(d * (b0 + a0 * u) + t0)
            j = math.floor(d * (b1 + a1 * u) + t1)
            k = math.floor(d * (b2 + a2 * u) + t2)
            key = key_of(i, j, k)
            if key != last_key:
                last_key, b = key, find_or_make(a, key)
                if b >= 0:
                    a.looked_ns[b] = stamp[1]
            if b < 0:
                refused += 1
                continue
            w = ((i & 7) << 6) | ((j & 7) << 3) | (k & 7)
            if a.frame[b, w] != stamp[0]:
                a.frame[b, w] = stamp[0]
                value = KEPT * a.occupancy[b, w] + HIT
                a.occupancy[b, w] = value
                a.top[b] = max(a.top[b], value)
                voxels += 1
    return points, own, voxels, refused


@kernel
def see_through(
    a: MapArrays,
    edge_m: float,
    depth_m: Image,
    K: Array,
    T: Array,
    reach: tuple[float, float],
    behind_m: float,
    stamp: tuple[int, int],
) -> int:
    """Lower every voxel that a frame sees through: what it measures there lies farther away."""
    height, width = depth_m.shape
    fx, fy, cx, cy = K[0, 0], K[1, 1], K[0, 2] + 0.5, K[1, 2] + 0.5
    radius = 4.0 * math.sqrt(3.0) * edge_m
    freed = 0
    for b in range(a.used[0]):
        if a.top[b] < FAINT:
            continue
        x0, y0, z0 = corner_of(a.brick[b])
        dx = (x0 + 4) * edge_m - T[0, 3]
        dy = (y0 + 4) * edge_m - T[1, 3]
        dz = (z0 + 4) * edge_m - T[2, 3]
        xc = T[0, 0] * dx + T[1, 0] * dy + T[2, 0] * dz
        yc = T[0, 1] * dx + T[1, 1] * dy + T[2, 1] * dz
        zc = T[0, 2] * dx + T[1, 2] * dy + T[2, 2] * dz
        if zc + radius < reach[0] or zc - radius > reach[1]:
            continue
        if (abs(xc) - radius) * fx > (zc + radius) * max(cx, width - cx):
            continue
        if (abs(yc) - radius) * fy > (zc + radius) * max(cy, height - cy):
            continue
        top, looked = np.float32(0.0), False
        for w in range(512):
            value = a.occupancy[b, w]
            if value < FAINT:
                continue
            if a.frame[b, w] != stamp[0]:
                dx = (x0 + (w >> 6) + 0.5) * edge_m - T[0, 3]
                dy = (y0 + ((w >> 3) & 7) + 0.5) * edge_m - T[1, 3]
                dz = (z0 + (w & 7) + 0.5) * edge_m - T[2, 3]
                z = T[0, 2] * dx + T[1, 2] * dy + T[2, 2] * dz
                if z >= reach[0]:
                    x = T[0, 0] * dx + T[1, 0] * dy + T[2, 0] * dz
                    y = T[0, 1] * dx + T[1, 1] * dy + T[2, 1] * dz
                    u, v = x / z * fx + cx, y / z * fy + cy
                    if u >= 0.0 and v >= 0.0 and u < width and v < height:
                        d = np.float64(depth_m[int(v), int(u)])
                        if d <= reach[1] and d > z - behind_m:
                            looked = True
                            if d > z + behind_m:
                                if value >= OCCUPIED and KEPT * value < OCCUPIED:
                                    freed += 1
                                value = KEPT * value
                                a.occupancy[b, w] = value
            top = max(top, value)
        a.top[b] = top
        if looked:
            a.looked_ns[b] = stamp[1]
    return freed


@inline_kernel
def _centre(key: int, w: int, edge_m: float) -> tuple[float, float, float]:
    """Centre of a voxel in m."""
    x, y, z = corner_of(key)
    return (
        (x + (w >> 6) + 0.5) * edge_m,
        (y + ((w >> 3) & 7) + 0.5) * edge_m,
        (z + (w & 7) + 0.5) * edge_m,
    )


@inline_kernel
def _in_frame(T: Array, p: tuple[float, float, float]) -> tuple[float, float, float]:
    """Coordinates in a frame of a point in the world."""
    dx, dy, dz = p[0] - T[0, 3], p[1] - T[1, 3], p[2] - T[2, 3]
    return (
        T[0, 0] * dx + T[1, 0] * dy + T[2, 0] * dz,
        T[0, 1] * dx + T[1, 1] * dy + T[2, 1] * dz,
        T[0, 2] * dx + T[1, 2] * dy + T[2, 2] * dz,
    )


@kernel
def clear_box(a: MapArrays, edge_m: float, T_world_box: Array, size_m: Array) -> int:
    """Free the voxels in a box; count the occupied ones."""
    freed = 0
    for b in range(a.used[0]):
        top = np.float32(0.0)
        for w in range(512):
            if a.occupancy[b, w] > 0.0:
                x, y, z = _in_frame(T_world_box, _centre(a.brick[b], w, edge_m))
                inside = 2.0 * abs(x) <= size_m[0] and 2.0 * abs(y) <= size_m[1]
                if inside and 2.0 * abs(z) <= size_m[2]:
                    freed += a.occupancy[b, w] >= OCCUPIED
                    a.occupancy[b, w] = np.float32(0.0)
                top = max(top, a.occupancy[b, w])
        a.top[b] = top
    return freed


@kernel
def clear_cylinder(
    a: MapArrays, edge_m: float, T_world_cylinder: Array, radius_m: float, length_m: float
) -> int:
    """Free the voxels in a cylinder about z; count the occupied ones."""
    freed = 0
    for b in range(a.used[0]):
        top = np.float32(0.0)
        for w in range(512):
            if a.occupancy[b, w] > 0.0:
                x, y, z = _in_frame(T_world_cylinder, _centre(a.brick[b], w, edge_m))
                if x * x + y * y <= radius_m * radius_m and 2.0 * abs(z) <= length_m:
                    freed += a.occupancy[b, w] >= OCCUPIED
                    a.occupancy[b, w] = np.float32(0.0)
                top = max(top, a.occupancy[b, w])
        a.top[b] = top
    return freed


@kernel
def resample(a: MapArrays, edge_m: float, other: MapArrays, other_edge_m: float) -> int:
    """Fill another map with every voxel that one of this map overlaps; count what it refuses."""
    refused, share = 0, edge_m / other_edge_m
    low, high = np.zeros(3, dtype=np.int64), np.zeros(3, dtype=np.int64)
    for b in range(a.used[0]):
        x0, y0, z0 = corner_of(a.brick[b])
        for w in range(512):
            value = a.occupancy[b, w]
            if value < FAINT:
                continue
            corner = (x0 + (w >> 6), y0 + ((w >> 3) & 7), z0 + (w & 7))
            for i in range(3):
                low[i] = math.floor(corner[i] * share + 1e-9)
                high[i] = math.ceil((corner[i] + 1) * share - 1e-9) - 1
            for x in range(low[0], high[0] + 1):
                for y in range(low[1], high[1] + 1):
                    for z in range(low[2], high[2] + 1):
                        to = find_or_make(other, key_of(x, y, z))
                        if to < 0:
                            refused += 1
                            continue
                        place = ((x & 7) << 6) | ((y & 7) << 3) | (z & 7)
                        other.occupancy[to, place] = max(other.occupancy[to, place], value)
                        other.top[to] = max(other.top[to], value)
                        other.looked_ns[to] = max(other.looked_ns[to], a.looked_ns[b])
    return refused


@inline_kernel
def value_at(a: MapArrays, x: int, y: int, z: int) -> float:
    """The value of a voxel by its index, 0 where nothing was ever seen."""
    b = find(a, key_of(x, y, z))
    return 0.0 if b < 0 else np.float64(a.occupancy[b, ((x & 7) << 6) | ((y & 7) << 3) | (z & 7)])


@kernel
def is_at(a: MapArrays, edge_m: float, points_m: Array, out: npt.NDArray[np.bool_]) -> None:
    """Say of points (n, 3) whether they are in occupied voxels."""
    for i in range(points_m.shape[0]):
        x = math.floor(points_m[i, 0] / edge_m)
        y = math.floor(points_m[i, 1] / edge_m)
        z = math.floor(points_m[i, 2] / edge_m)
        out[i] = value_at(a, x, y, z) >= OCCUPIED


@kernel
def list_occupied(a: MapArrays, out: Ints) -> None:
    """Write the indices (n, 3) of all occupied voxels."""
    n = 0
    for b in range(a.used[0]):
        x0, y0, z0 = corner_of(a.brick[b])
        for w in range(512):
            if a.occupancy[b, w] >= OCCUPIED:
                out[n, 0] = x0 + (w >> 6)
                out[n, 1] = y0 + ((w >> 3) & 7)
                out[n, 2] = z0 + (w & 7)
                n += 1


@kernel
def normal_at(a: MapArrays, edge_m: float, point_m: Array, toward_m: Array, out: Array) -> bool:
    """Write the unit normal of the plane that fits the occupied voxels around a point best.

    False with fewer than four of them, or where they show no plane: all in one line, or as thick as
    wide.
    """
    x = math.floor(point_m[0] / edge_m)
    y = math.floor(point_m[1] / edge_m)
    z = math.floor(point_m[2] / edge_m)
    n, mean, spread = 0, np.zeros(3), np.zeros((3, 3))
    for i in range(-_AROUND, _AROUND + 1):
        for j in range(-_AROUND, _AROUND + 1):
            for k in range(-_AROUND, _AROUND + 1):
                if value_at(a, x + i, y + j, z + k) >= OCCUPIED:
                    at = (float(i), float(j), float(k))
                    n += 1
                    for r in range(3):
                        mean[r] += at[r]
                        for c in range(3):
                            spread[r, c] += at[r] * at[c]
    if n < _POINTS_MIN:
        return False
    for r in range(3):
        for c in range(3):
            spread[r, c] = spread[r, c] / n - mean[r] * mean[c] / (n * n)
    values, vectors = np.linalg.eigh(spread)
    if values[1] < 0.1 or values[0] > 0.7 * values[1]:
        return False
    side = 0.0
    for r in range(3):
        side += vectors[r, 0] * (toward_m[r] - point_m[r])
    for r in range(3):
        out[r] = vectors[r, 0] if side >= 0.0 else -vectors[r, 0]
    return True
