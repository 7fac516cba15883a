"""Where objects are to each other: how far apart, what stands on what."""

from __future__ import annotations

import math

import numpy as np

from brain.body import cover
from brain.shapes import point_distance
from brain.world import BOX, CAPSULE, CYLINDER, PLANE, SceneObject, make_world

ON_TOP_M = 0.002
"""A part stands on a support whose top is within this of its own bottom."""


def gap_m(one: SceneObject, other: SceneObject) -> float:
    """Distance in m of two objects, at most 9 mm too small: one of them is seen as spheres."""
    if PLANE in one.kinds:
        one, other = other, one
    shapes = make_world((other,)).shapes
    best = math.inf
    for kind, size, T in zip(one.kinds, one.size_m, one.T_object_shape, strict=True):
        centres, radius = cover(kind, size)
        T_world = one.T_world_object @ T
        for p in centres @ T_world[:3, :3].T + T_world[:3, 3]:
            for s in range(len(shapes.kind)):
                d = point_distance(shapes, s, float(p[0]), float(p[1]), float(p[2]))
                best = min(best, d - radius)
    return best


def stands(item: SceneObject, support: SceneObject) -> bool:
    """Whether a part's bottom is on the top of one of its support's shapes, all of it."""
    bottom_m, radius_m = footprint(item)
    at = item.T_world_object[:2, 3]
    for kind, size, T in zip(support.kinds, support.size_m, support.T_object_shape, strict=True):
        T_shape = support.T_world_object @ T
        if T_shape[2, 2] < 1.0 - 1e-6:
            continue
        if kind == PLANE and abs(T_shape[2, 3] - bottom_m) <= ON_TOP_M:
            return True
        if kind == BOX and abs(T_shape[2, 3] + size[2] - bottom_m) <= ON_TOP_M:
            local = T_shape[:2, :2].T @ (at - T_shape[:2, 3])
            if np.all(np.abs(local) + radius_m <= size[:2]):
                return True
    return False


def footprint(item: SceneObject) -> tuple[float, float]:
    """Height in m of an object's lowest point, and the radius of a circle round its outline."""
    bottom, radius = math.inf, 0.0
    for kind, size, T in zip(item.kinds, item.size_m, item.T_object_shape, strict=True):
        T_shape = item.T_world_object @ T
        up = T_shape[2, :3]
        if kind == BOX:
            down = float(np.abs(up) @ size)
            wide = float(np.linalg.norm(size - np.abs(up) * size))
        else:
            along = float(size[1]) if kind in (CAPSULE, CYLINDER) else 0.0
            flat = math.sqrt(max(0.0, 1.0 - float(up[2]) ** 2))
            rim = float(size[0]) * (flat if kind == CYLINDER else 1.0)
            down, wide = rim + along * abs(float(up[2])), float(size[0]) + along * flat
        away = T_shape[:2, 3] - item.T_world_object[:2, 3]
        bottom = min(bottom, float(T_shape[2, 3]) - down)
        radius = max(radius, float(np.linalg.norm(away)) + wide)
    return bottom, radius
