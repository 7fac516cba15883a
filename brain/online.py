"""A path that is kept up while the world, the arm and the hand move: one answer for each frame.

Who calls says when time is up: `more` is asked before each slice of the search. Live it looks at a
clock; in lockstep it counts (`slices`), so that equal runs give equal answers, bit for bit. When
time is up before there is an answer, the last certified path stays, flagged: it held among the
obstacles of its own frame, and nothing says that it holds among those of this one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from brain.body import Body
from brain.distance import Obstacles
from brain.geometry import Array
from brain.kinematics import tool_pose
from brain.planner import Planner
from brain.types import NS_PER_S

SLICE = 16
"""Iterations between two questions whether there is time: a millisecond at most, mostly half."""
REST_NS, REST_RAD = 3 * NS_PER_S // 2, 0.01
"""A hand rests whose joints stayed this close to one place for so long: the forest is pruned."""
FAST_M_S, LEAD_S = 0.3, 0.2
"""Of a hand faster than this, the place is taken into the forest where it will be so much later."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Answer:
    """What a frame came to.

    `path_rad` (k, n) is certified among the obstacles as seen at `certified_ns`; with `overload`,
    and only then, that is an earlier frame, whose start the arm may have left. None: there is no
    path, and `sentence` says why; with `overload` there never was one since the last answer.
    """

    t_ns: int
    path_rad: Array | None
    certified_ns: int | None
    overload: bool
    sentence: str


def slices(count: int) -> Callable[[], bool]:
    """Make a budget of so many slices."""
    left = count

    def more() -> bool:
        nonlocal left
        left -= 1
        return left >= 0

    return more


class OnlinePlanner:
    """One arm's way to where a hand leads it, among what is seen."""

    def __init__(
        self, body: Body, q_range_rad: tuple[Array, Array], *, seed: int, margin_m: float = 0.01
    ) -> None:
        self._body, self._q_range_rad = body, q_range_rad
        self._seed, self._margin_m = seed, margin_m
        self._planner: Planner | None = None
        self._last: tuple[Array, int] | None = None
        self._t_ns: int | None = None
        self._goal, self._rest_rad = np.zeros(0), np.full(body.model.dof, np.inf)
        self._rest_ns, self._pruned = 0, False

    def frame(
        self,
        t_ns: int,
        near: Obstacles,
        start_rad: Array,
        goals_rad: Sequence[Array] | Array,
        more: Callable[[], bool],
    ) -> Answer:
        """Plan from a start (n,) to any of the goals (g, n), the hand's own first, while `more`.

        Raises:
            ValueError: a time that is not later than the frame's before.
        """
        if self._t_ns is not None and t_ns <= self._t_ns:
            raise ValueError(f"t_ns: {t_ns}, must be later than {self._t_ns}")
        planner = self._planner
        if planner is None:
            planner = self._planner = Planner(
                self._body,
                near,
                start_rad,
                goals_rad,
                self._q_range_rad,
                seed=self._seed,
                margin_m=self._margin_m,
            )
        else:
            planner.change(near, start_rad, goals_rad)
        over = False
        while not over and more():
            over = planner.advance(SLICE)
        answer = self._answer(planner, t_ns, over)
        if not answer.overload:
            self._follow_hand(planner, t_ns, np.reshape(goals_rad, (-1, self._body.model.dof)))
        self._t_ns = t_ns
        return answer

    def _answer(self, planner: Planner, t_ns: int, over: bool) -> Answer:
        path = planner.path()
        if path is not None:
            self._last = path, t_ns
            return Answer(
                t_ns=t_ns, path_rad=path, certified_ns=t_ns, overload=False, sentence="path found"
            )
        why = planner.refusal()
        if over or why is not None:
            self._last = None
            sentence = why.sentence if why is not None else "no way found"
            return Answer(
                t_ns=t_ns, path_rad=None, certified_ns=None, overload=False, sentence=sentence
            )
        last_rad, last_ns = self._last if self._last is not None else (None, None)
        return Answer(
            t_ns=t_ns,
            path_rad=last_rad,
            certified_ns=last_ns,
            overload=True,
            sentence="overload: no answer in time",
        )

    def _follow_hand(self, planner: Planner, t_ns: int, goals: Array) -> None:
        """Prune where the hand rests; grow to where a fast hand is going."""
        if len(goals) == 0 or not np.isfinite(goals[0]).all():
            return
        goal, before = goals[0], self._goal
        self._goal = goal
        if not np.abs(goal - self._rest_rad).max() <= REST_RAD:
            self._rest_rad, self._rest_ns, self._pruned = goal, t_ns, False
        elif not self._pruned and t_ns - self._rest_ns >= REST_NS:
            planner.prune()
            self._pruned = True
        if len(before) == 0 or self._t_ns is None:
            return
        taken_s = (t_ns - self._t_ns) / NS_PER_S
        model = self._body.model
        way_m = np.linalg.norm(tool_pose(model, goal)[:3, 3] - tool_pose(model, before)[:3, 3])
        if way_m >= FAST_M_S * taken_s:
            planner.grow_towards(goal + (goal - before) * (LEAD_S / taken_s))
