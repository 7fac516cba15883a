import math

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.optimize import brentq
from scipy.spatial.transform import Rotation

from brain.errors import ConfigError
from brain.geometry import frozen, pose_transform, transform
from brain.ik import ELBOW, SHOULDER, WRIST, nearest, solve, within_limits
from brain.ik_closed import read, wrapped
from brain.ik_polish import solve_linear
from brain.kinematics import pose_error, tool_jacobian, tool_pose
from tests.brain import plain
from tests.brain.arms import UR_DH, arm, random_q, ur5e, ur5e_calibrated, ur_chain, ur_limits, z1
from tests.values import replace

TOOL = transform((0.02, -0.03, 0.17), Rotation.from_euler("xyz", (0.3, -0.8, 2.0)).as_matrix())
UR, Z1, CALIBRATED = ur5e(), z1(), ur5e_calibrated(1)
NOMINAL = {name: ur5e(model=name) for name in UR_DH} | {
    "ur5e with tool": ur5e(TOOL),
    "z1": Z1,
    "z1 with tool": z1(TOOL),
}
joints = arrays(np.float64, 6, elements=st.floats(-3.1, 3.1))


def errors(model, rows, T):
    """Position (m) and rotation (rad) errors of each row, the larger one."""
    out, e = [], np.empty(6)
    for q in rows:
        pose_error(tool_pose(model, q), T, e)
        out.append(max(np.linalg.norm(e[:3]), np.linalg.norm(e[3:])))
    return np.array(out)


def searched(model, T, rng, starts=400):
    """Branches found by Newton's method from random joints, without any closed form."""
    J, T_links, now, e = np.empty((6, 6)), np.empty((7, 4, 4)), np.empty((4, 4)), np.empty(6)
    found = np.empty((0, 6))
    for _ in range(starts):
        q = rng.uniform(-math.pi, math.pi, 6)
        for _ in range(40):
            tool_jacobian(model.arrays, q, J, T_links, now)
            pose_error(now, T, e)
            if np.abs(e).max() < 1e-12:
                break
            dq = np.linalg.lstsq(J, e, rcond=None)[0]
            q = q + dq * min(1.0, 0.3 / np.abs(dq).max())
        if np.abs(e).max() < 1e-10 and plain.nearest_rad(q, found) > 1e-4:
            found = np.vstack((found, plain.turned(q)))
    return found


# ---------------------------------------------------------------- nominal chains


@pytest.mark.parametrize("name", NOMINAL)
def test_the_joints_that_made_a_pose_are_among_its_branches(name):
    model, rng = NOMINAL[name], np.random.default_rng(1)
    for q_rad in random_q(model, rng, 300):
        found = solve(model, tool_pose(model, q_rad))
        assert plain.nearest_rad(q_rad, found.q_rad) < 1e-7
        assert found.lost == 0


@given(st.sampled_from(list(NOMINAL)), joints)
@example("ur5e", np.array([0.0, 0.0, 0.0, -2.0, 1e-5, 0.0]))
@settings(max_examples=150, deadline=None)
def test_every_branch_of_any_joints_reaches_the_pose_in_minus_pi_to_pi(name, q_rad):
    model = NOMINAL[name]
    T = tool_pose(model, q_rad)
    found = solve(model, T)
    worst = errors(model, found.q_rad, T).max(initial=0.0)
    assert len(found.q_rad) > 0
    assert worst < 1e-9, f"{worst:.1e} m or rad, limit 1e-9"
    assert (found.q_rad > -math.pi).all()
    assert (found.q_rad <= math.pi).all()


@pytest.mark.parametrize("model", [UR, Z1], ids=["ur5e", "z1"])
def test_branches_are_those_that_a_search_from_random_joints_finds(model):
    rng = np.random.default_rng(2)
    for q_rad in random_q(model, rng, 3):
        T = tool_pose(model, q_rad)
        ours, searches = solve(model, T).q_rad, searched(model, T, rng)
        assert len(ours) == len(searches)
        assert max(plain.nearest_rad(q, ours) for q in searches) < 1e-6


@pytest.mark.parametrize("model", [UR, Z1], ids=["ur5e", "z1"])
def test_no_branch_is_given_twice(model):
    rng = np.random.default_rng(3)
    for q_rad in random_q(model, rng, 100):
        rows = solve(model, tool_pose(model, q_rad)).q_rad
        for i in range(1, len(rows)):
            assert plain.nearest_rad(rows[i], rows[:i]) > 1e-6


