"""Stop in every mode, what it takes to go on, and what a silent seat may never do."""

import numpy as np
import pytest

from brain.geometry import frozen, transform
from brain.mode import LIMP
from brain.tick import RESTING_RAD_S
from brain.types import Goal, Mode
from tests.brain.cells import HOME, cell
from tests.brain.streams import DT, rehearsal, stream, timed
from tests.ideal import TICK_NS, Bench
from tests.values import replace

ONE = cell()
MADE = rehearsal(ONE, stream(timed(ONE.arms[0].model, HOME)))
BRAKE = 10.0
"""Deceleration in rad/s^2 of the ideal arm's own brake."""


def into(mode: Mode) -> Bench:
    """A cell in that mode, moving where the mode moves."""
    b = Bench(ONE)
    if mode is Mode.DISARMED:
        b.run(5)
    elif mode is Mode.TELEOP:
        b.arm_and_drive()
        for k in range(300):
            b.hand = transform((0.3 + 0.0005 * k, 0.2, 1.1))
            b.tick()
    elif mode is Mode.PREVIEW:
        b.preview(MADE)
    elif mode is Mode.COMMIT:
        b.commit(MADE)
        b.run(700)
    else:
        b.press()
    if mode is Mode.REHEARSING:
        b.say("rehearse", goal=Goal(kind="home", arm="ur0"))
        b.tick()
    elif mode is Mode.STOPPED:
        b.stop = True
        b.tick()
    elif mode is Mode.FAULT:
        b.arms[0].read_error = RuntimeError("broken cable")
        b.tick()
        b.arms[0].read_error = None
    assert b.mode is mode, b.reason
    return b


@pytest.mark.parametrize("mode", list(Mode))
def test_stop_reaches_the_device_within_20_ms_in_every_mode_and_the_arm_brakes_to_rest(mode):
    b = into(mode)
    arm, pressed_ns, before = b.arms[0], b.t_ns, len(b.arms[0].commands)
    speed = float(np.max(np.abs(arm.motion.dq_rad_s)))
    assert speed > 0.1 or mode not in (Mode.TELEOP, Mode.COMMIT)
    b.stop = True
    b.run(10)
    first = next(c for c in arm.commands[before:] if c.stop)
    late_ms = (first.t_ns - pressed_ns) * 1e-6
    assert late_ms <= 20.0, f"{late_ms} ms to the device, limit 20"
    assert b.mode is (Mode.FAULT if mode is Mode.FAULT else Mode.STOPPED)
    assert b.reason == "stop pressed"
    b.run(int(speed / BRAKE / DT) + 2)
    assert not np.any(arm.motion.dq_rad_s)
    assert all(c.stop and c.q_rad is None for c in arm.commands[before:])
    assert b.spine.state.playback is b.spine.state.teleop is b.spine.state.pending is None


@pytest.mark.parametrize("mode", list(Mode))
def test_going_on_after_a_stop_takes_acknowledge_then_release_then_engage(mode):
    b = into(mode)
    b.engaged = True
    b.stop = True
    b.run(200)
    stopped = b.mode
    for engaged in (False, True):
        b.engaged = engaged
        b.run(12)
        assert b.mode is stopped
    b.say("acknowledge")
    b.run(12)
    assert (b.mode, b.reason) == (Mode.DISARMED, "acknowledge")
    b.engaged = False
    b.run(12)
    assert b.mode is Mode.DISARMED
    at = b.joints().copy()
    b.engaged = True
    b.run(12)
    assert (b.mode, b.reason) == (Mode.HOLD, "engaged")
    assert np.array_equal(b.joints(), at)


def test_an_arm_that_still_brakes_is_not_armed_however_quick_the_operator_is():
    b = into(Mode.COMMIT)
    b.stop = True
    b.tick(b.sample())
    b.say("acknowledge")
    b.tick(b.sample())
    b.engaged = False
    b.tick(b.sample())
    b.engaged = True
    while b.mode is Mode.DISARMED:
        before = b.arms[0].motion
        b.tick(b.sample())
    speed = float(np.max(np.abs(before.dq_rad_s)))
    assert speed < RESTING_RAD_S, f"armed at {speed} rad/s, limit {RESTING_RAD_S}"
    b.run(100)
    moved = float(np.max(np.abs(b.joints() - before.q_rad)))
    assert moved <= RESTING_RAD_S * DT, f"moved by {moved} rad, limit {RESTING_RAD_S * DT}"


