import math

import numpy as np
import pytest

from brain.body import place, work
from brain.certify import bisection, narrowest
from brain.distance import free, obstacles
from brain.geometry import transform
from brain.planner_edges import keeps_margin, lanes
from brain.world import BOX, CAPSULE, CYLINDER, PLANE, SPHERE, make_world
from tests.brain.plain_distance import (
    box,
    link_frames,
    random_world,
    scene,
    solid,
    ur5e_with_spheres,
)
from tests.brain.test_occupied import mapped

ARM = ur5e_with_spheres()
BODY = place(ARM, np.eye(4))
MARGIN_M, SELF_MARGIN_M, TOLERANCE_M = 0.01, 0.002, 0.001


def keeps(near, a, b, body=BODY):
    scratch, edge = lanes(body), np.array([a, b])
    extra_m = MARGIN_M - SELF_MARGIN_M
    return keeps_margin(body.arrays, near.arrays, edge, scratch, MARGIN_M, TOLERANCE_M, extra_m)[0]


def by_bisection(near, a, b):
    travel = np.array([np.zeros(6), np.abs(b - a)])
    enough = (MARGIN_M, TOLERANCE_M, MARGIN_M + TOLERANCE_M, MARGIN_M - SELF_MARGIN_M)
    edge, scratch = np.array([a, b]), bisection(BODY)
    return narrowest(BODY.arrays, near.arrays, edge, travel, work(BODY), scratch, *enough)[0]


def random_edges(count, seed):
    """Edges of all lengths in worlds with every kind of shape, with another arm in some."""
    rng = np.random.default_rng(seed)
    other = place(ARM, transform((-0.9, 0.2, 0.0)), name="other")
    floor = solid("floor", PLANE, (), transform((0.0, 0.0, -0.3)))
    for trial in range(count):
        world = random_world(rng, 1 + trial % 4)
        world = make_world((*world.objects, floor)) if trial % 3 == 0 else world
        others = [(other, rng.uniform(-2.0, 2.0, 6))] if trial % 4 == 0 else []
        a = rng.uniform(-2.0, 2.0, 6)
        yield obstacles(world, others), a, a + rng.normal(0.0, 10.0 ** rng.uniform(-2.0, 0.3), 6)


def test_every_place_of_a_motion_that_is_called_free_keeps_its_margins():
    at, yes, no = work(BODY), 0, 0
    for near, a, b in random_edges(400, seed=1):
        if not keeps(near, a, b):
            no += 1
            continue
        yes += 1
        rows = a + (b - a) * np.linspace(0.0, 1.0, 1000)[:, None]
        for q in rows:
            assert free(BODY.arrays, near.arrays, q, at, MARGIN_M, SELF_MARGIN_M)
    print(f"{yes} free, {no} not")
    assert min(yes, no) >= 50


def test_it_agrees_with_bisection_but_for_the_tolerance():
    differ, count = 0, 600
    for near, a, b in random_edges(count, seed=2):
        differ += keeps(near, a, b) != (by_bisection(near, a, b) >= MARGIN_M)
    print(f"{differ} of {count} differ, limit 6")
    assert differ <= 6


def test_a_thin_plate_between_two_free_ends_blocks():
    q = np.array([0.0, -1.2, 1.6, -2.0, -1.57, 0.0])
    start, goal = q - [0.5, 0, 0, 0, 0, 0], q + [0.5, 0, 0, 0, 0, 0]
    assert keeps(obstacles(make_world(())), start, goal)
    tool = link_frames(ARM, np.eye(4), q)[-1][:3, 3]
    near = obstacles(make_world((box("plate", tuple(tool), (0.03, 0.0005, 0.05)),)))
    assert keeps(near, start, start)
    assert keeps(near, goal, goal)
    assert not keeps(near, start, goal)


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_joints_or_obstacles_that_are_not_finite_are_never_free(bad):
    near, q = obstacles(make_world((box("far", (3.0, 0, 0), (0.1, 0.1, 0.1)),))), scene("table")[1]
    assert keeps(near, q, q)
    broken = q.copy()
    broken[2] = bad
    assert not keeps(near, q, broken)
    assert not keeps(near, broken, q)


KINDS = {BOX: (0.1, 0.1, 0.1), CYLINDER: (0.1, 0.1), CAPSULE: (0.1, 0.1), SPHERE: (0.1,), PLANE: ()}


@pytest.mark.parametrize("kind", KINDS)
def test_a_shape_with_one_number_that_is_none_is_never_far(kind):
    q = scene("table")[1]
    far = solid("far", kind, KINDS[kind], transform((3.0, 3.0, -3.0)))
    used = [("size_m", (k,)) for k in range(len(KINDS[kind]))]
    used += [("T_world_shape", (i, 3)) for i in range(3)]
    columns = {SPHERE: (), PLANE: (2,)}.get(kind, (0, 1, 2))
    used += [("T_world_shape", (i, k)) for i in range(3) for k in columns]
    for name, place_of in used:
        near = obstacles(make_world((far,)))
        assert keeps(near, q, q)
        getattr(near.arrays.shapes, name)[0][place_of] = math.nan
        assert not keeps(near, q, q), (name, place_of)


def test_beside_a_map_it_agrees_with_bisection_too():
    rng, differ, no, count = np.random.default_rng(3), 0, 0, 150
    for _ in range(count):
        indices = rng.integers(-60, 60, (40, 3))
        near = obstacles(make_world(()), seen=mapped(indices).arrays)
        a = rng.uniform(-2.0, 2.0, 6)
        b = a + rng.normal(0.0, 0.3, 6)
        free_by_bisection = by_bisection(near, a, b) >= MARGIN_M
        differ += keeps(near, a, b) != free_by_bisection
        no += not free_by_bisection
    print(f"{differ} of {count} differ, limit 3; {no} are not free")
    assert differ <= 3
    assert 20 <= no <= count - 20


def test_a_polyline_keeps_its_margins_where_each_of_its_edges_does():
    yes, no = 0, 0
    for near, a, b in random_edges(120, seed=4):
        rng = np.random.default_rng(yes + no)
        path = np.linspace(a, b, int(rng.integers(2, 40))) + rng.normal(0.0, 0.02, 6)
        path[1:-1] += rng.normal(0.0, 0.02, (len(path) - 2, 6))
        scratch, extra_m = lanes(BODY), MARGIN_M - SELF_MARGIN_M
        common = (scratch, MARGIN_M, TOLERANCE_M, extra_m)
        whole = keeps_margin(BODY.arrays, near.arrays, path, *common)[0]
        parts = [keeps(near, *path[i : i + 2]) for i in range(len(path) - 1)]
        yes, no = yes + all(parts), no + (not all(parts))
        if whole != all(parts):  # within the tolerance where an interval is cut can tell
            assert (
                not whole
                or min(by_bisection(near, *path[i : i + 2]) for i in range(len(path) - 1))
                >= MARGIN_M
            )
    print(f"{yes} free, {no} not")
    assert min(yes, no) >= 20


def test_where_the_arm_itself_does_not_count_only_what_is_around_does():
    q = np.array([0.0, -1.2, 2.9, -2.0, -1.57, 0.0])  # folded into itself
    near, edge = obstacles(make_world(())), np.array([q, q + 0.01])
    assert not keeps(near, *edge)
    assert keeps_margin(BODY.arrays, near.arrays, edge, lanes(BODY), 0.01, 0.001, math.inf)[0]
