"""The cycle: what the devices are told, and that nothing that breaks keeps the arms from a stop."""

import numpy as np
import pytest

from brain.errors import DeviceFault, DeviceLost
from brain.gate import COMMAND_TICKS
from brain.geometry import frozen
from brain.limits import DEFAULT
from brain.types import Goal, Mode
from brain.world import make_world
from hardware.api import Arm, ForceTorque, Gripper, Tracker
from hardware.receive import Heard
from hardware.spine import CellDevices, Spine
from tests.brain.cells import GRIPPER, HOME, cell
from tests.brain.streams import SPUN, rehearsal, stream, timed
from tests.ideal import (
    TICK_NS,
    Bench,
    IdealArm,
    IdealGripper,
    IdealTracker,
    IdealWorker,
    IdealWrench,
)
from tests.values import replace

ONE, TWO = cell(), cell(arms=2)
WITH_FINGERS = replace(
    ONE, arms=(replace(ONE.arms[0], model=replace(ONE.arms[0].model, gripper=GRIPPER)),)
)


def test_the_ideal_devices_of_these_tests_are_devices():
    assert isinstance(IdealArm("a", HOME), Arm)
    assert isinstance(IdealGripper(), Gripper)
    assert isinstance(IdealWrench(), ForceTorque)
    assert isinstance(IdealTracker(), Tracker)


# -------------------------------------------------------------------------- start and stop


def test_starting_tells_every_arm_to_stop_and_moves_nothing():
    b = Bench(TWO)
    for arm in b.arms:
        assert [c.stop for c in arm.commands] == [True]
        assert arm.commands[0].q_rad is None
        assert arm.commands[0].expires_ns == COMMAND_TICKS * TICK_NS
    assert b.mode is Mode.DISARMED


def test_an_arm_is_started_when_it_leaves_the_limp_modes_and_only_then():
    b = Bench(ONE)
    starts = []
    b.arms[0].start = lambda: starts.append(b.t_ns)
    b.run(50)
    assert starts == []
    b.press()
    assert len(starts) == 1
    b.press()
    b.run(20)
    assert len(starts) == 1
    b.stop = True
    b.tick()
    b.say("acknowledge")
    b.run(20)
    b.press()
    assert len(starts) == 2


@pytest.mark.parametrize("error", [DeviceLost("gone"), RuntimeError("bug in a driver")])
def test_shutting_down_stops_and_closes_every_device_though_one_is_broken(error):
    b = Bench(TWO, grippers=True, wrenches=True)
    b.press()
    b.arms[0].write_error = error
    b.spine.stop(b.t_ns)
    assert b.arms[1].commands[-1].stop
    assert all(d.closed for d in (*b.arms, *b.grippers, *b.wrenches))


# ------------------------------------------------------------------------------ what breaks


BROKEN = [DeviceLost("silent"), DeviceFault("overheated"), RuntimeError("bug"), ZeroDivisionError()]


@pytest.mark.parametrize("error", BROKEN, ids=lambda e: type(e).__name__)
@pytest.mark.parametrize("where", ["read_error", "write_error"])
def test_an_arm_that_breaks_stops_all_arms_in_the_same_cycle_and_the_loop_goes_on(where, error):
    b = Bench(TWO)
    b.arm_and_drive()
    setattr(b.arms[0], where, error)
    sent = len(b.arms[1].commands)
    assert b.tick() is None
    assert b.arms[1].commands[-1].stop
    assert len(b.arms[1].commands) > sent
    assert (b.mode, b.reason) == (Mode.FAULT, f"{type(error).__name__}: {error}")
    assert b.spine.fault is error
    assert b.arms[0].closed or where == "read_error"
    setattr(b.arms[0], where, None)
    b.run(20)
    assert b.records[-1] is not None
    assert b.mode is Mode.FAULT
    assert all(c.stop for c in b.arms[0].commands[-19:])


