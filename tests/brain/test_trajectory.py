import math

import numpy as np
import pytest
import ruckig
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from brain.body import place, pose, work
from brain.certify import certify, path_at
from brain.curve import SHORT_RAD, distinct, rounded, smooth
from brain.distance import obstacles
from brain.limits import DEFAULT, joint_speed
from brain.planner import plan
from brain.trajectory import (
    overshoot,
    time_path,
    time_rows,
    tool_positions,
)
from brain.world import make_world
from tests.brain.plain_distance import box, q_range, scene, ur5e_with_spheres
from tests.values import replace

ARM = ur5e_with_spheres()
BODY = place(ARM, np.eye(4))
LIMITS = DEFAULT.planning()
UNHURRIED = replace(LIMITS, tool_speed_m_s=100.0)
TICK_S = 0.002
REACH_M = BODY.arrays.reach_m.max(axis=1)


def random_path(rng, legs, size=1.0):
    return np.cumsum(rng.uniform(-size, size, (legs + 1, 6)), axis=0)


def shares_of_limits(q, limits, tick_s=TICK_S):
    """Largest speed, acceleration, jerk and tool speed of rows, each over its limit."""
    padded = np.concatenate([q[:1], q[:1], q[:1], q, q[-1:], q[-1:]])
    tool = np.linalg.norm(np.diff(tool_positions(BODY, q), axis=0), axis=1)
    return {
        "speed": np.max(np.abs(np.diff(padded, 1, axis=0)) / joint_speed(limits, ARM.limits))
        / tick_s,
        "acceleration": np.abs(np.diff(padded, 2, axis=0)).max()
        / tick_s**2
        / limits.joint_acceleration_rad_s2,
        "jerk": np.abs(np.diff(padded, 3, axis=0)).max() / tick_s**3 / limits.joint_jerk_rad_s3,
        "tool speed": tool.max(initial=0.0) / tick_s / limits.tool_speed_m_s,
    }


@pytest.mark.parametrize("limits", [LIMITS, UNHURRIED], ids=["default", "joints only"])
def test_no_row_is_over_a_limit(limits):
    rng = np.random.default_rng(1)
    worst = dict.fromkeys(("speed", "acceleration", "jerk", "tool speed"), 0.0)
    for trial in range(25):
        path = random_path(rng, 1 + trial % 5, (0.01, 0.1, 1.0)[trial % 3])
        q = time_path(path, BODY, limits, TICK_S, tolerance_m=(0.001, 0.01)[trial % 2]).q_rad
        for name, share in shares_of_limits(q, limits).items():
            worst[name] = max(worst[name], float(share))
    for name, share in worst.items():
        print(f"{name} {100 * share:.2f} % of its limit")
    assert max(worst.values()) <= 1.0 + 1e-6


@settings(deadline=None, max_examples=25)
@given(
    st.lists(st.lists(st.floats(-1.5, 1.5), min_size=6, max_size=6), min_size=1, max_size=5),
    st.sampled_from([0.001, 0.002, 0.004, 0.008]),
)
def test_rows_begin_and_end_exactly_at_rest_and_keep_every_limit(points, tick_s):
    path = np.array(points)
    found = time_path(path, BODY, LIMITS, tick_s)
    assert found.q_rad[0].tobytes() == path[0].tobytes()
    assert found.q_rad[-1].tobytes() == path[-1].tobytes()
    assert max(shares_of_limits(found.q_rad, LIMITS, tick_s).values()) <= 1.0 + 1e-6


def test_a_path_of_no_length_is_one_row():
    q = np.array([0.1, -1.0, 1.0, 0.0, 0.5, 0.0])
    for path in (q[None], np.tile(q, (3, 1))):
        for found in (time_path(path, BODY, LIMITS, TICK_S), time_rows(path, BODY, LIMITS, TICK_S)):
            np.testing.assert_array_equal(found.q_rad, q[None])
            assert found.duration_s == 0.0


