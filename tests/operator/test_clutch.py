"""Taking the arm by the hand: whatever the hand was doing, engaging moves nothing."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from brain.geometry import Array, rotvec_to_matrix, transform
from brain.kinematics import tool_pose
from brain.types import Action, Mode
from sim.build import SimCell
from tests.closed_loop.rig import Run, play
from tests.operator.hands import CHEAP, drive, glide, press, started_at
from vr.scripted import Script, ScriptedSeat

STILL_S = 0.3
STROKE_RAD = 1.0


@dataclass(frozen=True, kw_only=True, eq=False)
class Taken:
    """A run, and from when to when the hand was still after it had taken the arm."""

    run: Run
    still_ns: list[tuple[int, int]]
    notes: list[str]

    def held_off(self, k: int) -> float:
        """Largest difference in rad between what was held and what was sent at an engage."""
        records = [r for r in self.run.records if r.state.mode.mode in (Mode.TELEOP, Mode.HOLD)]
        first, last = self.still_ns[k]
        before = [r for r in records if r.seen.t_ns < first and r.state.mode.mode is Mode.HOLD]
        held = before[-1].commands.arms[0].q_rad
        sent = [r.commands.arms[0].q_rad for r in records if first <= r.seen.t_ns < last]
        assert len(sent) > 20, "the hand was still for less than 20 ticks"
        return float(np.max(np.abs(np.array(sent) - held)))


def take(seat: ScriptedSeat, cell: SimCell, still_ns: list[tuple[int, int]]) -> Script:
    """Press, and keep the hand still for a while."""
    if not (yield from press(seat)):
        return False
    first = next_mode_ns(cell)
    yield from seat.wait(STILL_S)
    still_ns.append((first, cell.plant.world.t_ns))
    return True


def next_mode_ns(cell: SimCell) -> int:
    return cell.spine.state.mode.since_ns


def a_hand(position_m: tuple[float, float, float], turn: tuple[float, float, float]) -> Array:
    return transform(position_m, rotvec_to_matrix(np.array(turn)))


@pytest.fixture(scope="module")
def ordinary() -> Taken:
    """Take the arm, move it, let go, go elsewhere with the hand turned over, take it again."""
    still_ns: list[tuple[int, int]] = []

    def script(seat: ScriptedSeat, cell: SimCell) -> Script:
        seat.T_seat_hand = a_hand((2.0, -1.0, 0.4), (0.3, -1.1, 2.0))
        yield from drive(seat)
        yield from take(seat, cell, still_ns)
        yield from glide(seat, np.array([0.06, 0.03, 0.04]), 0.6, np.array([0.0, 0.1, 0.2]))
        seat.engaged = False
        yield from seat.wait(0.3)
        seat.T_seat_hand = a_hand((-0.7, 3.0, 1.8), (2.0, 0.5, -1.0))
        yield from seat.wait(0.1)
        return (yield from take(seat, cell, still_ns))

    run = play(CHEAP, script)
    assert len(still_ns) == 2, run.story()
    return Taken(run=run, still_ns=still_ns, notes=[])


def test_the_first_engage_commands_exactly_the_held_joints(ordinary):
    off = ordinary.held_off(0)
    print(f"first engage: {off} rad from the held joints, limit 0")
    assert off == 0.0


def test_an_engage_with_the_hand_elsewhere_and_turned_over_commands_exactly_the_held_joints(
    ordinary,
):
    off = ordinary.held_off(1)
    print(f"second engage: {off} rad from the held joints, limit 0")
    assert off == 0.0


def test_between_the_engages_the_arm_was_moved(ordinary):
    q = ordinary.run.sent()
    moved = np.nanmax(np.abs(q - q[~np.isnan(q[:, 0])][0]))
    print(f"moved by {moved:.3f} rad, at least 0.05")
    assert moved > 0.05


# ----------------------------------------------------------------------------- at a limit


@pytest.fixture(scope="module")
def ratcheted() -> Taken:
    """Turn the last joint to its limit in strokes, as with a screwdriver, and go on turning."""
    still_ns: list[tuple[int, int]] = []
    notes: list[str] = []

    def script(seat: ScriptedSeat, cell: SimCell) -> Script:
        yield from drive(seat)
        for _ in range(4):
            seat.T_seat_hand = a_hand((0.3, 0.0, 1.0), (0.0, 0.0, 0.0))
            if not (yield from take(seat, cell, still_ns)):
                return False
            yield from glide(seat, np.zeros(3), 1.3, np.array([0.0, 0.0, STROKE_RAD]))
            yield from seat.wait(0.2)
            notes.append(cell.spine.state.note)
            seat.engaged = False
            yield from seat.wait(0.2)
        return True

    run = play(CHEAP, script)
    assert len(still_ns) == 4, run.story()
    return Taken(run=run, still_ns=still_ns, notes=notes)


def test_a_hand_that_turns_on_comes_to_the_joints_limit_and_is_told_so(ratcheted):
    print(ratcheted.notes)
    assert "joint 6 is at its limit" in ratcheted.notes[-1]


def test_engaging_again_at_the_limit_commands_exactly_the_held_joints(ratcheted):
    off = [ratcheted.held_off(k) for k in range(4)]
    print(f"{off} rad from the held joints at each engage, limit 0")
    assert max(off) == 0.0


def test_at_the_limit_nothing_is_held_or_stopped_by_the_gate(ratcheted):
    records = ratcheted.run.during(Mode.TELEOP)
    answers = {r.passed[0].answer.action for r in records}
    print(answers)
    assert answers <= {Action.ALLOW, Action.LIMIT}


def test_at_the_limit_the_joint_stays_inside_the_makers_range(ratcheted):
    joints = ratcheted.run.cell.brief.cell.arms[0].model.limits
    q = ratcheted.run.sent()
    inside = np.nanmin(np.minimum(q - joints.q_min_rad, joints.q_max_rad - q))
    print(f"{inside:.4f} rad inside the range, at least 0")
    assert inside >= 0.0


# ------------------------------------------------------------------ outside the workspace


@pytest.fixture(scope="module")
def outside() -> Taken:
    """Start with the tool 7 cm above the workspace, take the arm, and lead it far down."""
    still_ns: list[tuple[int, int]] = []

    def script(seat: ScriptedSeat, cell: SimCell) -> Script:
        yield from drive(seat)
        yield from take(seat, cell, still_ns)
        yield from glide(seat, np.array([0.0, 0.0, -0.25]), 1.6)
        return True

    run = play(started_at(CHEAP, (0, 62, -90, 30, 0, 0), ("floor",)), script)
    assert len(still_ns) == 1, run.story()
    return Taken(run=run, still_ns=still_ns, notes=[])


def above_m(run: Run) -> Array:
    """How far the tool is above the workspace in each tick."""
    cell = run.cell.brief.cell
    arm = cell.arms[0]
    tools = [(arm.T_world_base @ tool_pose(arm.model, q))[2, 3] for q in run.measured()]
    return np.array(tools) - cell.workspace_m[1, 2]


def test_engaging_outside_the_workspace_commands_exactly_the_held_joints(outside):
    off = outside.held_off(0)
    print(f"{off} rad from the held joints, {above_m(outside.run)[0]:.3f} m outside, limit 0")
    assert above_m(outside.run)[0] > 0.02
    assert off == 0.0


def test_an_arm_outside_the_workspace_is_led_back_in(outside):
    last = above_m(outside.run)[-1]
    print(f"at the end {last:.3f} m above the workspace, limit 0\n{outside.run.story()}")
    assert last < 0.0
