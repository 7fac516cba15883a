import json

import numpy as np
import pytest

from benchmarks.depth_scenes import intrinsics, looking
from benchmarks.drops import AT_M, EYE_M, NOISE_M, Drop, drop_cells
from benchmarks.replan import flatters, judge, main, verdicts
from benchmarks.strokes import StrokeCell, path_of

KEYS = (
    "replan_p50_ms",
    "replan_p99_ms",
    "frame_to_path_p50_ms",
    "frame_to_path_p99_ms",
    "verdict_p99_ms",
    "strokes",
    "false_safe",
)


def test_a_short_run_ends_with_one_object_and_nothing_is_called_safe_that_touches(capsys):
    main(json=True, strokes=20, drops=10)
    result = json.loads(capsys.readouterr().out.splitlines()[-1])
    print(result)
    assert [key for key in KEYS if key not in result] == []
    assert (result["strokes"], result["false_safe"]) == (20, 0)
    assert result["verdict_p50_ms"] <= result["verdict_p99_ms"]
    assert sum(result["drops_by_outcome"].values()) == result["drops"] == 10
    assert result["drops_by_outcome"]["new path"] >= 3
    assert result["replan_p50_ms"] <= result["frame_to_path_p50_ms"]
    assert result["dense_failures"] == 0


def test_the_camera_of_the_drops_sees_what_rays_find():
    """Each pixel of box and arm, by the distance of the ray's point to what it should lie on."""
    cell, rng = next(drop_cells()), np.random.default_rng(1)
    q = cell.the.start_rad
    drop = Drop(
        q_rad=q,
        rest_rad=q[None],
        centre_m=np.array([0.35, 0.3, 0.35]),
        half_m=np.array([0.05, 0.08, 0.04]),
        missed=0,
    )
    images = [cell.image(q, d, rng).depth_m.astype(np.float64) for d in (drop, None)]
    v, u = np.nonzero(images[0] < images[1] - 0.05)
    K, T = intrinsics(), looking(EYE_M, AT_M)
    z = images[0][v, u]
    optical = np.column_stack([(u - K[0, 2]) / K[0, 0] * z, (v - K[1, 2]) / K[1, 1] * z, z])
    off = np.abs(optical @ T[:3, :3].T + T[:3, 3] - drop.centre_m) - drop.half_m
    surface_m = np.linalg.norm(np.maximum(off, 0.0), axis=1) + np.minimum(off.max(axis=1), 0.0)
    print(f"{len(z)} pixels of the box, off by {np.abs(surface_m).max():.4f} m at most")
    assert len(z) > 1000
    assert np.abs(surface_m).max() < 6.0 * NOISE_M
    balls = cell.spheres(q)
    bare, z = cell._empty, images[1]
    v, u = np.nonzero((z > 0.0) & (z < bare - 0.02))
    z = z[v, u]
    optical = np.column_stack([(u - K[0, 2]) / K[0, 0] * z, (v - K[1, 2]) / K[1, 1] * z, z])
    points = optical @ T[:3, :3].T + T[:3, 3]
    gap_m = np.linalg.norm(points[:, None] - balls[None, :, :3], axis=2) - balls[:, 3]
    assert len(z) > 1000
    assert np.abs(gap_m.min(axis=1)).max() < 6.0 * NOISE_M


def test_physics_finds_what_touches_along_a_stroke():
    """The check of the check: a stroke into the bench touches it, and says so if called safe."""
    cell = StrokeCell("bench_pick", 1)
    rng = np.random.default_rng(3)
    kinds = set()
    for _ in range(25):
        stroke = cell.draw(rng)
        found, _, _ = judge(cell, stroke)
        touch = cell.touched(stroke.arm, path_of(cell.bodies[stroke.arm], stroke))
        kinds.add((found.kind, touch is not None))
        if touch is not None:
            assert found.kind in ("contact", "unreachable")
            lied = type(found)(
                kind="safe", certified_m=1.0, row=0.0, along_m=0.0, place=found.place
            )
            assert len(flatters(cell, stroke, lied)) == 1
    print(kinds)
    assert {("contact", True), ("safe", False)} <= kinds


@pytest.mark.long
def test_two_thousand_strokes_and_none_is_called_safe_that_touches():
    result, wrong = verdicts(2000, seed=2)
    print(result)
    assert wrong == []
