"""The table of singular regions against the exact singular value."""

import math

import numpy as np
import pytest

from brain.kinematics import flange_pose
from brain.singular import NEAR, is_singular, sigma_at, singular_table
from tests.brain import plain
from tests.brain.arms import random_q, ur5e, ur5e_calibrated, z1
from tests.values import replace

ARMS = {"ur5e": ur5e(), "calibrated": ur5e_calibrated(), "z1": z1()}
TABLES = {name: singular_table(model) for name, model in ARMS.items()}
VERY_NEAR = 0.03


def exact(model, q_rad) -> float:
    """Smallest singular value at the flange, from numpy."""
    bare = replace(model, T_flange_tool=np.eye(4))
    return float(np.linalg.svd(plain.jacobian(bare, q_rad), compute_uv=False)[-1])


@pytest.mark.parametrize("name", ARMS)
def test_the_table_is_under_2_mb_and_close_to_the_exact_value(name):
    table = TABLES[name]
    assert sum(part.nbytes for part in table) < 2_000_000
    rows = random_q(ARMS[name], np.random.default_rng(1), 4000)
    sigma = np.array([exact(ARMS[name], q) for q in rows])
    looked = np.array([sigma_at(table, q) for q in rows])
    p50, p99 = np.percentile(np.abs(looked - sigma), (50, 99))
    near = looked < NEAR
    missed = float(np.sum((sigma < VERY_NEAR) & ~near) / np.sum(sigma < VERY_NEAR))
    wrong = float(np.sum(near & (sigma > 2.0 * NEAR)) / len(rows))
    print(f"{name}: off {p50:.4f}, p99 {p99:.4f}; missed {100 * missed:.2f} %, wrong {wrong}")
    assert p50 < 0.002
    assert p99 < 0.025
    assert missed < 0.01
    assert wrong == 0.0


@pytest.mark.parametrize("name", ARMS)
def test_singular_poses_are_found_and_usual_ones_are_not(name):
    table = TABLES[name]
    usual = {"z1": [0.0, 1.3, -1.2, -0.3, 1.0, 0.0]}.get(
        name, [0.0, -1.57, 1.57, -1.57, -1.57, 0.0]
    )
    assert not is_singular(table, np.array(usual), NEAR)
    wrist, elbow = np.array(usual), np.array(usual)
    wrist[4] = 0.0 if name != "z1" else math.pi / 2
    elbow[2] = 0.0
    for pose in (wrist, elbow) if name != "z1" else (wrist,):
        assert exact(ARMS[name], pose) < VERY_NEAR
        assert is_singular(table, pose, NEAR)


def test_neither_the_first_nor_the_last_joint_nor_a_full_turn_matters():
    q = np.array([0.3, -1.2, 1.0, -0.7, 0.8, 0.1])
    turned = q + np.array([1.0, 2 * math.pi, -2 * math.pi, 0.0, 2 * math.pi, -2.0])
    assert sigma_at(TABLES["ur5e"], q) == pytest.approx(sigma_at(TABLES["ur5e"], turned), abs=1e-9)
    assert exact(ARMS["ur5e"], q) == pytest.approx(exact(ARMS["ur5e"], turned), abs=1e-9)
    assert np.isfinite(flange_pose(ARMS["ur5e"], turned)).all()


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("joint", [1, 2, 3, 4])
def test_what_is_not_finite_is_singular(bad, joint):
    q = np.array([0.0, -1.57, 1.57, -1.57, -1.57, 0.0])
    q[joint] = bad
    assert is_singular(TABLES["ur5e"], q, NEAR)


def test_making_it_again_gives_the_same_bits():
    again = singular_table(ARMS["z1"])
    assert again.level.tobytes() == TABLES["z1"].level.tobytes()
