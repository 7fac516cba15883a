import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from brain import retarget
from brain.geometry import frozen, rotation_angle, rotvec_to_matrix, transform
from brain.retarget import BETA, EXTRAPOLATE_NS, JUMP_M, JUMP_RAD, MIN_CUTOFF_HZ, SPEED_CUTOFF_HZ
from brain.types import OperatorInput
from tests.values import replace

MS = 1_000_000
FRAME_NS = 11_111_111
"""90 Hz."""
PLACE = np.array([0.3, -0.2, 1.1])

turns = st.tuples(*[st.floats(-3.0, 3.0)] * 3).map(np.array)
places = st.tuples(*[st.floats(-2.0, 2.0)] * 3).map(np.array)
poses = st.builds(lambda p, v: transform(p, rotvec_to_matrix(v)), places, turns)


def sample(T_seat_hand=None, tracked: bool = True) -> OperatorInput:
    T_seat_hand = transform(PLACE) if T_seat_hand is None else T_seat_hand
    return OperatorInput(
        t_ns=0,
        seq=0,
        expires_ns=1,
        source="headset",
        tracked=tracked,
        T_seat_hand=T_seat_hand,
        engaged=True,
        grip=None,
        arm="ur0",
    )


def hand(T_seat_hand=None) -> retarget.Hand:
    return retarget.first(0, transform(PLACE) if T_seat_hand is None else T_seat_hand)


# ------------------------------------------------------------------------------ gates


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (replace(sample(), T_seat_hand=None), "the hand is not tracked"),
        (sample(tracked=False), "the hand is not tracked"),
        (sample(np.eye(3)), "the hand's pose is not finite"),
        (sample(transform((math.nan, 0, 1))), "the hand's pose is not finite"),
        (sample(transform((math.inf, 0, 1))), "the hand's pose is not finite"),
        (sample(transform(PLACE, np.full((3, 3), math.nan))), "the hand's pose is not finite"),
        (sample(transform(PLACE, 1.001 * np.eye(3))), "the hand's rotation is not a rotation"),
        (sample(transform(PLACE, np.zeros((3, 3)))), "the hand's rotation is not a rotation"),
        (sample(transform(PLACE, -np.eye(3))), "the hand's rotation is not a rotation"),
        (sample(transform((0.0, 0.0, 0.0))), "the hand's position is missing"),
    ],
)
def test_what_is_no_pose_is_refused_before_and_after_engaging(bad, reason):
    assert retarget.refuse(bad, None) == reason
    assert retarget.refuse(bad, hand()) == reason


@given(poses, poses)
@settings(max_examples=50, derandomize=True)
def test_before_engaging_any_true_pose_will_do(first, second):
    assert retarget.refuse(sample(first), None) is None or not np.any(first[:3, 3])
    assert retarget.refuse(sample(first), hand(first)) is None or not np.any(first[:3, 3])


@given(turns.filter(lambda v: np.linalg.norm(v) > 0.1), st.booleans())
@settings(max_examples=50, derandomize=True)
def test_a_jump_is_refused_beyond_ten_centimetres_whatever_its_direction(way, beyond):
    way = way / np.linalg.norm(way) * JUMP_M * (1.001 if beyond else 0.999)
    reason = retarget.refuse(sample(transform(PLACE + way)), hand())
    assert reason == ("the hand jumped 10 cm in one frame" if beyond else None)


@given(turns.filter(lambda v: np.linalg.norm(v) > 0.1), turns, st.booleans())
@settings(max_examples=50, derandomize=True)
def test_a_turn_is_refused_beyond_thirty_degrees_about_whatever_axis(axis, held, beyond):
    turn = axis / np.linalg.norm(axis) * JUMP_RAD * (1.001 if beyond else 0.999)
    before = transform(PLACE, rotvec_to_matrix(held))
    after = transform(PLACE, rotvec_to_matrix(turn) @ before[:3, :3])
    reason = retarget.refuse(sample(after), hand(before))
    assert reason == ("the hand turned 30 deg in one frame" if beyond else None)


def test_a_jump_is_measured_from_the_raw_hand_not_from_the_lagging_filter():
    now, at = hand(), PLACE.copy()
    for k in range(1, 30):
        at = at + np.array([0.09, 0.0, 0.0])
        assert retarget.refuse(sample(transform(at)), now) is None
        now = retarget.follow(now, k * FRAME_NS, transform(at))
    assert float(np.linalg.norm(now.position_m - at)) > 0.0


# ------------------------------------------------------------------------------ filter


def run(points: np.ndarray, frame_ns: int = FRAME_NS) -> np.ndarray:
    now, out = retarget.first(0, transform(points[0])), [points[0]]
    for k, p in enumerate(points[1:], start=1):
        now = retarget.follow(now, k * frame_ns, transform(p))
        out.append(now.position_m)
    return np.array(out)


