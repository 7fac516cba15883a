import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from brain.body import place
from brain.certify import path_at
from brain.distance import obstacles, path_clearances
from brain.geometry import transform
from brain.planner import NoPlan, Plan, Planner, goal_wraps, plan
from brain.search import AT
from brain.singular import NEAR, is_singular, mask_of
from brain.world import make_world
from hardware.arm_model import load_arm
from tests.brain.plain_distance import (
    SCENES,
    TABLE,
    box,
    q_range,
    random_world,
    scene,
    ur5e_with_spheres,
)

ARM = ur5e_with_spheres()
BODY = place(ARM, np.eye(4))
RANGE = q_range(ARM)
MARGIN_M = 0.01


def ask(name, seed, iterations=600, body=BODY):
    world, start, goals = scene(name)
    return plan(
        body,
        obstacles(world),
        start,
        goals,
        RANGE,
        seed=seed,
        iterations=iterations,
        margin_m=MARGIN_M,
    )


@pytest.mark.parametrize("name", list(SCENES))
def test_every_seed_finds_a_way_that_keeps_the_margin_at_every_place(name):
    world, start, goals = scene(name)
    near, smallest, costs = obstacles(world), math.inf, []
    for seed in range(20):
        found = ask(name, seed)
        assert isinstance(found, Plan), found.sentence
        np.testing.assert_array_equal(found.path_rad[0], start)
        np.testing.assert_array_equal(found.path_rad[-1], goals[found.goal])
        assert (found.path_rad >= RANGE[0]).all()
        assert (found.path_rad <= RANGE[1]).all()
        # ten times denser than a check at 32 configurations per radian
        rows = [path_at(found.path_rad, u) for u in np.linspace(0, len(found.path_rad) - 1, 2000)]
        smallest = min(
            smallest, path_clearances(BODY, near, np.array(rows), self_extra_m=math.inf).min()
        )
        costs.append(found.cost)
    print(f"smallest clearance {1000 * smallest:.2f} mm, needed {1000 * MARGIN_M:.0f} mm")
    print(f"cost {min(costs):.2f} to {max(costs):.2f}")
    assert smallest >= MARGIN_M


def test_a_seed_gives_the_same_plan_bit_for_bit_however_it_is_sliced():
    world, start, goals = scene("shelf")
    near, paths = obstacles(world), []
    for piece in (1, 7, 500):
        planner = Planner(BODY, near, start, goals, RANGE, seed=5, margin_m=MARGIN_M)
        for done in range(0, 500, piece):
            planner.advance(min(piece, 500 - done))
        paths.append(planner.result())
    assert all(isinstance(p, Plan) for p in paths)
    assert len({p.path_rad.tobytes() for p in paths}) == 1
    assert len({(p.iterations, p.looks, p.cost) for p in paths}) == 1


def masked(name, seed, below, iterations=600):
    world, start, goals = scene(name)
    mask = mask_of(ARM, below)
    planner = Planner(
        BODY, obstacles(world), start, goals, RANGE, seed=seed, margin_m=MARGIN_M, mask=mask
    )
    planner.advance(iterations)
    return planner


@pytest.mark.parametrize("name", list(SCENES))
@pytest.mark.parametrize("below", [NEAR, 10.0], ids=["near", "everywhere"])
def test_a_way_is_found_also_where_the_mask_names_poses_on_it(name, below):
    world, start, goals = scene(name)
    for seed in range(5):
        found = masked(name, seed, below, 5000).result()
        assert isinstance(found, Plan), found.sentence
        rows = [path_at(found.path_rad, u) for u in np.linspace(0, len(found.path_rad) - 1, 1000)]
        gaps = path_clearances(BODY, obstacles(world), np.array(rows), self_extra_m=math.inf)
        assert gaps.min() >= MARGIN_M