def test_an_arm_that_cannot_be_started_stops_all_arms():
    b = Bench(TWO)

    def start() -> None:
        raise DeviceFault("brake does not open")

    b.arms[1].start = start
    b.press()
    assert (b.mode, b.reason) == (Mode.FAULT, "DeviceFault: brake does not open")
    assert all(arm.commands[-1].stop for arm in b.arms)


@pytest.mark.parametrize("what", ["gripper", "wrench", "tracker", "submit"])
def test_whatever_breaks_in_the_cycle_stops_the_arm(what):
    b = Bench(
        replace(WITH_FINGERS, arms=(replace(WITH_FINGERS.arms[0], has_wrench=True),)),
        grippers=True,
        wrenches=True,
    )
    b.press()

    def broken(*args: object) -> None:
        raise DeviceLost(what)

    if what == "gripper":
        b.spine.state = replace(b.spine.state, opening_m=(0.02,))
        b.grippers[0].write = broken
    elif what == "wrench":
        b.wrenches[0].read = broken
    elif what == "tracker":
        b.tracker.read = broken
    else:
        b.worker.submit = broken
        b.say("rehearse", goal=Goal(kind="home", arm="ur0"))
    assert b.tick() is None
    assert (b.mode, b.reason) == (Mode.FAULT, f"DeviceLost: {what}")
    assert b.arms[0].commands[-1].stop
    assert b.spine.state.pending is None


def test_a_commit_that_breaks_is_not_taken_up_again():
    rows = timed(ONE.arms[0].model, HOME, SPUN)
    b = Bench(ONE)
    b.commit(rehearsal(ONE, stream(rows)))
    b.run(100)
    b.arms[0].read_error = DeviceLost("for one cycle")
    b.tick()
    b.arms[0].read_error = None
    b.run(100)
    at = b.joints().copy()
    b.say("acknowledge")
    b.run(12)
    b.press()
    b.run(100)
    assert b.mode is Mode.HOLD
    assert b.spine.state.playback is None
    assert np.array_equal(b.joints(), at)


def test_after_a_fault_the_arm_is_held_where_it_is_by_then():
    b = Bench(ONE)
    b.arm_and_drive()
    b.arms[0].read_error = DeviceLost("silent")
    b.run(10)
    b.arms[0].read_error = None
    b.arms[0].motion = replace(b.arms[0].motion, q_rad=frozen(HOME + 0.2))
    b.run(10)
    b.say("acknowledge")
    b.run(12)
    b.press()
    assert b.mode is Mode.HOLD, b.reason
    assert np.array_equal(b.commands()[-1], HOME + 0.2)


# -------------------------------------------------------------------------- what is sent


def test_every_command_dies_soon_and_carries_the_number_of_its_tick():
    b = Bench(ONE)
    b.arm_and_drive()
    for c in b.arms[0].commands[1:]:
        assert c.expires_ns - c.t_ns == COMMAND_TICKS * TICK_NS
        assert c.seq == c.t_ns // TICK_NS


@pytest.mark.parametrize("start_ns", [0, TICK_NS, 7_777_777])
def test_a_slower_arm_gets_every_third_target_and_every_stop(start_ns):
    slow = replace(TWO, arms=(TWO.arms[0], replace(TWO.arms[1], period_ns=3 * TICK_NS)))
    b = Bench(slow)
    b.t_ns = start_ns
    b.press()
    assert b.mode is Mode.HOLD, b.reason
    before = [len(arm.commands) for arm in b.arms]
    b.run(30)
    assert [len(a.commands) - n for a, n in zip(b.arms, before, strict=True)] == [30, 10]
    b.stop = True
    b.run(30)
    assert [len(a.commands) - n for a, n in zip(b.arms, before, strict=True)] == [60, 40]


