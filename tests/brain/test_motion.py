"""Which joint is worst: against plain numpy."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from brain.motion import farther_out, fastest

RNG_SEEDS = st.integers(0, 2**32 - 1)


@given(RNG_SEEDS)
@settings(max_examples=100, deadline=None)
def test_the_fastest_joint_is_the_one_with_the_largest_share(seed):
    rng = np.random.default_rng(seed)
    before, after, allowed = rng.normal(size=6), rng.normal(size=6), rng.uniform(0.1, 3.0, 6)
    share = np.abs(after - before) / 0.002 / allowed
    assert fastest(before, after, allowed, 0.002) == (int(np.argmax(share)), share.max())


@pytest.mark.parametrize("joint", range(3))
def test_a_joint_that_is_not_a_number_has_no_share_that_could_be_allowed(joint):
    after = np.array([5.0, 1.0, 2.0])
    after[joint] = math.nan
    worst, share = fastest(np.zeros(3), after, np.ones(3), 0.002)
    assert worst == joint
    assert math.isnan(share)


@given(RNG_SEEDS)
@settings(max_examples=200, deadline=None)
def test_only_a_joint_that_goes_farther_out_counts(seed):
    rng = np.random.default_rng(seed)
    before, after = rng.uniform(-2.0, 2.0, 6), rng.uniform(-2.0, 2.0, 6)
    low, high = np.full(6, -1.0), np.full(6, 1.5)
    over, was = np.maximum(after - high, low - after), np.maximum(before - high, low - before)
    out = np.where((over > was) & (over > 0.0), over, 0.0)
    worst, over_rad = farther_out(before, after, low, high)
    assert over_rad == out.max()
    assert out[worst] == out.max()


def test_at_rest_no_joint_is_worst():
    assert fastest(np.ones(3), np.ones(3), np.ones(3), 0.002) == (0, 0.0)
    assert farther_out(np.ones(3), np.ones(3), np.zeros(3), np.full(3, 2.0)) == (0, 0.0)


def test_of_two_equal_joints_the_first_is_worst():
    zero, after = np.zeros(3), np.array([0.0, 2.0, 2.0])
    assert fastest(zero, after, np.ones(3), 1.0) == (1, 2.0)
    assert farther_out(zero, after, np.full(3, -1.0), np.ones(3)) == (1, 1.0)


def test_a_joint_that_stays_or_comes_back_from_outside_does_not_count():
    low, high = np.full(3, -1.0), np.ones(3)
    before = np.array([2.0, -2.0, 2.0])
    assert farther_out(before, np.array([2.0, -1.5, 2.0]), low, high) == (0, 0.0)
    assert farther_out(before, np.array([2.0, -1.5, 2.5]), low, high) == (2, 1.5)
