import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from brain.geometry import frozen, rotvec_to_matrix, transform
from brain.kinematics import flange_pose
from brain.types import Wrench
from brain.wrench import tared, tool_weight
from tests.brain.arms import random_q
from tests.brain.cells import cell
from tests.values import replace

ARM = cell().arms[0]
LOADED = replace(ARM, model=replace(ARM.model, sensed_mass_kg=2.0))
WEIGHT_N = 2.0 * 9.81


def reading(force_n) -> Wrench:
    return Wrench(t_ns=0, seq=0, force_n=frozen(force_n), torque_nm=frozen(np.zeros(3)))


@settings(max_examples=50, deadline=None, derandomize=True)
@given(st.integers(0, 10_000), st.floats(-3.0, 3.0))
def test_in_the_world_the_tools_weight_always_points_down(seed, tilt_rad):
    q = random_q(LOADED.model, np.random.default_rng(seed), 1)[0]
    T = transform((1.0, 2.0, 3.0), rotvec_to_matrix(np.array([tilt_rad, 0.5, 0.0])))
    arm = replace(LOADED, T_world_base=frozen(T))
    R = (T @ flange_pose(arm.model, q))[:3, :3]
    assert np.allclose(R @ tool_weight(arm, q), [0.0, 0.0, -WEIGHT_N], atol=1e-12)


def test_a_flange_that_points_straight_up_carries_the_weight_along_its_axis():
    q = np.array([0.0, -np.pi / 2, 0.0, -np.pi / 2, 0.0, 0.0])  # the arm stands up straight
    T = flange_pose(LOADED.model, q)
    up = transform(rotation=T[:3, :3].T)
    arm = replace(LOADED, T_world_base=frozen(up))
    assert np.allclose(tool_weight(arm, q), [0.0, 0.0, -WEIGHT_N], atol=1e-12)


def test_without_a_tool_there_is_no_weight():
    assert not np.any(tool_weight(ARM, np.zeros(6)))


@settings(max_examples=50, deadline=None, derandomize=True)
@given(st.integers(0, 10_000))
def test_what_is_left_after_taring_is_the_touch_wherever_the_arm_is_by_then(seed):
    rng = np.random.default_rng(seed)
    q_tare, q_now = random_q(LOADED.model, rng, 2)
    offset, touch = rng.normal(0.0, 5.0, (2, 3))
    before = reading(tool_weight(LOADED, q_tare) + offset)
    bias = tared(LOADED, q_tare, before, None)
    now = reading(tool_weight(LOADED, q_now) + offset + touch)
    found = tared(LOADED, q_now, now, bias)
    assert np.allclose(found, touch, atol=1e-12)
    assert np.allclose(bias, offset, atol=1e-12)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_reading_that_is_no_number_is_not_made_one(bad):
    assert not np.all(
        np.isfinite(tared(LOADED, np.zeros(6), reading((bad, 0.0, 0.0)), np.zeros(3)))
    )
