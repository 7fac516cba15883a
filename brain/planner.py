"""Ways through joint space: two trees that grow towards each other, shortened, certified.

Every edge is certified when it is made (see `certify`), so a plan keeps its margin between
samples too. `Planner.advance` does a number of iterations, each about one edge, and may be called
again; the same seed and the same total give the same plan, bit for bit, however it is sliced.
When obstacles, start or goals change, `Planner.change` keeps what was found: edges are certified
again against what came into the way, and the search goes on with those that hold.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from brain.body import Body, BodyArrays, work
from brain.certify import Certificate, certify
from brain.changes import added, common
from brain.distance import Clearance, ObstacleArrays, Obstacles, arm_clearance, free
from brain.forest import add_node, plant, prune, transplant
from brain.geometry import Array, frozen
from brain.jit import lean_kernel
from brain.planner_edges import Lanes, keeps_margin, lanes
from brain.robot import IntArray
from brain.search import (
    ADOPT,
    AT,
    BRIDGE,
    CONNECT,
    DONE,
    GROW,
    HIDDEN,
    NODES,
    REPAIR,
    Search,
    Task,
    new_search,
    propose_edge,
    separation,
)
from brain.singular import NO_MASK, Mask, is_masked
from brain.trees import RANGE_RAD, propose, settle

WINDOW_RAD = math.pi / 2
"""Samples are drawn this far beyond the hull of start and goals, inside the joint limits."""

TOLERANCE_M = 0.001
"""Start, goal and samples keep this much more than the margin, so that certificates can close."""

KEPT = 512
"""Nodes of an earlier search that are kept at most, so that a repair ends in time."""


@lean_kernel
def advance(
    body: BodyArrays,
    near: ObstacleArrays,
    came: ObstacleArrays,
    task: Task,
    search: Search,
    mask: Mask,
    scratch: Lanes,
    margin_m: float,
    self_extra_m: float,
    iterations: int,
    first: bool,
) -> tuple[int, int]:
    """Do some iterations, each of one motion at most; with `first` only until there is a path.

    A repair only looks at what `came`: beside all else an edge is certified already. Answers how
    many iterations were done until the search was over, and how many configurations were looked at.
    """
    looks = 0
    for done in range(iterations):
        if search.counter[AT.phase] == DONE or (first and search.counter[AT.best] > 0):
            return done, looks
        repairs = search.counter[AT.phase] == REPAIR
        if propose(task, search):
            edge, tolerance_m = search.edge_rad, TOLERANCE_M
            growing = search.counter[AT.phase] == GROW
            if growing and is_masked(mask, edge[1], search.random):
                continue
            if repairs:
                kept, looked = keeps_margin(
                    body, came, edge, scratch, margin_m, tolerance_m, math.inf
                )
            else:
                kept, looked = keeps_margin(
                    body, near, edge, scratch, margin_m, tolerance_m, self_extra_m
                )
            looks += looked
            settle(task, search, kept)
    return iterations, looks


@lean_kernel
def grow(
    body: BodyArrays,
    near: ObstacleArrays,
    task: Task,
    search: Search,
    scratch: Lanes,
    margin_m: float,
    self_extra_m: float,
    q_rad: Array,
) -> bool:
    """Hang an edge on the goal nearest to q (n,), as far there as it may reach, if it holds."""
    far, at = math.inf, 0
    for g in range(task.goal_rad.shape[0]):
        d = separation(task.goal_rad[g], q_rad, task.weight)
        if d < far:
            far, at = d, g
    if not 0.0 < far < math.inf or search.counter[AT.size] >= NODES - 1:
        return False
    propose_edge(search, task.goal_rad[at], q_rad, RANGE_RAD / far)
    edge = search.edge_rad
    if not keeps_margin(body, near, edge, scratch, margin_m, TOLERANCE_M, self_extra_m)[0]:
        return False
    add_node(search, 1 + at)
    return True


Reason = Literal["start", "goal", "limits", "not finite", "not found"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Plan:
    """A polyline (k, n) in joint space that keeps the margin, with its certificate.

    `cost` is its length in the planner's metric; `goal` says which of the goals it reaches.
    """

    path_rad: Array
    cost: float
    goal: int
    certificate: Certificate
    iterations: int
    looks: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NoPlan:
    """Why there is none; `clearance` is what is too near at the start or at the best goal."""

    reason: Reason
    sentence: str
    clearance: Clearance | None = None


def joint_weights(body: Body) -> Array:
    """Weight (n,) of each joint in the metric: how far it can swing the tool, the longest one 1.

    Joints that swing the tool little still cost a quarter: their turning takes time too.
    """
    swing = np.max(body.arrays.reach_m, axis=1, initial=0.0)
    return np.asarray(np.maximum(swing / max(float(swing.max(initial=0.0)), 1e-9), 0.25))


def goal_wraps(
    branches_rad: Array, near_rad: Array, q_range_rad: tuple[Array, Array], most: int = 16
) -> Array:
    """List the joints (g, n) that equal one of the branches (b, n) up to full turns, nearest first.

    Inside the joint range only; per joint the turn nearest to `near_rad` (n,) and the one beyond on
    the other side.
    """
    turn = 2.0 * math.pi
    found = []
    for branch in np.reshape(branches_rad, (-1, len(near_rad))):
        nearest = branch + turn * np.round((near_rad - branch) / turn)
        other = nearest - np.where(nearest > near_rad, turn, -turn)
        low, high = q_range_rad
        choices = [
            [v for v in pair if lo <= v <= hi]
            for pair, lo, hi in zip(zip(nearest, other, strict=True), low, high, strict=True)
        ]
        found += list(itertools.product(*choices))
    goals = np.array(found, dtype=np.float64).reshape(-1, len(near_rad))
    order = np.argsort(np.linalg.norm(goals - near_rad, axis=1), kind="stable")
    return goals[order[:most]]


class Planner:
    """A way for one arm: `advance` until it answers true, or as long as there is time."""

    def __init__(
        self,
        body: Body,
        near: Obstacles,
        start_rad: Array,
        goals_rad: Sequence[Array] | Array,
        q_range_rad: tuple[Array, Array],
        *,
        seed: int,
        margin_m: float = 0.01,
        self_margin_m: float = 0.002,
        weight: Array | None = None,
        mask: Mask = NO_MASK,
    ) -> None:
        """Ask for the way from a start (n,) to any of the goals (g, n) inside a joint range.

        Obstacles stay where they are until `change`. The arm keeps `margin_m` from them and
        `self_margin_m` from itself. Trees rarely grow into singular regions that `mask` names.
        """
        self._body, self._near, self._mask = body, near, mask
        self._q_range_rad = q_range_rad
        self._margin_m, self._self_margin_m = margin_m, self_margin_m
        self._weight = joint_weights(body) if weight is None else np.array(weight, dtype=np.float64)
        self._search = new_search(body.model.dof, seed)
        self._spare: Search | None = None
        self._place = np.zeros(NODES, dtype=np.int64)
        self._lanes, self._work = lanes(body), work(body)
        # What every edge is certified against, and what came since.
        self._held = self._came = near.arrays
        self._start, self._goals = np.zeros(0), np.zeros((0, body.model.dof))
        self._task: Task | None = None
        self._refused: NoPlan | None = None
        self._iterations = self._looks = 0
        self._ask(start_rad, goals_rad)

    def change(
        self,
        near: Obstacles,
        start_rad: Array | None = None,
        goals_rad: Sequence[Array] | Array | None = None,
    ) -> None:
        """Go on among other obstacles, from another start or to other goals; None: as before.

        There is no path until one is certified again. What was found is kept: the next iterations
        certify its edges against what came and drop those that fail.
        """
        counter = self._search.counter
        if self._refused is None:
            if counter[AT.phase] == REPAIR or counter[AT.trees + HIDDEN] > 0:
                # Some edges are still those of an earlier world, others may be of this one.
                self._held = common(self._held, self._near.arrays)
            else:
                self._held = self._near.arrays
        self._near = near
        self._ask(
            self._start if start_rad is None else start_rad,
            self._goals if goals_rad is None else goals_rad,
        )
        self._iterations = self._looks = 0
        if self._task is None:
            return
        old = self._search
        if self._spare is None:
            self._spare = new_search(self._body.model.dof, 0)
        new = old._replace(
            q_rad=self._spare.q_rad, parent=self._spare.parent, tree=self._spare.tree
        )
        transplant(self._task, old, new, self._place, KEPT)
        self._spare, self._search = old, new
        counter[: AT.size] = 0  # old and new share all but the nodes
        counter[AT.phase], counter[AT.checked] = REPAIR, 0
        new.cost[0] = math.inf
        self._came = added(self._held, near.arrays)

    def _ask(self, start_rad: Array, goals_rad: Sequence[Array] | Array) -> None:
        goals = np.array(goals_rad, dtype=np.float64).reshape(-1, self._body.model.dof)
        start, q_range_rad = np.array(start_rad, dtype=np.float64), self._q_range_rad
        self._start, self._goals, self._task, self._refused = start, goals, None, None
        found = self._usable(start, goals, q_range_rad)
        if isinstance(found, NoPlan):
            self._refused = found
            return
        far = np.linalg.norm((goals[found] - start) * self._weight, axis=1)
        self._order = found[np.argsort(far, kind="stable")]
        hull = np.concatenate([start[None], goals[found]])
        self._task = Task(
            start_rad=start,
            goal_rad=np.ascontiguousarray(goals[self._order]),
            lower_rad=np.maximum(q_range_rad[0], hull.min(axis=0) - WINDOW_RAD),
            upper_rad=np.minimum(q_range_rad[1], hull.max(axis=0) + WINDOW_RAD),
            weight=self._weight,
        )

    def advance(self, iterations: int, *, first: bool = False) -> bool:
        """Do at most so many iterations; true when there is nothing left to do.

        With `first` there is nothing left to do once there is a path.
        """
        if self._task is None:
            return True
        done, looks = advance(
            self._body.arrays,
            self._near.arrays,
            self._came,
            self._task,
            self._search,
            self._mask,
            self._lanes,
            self._margin_m,
            self._margin_m - self._self_margin_m,
            iterations,
            first,
        )
        self._iterations += done
        self._looks += looks
        return done < iterations

    def prune(self) -> None:
        """Drop what cannot make the path shorter any more; nothing during a repair."""
        phase = self._search.counter[AT.phase]
        if self._task is None or phase == REPAIR:
            return
        prune(self._task, self._search, self._place)
        if phase in (BRIDGE, ADOPT, CONNECT):  # these were about nodes by their numbers
            self._search.counter[AT.phase] = GROW

    def grow_towards(self, q_rad: Array) -> bool:
        """Hang one certified edge on a goal, towards q (n,); false where that fails."""
        if self._task is None or self._search.counter[AT.phase] == REPAIR:
            return False
        if self._search.counter[AT.size] == 0:
            plant(self._task, self._search)
        return bool(
            grow(
                self._body.arrays,
                self._near.arrays,
                self._task,
                self._search,
                self._lanes,
                self._margin_m,
                self._margin_m - self._self_margin_m,
                np.clip(q_rad, *self._q_range_rad),
            )
        )

    def path(self) -> Array | None:
        """Return the best path (k, n) so far, each motion certified to keep the margins, or None.

        `result` says how near it comes too, which takes longer.
        """
        if self._task is None or self._search.counter[AT.best] == 0:
            return None
        return frozen(self._search.best_rad[: self._search.counter[AT.best]])

    def refusal(self) -> NoPlan | None:
        """Why the question itself cannot be answered: start, goals or limits; None if it can."""
        return self._refused

    def result(self) -> Plan | NoPlan:
        """Return the best plan so far, or why there is none."""
        if self._task is None:
            assert self._refused is not None
            return self._refused
        path = self.path()
        if path is None:
            sentence = f"no way found in {self._iterations} iterations"
            return NoPlan(reason="not found", sentence=sentence)
        at_goal = np.flatnonzero((self._task.goal_rad == path[-1]).all(axis=1))[0]
        return Plan(
            path_rad=path,
            cost=float(self._search.cost[0]),
            goal=int(self._order[at_goal]),
            certificate=certify(self._body, self._near, path, TOLERANCE_M),
            iterations=self._iterations,
            looks=self._looks,
        )

    def _usable(
        self, start: Array, goals: Array, q_range_rad: tuple[Array, Array]
    ) -> IntArray | NoPlan:
        """Return which goals can be stood at, or why start or all goals cannot."""
        if not np.isfinite(start).all() or not np.isfinite(goals).all():
            return NoPlan(reason="not finite", sentence="start or goal is not finite")
        reason = self._outside(start, q_range_rad)
        if reason is not None:
            return NoPlan(reason="limits", sentence=f"start: {reason}")
        near = self._too_near(start)
        if near is not None:
            return NoPlan(reason="start", sentence=f"start: {near.sentence()}", clearance=near)
        outside = [self._outside(goal, q_range_rad) for goal in goals]
        inside = [g for g, reason in enumerate(outside) if reason is None]
        if not inside:
            sentence = f"goal: {outside[0]}" if outside else "there is no goal"
            return NoPlan(reason="limits", sentence=sentence)
        blocked = {g: self._too_near(goals[g]) for g in inside}
        usable = [g for g, what in blocked.items() if what is None]
        if usable:
            return np.array(usable, dtype=np.int64)
        best = max((c for c in blocked.values() if c is not None), key=lambda c: c.distance_m)
        return NoPlan(reason="goal", sentence=f"goal: {best.sentence()}", clearance=best)

    def _too_near(self, q_rad: Array) -> Clearance | None:
        """Return what is nearer than the margins at q, None if nothing is."""
        at, near, own_m = self._work, self._near.arrays, self._self_margin_m + TOLERANCE_M
        if free(self._body.arrays, near, q_rad, at, self._margin_m + TOLERANCE_M, own_m):
            return None
        extra_m = self._margin_m - self._self_margin_m
        found = arm_clearance(self._body, self._near, q_rad, at, self_extra_m=extra_m)
        needed = self._self_margin_m if found.against.startswith("self:") else self._margin_m
        return None if found.distance_m >= needed + TOLERANCE_M else found

    def _outside(self, q_rad: Array, q_range_rad: tuple[Array, Array]) -> str | None:
        outside = (q_rad < q_range_rad[0]) | (q_rad > q_range_rad[1])
        if not outside.any():
            return None
        k = int(np.argmax(outside))
        low, high = q_range_rad[0][k], q_range_rad[1][k]
        name = self._body.model.chain.joint_names[k]
        return f"{name} at {q_rad[k]:.3f} rad, allowed {low:.3f} to {high:.3f}"


def plan(
    body: Body,
    near: Obstacles,
    start_rad: Array,
    goals_rad: Sequence[Array] | Array,
    q_range_rad: tuple[Array, Array],
    *,
    seed: int,
    iterations: int = 4000,
    margin_m: float = 0.01,
    self_margin_m: float = 0.002,
) -> Plan | NoPlan:
    """Plan in one go (see `Planner`)."""
    planner = Planner(
        body,
        near,
        start_rad,
        goals_rad,
        q_range_rad,
        seed=seed,
        margin_m=margin_m,
        self_margin_m=self_margin_m,
    )
    planner.advance(iterations)
    return planner.result()
