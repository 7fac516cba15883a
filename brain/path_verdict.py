"""The verdict for a way in joint space: where it is narrow or touches, which link, against what.

Distances are those of the enclosing spheres and hold between samples (`certify`), so nothing is
called safe that touches.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from brain.body import Body, BodyArrays, Work, work
from brain.certify import Bisection, bisection, narrowest, path_at, tool_travel, travel
from brain.distance import Clearance, ObstacleArrays, Obstacles, arm_clearance, nearest
from brain.errors import ConfigError
from brain.geometry import Array
from brain.jit import lean_kernel
from brain.planner_edges import Lanes, keeps_margin, lanes
from brain.rehearsal import NEAR_M
from brain.swept import sweep
from brain.world import BoolArray

SELF_EXTRA_M = 0.016
"""The arm's own links are near each other in every pose: to itself it keeps 4 mm of the 20."""
ENOUGH_M = 0.05
"""Clearance beyond this is not told apart."""
TOUCH_M = 0.0005
"""What cannot be shown to be farther than this counts as first contact."""
TOLERANCE_M = 0.001
"""A bound on the clearance comes this near to the smallest value looked at."""
STRETCH = 4
"""Rows that are looked at together for a first contact."""

StrokeKind = Literal["safe", "near", "contact", "unseen", "unreachable"]
ChangeKind = Literal["turn", "shift"]
Side = Literal["left", "right", "up", "down", "away"]
Unseen = Callable[[Array, Array], BoolArray]
"""Which of the spheres, centres (m, 3) in the world and radii (m,), reach into unseen space."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A change of a whole stroke: `size` in m or rad; `moved_m` is how far it moves the tool.

    A turn is about where the tool is now, a shift grows over the first `RAMP_M`; the tool's
    orientation stays as drawn.
    """

    kind: ChangeKind
    side: Side
    size: float
    moved_m: float

    def sentence(self) -> str:
        """Say it to the operator; few digits, so that what is said is what was checked."""
        if self.kind == "turn":
            return f"go {math.degrees(self.size):.6g} degrees {self.side}"
        return f"go {100 * self.size:.6g} cm {self.side}"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PathVerdict:
    """What was found along a way: place (row of the joints, m of the tool's way), link, obstacle.

    `certified_m`: nowhere nearer. `place` has surface point and normal in the world. `reason` says
    why a pose is unreachable. `asked`: a change was looked for; `gave_up`: not to the end, as
    the stroke is too long for that.
    """

    kind: StrokeKind
    certified_m: float
    row: float
    along_m: float
    place: Clearance | None
    reason: str = ""
    asked: bool = False
    gave_up: bool = False
    change: Change | None = None

    def sentence(self) -> str:
        """Say it to the operator."""
        at = f"at {100 * self.along_m:.0f} cm of the path"
        if self.place is None:
            return f"{self.kind} {at}: {self.reason}" if self.reason else f"{self.kind} {at}"
        if self.kind == "unseen":
            text = f"unseen space for {self.place.sphere} {at}"
        elif self.kind == "contact":
            text = f"{self.place.sphere} touches {self.place.against} {at}"
        elif self.place.point_m is None or self.place.distance_m > ENOUGH_M:
            return f"safe: nothing nearer than {100 * ENOUGH_M:.0f} cm"
        else:
            gap = f"{100 * self.place.distance_m:.1f} cm"
            text = f"{self.kind}: {gap} from {self.place.sphere} to {self.place.against} {at}"
        if not self.asked:
            return text
        if self.change is not None:
            return f"{text}; {self.change.sentence()}"
        none = "too long to try every small change" if self.gave_up else "no small change clears it"
        return f"{text}; {none}"


@lean_kernel
def first_below(
    body: BodyArrays,
    near: ObstacleArrays,
    path_rad: Array,
    at: Work,
    s: Lanes,
    q: Array,
    level_m: float,
) -> float:
    """Row of the first place whose clearance is not over `level_m`, within TOUCH_M; -1 for none.

    Stretches that are certified to be over it are passed over. A place that is not finite counts.
    """
    last = path_rad.shape[0] - 1
    start = 0
    while start < last:
        end = min(start + STRETCH, last)
        stretch = path_rad[start : end + 1]
        if not keeps_margin(body, near, stretch, s, level_m + TOUCH_M, 0.1 * TOUCH_M, 0.0)[0]:
            u = _march(body, near, stretch, at, q, level_m)
            if u >= 0.0:
                return start + u
        start = end
    return _march(body, near, path_rad, at, q, level_m) if last == 0 else -1.0


