"""Verdicts of strokes against dense sampling."""

from __future__ import annotations

import math

import numpy as np
import pytest

from brain.body import place, work
from brain.certify import path_at
from brain.clearing import RAMP_M, changed, sides_of
from brain.distance import arm_clearance, nearest, obstacles
from brain.errors import ConfigError
from brain.geometry import rotvec_to_matrix, transform
from brain.kinematics import tool_pose
from brain.path_verdict import ENOUGH_M, TOUCH_M, Change, _march, first_below, path_verdict
from brain.planner_edges import lanes
from brain.rehearsal import NEAR_M
from brain.stroke import stroke_verdict
from brain.stroke_path import joints_along, resample
from brain.world import make_world
from tests.brain.plain_distance import arm_distance, box, random_world, ur5e_with_spheres

ARM = ur5e_with_spheres()
T_WORLD_BASE = transform((0.0, 0.1, 0.0))
BODY = place(ARM, T_WORLD_BASE)
Q = np.array([0.0, -1.2, 1.6, -2.0, -1.57, 0.0])
NO_PAIRS = np.zeros((0, 2), dtype=np.int64)


def straight(to, count=60):
    start = tool_pose(ARM, Q)
    poses = np.repeat(start[None], count, axis=0)
    poses[:, :3, 3] += np.linspace(0.0, 1.0, count)[:, None] * np.array(to)
    return poses


def joints(poses):
    drawn, _, _ = resample(np.concatenate([tool_pose(ARM, Q)[None], poses]))
    path, end, _, _ = joints_along(BODY, Q, drawn)
    return drawn, path[:end]


def dense(world, path, count=150):
    rows = np.linspace(0.0, len(path) - 1.0, count)
    return rows, np.array(
        [
            arm_distance(ARM, ARM.spheres, NO_PAIRS, world, T_WORLD_BASE, path_at(path, u))
            for u in rows
        ]
    )


def block(at, half=(0.03, 0.03, 0.1)):
    tool = (T_WORLD_BASE @ tool_pose(ARM, Q))[:3, 3]
    return make_world((box("shelf", tuple(tool + np.array(at)), half),))


def test_nothing_is_safe_that_a_dense_check_finds_nearer_than_the_margin():
    rng, kinds = np.random.default_rng(1), set()
    for _ in range(30):
        world = random_world(rng, 2)
        poses = straight(rng.uniform(-0.25, 0.25, 3))
        found = stroke_verdict(BODY, obstacles(world), Q, poses)
        _, path = joints(poses)
        _, gaps = dense(world, path)
        kinds.add(found.kind)
        if found.kind == "safe":
            assert gaps.min() >= NEAR_M
        if gaps.min() < 0.0:
            assert found.kind == "contact"
    assert {"safe", "contact"} <= kinds


def test_the_first_contact_is_where_a_dense_check_finds_it():
    world, poses = block((0.0, 0.3, 0.0)), straight((0.0, 0.5, 0.0))
    found = stroke_verdict(BODY, obstacles(world), Q, poses)
    _, path = joints(poses)
    rows, gaps = dense(world, path, 500)
    assert found.kind == "contact"
    assert found.place is not None
    assert found.place.against == "shelf"
    assert found.row == pytest.approx(rows[np.argmax(gaps <= 0.001)], abs=0.15)
    assert found.place.normal[1] < -0.7


def test_a_proposed_change_passes_the_dense_check():
    world, poses = block((0.0, 0.3, 0.0)), straight((0.0, 0.5, 0.0))
    found = stroke_verdict(BODY, obstacles(world), Q, poses)
    print(found.sentence())
    assert found.change is not None
    drawn, _ = joints(poses)
    moved = changed(drawn, found.change, sides_of(BODY, drawn, found.place.normal))
    path, end, _, _ = joints_along(BODY, Q, moved)
    assert end == len(moved)
    assert dense(world, path, 400)[1].min() >= NEAR_M
    assert f"touches shelf at {100 * found.along_m:.0f} cm of the path; go" in found.sentence()


def test_left_is_left_as_seen_along_the_stroke():
    drawn, _ = joints(straight((0.0, 0.4, 0.0)))
    ways = sides_of(BODY, drawn, np.array((0.0, 0.0, -1.0)))
    np.testing.assert_allclose(ways["left"], (-1.0, 0.0, 0.0), atol=1e-9)
    np.testing.assert_allclose(ways["up"], (0.0, 0.0, 1.0), atol=1e-9)
    np.testing.assert_allclose(ways["away"], (0.0, 0.0, -1.0), atol=1e-9)


def test_a_wall_all_round_is_cleared_by_no_small_change():
    found = stroke_verdict(
        BODY, obstacles(block((0.0, 0.3, 0.0), (2.0, 0.02, 2.0))), Q, straight((0.0, 0.5, 0.0))
    )
    assert found.kind == "contact"
    assert found.change is None
    assert found.sentence().endswith("no small change clears it")


