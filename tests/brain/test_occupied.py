"""Distances to what cameras see: exact to the voxels, and nothing known is seen twice."""

import itertools
import math

import numpy as np
import pytest

from brain.body import place
from brain.certify import certify
from brain.distance import MAPPED, arm_clearance, obstacles, path_clearances
from brain.occupied import NOTHING, occupied, occupied_distance
from brain.planner import Plan, plan
from brain.robot import GROUPS
from brain.voxel_kernels import find_or_make, key_of
from brain.voxels import VoxelMap
from brain.world import BOX, make_world
from tests.brain.plain_distance import solid, ur5e_with_spheres

WINDOW = np.array([[-1.5, -1.5, -1.5], [1.5, 1.5, 1.5]])
EMPTY = make_world(())
ARM = ur5e_with_spheres()
BODY = place(ARM, np.eye(4))
RANGE = (np.full(6, -2.0 * math.pi), np.full(6, 2.0 * math.pi))


def fill(seen: VoxelMap, indices) -> None:
    """Occupy voxels by their indices (n, 3)."""
    for x, y, z in np.asarray(indices).tolist():
        b = find_or_make(seen.arrays, key_of(x, y, z))
        assert b >= 0
        seen.arrays.occupancy[b, ((x & 7) << 6) | ((y & 7) << 3) | (z & 7)] = 0.8
        seen.arrays.top[b] = 0.8


def mapped(indices, edge_m: float = 0.015, world=EMPTY, explained_m: float = 0.02):
    seen = VoxelMap(edge_m)
    fill(seen, indices)
    return occupied(seen, world, WINDOW, explained_m)


def scattered(rng, edge_m: float) -> np.ndarray:
    """Voxels of some clumps and of some single specks, (n, 3)."""
    clumps = rng.integers(-0.9 / edge_m, 0.9 / edge_m, (6, 3))
    near = np.concatenate([c + rng.integers(-4, 5, (40, 3)) for c in clumps])
    specks = rng.integers(-1.2 / edge_m, 1.2 / edge_m, (30, 3))
    return np.unique(np.concatenate([near, specks]), axis=0)


def plain(indices, edge_m: float, p) -> float:
    low = np.asarray(indices) * edge_m
    out = np.maximum(np.maximum(low - p, p - low - edge_m), 0.0)
    return float(np.sqrt((out**2).sum(axis=1)).min())


@pytest.mark.parametrize("edge_m", [0.005, 0.015, 0.025])
def test_a_point_is_as_far_from_the_map_as_its_nearest_voxel_is(edge_m):
    rng = np.random.default_rng(1)
    voxels = scattered(rng, edge_m)
    found = mapped(voxels, edge_m)
    assert found.voxels == len(voxels)
    worst = 0.0
    for p in rng.uniform(-2.0, 2.0, (300, 3)):
        true_m = plain(voxels, edge_m, p)
        for below_m in (0.03, 0.2, 1.0, math.inf):
            d, *at = occupied_distance(found.arrays, *p, below_m)
            if true_m < below_m:
                worst = max(worst, abs(d - true_m), abs(np.linalg.norm(at - p) - true_m))
                assert plain(voxels, edge_m, np.array(at)) < 1e-9
            else:
                assert d == below_m
    print(f"{len(voxels)} voxels of {edge_m} m: worst {worst:.1e} m, limit 1e-9")
    assert worst < 1e-9


def test_inside_of_a_voxel_the_distance_is_zero():
    found = mapped([[3, -5, 7]])
    assert occupied_distance(found.arrays, 0.05, -0.07, 0.11, 1.0)[0] == 0.0


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_a_point_that_is_not_finite_has_no_distance(bad):
    found = mapped([[3, -5, 7]])
    for k in range(3):
        p = [0.1, 0.2, 0.3]
        p[k] = bad
        assert math.isnan(occupied_distance(found.arrays, *p, 1.0)[0])


def test_where_nothing_was_seen_nothing_is_near():
    assert occupied_distance(NOTHING, 0.1, 0.2, 0.3, 5.0)[0] == 5.0
    assert (
        occupied_distance(mapped(np.zeros((0, 3))).arrays, 0.0, 0.0, 0.0, math.inf)[0] == math.inf
    )


def test_what_lies_outside_of_the_window_is_left_out():
    seen = VoxelMap(0.015)
    fill(seen, [[0, 0, 0], [2000, 0, 0], [-2000, 5, 5]])
    assert occupied(seen, EMPTY, WINDOW, 0.0).voxels == 1


@pytest.mark.parametrize(
    "window_m",
    [[[0, 0, 0], [0, 1, 1]], [[0, 0, 0], [np.nan, 1, 1]], [[-99, -99, -99], [99, 99, 99]]],
)
def test_a_window_that_cannot_be_is_refused(window_m):
    with pytest.raises(ValueError, match="window_m"):
        occupied(VoxelMap(0.015), EMPTY, np.array(window_m, dtype=np.float64), 0.02)


def test_a_map_that_could_not_hold_all_it_saw_says_so():
    seen = VoxelMap(0.015)
    assert occupied(seen, EMPTY, WINDOW, 0.0).complete
    seen.refused = 3
    assert not occupied(seen, EMPTY, WINDOW, 0.0).complete


# ---------------------------------------------------------------- beside what is known