def test_the_build_is_read_from_any_frames_that_describe_the_same_arm():
    rng = np.random.default_rng(4)
    chain = ur_chain("ur5e")
    before = transform(rng.normal(size=3), Rotation.random(rng=rng).as_matrix())
    base, T_link_joint, axis = before, [], []
    for k in range(6):
        # A link frame may be turned at will and slide along its joint's axis.
        turn = Rotation.random(rng=rng).as_matrix()
        after = transform(rng.normal() * chain.axis[k], turn)
        T_link_joint.append(before @ chain.T_link_joint[k] @ after)
        axis.append(turn.T @ chain.axis[k])
        before = np.linalg.inv(after)
    moved = replace(
        chain,
        T_link_joint=frozen(T_link_joint),
        axis=frozen(axis),
        T_link_flange=frozen(before @ chain.T_link_flange),
    )
    model = arm("moved", "ur", moved, ur_limits())
    for q_rad in random_q(UR, rng, 20):
        T = tool_pose(UR, q_rad)
        assert np.abs(base @ T - tool_pose(model, q_rad)).max() < 1e-13
        there, here = solve(model, base @ T).q_rad, solve(UR, T).q_rad
        assert len(there) == len(here)
        assert max(plain.nearest_rad(q, here) for q in there) < 1e-9


def test_the_lengths_read_from_the_chain_are_those_of_the_dh_table():
    a_m, d_m = UR_DH["ur5e"]
    lengths = read(ur_chain("ur5e"), np.eye(4)).length_m
    assert np.abs(lengths - (-a_m[1], -a_m[2], 0.0, d_m[3], d_m[4])).max() < 1e-15


def test_a_chain_of_another_build_is_refused_by_name():
    crooked = ur5e_calibrated(1).chain
    model = arm("crooked", "ur", crooked, ur_limits())
    with pytest.raises(ConfigError, match="axes 1 and 2 square; off by .* allowed 1e-9"):
        solve(model, np.eye(4))


@given(arrays(np.float64, 4, elements=st.floats(-1.0, 1.0)))
@settings(max_examples=30, deadline=None)
def test_the_sign_of_a_quaternion_changes_no_branch(q):
    if np.linalg.norm(q) < 0.1:
        return
    q = q / np.linalg.norm(q)
    one, other = (solve(UR, pose_transform((-0.3, -0.3, 0.4), s * q)).q_rad for s in (1.0, -1.0))
    assert np.array_equal(one, other)


# ---------------------------------------------------------------- singular poses

ELBOW_STRAIGHT = np.array([0.4, -0.7, 0.0, -0.5, 0.9, 0.2])
WRIST_ALIGNED = np.array([0.4, -0.7, 1.1, -0.5, 0.0, 0.2])


def shoulder_pose():
    """UR joints with the wrist above the shoulder, at the least distance from axis 1."""
    q = np.array([0.3, -1.2, 0.9, -0.4, 0.8, 0.1])
    for _ in range(50):  # turn joint 2 until the wrist stands over axis 1 but for d4
        wrist = tool_pose(UR, q) @ (0.0, 0.0, -0.0996, 1.0)
        over = math.sqrt(max(0.0, wrist[0] ** 2 + wrist[1] ** 2 - 0.1333**2))
        side = math.copysign(1.0, wrist[0] * math.cos(q[0]) + wrist[1] * math.sin(q[0]))
        q[1] += side * math.atan2(over, wrist[2] - 0.1625)
    return q


@pytest.mark.parametrize(
    ("q_rad", "flag"),
    [(ELBOW_STRAIGHT, ELBOW), (WRIST_ALIGNED, WRIST), (shoulder_pose(), SHOULDER)],
    ids=["elbow", "wrist", "shoulder"],
)
def test_each_singular_kind_is_named_and_its_joints_found(q_rad, flag):
    T = tool_pose(UR, q_rad)
    found = solve(UR, T, q_rad)
    assert found.singular == flag
    assert plain.nearest_rad(q_rad, found.q_rad) < 1e-6
    assert errors(UR, found.q_rad, T).max() < 1e-9


def test_an_ordinary_pose_is_not_called_singular():
    assert solve(UR, tool_pose(UR, np.array([0.4, -0.7, 1.1, -0.5, 0.9, 0.2]))).singular == 0


def test_a_free_wrist_takes_the_reference_s_angle():
    T = tool_pose(UR, WRIST_ALIGNED)
    reference = WRIST_ALIGNED + (0.0, 0.0, 0.0, 0.0, 0.0, 0.6)
    found = solve(UR, T, reference)
    assert np.abs(plain.turned(found.q_rad[:, 5] - reference[5])).min() < 1e-12
    assert errors(UR, found.q_rad, T).max() < 1e-9


def test_a_free_wrist_without_reference_is_given_all_round():
    T = tool_pose(UR, WRIST_ALIGNED)
    rows = solve(UR, T).q_rad
    assert len({round(q, 6) for q in rows[:, 5]}) >= 8
    assert errors(UR, rows, T).max() < 1e-9


