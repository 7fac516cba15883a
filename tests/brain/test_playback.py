import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from brain import playback
from brain.geometry import frozen
from brain.limits import DEFAULT
from brain.playback import DEPART_FORCE_TICKS, DEPART_OPENING_TICKS, FADE_S
from brain.state import Playback
from tests.brain.cells import HOME, cell
from tests.brain.streams import DT, off_the_way, rehearsal, stream, timed
from tests.values import replace

ONE = cell()
ROWS = timed(ONE.arms[0].model, HOME)
MADE = rehearsal(ONE, stream(ROWS))


def begin(q_held=HOME, rows=ROWS) -> Playback:
    made = rehearsal(ONE, stream(rows))
    return playback.begin(made.digest, made.stream, made.prediction, None, np.asarray(q_held))


def played(play: Playback, ticks: int) -> tuple[np.ndarray, Playback]:
    """Joints of some ticks at the present rate, and the playback after them."""
    sent = []
    for _ in range(ticks):
        sent.append(playback.joints(play, DT))
        play = playback.advance(play)
    return np.array(sent), play


def slowed(play: Playback) -> np.ndarray:
    """Joints of all ticks from the first one that slows down until it stands."""
    sent = []
    while True:
        play = playback.slow(play, DEFAULT, DT)
        if play.rate == 0.0:
            return np.array(sent).reshape(-1, 6)
        sent.append(playback.joints(play, DT))
        play = playback.advance(play)
        assert len(sent) < 1000, "never comes to rest"


# ------------------------------------------------------------------------------ full rate


def test_at_full_rate_the_very_rows_come_out():
    sent, play = played(begin(), len(ROWS))
    assert sent.tobytes() == ROWS.tobytes()
    assert playback.finished(play, DT)


def test_it_is_finished_only_after_the_last_row():
    play = begin()
    for k in range(len(ROWS)):
        assert not playback.finished(play, DT)
        assert playback.row(play) == k
        play = playback.advance(play)
    assert playback.finished(play, DT)
    assert playback.row(play) == len(ROWS) - 1


def test_after_the_end_the_last_row_stays():
    _, play = played(begin(), len(ROWS) + 10)
    assert np.array_equal(playback.joints(play, DT), ROWS[-1])


# ------------------------------------------------------------------------------ the offset


@pytest.mark.parametrize("off_rad", [0.01, -0.01])
def test_the_offset_starts_at_the_held_joints_and_is_gone_after_its_time(off_rad):
    sent, _ = played(begin(HOME + off_rad), 300)
    assert np.array_equal(sent[0], HOME + off_rad)
    gone = round(FADE_S / DT)
    assert FADE_S >= 0.5
    assert np.all(np.abs(sent[gone - 2] - ROWS[gone - 2]) > 0.0)
    assert np.array_equal(sent[gone:], ROWS[gone:300])


def test_the_fading_offset_moves_no_faster_than_a_quintic_may():
    off = np.array([0.01, -0.01, 0.005, 0.0, 0.01, -0.002])
    sent, _ = played(begin(HOME + off), 300)
    fading = np.concatenate([np.tile(off, (3, 1)), sent - ROWS[:300]])
    figures = (  # largest derivatives of the quintic from 0 to 1 in 1: 15/8, 10/sqrt(3), 60
        ("speed rad/s", 1, 15.0 / 8.0 * 0.01 / FADE_S),
        ("acceleration rad/s^2", 2, 10.0 / math.sqrt(3.0) * 0.01 / FADE_S**2),
        ("jerk rad/s^3", 3, 60.0 * 0.01 / FADE_S**3),
    )
    for name, order, most in figures:
        value = float(np.max(np.abs(np.diff(fading, order, axis=0)))) / DT**order
        assert value <= most * 1.001, f"{name} {value}, limit {most}"


