"""The space that a motion sweeps, so that a change of the world ahead can be judged within a tick.

A stream is cut where the load of a hand changes; each arm's spheres are sampled along each run of
rows. What a stream itself picks up is no obstacle from there on: where it goes was rehearsed.
"""

from __future__ import annotations

import math
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from brain.body import Body, BodyArrays, Work, held_spheres, place, pose, work
from brain.cell import CellArm, CellModel
from brain.certify import travel
from brain.geometry import Array
from brain.jit import lean_kernel
from brain.robot import IntArray
from brain.shapes import point_distance
from brain.world import Held, ShapeArrays, World

if TYPE_CHECKING:
    from brain.rehearsal import Stream

STEP_M = 0.005
"""No sphere moves farther than this between two samples, unless one row already does."""


class SweptArrays(NamedTuple):
    """Samples of a motion: sphere centres (s, m, 3), bounding centres (s, c, 3), both in the world.

    `slack_m` (s, c): how far any sphere of a cluster gets from the nearest sample, at most.
    """

    centre_m: Array
    bound_m: Array
    slack_m: Array


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SweptPart:
    """One arm over a run of rows with one load; `row` (s,) says where it was sampled.

    `handled` names what the stream has picked up by then.
    """

    body: Body
    row: IntArray
    arrays: SweptArrays
    handled: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Swept:
    """All space that a stream sweeps."""

    parts: tuple[SweptPart, ...]


def swept(cell: CellModel, world: World, stream: Stream, held: tuple[Held, ...]) -> Swept:
    """Sample what every arm sweeps; `held` is what the hands hold at the first row.

    Raises:
        ValueError: a row is not finite.
        KeyError: the stream handles an object that the world does not have.
    """
    changes = sorted({0, *(e.row for e in stream.events if 0 < e.row < stream.rows)})
    ends = [*changes[1:], stream.rows - 1]  # runs share their last row with the next one's first
    loads = {h.arm: h for h in held}
    handled = frozenset(loads[arm].name for arm in loads)
    parts = []
    for first, last in zip(changes, ends, strict=True):
        for event in stream.events:
            if event.row == first and event.T_tool_object is not None:
                loads[event.arm] = Held(
                    arm=event.arm, name=event.name, T_tool_object=event.T_tool_object
                )
                handled |= {event.name}
            elif event.row == first:
                loads.pop(event.arm, None)
        column = 0
        for arm in cell.arms:
            columns = slice(column, column + arm.model.dof)
            column = columns.stop
            body = _loaded(arm, world, loads.get(arm.name))
            parts.append(sweep(body, stream.q_rad[first : last + 1, columns], first, handled))
    return Swept(parts=tuple(parts))


def _loaded(arm: CellArm, world: World, load: Held | None) -> Body:
    spheres = None if load is None else held_spheres(world.object(load.name), load, arm.model)
    return place(arm.model, arm.T_world_base, spheres, arm.name)


def sweep(
    body: Body, q_rad: Array, first_row: int = 0, handled: frozenset[str] = frozenset()
) -> SweptPart:
    """Sample the space that a body sweeps along q (rows, n).

    `first_row` is the number of the first of these rows in the whole stream.

    Raises:
        ValueError: q is not finite.
    """
    q = np.ascontiguousarray(q_rad)
    if not np.isfinite(q).all():
        raise ValueError("q_rad: only a finite motion sweeps space")
    moved_m = travel(q) @ body.arrays.reach_m
    farthest = np.max(moved_m, axis=1, initial=0.0)
    row = np.zeros(len(q), dtype=np.int64)
    row = np.append(row[: _pick_rows(farthest, STEP_M, row)], len(q) - 1)
    half = 0.5 * np.diff(moved_m[row], axis=0)
    zero = np.zeros((1, moved_m.shape[1]))
    arrays = SweptArrays(
        centre_m=np.empty((len(row), len(body.spheres.name), 3)),
        bound_m=np.empty((len(row), len(body.arrays.link), 3)),
        slack_m=np.maximum(np.concatenate([zero, half]), np.concatenate([half, zero])),
    )
    _pose_rows(body.arrays, q, row, work(body), arrays)
    return SweptPart(body=body, row=row + first_row, arrays=arrays, handled=handled)