@settings(deadline=None, max_examples=100)
@given(st.lists(st.sampled_from([0.0, 4e-10, 8e-10, 1.2e-9, 0.1]), min_size=1, max_size=8))
def test_points_that_are_kept_are_apart_and_end_where_the_path_ends(values):
    path = np.zeros((len(values), 6))
    path[:, 2] = values
    kept = distinct(path)
    assert (np.linalg.norm(np.diff(kept, axis=0), axis=1) > SHORT_RAD).all()
    np.testing.assert_array_equal(kept[0], path[0])
    if len(kept) > 1:
        np.testing.assert_array_equal(kept[-1], path[-1])
    found = time_path(path, BODY, LIMITS, TICK_S).q_rad
    np.testing.assert_array_equal(found[[0, -1]], path[[0, -1]])


def test_repeated_points_and_ways_back_are_no_trouble():
    a, b = np.zeros(6), np.array([0.5, -0.2, 0.1, 0.0, 0.3, 0.0])
    found = time_path(np.stack([a, a, b, b, a, b]), BODY, LIMITS, TICK_S)
    assert max(shares_of_limits(found.q_rad, LIMITS).values()) <= 1.0 + 1e-6


def test_a_straight_move_takes_little_longer_than_the_fastest_one():
    rng = np.random.default_rng(2)
    ratios = []
    for size in (1e-4, 1e-3, 1e-2, 0.1, 1.0) * 6:
        path = rng.uniform(-size, size, (2, 6))
        ideal = ruckig.InputParameter(6)
        ideal.current_position, ideal.target_position = path.tolist()
        ideal.max_velocity = joint_speed(LIMITS, ARM.limits).tolist()
        ideal.max_acceleration = [LIMITS.joint_acceleration_rad_s2] * 6
        ideal.max_jerk = [LIMITS.joint_jerk_rad_s3] * 6
        fastest = ruckig.Trajectory(6)
        ruckig.Ruckig(6).calculate(ideal, fastest)
        found = time_path(path, BODY, UNHURRIED, TICK_S)
        ratios.append(found.duration_s / (math.ceil(fastest.duration / TICK_S) * TICK_S))
    print(
        f"duration over the fastest: {np.median(ratios):.3f}, at most {max(ratios):.3f}, limit 1.1"
    )
    assert max(ratios) < 1.1


def test_the_tool_uses_the_speed_it_may_use():
    rng = np.random.default_rng(3)
    shares = []
    for _ in range(10):
        path = random_path(rng, 1)
        found = time_path(path, BODY, LIMITS, TICK_S)
        p = tool_positions(BODY, found.q_rad)
        speed = np.linalg.norm(np.diff(p, axis=0), axis=1) / TICK_S / LIMITS.tool_speed_m_s
        joints = (
            np.abs(np.diff(found.q_rad, axis=0)).max(axis=1) / TICK_S / LIMITS.joint_speed_rad_s
        )
        shares.append(float(np.median(np.maximum(speed, joints))))
    print(f"median share of the binding limit {min(shares):.2f}, at least 0.8")
    assert min(shares) > 0.8


@pytest.mark.parametrize("tolerance_m", [0.001, 0.005, 0.02])
def test_a_rounded_corner_leaves_the_way_by_no_more_than_the_tolerance(tolerance_m):
    rng = np.random.default_rng(4)
    at, on_way, worst, corners = work(BODY), work(BODY), 0.0, 0
    for _ in range(4):
        curve = rounded(random_path(rng, 3), REACH_M, tolerance_m)
        bent = np.flatnonzero(np.abs(curve.coefficient[:, 3]).max(axis=1))
        for a, b in zip(curve.start[bent], curve.start[bent + 1], strict=True):
            corners += 1
            first, last = curve.at(a), curve.at(b)
            corner = first + 0.5 * (b - a) * curve.at(a, 1)
            np.testing.assert_allclose(corner, last - 0.5 * (b - a) * curve.at(b, 1), atol=1e-12)
            centres = []
            for q in [path_at(np.stack([first, corner, last]), u) for u in np.linspace(0, 2, 301)]:
                pose(BODY.arrays, q, on_way)
                centres.append(on_way.centre_m.copy())
            for s in np.linspace(a, b, 41):
                pose(BODY.arrays, curve.at(s), at)
                off = np.linalg.norm(np.array(centres) - at.centre_m, axis=2)
                worst = max(worst, float(off.max(axis=1).min()))
    print(f"off the way by {1000 * worst:.2f} mm, tolerance {1000 * tolerance_m:.0f} mm")
    assert corners == 8
    assert 0.1 * tolerance_m < worst <= tolerance_m


