"""Signed distances of an arm to the world, to itself and to other arms, and the nearest place.

Negative is inside. The distances of an arm are those of its spheres, which enclose it, so they
never flatter. A configuration that is not finite has no distance: NaN, which is never free.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from brain.body import Body, BodyArrays, Work, pose, work
from brain.geometry import Array, frozen
from brain.jit import inline_kernel, lean_kernel
from brain.occupied import NOTHING, OccupiedArrays, occupied_distance
from brain.record import Record
from brain.robot import IntArray
from brain.shapes import bounding_radius, point_distance, point_normal
from brain.world import ShapeArrays, World

MAPPED = "something seen"
"""What stands for the map in the name of an obstacle: nobody knows what it is."""


class SphereSet(NamedTuple):
    """Spheres at rest in the world (other arms) in clusters, `bound` (b, 4) around each."""

    centre_m: Array
    radius_m: Array
    first: IntArray
    bound: Array


class ObstacleArrays(NamedTuple):
    """What an arm must keep clear of, as kernels take it.

    `shape_radius_m` (s,): a sphere of that radius around a shape's origin contains it (inf: none).
    """

    shapes: ShapeArrays
    shape_radius_m: Array
    others: SphereSet
    seen: OccupiedArrays


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Obstacles:
    """The world's shapes, other arms' spheres and the map, with names in this order."""

    arrays: ObstacleArrays
    names: tuple[str, ...]


def obstacles(
    world: World, others: Sequence[tuple[Body, Array]] = (), seen: OccupiedArrays = NOTHING
) -> Obstacles:
    """Collect what an arm must keep clear of; `others` are other arms at their joints (n,)."""
    centres, radii, bounds, sizes = [np.zeros((0, 3))], [np.zeros(0)], [np.zeros((0, 4))], []
    names = [world.objects[i].name for i in world.owner]
    for body, q_rad in others:
        at = work(body)
        if not pose(body.arrays, np.array(q_rad, dtype=np.float64), at):
            at.centre_m[:], at.bound_m[:] = math.nan, math.nan  # an arm that is nowhere is near
        centres.append(at.centre_m)
        radii.append(body.spheres.radius_m)
        bounds.append(np.column_stack([at.bound_m, body.arrays.bound[:, 3]]))
        sizes.extend(np.diff(body.arrays.first).tolist())
        names.extend(f"{body.name}:{name}" for name in body.spheres.name)
    others_set = SphereSet(
        centre_m=np.concatenate(centres),
        radius_m=np.concatenate(radii),
        first=np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
        bound=np.concatenate(bounds),
    )
    radius_m = [
        bounding_radius(kind, size)
        for kind, size in zip(world.shapes.kind, world.shapes.size_m, strict=True)
    ]
    arrays = ObstacleArrays(world.shapes, np.array(radius_m, dtype=np.float64), others_set, seen)
    return Obstacles(arrays=arrays, names=(*names, MAPPED))


@inline_kernel
def cluster_gap(
    body: BodyArrays, near: ObstacleArrays, at: Work, c: int, below_m: float
) -> tuple[float, int, int]:
    """Smallest distance of a cluster's spheres to what is around, if less than `below_m`.

    Answers distance, sphere and obstacle (shapes first, then other arms' spheres, then the map), or
    `below_m`, -1, -1. A NaN anywhere stays.
    """
    best, sphere, against = below_m, -1, -1
    shapes, others = near.shapes, near.others
    x, y, z, r = at.bound_m[c, 0], at.bound_m[c, 1], at.bound_m[c, 2], body.bound[c, 3]
    group, first, last = body.group[c], body.first[c], body.first[c + 1]
    count = shapes.kind.shape[0]
    for s in range(count):
        if shapes.may_touch[group, s]:
            continue
        T, reach = shapes.T_world_shape[s], best + r + near.shape_radius_m[s]
        dx, dy, dz = x - T[0, 3], y - T[1, 3], z - T[2, 3]
        if reach <= 0.0 or dx * dx + dy * dy + dz * dz >= reach * reach:
            continue
        if point_distance(shapes, s, x, y, z) - r >= best:
            continue
        for i in range(first, last):
            p = at.centre_m[i]
            d = point_distance(shapes, s, p[0], p[1], p[2]) - body.arm.sphere_radius_m[i]
            if d < best or d != d:
                best, sphere, against = d, i, s
    for b in range(others.bound.shape[0]):
        dx, dy, dz = x - others.bound[b, 0], y - others.bound[b, 1], z - others.bound[b, 2]
        if math.sqrt(dx * dx + dy * dy + dz * dz) - r - others.bound[b, 3] >= best:
            continue
        for i in range(first, last):
            p = at.centre_m[i]
            for j in range(others.first[b], others.first[b + 1]):
                e = others.centre_m[j]
                dx, dy, dz = p[0] - e[0], p[1] - e[1], p[2] - e[2]
                d = math.sqrt(dx * dx + dy * dy + dz * dz)
                d -= body.arm.sphere_radius_m[i] + others.radius_m[j]
                if d < best or d != d:
                    best, sphere, against = d, i, count + j
    if near.seen.row.shape[0] > 0:
        d, i = _mapped_gap(body, near.seen, at, c, best)
        if i >= 0:
            best, sphere, against = d, i, count + others.radius_m.shape[0]
    return best, sphere, against


@lean_kernel
def _mapped_gap(
    body: BodyArrays, seen: OccupiedArrays, at: Work, c: int, below_m: float
) -> tuple[float, int]:
    """Smallest distance of a cluster's spheres to the map, if less than `below_m`, and which."""
    best, sphere = below_m, -1
    p, reach = at.bound_m[c], best + body.bound[c, 3]
    if occupied_distance(seen, p[0], p[1], p[2], reach)[0] >= reach:
        return best, sphere
    for i in range(body.first[c], body.first[c + 1]):
        p, r = at.centre_m[i], body.arm.sphere_radius_m[i]
        reach = best + r
        d = occupied_distance(seen, p[0], p[1], p[2], reach)[0]
        if d < reach or d != d:  # compared before r is taken off: that rounds
            best, sphere = d - r, i
    return best, sphere


@inline_kernel
def pair_gap(body: BodyArrays, at: Work, p: int, below_m: float) -> tuple[float, int, int]:
    """Smallest distance between the spheres of a cluster pair, if less than `below_m`.

    Answers distance and the two spheres, or `below_m`, -1, -1.
    """
    best, one, other = below_m, -1, -1
    a, b = body.pair[p, 0], body.pair[p, 1]
    ca, cb, rb = at.bound_m[a], at.bound_m[b], body.bound[b, 3]
    dx, dy, dz = ca[0] - cb[0], ca[1] - cb[1], ca[2] - cb[2]
    if math.sqrt(dx * dx + dy * dy + dz * dz) - body.bound[a, 3] - rb >= best:
        return best, one, other
    i, far = -1, False
    for k in range(body.pair_first[p], body.pair_first[p + 1]):
        j = body.arm.self_pairs[k, 1]
        if body.arm.self_pairs[k, 0] != i:
            i = body.arm.self_pairs[k, 0]
            c, r = at.centre_m[i], body.arm.sphere_radius_m[i]
            dx, dy, dz = c[0] - cb[0], c[1] - cb[1], c[2] - cb[2]
            far = math.sqrt(dx * dx + dy * dy + dz * dz) - r - rb >= best
        if far:
            continue
        e = at.centre_m[j]
        dx, dy, dz = c[0] - e[0], c[1] - e[1], c[2] - e[2]
        reach = best + r + body.arm.sphere_radius_m[j]
        squared = dx * dx + dy * dy + dz * dz
        if reach > 0.0 and squared < reach * reach:
            best, one, other = math.sqrt(squared) - r - body.arm.sphere_radius_m[j], i, j
    return best, one, other


@lean_kernel
def nearest(
    body: BodyArrays,
    near: ObstacleArrays,
    q_rad: Array,
    at: Work,
    below_m: float,
    self_extra_m: float,
) -> tuple[float, int, int]:
    """Smallest signed distance in m of a body at q (n,), if less than `below_m`: NaN unless finite.

    Answers distance, own sphere, and what it is nearest to: an index into `Obstacles.names`, then
    counting on, one's own spheres. Distances to oneself compete as if they were larger by
    `self_extra_m`. The base is bolted to the world and does not count against it.
    """
    if not pose(body, q_rad, at):
        return math.nan, -1, -1
    best, sphere, against = below_m, -1, -1
    for c in range(body.link.shape[0] - 1, -1, -1):
        if body.link[c] > 0:
            d, i, k = cluster_gap(body, near, at, c, best)
            if d < best or d != d:
                best, sphere, against = d, i, k
    around = near.shapes.kind.shape[0] + near.others.radius_m.shape[0] + 1  # 1: the map
    for p in range(body.pair.shape[0]):
        d, i, k = pair_gap(body, at, p, best - self_extra_m)
        if i >= 0:
            best, sphere, against = d + self_extra_m, k, around + i
    if against >= around:
        best -= self_extra_m
    return best, sphere, against


@lean_kernel
def surroundings(
    body: BodyArrays, near: ObstacleArrays, q_rad: Array, at: Work, below_m: float
) -> float:
    """Smallest signed distance in m to what is around, if less than `below_m`: NaN unless finite.

    This is what the speed falls with. The arm's own links do not count, since some of them are near
    each other in every pose; nor does link 1, which turns in place over what the base stands on.
    """
    if not pose(body, q_rad, at):
        return math.nan
    best = below_m
    for c in range(body.link.shape[0] - 1, -1, -1):
        if body.link[c] > 1:
            d = cluster_gap(body, near, at, c, best)[0]
            if d < best or d != d:
                best = d
    return best


@lean_kernel
def distances(
    body: BodyArrays, near: ObstacleArrays, q_rad: Array, at: Work, below_m: float
) -> tuple[float, float]:
    """The distances of `nearest`, nothing extra to oneself, and of `surroundings`, in one go."""
    around_m = surroundings(body, near, q_rad, at, below_m)
    best = around_m
    if best != best:
        return best, around_m
    for c in range(body.link.shape[0]):
        if body.link[c] == 1:
            d = cluster_gap(body, near, at, c, best)[0]
            if d < best or d != d:
                best = d
    for p in range(body.pair.shape[0]):
        d, i, _ = pair_gap(body, at, p, best)
        if i >= 0:
            best = d
    return best, around_m


@lean_kernel
def free(
    body: BodyArrays,
    near: ObstacleArrays,
    q_rad: Array,
    at: Work,
    margin_m: float,
    self_margin_m: float,
) -> bool:
    """Whether a body at q (n,) keeps a margin to all and one to itself; false unless finite."""
    if not pose(body, q_rad, at):
        return False
    for c in range(body.link.shape[0] - 1, -1, -1):
        if body.link[c] > 0 and not cluster_gap(body, near, at, c, margin_m)[0] >= margin_m:
            return False
    for p in range(body.pair.shape[0]):
        if pair_gap(body, at, p, self_margin_m)[0] < self_margin_m:
            return False
    return True


@lean_kernel
def clearances(
    body: BodyArrays,
    near: ObstacleArrays,
    q_rad: Array,
    at: Work,
    below_m: float,
    self_extra_m: float,
    out: Array,
) -> None:
    """Write the smallest signed distance (rows,), at most `below_m`, of each row of q (rows, n)."""
    for row in range(q_rad.shape[0]):
        out[row] = nearest(body, near, q_rad[row], at, below_m, self_extra_m)[0]


@lean_kernel
def surroundings_along(
    body: BodyArrays, near: ObstacleArrays, q_rad: Array, at: Work, below_m: float, out: Array
) -> None:
    """Write the smallest distance to what is around (rows,) of each row of q (rows, n)."""
    for row in range(q_rad.shape[0]):
        out[row] = surroundings(body, near, q_rad[row], at, below_m)


# ---------------------------------------------------------------- the answer as a value


class Clearance(Record):
    """The nearest place: which sphere of which link, against what, where, and the way out.

    `against` is an object's name, `self:<sphere>`, `<arm>:<sphere>` or `MAPPED`. `point_m` (3,) is
    on the surface of the other thing and `normal` (3,) points from it to the arm, both in the
    world. Far from everything, or with joints that are not finite, there is nothing to name: empty
    and None.
    """

    distance_m: float
    link: int
    sphere: str
    against: str
    point_m: Array | None
    normal: Array | None

    def sentence(self) -> str:
        """Say it to the operator."""
        if self.point_m is None:
            return "joints are not finite" if math.isnan(self.distance_m) else "nothing is near"
        if self.distance_m < 0.0:
            return f"{self.sphere} is {-1000 * self.distance_m:.0f} mm inside {self.against}"
        return f"{self.sphere} is {1000 * self.distance_m:.0f} mm from {self.against}"


def arm_clearance(
    body: Body,
    near: Obstacles,
    q_rad: Array,
    at: Work | None = None,
    below_m: float = math.inf,
    self_extra_m: float = 0.0,
) -> Clearance:
    """Find the smallest signed distance of an arm at q (n,), with its held part, to everything.

    Contacts that the world allows to a sphere's group are left out. `at` is scratch (see
    `body.work`); with `below_m` nothing farther is looked for; distances to the arm itself compete
    as if they were larger by `self_extra_m`.
    """
    at = work(body) if at is None else at
    d, i, k = nearest(body.arrays, near.arrays, q_rad, at, below_m, self_extra_m)
    if i < 0:
        return Clearance(distance_m=d, link=-1, sphere="", against="", point_m=None, normal=None)
    p, r = at.centre_m[i], body.arrays.arm.sphere_radius_m[i]
    shapes = len(near.arrays.shapes.kind)
    normal = np.zeros(3)
    if k < shapes:
        point_normal(near.arrays.shapes, k, p, normal)
    elif near.names[k : k + 1] == (MAPPED,):
        place = occupied_distance(near.arrays.seen, p[0], p[1], p[2], math.inf)
        offset = p - place[1:]
        normal[:] = offset / place[0] if place[0] > 0.0 else (0.0, 0.0, 1.0)
    else:
        own = k - len(near.names)
        centre = at.centre_m[own] if own >= 0 else near.arrays.others.centre_m[k - shapes]
        offset = p - centre
        length = float(np.linalg.norm(offset))
        normal[:] = offset / length if length > 0.0 else (0.0, 0.0, 1.0)
    name = (
        near.names[k] if k < len(near.names) else f"self:{body.spheres.name[k - len(near.names)]}"
    )
    return Clearance(
        distance_m=d,
        link=int(body.spheres.link[i]),
        sphere=body.spheres.name[i],
        against=name,
        point_m=frozen(p - (d + r) * normal),
        normal=frozen(normal),
    )


def path_clearances(
    body: Body,
    near: Obstacles,
    q_rad: Array,
    below_m: float = math.inf,
    self_extra_m: float = 0.0,
) -> Array:
    """Smallest signed distance (rows,) in m of each row of q (rows, n) (see `arm_clearance`)."""
    out = np.empty(len(q_rad))
    clearances(
        body.arrays,
        near.arrays,
        np.ascontiguousarray(q_rad),
        work(body),
        below_m,
        self_extra_m,
        out,
    )
    return out


def path_surroundings(
    body: Body, near: Obstacles, q_rad: Array, below_m: float = math.inf
) -> Array:
    """Distance in m to what is around (rows,) of each row of q (rows, n) (see `surroundings`)."""
    out, q = np.empty(len(q_rad)), np.ascontiguousarray(q_rad)
    surroundings_along(body.arrays, near.arrays, q, work(body), below_m, out)
    return out
