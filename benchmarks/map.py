"""The voxel map: how fast a frame goes in beside OctoMap, and whether what it holds is right.

    python -m benchmarks.map [--json] [--frames 200] [--scenes 20]

Frames: 640 x 480 depth images of a table with twelve boxes and a wall, 2 mm of noise, from a camera
that moves; all of a frame is timed (check, insertion of every point, seeing through every voxel).
`insert_*_ms`, `mpoints_s`: edge 15 mm; `edge_*mm_p50_ms`, `edge_*mm_p99_ms`: all edges;
`full_*`: 15 mm with 85 % of the hash's slots in use; `body_*`: with 40 spheres of a robot.
`octomap_*`: pyoctomap's insertion of the same points at 15 mm, every ray, and discretised; the
ratio is its discretised median over ours. It is null where pyoctomap is not installed.
`occupied_*_ms`: taking what is around an arm out of the map after a frame; `arm_map_*_us`: how far
a UR5e with its gripper is from all of that, and `arm_known_*_us`: from the shapes of bench_pick.
`wrong_voxels`, `missing_voxels`: of all scenes, voxels that only ours or only a plain map in Python
holds after six frames. `clear_frames`, `ghost_frames`: frames until all that a box left free, and
until the box's last ghost is gone (the most over all scenes).
"""

from __future__ import annotations

import sys
import time
from dataclasses import replace
from importlib.util import find_spec
from typing import Annotated

import numpy as np
import tyro
from rich.console import Console
from rich.progress import track
from rich.table import Table

from benchmarks.depth_scenes import Boxes, cell_boxes, depth_of, intrinsics, looking
from benchmarks.plain_map import PlainMap
from benchmarks.report import last_line, machine, percentiles
from brain.body import place, work
from brain.distance import distances, obstacles
from brain.geometry import Array
from brain.occupied import occupied
from brain.voxel_kernels import find_or_make, key_of
from brain.voxels import EDGES_M, DepthImage, Seen, VoxelMap
from brain.world import make_world
from hardware.resolve import resolve
from hardware.scene import cell_model, load_scene, world_of

EDGE_M, NOISE_M, FILL = 0.015, 0.002, 0.85
VIEWS = 8
PEER_FRAMES = 5
BOX = 5
ON_TABLE_M = 0.03
WINDOW_M, LOOK_M = 1.2, 0.3


def views(rng: np.random.Generator, boxes: Boxes, n: int = VIEWS) -> list[DepthImage]:
    """Images of boxes from a camera that moves, with noise."""
    found = []
    for k in range(n):
        pose = looking((0.13 + 0.05 * k, -1.1, 1.0), (0.01, 0.0, 0.1))
        depth = depth_of(boxes, intrinsics(), pose)
        noisy = np.where(depth > 0.0, depth + rng.normal(0.0, NOISE_M, depth.shape), 0.0)
        found.append(
            DepthImage(
                camera="bench",
                t_ns=0,
                depth_m=noisy.astype(np.float32),
                K_px=intrinsics(),
                T_world_optical=pose,
            )
        )
    return found


def feed(the_map: VoxelMap, image: DepthImage, body: Array | None = None) -> tuple[float, Seen]:
    """Take an image as the next one; return the time in ms, and what came of it."""
    t_ns = the_map.version + 1
    image = replace(image, t_ns=t_ns)
    start = time.perf_counter()
    seen = the_map.see(image, t_ns, body)
    took_ms = 1e3 * (time.perf_counter() - start)
    if isinstance(seen, str):
        raise SystemExit(seen)
    return took_ms, seen


def timed(
    the_map: VoxelMap, images: list[DepthImage], frames: int, body: Array | None = None
) -> tuple[float, float, float]:
    """Median and p99 of a frame in ms, and million points a second at the median."""
    for image in images:
        feed(the_map, image, body)
    found = [feed(the_map, images[k % len(images)], body) for k in range(frames)]
    p50, p99 = percentiles([ms for ms, _ in found])
    points = float(np.median([seen.points for _, seen in found]))
    return p50, p99, points / p50 / 1e3


def nearly_full(images: list[DepthImage]) -> VoxelMap:
    """A map in which other places use up all slots but 15 %."""
    the_map = VoxelMap(EDGE_M, slots=4096)
    for image in images:
        feed(the_map, image)
    rng = np.random.default_rng(0)
    while the_map.fill < FILL:
        x, y, z = (int(v) for v in rng.integers(2**14, 2**20, 3))
        b = find_or_make(the_map.arrays, key_of(x, y, z))
        the_map.arrays.occupancy[b, 0] = the_map.arrays.top[b] = 0.8
    return the_map