@settings(deadline=None, max_examples=50)
@given(
    st.lists(st.lists(st.floats(-1.0, 1.0), min_size=6, max_size=6), min_size=2, max_size=6),
    st.sampled_from([0.001, 0.05]),
)
def test_a_rounded_way_is_twice_continuously_differentiable(points, tolerance_m):
    path = np.array(points)
    assume(np.linalg.norm(np.diff(path, axis=0), axis=1).max() > 1e-6)
    curve = rounded(path, REACH_M, tolerance_m)
    np.testing.assert_allclose(curve.at(0.0), path[0], atol=1e-12)
    np.testing.assert_allclose(curve.at(curve.length), path[-1], atol=1e-9)
    inner = curve.start[1:-1]
    beside = [np.maximum(inner - 1e-12, 0.0), inner + 1e-12]
    # Between the two the next derivative alone changes it: on either side it may be very large.
    size = max(1.0, *(np.abs(curve.at(s, 3)).max(initial=0.0) for s in beside))
    for derivative in (0, 1, 2):
        left, right = (curve.at(s, derivative) for s in beside)
        assert np.abs(left - right).max(initial=0.0) <= 1e-8 + 1e-9 * size


def test_a_spline_goes_through_its_rows():
    rng = np.random.default_rng(5)
    rows = np.cumsum(rng.normal(0.0, 0.01, (50, 6)), axis=0)
    curve = smooth(rows)
    np.testing.assert_allclose(curve.at(curve.start), rows, atol=1e-12)


def test_the_tool_slows_down_near_obstacles_as_the_profile_says():
    start = np.array([-0.7, -1.2, 1.6, -2.0, -1.57, 0.0])
    path = np.stack([start, start + [1.4, 0, 0, 0, 0, 0]])
    beside = tool_positions(BODY, np.array([path_at(path, 0.5)]))[0]
    beside[2] -= 0.045
    near = obstacles(make_world((box("post", tuple(beside), (0.02, 0.02, 0.02)),)))
    found = time_path(path, BODY, LIMITS, TICK_S, near)
    speed = np.linalg.norm(np.diff(tool_positions(BODY, found.q_rad), axis=0), axis=1) / TICK_S
    allowed = LIMITS.tool_speed_m_s * np.array([LIMITS.speed_share(c) for c in found.clearance_m])
    print(f"tool speed at most {100 * np.max(speed / allowed[1:]):.2f} % of what clearance allows")
    assert found.clearance_m.min() < 0.03
    assert np.max(speed / allowed[1:]) <= 1.0 + 1e-6
    assert speed[found.clearance_m[1:] < 0.03].max() < 0.5 * LIMITS.tool_speed_m_s
    assert found.duration_s > 1.2 * time_path(path, BODY, LIMITS, TICK_S).duration_s


def test_a_timed_plan_still_keeps_its_margin():
    world, start, goals = scene("bin")
    near = obstacles(world)
    for seed in range(3):
        way = plan(
            BODY, near, start, goals, q_range(ARM), seed=seed, iterations=400, margin_m=0.015
        )
        rows = time_path(way.path_rad, BODY, LIMITS, TICK_S, near, tolerance_m=0.005).q_rad
        found = certify(BODY, near, rows)
        print(f"certified {1000 * found.certified_m:.1f} mm, needed 10 mm")
        assert found.certified_m >= 0.010


def test_the_same_path_gives_the_same_rows_bit_for_bit():
    path = random_path(np.random.default_rng(6), 4)
    first, second = (time_path(path, BODY, LIMITS, TICK_S).q_rad.tobytes() for _ in range(2))
    assert first == second


def test_overshoot_says_by_how_much_a_motion_must_slow_down():
    q = time_path(random_path(np.random.default_rng(7), 2), BODY, LIMITS, TICK_S).q_rad
    assert overshoot(q, BODY, LIMITS, TICK_S, None) <= 1.0 + 1e-9
    faster = replace(LIMITS, tool_speed_m_s=LIMITS.tool_speed_m_s / 2)
    assert overshoot(q, BODY, faster, TICK_S, None) == pytest.approx(2.0, rel=0.05)
