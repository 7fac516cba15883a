"""The voxel map: what it holds is what a plain one holds; what it cannot take it refuses."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.depth_scenes import Boxes, cell_boxes, depth_of, intrinsics, looking
from benchmarks.plain_map import PlainMap
from brain.geometry import quat_to_matrix, transform
from brain.types import NS_PER_S
from brain.voxel_kernels import MapArrays, find, find_or_make, key_of
from brain.voxels import EDGES_M, DepthImage, Limits, Seen, VoxelMap
from tests.values import replace

WIDTH, HEIGHT = 160, 120
K = intrinsics(WIDTH, HEIGHT)
HERE = looking((0.1, -1.2, 1.0), (0.0, 0.0, 0.1))


def frame(
    boxes: Boxes, number: int = 1, pose: np.ndarray = HERE, noise_m: float = 0.0
) -> DepthImage:
    """An image of boxes; the number is its time, too."""
    depth = depth_of(boxes, K, pose, (HEIGHT, WIDTH))
    rng = np.random.default_rng(number)
    noisy = np.where(depth > 0.0, depth + rng.normal(0.0, noise_m, depth.shape), 0.0)
    return DepthImage(
        camera="wrist",
        t_ns=number,
        depth_m=noisy.astype(np.float32),
        K_px=K,
        T_world_optical=pose,
    )


def see(the_map: VoxelMap, image: DepthImage, body: np.ndarray | None = None) -> Seen:
    """Take a frame that must be taken."""
    seen = the_map.see(image, image.t_ns, body)
    assert isinstance(seen, Seen), seen
    return seen


def held(the_map: VoxelMap) -> set[tuple[int, ...]]:
    """Indices of all occupied voxels."""
    return {tuple(row) for row in the_map.snapshot().voxels.tolist()}


def seen_map(edge_m: float = 0.015, seed: int = 3) -> VoxelMap:
    """A map that has seen a scene."""
    the_map = VoxelMap(edge_m)
    see(the_map, frame(cell_boxes(np.random.default_rng(seed))))
    return the_map


# ------------------------------------------------------------------------ what it holds


@pytest.mark.parametrize("seed", range(6))
def test_it_holds_what_a_plain_map_holds(seed):
    rng = np.random.default_rng(seed)
    edge_m, boxes = EDGES_M[seed % 5], cell_boxes(rng)
    the_map, plain = VoxelMap(edge_m), PlainMap(edge_m)
    hand = np.array([[0.0, -0.2, 0.25, 0.18], [0.05, -0.4, 0.4, 0.15]])
    for k in range(5):
        pose = looking((0.2 * k - 0.37, -1.21 + 0.1 * k, 1.0), (0.01, 0.0, 0.1))
        image = frame(boxes.moved(5, (0.05 * k, 0.0, 0.0)), k + 1, pose, noise_m=0.003)
        body = hand if k % 2 else None
        see(the_map, image, body)
        plain.see(image, body)
    found, expected = held(the_map), plain.occupied()
    print(f"{len(found)} voxels, {len(found - expected)} too many, {len(expected - found)} too few")
    assert len(found) > 500
    assert found == expected


def test_the_ghost_of_a_moved_box_is_gone_after_two_frames():
    boxes = Boxes(
        np.array([[-1.0, -1.0, -0.05], [-0.1, -0.1, 0.0]]),
        np.array([[1.0, 1.0, 0], [0.1, 0.1, 0.2]]),
    )
    the_map = VoxelMap()
    for k in range(10):
        see(the_map, frame(boxes, k + 1))
    was = np.array([[0.0, -0.1 + 0.004, 0.1], [0.05, 0.0, 0.2 - 0.004]])
    assert the_map.is_occupied(was).all()
    gone = boxes.moved(1, (0.5, 0.3, 0.0))
    frames = 0
    while the_map.is_occupied(was).any():
        frames += 1
        assert frames <= 5, "frames until the ghost is gone, limit 5"
        see(the_map, frame(gone, 10 + frames))
    print(f"gone after {frames} frames, limit 5")
    assert frames <= 2


def test_what_is_hidden_stays():
    table = Boxes(np.array([[-1.0, -1.0, -0.05]]), np.array([[1.0, 1.0, 0.0]]))
    screen = Boxes(
        np.vstack([table.low_m, [[-0.6, -0.8, 0.3]]]),
        np.vstack([table.high_m, [[0.6, -0.79, 1.2]]]),
    )
    the_map = VoxelMap()
    see(the_map, frame(table))
    before = held(the_map)
    see(the_map, frame(screen, 2))
    print(f"{len(before - held(the_map))} of {len(before)} lost behind the screen")
    assert before <= held(the_map)


@pytest.mark.parametrize("hole", [0.0, np.nan, np.inf, -1.0])
def test_a_hole_says_nothing(hole):
    the_map = seen_map()
    before = the_map.snapshot()
    empty = np.full((HEIGHT, WIDTH), hole, dtype=np.float32)
    seen = see(the_map, replace(frame(cell_boxes(np.random.default_rng(3)), 2), depth_m=empty))
    assert (seen.points, seen.hit, seen.freed) == (0, 0, 0)
    assert the_map.snapshot().digest == before.digest


def test_cameras_have_times_of_their_own():
    boxes = cell_boxes(np.random.default_rng(1))
    the_map = VoxelMap()
    see(the_map, frame(boxes, 100))
    other = looking((-0.6, 1.0, 1.2), (0.0, 0.0, 0.0))
    late = replace(frame(boxes, 50, other), camera="overhead")
    assert isinstance(the_map.see(late, 100), Seen)
    assert "wrist: not newer" in str(the_map.see(frame(boxes, 100), 100))


# ----------------------------------------------------------------------- keys and memory


@given(st.integers(0, 2**32 - 1))
@settings(deadline=None, max_examples=10)
def test_at_85_percent_of_the_slots_no_two_places_are_confused(seed):
    slots = 4096
    arrays, rng = MapArrays.empty(slots), np.random.default_rng(seed)
    far = rng.integers(-(2**20), 2**20, (slots, 3))
    near = rng.integers(-40, 40, (slots, 3))
    voxels = np.unique(8 * np.vstack([near, far])[rng.permutation(2 * slots)], axis=0)
    rng.shuffle(voxels)
    inside, outside = voxels[: int(0.85 * slots)], voxels[int(0.85 * slots) :]
    numbers = [find_or_make(arrays, key_of(*map(int, voxel))) for voxel in inside]
    assert sorted(numbers) == list(range(len(inside)))
    again = [find(arrays, key_of(*(int(x) + 7 for x in voxel))) for voxel in inside]
    assert again == numbers
    assert {find(arrays, key_of(*map(int, voxel))) for voxel in outside} == {-1}


def test_a_full_map_refuses_and_says_so_and_loses_nothing():
    boxes = cell_boxes(np.random.default_rng(2))
    the_map = VoxelMap(0.005, slots=128)
    first = see(the_map, frame(boxes))
    assert the_map.refused == first.refused > 0
    before = held(the_map)
    see(the_map, frame(boxes, 2))
    print(f"{first.refused} of {first.points} points refused")
    assert (before <= held(the_map), the_map.bricks) == (True, 112)


def test_bricks_in_which_nothing_is_left_make_room_for_others():
    boxes = cell_boxes(np.random.default_rng(2))
    the_map = VoxelMap(0.005, slots=128)
    see(the_map, frame(boxes))
    assert the_map.bricks == 112
    the_map.clear_box(np.eye(4), np.full(3, 10.0))
    nothing = np.zeros((HEIGHT, WIDTH), dtype=np.float32)
    see(the_map, replace(frame(boxes, 2), depth_m=nothing))
    assert the_map.bricks == 0
    assert see(the_map, frame(boxes, 3)).hit > 0


def test_a_frame_allocates_next_to_nothing():
    boxes, the_map = cell_boxes(np.random.default_rng(3)), VoxelMap()
    images = [frame(boxes, k) for k in (1, 2, 3)]
    body = np.array([[0.0, 0.0, 0.1, 0.2]])
    for image in images[:2]:
        see(the_map, image, body)
    tracemalloc.start()
    see(the_map, images[2], body)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    print(f"{peak} bytes, limit 20000; the image has {images[2].depth_m.nbytes}")
    assert peak < 20_000


# -------------------------------------------------------------- regions, edges, normals, digest


def region_case():
    the_map = seen_map()
    turned = np.array([0.9, 0.1, -0.2, 0.3])
    pose = transform((0.1, 0.0, 0.05), quat_to_matrix(turned / np.linalg.norm(turned)))
    centres = the_map.occupied()
    local = (centres - pose[:3, 3]) @ pose[:3, :3]
    return the_map, pose, centres, local


def test_a_box_is_cleared_and_nothing_else():
    the_map, pose, centres, local = region_case()
    size = np.array([0.6, 0.4, 0.3])
    inside = (2.0 * np.abs(local) <= size).all(axis=1)
    assert the_map.clear_box(pose, size) == inside.sum() > 100
    np.testing.assert_array_equal(the_map.is_occupied(centres), ~inside)


def test_a_cylinder_is_cleared_and_nothing_else():
    the_map, pose, centres, local = region_case()
    inside = (np.hypot(local[:, 0], local[:, 1]) <= 0.2) & (np.abs(local[:, 2]) <= 0.25)
    assert the_map.clear_cylinder(pose, 0.2, 0.5) == inside.sum() > 100
    np.testing.assert_array_equal(the_map.is_occupied(centres), ~inside)


def test_bricks_that_nothing_looked_into_for_long_are_forgotten():
    boxes = cell_boxes(np.random.default_rng(4))
    the_map = VoxelMap()
    see(the_map, frame(boxes, NS_PER_S))
    away = replace(frame(boxes, 2 * NS_PER_S), T_world_optical=looking((9.0, 9.0, 1), (9, 9.5, 0)))
    see(the_map, away)
    new = held(the_map)
    assert the_map.forget(2 * NS_PER_S) > 10
    assert len(held(the_map)) < len(new)
    kept = held(the_map)
    assert all(x * the_map.edge_m > 5.0 for x, _, _ in kept)


@pytest.mark.parametrize("edge_m", EDGES_M)
@pytest.mark.parametrize("to_m", EDGES_M)
def test_another_edge_keeps_all_of_the_space(edge_m, to_m):
    the_map = seen_map(edge_m)
    other = the_map.with_edge(to_m)
    steps = (np.indices((3, 3, 3)).reshape(3, -1).T - 1) * 0.499 * edge_m
    points = (the_map.occupied()[:, None] + steps).reshape(-1, 3)
    assert other.refused == 0
    assert other.is_occupied(points).all()
    if to_m == edge_m:
        assert other.snapshot().digest == the_map.snapshot().digest


@pytest.mark.parametrize("seed", range(8))
def test_a_normal_is_that_of_the_plane_and_on_the_side_asked_for(seed):
    rng = np.random.default_rng(seed)
    quat = rng.normal(size=4)
    axes = quat_to_matrix(quat / np.linalg.norm(quat))
    grid = np.stack(np.meshgrid(*[np.linspace(-0.2, 0.2, 200)] * 2), axis=-1).reshape(-1, 2)
    the_map, points = VoxelMap(0.010), grid @ axes[:, :2].T
    for voxel in np.floor(points / 0.010).astype(int):
        b = find_or_make(the_map.arrays, key_of(*map(int, voxel)))
        x, y, z = (int(i) & 7 for i in voxel)
        the_map.arrays.occupancy[b, (x << 6) | (y << 3) | z] = 0.8
    for side in (1.0, -1.0):
        normal = the_map.normal(np.zeros(3), side * axes[:, 2])
        off_deg = np.degrees(np.arccos(np.clip(side * normal @ axes[:, 2], -1.0, 1.0)))
        print(f"{off_deg:.1f} deg off, limit 12")
        assert off_deg < 12.0


def test_without_a_surface_there_is_no_normal():
    the_map = VoxelMap()
    assert the_map.normal(np.zeros(3), np.ones(3)) is None
    for x in range(-2, 3):
        b = find_or_make(the_map.arrays, key_of(x, 0, 0))
        the_map.arrays.occupancy[b, (x & 7) << 6] = 0.8
    assert the_map.normal(np.full(3, 1e-3), np.ones(3)) is None


def marked(voxels, edge_m: float = 0.015) -> VoxelMap:
    """A map with some voxels, in the order in which they are given."""
    the_map = VoxelMap(edge_m)
    for x, y, z in voxels:
        b = find_or_make(the_map.arrays, key_of(x, y, z))
        the_map.arrays.occupancy[b, ((x & 7) << 6) | ((y & 7) << 3) | (z & 7)] = 0.8
    return the_map


def test_a_snapshot_depends_on_what_is_held_and_not_on_the_order_in_which_it_came():
    rng = np.random.default_rng(5)
    voxels = np.unique(rng.integers(-60, 60, (300, 3)), axis=0).tolist()
    one = marked(voxels).snapshot()
    other = marked([voxels[i] for i in rng.permutation(len(voxels))]).snapshot()
    assert one.voxels.tolist() == other.voxels.tolist() == voxels
    assert one.digest == other.digest
    assert marked(voxels[1:]).snapshot().digest != one.digest
    assert marked(voxels, 0.010).snapshot().digest != one.digest
    assert not one.voxels.flags.writeable


# --------------------------------------------------------------------------------- bad input

BAD = {
    "depth in mm": (lambda i: {"depth_m": i.depth_m * np.float32(1000.0)}, "in mm?"),
    "depth of integers": (lambda i: {"depth_m": i.depth_m.astype(np.uint16)}, "float32 in m"),
    "a colour image": (lambda i: {"depth_m": np.zeros((4, 4, 3), np.float32)}, "(h, w)"),
    "a flat image": (lambda i: {"depth_m": i.depth_m.ravel()}, "(h, w)"),
    "no focal length": (lambda i: {"K_px": i.K_px * [[0.0], [1.0], [1.0]]}, "over 0"),
    "half a camera": (lambda i: {"K_px": i.K_px[:2]}, "K_px must be (3, 3)"),
    "a pose that is not rigid": (lambda i: {"T_world_optical": 1.1 * HERE}, "not rigid"),
    "a pose that is NaN": (lambda i: {"T_world_optical": HERE * np.nan}, "not rigid"),
    "a camera on the moon": (
        lambda i: {"T_world_optical": transform((3.8e8, 0.0, 0.0), HERE[:3, :3])},
        "3.8e+08 m from the world's origin, at most 1000",
    ),
    "a time in the future": (lambda i: {"t_ns": i.t_ns + 1}, "1 ns in the future"),
    "a time before": (lambda i: {"t_ns": i.t_ns - 1}, "not newer"),
    "an old frame": (lambda i: {"t_ns": i.t_ns - Limits().age_max_ns - 1}, "ms old, at most 500"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_frame_is_refused_with(name):
    change, needle = BAD[name]
    the_map, now_ns = VoxelMap(), 2 * NS_PER_S
    image = frame(cell_boxes(np.random.default_rng(3)), now_ns)
    see(the_map, replace(image, t_ns=now_ns - 1))
    before = (the_map.version, the_map.snapshot().digest)
    found = the_map.see(replace(image, **change(image)), now_ns)
    assert (needle in str(found), str(found).startswith("wrist: ")) == (True, True), found
    assert (the_map.version, the_map.snapshot().digest) == before


@pytest.mark.parametrize(
    ("body", "needle"),
    [
        (np.full((1, 4), np.nan), "where the robot was"),
        (np.zeros((3, 3)), "must be spheres (n, 4)"),
        (np.zeros(4), "must be spheres (n, 4)"),
    ],
)
def test_a_frame_is_refused_when_the_robot_is_nowhere(body, needle):
    found = VoxelMap().see(frame(cell_boxes(np.random.default_rng(3))), 1, body)
    assert needle in str(found)


@pytest.mark.parametrize("args", [(0.012,), (0.0,), (float("nan"),), (0.015, 100), (0.015, 0)])
def test_a_map_of_another_kind_there_is_not(args):
    with pytest.raises(ValueError, match=r"edge_m|slots"):
        VoxelMap(*args)
