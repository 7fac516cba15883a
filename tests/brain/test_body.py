import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from brain.body import cover, held_spheres, place, pose, work
from brain.distance import arm_clearance, obstacles
from brain.errors import ConfigError
from brain.geometry import rpy_to_matrix, transform
from brain.robot import GROUP_HELD
from brain.world import BOX, CAPSULE, CYLINDER, PLANE, SPHERE, Held, grasp, make_world
from tests.brain.plain_distance import (
    box,
    shape_distance,
    solid,
    sphere_centres,
    ur5e_with_spheres,
)

ARM = ur5e_with_spheres()
Q = np.array([0.3, -1.2, 1.6, -2.0, -1.57, 0.4])
kinds = st.sampled_from([SPHERE, CAPSULE, CYLINDER, BOX])
lengths = st.floats(0.005, 0.12)


def surface_and_inside(kind, size, rng):
    """Points of a shape, many of them on its surface."""
    reach = np.array(
        {SPHERE: (size[0],) * 3, BOX: size}.get(kind, (size[0], size[0], size[0] + size[1]))
    )
    p = rng.uniform(-reach, reach, (3000, 3))
    for k in range(3):
        p[k::6, k] = np.sign(p[k::6, k]) * (size[1] if kind == CYLINDER and k == 2 else reach[k])
    d = np.array([shape_distance(kind, size, np.eye(4), x) for x in p])
    return p[d <= 1e-9]


@settings(deadline=None, max_examples=60)
@given(kinds, st.tuples(lengths, lengths, lengths), st.integers(0, 99))
def test_covering_spheres_contain_the_whole_shape(kind, size, seed):
    centre, radius = cover(kind, np.array(size))
    p = surface_and_inside(kind, np.array(size), np.random.default_rng(seed))
    depth = np.min(np.linalg.norm(p[:, None] - centre, axis=2), axis=1) - radius
    assert depth.max(initial=-1.0) <= 1e-9


def overshoot(kind, size):
    """How far the spheres stand out from the shape."""
    centre, radius = cover(kind, np.array(size))
    way = np.random.default_rng(0).normal(size=(400, 3))
    way = np.concatenate([way / np.linalg.norm(way, axis=1)[:, None], np.eye(3), -np.eye(3)])
    p = (centre[:, None] + radius * way).reshape(-1, 3)
    return max(shape_distance(kind, np.array(size), np.eye(4), x) for x in p), len(centre)


@pytest.mark.parametrize(
    ("kind", "size"),
    [
        (BOX, (0.0175, 0.0175, 0.025)),
        (BOX, (0.01, 0.03, 0.06)),
        (CYLINDER, (0.02, 0.03, 0.0)),
        (CYLINDER, (0.03, 0.01, 0.0)),
        (CAPSULE, (0.02, 0.05, 0.0)),
    ],
)
def test_spheres_of_a_small_part_stand_out_by_less_than_10_mm(kind, size):
    out, count = overshoot(kind, size)
    print(f"stand out {1000 * out:.1f} mm, limit 10 mm; {count} spheres, limit 48")
    assert out < 0.010
    assert count <= 48


def test_a_box_of_35_35_50_mm_takes_8_spheres():
    assert len(cover(BOX, np.array([0.0175, 0.0175, 0.025]))[0]) == 8


def test_a_plane_cannot_be_held():
    item = solid("floor", PLANE, (), np.eye(4))
    with pytest.raises(ConfigError, match="floor.*plane"):
        held_spheres(item, Held(arm="a", name="floor", T_tool_object=np.eye(4)), ARM)


def test_spheres_of_a_body_are_where_plain_kinematics_puts_them():
    here = transform((0.2, 0.1, 0.4), rpy_to_matrix((0.3, -0.2, 2.0)))
    body = place(ARM, here)
    at = work(body)
    assert pose(body.arrays, Q, at)
    order = [ARM.spheres.name.index(name) for name in body.spheres.name]
    np.testing.assert_allclose(
        at.centre_m, sphere_centres(ARM, ARM.spheres, here, Q)[order], atol=1e-12
    )


