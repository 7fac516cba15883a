import math

import mujoco
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.vr.cells import model
from vr import camera_view as cv
from vr.camera_view import OrbitView, Rect

VIEW = OrbitView(look_at_m=(0.4, 0.0, 1.0), distance_m=2.3, azimuth_deg=82.0, elevation_deg=-35.0)
RECT = Rect(x=0.0, y=72.0, width=1036.0, height=596.0)
FOVY_DEG = 45.0

views = st.builds(
    OrbitView,
    look_at_m=st.tuples(*[st.floats(-1.0, 1.0)] * 3),
    distance_m=st.floats(0.2, 8.0),
    azimuth_deg=st.floats(0.0, 360.0),
    elevation_deg=st.floats(-89.0, 15.0),
)


def test_the_camera_is_where_mujoco_puts_it():
    scene = mujoco.MjvScene(model().model, maxgeom=200)
    data = mujoco.MjData(model().model)
    mujoco.mj_forward(model().model, data)
    camera = mujoco.MjvCamera()
    camera.lookat[:] = VIEW.look_at_m
    camera.distance = VIEW.distance_m
    camera.azimuth, camera.elevation = VIEW.azimuth_deg, VIEW.elevation_deg
    everything = mujoco.mjtCatBit.mjCAT_ALL
    option, perturb = mujoco.MjvOption(), mujoco.MjvPerturb()
    mujoco.mjv_updateScene(model().model, data, option, perturb, camera, everything, scene)
    theirs = 0.5 * (np.array(scene.camera[0].pos) + scene.camera[1].pos)
    _, up, forward = cv.axes(VIEW)
    ours = np.array(VIEW.look_at_m) - VIEW.distance_m * forward
    print(f"{1e6 * np.linalg.norm(theirs - ours):.2f} um apart, at most 10 um (single precision)")
    assert np.allclose(theirs, ours, atol=1e-5)
    assert np.allclose(scene.camera[0].forward, forward, atol=1e-6)
    assert np.allclose(scene.camera[0].up, up, atol=1e-6)


@given(views)
def test_what_is_looked_at_is_in_the_middle_of_the_picture(view):
    x, y = cv.pixel(view, FOVY_DEG, RECT, np.array(view.look_at_m))
    assert x == pytest.approx(RECT.x + 0.5 * RECT.width, abs=1e-6)
    assert y == pytest.approx(RECT.y + 0.5 * RECT.height, abs=1e-6)


@given(views)
def test_the_axes_of_the_camera_are_right_handed_and_unit(view):
    right, up, forward = cv.axes(view)
    frame = np.array((right, up, -forward))
    assert np.allclose(frame @ frame.T, np.eye(3), atol=1e-12)
    assert np.linalg.det(frame) == pytest.approx(1.0)


@given(views, st.floats(-200.0, 200.0), st.floats(-200.0, 200.0))
def test_a_pan_keeps_what_was_looked_at_under_the_mouse(view, dx, dy):
    size = cv.m_per_px(view, FOVY_DEG, RECT.height)
    moved = cv.pan(view, dx, dy, size)
    x, y = cv.pixel(moved, FOVY_DEG, RECT, np.array(view.look_at_m))
    assert x == pytest.approx(RECT.x + 0.5 * RECT.width + dx, abs=1e-6)
    assert y == pytest.approx(RECT.y + 0.5 * RECT.height + dy, abs=1e-6)


@given(views, st.floats(-5000.0, 5000.0), st.floats(-5000.0, 5000.0))
def test_no_orbit_turns_the_camera_over_or_under_the_floor(view, dx, dy):
    turned = cv.orbit(view, dx, dy)
    assert cv.LOWEST_DEG <= turned.elevation_deg <= cv.HIGHEST_DEG
    assert turned.distance_m == view.distance_m


@given(views, st.integers(-60, 60))
def test_no_wheel_brings_the_camera_into_or_out_of_the_cell(view, notches):
    assert cv.NEAREST_M <= cv.zoom(view, notches).distance_m <= cv.FARTHEST_M


def test_dragging_to_the_right_turns_the_front_of_the_scene_to_the_right():
    right, _, forward = cv.axes(VIEW)
    front = np.array(VIEW.look_at_m) - 0.3 * forward
    before, _ = cv.pixel(VIEW, FOVY_DEG, RECT, front)
    after, _ = cv.pixel(cv.orbit(VIEW, 40.0, 0.0), FOVY_DEG, RECT, front)
    assert after > before


def test_pixels_agree_with_view_and_projection_matrices():
    point = np.array((0.1, -0.3, 0.9))
    aspect = RECT.width / RECT.height
    clip = cv.projection(FOVY_DEG, aspect, 0.02, 30.0) @ cv.view_matrix(VIEW) @ (*point, 1.0)
    x, y = clip[:2] / clip[3]
    seen = RECT.x + 0.5 * (x + 1.0) * RECT.width, RECT.y + 0.5 * (1.0 - y) * RECT.height
    assert cv.pixel(VIEW, FOVY_DEG, RECT, point) == pytest.approx(seen)


def test_a_point_behind_the_camera_has_no_pixel():
    _, _, forward = cv.axes(VIEW)
    behind = np.array(VIEW.look_at_m) - 2.0 * VIEW.distance_m * forward
    assert math.isnan(cv.pixel(VIEW, FOVY_DEG, RECT, behind)[0])


def test_the_fourth_view_looks_at_the_tool():
    tool = np.array((0.2, 0.3, 1.1))
    assert cv.presets(VIEW, tool)[3].look_at_m == pytest.approx(tuple(tool))
