"""From the operator's hand to a wanted tool pose: gates, filter, clutch.

Gates come before the filter: a jump must drop the clutch, not be smoothed into a swing. At the
engage the hand and the tool are remembered and only differences count from then on, so neither
place of the operator nor of the robot matters; only the direction of the axes does (`T_base_seat`,
a rotation).
"""

from __future__ import annotations

import numpy as np

from brain.geometry import (
    Array,
    is_rotation,
    matrix_to_rotvec,
    product,
    rotation_angle,
    rotvec_to_matrix,
)
from brain.jit import kernel
from brain.record import Record
from brain.types import NS_PER_MS, OperatorInput

JUMP_M = 0.10
JUMP_RAD = np.deg2rad(30.0)
EXTRAPOLATE_NS = 50 * NS_PER_MS
"""Over a gap the hand is carried on with its last speed for at most this long, then stays."""

# Source: G. Casiez, N. Roussel, D. Vogel, "1 Euro Filter", CHI 2012. Tuned on minimum-jerk reaches
# of 30 cm with 0.3 mm tremor at 90 Hz: 0.11 mm jitter and 11 ms lag. Beta is per metre (and per
# radian).
MIN_CUTOFF_HZ = 1.0
BETA = 30.0
SPEED_CUTOFF_HZ = 1.0


class Hand(Record):
    """The filtered hand: position, rotation, their speeds, and the last accepted raw sample."""

    t_ns: int
    position_m: Array
    rotation: Array
    speed_m_s: Array
    turn_rad_s: Array
    raw_m: Array
    raw_rotation: Array


class Clutch(Record):
    """Hand and tool at the moment of engaging; `scale` applies to positions only."""

    position_m: Array
    rotation: Array
    T_base_tool: Array
    scale: float


def refuse(sample: OperatorInput, hand: Hand | None) -> str | None:
    """Say why a sample of the hand must not be used, None when it may.

    `hand` is None before an engage.
    """
    if not sample.tracked or sample.T_seat_hand is None:
        return "the hand is not tracked"
    pose = sample.T_seat_hand
    if pose.shape != (4, 4) or not np.all(np.isfinite(pose)):
        return "the hand's pose is not finite"
    if not is_rotation(pose[:3, :3]):
        return "the hand's rotation is not a rotation"
    if not np.any(pose[:3, 3]):
        return "the hand's position is missing"  # lost tracking sends zeros (ALVR issue 1510)
    if hand is None:
        return None
    jump_m = float(np.linalg.norm(pose[:3, 3] - hand.raw_m))
    if jump_m > JUMP_M:
        return f"the hand jumped {100 * jump_m:.0f} cm in one frame"
    jump_rad = rotation_angle(hand.raw_rotation, pose)
    if jump_rad > JUMP_RAD:
        return f"the hand turned {np.rad2deg(jump_rad):.0f} deg in one frame"
    return None


def first(t_ns: int, T_seat_hand: Array) -> Hand:
    """Start the filter at an accepted sample."""
    position, rotation = T_seat_hand[:3, 3].copy(), T_seat_hand[:3, :3].copy()
    zero = np.zeros(3)
    return Hand(
        t_ns=t_ns,
        position_m=position,
        rotation=rotation,
        speed_m_s=zero,
        turn_rad_s=zero,
        raw_m=position,
        raw_rotation=rotation,
    )


def follow(hand: Hand, t_ns: int, T_seat_hand: Array) -> Hand:
    """Filter in an accepted sample; one with an equal or older time stamp changes nothing."""
    dt_s = (t_ns - hand.t_ns) * 1e-9
    if not dt_s > 0.0:
        return hand
    raw_m, raw_rotation = T_seat_hand[:3, 3], T_seat_hand[:3, :3]
    blend = _blend(SPEED_CUTOFF_HZ, dt_s)
    speed = hand.speed_m_s + blend * ((raw_m - hand.raw_m) / dt_s - hand.speed_m_s)
    turned = matrix_to_rotvec(raw_rotation @ hand.raw_rotation.T) / dt_s
    turn = hand.turn_rad_s + blend * (turned - hand.turn_rad_s)
    along = _blend(MIN_CUTOFF_HZ + BETA * float(np.linalg.norm(speed)), dt_s)
    about = _blend(MIN_CUTOFF_HZ + BETA * float(np.linalg.norm(turn)), dt_s)
    error = matrix_to_rotvec(raw_rotation @ hand.rotation.T)
    return Hand(
        t_ns=t_ns,
        position_m=hand.position_m + along * (raw_m - hand.position_m),
        rotation=rotvec_to_matrix(about * error) @ hand.rotation,
        speed_m_s=speed,
        turn_rad_s=turn,
        raw_m=raw_m.copy(),
        raw_rotation=raw_rotation.copy(),
    )


def _blend(cutoff_hz: float, dt_s: float) -> float:
    step = 2.0 * np.pi * cutoff_hz * dt_s
    return step / (1.0 + step)


def engage(hand: Hand, T_base_tool: Array, scale: float) -> Clutch:
    """Remember hand and commanded tool; from here on only differences count."""
    return Clutch(
        position_m=hand.position_m, rotation=hand.rotation, T_base_tool=T_base_tool, scale=scale
    )


def wanted_tool(clutch: Clutch, hand: Hand, R_base_seat: Array, gap_ns: int) -> Array:
    """Wanted T_base_tool (4, 4).

    `gap_ns` is how old the hand is beyond its usual interval (0: no gap).
    """
    ahead_s = min(max(gap_ns, 0), EXTRAPOLATE_NS) * 1e-9
    return _wanted(
        clutch.T_base_tool,
        R_base_seat,
        clutch.scale * (hand.position_m + ahead_s * hand.speed_m_s - clutch.position_m),
        (rotvec_to_matrix(ahead_s * hand.turn_rad_s), hand.rotation, clutch.rotation),
    )


@kernel
def _wanted(
    T_base_tool: Array, R_base_seat: Array, moved_m: Array, turns: tuple[Array, Array, Array]
) -> Array:
    """Move a tool as the hand moved in the seat; it turned by the first two less the last turn."""
    out = T_base_tool.copy()
    ahead, now, before = turns
    for i in range(3):
        for k in range(3):
            out[i, 3] += R_base_seat[i, k] * moved_m[k]
    turned = product(ahead, product(now, before.T))
    turned = product(R_base_seat, product(turned, R_base_seat.T))
    out[:3, :3] = product(turned, T_base_tool)
    return out
