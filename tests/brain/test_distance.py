import itertools
import math

import mujoco
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from brain.body import place, work
from brain.distance import (
    arm_clearance,
    free,
    nearest,
    obstacles,
    path_clearances,
)
from brain.geometry import rpy_to_matrix, transform
from brain.robot import GROUP_ARM, GROUP_FINGER
from brain.shapes import point_distance, point_normal
from brain.world import BOX, CAPSULE, CYLINDER, PLANE, SPHERE, make_world
from tests.brain.arms import ur5e
from tests.brain.plain_distance import (
    arm_distance,
    box,
    random_world,
    scene,
    shape_distance,
    solid,
    sphere_centres,
    ur5e_with_spheres,
)

ARM = ur5e_with_spheres()
HERE = transform((0.1, -0.2, 0.05), rpy_to_matrix((0.1, 0.2, 1.0)))
GEOMS = {
    SPHERE: mujoco.mjtGeom.mjGEOM_SPHERE,
    CAPSULE: mujoco.mjtGeom.mjGEOM_CAPSULE,
    CYLINDER: mujoco.mjtGeom.mjGEOM_CYLINDER,
    BOX: mujoco.mjtGeom.mjGEOM_BOX,
    PLANE: mujoco.mjtGeom.mjGEOM_PLANE,
}

lengths = st.floats(0.01, 0.5)
places = st.lists(st.floats(-1.0, 1.0), min_size=3, max_size=3)
kinds = st.sampled_from(list(GEOMS))


def shapes_of(kind, size, centre, rpy):
    T = transform(centre, rpy_to_matrix(rpy))
    return make_world((solid("it", kind, size, T),)).shapes


@settings(deadline=None, max_examples=300)
@given(kinds, st.tuples(lengths, lengths, lengths), places, places, places)
def test_a_point_is_as_far_from_a_shape_as_the_plain_reference_says(kind, size, centre, rpy, p):
    shapes = shapes_of(kind, size, centre, rpy)
    plain = shape_distance(kind, shapes.size_m[0], shapes.T_world_shape[0], np.array(p))
    assert point_distance(shapes, 0, *p) == pytest.approx(plain, abs=1e-12)


@settings(deadline=None, max_examples=300)
@given(kinds, st.tuples(lengths, lengths, lengths), places, places, places)
def test_a_step_against_the_normal_ends_on_the_surface(kind, size, centre, rpy, p):
    shapes, normal = shapes_of(kind, size, centre, rpy), np.zeros(3)
    d = point_normal(shapes, 0, np.array(p), normal)
    assert np.linalg.norm(normal) == pytest.approx(1.0, abs=1e-12)
    assert d == point_distance(shapes, 0, *p)
    assert point_distance(shapes, 0, *(np.array(p) - d * normal)) == pytest.approx(0.0, abs=1e-9)


def test_a_sphere_is_as_far_from_a_shape_as_mujoco_says():
    rng = np.random.default_rng(2)
    worst = 0.0
    for i in range(200):
        kind = list(GEOMS)[i % 5]
        size = rng.uniform(0.02, 0.2, 3)
        shapes = shapes_of(kind, size, rng.uniform(-0.5, 0.5, 3), rng.uniform(-3, 3, 3))
        p, radius = rng.uniform(-1.0, 1.0, 3), 0.03
        spec = mujoco.MjSpec()
        T = shapes.T_world_shape[0]
        quat = np.zeros(4)
        mujoco.mju_mat2Quat(quat, T[:3, :3].ravel())
        spec.worldbody.add_geom(type=GEOMS[kind], size=size, pos=T[:3, 3], quat=quat)
        ball = spec.worldbody.add_body(pos=p)
        ball.add_geom(type=mujoco.mjtGeom.mjGEOM_SPHERE, size=[radius, 0, 0])
        model = spec.compile()
        data = mujoco.MjData(model)
        mujoco.mj_forward(model, data)
        theirs = mujoco.mj_geomDistance(model, data, 0, 1, 10.0, None)
        ours = point_distance(shapes, 0, *p) - radius
        if theirs > 0.0:  # where they overlap MuJoCo's figure is a depth of its own kind
            worst = max(worst, abs(ours - theirs))
        else:
            assert ours < 1e-6
    print(f"largest difference {worst:.2e} m, limit 1e-5 m")
    assert worst < 1e-5


