"""Distances of the arms of a cell, against plain references that look at every pair."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from brain.geometry import Array, frozen, transform
from brain.kinematics import tool_pose
from brain.proximity import FAR_M, Proximity, bodies
from brain.types import ArmState
from brain.world import Held, World, grasp, make_world, move_object, release
from tests.brain.cells import HOME, cell, sphered
from tests.brain.plain_distance import (
    arm_distance,
    box,
    random_world,
    sphere_centres,
    ur5e_with_spheres,
)
from tests.values import replace

T = 5_000_000_000
EMPTY = make_world(())
TWO = cell(arms=2, model=sphered(), apart_m=0.9)
MODEL = TWO.arms[0].model
NEAR = Proximity(TWO)


def state(q_rad, dq_rad_s=None, t_ns: int = T) -> ArmState:
    return ArmState(
        t_ns=t_ns,
        seq=0,
        q_rad=frozen(q_rad),
        dq_rad_s=frozen(np.zeros(6) if dq_rad_s is None else dq_rad_s),
        tau_nm=None,
        stopped=False,
    )


def between(q_first: Array, q_second: Array, apart_m: float = 0.9) -> float:
    """Distance of two arms to each other, sphere by sphere."""
    sets = []
    for y, q in ((0.0, q_first), (apart_m, q_second)):
        centre = sphere_centres(MODEL, MODEL.spheres, transform((0.0, y, 0.0)), q)
        sets.append((centre, np.array(MODEL.spheres.radius_m)))
    (a, ra), (b, rb) = sets
    gaps = np.linalg.norm(a[:, None] - b[None], axis=2) - ra[:, None] - rb[None]
    return float(gaps[np.asarray(MODEL.spheres.link) > 0].min())  # the mover's base cannot move


def wild(seed: int) -> Array:
    return HOME + np.random.default_rng(seed).uniform(-1.2, 1.2, 6)


# ------------------------------------------------------------------------------ two arms


@settings(max_examples=40, deadline=None, derandomize=True)
@given(st.integers(0, 10_000))
def test_the_distance_of_two_arms_is_that_of_their_nearest_spheres(seed):
    q_first, q_second = wild(seed), wild(seed + 1)
    found = NEAR.distance((state(HOME), state(q_second)), T, EMPTY, 0, q_first)
    assert found == pytest.approx(between(q_first, q_second), abs=1e-9)


@settings(max_examples=20, deadline=None, derandomize=True)
@given(st.integers(0, 10_000), st.integers(0, 40))
def test_the_other_arm_is_carried_on_with_its_speed_to_the_time_of_the_question(seed, age_ms):
    rng = np.random.default_rng(seed)
    q_second, dq = wild(seed), rng.uniform(-1.0, 1.0, 6)
    seen = (state(HOME), state(q_second, dq, T - age_ms * 1_000_000))
    found = NEAR.distance(seen, T, EMPTY, 0, HOME)
    plain = between(HOME, q_second + dq * age_ms * 1e-3)
    assert found == pytest.approx(plain, abs=1e-9)


@pytest.mark.parametrize(
    "missing",
    [
        None,
        state(np.full(6, math.nan)),
        state(HOME, np.full(6, math.nan), T - 1_000_000),
        state(HOME, np.full(6, math.inf), T - 1_000_000),
    ],
)
def test_an_arm_that_is_nowhere_is_never_far(missing):
    near = Proximity(TWO)
    assert math.isnan(near.distance((state(HOME), missing), T, EMPTY, 0, HOME))
    again = near.distance((state(HOME), state(HOME)), T, EMPTY, 0, HOME)
    assert again == pytest.approx(between(HOME, HOME), abs=1e-9)


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_joints_that_are_not_finite_have_no_distance(bad):
    q = HOME.copy()
    q[2] = bad
    assert math.isnan(Proximity(TWO).distance((state(HOME), state(HOME)), T, EMPTY, 0, q))


def test_an_arm_is_no_obstacle_to_itself_where_it_is_measured():
    near = Proximity(TWO)
    seen = (state(HOME), state(HOME))
    a = near.distance(seen, T, EMPTY, 0, HOME)
    b = near.distance((state(HOME + 0.3), seen[1]), T, EMPTY, 0, HOME)
    assert a == b


def test_both_arms_see_the_same_distance_and_the_same_question_the_same_answer():
    near, q_first, q_second = Proximity(TWO), wild(3), wild(4)
    seen = (state(q_first), state(q_second))
    asked = [near.distance(seen, T, EMPTY, i, q) for i, q in enumerate((q_first, q_second))]
    assert asked[0] == pytest.approx(asked[1], abs=1e-9)
    assert asked == [near.distance(seen, T, EMPTY, i, q) for i, q in enumerate((q_first, q_second))]


def test_the_nearest_place_is_named():
    near = Proximity(TWO)
    found = near.nearest((state(HOME), state(HOME)), T, EMPTY, 0, HOME)
    assert found.distance_m == pytest.approx(between(HOME, HOME), abs=1e-9)
    assert "ur1" in found.against


def test_three_arms_are_kept_apart_each_from_both_others():
    three = cell(arms=3, model=sphered(), apart_m=0.9)
    near = Proximity(three)
    ahead = HOME + np.array([np.pi / 2, 0, 0, 0, 0, 0])
    seen = (state(HOME), state(HOME), state(HOME))
    middle, last = near.distance(seen, T, EMPTY, 1, ahead), near.distance(seen, T, EMPTY, 2, HOME)
    assert last == pytest.approx(between(HOME, HOME, -0.9), abs=1e-9)
    plain = min(between(ahead, HOME, 0.9), between(ahead, HOME, -0.9))
    assert middle == pytest.approx(plain, abs=1e-9)
    gone = (state(HOME), state(HOME), None)
    assert math.isnan(near.distance(gone, T, EMPTY, 1, ahead))
    assert math.isnan(near.distance((None, *seen[1:]), T, EMPTY, 2, HOME))


# ------------------------------------------------------------------------------ the world


@settings(max_examples=20, deadline=None, derandomize=True)
@given(st.integers(0, 10_000))
def test_one_arm_keeps_clear_of_world_and_self(seed):
    one = cell(model=ur5e_with_spheres())
    model = one.arms[0].model
    world, q = random_world(np.random.default_rng(seed), 3), wild(seed)
    found = Proximity(one).distance((state(q),), T, world, 0, q)
    plain = arm_distance(model, model.spheres, model.self_pairs, world, np.eye(4), q)
    assert found == pytest.approx(min(plain, FAR_M), abs=1e-9)


def test_alone_in_an_empty_world_everything_is_far():
    assert Proximity(cell(model=sphered())).distance((state(HOME),), T, EMPTY, 0, HOME) == FAR_M


def test_a_world_that_changes_is_seen_at_once():
    one = cell(model=sphered())
    near, seen = Proximity(one), (state(HOME),)
    tip = tool_pose(one.arms[0].model, HOME)
    world = make_world((box("cart", (1.9, 1.9, 1.9), (0.05, 0.05, 0.05)),))
    far = near.distance(seen, T, world, 0, HOME)
    world = move_object(world, "cart", transform(tip[:3, 3]))
    assert near.distance(seen, T, world, 0, HOME) < 0.0 < far


# ------------------------------------------------------------------------------ what is held


def holding(part_half_m: float = 0.02) -> tuple[World, Proximity]:
    one = cell(model=sphered())
    part = box("part", (0.0, 0.0, -1.0), (part_half_m,) * 3, "part")
    tip = tool_pose(one.arms[0].model, HOME)
    below = tip @ transform((0.0, 0.0, 0.30))
    block = box("block", tuple(below[:3, 3]), (0.05, 0.05, 0.05))
    return make_world((part, block)), Proximity(one)


def test_a_held_part_is_part_of_the_arm():
    world, near = holding()
    seen = (state(HOME),)
    empty = near.distance(seen, T, world, 0, HOME)
    held = Held(arm="ur0", name="part", T_tool_object=frozen(transform((0.0, 0.0, 0.10))))
    carried = near.distance(seen, T, grasp(world, held), 0, HOME)
    assert empty - carried == pytest.approx(0.1, abs=0.03)
    assert carried > 0.0
    found = near.nearest(seen, T, grasp(world, held), 0, HOME)
    assert found.against == "block"
    put = release(grasp(world, held), "ur0", transform((0.0, 0.0, -1.0)))
    assert near.distance(seen, T, put, 0, HOME) == empty


def test_a_held_part_is_no_obstacle_where_it_lay():
    world, near = holding()
    tip = tool_pose(sphered(), HOME)
    lying = move_object(world, "part", transform(tip[:3, 3] + [0.0, 0.0, 0.05]))
    seen = (state(HOME),)
    hit = near.distance(seen, T, lying, 0, HOME)
    held = Held(arm="ur0", name="part", T_tool_object=np.eye(4))
    assert hit < 0.0 < near.distance(seen, T, grasp(lying, held), 0, HOME)


def test_only_the_arm_that_holds_it_has_the_part():
    world, _ = holding()
    held = Held(arm="ur1", name="part", T_tool_object=np.eye(4))
    first, second = bodies(TWO, grasp(world, held))
    assert not any("part" in name for name in first.spheres.name)
    assert any("part" in name for name in second.spheres.name)


def test_the_other_arm_sees_what_is_held():
    part = box("part", (0.0, 0.0, -1.0), (0.02, 0.02, 0.02), "part")
    seen, near = (state(HOME), state(HOME)), Proximity(TWO)
    world = make_world((part,))
    before = near.distance(seen, T, world, 0, HOME)
    reaching = Held(
        arm="ur1",
        name="part",
        T_tool_object=np.linalg.inv(tool_pose(MODEL, HOME)) @ transform((-0.4, -0.6, 0.5)),
    )
    after = near.distance(seen, T, grasp(world, reaching), 0, HOME)
    assert after < before


def test_what_is_kept_from_world_to_world_is_as_if_made_anew():
    part, cart = (
        box(name, at, (0.02, 0.02, 0.02), "part")
        for name, at in (("part", (0.3, 0.1, 0.2)), ("cart", (0.5, 0.4, 0.3)))
    )
    start = make_world((part, cart))
    held = Held(arm="ur1", name="part", T_tool_object=transform((0.0, 0.05, 0.1)))
    taken = grasp(start, held)
    pushed = move_object(taken, "cart", transform((0.45, 0.3, 0.3)))
    handed = grasp(pushed, replace(held, arm="ur0"))
    put = release(handed, "ur0", transform((0.4, 0.2, 0.2)))
    seen, kept = (state(wild(1)), state(wild(2))), Proximity(TWO)
    for world in (start, taken, pushed, handed, put, start):
        for i in range(2):
            found = kept.distance(seen, T, world, i, wild(5))
            assert found == Proximity(TWO).distance(seen, T, world, i, wild(5))


@pytest.mark.parametrize("seed", range(12))
def test_both_distances_at_once_are_the_two_of_them(seed):
    rng = np.random.default_rng(seed)
    seen, near = (state(wild(seed)), state(wild(seed + 1))), Proximity(TWO)
    world, q = random_world(rng, 8), wild(seed + 2) if seed else np.full(6, math.nan)
    found = near.both(seen, T, world, 0, q)
    plain = near.distance(seen, T, world, 0, q), near.around(seen, T, world, 0, q)
    assert np.array_equal(found, plain, equal_nan=True)


def test_equal_cells_answer_bit_for_bit():
    seen = (state(wild(1)), state(wild(2), np.full(6, 0.1), T - 3_000_000))
    a, b = (Proximity(replace(TWO)).distance(seen, T, EMPTY, 0, wild(5)) for _ in range(2))
    assert a == b


def test_what_is_around_leaves_the_arm_itself_out():
    one = cell(model=ur5e_with_spheres())
    near, seen = Proximity(one), (state(HOME),)
    tip = tool_pose(one.arms[0].model, HOME)
    world = make_world((box("cart", tuple(tip[:3, 3] + [0.0, 0.0, -0.3]), (0.05, 0.05, 0.05)),))
    itself = near.distance(seen, T, EMPTY, 0, HOME)
    assert itself < near.around(seen, T, world, 0, HOME)
    model = one.arms[0].model
    no_pairs = np.zeros((0, 2), dtype=np.int64)
    plain = arm_distance(model, model.spheres, no_pairs, world, np.eye(4), HOME)
    assert near.around(seen, T, world, 0, HOME) == pytest.approx(plain, abs=1e-9)
    assert near.around(seen, T, EMPTY, 0, HOME) == FAR_M


@pytest.mark.parametrize("missing", [None, state(np.full(6, math.nan))])
def test_an_arm_that_is_nowhere_is_not_far_around_either(missing):
    assert not NEAR.around((state(HOME), missing), T, EMPTY, 0, HOME) > 0.1
    q = np.full(6, math.nan)
    assert not NEAR.around((state(HOME), state(HOME)), T, EMPTY, 0, q) > 0.1