def one_euro(x: np.ndarray, dt_s: float) -> np.ndarray:
    """The filter as its authors write it, for one number (Casiez et al. 2012, appendix)."""

    def alpha(cutoff_hz: float) -> float:
        tau = 1.0 / (2.0 * math.pi * cutoff_hz)
        return 1.0 / (1.0 + tau / dt_s)

    out, rate, last = [x[0]], 0.0, x[0]
    for value in x[1:]:
        rate += alpha(SPEED_CUTOFF_HZ) * ((value - last) / dt_s - rate)
        last = value
        a = alpha(MIN_CUTOFF_HZ + BETA * abs(rate))
        out.append(a * value + (1.0 - a) * out[-1])
    return np.array(out)


def test_along_one_axis_the_filter_is_the_published_one():
    rng = np.random.default_rng(3)
    x = 1.0 + np.cumsum(rng.normal(0.0, 0.005, 300))
    ours = run(np.column_stack([x, np.full(300, 0.4), np.full(300, 1.0)]))
    assert np.max(np.abs(ours[:, 0] - one_euro(x, FRAME_NS * 1e-9))) < 1e-12
    assert np.array_equal(ours[:, 1], np.full(300, 0.4))


def test_about_one_axis_turns_are_filtered_like_positions():
    angles = 0.4 * np.sin(np.arange(200) * 0.03)
    now, out = (
        hand(transform(PLACE, rotvec_to_matrix(np.array([0.0, 0.0, angles[0]])))),
        [angles[0]],
    )
    for k, a in enumerate(angles[1:], start=1):
        T = transform(PLACE, rotvec_to_matrix(np.array([0.0, 0.0, a])))
        now = retarget.follow(now, k * FRAME_NS, T)
        out.append(math.atan2(now.rotation[1, 0], now.rotation[0, 0]))
    assert np.max(np.abs(np.array(out) - one_euro(angles, FRAME_NS * 1e-9))) < 1e-12


def minimum_jerk(t_s: np.ndarray, far_m: float, in_s: float) -> np.ndarray:
    u = np.clip(t_s / in_s, 0.0, 1.0)
    return far_m * u**3 * (10.0 - 15.0 * u + 6.0 * u * u)


def test_a_reach_of_30_cm_is_followed_with_less_than_15_ms_of_lag():
    t_s = np.arange(180) * FRAME_NS * 1e-9
    x = minimum_jerk(t_s, 0.3, 1.0)
    out = run(np.column_stack([1.0 + x, x, x]))[:, 0] - 1.0
    half = [float(np.interp(0.15, y[: 2 * 90], t_s[: 2 * 90])) for y in (x, out)]
    lag_ms = 1000 * (half[1] - half[0])
    assert 0.0 < lag_ms < 15.0, f"{lag_ms} ms, limit 15"


def test_tremor_of_a_still_hand_is_more_than_halved():
    rng = np.random.default_rng(4)
    noise = rng.normal(0.0, 3e-4, (900, 3))
    out = run(PLACE + noise)[90:]
    ratio = float(np.std(out - out.mean(axis=0)) / np.std(noise[90:]))
    assert ratio < 0.5, f"{ratio} of the tremor left, limit 0.5"


@given(st.integers(-1000, 0))
@settings(max_examples=20, derandomize=True)
def test_an_equal_or_older_time_stamp_changes_nothing(dt_ns):
    now = retarget.follow(hand(), FRAME_NS, transform(PLACE + 0.01))
    assert retarget.follow(now, FRAME_NS + dt_ns, transform(PLACE + 0.05)) is now


def test_a_still_hand_stays_bit_for_bit():
    now = hand()
    for k in range(1, 50):
        now = retarget.follow(now, k * FRAME_NS, transform(PLACE))
    assert np.array_equal(now.position_m, PLACE)
    assert np.array_equal(now.rotation, np.eye(3))
    assert not np.any(now.speed_m_s)
    assert not np.any(now.turn_rad_s)


@given(st.lists(turns, min_size=2, max_size=8), st.integers(1, 40))
@settings(max_examples=50, deadline=None, derandomize=True)
def test_whatever_the_hand_does_the_filtered_rotation_is_a_rotation_between_the_two(vectors, ms):
    now = hand(transform(PLACE, rotvec_to_matrix(vectors[0])))
    for k, v in enumerate(vectors[1:], start=1):
        R = rotvec_to_matrix(v)
        before = rotation_angle(now.rotation, R)
        now = retarget.follow(now, k * ms * MS, transform(PLACE, R))
        assert np.max(np.abs(now.rotation @ now.rotation.T - np.eye(3))) < 1e-12
        after = rotation_angle(now.rotation, R)
        assert after <= before + 1e-9, f"{after} rad from the hand, was {before}"


