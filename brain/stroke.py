"""A stroke of the hand: what joints it takes, its verdict, and a change that clears it.

A stroke is followed on the branch that the arm is on, from its present joints. Left and right are
as seen along the stroke from its start to its end with the world's z up; a stroke straight up or
down is seen from the base towards the tool.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from brain.body import Body, work
from brain.certify import bisection
from brain.distance import Clearance, Obstacles
from brain.errors import ConfigError
from brain.geometry import Array, rotvec_to_matrix
from brain.ik_polish import newton
from brain.jit import kernel
from brain.kinematics import pose_error, tool_pose
from brain.path_verdict import (
    SELF_EXTRA_M,
    TOUCH_M,
    Change,
    ChangeKind,
    PathVerdict,
    Side,
    Unseen,
    first_unseen,
    narrowest_along,
    path_verdict,
)
from brain.rehearsal import NEAR_M
from brain.robot import ArmArrays

POSES_MAX = 10_000
ROWS_MAX = 5000
STEP_M = 0.02
LONGEST_M = STEP_M * ROWS_MAX
"""A longer stroke would have its corners cut; a shorter one has them cut within a step."""
LEVER_M = 0.2
"""A turn counts as the way of a point this far from the tool."""
JUMP_RAD = 0.5
"""A joint that turns farther within a step has changed its branch."""
RAMP_M = 0.10
"""A shift grows over this much of the stroke."""
SHIFTS_M = (0.02, 0.04, 0.08, 0.15)
TURNS_RAD = (math.radians(5), math.radians(10), math.radians(20), math.radians(30))
HALVINGS = 2
LIMIT, UNREACHABLE, JUMP = 1, 2, 3


# ---------------------------------------------------------------- from a stroke to joints


@kernel
def _resample(poses: Array) -> tuple[Array, Array, float]:
    """Poses at equal steps along a stroke, both ends kept, and which pose each is on its way to.

    Answers the length in m too, turns counted by `LEVER_M`; no poses if it is over `LONGEST_M`.
    """
    k = poses.shape[0]
    error, far = np.zeros((k, 6)), np.zeros(k)
    for i in range(1, k):
        pose_error(poses[i - 1], poses[i], error[i])
        e = error[i]
        way = math.sqrt(e[0] ** 2 + e[1] ** 2 + e[2] ** 2)
        turn = math.sqrt(e[3] ** 2 + e[4] ** 2 + e[5] ** 2)
        far[i] = far[i - 1] + max(way, LEVER_M * turn)
    if not far[k - 1] <= LONGEST_M:
        return np.zeros((0, 4, 4)), np.zeros(0), far[k - 1]
    rows = 1 + int(math.ceil(far[k - 1] / STEP_M))
    out, to, i = np.zeros((rows, 4, 4)), np.zeros(rows), 1
    for r in range(rows):
        if r == 0 or k == 1:
            out[r] = poses[0]
            continue
        s = far[k - 1] * r / (rows - 1)
        while i < k - 1 and far[i] < s:
            i += 1
        to[r] = i
        t = min(1.0, (s - far[i - 1]) / max(far[i] - far[i - 1], 1e-300))
        out[r] = poses[i - 1]
        turn_R = rotvec_to_matrix(t * error[i, 3:])
        for a in range(3):
            out[r, a, 3] += t * error[i, a]
            for b in range(3):
                out[r, a, b] = 0.0
                for c in range(3):
                    out[r, a, b] += turn_R[a, c] * poses[i - 1, c, b]
    return out, to, far[k - 1]


@kernel
def _follow(
    arm: ArmArrays, poses: Array, q_rad: Array, low_rad: Array, high_rad: Array
) -> tuple[int, int, int]:
    """Write joints (k, 6) of each pose, on from row 0; row, reason and joint where that ends."""
    J, T_links, T, error = np.empty((6, 6)), np.empty((7, 4, 4)), np.empty((4, 4)), np.empty(6)
    for i in range(1, poses.shape[0]):
        q_rad[i] = q_rad[i - 1]
        if not newton(arm, poses[i], q_rad[i], J, T_links, T, error):
            return i, UNREACHABLE, 0
        for k in range(6):
            if not abs(q_rad[i, k] - q_rad[i - 1, k]) <= JUMP_RAD:
                return i, JUMP, k
            if not low_rad[k] <= q_rad[i, k] <= high_rad[k]:
                return i, LIMIT, k
    return poses.shape[0], 0, 0


def _checked(body: Body, q_now_rad: Array, poses: npt.ArrayLike) -> tuple[Array, Array]:
    n = body.model.dof
    q, T = np.array(q_now_rad, dtype=np.float64), np.array(poses, dtype=np.float64)
    if n != 6:
        raise ConfigError(f"{body.name}: {n} joints, a stroke is followed with 6")
    if q.shape != (n,) or not np.isfinite(q).all():
        raise ConfigError(f"q_now_rad: must be {n} finite joints, got {q.tolist()}")
    if T.ndim != 3 or T.shape[1:] != (4, 4) or not 1 <= len(T) <= POSES_MAX:
        raise ConfigError(f"poses {T.shape}: must be (k, 4, 4) with 1 <= k <= {POSES_MAX}")
    last = np.array((0.0, 0.0, 0.0, 1.0))
    R = T[:, :3, :3]
    off = np.abs(R @ R.transpose(0, 2, 1) - np.eye(3)).max(axis=(1, 2))
    good = np.isfinite(T).all(axis=(1, 2)) & (off <= 1e-6) & (T[:, 3] == last).all(axis=1)
    good &= np.linalg.det(np.where(good[:, None, None], R, np.eye(3))) > 0.0
    if not good.all():
        i = int(np.argmin(good))
        raise ConfigError(f"pose {i} of the stroke: must be a finite rigid transform")
    return q, T


def stroke_verdict(
    body: Body,
    near: Obstacles,
    q_now_rad: Array,
    poses: npt.ArrayLike,
    margin_m: float = NEAR_M,
    unseen: Unseen | None = None,
) -> PathVerdict:
    """Judge a stroke: tool poses (k, 4, 4) in the arm's base, from the joints q_now (n,) on.

    The way from the present tool pose to the first pose belongs to it. Where it touches or comes
    near on its way, the smallest change of a bounded fan is proposed that makes it safe. Where it
    cannot be followed, or starts in contact, nothing is proposed.

    Raises:
        ConfigError: joints or a pose are not finite, a pose is not rigid, there is none, too many,
            or the stroke is longer than `LONGEST_M`; the margin cannot be.
    """
    q, T = _checked(body, q_now_rad, poses)
    way = np.concatenate([tool_pose(body.model, q)[None], T])
    drawn, to, long_m = _resample(way)
    if len(drawn) == 0:
        raise ConfigError(f"stroke: {long_m:.1f} m long, at most {LONGEST_M:.0f} m can be judged")
    path, end, reason, joint = _joints(body, q, drawn)
    found = path_verdict(body, near, path[:end], margin_m, unseen)
    if reason and found.kind in ("safe", "near"):
        steps_m = np.linalg.norm(np.diff(drawn[: end + 1, :3, 3], axis=0), axis=1)
        why = {
            UNREACHABLE: "the arm does not reach that pose",
            LIMIT: f"joint {joint + 1} is at its limit",
            JUMP: f"joint {joint + 1} would have to jump to another branch",
        }[reason]
        return PathVerdict(
            kind="unreachable",
            certified_m=found.certified_m,
            row=float(end),
            along_m=float(steps_m.sum()),
            place=None,
            reason=f"pose {int(to[end]) - 1} of the stroke: {why}",
        )
    if found.kind not in ("contact", "near") or found.place is None or found.row == 0.0:
        return found  # a start in contact is nothing that a change of the stroke clears
    change = _proposal(body, near, q, drawn, margin_m, unseen, found.place)
    return replace(found, asked=True, change=change)


def _joints(body: Body, q: Array, drawn: Array) -> tuple[Array, int, int, int]:
    path = np.empty((len(drawn), 6))
    path[0] = q
    limits = body.model.limits
    low, high = np.minimum(limits.q_min_rad, q), np.maximum(limits.q_max_rad, q)
    end, reason, joint = _follow(body.model.arrays, drawn, path, low, high)
    return path, end, reason, joint


# ---------------------------------------------------------------- a change that clears it


def changed(drawn: Array, change: Change, left: Array, forward: Array, away: Array) -> Array:
    """Return the poses with a change, about the first of them; the vectors (3,) are in the base."""
    up = np.cross(forward, left)
    out = drawn.copy()
    off = drawn[:, :3, 3] - drawn[0, :3, 3]
    sign = -1.0 if change.side in ("right", "down") else 1.0
    if change.kind == "turn":
        axis = up if change.side in ("left", "right") else -left
        out[:, :3, 3] += off @ (rotvec_to_matrix(sign * change.size * axis) - np.eye(3)).T
        return out
    way = np.linalg.norm(off, axis=1)
    to = away if change.side == "away" else left if change.side in ("left", "right") else up
    out[:, :3, 3] += sign * change.size * np.minimum(1.0, way / RAMP_M)[:, None] * to
    return out


def seen_along(body: Body, drawn: Array) -> tuple[Array, Array]:
    """Forward and left (3,), (3,) of a stroke, horizontal in the world, given in the arm's base."""
    R = _R_world_base(body)
    for ahead in (drawn[-1, :3, 3] - drawn[0, :3, 3], drawn[0, :3, 3], np.array((1.0, 0.0, 0.0))):
        forward = R @ ahead
        forward[2] = 0.0
        length = float(np.linalg.norm(forward))
        if length > 1e-3:
            break
    forward /= length
    left = np.array((-forward[1], forward[0], 0.0))
    return R.T @ forward, R.T @ left


