"""Motions at the edge of what may be planned, and rehearsals made of them by hand."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from brain.cell import CellModel
from brain.geometry import Array, frozen
from brain.kinematics import tool_pose
from brain.limits import DEFAULT, LimitProfile, joint_speed
from brain.rehearsal import GripEvent, Prediction, Rehearsal, Stream, Verdict, sealed
from brain.robot import ArmModel
from brain.types import Goal
from brain.world import Held

DT = 0.002
Move = tuple[Sequence[float], float, float]
"""By how much (n,), from and to which share of the whole time; overlapping moves bend the way."""

ROUND: tuple[Move, ...] = (
    ((0.5, -0.2, 0.3, 0.0, 0.2, 1.2), 0.0, 0.8),
    ((-0.2, -0.1, 0.2, -0.5, 0.4, 0.0), 0.2, 1.0),
)
SPUN: tuple[Move, ...] = (((0.0, 0.0, 0.0, 0.0, 0.0, 0.6), 0.0, 1.0),)
"""The last joint alone: joint speed without tool speed."""


def smooth(u: Array) -> Array:
    """From 0 to 1, at rest at both ends (minimum jerk)."""
    u = np.clip(u, 0.0, 1.0)
    return np.asarray(u**3 * (10.0 - 15.0 * u + 6.0 * u * u))


def worst(model: ArmModel, rows: Array, limits: LimitProfile) -> float:
    """Largest share of any limit that rows (k, n) from rest to rest use up."""
    rest = np.repeat(rows[-1:], 3, axis=0)
    q = np.concatenate([np.repeat(rows[:1], 3, axis=0), rows, rest])
    dq, ddq, jerk = (np.diff(q, k, axis=0) / DT**k for k in (1, 2, 3))
    tool = np.array([tool_pose(model, x)[:3, 3] for x in q[::4]])
    return max(
        float(np.max(np.abs(dq) / joint_speed(limits, model.limits))),
        float(np.max(np.abs(ddq))) / limits.joint_acceleration_rad_s2,
        float(np.max(np.abs(jerk))) / limits.joint_jerk_rad_s3,
        float(np.max(np.linalg.norm(np.diff(tool, axis=0), axis=1)))
        / (4 * DT * limits.tool_speed_m_s),
    )


def timed(
    model: ArmModel,
    q_from: Array,
    moves: Sequence[Move] = ROUND,
    limits: LimitProfile = DEFAULT,
    share: float = 0.9,
) -> Array:
    """Rows (k, n) that go through moves as fast as a share of the limits allows."""

    def rows(seconds: float) -> Array:
        u = np.arange(int(np.ceil(seconds / DT)) + 1) * DT / seconds
        ways = [np.outer(smooth((u - a) / (b - a)), way) for way, a, b in moves]
        return q_from + np.sum(ways, axis=0)

    slow, fast = 8.0, 0.05
    for _ in range(12):
        middle = 0.5 * (slow + fast)
        slow, fast = (
            (middle, fast) if worst(model, rows(middle), limits) <= share else (slow, middle)
        )
    return rows(slow)


def off_the_way(points: Array, rows: Array) -> float:
    """Largest distance in rad of points (k, n) to the polyline through rows (r, n)."""
    far = 0.0
    a, leg = rows[:-1], np.diff(rows, axis=0)
    length = np.maximum(np.sum(leg * leg, axis=1), 1e-300)
    for p in points:
        share = np.clip(np.sum((p - a) * leg, axis=1) / length, 0.0, 1.0)
        far = max(far, float(np.min(np.linalg.norm(p - a - share[:, None] * leg, axis=1))))
    return far


def stream(
    rows: Array,
    arms: int = 1,
    opening_m: Array | None = None,
    events: Sequence[GripEvent] = (),
) -> Stream:
    """A stream of rows for all arms side by side; fingers stay at 0 unless told."""
    openings = np.zeros((len(rows), arms)) if opening_m is None else opening_m
    return Stream(
        q_rad=frozen(rows),
        opening_m=frozen(openings),
        grip_force_n=frozen(np.full((len(rows), arms), 20.0)),
        events=tuple(events),
    )


def rehearsal(
    cell: CellModel, made: Stream, made_ns: int = 0, held: tuple[Held, ...] = (), **over: object
) -> Rehearsal:
    """What a perfect twin would say of a stream: everything exactly as commanded."""
    arms = len(cell.arms)
    q_before = np.concatenate([made.q_rad[:1], made.q_rad[:-1]])  # seen one tick later
    openings = np.concatenate([made.opening_m[:1], made.opening_m[:-1]])
    fields = {
        "cell": cell.name,
        "scene_digest": cell.scene_digest,
        "goal": Goal(kind="task", task="test"),
        "limits": "default",
        "tick_ns": cell.tick_ns,
        "made_ns": made_ns,
        "world_version": 0,
        "held": held,
        "tool_mass_kg": tuple(a.model.tool_mass_kg for a in cell.arms),
        "stream": made,
        "prediction": Prediction(
            q_rad=frozen(q_before),
            opening_m=frozen(openings),
            force_n=frozen(np.zeros((made.rows, arms))),
            clearance_m=frozen(np.ones((made.rows, arms))),
        ),
        "verdict": Verdict(
            kind="safe", clearance_m=1.0, along_m=0.0, arm="ur0", link="wrist", against="nothing"
        ),
        "digest": "",
    }
    return sealed(Rehearsal(**(fields | over)))  # type: ignore[arg-type]