def test_what_a_known_shape_explains_is_not_seen_again_and_what_stands_off_it_is():
    half_m = np.array([0.1, 0.2, 0.05])
    T = np.eye(4)
    T[:3, 3] = 0.3, -0.2, 0.4
    world = make_world((solid("box", BOX, half_m, T),))
    grid = np.array(list(itertools.product(range(8, 34), range(-34, 8), range(16, 38))))
    found = mapped(grid, world=world, explained_m=0.02)
    centre = (grid + 0.5) * 0.015 - T[:3, 3]
    out = np.maximum(np.abs(centre) - half_m, 0.0)
    expected = grid[np.linalg.norm(out, axis=1) >= 0.02]
    assert found.voxels == len(expected)
    assert occupied_distance(found.arrays, 0.3, -0.2, 0.4, math.inf)[0] == pytest.approx(
        plain(expected, 0.015, T[:3, 3]), abs=1e-9
    )


def boxes(indices, edge_m: float):
    """The same voxels as known boxes that nothing may touch."""
    cubes = []
    for n, index in enumerate(np.asarray(indices)):
        T = np.eye(4)
        T[:3, 3] = (index + 0.5) * edge_m
        cubes.append(solid(f"v{n}", BOX, np.full(3, 0.5 * edge_m), T))
    return make_world(tuple(cubes), frozenset())


def test_an_arm_is_as_far_from_voxels_as_from_boxes_in_their_places():
    rng = np.random.default_rng(4)
    seen_here = 0
    for _ in range(20):
        voxels = np.unique(rng.integers(-45, 46, (25, 3)), axis=0)
        near, same = obstacles(EMPTY, seen=mapped(voxels).arrays), obstacles(boxes(voxels, 0.015))
        for q in rng.uniform(-3.0, 3.0, (10, 6)):
            a, b = (arm_clearance(BODY, o, q, None, math.inf, 10.0) for o in (near, same))
            # Inside a voxel no depth is known: a sphere is then as deep as its radius at most.
            if b.distance_m > 0.0:
                assert a.distance_m == pytest.approx(b.distance_m, abs=1e-9)
            else:
                assert a.distance_m <= 0.0
            if a.against != MAPPED or a.distance_m <= 0.0:
                continue
            seen_here += 1
            assert b.against.startswith("v")
            assert np.linalg.norm(a.normal) == pytest.approx(1.0)
            assert np.allclose(a.point_m, b.point_m, atol=1e-9)
            assert np.allclose(a.normal, b.normal, atol=1e-6)
    print(f"{seen_here} places nearest to the map")
    assert seen_here > 50


def test_distances_to_the_arm_itself_keep_their_names_beside_a_map():
    near = obstacles(EMPTY, seen=mapped([[900, 900, 900]]).arrays)
    rng = np.random.default_rng(5)
    for q in rng.uniform(-3.0, 3.0, (50, 6)):
        with_map, without = arm_clearance(BODY, near, q), arm_clearance(BODY, obstacles(EMPTY), q)
        assert (with_map.against, with_map.distance_m) == (without.against, without.distance_m)
        assert with_map.against.startswith("self:")


@pytest.mark.parametrize("group", GROUPS)
def test_no_part_of_an_arm_may_touch_what_nobody_knows(group):
    world = make_world((), frozenset({(group, MAPPED)}))
    near = obstacles(world, seen=mapped([[0, 0, 0]]).arrays)
    q = np.zeros(6)
    assert arm_clearance(BODY, near, q).distance_m < 0.1


# ---------------------------------------------------------------- motions


def wall() -> np.ndarray:
    """A wall of voxels beside the arm with a gap under it, (n, 3)."""
    return np.array(list(itertools.product((-26, -25), range(-60, 60), range(8, 70))))


def test_a_certificate_holds_between_the_samples_beside_a_map():
    near = obstacles(EMPTY, seen=mapped(wall()).arrays)
    rng = np.random.default_rng(6)
    for _ in range(20):
        path = rng.uniform(-1.5, 1.5, (2, 6))
        bound = certify(BODY, near, path).certified_m
        rows = path[0] + np.linspace(0.0, 1.0, 400)[:, None] * (path[1] - path[0])
        assert bound <= path_clearances(BODY, near, rows).min() + 1e-12


def test_a_way_is_found_around_what_only_the_map_knows():
    near = obstacles(EMPTY, seen=mapped(wall()).arrays)
    start = np.array([math.pi / 2, -1.2, 1.2, -1.5, -1.5, 0.0])
    goal = start - [math.pi, 0, 0, 0, 0, 0]
    straight = start + np.linspace(0.0, 1.0, 300)[:, None] * (goal - start)
    assert path_clearances(BODY, near, straight).min() < 0.0, "the straight way is free"
    found = plan(BODY, near, start, [goal], RANGE, seed=1, iterations=20_000)
    assert isinstance(found, Plan), found
    rows = np.concatenate(
        [
            a + np.linspace(0.0, 1.0, 200)[:, None] * (b - a)
            for a, b in itertools.pairwise(found.path_rad)
        ]
    )
    least_m = path_clearances(BODY, near, rows).min()
    print(f"{len(found.path_rad)} corners, {1000 * least_m:.1f} mm, needed 2 mm to itself")
    assert least_m >= 0.002
