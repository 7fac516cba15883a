"""A stroke of the hand: its verdict, and a change that clears it.

A stroke is followed on the branch that the arm is on, from its present joints. Left and right are
as seen along the stroke from its start to its end with the world's z up; a stroke straight up or
down is seen from the base towards the tool.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from brain.body import Body
from brain.clearing import smallest_change
from brain.distance import Obstacles
from brain.errors import ConfigError
from brain.geometry import Array
from brain.kinematics import tool_pose
from brain.path_verdict import PathVerdict, Unseen, path_verdict
from brain.rehearsal import NEAR_M
from brain.stroke_path import JUMP, LIMIT, LONGEST_M, UNREACHABLE, joints_along, resample

POSES_MAX = 10_000


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
    drawn, to, long_m = resample(way)
    if len(drawn) == 0:
        raise ConfigError(f"stroke: {long_m:.1f} m long, at most {LONGEST_M:.0f} m can be judged")
    path, end, reason, joint = joints_along(body, q, drawn)
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
    change, complete = smallest_change(
        body, near, path[:end], drawn, margin_m, unseen, found.place, found.row
    )
    return replace(found, asked=True, change=change, gave_up=not complete)
