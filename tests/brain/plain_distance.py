"""Plain reference for distances, and a UR5e made of spheres with scenes to move it in."""

from __future__ import annotations

import itertools
import math

import numpy as np

from brain.geometry import Array, frozen, transform
from brain.robot import GROUP_ARM, GROUP_FINGER, ArmModel, Spheres, arm_arrays
from brain.world import BOX, CAPSULE, CYLINDER, SPHERE, Role, SceneObject, World, make_world
from tests.brain.arms import ur5e
from tests.values import replace


def shape_distance(kind: int, size_m: Array, T_world_shape: Array, p: Array) -> float:
    """Signed distance of a point to a shape, written for reading."""
    x = np.linalg.inv(T_world_shape)[:3] @ np.append(p, 1.0)
    if kind == SPHERE:
        return float(np.linalg.norm(x) - size_m[0])
    if kind == CAPSULE:
        on_axis = np.array([0.0, 0.0, np.clip(x[2], -size_m[1], size_m[1])])
        return float(np.linalg.norm(x - on_axis) - size_m[0])
    if kind == CYLINDER:
        out = np.array([np.hypot(x[0], x[1]) - size_m[0], abs(x[2]) - size_m[1]])
    elif kind == BOX:
        out = np.abs(x) - size_m
    else:
        return float(x[2])
    return float(np.linalg.norm(np.maximum(out, 0.0)) + min(out.max(), 0.0))


def link_frames(model: ArmModel, T_world_base: Array, q_rad: Array) -> list[Array]:
    """World frames of base and links, by plain matrix products."""
    frames = [T_world_base]
    for T, axis, q in zip(model.chain.T_link_joint, model.chain.axis, q_rad, strict=True):
        K = np.array([[0, -axis[2], axis[1]], [axis[2], 0, -axis[0]], [-axis[1], axis[0], 0]])
        R = np.eye(3) + math.sin(q) * K + (1.0 - math.cos(q)) * K @ K
        frames.append(frames[-1] @ T @ transform(rotation=R))
    return frames


def sphere_centres(model: ArmModel, spheres: Spheres, T_world_base: Array, q_rad: Array) -> Array:
    """World centres (m, 3) of spheres fixed to an arm's links."""
    frames = link_frames(model, T_world_base, q_rad)
    return np.array(
        [
            (frames[link] @ np.append(c, 1.0))[:3]
            for link, c in zip(spheres.link, spheres.centre_m, strict=True)
        ]
    )


def arm_distance(
    model: ArmModel,
    spheres: Spheres,
    self_pairs: Array,
    world: World,
    T_world_base: Array,
    q_rad: Array,
) -> float:
    """Smallest signed distance of an arm to the world and to itself: every pair, no pruning."""
    centre = sphere_centres(model, spheres, T_world_base, q_rad)
    shapes = world.shapes
    found = [
        shape_distance(shapes.kind[s], shapes.size_m[s], shapes.T_world_shape[s], centre[i])
        - spheres.radius_m[i]
        for i in range(len(centre))
        for s in range(len(shapes.kind))
        if spheres.link[i] > 0 and not shapes.may_touch[spheres.group[i], s]
    ]
    found += [
        float(np.linalg.norm(centre[i] - centre[j])) - spheres.radius_m[i] - spheres.radius_m[j]
        for i, j in self_pairs
    ]
    return min(found, default=math.inf)


def _row(a: tuple[float, ...], b: tuple[float, ...], radius: float, gap: float) -> list[Array]:
    a_m, b_m = np.array(a), np.array(b)
    count = max(2, math.ceil(float(np.linalg.norm(b_m - a_m)) / gap) + 1)
    return [np.append(a_m + (b_m - a_m) * t, radius) for t in np.linspace(0.0, 1.0, count)]


def ur5e_with_spheres() -> ArmModel:
    """A UR5e with a two-finger gripper, as rows of spheres along its tubes (about 60)."""
    # The upper arm's offset 0.138 m: UniversalRobots/Universal_Robots_ROS2_Description.
    rows = {
        (0, "base"): _row((0, 0, 0.03), (0, 0, 0.06), 0.085, 0.05),
        (1, "shoulder"): _row((0, 0, 0.13), (0, 0, 0.17), 0.075, 0.05)
        + _row((0, -0.03, 0.1625), (0, -0.10, 0.1625), 0.07, 0.05),
        (2, "upper_arm"): _row((0, 0, 0.138), (-0.425, 0, 0.138), 0.065, 0.05),
        (3, "forearm"): _row((0, 0, 0.03), (-0.3922, 0, 0.03), 0.055, 0.045),
        (4, "wrist_1"): _row((0, 0, 0.06), (0, 0, 0.13), 0.05, 0.04),
        (5, "wrist_2"): _row((0, 0, 0.03), (0, 0, 0.10), 0.05, 0.04),
        (6, "wrist_3"): _row((0, 0, 0.03), (0, 0, 0.08), 0.045, 0.04),
        (6, "hand"): _row((0, 0, 0.12), (0, 0, 0.19), 0.05, 0.025),
        (6, "left_finger"): _row((0.035, 0, 0.225), (0.035, 0, 0.25), 0.016, 0.012),
        (6, "right_finger"): _row((-0.035, 0, 0.225), (-0.035, 0, 0.25), 0.016, 0.012),
    }
    link, values, names = [], [], []
    for (at, name), row in rows.items():
        link += [at] * len(row)
        values += row
        names += [f"{name}.{i}" for i in range(len(row))]
    table = np.array(values)
    finger = np.array(["finger" in name for name in names])
    spheres = Spheres(
        link=np.array(link, dtype=np.int64),
        centre_m=frozen(table[:, :3]),
        radius_m=frozen(table[:, 3]),
        group=np.where(finger, GROUP_FINGER, GROUP_ARM).astype(np.int64),
        name=tuple(names),
    )
    pairs = np.array(
        [
            (i, j)
            for i, j in itertools.combinations(range(len(names)), 2)
            if link[j] - link[i] >= 2 and (link[i], link[j]) not in {(0, 2), (3, 5), (4, 6)}
        ],
        dtype=np.int64,
    )
    model = ur5e(transform((0.0, 0.0, 0.15)))
    return replace(
        model,
        spheres=spheres,
        self_pairs=pairs,
        arrays=arm_arrays(model.chain, model.T_flange_tool, spheres, pairs),
    )


