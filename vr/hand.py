"""The window's hand: what the mouse has done to the gizmo, said as motion of a hand in the seat.

Only differences since the engage count (see `brain/retarget.py`), so a hand may be anywhere. It is
led from where it is towards where the gizmo was dragged: a mouse may jump across the screen between
two frames, a hand may not.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from brain.geometry import Array, frozen, matrix_to_rotvec, rotvec_to_matrix, transform

REST: Array = frozen(transform((0.3, 0.0, 1.0)))
"""Where the hand is before it ever moved; a position of zeros would mean that tracking is lost."""
HAND_M_S = 0.25
HAND_RAD_S = 1.0
"""The hand's speeds: those of a tool in the `default` limits, so that it does not run far ahead."""
PULL_1_S = 10.0
"""The hand goes a tenth of the way left in 10 ms: smooth at the end, 0.1 s behind a steady drag."""
STEP_MAX_S = 0.02
"""A hand that was not looked at for longer moves on by this much time: 5 mm, 1.1 degrees."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Drag:
    """Where the tool was when it was taken by the hand, and where it is wanted, (4, 4)."""

    T_world_from: Array
    T_world_to: Array


def hand_target(T_seat_hand: Array, R_world_seat: Array, drag: Drag) -> Array:
    """Return the hand (4, 4) that means a drag, from where the hand was at the engage.

    The inverse of `retarget.wanted_tool` at scale 1.
    """
    moved = drag.T_world_to[:3, 3] - drag.T_world_from[:3, 3]
    turned = drag.T_world_to[:3, :3] @ drag.T_world_from[:3, :3].T
    return transform(
        T_seat_hand[:3, 3] + R_world_seat.T @ moved,
        R_world_seat.T @ turned @ R_world_seat @ T_seat_hand[:3, :3],
    )


def lead(T_seat_hand: Array, T_seat_target: Array, dt_s: float) -> Array:
    """Return the hand (4, 4) a time later, closer to its target and never faster than a hand."""
    dt_s = min(max(dt_s, 0.0), STEP_MAX_S)
    way = T_seat_target[:3, 3] - T_seat_hand[:3, 3]
    turn = matrix_to_rotvec(T_seat_target[:3, :3] @ T_seat_hand[:3, :3].T)
    step = _step(way, HAND_M_S, dt_s)
    rotation = rotvec_to_matrix(_step(turn, HAND_RAD_S, dt_s)) @ T_seat_hand[:3, :3]
    u, _, v = np.linalg.svd(rotation)  # keep it a rotation through hours of small steps
    return transform(T_seat_hand[:3, 3] + step, u @ v)


def _step(way: Array, fastest: float, dt_s: float) -> Array:
    length = float(np.linalg.norm(way))
    if length == 0.0:
        return way
    return way * min(PULL_1_S * dt_s, fastest * dt_s / length)