def test_trees_grow_less_into_singular_regions_with_a_mask():
    mask, shares = mask_of(ARM, NEAR), {}
    for below in (0.0, NEAR):
        near = total = 0
        for seed in range(10):
            search = masked("shelf", seed, below, 300)._search
            grown = search.parent[: search.counter[AT.size]] >= 0
            nodes = search.q_rad[: search.counter[AT.size]][grown]
            near += sum(is_singular(mask.table, q, NEAR) for q in nodes)
            total += len(nodes)
        shares[below] = near / total
    print(f"nodes near singular poses: {shares[0.0]:.3f} without, {shares[NEAR]:.3f} with a mask")
    assert shares[NEAR] < 0.7 * shares[0.0]


def test_a_mask_gives_the_same_plan_however_it_is_sliced():
    whole, sliced = masked("shelf", 5, NEAR, 500), masked("shelf", 5, NEAR, 0)
    for _ in range(500):
        sliced.advance(1)
    assert whole.path().tobytes() == sliced.path().tobytes()
    assert whole.path().tobytes() != masked("shelf", 5, 0.0, 500).path().tobytes()


def test_another_seed_gives_another_plan():
    assert ask("shelf", 1).path_rad.tobytes() != ask("shelf", 2).path_rad.tobytes()


def test_more_iterations_never_give_a_longer_plan():
    costs = [ask("bin", 3, iterations).cost for iterations in (200, 500, 1000, 3000)]
    print("costs", costs)
    assert costs == sorted(costs, reverse=True)
    assert costs[-1] < costs[0]


def test_the_straight_way_is_taken_where_it_is_free():
    start = scene("table")[1]
    goal = start + [-0.5, -0.1, 0.0, 0.0, 0.0, 0.3]
    found = plan(BODY, obstacles(make_world((TABLE,))), start, [goal], RANGE, seed=1)
    assert isinstance(found, Plan)
    np.testing.assert_array_equal(found.path_rad, [start, goal])
    assert found.iterations == 1


def test_a_start_that_is_its_own_goal_needs_no_way():
    start = scene("table")[1]
    found = plan(BODY, obstacles(make_world((TABLE,))), start, [start], RANGE, seed=1)
    assert isinstance(found, Plan)
    assert found.cost == 0.0


def test_a_start_in_collision_is_named():
    world, start, goals = scene("table")
    wall = box("post", (0.0, 0.0, 0.5), (0.3, 0.3, 0.02))
    found = plan(BODY, obstacles(make_world((*world.objects, wall))), start, goals, RANGE, seed=1)
    assert isinstance(found, NoPlan)
    assert found.reason == "start"
    assert found.clearance is not None
    assert found.clearance.against == "post"
    assert found.clearance.link in (2, 3)
    assert found.sentence.startswith("start: upper_arm")
    assert found.sentence.endswith("mm inside post")


def test_a_goal_in_collision_is_named_unless_another_goal_is_free():
    world, start, goals = scene("table")
    low = goals[0] + [0.0, 0.35, 0.0, 0.0, 0.0, 0.0]
    near = obstacles(make_world((TABLE,)))
    found = plan(BODY, near, start, [low], RANGE, seed=1)
    assert isinstance(found, NoPlan)
    assert (found.reason, found.clearance.against) == ("goal", "table")
    both = plan(BODY, near, start, [low, goals[0]], RANGE, seed=1)
    assert isinstance(both, Plan)
    assert both.goal == 1


def test_a_start_that_only_misses_the_margin_is_refused_with_the_distance():
    world, start, goals = scene("table")
    near = obstacles(world)
    d = path_clearances(BODY, near, start[None], self_extra_m=math.inf)[0]
    found = plan(BODY, near, start, goals, RANGE, seed=1, margin_m=d)
    assert isinstance(found, NoPlan)
    assert found.reason == "start"
    assert found.clearance.distance_m == d


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_joints_that_are_not_finite_are_refused(bad):
    world, start, goals = scene("table")
    broken = start.copy()
    broken[4] = bad
    for a, b in ((broken, goals), (start, [broken])):
        found = plan(BODY, obstacles(world), a, b, RANGE, seed=1)
        assert isinstance(found, NoPlan)
        assert found.reason == "not finite"


