"""The table of singular regions against the exact singular value."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from brain import singular
from brain.errors import ConfigError
from brain.kinematics import flange_pose
from brain.singular import (
    NEAR,
    NO_MASK,
    PASSING,
    STEPS,
    is_away,
    is_masked,
    is_singular,
    lowest,
    mask_of,
    sigma_at,
    singular_table,
)
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
    first = TABLES["z1"].level.tobytes()
    singular._table.cache_clear()
    assert singular_table(ARMS["z1"]).level.tobytes() == first


@settings(deadline=None, max_examples=300)
@given(st.lists(st.floats(-1.0, 1.0), min_size=36, max_size=36), st.floats(0.0, 1.0))
def test_the_lowest_singular_value_is_bounded_on_both_sides(entries, squeeze):
    J = np.reshape(entries, (6, 6))
    u, sigma, vt = np.linalg.svd(J)
    sigma[-1] *= squeeze
    J = np.ascontiguousarray(u @ np.diag(sigma) @ vt)
    exact_value = float(np.linalg.svd(J, compute_uv=False)[-1])
    found = lowest(J, np.empty((6, 6)), np.empty((6, 6)))
    assert 6.0 ** (-1 / 32) * exact_value - 1e-4 <= found <= exact_value * (1 + 1e-6) + 1e-6


@pytest.mark.parametrize("name", ARMS)
def test_nodes_of_the_table_are_never_above_the_exact_value(name):
    table, rng = TABLES[name], np.random.default_rng(2)
    for node in rng.integers(0, STEPS, (300, 4)):
        q = np.array([0.7, *(node * 2.0 * math.pi / STEPS), -0.4])
        looked, wanted = sigma_at(table, q), exact(ARMS[name], q)
        assert looked <= wanted + 1e-5
        assert looked >= 0.945 * wanted - 1.01 * table.unit[0]


def test_equal_chains_share_one_table_and_a_calibrated_arm_has_its_own():
    assert singular_table(ur5e()) is singular_table(ur5e(np.diag((-1.0, -1.0, 1.0, 1.0))))
    assert singular_table(ur5e()) is not singular_table(ur5e_calibrated())


def test_an_arm_of_five_joints_has_no_table_and_nothing_is_masked():
    chain = ARMS["ur5e"].chain
    names, fixed = chain.joint_names[:5], chain.T_link_joint[:5]
    short = replace(chain, joint_names=names, T_link_joint=fixed, axis=chain.axis[:5])
    arm = replace(ARMS["ur5e"], chain=short)
    with pytest.raises(ConfigError, match="5 joints; a singularity table is made for 6"):
        singular_table(arm)
    assert mask_of(arm, NEAR) is NO_MASK


def test_a_mask_lets_one_in_eight_singular_poses_pass_and_every_other_pose():
    mask, random = mask_of(ARMS["ur5e"], NEAR), np.array([3], dtype=np.uint64)
    usual = np.array([0.0, -1.57, 1.57, -1.57, -1.57, 0.0])
    wrist = np.array([0.0, -1.57, 1.57, -1.57, 0.0, 0.0])
    assert not any(is_masked(mask, usual, random) for _ in range(100))
    assert random[0] == 3
    passed = sum(not is_masked(mask, wrist, random) for _ in range(8000)) / 8000
    assert abs(passed - 1 / PASSING) < 0.02, f"{passed} passed, {1 / PASSING} expected"
    assert not any(is_masked(NO_MASK, wrist, random) for _ in range(100))


def test_rows_are_away_only_if_all_of_them_are():
    mask = mask_of(ARMS["ur5e"], NEAR)
    usual = np.array([0.0, -1.57, 1.57, -1.57, -1.57, 0.0])
    rows = np.tile(usual, (5, 1))
    assert is_away(mask, rows)
    rows[3, 4] = 0.01
    assert not is_away(mask, rows)
    assert is_away(NO_MASK, rows)
