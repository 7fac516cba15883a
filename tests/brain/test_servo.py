import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.spatial.transform import Rotation

from brain.geometry import frozen
from brain.kinematics import tool_pose
from brain.servo import track, workspace
from tests.brain import plain
from tests.brain.arms import random_q, ur5e, ur5e_calibrated, z1

UR, CALIBRATED, Z1 = ur5e(), ur5e_calibrated(), z1()
FREE = np.full(6, 10.0)
HOME = np.array([-1.57, -1.57, 1.57, -1.57, -1.57, 0.0])
WRIST = np.array([-1.57, -1.57, 1.57, -1.57, 0.0, 0.0])
Z1_HOME = np.array([0.0, 1.3, -1.2, -0.3, 0.0, 0.0])
DT_S = 0.002
STEP = np.full(6, 1.0 * DT_S)  # 1 rad/s
SIDES = np.vstack((np.eye(3), -np.eye(3)))


class Drive:
    """An arm that follows poses tick by tick and keeps what it saw."""

    def __init__(self, model, q_rad, low=-FREE, high=FREE, step=STEP):
        self.model, self.low, self.high, self.step = model, low, high, step
        self.q = np.array(q_rad, dtype=float)
        self.work = workspace(6)
        self.history, self.off_m, self.off_rad, self.sigma = [self.q.copy()], [], [], []

    def to(self, T):
        out = np.empty(6)
        off_m, off_rad, sigma = track(
            self.model.arrays, self.low, self.high, self.q, T, self.step, out, self.work
        )
        self.q = out
        self.history.append(out)
        self.off_m.append(off_m)
        self.off_rad.append(off_rad)
        self.sigma.append(sigma)

    def along(self, path, seconds):
        for i in range(round(seconds / DT_S)):
            self.to(path(i * DT_S))
        return self

    @property
    def fastest(self):
        return np.abs(np.diff(self.history, axis=0)).max()


def shifted(T, by):
    out = T.copy()
    out[:3, 3] += by
    return out


def turned(T, rotvec):
    out = T.copy()
    out[:3, :3] = Rotation.from_rotvec(rotvec).as_matrix() @ T[:3, :3]
    return out


# ---------------------------------------------------------------- at the target


@pytest.mark.parametrize("model", [UR, CALIBRATED, Z1], ids=["ur5e", "calibrated", "z1"])
def test_at_the_target_the_joints_do_not_change_by_a_bit(model):
    rng = np.random.default_rng(1)
    for q_rad in random_q(model, rng, 100):
        drive = Drive(model, q_rad, model.limits.q_min_rad, model.limits.q_max_rad)
        drive.to(tool_pose(model, q_rad))
        assert np.array_equal(drive.q, q_rad)
        assert drive.off_m == [0.0]


def test_re_engaging_outside_the_limits_moves_nothing():
    q_rad = Z1_HOME.copy()
    q_rad[1] = Z1.limits.q_max_rad[1] + math.radians(3)
    drive = Drive(Z1, q_rad, Z1.limits.q_min_rad, Z1.limits.q_max_rad)
    drive.to(tool_pose(Z1, q_rad))
    assert np.array_equal(drive.q, q_rad)


def test_a_pose_off_by_rounding_moves_nothing():
    T = shifted(tool_pose(UR, HOME), 1e-15)
    drive = Drive(UR, HOME)
    drive.to(T)
    assert np.array_equal(drive.q, HOME)


def test_a_repeated_target_gives_the_same_joints_again():
    T = shifted(tool_pose(UR, HOME), (0.001, 0.0, 0.0))
    drive = Drive(UR, HOME, step=FREE)
    drive.to(T)
    first = drive.q
    drive.to(T)
    assert np.array_equal(drive.q, first)


# ---------------------------------------------------------------- nothing that was not asked


@pytest.mark.parametrize("axis", np.eye(3), ids="xyz")
@pytest.mark.parametrize(
    ("model", "q_rad", "room"),
    [
        (UR, HOME, 10.0),
        (UR, WRIST, 10.0),
        (UR, np.zeros(6), 10.0),
        (UR, HOME, 0.3),
        (Z1, Z1_HOME, 10.0),
        (Z1, np.zeros(6), 10.0),
    ],
    ids=["home", "wrist singular", "all singular", "against limits", "z1", "z1 zero"],
)
def test_sixty_seconds_of_pure_rotation_leave_the_tool_where_it_is(model, q_rad, room, axis):
    T = tool_pose(model, q_rad)
    drive = Drive(model, q_rad, q_rad - room, q_rad + room)
    drive.along(lambda t: turned(T, axis * math.sin(2 * math.pi * 0.1 * t)), 60.0)
    print(f"largest wander {1e6 * max(drive.off_m):.2f} um, limit 10; fastest {drive.fastest}")
    assert max(drive.off_m) < 1e-5
    assert drive.fastest <= STEP[0] * (1 + 1e-9)