def test_an_arm_is_as_far_from_everything_as_all_pairs_say():
    rng = np.random.default_rng(3)
    body, worst = place(ARM, HERE), 0.0
    for _ in range(6):
        world = random_world(rng, 12)
        near, at = obstacles(world), work(body)
        for q in rng.uniform(-3.0, 3.0, (8, 6)):
            ours = nearest(body.arrays, near.arrays, q, at, math.inf, 0.0)[0]
            plain = arm_distance(ARM, ARM.spheres, ARM.self_pairs, world, HERE, q)
            worst = max(worst, abs(ours - plain))
    print(f"largest difference {worst:.2e} m, limit 1e-12 m")
    assert worst < 1e-12


def test_looking_only_nearby_finds_the_same_when_something_is_nearby():
    rng = np.random.default_rng(4)
    body, near = place(ARM, HERE), obstacles(random_world(rng, 12))
    at = work(body)
    for q in rng.uniform(-3.0, 3.0, (50, 6)):
        whole = nearest(body.arrays, near.arrays, q, at, math.inf, 0.0)
        part = nearest(body.arrays, near.arrays, q, at, 0.02, 0.0)
        assert part == (whole if whole[0] < 0.02 else (0.02, -1, -1))


def test_free_means_that_the_smallest_distance_keeps_the_margin():
    rng = np.random.default_rng(5)
    body, near = place(ARM, HERE), obstacles(random_world(rng, 5))
    at, answers = work(body), set()
    for q in rng.uniform(-3.0, 3.0, (200, 6)):
        d = nearest(body.arrays, near.arrays, q, at, math.inf, 0.0)[0]
        answers.add(free(body.arrays, near.arrays, q, at, 0.02, 0.02))
        assert free(body.arrays, near.arrays, q, at, 0.02, 0.02) == (d >= 0.02)
    assert answers == {True, False}


def test_a_batch_gives_the_distances_of_its_rows():
    rng = np.random.default_rng(6)
    body, near = place(ARM, HERE), obstacles(random_world(rng, 8))
    q = rng.uniform(-3.0, 3.0, (20, 6))
    single = [arm_clearance(body, near, row).distance_m for row in q]
    np.testing.assert_array_equal(path_clearances(body, near, q), single)


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("joint", range(6))
def test_a_configuration_that_is_not_finite_is_never_free(bad, joint):
    world, start, _ = scene("table")
    body, near = place(ARM, np.eye(4)), obstacles(world)
    at, q = work(body), start.copy()
    assert free(body.arrays, near.arrays, q, at, 0.0, 0.0)
    q[joint] = bad
    assert not free(body.arrays, near.arrays, q, at, -math.inf, -math.inf)
    assert math.isnan(arm_clearance(body, near, q).distance_m)
    assert np.isnan(path_clearances(body, near, np.stack([start, q, start]))[1])


def test_an_arm_that_is_nowhere_is_never_kept_clear_of():
    body = place(ARM, np.eye(4), name="a")
    other = place(ARM, transform((5.0, 0.0, 0.0)), name="b")
    near = obstacles(make_world(()), [(other, np.full(6, math.nan))])
    q = np.array([0.0, -1.2, 1.6, -2.0, -1.57, 0.0])
    assert not free(body.arrays, near.arrays, q, work(body), 0.0, 0.0)
    assert math.isnan(arm_clearance(body, near, q).distance_m)