def test_a_goal_outside_the_joint_range_is_refused_with_the_joint():
    world, start, goals = scene("table")
    found = plan(BODY, obstacles(world), start, [goals[0] + [0, 0, 0, 9.0, 0, 0]], RANGE, seed=1)
    assert isinstance(found, NoPlan)
    assert found.reason == "limits"
    assert found.sentence == "goal: joint_4 at 6.857 rad, allowed -6.233 to 6.233"


def test_no_goal_at_all_is_refused():
    world, start, _ = scene("table")
    found = plan(BODY, obstacles(world), start, np.zeros((0, 6)), RANGE, seed=1)
    assert isinstance(found, NoPlan)
    assert found.sentence == "there is no goal"


def test_a_budget_that_is_too_small_ends_without_a_way():
    found = ask("shelf", 1, iterations=4)
    assert isinstance(found, NoPlan)
    assert (found.reason, found.sentence) == ("not found", "no way found in 4 iterations")


def test_another_arm_is_an_obstacle_where_it_stands():
    start = np.array([-0.7, -1.2, 1.6, -2.0, -1.57, 0.0])
    goal = start + [1.4, 0, 0, 0, 0, 0]
    other = place(ARM, transform((-1.1, -0.15, 0.0)), name="other")
    reaching = np.array([math.pi, -1.2, 1.6, -2.0, -1.57, 0.0])
    alone = plan(BODY, obstacles(make_world(())), start, [goal], RANGE, seed=1)
    near = obstacles(make_world(()), [(other, reaching)])
    found = plan(BODY, near, start, [goal], RANGE, seed=1, iterations=2000, margin_m=MARGIN_M)
    assert isinstance(alone, Plan)
    assert isinstance(found, Plan)
    assert len(alone.path_rad) == 2 < len(found.path_rad)
    assert found.certificate.certified_m >= 0.002 - 0.001


@settings(deadline=None, max_examples=60)
@given(
    st.lists(st.floats(-6.0, 6.0), min_size=6, max_size=6),
    st.lists(st.floats(-math.pi, math.pi), min_size=12, max_size=12),
)
def test_wrapped_goals_are_the_branches_up_to_full_turns_inside_the_range(near, branches):
    branches = np.reshape(branches, (2, 6))
    goals = goal_wraps(branches, np.array(near), RANGE, most=16)
    assert 1 <= len(goals) <= 16
    assert (goals >= RANGE[0]).all()
    assert (goals <= RANGE[1]).all()
    off = (goals[:, None] - branches) / (2 * math.pi)
    assert (np.abs(off - np.round(off)).max(axis=2).min(axis=1) < 1e-9).all()
    far = np.linalg.norm(goals - near, axis=1)
    assert (np.diff(far) >= 0.0).all()


@pytest.mark.parametrize(("robot", "tool"), [("ur5e", "hand_e"), ("z1", "z1_gripper")])
def test_ways_of_the_described_arms_keep_the_margin_in_random_worlds(robot, tool):
    arm = load_arm(robot, [tool])
    body, (low, high) = place(arm, np.eye(4)), q_range(arm)
    smallest, found = math.inf, 0
    for seed in range(30):
        rng = np.random.default_rng(seed)
        near = obstacles(random_world(rng, 4))
        q = rng.uniform(np.maximum(low, -3.0), np.minimum(high, 3.0), (2, 6))
        way = plan(
            body, near, q[0], q[1:], (low, high), seed=seed, margin_m=MARGIN_M, iterations=300
        )
        if isinstance(way, Plan):
            found += 1
            places = np.linspace(0, len(way.path_rad) - 1, 2000)
            rows = np.array([path_at(way.path_rad, u) for u in places])
            d = path_clearances(body, near, rows, self_extra_m=math.inf).min()
            smallest = min(smallest, float(d))
    print(f"{found} ways, smallest clearance {1000 * smallest:.2f} mm, needed 10 mm")
    assert found >= 3
    assert smallest >= MARGIN_M
