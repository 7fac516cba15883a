import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from brain.errors import ConfigError
from brain.limits import (
    DEFAULT,
    FAST,
    PROFILES,
    REAL_FIRST,
    follow,
    joint_speed,
    profile,
    soft_range,
)
from brain.motion import Motion, at_rest, brake, step_to
from tests.brain.arms import ur5e, z1
from tests.brain.cells import HOME
from tests.values import replace

DT = 0.002


def test_profiles_are_found_by_name():
    assert [profile(n) for n in ("default", "fast", "real_first")] == [DEFAULT, FAST, REAL_FIRST]
    assert set(PROFILES) == {"default", "fast", "real_first"}


def test_an_unknown_profile_is_refused_with_the_known_names():
    with pytest.raises(ConfigError, match="no profile 'slow'; allowed: default, fast, real_first"):
        profile("slow")


# One line for each figure: default, fast, real_first (DESIGN 5 and docs/safety.md).
FIGURES = {
    "tool_speed_m_s": (0.25, 0.75, 0.10),
    "joint_speed_rad_s": (1.0, 2.0, 0.4),
    "joint_acceleration_rad_s2": (5.0, 5.0, 2.0),
    "joint_jerk_rad_s3": (100.0, 100.0, 40.0),
    "stop_deceleration_rad_s2": (10.0, 10.0, 10.0),
    "soft_margin_rad": (0.05, 0.05, 0.05),
    "tracking_rad": (0.05, 0.05, 0.05),
    "force_n": (30.0, 30.0, 20.0),
    "clearance_stop_m": (0.004, 0.004, 0.004),
    "slow_from_m": (0.10, 0.10, 0.10),
    "slow_to": (0.2, 0.2, 0.2),
    "state_age_ns": (40_000_000, 40_000_000, 40_000_000),
    "hand_age_ns": (100_000_000, 100_000_000, 100_000_000),
    "seat_silent_ns": (200_000_000, 200_000_000, 200_000_000),
}


@pytest.mark.parametrize("name", FIGURES)
def test_the_profiles_have_the_figures_of_the_design(name):
    assert tuple(getattr(p, name) for p in (DEFAULT, FAST, REAL_FIRST)) == FIGURES[name]


def test_no_figure_is_left_out():
    assert {"name", *FIGURES} == set(DEFAULT.__slots__)


def test_planning_uses_ninety_percent_and_keeps_a_little_further_away():
    planning = DEFAULT.planning()
    assert planning.name == "default (planning)"
    assert planning.tool_speed_m_s == pytest.approx(0.225)
    assert planning.joint_speed_rad_s == pytest.approx(0.9)
    assert planning.joint_acceleration_rad_s2 == pytest.approx(4.5)
    assert planning.joint_jerk_rad_s3 == pytest.approx(90.0)
    assert planning.clearance_stop_m == pytest.approx(0.004 / 0.9)
    assert planning.slow_to == pytest.approx(0.18)
    unchanged = ("stop_deceleration_rad_s2", "tracking_rad", "force_n", "soft_margin_rad")
    assert [getattr(planning, n) for n in unchanged] == [getattr(DEFAULT, n) for n in unchanged]
    assert FAST.planning().joint_speed_rad_s == pytest.approx(1.8)


def test_planned_speed_stays_below_the_gates_at_every_clearance():
    planning = DEFAULT.planning()
    for clearance in np.linspace(-0.05, 0.2, 200):
        wanted = planning.tool_speed_m_s * planning.speed_share(float(clearance))
        allowed = DEFAULT.tool_speed_m_s * DEFAULT.speed_share(float(clearance))
        assert wanted < allowed, f"{wanted} m/s, limit {allowed}, at {clearance} m"


