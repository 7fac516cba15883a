"""How near each arm of a cell is to everything, at any joints.

The derived arrays are kept per world.

Other arms stand where they were measured, carried on with their measured speed to the time of the
question.
"""

from __future__ import annotations

import numpy as np

from brain.body import Body, Work, held_spheres, place, pose, work
from brain.cell import CellArm, CellModel
from brain.distance import (
    Clearance,
    Obstacles,
    arm_clearance,
    distances,
    nearest,
    obstacles,
    surroundings,
)
from brain.geometry import Array
from brain.types import ArmState
from brain.world import World

SELF_EXTRA_M = 0.1
FAR_M = 10.0
"""Distances beyond this are not told apart."""


def bodies(cell: CellModel, world: World) -> tuple[Body, ...]:
    """Place every arm in the world, with what it holds."""
    return tuple(body_of(arm, world) for arm in cell.arms)


def body_of(arm: CellArm, world: World) -> Body:
    """Place an arm in the world, with what it holds."""
    held = world.held_by(arm.name)
    spheres = None if held is None else held_spheres(world.object(held.name), held, arm.model)
    return place(arm.model, arm.T_world_base, spheres, arm.name)


class Proximity:
    """Distances for one cell; the same question always gets the same answer."""

    def __init__(self, cell: CellModel) -> None:
        """Prepare for a cell."""
        self._cell = cell
        self._world: World | None = None
        self._bodies: tuple[Body, ...] = ()
        self._works: tuple[Work, ...] = ()
        self._around: tuple[Obstacles, ...] = ()

    def placed(
        self, states: tuple[ArmState | None, ...], t_ns: int, world: World, index: int
    ) -> tuple[Body, Obstacles]:
        """One arm where it stands, and what it must keep clear of, until the next question."""
        near = self._update(states, t_ns, world, index)
        return self._bodies[index], near

    def distance(
        self, states: tuple[ArmState | None, ...], t_ns: int, world: World, index: int, q_rad: Array
    ) -> float:
        """Signed distance in m of one arm at q (n,) to all it must not touch; NaN if not finite."""
        near = self._update(states, t_ns, world, index)
        body = self._bodies[index]
        return float(nearest(body.arrays, near.arrays, q_rad, self._works[index], FAR_M, 0.0)[0])

    def around(
        self, states: tuple[ArmState | None, ...], t_ns: int, world: World, index: int, q_rad: Array
    ) -> float:
        """Distance in m to what is around, without the arm itself: what the speed falls with."""
        near = self._update(states, t_ns, world, index)
        body = self._bodies[index]
        return float(surroundings(body.arrays, near.arrays, q_rad, self._works[index], FAR_M))

    def both(
        self, states: tuple[ArmState | None, ...], t_ns: int, world: World, index: int, q_rad: Array
    ) -> tuple[float, float]:
        """Answers of `distance` and `around` to the same question."""
        near = self._update(states, t_ns, world, index)
        body = self._bodies[index]
        return distances(body.arrays, near.arrays, q_rad, self._works[index], FAR_M)

    def nearest(
        self, states: tuple[ArmState | None, ...], t_ns: int, world: World, index: int, q_rad: Array
    ) -> Clearance:
        """Return the place that an operator should know of, of one arm at q (n,), with names.

        Its own links are near each other in every pose: they count as `SELF_EXTRA_M` farther away.
        """
        near, body = self._update(states, t_ns, world, index), self._bodies[index]
        return arm_clearance(body, near, q_rad, self._works[index], FAR_M, SELF_EXTRA_M)

    def _update(
        self, states: tuple[ArmState | None, ...], t_ns: int, world: World, index: int
    ) -> Obstacles:
        if world is not self._world:
            self._rebuild(world)
        near = self._around[index]
        others = near.arrays.others
        sphere, cluster = 0, 0
        for i, body in enumerate(self._bodies):
            if i == index:
                continue
            at, state = self._works[i], states[i]
            spheres = slice(sphere, sphere + len(at.centre_m))
            clusters = slice(cluster, cluster + len(at.bound_m))
            sphere, cluster = spheres.stop, clusters.stop
            if state is not None and pose(body.arrays, _now(state, t_ns), at):
                others.centre_m[spheres] = at.centre_m
                others.bound[clusters, :3] = at.bound_m
            else:  # an arm that is nowhere could be anywhere
                others.centre_m[spheres] = np.nan
                others.bound[clusters, :3] = np.nan
        return near

    def _rebuild(self, world: World) -> None:
        """Derive what a world needs; an arm whose hand holds what it held is as it was."""
        before, arms = self._world, self._cell.arms
        if before is None:
            self._bodies = bodies(self._cell, world)
        else:
            self._bodies = tuple(
                body if world.held_by(arm.name) is before.held_by(arm.name) else body_of(arm, world)
                for arm, body in zip(arms, self._bodies, strict=True)
            )
        self._works = tuple(work(body) for body in self._bodies)
        placed = list(zip(self._bodies, (arm.home_q_rad for arm in arms), strict=True))
        self._around = tuple(
            obstacles(world, placed[:i] + placed[i + 1 :]) for i in range(len(arms))
        )
        self._world = world


def _now(state: ArmState, t_ns: int) -> Array:
    return state.q_rad + state.dq_rad_s * ((t_ns - state.t_ns) * 1e-9)