def robot() -> Array:
    """Forty spheres of an arm that reaches over the table, in view (n, 4)."""
    along = np.linspace(0.0, 1.0, 40)[:, None]
    middle = np.array([-0.6, 0.4, 0.1]) + along * np.array([0.7, -0.6, 0.35])
    return np.hstack([middle, np.full((40, 1), 0.07)])


def around_an_arm(images: list[DepthImage], asked: int = 2000) -> dict[str, object]:
    """Time what an arm asks of the map, beside what it asks of known shapes."""
    resolved = resolve(load_scene("bench_pick"), 1)
    arm, world = cell_model(resolved).arms[0], world_of(resolved)
    body = place(arm.model, arm.T_world_base)
    at, the_map = work(body), VoxelMap(EDGE_M)
    for image in images:
        feed(the_map, image)
    window_m = arm.T_world_base[:3, 3] + np.array([[-WINDOW_M] * 3, [WINDOW_M] * 3])
    empty = make_world(())
    took_ms = []
    for _ in range(50):
        start = time.perf_counter()
        found = occupied(the_map, empty, window_m, 0.0)
        took_ms.append(1e3 * (time.perf_counter() - start))
    rng = np.random.default_rng(2)
    poses = arm.home_q_rad + rng.uniform(-1.0, 1.0, (asked, arm.model.dof))
    p50, p99 = percentiles(took_ms)
    result: dict[str, object] = {
        "occupied_voxels": found.voxels,
        "occupied_p50_ms": p50,
        "occupied_p99_ms": p99,
    }
    for name, near in (
        ("known", obstacles(world)),
        ("map", obstacles(empty, seen=found.arrays)),
    ):
        took_us = []
        for q_rad in (poses[0], *poses):
            start = time.perf_counter()
            distances(body.arrays, near.arrays, q_rad, at, LOOK_M)
            took_us.append(1e6 * (time.perf_counter() - start))
        p50, p99 = percentiles(took_us[1:])
        result |= {f"arm_{name}_p50_us": p50, f"arm_{name}_p99_us": p99}
    return result


def peer(images: list[DepthImage]) -> dict[str, float | None]:
    """Insertion of the same points by OctoMap, in ms."""
    if find_spec("pyoctomap") is None:
        return {"octomap_ms": None, "octomap_discretised_ms": None}
    import pyoctomap

    took: dict[bool, list[float]] = {False: [], True: []}
    for discretised, samples in took.items():
        tree = pyoctomap.OcTree(EDGE_M)
        for image in images[:PEER_FRAMES]:
            K, pose = image.K_px, image.T_world_optical
            v, u = np.nonzero(image.depth_m)
            z = image.depth_m[v, u].astype(np.float64)
            optical = np.column_stack([(u - K[0, 2]) / K[0, 0] * z, (v - K[1, 2]) / K[1, 1] * z, z])
            points = np.ascontiguousarray(optical @ pose[:3, :3].T + pose[:3, 3])
            start = time.perf_counter()
            tree.insertPointCloud(points, pose[:3, 3].copy(), -1.0, False, discretised)
            samples.append(1e3 * (time.perf_counter() - start))
    return {
        "octomap_ms": float(np.median(took[False])),
        "octomap_discretised_ms": float(np.median(took[True])),
    }


def compared(scenes: int, show: bool) -> dict[str, object]:
    """Hold the map against a plain one, and against what is known of the boxes."""
    wrong, missing, clear_frames, ghost_frames = 0, 0, 0, 0
    for seed in track(range(scenes), "scenes", console=Console(stderr=True), disable=not show):
        rng = np.random.default_rng(seed)
        boxes = cell_boxes(rng)
        images = views(rng, boxes, 6)
        ours, plain = VoxelMap(EDGE_M), PlainMap(EDGE_M)
        for image in images:
            feed(ours, image)
            plain.see(image)
        held, expected = ours.snapshot().voxels.tolist(), plain.occupied()
        wrong += sum(tuple(voxel) not in expected for voxel in held)
        missing += len(expected) - sum(tuple(voxel) in expected for voxel in held)
        clear, ghost = cleared(ours, boxes, rng)
        clear_frames, ghost_frames = max(clear_frames, clear), max(ghost_frames, ghost)
    return {
        "wrong_voxels": wrong,
        "missing_voxels": missing,
        "clear_frames": clear_frames,
        "ghost_frames": ghost_frames,
    }