def test_a_free_wrist_is_tried_all_round_where_the_reference_s_angle_leads_nowhere():
    stretched = np.array([0.4, -0.7, 0.02, -1.5, 0.0, 0.2])
    T = tool_pose(UR, stretched)
    away = stretched + (0.0, 0.0, 0.0, 0.0, 0.0, math.pi / 2)
    assert len(solve(UR, T, away).q_rad) > 0


@pytest.mark.parametrize("model", [UR, Z1], ids=["ur5e", "z1"])
def test_the_zero_pose_is_solved_exactly(model):
    T = tool_pose(model, np.zeros(6))
    found = solve(model, T, np.zeros(6))
    assert plain.nearest_rad(np.zeros(6), found.q_rad) < 1e-7
    assert errors(model, found.q_rad, T).max() < 1e-9


def z1_over_its_axis():
    """Z1 joints with the wrist on axis 1: joint 1 is free."""
    q = np.array([0.3, 0.0, -1.9, 0.4, 0.7, -0.2])

    def forward_m(lean_rad):
        q[1] = lean_rad
        T = tool_pose(Z1, q)
        wrist = T[:3, 3] - (0.0492 + 0.051) * T[:3, 0]
        return wrist @ (math.cos(q[0]), math.sin(q[0]), 0.0)

    leans = np.linspace(-1.0, 2.9, 40)
    signs = np.sign([forward_m(v) for v in leans])
    i = int(np.flatnonzero(np.diff(signs))[0])
    forward_m(brentq(forward_m, leans[i], leans[i + 1], xtol=1e-15))
    return q


def test_a_wrist_on_axis_1_of_the_z1_frees_joint_1():
    q_rad = z1_over_its_axis()
    T = tool_pose(Z1, q_rad)
    found = solve(Z1, T, q_rad)
    assert found.singular & SHOULDER
    assert plain.nearest_rad(q_rad, found.q_rad) < 1e-6
    assert errors(Z1, solve(Z1, T).q_rad, T).max() < 1e-9
    assert len({round(q, 6) for q in solve(Z1, T).q_rad[:, 0]}) >= 8


# ---------------------------------------------------------------- no solution, no pose


@pytest.mark.parametrize("position", [(2.0, 0.0, 0.3), (0.05, 0.0, 0.4), (0.0, 0.0, -3.0)])
@pytest.mark.parametrize("model", [UR, CALIBRATED], ids=["ur5e", "calibrated"])
def test_out_of_reach_is_an_empty_answer(model, position):
    T = transform(position) @ transform((0.0, 0.0, 0.0996))
    found = solve(model, T)
    assert found.q_rad.shape == (0, 6)
    assert nearest(found, np.zeros(6)) is None


@pytest.mark.parametrize("model", [UR, Z1, CALIBRATED], ids=["ur5e", "z1", "calibrated"])
@pytest.mark.parametrize(
    "spoil",
    [
        lambda T: T * math.nan,
        lambda T: np.where(np.eye(4, k=3) > 0, math.nan, T),
        lambda T: np.where(np.eye(4, k=3) > 0, math.inf, T),
        lambda T: T * 1.01,
        lambda T: T @ np.diag([1.0, 1.0, -1.0, 1.0]),
        lambda T: T + 1e-3 * np.eye(4, k=1),
        lambda T: T[:3],
    ],
    ids=["nan", "nan position", "infinite", "scaled", "mirrored", "skew", "shape"],
)
def test_what_is_no_pose_is_refused(model, spoil):
    T = tool_pose(model, np.array([0.4, 1.0, -1.1, -0.5, 0.9, 0.2]))
    with pytest.raises(ConfigError, match="T_base_tool"):
        solve(model, spoil(T))


# ---------------------------------------------------------------- calibrated chains


@pytest.mark.parametrize("seed", range(1, 5))
def test_a_calibrated_arm_finds_its_joints_within_1e_9(seed):
    model = ur5e_calibrated(seed, T_flange_tool=TOOL)
    rng = np.random.default_rng(seed)
    worst = 0.0
    for q_rad in random_q(model, rng, 100):
        T = tool_pose(model, q_rad)
        found = solve(model, T)
        assert plain.nearest_rad(q_rad, found.q_rad) < 1e-5
        worst = max(worst, errors(model, found.q_rad, T).max())
    print(f"largest error {worst:.1e} m or rad, limit 1e-9")
    assert worst < 1e-9


def test_a_calibrated_arm_has_the_branches_that_a_search_finds():
    rng = np.random.default_rng(7)
    for q_rad in random_q(CALIBRATED, rng, 4):
        T = tool_pose(CALIBRATED, q_rad)
        ours, searches = solve(CALIBRATED, T).q_rad, searched(CALIBRATED, T, rng)
        assert max(plain.nearest_rad(q, ours) for q in searches) < 1e-4
        assert max(plain.nearest_rad(q, searches) for q in ours) < 1e-4


