import math

import numpy as np
import pytest

from brain.body import place, pose, work
from brain.certify import certify, displacement_m, path_at, tool_travel
from brain.distance import obstacles, path_clearances
from brain.geometry import transform
from brain.world import make_world
from tests.brain.plain_distance import (
    box,
    link_frames,
    random_world,
    scene,
    ur5e_with_spheres,
)

ARM = ur5e_with_spheres()
BODY = place(ARM, transform((0.0, 0.1, 0.0)))


def dense(path, count=20_000):
    return np.array([path_at(path, u) for u in np.linspace(0.0, len(path) - 1.0, count)])


def test_nothing_on_a_certified_motion_is_nearer_than_certified():
    rng = np.random.default_rng(1)
    below, loose = -math.inf, 0.0
    for trial in range(30):
        near = obstacles(random_world(rng, 1 + trial % 10))
        path = rng.uniform(-2.0, 2.0, (2 + trial % 3, 6))
        found = certify(BODY, near, path, tolerance_m=0.002)
        smallest = path_clearances(BODY, near, dense(path)).min()
        below = max(below, found.certified_m - smallest)
        loose = max(loose, found.nearest.distance_m - found.certified_m)
    print(f"certified above the true value by {1000 * below:.4f} mm, limit 0 mm")
    print(f"certified under the sampled value by {1000 * loose:.3f} mm, limit 2 mm")
    assert below <= 0.0
    assert loose <= 0.002 + 1e-12


def test_rows_of_a_trajectory_are_certified_like_the_way_they_came_from():
    rng = np.random.default_rng(2)
    near, path = obstacles(random_world(rng, 6)), rng.uniform(-2.0, 2.0, (2, 6))
    sparse, rows = certify(BODY, near, path), certify(BODY, near, dense(path, 4001))
    assert rows.certified_m == pytest.approx(sparse.certified_m, abs=1e-9)
    assert rows.along_m == pytest.approx(sparse.along_m, rel=1e-3, abs=1e-6)


def test_a_thin_plate_between_two_free_ends_is_found():
    q = np.array([0.0, -1.2, 1.6, -2.0, -1.57, 0.0])
    path = np.stack([q - [0.5, 0, 0, 0, 0, 0], q + [0.5, 0, 0, 0, 0, 0]])
    tool = link_frames(ARM, transform((0.0, 0.1, 0.0)), q)[-1][:3, 3]
    near = obstacles(make_world((box("plate", tuple(tool), (0.03, 0.0005, 0.05)),)))
    assert path_clearances(BODY, near, path).min() > 0.04
    found = certify(BODY, near, path)
    assert found.certified_m < 0.0
    assert found.nearest.against == "plate"
    assert 0.3 < found.row < 0.7


def test_a_motion_that_is_not_finite_has_no_certificate():
    near = obstacles(scene("table")[0])
    path = np.zeros((3, 6))
    path[2, 3] = math.nan
    assert math.isnan(certify(BODY, near, path).certified_m)


def test_a_single_row_is_certified_by_its_own_distance():
    near, q = obstacles(scene("table")[0]), scene("table")[1]
    found = certify(BODY, near, q[None])
    assert found.certified_m == found.nearest.distance_m
    assert found.looks == 1


def test_where_clearance_is_ample_few_configurations_are_looked_at():
    near = obstacles(make_world((box("far", (3.0, 0.0, 0.0), (0.1, 0.1, 0.1)),)))
    q = np.array([0.0, -1.2, 1.6, -2.0, -1.57, 0.0])
    path = np.stack([q, q + [1.0, 0, 0, 0, 0, 0]])
    found = certify(BODY, near, path, enough_m=0.01)
    print(f"{found.looks} configurations looked at, limit 20")
    assert found.certified_m >= 0.01
    assert found.looks <= 20


def test_no_sphere_moves_farther_than_the_bound_says():
    rng = np.random.default_rng(3)
    worst = -math.inf
    a, b = work(BODY), work(BODY)
    for _ in range(300):
        q, turn = rng.uniform(-3.0, 3.0, 6), rng.normal(0.0, 0.3, 6)
        pose(BODY.arrays, q, a)
        pose(BODY.arrays, q + turn, b)
        moved = np.linalg.norm(a.centre_m - b.centre_m, axis=1).max()
        worst = max(worst, float(moved) - displacement_m(BODY, turn))
    print(f"moved beyond the bound by {1000 * worst:.1f} mm, limit 0 mm")
    assert worst <= 0.0


def test_the_way_of_the_tool_is_as_long_as_the_sum_of_its_small_steps():
    rng = np.random.default_rng(4)
    path = rng.uniform(-1.0, 1.0, (4, 6))
    for row in (0.0, 0.4, 1.0, 2.7, 3.0):
        q = np.array([path_at(path, u) for u in np.linspace(0.0, row, 3001)])
        T = ARM.chain.T_link_flange @ ARM.T_flange_tool
        p = [(link_frames(ARM, np.eye(4), x)[-1] @ T)[:3, 3] for x in q]
        plain = np.linalg.norm(np.diff(p, axis=0), axis=1).sum()
        assert tool_travel(BODY, path, row) == pytest.approx(plain, rel=1e-3)