@lean_kernel
def _march(
    body: BodyArrays, near: ObstacleArrays, path_rad: Array, at: Work, q: Array, level_m: float
) -> float:
    """Do `first_below` by steps, none longer than the clearance at its start."""
    u, last = 0.0, float(path_rad.shape[0] - 1)
    while True:
        row = min(int(u), max(path_rad.shape[0] - 2, 0))
        for k in range(q.shape[0]):
            q[k] = path_rad[row, k]
            if u > row:
                q[k] += (u - row) * (path_rad[row + 1, k] - path_rad[row, k])
        room = nearest(body, near, q, at, level_m + ENOUGH_M, 0.0)[0] - level_m
        if not room > TOUCH_M:
            return u
        if u >= last:
            return -1.0
        row = min(int(u), path_rad.shape[0] - 2)
        most = 0.0
        for c in range(body.link.shape[0]):
            moved = 0.0
            for k in range(body.link[c]):
                moved += abs(path_rad[row + 1, k] - path_rad[row, k]) * body.reach_m[k, c]
            most = max(most, moved)
        # Two of one's own links can both move.
        u = min(u + 0.5 * room / most, row + 1.0) if most > 0.0 else row + 1.0


def path_verdict(
    body: Body,
    near: Obstacles,
    path_rad: Array,
    margin_m: float = NEAR_M,
    unseen: Unseen | None = None,
) -> PathVerdict:
    """Judge a way along the polyline `path_rad` (k, n), k >= 1; unseen None: all else is free.

    Raises:
        ConfigError: the path is empty or not finite, or the margin is beyond what is told apart.
    """
    path = np.ascontiguousarray(path_rad, dtype=np.float64)
    n = body.model.dof
    if path.ndim != 2 or path.shape[1] != n or len(path) == 0:
        raise ConfigError(f"path_rad {path.shape}: must be (k, {n}) with at least one row")
    if not np.isfinite(path).all():
        raise ConfigError("path_rad: must be finite")
    if not 0.0 < margin_m <= ENOUGH_M:
        raise ConfigError(f"margin_m: {margin_m}, must be above 0 and at most {ENOUGH_M}")
    at = work(body)
    certified_m, row = narrowest_along(body, near, path, at, bisection(body), -math.inf)
    place = arm_clearance(body, near, path_at(path, row), at, math.inf, SELF_EXTRA_M)
    kind: StrokeKind = "safe" if certified_m >= margin_m else "near"
    if not certified_m > SELF_EXTRA_M:
        first = first_below(body.arrays, near.arrays, path, at, lanes(body), np.zeros(n), 0.0)
        if first >= 0.0:
            kind, row = "contact", first
            place = arm_clearance(body, near, path_at(path, row), at)
    if unseen is not None and kind != "contact":
        found = first_unseen(body, path, unseen)
        if found is not None:
            kind, row, place = "unseen", float(found[0]), _at_unseen(body, found[1])
    return PathVerdict(
        kind=kind,
        certified_m=certified_m,
        row=row,
        along_m=tool_travel(body, path, row),
        place=place,
    )


def narrowest_along(
    body: Body, near: Obstacles, path: Array, at: Work, scratch: Bisection, stop_m: float
) -> tuple[float, float]:
    """Bound on the clearance along a path (k, n), and the row where it is smallest."""
    bound_m, _, row, _ = narrowest(
        body.arrays,
        near.arrays,
        path,
        travel(path),
        at,
        scratch,
        ENOUGH_M,
        TOLERANCE_M,
        stop_m,
        SELF_EXTRA_M,
    )
    return bound_m, row


def first_unseen(body: Body, path: Array, unseen: Unseen) -> tuple[int, int] | None:
    """Row and sphere that first reach into unseen space, spheres enlarged between samples."""
    part = sweep(body, path)
    cluster = np.repeat(np.arange(len(body.arrays.link)), np.diff(body.arrays.first))
    moves = body.spheres.link > 0
    for s, row in enumerate(part.row):
        radius_m = body.spheres.radius_m + part.arrays.slack_m[s][cluster]
        hit = np.flatnonzero(unseen(part.arrays.centre_m[s], radius_m) & moves)
        if len(hit):
            return int(row), int(hit[0])
    return None


def _at_unseen(body: Body, sphere: int) -> Clearance:
    return Clearance(
        distance_m=math.nan,
        link=int(body.spheres.link[sphere]),
        sphere=body.spheres.name[sphere],
        against="unseen space",
        point_m=None,
        normal=None,
    )
