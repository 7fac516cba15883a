import json

import numpy as np
import pytest

from benchmarks.singular import main
from benchmarks.singular_sweeps import KINDS, Outcome, Sweeps
from benchmarks.singular_tasks import (
    IN_COLLISION,
    OUT_OF_REACH,
    PART,
    TOO_SLOW,
    Picks,
    steepest,
    turned,
)
from brain.geometry import transform
from brain.kinematics import tool_pose
from brain.singular import NEAR
from brain.world import move_object
from tests.values import replace

KEYS = ("tasks", "success_pct", "success_unmasked_pct", "stuck")


@pytest.fixture(scope="module")
def cell():
    return Picks()


@pytest.fixture(scope="module")
def done(cell):
    """A task that can be done, and what was planned for it."""
    rng = np.random.default_rng(5)
    pick = cell.draw(rng)
    while cell.infeasible(pick) is not None:
        pick = cell.draw(rng)
    return pick, cell.plan(pick, 1, NEAR)


def test_a_short_run_ends_with_the_promised_keys(capsys):
    main(json=True, n=3, sweeps_per_kind=1)
    result = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert [key for key in KEYS if key not in result] == []
    assert result["tasks"] == 3
    assert result["success_pct"] == 100.0
    assert result["stuck"] == 0
    assert result["sweeps"] == 3
    assert result["joint_speed_share"] <= 1.0


def test_an_answer_that_does_all_that_was_asked_is_a_success(cell, done):
    verdict, needed_rad_s = cell.verdict(*done)
    assert verdict == ""
    assert needed_rad_s <= cell.brief.limits.joint_speed_rad_s


def spoilt(stream, what):
    q, event = np.array(stream.q_rad), stream.events[0]
    if what == "a joint is too fast":
        q[100] += 0.01
    elif what == "not finite":
        q[100, 2] = np.nan
    elif what == "starts elsewhere":
        q += 0.001
    elif what == "does not grip where it should":
        return replace(stream, events=(replace(event, row=event.row - 400),))
    return replace(stream, q_rad=q)


@pytest.mark.parametrize(
    "what",
    ["a joint is too fast", "not finite", "starts elsewhere", "does not grip where it should"],
)
def test_an_answer_that_is_spoilt_is_no_success(cell, done, what):
    pick, stream = done
    assert cell.verdict(pick, spoilt(stream, what))[0] == what


def test_an_answer_that_goes_through_a_box_is_no_success(cell, done):
    pick, stream = done
    tool_m = tool_pose(cell.brief.cell.arms[0].model, stream.q_rad[stream.events[0].row // 2])[
        :3, 3
    ]
    there = move_object(pick.world, "box_a", transform(tool_m - (0.0, 0.0, 0.4)))
    assert cell.verdict(replace(pick, world=there), stream)[0].endswith("touches box_a")


def test_a_part_that_nobody_can_reach_or_that_is_inside_a_box_is_no_task(cell, done):
    pick, _ = done
    far = move_object(pick.world, PART, transform((1.2, 0.0, 0.3)))
    assert cell.infeasible(replace(pick, world=far)) == OUT_OF_REACH
    T_part = pick.world.object(PART).T_world_object
    low = transform((T_part[0, 3], T_part[1, 3], T_part[2, 3] - 0.4))
    inside = move_object(pick.world, "box_a", low)
    assert cell.infeasible(replace(pick, world=inside)) == IN_COLLISION
    assert cell.infeasible(pick) is None


def test_the_steepest_turn_of_a_joint_is_per_metre_of_the_tool():
    q = np.linspace(0.0, 1.0, 11)[:, None] * [0.0, 0.3, 0.1]
    T = np.array([transform((0.0, 0.0, 0.01 * k)) for k in range(11)])
    assert steepest(q, T) == pytest.approx(3.0)
    assert turned(np.array([3.1]), np.array([-3.1])) == pytest.approx(2 * np.pi - 6.2)
    assert TOO_SLOW.startswith("a joint")


@pytest.mark.parametrize("kind", KINDS)
def test_sweeps_go_through_a_singular_pose_of_their_kind(kind):
    arm, rng = Sweeps(), np.random.default_rng(3)
    for _ in range(5):
        sweep = arm.draw(kind, rng)
        start = tool_pose(arm.model, sweep.q_rad)
        np.testing.assert_allclose(start, sweep.tool(-1.0), atol=1e-9)
        np.testing.assert_allclose(sweep.tool(0.0), sweep.T_base_tool, atol=1e-12)
        for share in (-1.0, 0.0, 1.0):
            moved = sweep.hand(share)[:3, 3] - sweep.hand(-1.0)[:3, 3]
            np.testing.assert_allclose(moved, sweep.tool(share)[:3, 3] - start[:3, 3], atol=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_a_hand_that_leads_through_singular_poses_is_never_stuck(kind):
    arm, rng, outcome = Sweeps(), np.random.default_rng(11), Outcome()
    for _ in range(2):
        arm.drive(arm.draw(kind, rng), outcome)
    assert outcome.stuck == 0, outcome.held
    assert outcome.joint_share <= 1.0, f"{outcome.joint_share} of a joint's limit"
    assert outcome.tool_m_s <= 0.25 * 1.01, f"{outcome.tool_m_s} m/s, limit 0.25"
