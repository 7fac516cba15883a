import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from brain.geometry import is_rotation, rotation_angle, rotvec_to_matrix, transform
from brain.kinematics import tool_pose
from tests.vr.cells import cell
from vr.gizmo import joints_for, rigid, was_dragged

ARM = cell().arms[0]
HOME = np.array(ARM.home_q_rad)


def world_tool(q_rad):
    return ARM.T_world_base @ tool_pose(ARM.model, q_rad)


@given(st.tuples(*[st.floats(-0.5, 0.5)] * 6))
@settings(max_examples=60, deadline=None)
def test_the_ghosts_tool_is_where_the_gizmo_is(offset):
    target = world_tool(HOME + np.array(offset))
    q = joints_for(ARM, target, HOME)
    off_m = np.linalg.norm(world_tool(q)[:3, 3] - target[:3, 3])
    print(f"off by {off_m:.2e} m, at most 1e-9 m")
    assert off_m < 1e-9
    assert rotation_angle(world_tool(q), target) < 1e-7


def test_the_ghost_stays_in_the_arms_branch():
    small = 0.02 * np.array((1.0, -1.0, 1.0, -1.0, 1.0, -1.0))
    q = joints_for(ARM, world_tool(HOME + small), HOME)
    assert np.allclose(q, HOME + small, atol=1e-8)


def test_a_gizmo_out_of_reach_has_no_ghost():
    assert joints_for(ARM, transform((3.0, 0.0, 1.0)), HOME) is None


@given(st.tuples(*[st.floats(-3.0, 3.0)] * 3), st.integers(0, 1000))
@settings(deadline=None)
def test_single_precision_is_made_rigid_again(turn, seed):
    T = transform((0.3, -0.2, 1.1), rotvec_to_matrix(np.array(turn)))
    noise = np.random.default_rng(seed).normal(size=(3, 3), scale=1e-6)
    rough = T.astype(np.float32).astype(np.float64)
    rough[:3, :3] += noise
    smooth = rigid(rough)
    assert is_rotation(smooth[:3, :3], tolerance=1e-12)
    assert rotation_angle(smooth, T) < 1e-4


def test_a_gizmo_without_numbers_is_nowhere():
    T = transform((0.0, np.nan, 0.0))
    assert rigid(T) is None


@pytest.mark.parametrize(
    ("moved_m", "turned_rad", "dragged"),
    [(0.0, 0.0, False), (0.0005, 0.0, False), (0.002, 0.0, True), (0.0, 0.01, True)],
)
def test_a_gizmo_counts_as_dragged_from_a_millimetre_on(moved_m, turned_rad, dragged):
    tool = world_tool(HOME)
    target = tool @ transform((moved_m, 0.0, 0.0), rotvec_to_matrix(np.array((turned_rad, 0, 0.0))))
    assert was_dragged(target, tool) is dragged


def test_an_untouched_gizmo_was_not_dragged():
    assert not was_dragged(None, world_tool(HOME))
