"""The smallest change of a stroke that makes it safe, out of a bounded fan, itself certified.

Turns about where the tool is now and shifts that grow along the stroke, smallest first. A change
counts only if the whole changed stroke can be followed and is certified (`planner_edges`) to keep
what `path_verdict` asks of a safe one. The step that is to be cleared is looked at first, then
stretch after stretch from the start; the first that fails ends a candidate.
"""

from __future__ import annotations

import math

import numpy as np

from brain.body import Body, BodyArrays
from brain.distance import Clearance, ObstacleArrays, Obstacles
from brain.geometry import Array, rotvec_to_matrix
from brain.ik_polish import newton
from brain.jit import lean_kernel
from brain.path_verdict import (
    SELF_EXTRA_M,
    TOLERANCE_M,
    TOUCH_M,
    Change,
    Side,
    Unseen,
    first_unseen,
)
from brain.planner_edges import LANES, Lanes, keeps_margin, lanes
from brain.robot import ArmArrays
from brain.stroke_path import Follow, follower, step_to

RAMP_M = 0.10
"""A shift grows over this much of the stroke."""
SHIFTS_M = (0.02, 0.04, 0.08, 0.15)
TURNS_RAD = (math.radians(5), math.radians(10), math.radians(20), math.radians(30))
HALVINGS = 2
ROWS_TRIED = 1200
"""Rows of all candidates together after which the search gives up: it has to end in a frame."""
AGAINST = -0.3
"""A side whose cosine with the contact's normal is below this leads into the obstacle."""
NONE, GAVE_UP = -1, -2


def sides_of(body: Body, drawn: Array, normal: Array | None) -> dict[Side, Array]:
    """Unit vectors (3,) in the base of the sides of a stroke, as seen along it, z up in the world.

    Away is along the contact's normal in the world, left without one.
    """
    R = _R_world_base(body)
    for ahead in (drawn[-1, :3, 3] - drawn[0, :3, 3], drawn[0, :3, 3], np.array((1.0, 0.0, 0.0))):
        forward = R @ ahead
        forward[2] = 0.0
        length = math.sqrt(forward @ forward)
        if length > 1e-3:
            break
    left, up = np.array((-forward[1], forward[0], 0.0)) / length, np.array((0.0, 0.0, 1.0))
    away = left if normal is None else normal
    ways: dict[Side, Array] = {"left": left, "right": -left, "up": up, "down": -up, "away": away}
    return {side: R.T @ to for side, to in ways.items()}


def _R_world_base(body: Body) -> Array:
    """Rotation (3, 3) of the base in the world, which a body has folded into its first joint."""
    folded, bare = body.arrays.arm.T_link_joint[0], body.model.chain.T_link_joint[0]
    return np.asarray(folded[:3, :3] @ bare[:3, :3].T)


def _motion(change: Change, ways: dict[Side, Array]) -> tuple[Array, Array]:
    """A change as a rotation (3, 3) about the first pose's place and a shift (3,) that grows."""
    to = ways[change.side]
    if change.kind == "shift":
        return np.eye(3), change.size * to
    axis = ways["up"] if change.side in ("left", "right") else ways["right"]
    sign = 1.0 if change.side in ("left", "up") else -1.0
    return rotvec_to_matrix(sign * change.size * axis), np.zeros(3)


@lean_kernel
def _move(drawn: Array, i: int, turn_R: Array, shift_m: Array, pose: Array) -> None:
    """Write pose i of a changed stroke."""
    way = 0.0
    for a in range(3):
        way += (drawn[i, a, 3] - drawn[0, a, 3]) ** 2
    share = min(1.0, math.sqrt(way) / RAMP_M)
    for a in range(4):
        for b in range(4):
            pose[a, b] = drawn[i, a, b]
    for a in range(3):
        pose[a, 3] = drawn[0, a, 3] + share * shift_m[a]
        for b in range(3):
            pose[a, 3] += turn_R[a, b] * (drawn[i, b, 3] - drawn[0, b, 3])


def changed(drawn: Array, change: Change, ways: dict[Side, Array]) -> Array:
    """Return the poses with a change, about the first of them; `ways` as `sides_of` gives them."""
    turn_R, shift_m = _motion(change, ways)
    out = np.empty_like(drawn)
    for i in range(len(drawn)):
        _move(drawn, i, turn_R, shift_m, out[i])
    return out


@lean_kernel
def _clears_step(
    arm: ArmArrays,
    body: BodyArrays,
    near: ObstacleArrays,
    drawn: Array,
    turn_R: Array,
    shift_m: Array,
    row: int,
    step_rad: Array,
    probe_rad: Array,
    pose: Array,
    follow: Follow,
    s: Lanes,
    margin_m: float,
) -> bool:
    """Whether a changed stroke is free from `row` to the next, found from the joints as drawn.

    Those are `step_rad` (2, 6), on the branch that the changed stroke will be on too; where that
    cannot be told the answer is yes. `probe_rad` (2, 6) is scratch.
    """
    for i in range(2):
        for k in range(6):
            probe_rad[i, k] = step_rad[i, k]
        _move(drawn, row + i, turn_R, shift_m, pose)
        if not newton(arm, pose, probe_rad[i], follow.J, follow.T_links, follow.T, follow.error):
            return True
    return keeps_margin(body, near, probe_rad, s, margin_m, TOLERANCE_M, SELF_EXTRA_M)[0]


