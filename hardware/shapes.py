"""Solid shapes as robots and scenes write them, and the two other forms that they take.

In the files lengths are full lengths: a box has its edges, a cylinder two end points and a radius.
`solid` turns a shape into MuJoCo's form (half lengths and a pose), the only place where lengths are
halved; `cover` encloses it in spheres for the brain.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np
from pydantic import Field, model_validator

from brain.geometry import Array, rpy_to_matrix, transform
from brain.world import BOX, CAPSULE, CYLINDER, PLANE, SPHERE
from hardware.strict import Positive, Strict, Vec3

INFLATION, INFLATION_M = 0.05, 0.003
"""Spheres along a tube may be larger than the tube by this share, or by this length."""
OVERSHOOT_M, MOST_CELLS = 0.009, 16
"""Spheres may stand out of a box by this, unless that takes more of them than this."""


class Sphere(Strict):
    """A ball."""

    shape: Literal["sphere"]
    centre_m: Vec3 = (0.0, 0.0, 0.0)
    radius_m: Positive


class _Tube(Strict):
    from_m: Vec3
    to_m: Vec3
    radius_m: Positive

    @model_validator(mode="after")
    def _has_length(self) -> _Tube:
        if self.from_m == self.to_m:
            raise ValueError(f"from_m and to_m are the same point {list(self.from_m)}")
        return self


class Cylinder(_Tube):
    """A cylinder between the middles of its flat ends."""

    shape: Literal["cylinder"]


class Capsule(_Tube):
    """A cylinder with half a ball of the same radius beyond each end."""

    shape: Literal["capsule"]


class Box(Strict):
    """A box by its full edges."""

    shape: Literal["box"]
    centre_m: Vec3 = (0.0, 0.0, 0.0)
    size_m: tuple[Positive, Positive, Positive]
    rpy_deg: Vec3 = (0.0, 0.0, 0.0)


class Plane(Strict):
    """A half space below a point; its normal is z of the object."""

    shape: Literal["plane"]
    centre_m: Vec3 = (0.0, 0.0, 0.0)


Bounded = Annotated[Sphere | Cylinder | Capsule | Box, Field(discriminator="shape")]
Shape = Annotated[Sphere | Cylinder | Capsule | Box | Plane, Field(discriminator="shape")]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Solid:
    """A shape in MuJoCo's form: kind and `size_m` (3,) as in `brain.world`, and its pose (4, 4)."""

    kind: int
    size_m: Array
    T_owner_shape: Array


def rotation_deg(rpy_deg: Vec3) -> Array:
    """Rotation (3, 3) of roll, pitch, yaw in degrees; right angles come out exact."""
    r = rpy_to_matrix(np.radians(np.array(rpy_deg)))
    return np.where(np.abs(r - np.round(r)) < 1e-12, np.round(r), r) + 0.0


def pose_deg(position_m: Vec3, rpy_deg: Vec3) -> Array:
    """Transform (4, 4) from a position in m and roll, pitch, yaw in degrees."""
    return transform(position_m, rotation_deg(rpy_deg))


def solid(shape: Sphere | Cylinder | Capsule | Box | Plane) -> Solid:
    """Give a shape in MuJoCo's form, in the frame of its owner."""
    if isinstance(shape, Sphere):
        return Solid(
            kind=SPHERE,
            size_m=np.array((shape.radius_m, 0.0, 0.0)),
            T_owner_shape=transform(shape.centre_m),
        )
    if isinstance(shape, Box):
        return Solid(
            kind=BOX,
            size_m=0.5 * np.array(shape.size_m),
            T_owner_shape=pose_deg(shape.centre_m, shape.rpy_deg),
        )
    if isinstance(shape, Plane):
        return Solid(kind=PLANE, size_m=np.zeros(3), T_owner_shape=transform(shape.centre_m))
    start, end = np.array(shape.from_m), np.array(shape.to_m)
    length = float(np.linalg.norm(end - start))
    return Solid(
        kind=CYLINDER if isinstance(shape, Cylinder) else CAPSULE,
        size_m=np.array((shape.radius_m, 0.5 * length, 0.0)),
        T_owner_shape=transform(0.5 * (start + end), z_along((end - start) / length)),
    )


def z_along(direction: Array) -> Array:
    """Rotation (3, 3) whose z axis is a unit vector; the turn about it is the shortest one."""
    x, y, z = direction
    if z < -1.0 + 1e-12:
        return np.diag((1.0, -1.0, -1.0))
    k = 1.0 / (1.0 + z)
    return np.array(
        [
            [1.0 - k * x * x, -k * x * y, x],
            [-k * x * y, 1.0 - k * y * y, y],
            [-x, -y, z],
        ]
    )


def cover(item: Solid) -> tuple[Array, Array]:
    """Enclose a shape in spheres: centres (m, 3) in the owner's frame and radii (m,).

    Tubes get a row of spheres a little larger than the tube. A slab of a cylinder, L long, is
    inside a sphere of radius sqrt(r^2 + (L/2)^2) round its middle; between two spheres of a
    capsule's row, spaced s, the wall is covered where R^2 >= r^2 + (s/2)^2.
    """
    r, half = float(item.size_m[0]), float(item.size_m[1])
    if item.kind in (CYLINDER, CAPSULE):
        most = max(r * (1.0 + INFLATION), r + INFLATION_M)
        step = math.sqrt(most**2 - r**2)  # half the longest slab
        if item.kind == CYLINDER:
            n = max(1, math.ceil(half / step - 1e-9))
            z = half / n * (2.0 * np.arange(n) + 1.0 - n)
            radius = math.hypot(r, half / n)
        else:
            n = math.ceil(half / step - 1e-9) + 1
            z = np.linspace(-half, half, n)
            radius = math.hypot(r, half / (n - 1))
        local = np.column_stack([np.zeros((n, 2)), z])
    elif item.kind == SPHERE:
        local, radius = np.zeros((1, 3)), r
    else:
        local, radius = cover_box(item.size_m)
    T = item.T_owner_shape
    return local @ T[:3, :3].T + T[:3, 3], np.full(len(local), radius)


def cover_box(half_m: Array) -> tuple[Array, float]:
    """Enclose a box in spheres round the cells of a grid: centres (m, 3) and their radius.

    The longest cell edge is divided until the spheres stand out by `OVERSHOOT_M` at most, or there
    would be more than `MOST_CELLS`.
    """
    counts = np.ones(3, dtype=np.int64)
    while True:
        cell = half_m / counts
        radius = float(np.linalg.norm(cell))
        more = counts + (np.arange(3) == np.argmax(cell))
        if radius - float(cell.min()) <= OVERSHOOT_M or np.prod(more) > MOST_CELLS:
            break
        counts = more
    axes = [c * (2.0 * np.arange(k) + 1.0 - k) for c, k in zip(cell, counts, strict=True)]
    return np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 3), radius