def solid(
    name: str, kind: int, size_m: tuple[float, ...], T_world_object: Array, role: Role = "fixed"
) -> SceneObject:
    """An object of one shape."""
    size = np.zeros(3)
    size[: len(size_m)] = size_m
    return SceneObject(
        name=name,
        role=role,
        kinds=(kind,),
        size_m=frozen(size[None]),
        T_object_shape=frozen(np.eye(4)[None]),
        T_world_object=frozen(T_world_object),
    )


def box(
    name: str, centre: tuple[float, ...], half: tuple[float, ...], role: Role = "fixed"
) -> SceneObject:
    """An upright box."""
    return solid(name, BOX, half, transform(centre), role)


def random_world(rng: np.random.Generator, count: int) -> World:
    """Shapes of all kinds anywhere around the arm."""
    objects = []
    for i in range(count):
        rotation = np.linalg.qr(rng.normal(size=(3, 3)))[0]
        rotation *= np.sign(np.linalg.det(rotation))
        T = transform(rng.uniform(-1.0, 1.0, 3), rotation)
        objects.append(solid(f"object {i}", i % 4, tuple(rng.uniform(0.02, 0.2, 3)), T))
    return make_world(tuple(objects))


TABLE = box("table", (0.35, 0.0, -0.03), (0.6, 0.9, 0.03), "support")

# name: objects, start joints, goal joints; start and goals keep more than 12 mm from everything.
SCENES: dict[str, tuple[tuple[SceneObject, ...], list[float], list[list[float]]]] = {
    "table": (
        (TABLE, box("wall", (0.45, 0.0, 0.17), (0.2, 0.02, 0.17))),
        [2.3726, -1.4105, 1.9829, -2.1432, -1.5708, 2.3726],
        [[3.3868, -1.4105, 1.9829, -2.1432, -1.5708, 3.3868]],
    ),
    "shelf": (
        (
            TABLE,
            box("bottom", (0.67, 0.0, 0.25), (0.15, 0.3, 0.01)),
            box("top", (0.67, 0.0, 0.60), (0.15, 0.3, 0.01)),
            box("left", (0.67, 0.3, 0.42), (0.15, 0.01, 0.18)),
            box("right", (0.67, -0.3, 0.42), (0.15, 0.01, 0.18)),
            box("back", (0.83, 0.0, 0.42), (0.01, 0.3, 0.18)),
        ),
        [1.9958, -1.371, 1.7073, -1.9071, -1.5708, 1.9958],
        [
            [2.9235, -1.6085, 1.7815, -0.173, 1.3527, -1.5708],
            [0.4729, -1.7527, -2.1143, 0.7254, 1.0979, 1.5708],
        ],
    ),
    "bin": (
        (
            TABLE,
            box("north", (0.61, 0.35, 0.11), (0.01, 0.17, 0.11)),
            box("south", (0.29, 0.35, 0.11), (0.01, 0.17, 0.11)),
            box("east", (0.45, 0.51, 0.11), (0.17, 0.01, 0.11)),
            box("west", (0.45, 0.19, 0.11), (0.17, 0.01, 0.11)),
        ),
        [2.3046, -1.3252, 1.9367, -2.1823, -1.5708, 2.3046],
        [[3.5666, -1.2352, 1.8751, -2.2107, -1.5708, 3.5666]],
    ),
    "gap": (
        (
            TABLE,
            box("left", (0.5, 0.41, 0.4), (0.15, 0.2, 0.4)),
            box("right", (0.5, -0.41, 0.4), (0.15, 0.2, 0.4)),
        ),
        [1.4961, -1.6895, 1.651, -1.5323, -1.5708, 1.4961],
        [
            [2.7735, -1.4947, 2.1403, 2.496, -1.2027, 1.5708],
            [2.7735, -1.6769, 1.7673, -0.0904, 1.2027, -1.5708],
        ],
    ),
}


def scene(name: str) -> tuple[World, Array, Array]:
    """One of the scenes: world, start (6,), goals (g, 6)."""
    objects, start, goals = SCENES[name]
    return make_world(objects), np.array(start), np.array(goals)


def q_range(model: ArmModel) -> tuple[Array, Array]:
    """Joint range a little inside the maker's."""
    return model.limits.q_min_rad + 0.05, model.limits.q_max_rad - 0.05