def cleared(the_map: VoxelMap, boxes: Boxes, rng: np.random.Generator) -> tuple[int, int]:
    """Take a box away; count frames until 99 % of what it left, and all, is free.

    Counted are the voxels that it alone occupied, and that the camera sees through from now on.
    """
    margin = np.array([0.0, 0.0, ON_TABLE_M])
    low, high = boxes.low_m[BOX] + margin, boxes.high_m[BOX] + NOISE_M
    others = [k for k in range(len(boxes.low_m)) if k != BOX]
    left = Boxes(boxes.low_m[others], boxes.high_m[others])
    centres = the_map.occupied()
    ghost = centres[((centres > low - 0.01) & (centres < high + 0.01)).all(axis=1)]
    for a, b in zip(left.low_m, left.high_m, strict=True):
        ghost = ghost[~((ghost > a - ON_TABLE_M) & (ghost < b + ON_TABLE_M)).all(axis=1)]
    (image,) = views(rng, left, 1)
    optical = (ghost - image.T_world_optical[:3, 3]) @ image.T_world_optical[:3, :3]
    u, v = (optical[:, :2] / optical[:, 2:] @ image.K_px[:2, :2].T + image.K_px[:2, 2]).T
    inside = (u > 1) & (v > 1) & (u < 638) & (v < 478)
    at = (np.floor(v[inside] + 0.5).astype(int), np.floor(u[inside] + 0.5).astype(int))
    ghost = ghost[inside][image.depth_m[at] > optical[inside, 2] + 2.0 * ON_TABLE_M]
    frames, most = 0, 0
    while the_map.is_occupied(ghost).any():
        frames += 1
        feed(the_map, image)
        if the_map.is_occupied(ghost).mean() > 0.01:
            most = frames
        if frames > 100:
            raise SystemExit("a ghost that stays")
    return min(most + 1, frames), frames


def main(
    json: bool = False,
    frames: Annotated[int, tyro.conf.arg(help="frames timed per edge")] = 200,
    scenes: Annotated[int, tyro.conf.arg(help="scenes held against a plain map")] = 20,
) -> None:
    """Print a table of times and what is wrong, and with --json one object as the last line."""
    if frames < 1 or scenes < 1:
        raise SystemExit("--frames and --scenes: at least 1")
    rng = np.random.default_rng(1)
    images = views(rng, cell_boxes(rng))
    result: dict[str, object] = {"machine": machine(), "frames": frames}
    table = Table("map", "p50 ms", "p99 ms", "million points / s", title=machine())
    for edge_m in EDGES_M:
        p50, p99, rate = timed(VoxelMap(edge_m), images, frames)
        name = f"edge_{1e3 * edge_m:.0f}mm"
        result |= {f"{name}_p50_ms": p50, f"{name}_p99_ms": p99}
        table.add_row(f"{1e3 * edge_m:.0f} mm", f"{p50:.2f}", f"{p99:.2f}", f"{rate:.0f}")
        if edge_m == EDGE_M:
            ours_ms = p50
            result |= {"insert_p50_ms": p50, "insert_p99_ms": p99, "mpoints_s": rate}
    for name, the_map, body in (
        ("full", nearly_full(images), None),
        ("body", VoxelMap(EDGE_M), robot()),
    ):
        p50, p99, rate = timed(the_map, images, frames, body)
        result |= {f"{name}_p50_ms": p50, f"{name}_p99_ms": p99}
        table.add_row(f"15 mm, {name}", f"{p50:.2f}", f"{p99:.2f}", f"{rate:.0f}")
    found = peer(images)
    for key, ms in found.items():
        table.add_row(key.removesuffix("_ms"), "-" if ms is None else f"{ms:.1f}", "", "")
    slow_ms = found["octomap_discretised_ms"]
    result |= found
    result["octomap_discretised_ratio"] = None if slow_ms is None else slow_ms / ours_ms
    asked = around_an_arm(images)
    result |= asked
    for key, figure in asked.items():
        table.add_row(key, f"{figure:.2f}", "", "")
    result |= compared(scenes, sys.stderr.isatty())
    Console().print(table)
    last_line(result) if json else print(result)


if __name__ == "__main__":
    tyro.cli(main)
