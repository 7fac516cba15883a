"""Exact signed distance of a point to a shape, negative inside, and which way out is shortest."""

from __future__ import annotations

import math

import numpy as np

from brain.geometry import Array
from brain.jit import lean_kernel
from brain.world import BOX, CAPSULE, CYLINDER, SPHERE, ShapeArrays


@lean_kernel
def local_distance(kind: int, a: float, b: float, c: float, x: float, y: float, z: float) -> float:
    """Signed distance in m of a point to a shape of size (a, b, c), both in the shape's frame.

    Source: C. Ericson, "Real-Time Collision Detection", 2005, ch. 5; inside a box or a cylinder
    the nearest face decides.
    """
    if kind == SPHERE:
        return math.sqrt(x * x + y * y + z * z) - a
    if kind == CAPSULE:
        z -= min(max(z, -b), b)
        return math.sqrt(x * x + y * y + z * z) - a
    if kind == CYLINDER:
        u, w = math.sqrt(x * x + y * y) - a, abs(z) - b
        if u > 0.0 and w > 0.0:
            return math.sqrt(u * u + w * w)
        return max(u, w)
    if kind == BOX:
        u, v, w = abs(x) - a, abs(y) - b, abs(z) - c
        inside = max(u, max(v, w))
        if inside <= 0.0:
            return inside
        u, v, w = max(u, 0.0), max(v, 0.0), max(w, 0.0)
        return math.sqrt(u * u + v * v + w * w)
    return z


@lean_kernel
def point_distance(shapes: ShapeArrays, s: int, px: float, py: float, pz: float) -> float:
    """Signed distance in m of a point in the world to shape s."""
    T = shapes.T_world_shape[s]
    dx, dy, dz = px - T[0, 3], py - T[1, 3], pz - T[2, 3]
    return local_distance(
        shapes.kind[s],
        shapes.size_m[s, 0],
        shapes.size_m[s, 1],
        shapes.size_m[s, 2],
        T[0, 0] * dx + T[1, 0] * dy + T[2, 0] * dz,
        T[0, 1] * dx + T[1, 1] * dy + T[2, 1] * dz,
        T[0, 2] * dx + T[1, 2] * dy + T[2, 2] * dz,
    )


@lean_kernel
def point_normal(shapes: ShapeArrays, s: int, p: Array, normal: Array) -> float:
    """Signed distance in m of a point to shape s; writes its gradient, a unit vector, world frame.

    Where the nearest surface point is not unique one of them is taken.
    """
    T, kind = shapes.T_world_shape[s], shapes.kind[s]
    a, b, c = shapes.size_m[s, 0], shapes.size_m[s, 1], shapes.size_m[s, 2]
    dx, dy, dz = p[0] - T[0, 3], p[1] - T[1, 3], p[2] - T[2, 3]
    x = T[0, 0] * dx + T[1, 0] * dy + T[2, 0] * dz
    y = T[0, 1] * dx + T[1, 1] * dy + T[2, 1] * dz
    z = T[0, 2] * dx + T[1, 2] * dy + T[2, 2] * dz
    d = local_distance(kind, a, b, c, x, y, z)
    gx, gy, gz = 0.0, 0.0, 1.0
    if kind == SPHERE:
        gx, gy, gz = x, y, z
    elif kind == CAPSULE:
        gx, gy, gz = x, y, z - min(max(z, -b), b)
    elif kind == CYLINDER:
        rho = math.sqrt(x * x + y * y)
        u, w = rho - a, abs(z) - b
        if u > 0.0 and w > 0.0:
            gx, gy, gz = x * u / rho, y * u / rho, math.copysign(w, z)
        elif u > w:
            gx, gy, gz = x, y, 0.0
        else:
            gx, gy, gz = 0.0, 0.0, math.copysign(1.0, z)
    elif kind == BOX:
        u, v, w = abs(x) - a, abs(y) - b, abs(z) - c
        if u <= 0.0 and v <= 0.0 and w <= 0.0:
            gx = math.copysign(1.0, x) if u >= v and u >= w else 0.0
            gy = math.copysign(1.0, y) if gx == 0.0 and v >= w else 0.0
            gz = math.copysign(1.0, z) if gx == 0.0 and gy == 0.0 else 0.0
        else:
            gx = math.copysign(max(u, 0.0), x)
            gy = math.copysign(max(v, 0.0), y)
            gz = math.copysign(max(w, 0.0), z)
    length = math.sqrt(gx * gx + gy * gy + gz * gz)
    if length == 0.0:
        gx, length = 1.0, 1.0
    gx, gy, gz = gx / length, gy / length, gz / length
    for i in range(3):
        normal[i] = T[i, 0] * gx + T[i, 1] * gy + T[i, 2] * gz
    return d


def bounding_radius(kind: int, size_m: Array) -> float:
    """Radius in m of the sphere around a shape's origin that contains it."""
    a, b = float(size_m[0]), float(size_m[1])
    by_kind = {
        SPHERE: a,
        CAPSULE: a + b,
        CYLINDER: math.hypot(a, b),
        BOX: float(np.linalg.norm(size_m)),
    }
    return by_kind.get(kind, math.inf)
