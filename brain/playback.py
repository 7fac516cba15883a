"""Playing a stream row by row: exactly as it is, or slowing to rest on its own path.

And watching for departures.
"""

from __future__ import annotations

import math

import numpy as np

from brain.geometry import Array, frozen, largest
from brain.limits import LimitProfile
from brain.record import replace
from brain.rehearsal import Prediction, Stream
from brain.state import Departure, Playback
from brain.swept import Swept

DONE = "the committed motion is done"
"""The reason of the HOLD after a commit that went to its end."""
FADE_S = 0.5
"""The offset between held joints and the first row fades out in this time: at least 0.5 s."""

# How far a commit may differ from its prediction before it is held. Joints: ten times the tracking
# that the twin shows. Force: above sensor noise and the acceleration of a 2 kg tool, and for longer
# than an arm that missed a tick shakes its tool (17 N for two ticks); what must not wait is the
# gate's. Fingers: a part that slipped or is missing.
DEPART_RAD = 0.02
DEPART_FORCE_N = 12.0
DEPART_FORCE_TICKS = 3
DEPART_OPENING_M = 0.003
DEPART_OPENING_TICKS = 50


def begin(
    digest: str,
    stream: Stream,
    prediction: Prediction | None,
    swept: Swept | None,
    q_held_rad: Array,
) -> Playback:
    """Start at the first row, from the joints (all arms side by side) that are being held."""
    return Playback(
        digest=digest,
        stream=stream,
        prediction=prediction,
        swept=swept,
        phase=0.0,
        rate=1.0,
        offset_rad=q_held_rad - stream.q_rad[0],
        force_off_ticks=0,
        opening_off_ticks=0,
        departure=Departure(),
    )


def row(playback: Playback) -> int:
    """Row that is due now."""
    return min(int(playback.phase), playback.stream.rows - 1)


def finished(playback: Playback, dt_s: float) -> bool:
    """Whether the last row was sent, and sent for so long that no offset is left."""
    faded = (playback.phase - 1.0) * dt_s >= FADE_S or not np.any(playback.offset_rad)
    return playback.phase >= playback.stream.rows and faded


def joints(playback: Playback, dt_s: float) -> Array:
    """Joints at the phase (all arms side by side).

    The very row at full rate, between two rows while slowing.
    """
    q = playback.stream.q_rad
    k = row(playback)
    share = playback.phase - k
    now = q[k] if share <= 0.0 or k + 1 >= len(q) else frozen(q[k] + share * (q[k + 1] - q[k]))
    if largest(playback.offset_rad) == 0.0:
        return np.asarray(now)
    return frozen(now + _faded(playback.phase * dt_s / FADE_S) * playback.offset_rad)


def _faded(u: float) -> float:
    """1 at u <= 0, 0 at u >= 1, with no speed and no acceleration at both ends (quintic)."""
    u = min(max(u, 0.0), 1.0)
    return 1.0 - u * u * u * (10.0 - 15.0 * u + 6.0 * u * u)


def reaches(playback: Playback, event_row: int) -> bool:
    """Whether the step that is due is the one that comes to a row."""
    return playback.phase - playback.rate < event_row <= playback.phase


def advance(playback: Playback) -> Playback:
    """Go on by one tick at the present rate."""
    return replace(playback, phase=playback.phase + playback.rate)


def slow(playback: Playback, limits: LimitProfile, dt_s: float) -> Playback:
    """Lower the rate so that the fastest joint slows by the profile's acceleration.

    The step that is due is shortened already: on a way that speeds up it would be too fast.
    """
    q, sent = playback.stream.q_rad, max(playback.phase - playback.rate, 0.0)
    k = min(int(sent), len(q) - 1)
    fastest = float(np.max(np.abs(q[min(k + 1, len(q) - 1)] - q[k]))) / dt_s
    less = limits.joint_acceleration_rad_s2 * dt_s / max(fastest, 1e-9)
    rate = playback.rate - less
    rate = rate if rate > 1e-6 else 0.0
    return replace(playback, rate=rate, phase=sent + rate)


def compare(
    playback: Playback,
    q_rad: Array,
    opening_m: tuple[float | None, ...],
    force_n: tuple[float | None, ...],
) -> tuple[Playback, str | None]:
    """Hold measurements against the prediction of this row.

    Say what departed too far, None if nothing did.
    """
    predicted = playback.prediction
    if predicted is None:
        return playback, None
    k = row(playback)
    joint = largest(q_rad - predicted.q_rad[k])
    force = _worst(force_n, predicted.force_n[k])
    opening = _worst(opening_m, predicted.opening_m[k])
    force_ticks = 0 if force <= DEPART_FORCE_N else playback.force_off_ticks + 1
    opening_ticks = 0 if opening <= DEPART_OPENING_M else playback.opening_off_ticks + 1
    most, after = playback.departure, playback
    if joint > most.joint_rad or force > most.force_n or opening > most.opening_m:
        most = Departure(
            joint_rad=max(most.joint_rad, joint),
            force_n=max(most.force_n, force),
            opening_m=max(most.opening_m, opening),
        )
    ticks = (playback.force_off_ticks, playback.opening_off_ticks)
    if most is not playback.departure or ticks != (force_ticks, opening_ticks):
        after = replace(
            playback,
            force_off_ticks=force_ticks,
            opening_off_ticks=opening_ticks,
            departure=most,
        )
    if not joint <= DEPART_RAD:
        return after, f"joints depart {joint:.4f} rad from the rehearsal, {DEPART_RAD} allowed"
    if force_ticks > DEPART_FORCE_TICKS or not math.isfinite(force):
        return (
            after,
            f"force departs {force:.1f} N from the rehearsal, {DEPART_FORCE_N:.0f} allowed",
        )
    if opening_ticks > DEPART_OPENING_TICKS:
        return after, (
            f"fingers depart {1000 * opening:.1f} mm from the rehearsal, "
            f"{1000 * DEPART_OPENING_M:.0f} allowed: is the part where it should be?"
        )
    return after, None


def _worst(measured: tuple[float | None, ...], predicted: Array) -> float:
    worst = 0.0
    for value, expected in zip(measured, predicted.tolist(), strict=True):
        if value is None:
            continue
        off = abs(value - expected)
        if math.isnan(off):
            return math.nan
        worst = max(worst, off)
    return worst