def test_an_arm_is_taken_by_the_hand_only_when_it_has_come_to_rest_on_its_way():
    b = into(Mode.COMMIT)
    for engaged in (False, False, True):
        b.engaged = engaged
        b.tick(b.sample())
    assert b.mode is Mode.HOLD
    for _ in range(150):
        b.tick(b.sample())
        assert b.mode is Mode.HOLD or not np.any(b.records[-1].seen.memories[0].dq_rad_s)
    assert b.mode is Mode.TELEOP


# ------------------------------------------------------------------------------ silent seats


def test_a_button_that_is_down_from_the_start_arms_nothing():
    b = Bench(ONE)
    b.engaged = True
    b.run(300)
    assert b.mode is Mode.DISARMED


@pytest.mark.parametrize("mode", [Mode.TELEOP, Mode.COMMIT])
def test_a_seat_that_comes_back_with_its_button_down_does_not_move_the_arm(mode):
    b = into(mode)
    b.talking = False
    b.run(1000)
    assert b.mode is Mode.HOLD
    at = b.joints().copy()
    b.talking = True
    b.run(200)
    assert b.mode is Mode.HOLD
    assert np.array_equal(b.joints(), at)
    b.press()
    assert b.mode is Mode.TELEOP


def test_after_a_stall_of_two_seconds_a_burst_of_old_poses_moves_nothing():
    b = into(Mode.TELEOP)
    late = []
    for k in range(1000):
        if k % 5 == 0:
            late.append(
                replace(b.sample(), T_seat_hand=frozen(transform((0.5, 0.2 + 1e-4 * k, 1.1))))
            )
        b.talking = False
        b.tick()
    at = b.joints().copy()
    for sample in late:
        b.tick(sample)
    b.talking = True
    b.run(100)
    assert b.mode is Mode.HOLD
    assert np.array_equal(b.joints(), at)


def test_silence_while_disarmed_does_not_count_as_letting_go():
    b = into(Mode.COMMIT)
    b.stop = True
    b.tick()
    b.say("acknowledge")
    b.talking = False
    b.run(500)
    assert b.mode is Mode.DISARMED
    b.talking = True
    b.run(100)
    assert b.mode is Mode.DISARMED


def test_a_silent_seat_holds_a_commit_after_200_ms_and_not_before():
    b = into(Mode.COMMIT)
    heard_ns = b.spine.state.operator.t_ns
    b.talking = False
    while b.mode is Mode.COMMIT:
        b.tick()
    silent_ms = (b.t_ns - heard_ns) * 1e-6
    assert 200.0 < silent_ms <= 200.0 + TICK_NS * 1e-6, f"held after {silent_ms} ms, limit 200"


# ---------------------------------------------------------------------- before the first state


def test_before_the_first_state_an_arm_is_told_nothing_but_stop():
    b = Bench(ONE)
    b.arms[0].silent = True
    b.run(50)
    b.press()
    assert b.mode is Mode.STOPPED
    assert b.reason == "ur0: stop by no state, 0 against 0"
    assert all(c.stop for c in b.arms[0].commands)


def test_the_first_state_is_where_the_arm_is_held():
    b = Bench(ONE)
    b.arms[0].silent = True
    b.run(50)
    b.arms[0].silent = False
    b.arms[0].motion = replace(b.arms[0].motion, q_rad=frozen(HOME + 0.5))
    b.press()
    assert b.mode is Mode.HOLD
    assert np.array_equal(b.commands()[-1], HOME + 0.5)


def test_in_limp_modes_every_command_is_a_stop():
    for mode in LIMP:
        b = into(mode)
        before = len(b.arms[0].commands)
        b.run(50)
        assert all(c.stop for c in b.arms[0].commands[before:])
