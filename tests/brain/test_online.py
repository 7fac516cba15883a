"""One answer for each frame: certified now, or flagged."""

import numpy as np
import pytest

from brain.distance import obstacles
from brain.online import REST_NS, OnlinePlanner, slices
from brain.search import AT, LOOSE
from brain.types import NS_PER_MS
from brain.world import make_world
from tests.brain.plain_distance import box, q_range, scene, ur5e_with_spheres
from tests.brain.test_replan import BODY, dropped, is_clear

RANGE = q_range(ur5e_with_spheres())
FRAME_NS = 25 * NS_PER_MS


def begun(name="shelf", seed=1):
    world, start, goals = scene(name)
    the = OnlinePlanner(BODY, RANGE, seed=seed)
    answer = the.frame(0, obstacles(world), start, goals, slices(60))
    assert answer.path_rad is not None
    return the, world, start, goals, answer


def test_a_budget_of_slices_is_asked_for_so_many():
    more = slices(3)
    assert [more() for _ in range(5)] == [True, True, True, False, False]


def test_a_path_is_certified_for_the_frame_that_it_answers():
    the, world, start, goals, first = begun()
    near = obstacles(dropped(world, first.path_rad, np.random.default_rng(1)))
    answer = the.frame(FRAME_NS, near, start, goals, slices(400))
    assert (answer.overload, answer.certified_ns) == (False, FRAME_NS)
    for i in range(len(answer.path_rad) - 1):
        assert is_clear(near, answer.path_rad[i : i + 2])


def test_when_time_is_up_the_last_path_stays_flagged_and_dated():
    the, world, start, goals, first = begun()
    near = obstacles(dropped(world, first.path_rad, np.random.default_rng(1)))
    late = the.frame(FRAME_NS, near, start, goals, slices(0))
    assert late.overload
    assert late.certified_ns == 0
    np.testing.assert_array_equal(late.path_rad, first.path_rad)
    soon = the.frame(2 * FRAME_NS, near, start, goals, slices(400))
    assert (soon.overload, soon.certified_ns) == (False, 2 * FRAME_NS)


def test_overload_before_any_path_has_none():
    world, start, goals = scene("shelf")
    the = OnlinePlanner(BODY, RANGE, seed=1)
    answer = the.frame(0, obstacles(world), start, goals, slices(0))
    assert (answer.overload, answer.path_rad, answer.certified_ns) == (True, None, None)


def test_a_start_in_contact_is_an_answer_and_no_overload_and_the_old_path_is_gone():
    the, world, start, goals, _ = begun()
    post = box("post", (0.0, 0.0, 0.5), (0.3, 0.3, 0.02))
    near = obstacles(make_world((*world.objects, post)))
    answer = the.frame(FRAME_NS, near, start, goals, slices(5))
    assert (answer.overload, answer.path_rad) == (False, None)
    assert answer.sentence.startswith("start: ")
    late = the.frame(2 * FRAME_NS, obstacles(world), start, goals, slices(0))
    assert (late.overload, late.path_rad) == (True, None)


def test_equal_budgets_give_equal_answers():
    paths = []
    for _ in range(2):
        the, world, start, goals, first = begun(seed=3)
        near = obstacles(dropped(world, first.path_rad, np.random.default_rng(2)))
        for k in range(1, 4):
            answer = the.frame(k * FRAME_NS, near, start, goals, slices(20))
        paths.append(answer.path_rad.tobytes())
    assert paths[0] == paths[1]


def test_time_that_does_not_go_on_is_refused():
    the, world, start, goals, _ = begun()
    with pytest.raises(ValueError, match="t_ns: 0, must be later than 0"):
        the.frame(0, obstacles(world), start, goals, slices(1))


def test_the_forest_is_pruned_once_the_hand_has_rested():
    the, world, start, goals, first = begun()
    near = obstacles(dropped(world, first.path_rad, np.random.default_rng(1)))
    sizes, t_ns = [], 0
    while t_ns < REST_NS + 3 * FRAME_NS:
        t_ns += FRAME_NS
        the.frame(t_ns, near, start, goals, slices(30))
        search = the._planner._search
        sizes.append(int(search.counter[AT.size]))
    print(sizes)
    assert the._pruned
    moved = goals + np.array([0.0, 0.0, 0.0, 0.02, 0.0, 0.0])
    the.frame(t_ns + FRAME_NS, near, start, moved, slices(30))
    assert not the._pruned


def test_a_fast_hand_s_way_is_taken_into_the_forest():
    the, world, start, goals, _ = begun("bin")
    lift = np.array([0.0, -0.03, 0.0, 0.0, 0.0, 0.0])  # about 2 cm in 25 ms: 0.8 m/s
    the.frame(FRAME_NS, obstacles(world), start, goals + lift, slices(40))
    search = the._planner._search
    expected = goals[0] + lift + lift * (0.2 / 0.025)
    there = search.q_rad[: search.counter[AT.size]]
    assert np.abs(there - expected).max(axis=1).min() < 1e-9
    assert not (search.tree[: search.counter[AT.size]] == LOOSE).all()