def test_what_may_touch_a_group_is_no_obstacle_to_it_alone():
    q = np.array([0.0, -1.2, 1.6, -2.0, -1.57, 0.0])
    centre = sphere_centres(ARM, ARM.spheres, np.eye(4), q)
    finger = int(np.flatnonzero(ARM.spheres.group == GROUP_FINGER)[-1])
    hand = ARM.spheres.name.index("hand.0")
    body = place(ARM, np.eye(4))
    for sphere, counts in ((finger, False), (hand, True)):
        world = make_world((box("part", tuple(centre[sphere]), (0.004,) * 3, "part"),))
        found = arm_clearance(body, obstacles(world), q)
        assert (found.against == "part" and found.distance_m < 0.0) == counts
    assert ARM.spheres.group[hand] == GROUP_ARM


def test_the_base_is_bolted_down_and_does_not_count_against_the_world():
    world = make_world((box("pedestal", (0.0, 0.0, 0.0), (0.08, 0.08, 0.05)),))
    found = arm_clearance(
        place(ARM, np.eye(4)), obstacles(world), np.array([0.0, -1.57] + [0.0] * 4)
    )
    assert not found.sphere.startswith("base")


def test_the_nearest_place_lies_on_the_other_surface_at_that_distance():
    rng = np.random.default_rng(8)
    body = place(ARM, np.eye(4))
    for _ in range(30):
        world = make_world((random_world(rng, 4).objects[3],))
        q = rng.uniform(-2.0, 2.0, 6)
        found = arm_clearance(body, obstacles(world), q)
        if found.against != "object 3":
            continue
        shapes = world.shapes
        on = shape_distance(
            shapes.kind[0], shapes.size_m[0], shapes.T_world_shape[0], found.point_m
        )
        i = body.spheres.name.index(found.sphere)
        centre = sphere_centres(ARM, ARM.spheres, np.eye(4), q)[
            ARM.spheres.name.index(found.sphere)
        ]
        gap = np.linalg.norm(centre - found.point_m) - body.spheres.radius_m[i]
        assert on == pytest.approx(0.0, abs=1e-9)
        if found.distance_m > 0.0:
            assert gap == pytest.approx(found.distance_m, abs=1e-9)
            way = (centre - found.point_m) / np.linalg.norm(centre - found.point_m)
            np.testing.assert_allclose(way, found.normal, atol=1e-6)


def test_two_arms_are_as_far_apart_as_all_pairs_of_their_spheres_say():
    rng = np.random.default_rng(9)
    there = transform((0.9, 0.1, 0.0), rpy_to_matrix((0.0, 0.0, 3.0)))
    a, b = place(ARM, np.eye(4), name="a"), place(ARM, there, name="b")
    named = set()
    for _ in range(20):
        qa, qb = rng.uniform(-2.0, 2.0, (2, 6))
        near = obstacles(make_world(()), [(b, qb)])
        found = arm_clearance(a, near, qa, self_extra_m=math.inf)
        ca = sphere_centres(ARM, ARM.spheres, np.eye(4), qa)
        cb = sphere_centres(ARM, ARM.spheres, there, qb)
        r = ARM.spheres.radius_m
        plain = min(
            float(np.linalg.norm(ca[i] - cb[j])) - r[i] - r[j]
            for i, j in itertools.product(range(len(r)), repeat=2)
            if ARM.spheres.link[i] > 0
        )
        assert found.distance_m == pytest.approx(plain, abs=1e-12)
        named.add(found.against.split(":")[0])
    assert named == {"b"}


def test_distances_to_oneself_compete_with_an_advantage():
    q = np.array([0.0, -1.57, 2.9, 0.0, 0.0, 0.0])
    body, world = (
        place(ARM, np.eye(4)),
        make_world((box("roof", (0.0, 0.0, 2.5), (1.0, 1.0, 0.1)),)),
    )
    plain = arm_clearance(body, obstacles(world), q)
    other = arm_clearance(body, obstacles(world), q, self_extra_m=10.0)
    assert plain.against.startswith("self:")
    assert other.against == "roof"


def test_an_arm_without_spheres_is_near_nothing():
    found = arm_clearance(place(ur5e(), np.eye(4)), obstacles(scene("bin")[0]), np.zeros(6))
    assert found.distance_m == math.inf
    assert found.sentence() == "nothing is near"