@pytest.mark.parametrize(
    ("clearance", "share"),
    [(0.1, 1.0), (5.0, 1.0), (0.052, 0.6), (0.004, 0.2), (-0.1, 0.2), (math.nan, 0.2)],
)
def test_the_speed_share_falls_with_the_clearance(clearance, share):
    assert DEFAULT.speed_share(clearance) == pytest.approx(share)


def test_joint_speed_is_the_lower_of_profile_and_maker():
    limits = replace(z1().limits, dq_max_rad_s=np.array([3.0, 0.5, 3.0, 3.0, 3.0, 3.0]))
    assert joint_speed(DEFAULT, limits).tolist() == [1.0, 0.5, 1.0, 1.0, 1.0, 1.0]


def test_the_soft_range_lies_inside_the_makers():
    limits = z1().limits
    low, high = soft_range(DEFAULT, limits)
    assert np.allclose(low - limits.q_min_rad, 0.05)
    assert np.allclose(limits.q_max_rad - high, 0.05)


# ------------------------------------------------------------------------------------ motion


def motion(dq) -> Motion:
    return Motion(q_rad=HOME, dq_rad_s=np.array(dq), ddq_rad_s2=np.zeros(6))


def test_a_step_has_the_differences_of_its_joints():
    after = step_to(motion([0.1, 0, 0, 0, 0, 0]), HOME + np.array([0.002, 0, 0, 0, 0, 0]), DT)
    assert after.dq_rad_s[0] == pytest.approx(1.0)
    assert after.ddq_rad_s2[0] == pytest.approx(450.0)
    assert not after.q_rad.flags.writeable


def test_braking_slows_the_fastest_joint_by_the_deceleration_and_keeps_the_direction():
    after = brake(motion([0.4, -0.2, 0, 0, 0, 0]), 10.0, DT)
    assert after.dq_rad_s[:2] == pytest.approx([0.38, -0.19])
    assert after.q_rad[0] == pytest.approx(HOME[0] + 0.38 * DT)


def test_the_last_bit_of_speed_goes_in_one_tick():
    after = brake(motion([0.02, 0, 0, 0, 0, 0]), 10.0, DT)
    assert not np.any(after.dq_rad_s)
    assert np.array_equal(after.q_rad, HOME)
    assert after.ddq_rad_s2[0] == pytest.approx(-10.0)
    resting = brake(after, 10.0, DT)
    assert not np.any(resting.ddq_rad_s2)
    assert brake(resting, 10.0, DT) is resting


# ---------------------------------------------------------------------------------- follower


def led(targets, speeds, share=lambda dq: 1.0, fastest=None) -> list[Motion]:
    at, out = at_rest(HOME), []
    fastest = joint_speed(DEFAULT, ur5e().limits) if fastest is None else fastest
    for target, speed in zip(targets, speeds, strict=True):
        at = follow(at, target, speed, DEFAULT, fastest, share, DT)
        out.append(at)
    return out


def worst(motions: list[Motion]) -> tuple[float, float, float]:
    dq = np.array([m.dq_rad_s for m in motions])
    ddq = np.array([m.ddq_rad_s2 for m in motions])
    jerk = np.diff(ddq, axis=0, prepend=np.zeros((1, 6))) / DT
    return tuple(float(np.max(np.abs(x))) for x in (dq, ddq, jerk))


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10_000))
def test_whatever_the_target_does_speed_acceleration_and_jerk_stay_within_limits(seed):
    rng = np.random.default_rng(seed)
    targets = np.repeat(HOME + rng.uniform(-1, 1, (8, 6)), 50, axis=0)
    speeds = np.repeat(rng.uniform(-3, 3, (8, 6)), 50, axis=0)
    speed, acceleration, jerk = worst(led(targets, speeds))
    assert speed <= 1.05, f"{speed} rad/s, limit 1.0 and 5 % overshoot"
    assert acceleration <= 5.0 * (1 + 1e-6), f"{acceleration} rad/s^2, limit 5"
    assert jerk <= 100.0 * (1 + 1e-6), f"{jerk} rad/s^3, limit 100"