@pytest.mark.parametrize("waited", [0, 1, 2])
def test_a_slower_arm_gets_the_same_rows_of_a_commit_whenever_it_begins(waited):
    slow = replace(ONE, arms=(replace(ONE.arms[0], period_ns=3 * TICK_NS),))
    made = rehearsal(slow, stream(timed(ONE.arms[0].model, HOME, SPUN)), made_ns=0)
    b = Bench(slow)
    b.run(waited)
    before = len(b.arms[0].commands)
    b.commit(made)
    b.run(10)
    sent = [c.q_rad for c in b.arms[0].commands[before:] if c.q_rad is not None]
    rows = [int(np.flatnonzero((made.stream.q_rad == q).all(axis=1))[0]) for q in sent[-3:]]
    print(f"waited {waited} ticks: rows {rows}")
    assert all(row % 3 == 0 for row in rows)


@pytest.mark.parametrize(
    ("grip", "opening_m"), [(0.0, 0.05), (1.0, 0.0), (0.5, 0.025), (7.0, 0.0), (-1.0, 0.05)]
)
def test_the_hand_closes_the_fingers_within_their_range(grip, opening_m):
    b = Bench(WITH_FINGERS, grippers=True)
    b.grip = grip
    b.arm_and_drive()
    command = b.grippers[0].commands[-1]
    assert command.opening_m == pytest.approx(opening_m)
    assert 20.0 <= command.force_n <= 130.0
    assert command.speed_m_s == 0.15
    assert command.expires_ns - command.t_ns == COMMAND_TICKS * TICK_NS


@pytest.mark.parametrize("grip", [np.nan, np.inf])
def test_a_grip_that_is_no_number_leaves_the_fingers_alone(grip):
    b = Bench(WITH_FINGERS, grippers=True)
    b.grip = grip
    b.arm_and_drive()
    assert b.grippers[0].commands == []


def test_where_the_arm_is_limp_the_fingers_are_left_as_they_are():
    b = Bench(WITH_FINGERS, grippers=True)
    b.grip = 1.0
    b.arm_and_drive()
    b.stop = True
    b.tick()
    sent = len(b.grippers[0].commands)
    b.run(50)
    assert len(b.grippers[0].commands) == sent


def test_what_is_wanted_of_the_fingers_is_kept_within_their_range():
    b = Bench(WITH_FINGERS, grippers=True)
    b.press()
    b.spine.state = replace(b.spine.state, opening_m=(0.2,), grip_force_n=(1000.0,))
    b.tick()
    command = b.grippers[0].commands[-1]
    assert (command.opening_m, command.force_n) == (0.05, 130.0)
    b.spine.state = replace(b.spine.state, opening_m=(-0.2,), grip_force_n=(0.0,))
    b.tick()
    command = b.grippers[0].commands[-1]
    assert (command.opening_m, command.force_n) == (0.0, 20.0)


# ------------------------------------------------------------------------------ the worker


def test_the_worker_sees_every_command_and_gets_a_request_once():
    worker = IdealWorker()
    seen = []
    worker.observe = seen.append
    b = Bench(ONE, worker=worker)
    b.press()
    b.say("rehearse", goal=Goal(kind="home", arm="ur0"))
    b.run(30)
    assert len(worker.requests) == 1
    assert [c.t_ns for c in seen] == [r.seen.t_ns for r in b.records]
    assert all(r.commands is c for r, c in zip(b.records, seen, strict=True))


def test_a_cell_without_a_worker_or_tracker_runs():
    arm = IdealArm("ur0", HOME)
    devices = CellDevices(arms=(arm,), grippers=(None,), wrenches=(None,), tracker=None)
    spine = Spine(ONE, DEFAULT, make_world(()), devices, None, 0)
    spine.start(0)
    assert spine.cycle(TICK_NS, Heard()) is not None


def test_equal_inputs_give_equal_cells_bit_for_bit():
    a, b = Bench(ONE), Bench(ONE)
    for bench in (a, b):
        bench.arm_and_drive()
        for k in range(200):
            bench.hand = bench.hand.copy()
            bench.hand[0, 3] = 0.3 + 0.0004 * k
            bench.tick()
    assert a.commands().tobytes() == b.commands().tobytes()
    assert not np.array_equal(a.commands()[-1], HOME)