@pytest.mark.parametrize(
    "q_rad",
    [ELBOW_STRAIGHT, WRIST_ALIGNED, shoulder_pose()],
    ids=["elbow", "wrist", "shoulder"],
)
def test_near_singular_poses_a_calibrated_arm_finds_both_of_a_pair(q_rad):
    rng = np.random.default_rng(8)
    for _ in range(15):
        near = q_rad + rng.normal(0.0, 0.01, 6)
        T = tool_pose(CALIBRATED, near)
        found = solve(CALIBRATED, T)
        assert plain.nearest_rad(near, found.q_rad) < 1e-5
        assert errors(CALIBRATED, found.q_rad, T).max() < 1e-9
        assert len(found.q_rad) % 2 == 0  # branches come and go in pairs


def test_a_chain_equal_to_the_nominal_needs_no_correction():
    same = arm("same", "ur", ur_chain("ur5e"), ur_limits(), ur_chain("ur5e"))
    T = tool_pose(UR, np.array([0.4, -0.7, 1.1, -0.5, 0.9, 0.2]))
    ours, nominal = solve(same, T).q_rad, solve(UR, T).q_rad
    assert len(ours) == len(nominal)
    assert max(plain.nearest_rad(q, nominal) for q in ours) < 1e-12


def test_elimination_solves_what_numpy_solves():
    rng = np.random.default_rng(9)
    for _ in range(50):
        A, b = rng.normal(size=(6, 6)), rng.normal(size=6)
        A[0, 0] = 0.0  # needs a pivot
        x = b.copy()
        solve_linear(A.copy(), x)
        assert np.abs(A @ x - b).max() < 1e-10


# ---------------------------------------------------------------- limits and choice


def test_within_two_turns_every_branch_of_a_ur_stands_64_times():
    q_rad = np.array([0.4, -0.7, 1.1, -0.5, 0.9, 0.2])
    T = tool_pose(UR, q_rad)
    found = solve(UR, T)
    low, high = UR.limits.q_min_rad, UR.limits.q_max_rad
    inside = within_limits(found, low, high)
    assert len(inside.q_rad) == 64 * len(found.q_rad)
    assert (inside.q_rad >= low).all()
    assert (inside.q_rad <= high).all()
    assert errors(UR, inside.q_rad, T).max() < 1e-9


def test_within_limits_keeps_all_and_only_what_fits():
    rng = np.random.default_rng(10)
    low, high = Z1.limits.q_min_rad, Z1.limits.q_max_rad
    for q_rad in random_q(Z1, rng, 100):
        found = solve(Z1, tool_pose(Z1, q_rad))
        inside = within_limits(found, low, high)
        fits = ((found.q_rad >= low) & (found.q_rad <= high)).all(axis=1)
        assert len(inside.q_rad) == fits.sum()
        assert plain.nearest_rad(q_rad, inside.q_rad) < 1e-7


def test_a_joint_on_its_limit_is_kept_and_not_moved_past_it():
    low, high = Z1.limits.q_min_rad, Z1.limits.q_max_rad
    q_rad = np.array([high[0], 1.0, low[2], 0.1, high[4], 0.3])
    inside = within_limits(solve(Z1, tool_pose(Z1, q_rad)), low, high).q_rad
    assert plain.nearest_rad(q_rad, inside) < 1e-7
    assert (inside <= high).all()
    assert (inside >= low).all()


def test_nothing_within_limits_is_an_empty_answer():
    found = solve(UR, tool_pose(UR, np.array([0.4, -0.7, 1.1, -0.5, 0.9, 0.2])))
    assert within_limits(found, np.full(6, 6.0), np.full(6, 6.1)).q_rad.shape == (0, 6)


@given(joints, arrays(np.float64, 6, elements=st.floats(-6.0, 6.0)))
@settings(max_examples=40, deadline=None)
def test_nearest_is_the_one_with_the_smallest_largest_joint_move(q_rad, reference):
    found = within_limits(solve(UR, tool_pose(UR, q_rad)), UR.limits.q_min_rad, UR.limits.q_max_rad)
    best = nearest(found, reference)
    assert best is not None
    assert np.abs(best - reference).max() == np.abs(found.q_rad - reference).max(axis=1).min()


@given(st.floats(-1e4, 1e4))
@settings(max_examples=200, deadline=None)
def test_wrapping_keeps_the_angle_and_lands_in_minus_pi_to_pi(angle):
    out = wrapped(angle)
    assert -math.pi < out <= math.pi
    assert abs(math.remainder(out - angle, 2 * math.pi)) < 1e-11


@pytest.mark.parametrize("angle", [math.pi, -math.pi, 3 * math.pi, math.nextafter(math.pi, 4.0)])
def test_half_a_turn_wraps_to_plus_or_minus_pi_inside_the_range(angle):
    assert -math.pi < wrapped(angle) <= math.pi
