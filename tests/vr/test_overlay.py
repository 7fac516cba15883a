import math

import mujoco
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hardware.status import Preview, PreviewArm
from tests.vr.cells import cell, model
from vr.overlay import (
    SCALE,
    SEGMENTS_MAX,
    THICK_M,
    THIN_M,
    clearance_colour,
    draw_ways,
    line_radius_m,
    thinned,
    ways,
)
from vr.style import LIMP


def luminance(colour) -> float:
    """Source: WCAG 2.1, relative luminance."""
    r, g, b = (v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4 for v in colour)
    return 0.2126 * r + 0.7152 * g + 0.0722 * b


@pytest.mark.parametrize(("at_m", "colour"), SCALE)
def test_every_stop_of_the_scale_has_its_own_colour(at_m, colour):
    assert clearance_colour(at_m) == pytest.approx(colour)


@given(st.floats(-0.1, 3.0), st.floats(0.0, 1e-4))
def test_the_scale_has_no_steps(at_m, step_m):
    a, b = clearance_colour(at_m), clearance_colour(at_m + step_m)
    assert np.abs(np.subtract(a, b)).max() <= step_m / 0.02 + 1e-9


@pytest.mark.parametrize("unknown", [None, math.nan])
def test_an_unknown_clearance_is_grey(unknown):
    assert clearance_colour(unknown) == LIMP


def test_near_and_far_differ_from_the_middle_in_lightness_too():
    middle = luminance(clearance_colour(0.05))
    ends = luminance(clearance_colour(0.0)), luminance(clearance_colour(0.2))
    print(f"middle {middle:.2f}, ends {ends[0]:.2f} and {ends[1]:.2f}; ratio at least 3")
    assert all((middle + 0.05) / (end + 0.05) > 3.0 for end in ends)


@given(st.floats(0.0, 0.3), st.floats(0.0, 0.3))
def test_the_nearer_the_thicker(a_m, b_m):
    near, far = min(a_m, b_m), max(a_m, b_m)
    assert THIN_M <= line_radius_m(far) <= line_radius_m(near) <= THICK_M


@given(st.integers(2, 400), st.floats(0.002, 0.2), st.integers(0, 1000))
def test_a_thinned_way_keeps_its_ends_and_stays_small(n, step_m, seed):
    points = np.cumsum(np.random.default_rng(seed).normal(size=(n, 3), scale=0.01), axis=0)
    rows = thinned(points, step_m)
    assert rows[0] == 0
    assert rows[-1] == n - 1
    assert len(rows) <= SEGMENTS_MAX + 2
    assert rows == sorted(set(rows))


def preview(q_rad, clearance_m=None) -> Preview:
    arm = PreviewArm(
        name="ur5e", q_rad=q_rad, opening_m=None, clearance_m=clearance_m, force_n=None
    )
    return Preview(
        digest="0" * 64, t_ns=np.arange(len(q_rad)) * 20_000_000, arms=(arm,), verdict={}
    )


def test_the_way_begins_and_ends_where_the_tool_does():
    home = np.array(cell().arms[0].home_q_rad)
    q = home + np.linspace(0.0, 0.4, 30)[:, None] * np.eye(6)[0]
    way = ways(cell(), preview(q))[0]
    turned = math.dist(way.points_m[0][:2], (0.0, 0.0))
    chord = np.linalg.norm(way.points_m[-1] - way.points_m[0])
    print(f"chord {chord:.4f} m of an arc of radius {turned:.4f} m over 0.4 rad")
    assert chord == pytest.approx(2.0 * turned * math.sin(0.2), abs=1e-6)


def test_an_arm_that_stays_has_no_way():
    home = np.array(cell().arms[0].home_q_rad)
    assert ways(cell(), preview(np.tile(home, (20, 1)))) == ()


def test_a_drawn_way_fits_into_the_scene_and_is_coloured_by_its_clearance():
    home = np.array(cell().arms[0].home_q_rad)
    q = home + np.linspace(0.0, 1.5, 300)[:, None] * np.eye(6)[0]
    scene = mujoco.MjvScene(model().model, maxgeom=300)
    draw_ways(scene, ways(cell(), preview(q, np.full(300, 0.02))))
    line = [g for g in scene.geoms[: scene.ngeom] if g.type == mujoco.mjtGeom.mjGEOM_CAPSULE]
    assert 0 < scene.ngeom <= 300
    assert np.allclose(line[0].rgba[:3], clearance_colour(0.02), atol=1e-6)
