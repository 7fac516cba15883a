import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.spatial.transform import Rotation

from brain.geometry import transform
from brain.kinematics import flange_pose, links, pose_error, tool, tool_jacobian, tool_pose
from tests.brain import plain
from tests.brain.arms import (
    UR_ALPHA_RAD,
    UR_DH,
    dh_transform,
    random_q,
    ur5e,
    ur5e_calibrated,
    z1,
)

TOOL = transform((0.02, -0.03, 0.17), Rotation.from_euler("xyz", (0.3, -0.8, 2.0)).as_matrix())
ARMS = {
    "ur5e": ur5e(),
    "ur5e with tool": ur5e(TOOL),
    "ur5e calibrated": ur5e_calibrated(3, T_flange_tool=TOOL),
    "z1": z1(),
    "z1 with tool": z1(TOOL),
}
joints = arrays(np.float64, 6, elements=st.floats(-7.0, 7.0))
models = st.sampled_from(list(ARMS)).map(ARMS.__getitem__)


def error(a, b):
    out = np.empty(6)
    pose_error(a, b, out)
    return out


@pytest.mark.parametrize("name", UR_DH)
def test_ur_flange_equals_the_product_of_the_published_dh_rows(name):
    model, rng = ur5e(model=name), np.random.default_rng(1)
    a_m, d_m = UR_DH[name]
    worst = 0.0
    for q_rad in random_q(model, rng, 100):
        T = np.eye(4)
        for theta, d, a, alpha in zip(q_rad, d_m, a_m, UR_ALPHA_RAD, strict=True):
            T = T @ dh_transform(theta, d, a, alpha)
        worst = max(worst, np.abs(T - flange_pose(model, q_rad)).max())
    print(f"largest difference {worst:.1e}, limit 1e-14")
    assert worst < 1e-14


def test_ur5e_at_zero_stretches_along_minus_x_by_its_link_lengths():
    a_m, d_m = UR_DH["ur5e"]
    wanted = (a_m[1] + a_m[2], -d_m[3] - d_m[5], d_m[0] - d_m[4])
    assert np.abs(flange_pose(ur5e(), np.zeros(6))[:3, 3] - wanted).max() < 1e-15


def test_z1_pose_at_zero_is_that_of_unitree_s_library():
    # Source: forward kinematics of libZ1_SDK (unitreerobotics/z1_sdk), with its gripper frame
    # 0.049 m in front of the stator.
    model = z1(transform((0.049, 0.0, 0.0)))
    at_zero = tool_pose(model, np.zeros(6))
    assert np.abs(at_zero[:3, 3] - (0.0872, 0.0, 0.1605)).max() < 1e-12
    assert np.abs(at_zero[:3, :3] - np.eye(3)).max() < 1e-15


@given(models, joints)
@settings(max_examples=60, deadline=None)
def test_all_frames_equal_the_plain_version(model, q_rad):
    T_links = np.empty((7, 4, 4))
    links(model.arrays, q_rad, T_links)
    T_base_tool = np.empty((4, 4))
    tool(model.arrays, T_links, T_base_tool)
    assert np.abs(T_links - plain.links(model, q_rad)).max() < 1e-13
    assert np.abs(T_base_tool - plain.tool(model, q_rad)).max() < 1e-13


@given(models, joints)
@settings(max_examples=60, deadline=None)
def test_jacobian_equals_numerical_differences_of_the_tool_pose(model, q_rad):
    J, T_links, T = np.empty((6, 6)), np.empty((7, 4, 4)), np.empty((4, 4))
    tool_jacobian(model.arrays, q_rad, J, T_links, T)
    worst = np.abs(J - plain.jacobian(model, q_rad)).max()
    assert worst < 1e-8, f"{worst:.1e} m/rad, limit 1e-8"


def test_joints_a_turn_apart_give_the_same_pose():
    model, rng = ARMS["ur5e calibrated"], np.random.default_rng(2)
    for q_rad in random_q(model, rng, 20):
        turns = 2 * math.pi * rng.integers(-1, 2, 6)
        assert np.abs(tool_pose(model, q_rad) - tool_pose(model, q_rad + turns)).max() < 1e-14


def test_a_nan_joint_gives_a_nan_pose():
    q_rad = np.zeros(6)
    q_rad[2] = math.nan
    assert np.isnan(tool_pose(ur5e(), q_rad)).any()


@given(models, joints, joints)
@settings(max_examples=100, deadline=None)
def test_pose_error_is_what_takes_one_pose_to_the_other(model, q_a, q_b):
    a, b = tool_pose(model, q_a), tool_pose(model, q_b)
    e = error(a, b)
    assert np.abs(a[:3, 3] + e[:3] - b[:3, 3]).max() < 1e-14
    assert np.abs(Rotation.from_rotvec(e[3:]).as_matrix() @ a[:3, :3] - b[:3, :3]).max() < 1e-8
    assert np.linalg.norm(e[3:]) <= math.pi + 1e-12


@given(models, joints)
@settings(max_examples=100, deadline=None)
def test_pose_error_of_equal_poses_is_exactly_zero(model, q_rad):
    T = tool_pose(model, q_rad)
    assert not error(T, T.copy()).any()


@pytest.mark.parametrize("angle", [math.pi, math.pi - 1e-9, 3.1, 2.9, 2.8, 1e-9])
def test_pose_error_is_exact_for_rotations_near_half_a_turn_and_near_none(angle):
    rng = np.random.default_rng(4)
    for _ in range(50):
        axis = rng.normal(size=3)
        axis /= np.linalg.norm(axis)
        a = transform(rotation=Rotation.random(rng=rng).as_matrix())
        b = transform(rotation=Rotation.from_rotvec(angle * axis).as_matrix() @ a[:3, :3])
        got = error(a, b)[3:]
        # At half a turn the axis may come out either way round.
        wrong = min(
            np.abs(got - angle * axis).max(), np.abs(got + (2 * math.pi - angle) * axis).max()
        )
        assert wrong < 1e-7 * angle + 1e-15, f"{wrong:.1e} rad"