def test_planned_motion_and_offset_together_stay_inside_the_gates_limits():
    most = {1: 0.9 * 1.0 + 0.0375, 2: 0.9 * 5.0 + 0.231, 3: 0.9 * 100.0 + 4.81}
    gate = {1: 1.0, 2: 5.0, 3: 100.0}
    assert all(most[k] < gate[k] for k in most)
    sent, _ = played(begin(HOME + 0.01), len(ROWS))
    for order, limit in gate.items():
        value = float(np.max(np.abs(np.diff(sent, order, axis=0)))) / DT**order
        assert value <= limit, f"difference {order}: {value}, limit {limit}"


def test_a_stream_that_is_shorter_than_the_fade_ends_when_the_offset_is_gone():
    short = np.tile(HOME, (20, 1))
    play = begin(HOME + 0.01, short)
    _, play = played(play, 249)
    assert not playback.finished(play, DT)
    sent, play = played(play, 2)
    assert playback.finished(play, DT)
    assert np.array_equal(sent[-1], HOME)


# ------------------------------------------------------------------------------ slowing down


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.integers(1, len(ROWS) - 1))
def test_slowing_stays_on_the_way_and_within_the_deceleration_of_a_stop(row):
    sent, play = played(begin(), row)
    rest = slowed(play)
    off = off_the_way(rest, ROWS)
    assert off < 1e-12, f"{off} rad off the way, limit 1e-12"
    end = rest[-1:] if len(rest) else sent[-1:]
    motion = np.concatenate([sent[-2:], rest, end, end])
    dq = np.diff(motion, axis=0) / DT
    fastest = np.max(np.abs(dq), axis=1)
    # the last bit of speed, up to 10 rad/s^2 for one tick, is the gate's to brake
    hardest = float(np.max(np.abs(np.diff(dq, axis=0)))) / DT
    assert hardest <= 10.0 * (1 + 1e-6), f"{hardest} rad/s^2, limit 10"
    assert np.all(np.diff(fastest) <= 1e-12), "faster than the tick before"


def test_slowing_takes_as_long_as_the_speed_needs_at_the_profiles_acceleration():
    row = int(np.argmax(np.max(np.abs(np.diff(ROWS, axis=0)), axis=1)))
    speed = float(np.max(np.abs(ROWS[row + 1] - ROWS[row]))) / DT
    _, play = played(begin(), row + 1)
    seconds = len(slowed(play)) * DT
    ideal = speed / DEFAULT.joint_acceleration_rad_s2
    assert ideal * 0.95 <= seconds <= ideal * 1.05, f"{seconds} s, ideal {ideal} s"


def test_before_the_first_row_and_where_the_stream_rests_slowing_is_standing_still():
    assert len(slowed(begin())) == 0
    resting = np.concatenate([ROWS, np.repeat(ROWS[-1:], 50, axis=0)])
    _, play = played(begin(rows=resting), len(ROWS) + 20)
    assert len(slowed(play)) == 0


def test_slowing_on_the_last_row_ends_there():
    _, play = played(begin(), len(ROWS))
    assert len(slowed(play)) == 0


@pytest.mark.parametrize("row", [0, 1, 400])
def test_every_row_is_reached_once_however_slowly(row):
    _, play = played(begin(), 390)
    if row < 390:
        play = begin()
    reached = 0
    for tick in range(40):
        if tick > 3:
            play = playback.slow(play, replace(DEFAULT, joint_acceleration_rad_s2=0.05), DT)
        reached += playback.reaches(play, row)
        play = playback.advance(play)
    assert reached == 1


# ------------------------------------------------------------------------------ departures


def compared(play=None, q=None, openings=(0.0,), force=(0.0,)):
    play = begin() if play is None else play
    q = play.prediction.q_rad[playback.row(play)] if q is None else q
    return playback.compare(play, q, openings, force)


def test_what_is_as_predicted_departs_by_nothing():
    play, reason = compared()
    assert reason is None
    assert (play.departure.joint_rad, play.departure.force_n, play.departure.opening_m) == (0, 0, 0)