@lean_kernel
def _first_safe(
    arm: ArmArrays,
    body: BodyArrays,
    near: ObstacleArrays,
    drawn: Array,
    turns_R: Array,
    shifts_m: Array,
    first: int,
    rows_left: int,
    row_first: int,
    step_rad: Array,
    path_rad: Array,
    probe_rad: Array,
    pose: Array,
    follow: Follow,
    s: Lanes,
    margin_m: float,
) -> tuple[int, int]:
    """The first candidate from `first` on that is safe, or why there is none; rows still left.

    Row 0 of `path_rad` holds the present joints; the others become those of that candidate.
    """
    for c in range(first, turns_R.shape[0]):
        row, good = 1, True
        if rows_left > 0:
            rows_left -= 2
            good = _clears_step(
                arm, body, near, drawn, turns_R[c], shifts_m[c], row_first, step_rad, probe_rad,
                pose, follow, s, margin_m,
            )  # fmt: skip
        while good and row < drawn.shape[0]:
            if rows_left <= 0:
                return GAVE_UP, 0
            end = min(row + LANES, drawn.shape[0])
            for i in range(row, end):
                _move(drawn, i, turns_R[c], shifts_m[c], pose)
                good = step_to(arm, pose, path_rad, i, follow)[0] == 0
                rows_left -= 1
                if not good:
                    break
            if good:
                stretch = path_rad[row - 1 : end]
                good = keeps_margin(body, near, stretch, s, margin_m, TOLERANCE_M, SELF_EXTRA_M)[0]
            row = end
        if good:
            return c, rows_left
    return NONE, rows_left


class _Search:
    """What the candidates of one stroke have in common."""

    def __init__(
        self,
        body: Body,
        near: Obstacles,
        drawn: Array,
        margin_m: float,
        unseen: Unseen | None,
        place: Clearance,
        path_rad: Array,
        row: float,
    ) -> None:
        self._ways = sides_of(body, drawn, place.normal)
        self._body, self._near, self._drawn, self._unseen = body, near, drawn, unseen
        # Beyond what is asked by the verdict's tolerance, which the verdict may lose again.
        self._margin_m = max(margin_m, SELF_EXTRA_M + 2.0 * TOUCH_M) + 1.001 * TOLERANCE_M
        self._path = np.empty((len(drawn), 6))
        self._path[0] = path_rad[0]
        self._row = min(int(row), len(path_rad) - 2)
        self._step, self._probe = path_rad[self._row : self._row + 2], np.empty((2, 6))
        self._pose, self._follow, self._lanes = np.eye(4), follower(body, path_rad[0]), lanes(body)
        self.rows_left = ROWS_TRIED

    def fan(self) -> list[Change]:
        """All candidates, smallest way first; sides that lead into the obstacle are left out."""
        drawn, away = self._drawn, self._ways["away"]
        lever_m = float(np.linalg.norm(drawn[:, :3, 3] - drawn[0, :3, 3], axis=1).max())
        sides: list[Side] = [
            side for side, to in self._ways.items() if side != "away" and to @ away > AGAINST
        ]
        found = [
            Change(kind="turn", side=side, size=size, moved_m=size * lever_m)
            for size in TURNS_RAD
            for side in sides
        ]
        shifts: list[Side] = [*sides, "away"]
        found += [
            Change(kind="shift", side=side, size=size, moved_m=size)
            for size in SHIFTS_M
            for side in shifts
        ]
        return sorted(found, key=lambda change: change.moved_m)

    def first_safe(self, candidates: list[Change]) -> int:
        """Index of the first candidate that is safe, `NONE` or `GAVE_UP`."""
        motions = [_motion(c, self._ways) for c in candidates]
        turns_R, shifts_m = np.array([R for R, _ in motions]), np.array([m for _, m in motions])
        found = -1
        while True:
            found, self.rows_left = _first_safe(
                self._body.model.arrays,
                self._body.arrays,
                self._near.arrays,
                self._drawn,
                turns_R,
                shifts_m,
                found + 1,
                self.rows_left,
                self._row,
                self._step,
                self._path,
                self._probe,
                self._pose,
                self._follow,
                self._lanes,
                self._margin_m,
            )
            if found < 0 or self._unseen is None:
                return int(found)
            if first_unseen(self._body, self._path, self._unseen) is None:
                return int(found)


def smallest_change(
    body: Body,
    near: Obstacles,
    path_rad: Array,
    drawn: Array,
    margin_m: float,
    unseen: Unseen | None,
    place: Clearance,
    row: float,
) -> tuple[Change | None, bool]:
    """The smallest change of the fan whose stroke is safe, halved towards the next smaller one.

    `drawn` (k, 4, 4) are the poses in the base from the present one on, `path_rad` their joints as
    far as they can be followed; `place` at `row` is what is to be cleared. Answers also whether the
    whole fan was looked at: without a change that is the difference between none and none found.
    """
    search = _Search(body, near, drawn, margin_m, unseen, place, path_rad, row)
    fan = search.fan()
    index = search.first_safe(fan)
    if index < 0:
        return None, index == NONE
    found = fan[index]
    sizes = TURNS_RAD if found.kind == "turn" else SHIFTS_M
    low = max((size for size in sizes if size < found.size), default=0.0)
    for _ in range(HALVINGS):
        half = 0.5 * (low + found.size)
        moved_m = found.moved_m * half / found.size
        smaller = Change(kind=found.kind, side=found.side, size=half, moved_m=moved_m)
        low, found = (low, smaller) if search.first_safe([smaller]) == 0 else (half, found)
    return found, True
