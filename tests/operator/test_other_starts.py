"""A rehearsal is not committed from the same tool pose in other joints.

The arm really goes there, by another rehearsal and commit, and what was rehearsed first is tried.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from brain.geometry import Array, largest
from brain.ik import solve, within_limits
from brain.kinematics import tool_pose
from brain.robot import ArmModel
from brain.types import Goal, Mode
from sim.build import SimCell
from tests.closed_loop.rig import Run, play
from tests.operator.hands import preview, started_at
from vr.scripted import ARM_S, Script, ScriptedSeat, do_goal

HOME_DEG = (-20.0, -100.0, 100.0, -90.0, -90.0, -20.0)


def a_turn_away(model: ArmModel, q_rad: Array) -> Array:
    return q_rad + np.array([0.0, 0.0, 0.0, 0.0, 0.0, 2.0 * np.pi])


def in_another_branch(model: ArmModel, q_rad: Array) -> Array:
    """The nearest other joints, of those that are more than a right angle away."""
    found = within_limits(solve(model, tool_pose(model, q_rad)), q_rad - np.pi, q_rad + np.pi)
    off = np.max(np.abs(found.q_rad - q_rad), axis=1)
    return np.asarray(found.q_rad[np.argmin(np.where(off > np.pi / 2.0, off, np.inf))])


ELSEWHERE = {"turn": a_turn_away, "branch": in_another_branch}
CASES = list(ELSEWHERE)


@cache
def tried(where: str) -> tuple[Run, str, Mode]:
    """A run, what was said to the commit, and the mode after it."""
    said: list[tuple[str, Mode]] = []

    def script(seat: ScriptedSeat, cell: SimCell) -> Script:
        arm = cell.brief.cell.arms[0]
        q = cell.plant.devices.arms[0].read().q_rad
        yield from preview(seat, cell, -0.1)
        first = seat.digest
        seat.act("cancel")
        yield from seat.until(lambda s: s.mode is Mode.HOLD, ARM_S)
        there = Goal(kind="joints", arm=arm.name, q_rad=ELSEWHERE[where](arm.model, q))
        if not (yield from do_goal(seat, there)):
            return False
        yield from preview(seat, cell, -0.1)
        seat.act("commit", digest=first)
        yield from seat.wait(0.2)
        said.append((seat.status.note, cell.spine.state.mode.mode))
        return True

    run = play(started_at("bench_pick", HOME_DEG, ("floor",)), script)
    assert said, run.story()
    return run, *said[0]


@pytest.mark.parametrize("where", CASES)
def test_the_tool_is_where_the_rehearsal_starts(where):
    run, _, _ = tried(where)
    model, q = run.cell.brief.cell.arms[0].model, run.measured()
    off = largest((tool_pose(model, q[-1]) - tool_pose(model, q[0])).ravel())
    print(f"{where}: tool poses differ by {off:.1e}, limit 1e-3")
    assert off <= 1e-3


@pytest.mark.parametrize("where", CASES)
def test_the_joints_are_far_from_where_the_rehearsal_starts(where):
    run, _, _ = tried(where)
    off: Array = np.abs(run.measured()[-1] - run.measured()[0])
    print(f"{where}: joints differ by up to {largest(off):.3f} rad, at least 1.57")
    assert largest(off) >= 1.57


@pytest.mark.parametrize("where", CASES)
def test_a_commit_from_the_same_tool_pose_in_other_joints_is_refused(where):
    _, note, mode = tried(where)
    print(f"{where}: {note}")
    assert mode is Mode.PREVIEW
    assert "rad from the start, 0.01 allowed" in note