def test_a_reach_beyond_the_arm_does_not_tilt_the_tool():
    q_rad = np.array([0.2, -0.8, 0.3, -0.9, -1.2, 0.3])
    T = tool_pose(UR, q_rad)
    out = T[:3, 3] / np.linalg.norm(T[:3, 3])
    drive = Drive(UR, q_rad).along(lambda t: shifted(T, 0.05 * t * out), 4.0)
    print(f"short by {drive.off_m[-1]:.3f} m; tilted {max(drive.off_rad):.1e} rad, limit 1e-6")
    assert drive.off_m[-1] > 0.1
    assert max(drive.off_rad) < 1e-6


# ---------------------------------------------------------------- singular poses


@pytest.mark.parametrize("way", SIDES, ids=["+x", "+y", "+z", "-x", "-y", "-z"])
@pytest.mark.parametrize(
    ("model", "q_rad"),
    [(UR, WRIST), (UR, np.array([0.2, -0.8, 0.0, -0.9, -1.2, 0.3])), (Z1, np.zeros(6))],
    ids=["wrist", "elbow", "z1 zero"],
)
def test_from_a_singular_start_the_tool_follows_5_cm_s_where_the_arm_can_reach(model, q_rad, way):
    low, high = (-FREE, FREE) if model is UR else (model.limits.q_min_rad, model.limits.q_max_rad)
    T = tool_pose(model, q_rad)
    drive = Drive(model, q_rad, low, high)
    drive.along(lambda t: shifted(T, 0.05 * min(t, 1.0) * way), 8.0)
    left = drive.off_m[-1]
    print(f"sigma {drive.sigma[0]:.4f}, left {1e3 * left:.3f} mm, off at most {max(drive.off_m)} m")
    assert drive.sigma[0] < 0.05
    assert drive.fastest <= STEP[0] * (1 + 1e-9)
    assert max(drive.off_rad) < 1e-3
    if left > 1e-3:  # then no branch reaches it
        from brain.ik import solve, within_limits

        there = within_limits(solve(model, shifted(T, 0.05 * way)), low, high)
        assert plain.nearest_rad(drive.q, there.q_rad) > 0.5


def test_a_straight_arm_that_is_pushed_out_and_drawn_back_keeps_its_elbow():
    for bend in (0.3, -0.3):
        q_rad = np.array([0.2, -0.8, bend, -0.9, -1.2, 0.3])
        T = tool_pose(UR, q_rad)
        out = T[:3, 3] - (0.0, 0.0, 0.1625)
        out /= np.linalg.norm(out)
        drive = Drive(UR, q_rad)
        drive.along(
            lambda t, T=T, out=out: shifted(T, out * 0.2 * math.sin(math.pi * t / 4) ** 2), 8
        )
        elbow = np.array(drive.history)[:, 2]
        assert (np.sign(elbow) == np.sign(bend)).all(), f"elbow crossed: {np.abs(elbow).min()} rad"
        assert np.abs(drive.q - q_rad).max() < 1e-3


@pytest.mark.parametrize("offset", [0.0, 1e-6, 1e-3, 0.02])
def test_the_wrist_goes_through_its_singular_pose_and_comes_out_exact(offset):
    q_rad = HOME.copy()
    q_rad[4] = 0.4
    T = tool_pose(UR, q_rad)
    J = plain.jacobian(UR, q_rad)
    beside = np.cross(J[3:, 4], J[3:, 3])
    drive = Drive(UR, q_rad)
    drive.along(
        lambda t: turned(turned(T, offset * min(t, 1.0) * beside), -0.2 * t * J[3:, 4]), 8.0
    )
    assert min(drive.sigma) < 0.001
    assert drive.off_rad[-1] < 1e-8
    assert max(drive.off_m) < 1e-5


# ---------------------------------------------------------------- far targets and limits