# ------------------------------------------------------------------------------ clutch


@given(poses, poses, turns, st.floats(0.1, 3.0))
@settings(max_examples=60, deadline=None, derandomize=True)
def test_at_the_engage_the_wanted_tool_is_the_tool(T_hand, T_tool, axes, scale):
    now = hand(T_hand)
    clutch = retarget.engage(now, T_tool, scale)
    wanted = retarget.wanted_tool(clutch, now, rotvec_to_matrix(axes), 0)
    assert np.array_equal(wanted[:3, 3], T_tool[:3, 3])
    assert np.max(np.abs(wanted - T_tool)) < 1e-14


@given(poses, poses, poses, turns, st.floats(0.1, 3.0))
@settings(max_examples=60, deadline=None, derandomize=True)
def test_the_clutch_carries_differences_over_in_the_seats_axes(T_from, T_to, T_tool, axes, scale):
    R = rotvec_to_matrix(axes)
    clutch = retarget.engage(hand(T_from), T_tool, scale)
    wanted = retarget.wanted_tool(clutch, hand(T_to), R, 0)
    moved = R.T @ (wanted[:3, 3] - T_tool[:3, 3])
    assert np.allclose(moved, scale * (T_to[:3, 3] - T_from[:3, 3]), atol=1e-12)
    turned = R.T @ wanted[:3, :3] @ T_tool[:3, :3].T @ R
    assert np.allclose(turned, T_to[:3, :3] @ T_from[:3, :3].T, atol=1e-12)
    assert np.array_equal(wanted[3], [0.0, 0.0, 0.0, 1.0])


def test_a_hand_that_moves_to_its_front_moves_the_tool_along_the_seats_front():
    R = rotvec_to_matrix(np.array([0.0, 0.0, math.pi / 2]))  # the seat's x is the base's y
    clutch = retarget.engage(hand(), transform((0.5, 0.0, 0.3)), 1.0)
    wanted = retarget.wanted_tool(clutch, hand(transform(PLACE + [0.1, 0.0, 0.0])), R, 0)
    assert np.allclose(wanted[:3, 3], [0.5, 0.1, 0.3])


@given(poses, poses, poses)
@settings(max_examples=30, deadline=None, derandomize=True)
def test_where_the_operator_stands_does_not_matter(T_hand, T_tool, T_elsewhere):
    step = transform((0.05, 0.02, -0.01), rotvec_to_matrix(np.array([0.1, 0.0, 0.2])))
    out = []
    for at in (T_hand[:3, 3], T_hand[:3, 3] + T_elsewhere[:3, 3]):
        start = transform(at, T_hand[:3, :3])
        end = transform(at + step[:3, 3], step[:3, :3] @ T_hand[:3, :3])
        clutch = retarget.engage(hand(start), T_tool, 1.0)
        out.append(retarget.wanted_tool(clutch, hand(end), np.eye(3), 0))
    assert np.allclose(out[0], out[1], atol=1e-9)


# ------------------------------------------------------------------------------ gaps

SPEED = np.array([0.4, 0.0, -0.3])
TURN = np.array([0.0, 0.5, 0.0])


def ahead(gap_ns: int) -> tuple[np.ndarray, float]:
    """How far the wanted tool is carried on over a gap, and how far it is turned."""
    now = replace(hand(), speed_m_s=frozen(SPEED), turn_rad_s=frozen(TURN))
    clutch = retarget.engage(now, np.eye(4), 1.0)
    wanted = retarget.wanted_tool(clutch, now, np.eye(3), gap_ns)
    return wanted[:3, 3], rotation_angle(np.eye(4), wanted)


@pytest.mark.parametrize("gap_ms", [0, 1, 20, 50])
def test_over_a_short_gap_the_hand_is_carried_on_with_its_speed(gap_ms):
    moved, turned = ahead(gap_ms * MS)
    assert np.allclose(moved, SPEED * gap_ms * 1e-3, atol=1e-15)
    assert turned == pytest.approx(0.5 * gap_ms * 1e-3, abs=1e-9)


@given(st.integers(EXTRAPOLATE_NS, 10**12))
@settings(max_examples=30, derandomize=True)
def test_over_a_long_gap_the_hand_stays_where_it_is_after_50_ms(gap_ns):
    moved, turned = ahead(gap_ns)
    assert np.array_equal(moved, ahead(50 * MS)[0])
    assert turned == ahead(50 * MS)[1]


@given(st.integers(-(10**12), 0))
@settings(max_examples=30, derandomize=True)
def test_a_hand_that_is_fresh_is_not_carried_on(gap_ns):
    moved, turned = ahead(gap_ns)
    assert not np.any(moved)
    assert turned == 0.0
