"""Taken by the hand in singular poses, the arm holds still, then follows within its limits."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
import pytest

from brain.geometry import Array
from brain.kinematics import tool_jacobian, tool_pose
from brain.limits import DEFAULT, joint_speed
from brain.types import Action, Mode
from sim.build import SimCell
from tests.closed_loop.rig import Run, play
from tests.operator.hands import drive, glide, started_at
from vr.scripted import Script, ScriptedSeat

WAY_M = 0.10
HIGH_M = 2.2
"""Top of the workspace: one of the poses is an upright arm."""
UR5E, Z1 = "bench_pick", "z1_bench"
STARTS: dict[str, tuple[str, tuple[float, ...], tuple[float, float, float]]] = {
    "ur5e wrist": (UR5E, (-20, -100, 100, -90, 0, -20), (-1, 0, -1)),
    "ur5e wrist turned over": (UR5E, (-20, -100, 100, -90, 180, -20), (-1, 1, 0)),
    "ur5e elbow": (UR5E, (0, -60, 0, -90, -90, 0), (-1, 0, -1)),
    "ur5e shoulder": (UR5E, (0, -144.9696, 100, -90, -90, 0), (1, 0, 0)),
    "ur5e upright": (UR5E, (0, -90, 0, -90, 0, 0), (0, 0, -1)),
    "z1 shoulder": (Z1, (0, 48.7412, -72, 64, 0, 0), (1, 0, 0)),
    "z1 shoulder aside": (Z1, (0, 48.7412, -72, 64, 0, 0), (1, 1, 0)),
}
"""Scene, joints in deg, and which way in the world the hand goes."""


CASES = list(STARTS)


@dataclass(frozen=True, kw_only=True, eq=False)
class Driven:
    """A run from a singular start: when the hand was still, and which way it went."""

    run: Run
    still_ns: tuple[int, int]
    way: Array

    def tool(self, q: Array) -> Array:
        """Tool in the world."""
        arm = self.run.cell.brief.cell.arms[0]
        return np.asarray((arm.T_world_base @ tool_pose(arm.model, q))[:3, 3])


@cache
def driven(name: str) -> Driven:
    """Take the arm in a singular pose, wait, and lead it away."""
    scene, q_deg, towards = STARTS[name]
    way = np.array(towards) / np.linalg.norm(towards)
    still_ns: list[int] = []

    def script(seat: ScriptedSeat, cell: SimCell) -> Script:
        arm = cell.brief.cell.arms[0]
        if not (yield from drive(seat)):
            return False
        still_ns.append(cell.spine.state.mode.since_ns)
        yield from seat.wait(0.2)
        still_ns.append(cell.plant.world.t_ns)
        seat_m = arm.T_base_seat[:3, :3].T @ arm.T_world_base[:3, :3].T @ way
        yield from glide(seat, WAY_M * seat_m, 1.2)
        yield from seat.wait(1.5)
        return True

    run = play(started_at(scene, q_deg, ("floor",), HIGH_M), script)
    assert len(still_ns) == 2, run.story()
    return Driven(run=run, still_ns=(still_ns[0], still_ns[1]), way=way)


@pytest.mark.parametrize("name", CASES)
def test_the_start_is_singular(name):
    done = driven(name)
    model = done.run.cell.brief.cell.arms[0].model
    J, links, tool = np.zeros((6, 6)), np.zeros((7, 4, 4)), np.zeros((4, 4))
    tool_jacobian(model.arrays, done.run.measured()[0], J, links, tool)
    sigma = float(np.linalg.svd(J, compute_uv=False)[-1])
    print(f"{name}: smallest singular value {sigma:.1e}, limit 1e-5")
    assert sigma <= 1e-5


@pytest.mark.parametrize("name", CASES)
def test_engaging_in_a_singular_pose_commands_exactly_the_held_joints(name):
    done = driven(name)
    sent = [
        r.commands.arms[0].q_rad
        for r in done.run.records
        if done.still_ns[0] - 20_000_000 <= r.seen.t_ns < done.still_ns[1]
    ]
    off = float(np.max(np.abs(np.array(sent) - sent[0])))
    print(f"{name}: {off} rad from the held joints, limit 0")
    assert off == 0.0


@pytest.mark.parametrize("name", CASES)
def test_nothing_is_held_or_stopped_on_the_way_out_of_a_singular_pose(name):
    done = driven(name)
    answers = {r.passed[0].answer.action for r in done.run.during(Mode.TELEOP)}
    print(name, answers)
    assert done.run.records[-1].state.mode.mode is Mode.TELEOP, done.run.story()
    assert answers <= {Action.ALLOW, Action.LIMIT}


@pytest.mark.parametrize("name", CASES)
def test_the_arm_comes_out_of_a_singular_pose_to_where_the_hand_leads_it(name):
    done = driven(name)
    start, end = done.tool(done.run.measured()[0]), done.tool(done.run.measured()[-1])
    off = float(np.linalg.norm(end - start - WAY_M * done.way))
    print(f"{name}: {1000 * off:.2f} mm from where the hand led it, limit 2")
    assert off <= 0.002


@pytest.mark.parametrize("name", CASES)
def test_no_joint_is_faster_than_its_limit_on_the_way_out_of_a_singular_pose(name):
    run = driven(name).run
    q, tick_s = run.sent(), run.cell.brief.cell.tick_ns * 1e-9
    allowed = joint_speed(DEFAULT, run.cell.brief.cell.arms[0].model.limits)
    share = float(np.nanmax(np.abs(np.diff(q, axis=0)) / tick_s / allowed))
    print(f"{name}: {share:.3f} of the joint speed limits, limit 1")
    assert share <= 1.0


@pytest.mark.parametrize("name", CASES)
def test_the_tool_is_no_faster_than_its_limit_on_the_way_out_of_a_singular_pose(name):
    done = driven(name)
    q, tick_s = done.run.sent(), done.run.cell.brief.cell.tick_ns * 1e-9
    places = np.array([done.tool(row) for row in q if not np.isnan(row[0])])
    fastest = float(np.max(np.linalg.norm(np.diff(places, axis=0), axis=1))) / tick_s
    print(f"{name}: tool {fastest:.4f} m/s, limit {DEFAULT.tool_speed_m_s}")
    assert fastest <= DEFAULT.tool_speed_m_s
