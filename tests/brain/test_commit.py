"""Committing a rehearsal through tick, gate and ideal arms: exactly the rows, or a held arm."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from brain.geometry import frozen
from brain.kinematics import tool_pose
from brain.limits import DEFAULT
from brain.playback import DONE
from brain.types import Action, Mode
from tests.brain.cells import HOME
from tests.brain.committing import MADE, ONE, ROWS, TWO, committed, depart, release
from tests.brain.streams import DT, SPUN, off_the_way, rehearsal, stream, timed
from tests.ideal import Bench
from tests.values import replace

NO_TOOL_LIMIT = replace(DEFAULT, tool_speed_m_s=10.0)


def motion_of(commands: np.ndarray) -> tuple[float, float]:
    """Largest speed and acceleration of commanded joints, in rad/s and rad/s^2."""
    dq = np.diff(commands, axis=0) / DT
    return float(np.max(np.abs(dq))), float(np.max(np.abs(np.diff(dq, axis=0)))) / DT


# ------------------------------------------------------------------------------ as rehearsed


def test_a_commit_plays_exactly_the_rows_bit_for_bit():
    b = committed(ticks=len(ROWS) + 5)
    sent = b.commands()
    first = len(sent) - len(ROWS) - 6
    assert np.array_equal(sent[first : first + len(ROWS)], ROWS)
    assert (b.mode, b.reason) == (Mode.HOLD, DONE)
    assert np.array_equal(b.joints(), ROWS[-1])


def test_nothing_is_limited_in_a_motion_planned_at_ninety_percent():
    b = committed(ticks=len(ROWS))
    answers = {r.passed[0].answer.action for r in b.records[-len(ROWS) :]}
    assert answers == {Action.ALLOW}


def test_a_commit_says_who_committed_it():
    assert committed().reason == "committed by script"


def test_the_departure_of_an_ideal_arm_is_nothing():
    b = committed(ticks=len(ROWS) + 5)
    assert b.spine.state.departure.joint_rad == 0.0
    assert b.spine.state.departure.force_n == 0.0


def test_two_arms_are_played_side_by_side():
    other = timed(TWO.arms[1].model, HOME, SPUN)
    n = max(len(ROWS), len(other))
    both = np.hstack([np.vstack([r, np.repeat(r[-1:], n - len(r), axis=0)]) for r in (ROWS, other)])
    b = committed(rehearsal(TWO, stream(both, arms=2)), n + 5, Bench(TWO))
    assert b.reason == DONE
    sent = [b.commands(i)[-n - 6 : -6] for i in (0, 1)]
    assert np.array_equal(np.hstack(sent), both)


# ------------------------------------------------------------------- from where it is held


def nudged(seed: int) -> np.ndarray:
    """Joints that a commit just tolerates: 0.01 rad and 5 mm and 2 deg from the start."""
    rng = np.random.default_rng(seed)
    off = rng.uniform(-0.0099, 0.0099, 6)
    start = tool_pose(ONE.arms[0].model, HOME)
    while True:
        now = tool_pose(ONE.arms[0].model, HOME + off)
        turned = np.arccos((np.trace(now[:3, :3].T @ start[:3, :3]) - 1.0) / 2.0)
        if np.linalg.norm(now[:3, 3] - start[:3, 3]) < 0.0049 and turned < np.deg2rad(1.9):
            return HOME + off
        off *= 0.9


@settings(max_examples=10, deadline=None, derandomize=True)
@given(st.integers(0, 10_000))
def test_an_offset_at_the_start_fades_within_the_gates_limits_and_is_gone_in_half_a_second(seed):
    b = Bench(ONE)
    b.arms[0].motion = replace(b.arms[0].motion, q_rad=frozen(nudged(seed)))
    b.commit(MADE)
    b.run(300)
    assert b.mode is Mode.COMMIT, b.reason
    assert {r.passed[0].answer.action for r in b.records[-300:]} == {Action.ALLOW}
    sent = b.commands()[-301:]
    assert np.array_equal(sent[0], nudged(seed))
    off = np.max(np.abs(sent - ROWS[:301]), axis=1)
    assert off[200] > 0.0
    assert off[250] < 1e-12


def test_a_short_motion_still_ends_where_it_was_rehearsed():
    rows = timed(ONE.arms[0].model, HOME, (((0, 0, 0, 0, 0, 0.02), 0.0, 1.0),))
    assert len(rows) * DT < 0.5
    b = Bench(ONE)
    b.arms[0].motion = replace(b.arms[0].motion, q_rad=frozen(HOME + 0.001))
    b.commit(rehearsal(ONE, stream(rows)))
    b.run(300)
    assert b.reason == DONE
    off = float(np.max(np.abs(b.joints() - rows[-1])))
    assert off < 1e-12, f"{off} rad from the rehearsed end, limit 1e-12"


# --------------------------------------------------------------- what holds it, on its way


def fall_silent(b: Bench) -> None:
    b.talking = False
    b.run(106)


def cancel(b: Bench) -> None:
    b.say("cancel")
    b.tick()


HOLDS = {
    "dead-man": (release, "dead-man released"),
    "silence": (fall_silent, "the seat is silent for 202 ms"),
    "departure": (depart, "joints depart"),
    "cancel": (cancel, "cancel"),
}


@pytest.mark.parametrize("row", [3, 60, 400, 900, 1400])
@pytest.mark.parametrize("kind", HOLDS)
def test_a_hold_slows_to_rest_on_the_rehearsed_way(kind, row):
    cause, reason = HOLDS[kind]
    b = committed(ticks=row)
    cause(b)
    b.run(150)
    assert b.mode is Mode.HOLD
    assert reason in b.reason, b.reason
    sent = b.commands()[-300:]
    off = off_the_way(sent, ROWS)
    assert off < 1e-9, f"{off} rad off the way, limit 1e-9"
    assert np.array_equal(sent[-1], sent[-50])
    assert b.spine.state.playback is None
    assert not any(r.passed[0].answer.action is Action.HOLD for r in b.records[-300:])


@settings(max_examples=12, deadline=None, derandomize=True)
@given(st.integers(0, 10_000), st.floats(0.0, 1.0))
def test_whenever_the_dead_man_is_let_go_the_arm_stops_on_its_way_and_not_harder_than_a_stop(
    seed, when
):
    rng = np.random.default_rng(seed)
    moves = [(rng.uniform(-0.4, 0.4, 6), a, b) for a, b in ((0.0, 0.7), (0.2, 0.8), (0.4, 1.0))]
    rows = timed(ONE.arms[0].model, HOME, moves, NO_TOOL_LIMIT)
    everywhere = frozen([[-9.0, -9.0, -9.0], [9.0, 9.0, 9.0]])
    b = Bench(replace(ONE, workspace_m=everywhere), limits=NO_TOOL_LIMIT)
    b.commit(rehearsal(ONE, stream(rows)))
    b.run(int(when * len(rows)))
    before = len(b.commands())
    release(b)
    b.run(150)
    sent = b.commands()[before - 2 :]
    off = off_the_way(sent, rows)
    assert off < 1e-9, f"{off} rad off the way, limit 1e-9"
    hardest = motion_of(sent)[1]
    most = NO_TOOL_LIMIT.stop_deceleration_rad_s2
    assert hardest <= most * (1 + 1e-6), f"{hardest} rad/s^2, limit {most}"
    assert np.array_equal(sent[-1], sent[-45]), "still moving 0.21 s after the release, limit 0.20"


def test_a_hold_ends_the_commit_for_good():
    b = committed(ticks=300)
    release(b)
    b.run(100)
    at = b.joints().copy()
    b.say("commit", digest=MADE.digest, nonce="another")
    b.run(50)
    assert b.mode is Mode.HOLD
    assert "committed before" in b.note
    assert np.array_equal(b.joints(), at)