def test_bounding_spheres_contain_their_spheres():
    arrays = place(ARM, np.eye(4)).arrays
    for c, ball in enumerate(arrays.bound):
        run = slice(arrays.first[c], arrays.first[c + 1])
        far = np.linalg.norm(arrays.arm.sphere_centre_m[run] - ball[:3], axis=1)
        assert np.all(far + arrays.arm.sphere_radius_m[run] <= ball[3] + 1e-12)
        assert np.all(far <= arrays.spread_m[c] + 1e-12)


def test_every_self_pair_is_in_a_cluster_pair_once():
    body = place(ARM, np.eye(4))
    pairs = {
        frozenset(body.spheres.name[i] for i in pair)
        for pair in body.arrays.arm.self_pairs.tolist()
    }
    assert pairs == {frozenset(ARM.spheres.name[i] for i in p) for p in ARM.self_pairs.tolist()}
    cluster = np.repeat(np.arange(len(body.arrays.link)), np.diff(body.arrays.first))
    for p, pair in enumerate(body.arrays.pair):
        run = slice(body.arrays.pair_first[p], body.arrays.pair_first[p + 1])
        assert (cluster[body.arrays.arm.self_pairs[run]] == pair).all()


def test_no_sphere_is_ever_farther_from_an_axis_than_its_reach():
    rng = np.random.default_rng(2)
    body = place(ARM, np.eye(4))
    at, worst = work(body), -math.inf
    cluster = np.repeat(np.arange(len(body.arrays.link)), np.diff(body.arrays.first))
    for q in rng.uniform(-math.pi, math.pi, (300, 6)):
        pose(body.arrays, q, at)
        for k in range(6):
            T = at.T_links[k + 1]
            moved = body.spheres.link > k
            across = np.linalg.norm(np.cross(at.centre_m[moved] - T[:3, 3], T[:3, 2]), axis=1)
            worst = max(worst, float(np.max(across - body.arrays.reach_m[k, cluster[moved]])))
    print(f"distance beyond reach {1000 * worst:.2f} mm, limit 0 mm")
    assert worst <= 1e-12


def test_a_held_part_counts_with_the_arm_and_may_stand_on_a_support():
    part = box("part", (0.0, 0.0, 0.0), (0.0175, 0.0175, 0.025), "part")
    held = Held(arm="ur5e", name="part", T_tool_object=transform((0.0, 0.0, 0.02)))
    body = place(ARM, np.eye(4), held_spheres(part, held, ARM))
    tip = sphere_centres(ARM, body.spheres, np.eye(4), Q)[body.spheres.group == GROUP_HELD]
    wall = box("wall", (*tip[:, :2].mean(axis=0), float(tip[:, 2].min()) - 0.1), (0.02, 0.02, 0.06))
    table = box("table", (0.0, 0.0, float(tip[:, 2].min()) - 0.12), (1.0, 1.0, 0.1), "support")
    against_wall = arm_clearance(body, obstacles(grasp(make_world((wall, part)), held)), Q)
    against_table = arm_clearance(body, obstacles(grasp(make_world((table, part)), held)), Q)
    assert (against_wall.against, against_wall.sphere.split(".")[0]) == ("wall", "part")
    assert not against_table.sphere.startswith("part")


def test_a_held_part_can_touch_the_arm_that_holds_it():
    stick = box("stick", (0.0, 0.0, 0.0), (0.02, 0.02, 0.3), "part")
    held = Held(arm="ur5e", name="stick", T_tool_object=transform((0.0, 0.0, 0.25)))
    body = place(ARM, np.eye(4), held_spheres(stick, held, ARM))
    near, rng, met = obstacles(make_world(())), np.random.default_rng(5), set()
    for q in rng.uniform(-2.8, 2.8, (3000, 6)):
        found = arm_clearance(body, near, q)
        if found.sphere.startswith("stick") and found.distance_m < 0.0:
            met.add(found.against.removeprefix("self:").split(".")[0])
    print(f"met {sorted(met)}")
    assert met >= {"base", "upper_arm", "forearm"}
    assert not met & {"hand", "left_finger", "right_finger", "wrist_3"}
