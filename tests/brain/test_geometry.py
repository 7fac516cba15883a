import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.spatial.transform import Rotation

from brain import geometry as g

component = st.floats(-10.0, 10.0)
vectors = arrays(np.float64, 3, elements=component)
quaternions = (
    arrays(np.float64, 4, elements=component)
    .filter(lambda q: np.linalg.norm(q) > 1e-2)
    .map(lambda q: q / np.linalg.norm(q))
)


def holds_for(*cases):
    """A property; the first call compiles, so there is no deadline."""
    return lambda test: settings(deadline=None, max_examples=60)(given(*cases)(test))


def scipy_rotation(q_wxyz):
    return Rotation.from_quat(q_wxyz, scalar_first=True)


@holds_for(quaternions, quaternions)
def test_product_of_quaternions_is_product_of_rotations(a, b):
    got = g.quat_to_matrix(g.quat_multiply(a, b))
    wanted = (scipy_rotation(a) * scipy_rotation(b)).as_matrix()
    assert np.abs(got - wanted).max() < 1e-12


@holds_for(quaternions)
def test_conjugate_undoes_a_quaternion(q):
    assert np.abs(g.quat_multiply(q, g.quat_conjugate(q)) - (1, 0, 0, 0)).max() < 1e-12


@holds_for(quaternions)
def test_both_signs_of_a_quaternion_are_the_same_rotation_bit_for_bit(q):
    assert np.array_equal(g.quat_to_matrix(q), g.quat_to_matrix(-q))


@holds_for(quaternions)
def test_matrix_to_quaternion_returns_the_one_with_positive_w(q):
    back = g.quat_from_matrix(g.quat_to_matrix(q))
    # At half a turn both signs have w = 0 within rounding.
    assert back[0] >= 0.0
    assert min(np.abs(back - q).max(), np.abs(back + q).max()) < 1e-12


@pytest.mark.parametrize("axis", range(3))
def test_45_degrees_about_each_axis_has_the_sign_of_the_right_hand(axis):
    q = np.zeros(4)
    q[0], q[1 + axis] = math.cos(math.pi / 8), math.sin(math.pi / 8)
    turned = g.quat_to_matrix(q)[:, (axis + 1) % 3]
    wanted = np.zeros(3)
    wanted[(axis + 1) % 3] = wanted[(axis + 2) % 3] = math.sqrt(0.5)
    assert np.abs(turned - wanted).max() < 1e-15


@holds_for(vectors)
def test_rotation_vector_to_matrix_agrees_with_scipy(v):
    assert np.abs(g.rotvec_to_matrix(v) - Rotation.from_rotvec(v).as_matrix()).max() < 1e-12


@holds_for(vectors.filter(lambda v: np.linalg.norm(v) < 3.14))
def test_rotation_vector_survives_the_way_through_a_matrix(v):
    assert np.abs(g.matrix_to_rotvec(g.rotvec_to_matrix(v)) - v).max() < 1e-8


@pytest.mark.parametrize("axis", np.vstack((np.eye(3), -np.eye(3))))
def test_half_a_turn_keeps_its_length(axis):
    back = g.matrix_to_rotvec(g.rotvec_to_matrix(math.pi * axis))
    assert abs(np.linalg.norm(back) - math.pi) < 1e-12
    assert np.abs(np.abs(back) - math.pi * np.abs(axis)).max() < 1e-12


@pytest.mark.parametrize("size", [0.0, 1e-300, 1e-160, 1e-12, 1e-9, 1e-7])
def test_tiny_rotations_keep_their_digits(size):
    v = np.array([size, -size, 0.5 * size])
    assert np.abs(g.matrix_to_rotvec(g.rotvec_to_matrix(v)) - v).max() <= 1e-15 * max(size, 1e-16)


@holds_for(quaternions, st.floats(-7.0, 7.0))
def test_axis_and_angle_agree_with_scipy(q, angle):
    axis = g.quat_to_matrix(q)[:, 0].copy()
    wanted = Rotation.from_rotvec(angle * axis).as_matrix()
    assert np.abs(g.axis_angle_to_matrix(axis, angle) - wanted).max() < 1e-12


@holds_for(vectors)
def test_roll_pitch_yaw_are_about_fixed_axes(rpy):
    assert np.abs(g.rpy_to_matrix(rpy) - Rotation.from_euler("xyz", rpy).as_matrix()).max() < 1e-12


@holds_for(vectors, quaternions)
def test_inverse_of_a_pose_undoes_it(position, q):
    T = g.pose_transform(position, q)
    assert np.abs(g.invert(T) @ T - np.eye(4)).max() < 1e-13


@holds_for(quaternions, st.floats(0.0, 3.14))
def test_rotation_angle_is_the_angle_between(q, angle):
    a = g.quat_to_matrix(q)
    b = a @ g.rotvec_to_matrix(np.array([0.0, angle, 0.0]))
    assert abs(g.rotation_angle(a, b) - angle) < 1e-12


@pytest.mark.parametrize(
    "r",
    [np.diag([1.0, 1.0, -1.0]), 1.001 * np.eye(3), np.full((3, 3), math.nan), np.zeros((3, 3))],
    ids=["mirror", "scaled", "nan", "zero"],
)
def test_what_is_no_rotation_is_told_from_one(r):
    assert not g.is_rotation(r)
    assert g.is_rotation(g.rotvec_to_matrix(np.array([0.3, 2.0, -1.0])))


def test_frozen_arrays_are_copies_that_cannot_be_written():
    source = [1.0, 2.0]
    array = g.frozen(source)
    with pytest.raises(ValueError, match="read-only"):
        array[0] = 5.0
