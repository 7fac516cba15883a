import math

import numpy as np
import pytest

from brain.body import place
from brain.cartesian import NotStraight, Straight, cartesian_path
from brain.distance import obstacles
from brain.geometry import invert, rotation_angle, rpy_to_matrix, transform
from brain.kinematics import tool_pose
from brain.limits import DEFAULT
from brain.trajectory import time_rows, tool_positions
from brain.world import allowing, make_world
from tests.brain.plain_distance import TABLE, box, q_range, ur5e_with_spheres

ARM = ur5e_with_spheres()
HERE = transform((0.2, -0.1, 0.0), rpy_to_matrix((0.0, 0.0, 0.5)))
BODY = place(ARM, HERE)
Q = np.array([2.3046, -1.3252, 1.9367, -2.1823, -1.5708, 2.3046])
T_NOW = HERE @ tool_pose(ARM, Q)
RANGE = q_range(ARM)
NOTHING = obstacles(make_world(()))


def moved(dx=0.0, dy=0.0, dz=0.0, rpy=(0.0, 0.0, 0.0)):
    T = T_NOW @ transform(rotation=rpy_to_matrix(rpy))
    T[:3, 3] += (dx, dy, dz)
    return T


@pytest.mark.parametrize(
    "target", [moved(dz=0.15), moved(dx=0.1, dy=-0.1, rpy=(0.3, 0.0, 0.6)), moved(rpy=(0, 0.4, 0))]
)
def test_the_tool_goes_straight_and_turns_steadily(target):
    found = cartesian_path(BODY, NOTHING, Q, target, RANGE)
    assert isinstance(found, Straight)
    np.testing.assert_array_equal(found.rows_rad[0], Q)
    steps, worst_m, worst_rad = len(found.rows_rad) - 1, 0.0, 0.0
    whole = rotation_angle(T_NOW, target)
    for i, q in enumerate(found.rows_rad):
        T, share = HERE @ tool_pose(ARM, q), i / steps
        on_way = T_NOW[:3, 3] + share * (target[:3, 3] - T_NOW[:3, 3])
        worst_m = max(worst_m, float(np.linalg.norm(T[:3, 3] - on_way)))
        worst_rad = max(worst_rad, abs(rotation_angle(T_NOW, T) - share * whole))
    print(f"off the way by {worst_m:.1e} m and {worst_rad:.1e} rad, limit 1e-7")
    assert max(worst_m, worst_rad) < 1e-7
    T_end = HERE @ tool_pose(ARM, found.rows_rad[-1])
    np.testing.assert_allclose(invert(target) @ T_end, np.eye(4), atol=1e-8)


def test_joints_never_change_branch():
    found = cartesian_path(BODY, NOTHING, Q, moved(dx=0.1, dz=0.2), RANGE)
    turn = np.abs(np.diff(found.rows_rad, axis=0)).max()
    print(f"largest step {turn:.3f} rad, limit 0.15 rad")
    assert turn < 0.15


def test_timed_rows_keep_the_tool_on_the_straight_way():
    found = cartesian_path(BODY, NOTHING, Q, moved(dz=0.2), RANGE)
    p = tool_positions(BODY, time_rows(found.rows_rad, BODY, DEFAULT.planning(), 0.002).q_rad)
    off = np.linalg.norm(p[:, :2] - T_NOW[:2, 3], axis=1).max()
    print(f"off the way by {1e6 * off:.1f} um, limit 50 um")
    assert off < 50e-6


def test_a_way_into_the_table_is_refused_with_the_place_and_allowed_where_contact_is():
    world = make_world((TABLE,))
    down = moved(dz=float(-T_NOW[2, 3] + 0.004))
    found = cartesian_path(BODY, obstacles(world), Q, down, RANGE)
    assert isinstance(found, NotStraight)
    assert found.reason == "collision"
    assert "finger" in found.sentence
    assert "table" in found.sentence
    fingers = allowing(world, ("fingers", "table"))
    again = cartesian_path(BODY, obstacles(fingers), Q, down, RANGE)
    assert isinstance(again, Straight)
    print(f"certified {1000 * again.certificate.certified_m:.1f} mm, needed 5 mm")
    assert again.certificate.certified_m >= 0.005


def test_a_thin_obstacle_between_rows_is_found():
    wire = box("wire", tuple(T_NOW[:3, 3] + (0.0, 0.0, 0.1025)), (0.3, 0.0002, 0.0002))
    found = cartesian_path(BODY, obstacles(make_world((wire,))), Q, moved(dz=0.2), RANGE)
    assert isinstance(found, NotStraight)
    assert (found.reason, "wire" in found.sentence) == ("collision", True)


def test_a_way_out_of_reach_is_refused():
    found = cartesian_path(BODY, NOTHING, Q, moved(dx=1.5), RANGE)
    assert isinstance(found, NotStraight)
    assert found.reason == "singular"
    assert 0.0 < found.along_m < 1.5


def test_a_way_out_of_the_joint_range_is_refused_with_the_joint():
    narrow = (Q - 0.1, Q + 0.1)
    found = cartesian_path(BODY, NOTHING, Q, moved(dz=0.2), narrow)
    assert isinstance(found, NotStraight)
    assert found.reason == "limits"
    assert found.sentence.startswith("joint_")


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_a_goal_that_is_not_finite_is_refused(bad):
    target = moved()
    target[1, 3] = bad
    assert cartesian_path(BODY, NOTHING, Q, target, RANGE).reason == "not finite"
    assert cartesian_path(BODY, NOTHING, Q + bad, moved(), RANGE).reason == "not finite"