def test_what_cannot_be_followed_says_which_pose_and_why():
    near = obstacles(make_world(()))
    for to in ((-15.0, 0.0, 0.0), (0.0, 0.0, 1.5)):
        found = stroke_verdict(BODY, near, Q, straight(to))
        assert found.kind == "unreachable"
        assert found.reason.startswith("pose ")
        assert found.sentence().startswith("unreachable at ")


def test_a_start_in_collision_says_which_link_and_what():
    found = stroke_verdict(
        BODY, obstacles(block((0.0, 0.0, 0.0), (0.1, 0.1, 0.1))), Q, straight((0.0, 0.1, 0.0))
    )
    assert (found.kind, found.row, found.place.against) == ("contact", 0.0, "shelf")
    assert found.place.link > 0


def test_unseen_space_is_not_safe():
    near, poses = obstacles(make_world(())), straight((0.0, 0.3, 0.0))
    dark = (T_WORLD_BASE @ tool_pose(ARM, Q))[:3, 3] + np.array((0.0, 0.3, 0.0))

    def unseen(centre_m, radius_m):
        return np.linalg.norm(centre_m - dark, axis=1) < radius_m + 0.05

    found = stroke_verdict(BODY, near, Q, poses, unseen=unseen)
    assert found.kind == "unseen"
    assert 0.0 < found.along_m < 0.25
    assert stroke_verdict(BODY, near, Q, poses).kind == "safe"


def test_many_poses_are_the_stroke_that_few_are():
    world = block((0.0, 0.3, 0.0))
    few, many = (
        stroke_verdict(BODY, obstacles(world), Q, straight((0.0, 0.5, 0.0), k)) for k in (2, 10_000)
    )
    assert few.along_m == pytest.approx(many.along_m, abs=1e-6)


@pytest.mark.parametrize("spoil", ["nan", "scale", "mirror", "none", "many"])
def test_bad_strokes_are_refused_by_name(spoil):
    poses = straight((0.0, 0.1, 0.0), 5)
    if spoil == "nan":
        poses[2, 0, 3] = math.nan
    elif spoil == "scale":
        poses[2, :3, :3] *= 1.1
    elif spoil == "mirror":
        poses[2, :3, 0] *= -1.0
    elif spoil == "none":
        poses = poses[:0]
    else:
        poses = np.repeat(poses[:1], 10_001, axis=0)
    named = "poses" if spoil in ("none", "many") else "pose 2 of the stroke"
    with pytest.raises(ConfigError, match=named):
        stroke_verdict(BODY, obstacles(make_world(())), Q, poses)


def test_a_way_that_is_not_finite_is_refused():
    with pytest.raises(ConfigError, match="path_rad"):
        path_verdict(BODY, obstacles(make_world(())), np.full((2, 6), math.nan))


def test_the_pose_that_cannot_be_reached_is_numbered_as_drawn():
    poses = straight((-15.0, 0.0, 0.0), 3)
    poses[1:, :3, 3] = poses[0, :3, 3] + np.array([[0.0, 0.05, 0.0], [-15.0, 0.0, 0.0]])
    found = stroke_verdict(BODY, obstacles(make_world(())), Q, poses)
    assert found.kind == "unreachable"
    assert found.reason.startswith("pose 2 of the stroke")


def test_a_long_stroke_to_and_fro_is_judged_at_its_turning_points():
    there = straight((0.0, 0.2, 0.0), 2)
    poses = np.concatenate([there] * 40)
    near = obstacles(block((0.0, 0.33, 0.0)))
    once = stroke_verdict(BODY, near, Q, there)
    many = stroke_verdict(BODY, near, Q, poses)
    assert many.kind == once.kind
    assert many.certified_m <= once.certified_m + 0.002


def test_a_stroke_longer_than_can_be_judged_is_refused():
    with pytest.raises(ConfigError, match=r"stroke: 1\d\d\.\d m long, at most 20 m"):
        stroke_verdict(BODY, obstacles(make_world(())), Q, straight((0.0, 150.0, 0.0)))


@pytest.mark.parametrize("margin_m", [math.nan, 0.0, -0.01, ENOUGH_M + 0.001])
def test_a_margin_beyond_what_is_told_apart_is_refused(margin_m):
    with pytest.raises(ConfigError, match="margin_m: "):
        stroke_verdict(BODY, obstacles(make_world(())), Q, straight((0.0, 0.1, 0.0)), margin_m)


