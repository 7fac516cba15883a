import numpy as np
import pytest

from brain.damped import (
    damped_inverse,
    dls_step,
    orthogonalise,
    smallest_singular_value,
    workspace,
)
from brain.kinematics import tool_jacobian
from tests.brain import plain
from tests.brain.arms import random_q, ur5e, z1

ARMS = {"ur5e": ur5e(), "z1": z1()}
HOME = np.array([-1.57, -1.57, 1.57, -1.57, -1.57, 0.0])


def step(model, q_rad, error):
    work = workspace(6)
    tool_jacobian(model.arrays, q_rad, work.J, work.T_links, work.T_base_tool)
    work.error[:] = error
    dls_step(work)
    return work.dq_rad[0] + work.dq_rad[1], work.J.copy()


@pytest.mark.parametrize("shape", [(6, 6), (3, 6), (6, 3)])
def test_orthogonal_rows_are_a_singular_value_decomposition(shape):
    rng = np.random.default_rng(1)
    for rank in (min(shape), 2, 1, 0):
        A = rng.normal(size=(shape[0], rank)) @ rng.normal(size=(rank, shape[1]))
        rows, turn, sigma = A.copy(), np.empty((shape[0], shape[0])), np.empty(shape[0])
        orthogonalise(rows, turn, sigma)
        wanted = np.zeros(shape[0])
        wanted[: min(shape)] = np.linalg.svd(A, compute_uv=False)
        assert np.abs(np.sort(sigma)[::-1] - wanted).max() < 1e-12
        assert np.abs(turn @ turn.T - np.eye(shape[0])).max() < 1e-13
        assert np.abs(turn @ A - rows).max() < 1e-13
        assert np.abs(rows @ rows.T - np.diag(sigma**2)).max() < 1e-11


def test_orthogonalise_ends_on_nan():
    rows = np.full((6, 6), np.nan)
    sigma = np.zeros(6)
    orthogonalise(rows, np.empty((6, 6)), sigma)
    assert np.isnan(sigma).all()


@pytest.mark.parametrize("name", ARMS)
def test_smallest_singular_value_equals_numpy_s(name):
    model, rng, work = ARMS[name], np.random.default_rng(2), workspace(6)
    singular = np.zeros((1, 6))
    for q_rad in np.vstack((random_q(model, rng, 200), singular)):
        tool_jacobian(model.arrays, q_rad, work.J, work.T_links, work.T_base_tool)
        wanted = np.linalg.svd(work.J, compute_uv=False)[-1]
        assert abs(smallest_singular_value(work.J, work) - wanted) < 1e-13


def test_damping_begins_at_a_tenth_and_halves_the_gain_at_its_largest():
    assert damped_inverse(0.1) == pytest.approx(100.0, rel=1e-12)
    assert damped_inverse(0.2) == pytest.approx(25.0, rel=1e-12)
    assert damped_inverse(0.0) == pytest.approx(1 / 0.05**2, rel=1e-12)
    sigma = np.linspace(0.0, 0.3, 1001)
    gain = np.array([s * damped_inverse(s) for s in sigma])
    assert gain.max() < 11.6  # 1 / (2 * 0.05) but for the fading damping
    assert np.abs(np.diff(gain)).max() < 0.15  # no jump


@pytest.mark.parametrize("name", ARMS)
def test_step_equals_the_plain_two_level_step(name):
    model, rng = ARMS[name], np.random.default_rng(3)
    worst = 0.0
    for q_rad in random_q(model, rng, 300):
        error = rng.normal(size=6) * rng.choice([1e-3, 1.0], 6)
        dq, J = step(model, q_rad, error)
        wanted = plain.two_level_step(J, error)
        worst = max(worst, np.abs(dq - wanted).max() / (1.0 + np.abs(wanted).max()))
    print(f"largest relative difference {worst:.1e}, limit 1e-9")
    assert worst < 1e-9


def test_step_away_from_singular_poses_is_newton_s():
    error = np.array([0.01, -0.02, 0.005, 0.1, 0.0, -0.2])
    dq, J = step(ARMS["ur5e"], HOME, error)
    assert np.abs(dq - np.linalg.solve(J, error)).max() < 1e-13


def test_a_rotation_that_cannot_be_had_leaves_the_tool_where_it_is():
    q_rad = HOME.copy()
    q_rad[4] = 0.003  # nearly wrist-singular
    dq, J = step(ARMS["ur5e"], q_rad, np.array([0.0, 0.0, 0.0, 0.3, 0.2, 0.4]))
    moved_m = np.abs(J[:3] @ dq).max()
    assert moved_m < 1e-12, f"{moved_m:.1e} m"


def test_a_reach_that_cannot_be_had_does_not_tilt_the_tool():
    q_rad = np.array([0.2, -0.8, 0.003, -0.9, -1.2, 0.3])  # nearly straight
    dq, J = step(ARMS["ur5e"], q_rad, np.array([0.3, 0.1, 0.2, 0.0, 0.0, 0.0]))
    tilted_rad = np.abs(J[3:] @ dq).max()
    assert tilted_rad < 1e-12, f"{tilted_rad:.1e} rad"