@pytest.mark.parametrize("joint", range(6))
@pytest.mark.parametrize(
    ("off", "ok"), [(0.0199, True), (-0.0199, True), (0.0201, False), (-0.0201, False)]
)
def test_a_joint_that_departs_is_reported(joint, off, ok):
    _, play = played(begin(), 100)
    q = play.prediction.q_rad[100].copy()
    q[joint] += off
    play, reason = compared(play, q)
    assert (reason is None) == ok
    assert ok or reason == "joints depart 0.0201 rad from the rehearsal, 0.02 allowed"
    assert play.departure.joint_rad == pytest.approx(abs(off))


@pytest.mark.parametrize(("force", "ok"), [(12.0, True), (12.1, False), (None, True)])
def test_a_force_that_departs_is_reported(force, ok):
    play, reason = compared(force=(force,))
    for _ in range(DEPART_FORCE_TICKS):
        assert reason is None
        play, reason = compared(play, force=(force,))
    assert (reason is None) == ok
    assert ok or reason == "force departs 12.1 N from the rehearsal, 12 allowed"
    assert play.departure.force_n == (force or 0.0)


def test_a_force_that_is_missing_departs_like_one_that_is_too_many():
    made = replace(MADE.prediction, force_n=frozen(np.full((len(ROWS), 1), 13.0)))
    play = replace(begin(), prediction=made, force_off_ticks=DEPART_FORCE_TICKS)
    assert "force departs 13.0 N" in compared(play)[1]


def test_a_force_that_departs_for_a_moment_is_reported_and_forgiven():
    play = begin()
    for force_n in (13.0, 13.0, 13.0, 11.0, 13.0):
        play, reason = compared(play, force=(force_n,))
        assert reason is None
    assert play.departure.force_n == 13.0
    assert play.force_off_ticks == 1


def test_fingers_depart_only_when_they_are_off_for_long():
    play = begin()
    for _ in range(DEPART_OPENING_TICKS):
        play, reason = compared(play, openings=(0.0031,))
        assert reason is None
    _, reason = compared(play, openings=(0.0031,))
    assert reason.startswith("fingers depart 3.1 mm from the rehearsal, 3 allowed")
    play, reason = compared(play, openings=(0.0029,))
    assert reason is None
    assert play.opening_off_ticks == 0
    assert play.departure.opening_m == 0.0031


@pytest.mark.parametrize(
    "measured",
    [
        {"q": np.where(np.arange(6) == 2, np.nan, HOME)},
        {"force": (math.nan,)},
        {"q": np.where(np.arange(6) == 2, np.inf, HOME)},
        {"force": (math.inf,)},
    ],
)
def test_what_is_not_a_number_departs(measured):
    _, reason = compared(**measured)
    assert reason is not None


def test_fingers_that_report_no_number_depart_like_fingers_elsewhere():
    play = begin()
    for _ in range(DEPART_OPENING_TICKS):
        play, reason = compared(play, openings=(math.nan,))
        assert reason is None
    assert compared(play, openings=(math.nan,))[1] is not None


def test_a_number_that_is_none_does_not_hide_the_largest_departure_so_far():
    play, _ = compared(force=(5.0,))
    play, _ = compared(play, force=(math.nan,))
    play, _ = compared(play, force=(3.0,))
    assert play.departure.force_n == 5.0


def test_what_cannot_be_measured_is_not_compared():
    play, reason = compared(openings=(None,), force=(None,))
    assert reason is None
    assert play.departure.opening_m == 0.0


def test_without_a_prediction_nothing_departs():
    play = replace(begin(), prediction=None)
    assert playback.compare(play, HOME + 1.0, (None,), (None,)) == (play, None)


def test_of_several_arms_the_worst_counts():
    two = cell(arms=2)
    made = rehearsal(two, stream(np.hstack([ROWS, ROWS]), arms=2))
    play = playback.begin("", made.stream, made.prediction, None, np.tile(HOME, 2))
    play = replace(play, force_off_ticks=DEPART_FORCE_TICKS)
    play, reason = playback.compare(play, np.tile(HOME, 2), (0.0, 0.0), (None, 12.5))
    assert "12.5 N" in reason
    q = np.tile(HOME, 2)
    q[11] += 0.03
    assert "0.0300 rad" in playback.compare(play, q, (None, None), (0.0, 0.0))[1]