def test_a_resting_goal_is_reached_and_hardly_overshot():
    motions = led([HOME + 0.3] * 1200, [np.zeros(6)] * 1200)
    off = float(np.max(np.abs(motions[-1].q_rad - HOME - 0.3)))
    over = max(float(np.max(m.q_rad - HOME - 0.3)) for m in motions)
    assert off < 1e-6, f"{off} rad away, limit 1e-6"
    assert over < 0.005, f"overshot by {over} rad, limit 0.005"


@pytest.mark.parametrize("goal", [(0.8, 0, 0, 0, 0, 0), (-0.1, 0.9, 0.01, 0, 0, 0)])
def test_one_joint_that_goes_far_overshoots_no_more_than_all_together(goal):
    goal = np.array(goal)
    motions = led([HOME + goal] * 1500, [np.zeros(6)] * 1500)
    over = max(float(np.max((m.q_rad - HOME - goal) * np.sign(goal))) for m in motions)
    assert over < 0.005, f"overshot by {over} rad, limit 0.005"


def test_near_its_goal_the_error_falls_like_two_equal_lags_of_a_twentieth_of_a_second():
    motions = led([HOME + 0.01] * 400, [np.zeros(6)] * 400)
    left = [0.01 - float(m.q_rad[0] - HOME[0]) for m in motions]
    ratio = left[200] / left[150]  # from 0.3 s to 0.4 s
    ideal = (1.0 + 20.0 * 0.4) / (1.0 + 20.0 * 0.3) * math.exp(-20.0 * 0.1)
    assert ratio == pytest.approx(ideal, rel=0.15), f"{ratio}, ideal {ideal}"


def test_each_joint_stays_within_its_own_speed():
    own = np.array([0.5, 0.1, 0.5, 0.5, 0.5, 0.25])
    goal = HOME + np.array([1.0, 0.2, 0.0, 0.0, 0.0, 0.4])
    dq = np.max(
        np.abs([m.dq_rad_s for m in led([goal] * 900, [np.zeros(6)] * 900, fastest=own)]), axis=0
    )
    assert np.all(dq <= own * 1.05), f"{dq} rad/s, limits {own} and 5 %"
    assert np.max(dq / own) > 0.95


def test_a_resting_goal_is_reached_in_reasonable_time():
    motions = led([HOME + 0.5] * 2000, [np.zeros(6)] * 2000)
    arrived = next(i for i, m in enumerate(motions) if np.max(np.abs(m.q_rad - HOME - 0.5)) < 0.005)
    ideal = 0.5 / 1.0 + 1.0 / 5.0 + 5.0 / 100.0  # speed, acceleration and jerk phases
    assert arrived * DT < 1.6 * ideal, f"{arrived * DT} s, ideal {ideal} s"


def test_a_moving_goal_is_followed_closely():
    t = np.arange(3000) * DT
    targets = [HOME + 0.25 * math.sin(math.pi * x) for x in t]
    speeds = [np.full(6, 0.25 * math.pi * math.cos(math.pi * x)) for x in t]
    lag = max(
        float(np.max(np.abs(m.q_rad - target)))
        for m, target in list(zip(led(targets, speeds), targets, strict=True))[1000:]
    )
    assert lag < 0.01, f"{lag} rad, limit 0.01"


def test_all_joints_stay_on_one_straight_way():
    goal = HOME + np.array([0.8, -0.4, 0.2, 0.1, 0.0, 0.4])
    for m in led([goal] * 600, [np.zeros(6)] * 600):
        way = m.q_rad - HOME
        assert np.allclose(way, way[0] * (goal - HOME) / 0.8, atol=1e-12)


def test_the_tools_share_slows_all_joints_alike():
    half = led([HOME + 2.0] * 300, [np.zeros(6)] * 300, share=lambda dq: 0.25)
    assert worst(half)[0] == pytest.approx(0.25, rel=0.04)
