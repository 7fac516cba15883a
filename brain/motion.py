"""Commanded joints with their first two differences, and the two ways to go on.

To a target, or to rest.
"""

from __future__ import annotations

import numpy as np

from brain.geometry import Array, frozen, largest
from brain.jit import kernel
from brain.record import Record


class Motion(Record):
    """Joints (n,) of one tick with speed and acceleration as differences to the ticks before."""

    q_rad: Array
    dq_rad_s: Array
    ddq_rad_s2: Array


def at_rest(q_rad: Array) -> Motion:
    """Return a motion that stands still at q."""
    return Motion(
        q_rad=frozen(q_rad),
        dq_rad_s=frozen(np.zeros(q_rad.shape)),
        ddq_rad_s2=frozen(np.zeros(q_rad.shape)),
    )


def step_to(motion: Motion, q_rad: Array, dt_s: float) -> Motion:
    """Return the motion one tick later, at q."""
    rows = _differences(motion.q_rad, motion.dq_rad_s, q_rad, dt_s)
    rows.setflags(write=False)
    return Motion(q_rad=rows[0], dq_rad_s=rows[1], ddq_rad_s2=rows[2])


@kernel
def _differences(q_from: Array, dq_from: Array, q_to: Array, dt_s: float) -> Array:
    """Joints and their first two differences to the tick before, as rows (3, n)."""
    rows = np.empty((3, q_to.shape[0]))
    for i in range(q_to.shape[0]):
        rows[0, i] = q_to[i]
        rows[1, i] = (q_to[i] - q_from[i]) / dt_s
        rows[2, i] = (rows[1, i] - dq_from[i]) / dt_s
    return rows


def brake(motion: Motion, deceleration_rad_s2: float, dt_s: float) -> Motion:
    """Return the motion one tick later on the way to rest.

    All joints are slowed by the same share, so that the direction stays; the fastest one slows by
    the given deceleration. At rest the motion stays bit for bit.
    """
    fastest = largest(motion.dq_rad_s)
    if fastest > deceleration_rad_s2 * dt_s:
        dq = motion.dq_rad_s * (1.0 - deceleration_rad_s2 * dt_s / fastest)
        return step_to(motion, motion.q_rad + dq * dt_s, dt_s)
    if fastest > 0.0:  # the last bit of speed goes in one tick
        return step_to(motion, motion.q_rad, dt_s)
    return at_rest(motion.q_rad) if largest(motion.ddq_rad_s2) > 0.0 else motion


@kernel
def fastest(q_from: Array, q_to: Array, allowed_rad_s: Array, dt_s: float) -> tuple[int, float]:
    """Which joint of (n,) is fastest for what it is allowed, and its share of that; NaN stays."""
    worst, most = 0, 0.0
    for i in range(len(q_to)):
        share = abs(q_to[i] - q_from[i]) / dt_s / allowed_rad_s[i]
        if share != share:
            return i, share
        if share > most:
            worst, most = i, share
    return worst, most


@kernel
def farther_out(
    q_from: Array, q_to: Array, q_min_rad: Array, q_max_rad: Array
) -> tuple[int, float]:
    """Which joint of (n,) goes farthest beyond its range, and how far in rad; 0 if none does.

    A joint that is beyond it already counts if it goes farther still.
    """
    worst, most = 0, 0.0
    for i in range(len(q_to)):
        was = max(q_from[i] - q_max_rad[i], q_min_rad[i] - q_from[i])
        over = max(q_to[i] - q_max_rad[i], q_min_rad[i] - q_to[i])
        if over > was and over > most:
            worst, most = i, over
    return worst, most