def test_the_distance_said_of_the_arm_to_itself_is_the_true_one():
    rng, own = np.random.default_rng(5), 0
    for _ in range(2000):
        q = rng.uniform(-2.5, 2.5, (1, 6))
        found = path_verdict(BODY, obstacles(make_world(())), q)
        if found.kind != "near" or not found.place.against.startswith("self:"):
            continue
        own += 1
        true_m = arm_clearance(BODY, obstacles(make_world(())), q[0]).distance_m
        assert found.place.distance_m == pytest.approx(true_m, abs=1e-12)
    assert own >= 3


def test_a_change_is_what_it_says_written_for_reading():
    drawn, _ = joints(straight((0.05, 0.3, 0.02)))
    up = np.array((0.0, 0.0, 1.0))
    ways = sides_of(BODY, drawn, np.array((0.6, 0.0, 0.8)))
    offset = drawn[:, :3, 3] - drawn[0, :3, 3]
    for side, sign in (("left", 1.0), ("right", -1.0)):
        turned = changed(drawn, Change(kind="turn", side=side, size=0.3, moved_m=0.0), ways)
        R = rotvec_to_matrix(sign * 0.3 * up)
        np.testing.assert_allclose(turned[:, :3, 3], drawn[0, :3, 3] + offset @ R.T, atol=1e-12)
        np.testing.assert_array_equal(turned[:, :3, :3], drawn[:, :3, :3])
    risen = changed(drawn, Change(kind="turn", side="up", size=0.3, moved_m=0.0), ways)
    assert risen[-1, 2, 3] > drawn[-1, 2, 3] + 0.05
    grown = np.minimum(1.0, np.linalg.norm(offset, axis=1) / RAMP_M)[:, None]
    shifted = changed(drawn, Change(kind="shift", side="away", size=0.04, moved_m=0.0), ways)
    expected = drawn[:, :3, 3] + 0.04 * grown * np.array((0.6, 0.0, 0.8))
    np.testing.assert_allclose(shifted[:, :3, 3], expected, atol=1e-12)


def test_a_proposed_change_is_safe_by_the_very_verdict_that_asked_for_it():
    rng, found_any = np.random.default_rng(7), 0
    for _ in range(40):
        to = rng.uniform(-0.3, 0.3, 3)
        near, poses = obstacles(block(0.8 * to + rng.normal(0.0, 0.03, 3))), straight(to)
        found = stroke_verdict(BODY, near, Q, poses)
        if found.change is None:
            continue
        found_any += 1
        drawn, _ = joints(poses)
        moved = changed(drawn, found.change, sides_of(BODY, drawn, found.place.normal))
        path, end, _, _ = joints_along(BODY, Q, moved)
        assert end == len(moved)
        assert path_verdict(BODY, near, path).kind == "safe"
    print(f"{found_any} changes")
    assert found_any >= 5


def test_the_first_contact_is_that_of_steps_along_the_whole_way():
    rng, touched = np.random.default_rng(8), 0
    for _ in range(40):
        near = obstacles(random_world(rng, 3)).arrays
        path = Q + np.cumsum(rng.normal(0.0, 0.05, (30, 6)), axis=0)
        at, q = work(BODY), np.zeros(6)
        by_steps = _march(BODY.arrays, near, path, at, q, 0.0)
        found = first_below(BODY.arrays, near, path, at, lanes(BODY), q, 0.0)
        touched += found >= 0.0
        # Steps begin elsewhere, so they stop elsewhere within what counts as contact.
        for u in (found, by_steps):
            if u >= 0.0:
                gap_m = nearest(BODY.arrays, near, path_at(path, u), at, 1.0, 0.0)[0]
                assert gap_m <= TOUCH_M
        assert (found < 0.0) == (by_steps < 0.0)
        assert found == pytest.approx(by_steps, abs=0.2)
    print(f"{touched} of 40 touch")
    assert 5 <= touched <= 38


def test_a_stroke_too_long_to_try_every_change_says_so():
    there = straight((0.0, 0.15, 0.0), 2)
    tool = (T_WORLD_BASE @ tool_pose(ARM, Q))[:3, 3]
    post = box("post", tuple(tool + np.array((0.09, 0.1, 0.0))), (0.01, 0.01, 0.1))
    wall = box("wall", tuple(tool + np.array((0.0, 0.45, 0.0))), (2.0, 0.02, 2.0))
    near = obstacles(make_world((post, wall)))
    short = stroke_verdict(BODY, near, Q, np.concatenate([there, straight((0.0, 0.5, 0.0), 2)]))
    print(short.sentence())
    poses = np.concatenate([*[there, there[::-1]] * 15, straight((0.0, 0.5, 0.0), 2)])
    long = stroke_verdict(BODY, near, Q, poses)
    assert (short.asked, short.change, short.gave_up) == (True, None, False)
    assert short.sentence().endswith("no small change clears it")
    assert (long.asked, long.change, long.gave_up) == (True, None, True)
    assert long.sentence().endswith("too long to try every small change")
