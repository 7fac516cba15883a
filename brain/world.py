"""The world as the brain believes it: solid objects, who may touch them, what is held.

An object is one or more shapes that move together. A `World` is a value: every change gives a new
one with the next version. Sizes follow MuJoCo: sphere (r, -, -), capsule and cylinder (r, half
length along z, -), box (half lengths), plane (-, -, -) with its normal along z.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from brain.geometry import Array, frozen
from brain.robot import GROUP_FINGER, GROUP_HELD, GROUPS, IntArray

SPHERE, CAPSULE, CYLINDER, BOX, PLANE = 0, 1, 2, 3, 4
SHAPE_KINDS = ("sphere", "capsule", "cylinder", "box", "plane")

Role = Literal["fixed", "support", "part", "moving"]
BoolArray = npt.NDArray[np.bool_]


class ShapeArrays(NamedTuple):
    """Shapes as kernels take them; `may_touch` (3, n): what is no obstacle to a sphere group."""

    kind: IntArray
    size_m: Array
    T_world_shape: Array
    may_touch: BoolArray


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SceneObject:
    """A named object: its shapes (kind, size, pose in the object) and its pose in the world."""

    name: str
    role: Role
    kinds: tuple[int, ...]
    size_m: Array
    T_object_shape: Array
    T_world_object: Array


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Held:
    """An object in a gripper: `T_tool_object` (4, 4) stays as it is while it is held."""

    arm: str
    name: str
    T_tool_object: Array


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class World:
    """Objects, declared contacts and held parts, with the version that a rehearsal names.

    `contacts` holds (group, object) pairs that may touch, group one of `robot.GROUPS`. `shapes`
    leaves out what is held; `owner` (n,) gives for each of its shapes the index into `objects`.
    """

    version: int
    objects: tuple[SceneObject, ...]
    contacts: frozenset[tuple[str, str]]
    held: tuple[Held, ...]
    shapes: ShapeArrays
    owner: IntArray

    def object(self, name: str) -> SceneObject:
        """Return the object of that name (KeyError otherwise)."""
        for item in self.objects:
            if item.name == name:
                return item
        raise KeyError(name)

    def held_by(self, arm: str) -> Held | None:
        """Return what an arm holds."""
        for item in self.held:
            if item.arm == arm:
                return item
        return None


def default_contacts(objects: tuple[SceneObject, ...]) -> frozenset[tuple[str, str]]:
    """Fingers may touch parts, a held part supports and parts; all else is an obstacle."""
    fingers, held = GROUPS[GROUP_FINGER], GROUPS[GROUP_HELD]
    pairs = {(fingers, o.name) for o in objects if o.role == "part"}
    pairs |= {(held, o.name) for o in objects if o.role in ("part", "support")}
    return frozenset(pairs)


def make_world(
    objects: tuple[SceneObject, ...],
    contacts: frozenset[tuple[str, str]] | None = None,
    held: tuple[Held, ...] = (),
    version: int = 0,
) -> World:
    """Build a world; contacts None means `default_contacts`."""
    contacts = default_contacts(objects) if contacts is None else contacts
    names_held = {h.name for h in held}
    rows = [
        (i, k)
        for i, item in enumerate(objects)
        if item.name not in names_held
        for k in range(len(item.kinds))
    ]
    n = len(rows)
    shapes = ShapeArrays(
        kind=np.array([objects[i].kinds[k] for i, k in rows], dtype=np.int64),
        size_m=np.array([objects[i].size_m[k] for i, k in rows]).reshape(n, 3),
        T_world_shape=np.array(
            [objects[i].T_world_object @ objects[i].T_object_shape[k] for i, k in rows]
        ).reshape(n, 4, 4),
        may_touch=np.array(
            [[(group, objects[i].name) in contacts for i, _ in rows] for group in GROUPS],
            dtype=np.bool_,
        ).reshape(len(GROUPS), n),
    )
    return World(
        version=version,
        objects=objects,
        contacts=contacts,
        held=held,
        shapes=shapes,
        owner=np.array([i for i, _ in rows], dtype=np.int64),
    )


def allowing(world: World, *contacts: tuple[str, str]) -> World:
    """Return the same world in which only these (group, object) pairs may touch."""
    return make_world(world.objects, frozenset(contacts), world.held, world.version)


def move_object(world: World, name: str, T_world_object: Array) -> World:
    """Return the world with one object elsewhere and the next version."""
    objects = tuple(
        replace(o, T_world_object=frozen(T_world_object)) if o.name == name else o
        for o in world.objects
    )
    return make_world(objects, world.contacts, world.held, world.version + 1)


def moved_since(world: World, before: World) -> frozenset[str]:
    """Names of the objects that are not where they were in an earlier world, bit for bit."""
    known = {o.name: o.T_world_object for o in before.objects}
    return frozenset(
        o.name
        for o in world.objects
        if o.name not in known or not np.array_equal(o.T_world_object, known[o.name])
    )


def grasp(world: World, held: Held) -> World:
    """Return the world with an object in a gripper and the next version."""
    world.object(held.name)
    others = tuple(h for h in world.held if h.arm != held.arm and h.name != held.name)
    return make_world(world.objects, world.contacts, (*others, held), world.version + 1)


def release(world: World, arm: str, T_world_object: Array) -> World:
    """Return the world with what an arm holds put down at a pose, and the next version."""
    held = world.held_by(arm)
    if held is None:
        return world
    others = tuple(h for h in world.held if h.arm != arm)
    freed = make_world(world.objects, world.contacts, others, world.version)
    return move_object(freed, held.name, T_world_object)