def _R_world_base(body: Body) -> Array:
    """Rotation (3, 3) of the base in the world, which a body has folded into its first joint."""
    folded, bare = body.arrays.arm.T_link_joint[0], body.model.chain.T_link_joint[0]
    return np.asarray(folded[:3, :3] @ bare[:3, :3].T)


def _proposal(
    body: Body,
    near: Obstacles,
    q: Array,
    drawn: Array,
    margin_m: float,
    unseen: Unseen | None,
    place: Clearance,
) -> Change | None:
    """The smallest change of a bounded fan whose stroke is safe by the very same query.

    Sides against the contact's normal are left out; sizes grow, the first that is safe is halved
    towards the last that was not.
    """
    forward, left = seen_along(body, drawn)
    R = _R_world_base(body)
    away = left if place.normal is None else R.T @ place.normal
    up = np.cross(forward, left)
    reach_m = float(np.linalg.norm(drawn[:, :3, 3] - drawn[0, :3, 3], axis=1).max())
    at, scratch = work(body), bisection(body)
    needed_m = max(margin_m, SELF_EXTRA_M + 2.0 * TOUCH_M)

    def safe(change: Change) -> bool:
        moved = changed(drawn, change, left, forward, away)
        path, end, _, _ = _joints(body, q, moved)
        if end < len(moved):
            return False
        if not narrowest_along(body, near, path, at, scratch, needed_m)[0] >= needed_m:
            return False
        return unseen is None or first_unseen(body, path, unseen) is None

    sides: dict[Side, Array] = {"left": left, "right": -left, "up": up, "down": -up}
    fan = [side for side, to in sides.items() if float(to @ away) > -0.3]
    kinds: tuple[tuple[ChangeKind, tuple[float, ...], float, list[Side]], ...] = (
        ("turn", TURNS_RAD, reach_m, fan),
        ("shift", SHIFTS_M, 1.0, [*fan, "away"]),
    )
    for level in range(len(SHIFTS_M)):
        best: Change | None = None
        for kind, sizes, lever, ways in kinds:
            for side in ways:
                low, high = (sizes[level - 1] if level else 0.0), sizes[level]
                found = Change(kind=kind, side=side, size=high, moved_m=high * lever)
                if (best is not None and found.moved_m >= best.moved_m) or not safe(found):
                    continue
                for _ in range(HALVINGS):
                    half = 0.5 * (low + found.size)
                    smaller = Change(kind=kind, side=side, size=half, moved_m=half * lever)
                    low, found = (low, smaller) if safe(smaller) else (half, found)
                if best is None or found.moved_m < best.moved_m:
                    best = found
        if best is not None:
            return best
    return None