@pytest.mark.parametrize("step", [10.0, 0.002])
@pytest.mark.parametrize("model", [UR, Z1], ids=["ur5e", "z1"])
def test_a_jump_of_36_degrees_in_one_tick_is_followed_on_the_same_branch(model, step):
    rng = np.random.default_rng(5)
    jumps = 0
    while jumps < 30:
        q_rad = random_q(model, rng, 1)[0]
        jump = math.radians(36) * (
            rng.uniform(-1, 1, 6) if jumps % 2 else rng.permutation(np.eye(6))[0]
        )
        way = [plain.jacobian(model, q_rad + jump * t) for t in np.linspace(0, 1, 8)]
        if min(np.linalg.svd(J, compute_uv=False)[-1] for J in way) < 0.06:
            continue
        jumps += 1
        T = tool_pose(model, q_rad + jump)
        drive = Drive(model, q_rad, step=np.full(6, step))
        for _ in range(1000):
            drive.to(T)
            if drive.off_m[-1] < 1e-9 and drive.off_rad[-1] < 1e-9:
                break
        assert np.abs(drive.q - q_rad - jump).max() < 1e-6
        assert drive.fastest <= step * (1 + 1e-9)


@given(
    arrays(np.float64, 6, elements=st.floats(-1.0, 1.0)),
    arrays(np.float64, 6, elements=st.floats(-1.0, 1.0)),
    st.floats(1e-4, 0.5),
)
@settings(max_examples=100, deadline=None)
def test_no_answer_leaves_the_limits_or_exceeds_the_step(start, wanted, step):
    low, high = Z1.limits.q_min_rad, Z1.limits.q_max_rad
    q_rad = 0.5 * (low + high) + 0.5 * start * (high - low)
    T = tool_pose(Z1, 3.0 * wanted)
    drive = Drive(Z1, q_rad, low, high, np.full(6, step))
    for _ in range(5):
        drive.to(T)
        assert (drive.q >= low).all()
        assert (drive.q <= high).all()
    assert drive.fastest <= step * (1 + 1e-9)


def test_a_joint_outside_its_limit_only_comes_back():
    low, high = Z1.limits.q_min_rad, Z1.limits.q_max_rad
    start = Z1_HOME.copy()
    start[1] = high[1] + math.radians(3)
    rng = np.random.default_rng(6)
    for q_goal in random_q(Z1, rng, 50):
        drive = Drive(Z1, start, low, high, np.full(6, 0.01))
        for _ in range(20):
            drive.to(tool_pose(Z1, q_goal))
        joint = np.array(drive.history)[:, 1]
        assert (np.diff(np.maximum(joint - high[1], 0.0)) <= 0.0).all()


def test_a_step_too_long_for_the_tick_is_shortened_as_a_whole():
    error = np.array([0.0, 0.0, 0.0, 0.2, -0.1, 0.15])
    drive = Drive(UR, HOME, step=np.full(6, 1e-4))
    drive.to(turned(tool_pose(UR, HOME), error[3:]))
    step, newton = drive.q - HOME, np.linalg.solve(plain.jacobian(UR, HOME), error)
    along = step @ newton / np.linalg.norm(step) / np.linalg.norm(newton)
    assert np.abs(step).max() == pytest.approx(1e-4, rel=1e-9)
    assert along > 1 - 1e-6


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_a_target_that_is_not_finite_moves_nothing_and_says_nan(bad):
    T = tool_pose(UR, HOME)
    T[0, 3] = bad
    drive = Drive(UR, HOME)
    drive.to(T)
    assert np.array_equal(drive.q, HOME)
    assert not math.isfinite(drive.off_m[0])


def test_a_nan_joint_is_given_back_as_it_came():
    q_rad = HOME.copy()
    q_rad[3] = math.nan
    drive = Drive(UR, q_rad)
    drive.to(tool_pose(UR, HOME))
    assert np.array_equal(drive.q, q_rad, equal_nan=True)
    assert math.isnan(drive.off_m[0])


def test_inputs_may_be_read_only():
    out = np.empty(6)
    T = frozen(shifted(tool_pose(UR, HOME), (0.0, 0.0, 0.001)))
    off_m, _, sigma = track(
        UR.arrays, frozen(-FREE), frozen(FREE), frozen(HOME), T, frozen(FREE), out, workspace(6)
    )
    assert off_m < 1e-9
    assert sigma == pytest.approx(np.linalg.svd(plain.jacobian(UR, HOME))[1][-1], abs=1e-8)
