"""An arm standing in the world with what it holds, as clusters of spheres for quick distances.

In a `Body` link 0 is the world: the base pose is folded into the chain, so that link frames and
sphere centres come out in world coordinates. Clusters are runs of neighbouring spheres of one link
and one group, each inside a bounding sphere; most of them are settled by that sphere alone.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from brain.errors import ConfigError
from brain.geometry import Array
from brain.jit import kernel, lean_kernel
from brain.kinematics import links
from brain.robot import (
    GROUP_ARM,
    GROUP_FINGER,
    GROUP_HELD,
    ArmArrays,
    ArmModel,
    Chain,
    IntArray,
    Spheres,
    arm_arrays,
)
from brain.world import CAPSULE, CYLINDER, PLANE, SPHERE, Held, SceneObject

CLUSTER_M = 0.16
"""Clusters are halved until their bounding radius is below this, or 1.5 of their largest sphere."""


class BodyArrays(NamedTuple):
    """A `Body` as kernels take it: n joints, m spheres, c clusters, p cluster pairs that can touch.

    `arm` is placed in the world, its spheres are sorted by cluster and its self pairs by cluster
    pair. `first` (c + 1) and `pair_first` (p + 1) say where each one starts. `bound` (c, 4): centre
    in the link and radius of a cluster's bounding sphere; `spread_m` (c,): how far its sphere
    centres are from that centre. `reach_m` (n, c): how far a cluster's sphere centres can ever be
    from a joint's axis.
    """

    arm: ArmArrays
    link: IntArray
    group: IntArray
    first: IntArray
    bound: Array
    spread_m: Array
    pair: IntArray
    pair_first: IntArray
    reach_m: Array


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Body:
    """One arm in its place with what it holds; `spheres` in the order of the arrays."""

    name: str
    model: ArmModel
    spheres: Spheres
    arrays: BodyArrays


class Work(NamedTuple):
    """Scratch of one caller: link frames, sphere centres and bounding centres, all in the world."""

    T_links: Array
    centre_m: Array
    bound_m: Array


def work(body: Body) -> Work:
    """Make scratch for a body."""
    return Work(
        T_links=np.zeros((body.model.dof + 1, 4, 4)),
        centre_m=np.zeros((len(body.spheres.name), 3)),
        bound_m=np.zeros((len(body.arrays.link), 3)),
    )


@lean_kernel
def pose(body: BodyArrays, q_rad: Array, out: Work) -> bool:
    """Write where a body is at the joints q (n,); false, and nothing useful, unless q is finite."""
    for k in range(q_rad.shape[0]):
        if not math.isfinite(q_rad[k]):
            return False
    links(body.arm, q_rad, out.T_links)
    for c in range(body.link.shape[0]):
        T = out.T_links[body.link[c]]
        x, y, z = body.bound[c, 0], body.bound[c, 1], body.bound[c, 2]
        for a in range(3):
            out.bound_m[c, a] = T[a, 0] * x + T[a, 1] * y + T[a, 2] * z + T[a, 3]
        for i in range(body.first[c], body.first[c + 1]):
            centre = body.arm.sphere_centre_m[i]
            x, y, z = centre[0], centre[1], centre[2]
            for a in range(3):
                out.centre_m[i, a] = T[a, 0] * x + T[a, 1] * y + T[a, 2] * z + T[a, 3]
    return True


def place(
    model: ArmModel, T_world_base: Array, held: Spheres | None = None, name: str | None = None
) -> Body:
    """Put an arm into the world; `held` are spheres fixed to its last link (see `held_spheres`).

    What is held can touch whatever the fingers can (the last link, where there are no fingers).
    """
    spheres, self_pairs = model.spheres, model.self_pairs
    if held is not None:
        spheres, self_pairs = _with_held(spheres, self_pairs, held, model.dof)
    base = spheres.link == 0
    centre_m = np.array(spheres.centre_m)
    centre_m[base] = centre_m[base] @ T_world_base[:3, :3].T + T_world_base[:3, 3]
    clusters = [
        part
        for link in range(model.dof + 1)
        for group in (GROUP_ARM, GROUP_FINGER, GROUP_HELD)
        for part in _split(
            np.flatnonzero((spheres.link == link) & (spheres.group == group)),
            centre_m,
            spheres.radius_m,
        )
    ]
    order = np.concatenate([np.zeros(0, dtype=np.int64), *clusters])
    spheres = Spheres(
        link=spheres.link[order],
        centre_m=centre_m[order],
        radius_m=spheres.radius_m[order],
        group=spheres.group[order],
        name=tuple(spheres.name[i] for i in order),
    )
    sizes = np.array([len(c) for c in clusters], dtype=np.int64)
    cluster_of = np.repeat(np.arange(len(clusters)), sizes)
    pairs = np.sort(np.argsort(order)[self_pairs], axis=1)
    pairs = pairs[spheres.link[pairs[:, 0]] != spheres.link[pairs[:, 1]]]  # these never move
    pairs = pairs[np.lexsort((pairs[:, 1], pairs[:, 0], *cluster_of[pairs].T[::-1]))]
    cluster_pairs, pair_sizes = np.unique(cluster_of[pairs], axis=0, return_counts=True)
    T_link_joint = np.array(model.chain.T_link_joint)
    T_link_joint[0] = T_world_base @ T_link_joint[0]
    chain = Chain(
        joint_names=model.chain.joint_names,
        T_link_joint=T_link_joint,
        axis=model.chain.axis,
        T_link_flange=model.chain.T_link_flange,
    )
    first = np.concatenate([[0], np.cumsum(sizes)])
    link = spheres.link[first[:-1]]
    bound = np.array(
        [
            _bounding_sphere(spheres.centre_m[a:b], spheres.radius_m[a:b])
            for a, b in zip(first[:-1], first[1:], strict=True)
        ]
    ).reshape(-1, 4)
    spread_m = np.array(
        [
            np.max(np.linalg.norm(spheres.centre_m[a:b] - ball[:3], axis=1))
            for a, b, ball in zip(first[:-1], first[1:], bound, strict=True)
        ]
    )
    arrays = BodyArrays(
        arm=arm_arrays(chain, model.T_flange_tool, spheres, pairs),
        link=np.array(link),
        group=np.array(spheres.group[first[:-1]]),
        first=first,
        bound=bound,
        spread_m=spread_m,
        pair=np.array(cluster_pairs, dtype=np.int64).reshape(-1, 2),
        pair_first=np.concatenate([[0], np.cumsum(pair_sizes)]).astype(np.int64),
        reach_m=_reach(chain, link, bound, spread_m),
    )
    return Body(name=name or model.name, model=model, spheres=spheres, arrays=arrays)


def _with_held(
    spheres: Spheres, self_pairs: IntArray, held: Spheres, last_link: int
) -> tuple[Spheres, IntArray]:
    m = len(spheres.name)
    tip = spheres.group == GROUP_FINGER
    tip = tip if tip.any() else spheres.link == last_link
    tipped = tip[self_pairs]
    touched = np.unique(self_pairs[tipped[:, ::-1] & (tipped[:, :1] != tipped[:, 1:])])
    added = m + np.arange(len(held.name))
    pairs = np.column_stack([np.repeat(touched, len(added)), np.tile(added, len(touched))])
    both = Spheres(
        link=np.concatenate([spheres.link, held.link]),
        centre_m=np.concatenate([spheres.centre_m, held.centre_m]),
        radius_m=np.concatenate([spheres.radius_m, held.radius_m]),
        group=np.concatenate([spheres.group, held.group]),
        name=spheres.name + held.name,
    )
    return both, np.concatenate([self_pairs, pairs])


def _split(members: IntArray, centre_m: Array, radius_m: Array) -> list[IntArray]:
    """Halve a run of spheres along its longest side until each part is compact."""
    if len(members) == 0:
        return []
    c, r = centre_m[members], radius_m[members]
    if len(members) <= 2 or _bounding_sphere(c, r)[3] <= max(CLUSTER_M, 1.5 * float(r.max())):
        return [members]
    order = members[np.argsort(c[:, np.argmax(np.ptp(c, axis=0))], kind="stable")]
    half = len(order) // 2
    return [
        *_split(order[:half], centre_m, radius_m),
        *_split(order[half:], centre_m, radius_m),
    ]


@kernel
def _bounding_sphere(centre_m: Array, radius_m: Array) -> Array:
    """Small sphere (x, y, z, r) around spheres.

    Source: M. Badoiu, K. Clarkson, "Smaller core-sets for balls", SODA 2003 (step 1 / i towards the
    farthest).
    """
    count = centre_m.shape[0]
    best, x = np.empty(4), np.zeros(3)
    best[3] = math.inf
    for i in range(count):
        for a in range(3):
            x[a] += centre_m[i, a] / count
    for step in range(200):
        k, far = 0, -math.inf
        for i in range(count):
            dx, dy, dz = centre_m[i, 0] - x[0], centre_m[i, 1] - x[1], centre_m[i, 2] - x[2]
            d = math.sqrt(dx * dx + dy * dy + dz * dz) + radius_m[i]
            if not d <= far:
                k, far = i, d
        if far < best[3]:
            best[:3], best[3] = x, far
        for a in range(3):
            x[a] += (centre_m[k, a] - x[a]) / (step + 2)
    return best


def _reach(chain: Chain, link: IntArray, bound: Array, spread_m: Array) -> Array:
    """Upper bound (n, c) on the distance of a cluster's sphere centres from each joint's axis.

    By the triangle inequality along the chain, each joint's step measured from the nearest point
    of the axis before it; 0 for joints that do not move the cluster.
    """
    n = len(chain.joint_names)
    reach = np.zeros((n, len(link)))
    for c, last in enumerate(link):
        length = 0.0
        for k in range(int(last) - 1, -1, -1):
            axis = chain.axis[k]
            step = bound[c, :3] if k == last - 1 else chain.T_link_joint[k + 1][:3, 3]
            across = float(np.linalg.norm(step - axis * (axis @ step)))
            reach[k, c] = across + length + (spread_m[c] if k == last - 1 else 0.0)
            length = float(np.linalg.norm(step)) + length + (spread_m[c] if k == last - 1 else 0.0)
    return reach


# ---------------------------------------------------------------- what is held, as spheres

OVERSHOOT_M = 0.009
"""Spheres around a held part may stand out from its surface by this."""

MOST_SPHERES = 48
"""More spheres than this are not spent on one shape; they stand out further instead."""


def held_spheres(item: SceneObject, held: Held, model: ArmModel) -> Spheres:
    """Enclose a held object in spheres fixed to the arm's last link.

    Raises:
        ConfigError: the object has a plane in it.
    """
    T_link_object = model.chain.T_link_flange @ model.T_flange_tool @ held.T_tool_object
    covers = []
    for kind, size_m, T_object_shape in zip(
        item.kinds, item.size_m, item.T_object_shape, strict=True
    ):
        if kind == PLANE:
            raise ConfigError(f"held {item.name!r}: a plane cannot be held; allowed: solid shapes")
        centre_m, radius_m = cover(kind, size_m)
        T = T_link_object @ T_object_shape
        covers.append((centre_m @ T[:3, :3].T + T[:3, 3], np.full(len(centre_m), radius_m)))
    centre_m = np.concatenate([c for c, _ in covers])
    m = len(centre_m)
    return Spheres(
        link=np.full(m, model.dof, dtype=np.int64),
        centre_m=centre_m,
        radius_m=np.concatenate([r for _, r in covers]),
        group=np.full(m, GROUP_HELD, dtype=np.int64),
        name=tuple(f"{item.name}.{i}" for i in range(m)),
    )


def cover(kind: int, size_m: Array) -> tuple[Array, float]:
    """Equal spheres whose union contains a shape: centres (m, 3) in the shape, and their radius."""
    if kind == SPHERE:
        return np.zeros((1, 3)), float(size_m[0])
    if kind == CAPSULE:
        return _cover_capsule(float(size_m[0]), float(size_m[1]))
    if kind == CYLINDER:
        return _cover_cylinder(float(size_m[0]), float(size_m[1]))
    return _cover_box(size_m)


def _cover_box(half_m: Array) -> tuple[Array, float]:
    """One sphere round each cell of a grid; the longest cell edge is divided until it is tight."""
    counts = np.ones(3, dtype=np.int64)
    while True:
        cell = half_m / counts
        radius = float(np.linalg.norm(cell))
        more = counts + (np.arange(3) == np.argmax(cell))
        if radius - float(cell.min()) <= OVERSHOOT_M or np.prod(more) > MOST_SPHERES:
            break
        counts = more
    axes = [c * (2.0 * np.arange(k) + 1.0 - k) for c, k in zip(cell, counts, strict=True)]
    return np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 3), radius


def _cover_cylinder(radius_m: float, half_m: float) -> tuple[Array, float]:
    """Slices along z, each covered by equal discs; the fewest that are tight, or the tightest."""
    found = []
    for ring in (1, 3, 4, 5, 6, 7, 8, 10, 12):
        disc_m = radius_m * math.sin(math.pi / max(ring, 2))
        disc = np.array(_cover_disc(radius_m, disc_m))
        edge_m = float(np.max(np.linalg.norm(disc, axis=1)))
        for slices in range(1, max(2, MOST_SPHERES // len(disc) + 1)):
            cell_m = half_m / slices
            sphere_m = math.hypot(disc_m, cell_m)
            out_m = max(sphere_m - cell_m, edge_m + sphere_m - radius_m, OVERSHOOT_M)
            found.append((out_m, slices * len(disc), slices, ring, sphere_m, disc))
    _, _, slices, _, sphere_m, disc = min(found, key=lambda f: f[:4])
    z = half_m / slices * (2.0 * np.arange(slices) + 1.0 - slices)
    return np.column_stack([np.tile(disc, (slices, 1)), np.repeat(z, len(disc))]), sphere_m


def _cover_disc(radius_m: float, disc_m: float) -> list[tuple[float, float]]:
    """Centres of equal discs that cover a disc: a ring that covers its edge, then what is left.

    m discs on a ring cover the edge if r sin(pi / m) is not above their radius, best from r
    cos(pi / m); neighbours of the ring meet again farther in, and the rest begins there.
    """
    if radius_m <= disc_m * (1.0 + 1e-9):
        return [(0.0, 0.0)]
    m = math.ceil(math.pi / math.asin(disc_m / radius_m) - 1e-9)
    ring_m, half = radius_m * math.cos(math.pi / m), math.sin(math.pi / m)
    ring = [(ring_m * math.cos(a), ring_m * math.sin(a)) for a in 2.0 * math.pi / m * np.arange(m)]
    within = ring_m * math.cos(math.pi / m)
    within -= math.sqrt(max(disc_m**2 - (ring_m * half) ** 2, 0.0))
    return ring + (_cover_disc(within, disc_m) if within > 1e-9 * radius_m else [])


def _cover_capsule(radius_m: float, half_m: float) -> tuple[Array, float]:
    """Spheres along the axis, close enough that the troughs between them clear the surface."""
    limit = math.sqrt((radius_m + OVERSHOOT_M) ** 2 - radius_m**2)
    count = max(1, min(MOST_SPHERES - 1, math.ceil(half_m / limit))) + 1
    step = half_m / (count - 1)
    z = np.linspace(-half_m, half_m, count)
    return np.column_stack([np.zeros((count, 2)), z]), math.hypot(radius_m, step)