@lean_kernel
def _pick_rows(farthest_m: Array, step_m: float, row: IntArray) -> int:
    """Write the rows to sample but the last, as far apart as the step allows; returns how many."""
    count, last = 1, 0
    for r in range(1, farthest_m.shape[0] - 1):
        if farthest_m[r + 1] - farthest_m[last] > step_m:
            row[count] = last = r
            count += 1
    return count


@lean_kernel
def _pose_rows(body: BodyArrays, q_rad: Array, row: IntArray, at: Work, out: SweptArrays) -> None:
    for s in range(row.shape[0]):
        pose(body, q_rad[row[s]], at)
        for i in range(at.centre_m.shape[0]):
            for a in range(3):
                out.centre_m[s, i, a] = at.centre_m[i, a]
        for c in range(at.bound_m.shape[0]):
            for a in range(3):
                out.bound_m[s, c, a] = at.bound_m[c, a]


@lean_kernel
def swept_gap(
    body: BodyArrays,
    space: SweptArrays,
    shapes: ShapeArrays,
    only: IntArray,
    first: int,
    below_m: float,
) -> tuple[float, int, int, int]:
    """Lower bound in m on the clearance of swept space to some shapes, from sample `first` on.

    Answers it with sample, sphere and shape, or `below_m`, -1, -1, -1 when nothing is nearer.
    """
    best, sample, sphere, against = below_m, -1, -1, -1
    for s in range(first, space.centre_m.shape[0]):
        for c in range(body.link.shape[0]):
            if body.link[c] == 0:
                continue
            b, slack = space.bound_m[s, c], space.slack_m[s, c]
            for j in range(only.shape[0]):
                shape = only[j]
                if shapes.may_touch[body.group[c], shape]:
                    continue
                d = point_distance(shapes, shape, b[0], b[1], b[2]) - body.bound[c, 3] - slack
                if d >= best:
                    continue
                for i in range(body.first[c], body.first[c + 1]):
                    p = space.centre_m[s, i]
                    d = point_distance(shapes, shape, p[0], p[1], p[2])
                    d -= body.arm.sphere_radius_m[i] + slack
                    if d < best or d != d:
                        best, sample, sphere, against = d, s, i, shape
    return best, sample, sphere, against


@dataclass(frozen=True, slots=True, kw_only=True)
class Ahead:
    """The narrowest place ahead: a lower bound on the clearance, in which row, of what, to what."""

    clearance_m: float
    row: int
    sphere: str
    against: str


def clearance_ahead(
    path: Swept,
    world: World,
    names: AbstractSet[str] | None = None,
    from_row: int = 0,
    below_m: float = math.inf,
) -> Ahead:
    """Clearance of what is still ahead to some objects of a world by name, None for all."""
    best = Ahead(clearance_m=below_m, row=-1, sphere="", against="")
    owners = [world.objects[i].name for i in world.owner]
    for part in path.parts:
        if part.row[-1] < from_row:
            continue
        only = [
            s
            for s, name in enumerate(owners)
            if name not in part.handled and (names is None or name in names)
        ]
        first = max(int(np.searchsorted(part.row, from_row, side="right")) - 1, 0)
        d, sample, sphere, shape = swept_gap(
            part.body.arrays,
            part.arrays,
            world.shapes,
            np.array(only, dtype=np.int64),
            first,
            best.clearance_m,
        )
        if sample >= 0:
            best = Ahead(
                clearance_m=d,
                row=int(part.row[sample]),
                sphere=f"{part.body.name}:{part.body.spheres.name[sphere]}",
                against=owners[shape],
            )
    return best


def blocked(
    path: Swept, world: World, names: AbstractSet[str] | None, from_row: int, margin_m: float
) -> str | None:
    """Say what is nearer than a margin to the way from a row on, None if it is free."""
    found = clearance_ahead(path, world, names, from_row, margin_m)
    if found.row < 0:
        return None
    nearer = f"{1000 * found.clearance_m:.1f} mm, {1000 * margin_m:.1f} needed"
    return f"{found.against} is in the way of {found.sphere} ahead ({nearer})"
