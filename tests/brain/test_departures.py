"""What a commit does when world, parts, devices or the gate are not as rehearsed."""

import numpy as np
import pytest

from brain.geometry import rotvec_to_matrix, transform
from brain.playback import DEPART_FORCE_TICKS, DONE
from brain.rehearsal import GripEvent
from brain.types import Action, Mode
from brain.world import make_world
from tests.brain.cells import HOME
from tests.brain.committing import (
    MADE,
    ONE,
    ROWS,
    TWO,
    beside_the_way,
    closing,
    committed,
    depart,
    release,
    tool_at,
    with_fingers,
)
from tests.brain.streams import DT, SPUN, off_the_way, rehearsal, stream, timed
from tests.ideal import Bench, box
from tests.values import replace


def motion_of(commands: np.ndarray) -> tuple[float, float]:
    """Largest speed and acceleration of commanded joints, in rad/s and rad/s^2."""
    dq = np.diff(commands, axis=0) / DT
    return float(np.max(np.abs(dq))), float(np.max(np.abs(np.diff(dq, axis=0)))) / DT


# ------------------------------------------------------------------------- departures


def test_fingers_follow_the_stream_and_stay_as_they_are_after_it():
    b = with_fingers()
    made = closing(b)
    committed(made, len(ROWS) + 5, b)
    assert b.reason == DONE, b.reason
    sent = [c.opening_m for c in b.grippers[0].commands]
    assert sent[: len(ROWS)] == made.stream.opening_m[:, 0].tolist()
    assert set(sent[len(ROWS) :]) == {0.03}


@pytest.mark.parametrize(("off_m", "held"), [(0.0029, False), (-0.0031, True), (np.nan, True)])
def test_fingers_elsewhere_than_rehearsed_for_a_tenth_of_a_second_hold(off_m, held):
    b = with_fingers()
    committed(closing(b), 400, b)
    b.grippers[0].off_m = off_m
    b.run(49)
    assert b.mode is Mode.COMMIT
    b.run(3)
    assert (b.mode is Mode.HOLD) == held
    assert not held or "is the part where it should be?" in b.reason


def test_fingers_that_are_late_for_a_moment_do_not_hold():
    b = with_fingers()
    committed(closing(b), 400, b)
    for off_m in (0.01, 0.0, 0.01):
        b.grippers[0].off_m = off_m
        b.run(45)
    assert b.mode is Mode.COMMIT, b.reason


@pytest.mark.parametrize(("force_n", "mode"), [(11.9, Mode.COMMIT), (12.1, Mode.HOLD)])
def test_a_force_that_was_not_rehearsed_holds(force_n, mode):
    b = with_fingers()
    committed(closing(b), 400, b)
    b.wrenches[0].force_n = np.array([0.0, 0.6, -0.8]) * force_n
    b.run(DEPART_FORCE_TICKS)
    assert b.mode is Mode.COMMIT
    b.tick()
    assert b.mode is mode, b.reason
    assert abs(b.spine.state.departure.force_n - force_n) < 1e-9
    assert mode is Mode.COMMIT or b.reason.startswith("force departs 12.1 N")


def test_joints_that_depart_are_reported_with_value_and_limit():
    b = committed(ticks=400)
    depart(b)
    assert b.reason == "joints depart 0.0300 rad from the rehearsal, 0.02 allowed"
    assert abs(b.spine.state.departure.joint_rad - 0.03) < 1e-9


# ------------------------------------------------------------------------ the world changes


def watching(T_world_cart: np.ndarray, made=MADE) -> Bench:
    """A commit under way, 400 rows on, with a tracked cart that was far away at the start."""
    far = box("cart", (0.04, 0.04, 0.04), (1.8, 1.8, 0.3), "moving")
    b = committed(made, 400, Bench(ONE, world=make_world((far,))))
    b.tracker.poses["cart"] = T_world_cart
    return b


def test_an_object_that_moves_into_the_way_ahead_holds_the_commit_on_its_way():
    b = watching(tool_at(1300))
    b.tick()
    assert b.mode is Mode.HOLD
    assert b.reason.startswith("cart is in the way of ur0:")
    b.run(150)
    sent = b.commands()[-200:]
    assert off_the_way(sent, ROWS) < 1e-9
    assert np.array_equal(sent[-1], sent[-50])


def test_an_object_that_moves_too_near_for_the_speed_holds_the_commit_on_its_way():
    b = watching(beside_the_way(0.02))
    b.run(60)
    assert b.mode is Mode.HOLD
    assert b.reason == "something is 20 mm from ur0, too near for its speed"
    b.run(150)
    sent = b.commands()[-200:]
    assert off_the_way(sent, ROWS) < 1e-9
    assert np.array_equal(sent[-1], sent[-50])
    assert motion_of(sent)[1] <= 10.0 * (1 + 1e-6)


def test_an_object_that_moves_into_the_way_behind_lets_the_commit_go_on():
    b = committed(
        ticks=1100,
        bench=Bench(ONE, world=make_world((box("cart", (0.04,) * 3, (1.8, 1.8, 0.3), "moving"),))),
    )
    b.tracker.poses["cart"] = tool_at(50)
    b.run(len(ROWS) - 1100 + 5)
    assert b.reason == DONE, b.reason


def test_a_trackers_jitter_below_a_millimetre_is_no_change():
    b = watching(transform((1.8, 1.8, 0.3)))
    b.tick()
    version = b.spine.state.world.version
    rng = np.random.default_rng(5)
    for _ in range(50):
        way = rng.normal(size=3)
        turn = rotvec_to_matrix(0.0099 * way / np.linalg.norm(way))
        b.tracker.poses["cart"] = transform(
            (1.8, 1.8, 0.3) + 0.0009 * way / np.linalg.norm(way), turn
        )
        b.tick()
    assert b.spine.state.world.version == version
    b.tracker.poses["cart"] = transform((1.8, 1.8011, 0.3))
    b.tick()
    assert b.spine.state.world.version == version + 1


def test_a_turn_of_a_tracked_object_is_a_change():
    b = watching(transform((1.8, 1.8, 0.3), rotvec_to_matrix(np.array([0.0, 0.0, 0.011]))))
    version = b.spine.state.world.version
    b.tick()
    assert b.spine.state.world.version == version + 1


def test_slow_drift_is_followed_within_a_millimetre():
    b = watching(transform((1.8, 1.8, 0.3)))
    for k in range(200):
        b.tracker.poses["cart"] = transform((1.8, 1.8, 0.3 + 1e-4 * k))
        b.tick()
        known = b.spine.state.world.object("cart").T_world_object[2, 3]
        assert abs(known - (0.3 + 1e-4 * k)) <= 0.0011


def test_a_part_in_the_hand_is_where_the_hand_is_whatever_a_tracker_says():
    part = box("part", (0.02, 0.02, 0.02), (1.8, 1.8, 0.3), "part")
    event = GripEvent(row=10, arm="ur0", name="part", T_tool_object=np.eye(4), T_world_object=None)
    made = rehearsal(ONE, stream(ROWS, events=[event]))
    b = committed(made, 400, Bench(ONE, world=make_world((part,))))
    version = b.spine.state.world.version
    b.tracker.poses["part"] = tool_at(400)
    b.run(5)
    assert b.spine.state.world.version == version
    assert b.mode is Mode.COMMIT


def test_a_part_is_believed_held_and_put_down_from_its_rows_on():
    part = box("part", (0.02, 0.02, 0.02), (1.8, 1.8, 0.3), "part")
    put = transform((0.5, 0.5, 0.1))
    events = [
        GripEvent(row=10, arm="ur0", name="part", T_tool_object=np.eye(4), T_world_object=None),
        GripEvent(row=40, arm="ur0", name="part", T_tool_object=None, T_world_object=put),
    ]
    b = committed(
        rehearsal(ONE, stream(ROWS, events=events)), 9, Bench(ONE, world=make_world((part,)))
    )
    assert b.spine.state.world.held == ()
    b.tick()
    assert [h.name for h in b.spine.state.world.held] == ["part"]
    b.run(30)
    assert b.spine.state.world.held == ()
    assert np.array_equal(b.spine.state.world.object("part").T_world_object, put)
    assert b.spine.state.world.version == 2  # each believed once


def test_a_hold_before_a_grip_leaves_it_out():
    part = box("part", (0.02, 0.02, 0.02), (1.8, 1.8, 0.3), "part")
    event = GripEvent(row=800, arm="ur0", name="part", T_tool_object=np.eye(4), T_world_object=None)
    made = rehearsal(ONE, stream(ROWS, events=[event]))
    b = committed(made, 700, Bench(ONE, world=make_world((part,))))
    release(b)
    b.run(300)
    assert b.spine.state.world.held == ()


# -------------------------------------------------------------------- the gate's own answers


def test_a_gate_that_stops_one_arm_stops_the_cell_though_another_is_only_held():
    other = timed(TWO.arms[1].model, HOME, SPUN)
    both = np.hstack([other, other])
    b = committed(rehearsal(TWO, stream(both, arms=2)), 100, Bench(TWO))
    record = b.records[-1]
    answers = (
        replace(record.passed[0].answer, action=Action.HOLD, rule="clearance m"),
        replace(record.passed[1].answer, action=Action.STOP, rule="force N"),
    )
    b.spine.answers = answers
    b.tick()
    assert b.mode is Mode.STOPPED
    assert "ur1: stop by force N" in b.reason


def test_a_gate_that_holds_while_the_arm_slows_on_its_way_ends_the_playing():
    b = committed(ticks=400)
    b.engaged = False
    b.run(6)
    assert b.spine.state.playback is not None
    b.spine.answers = (replace(b.records[-1].passed[0].answer, action=Action.HOLD),)
    b.tick()
    assert b.spine.state.playback is None
    assert (b.mode, b.reason) == (Mode.HOLD, "dead-man released")


def test_too_much_force_stops_with_its_figures():
    b = with_fingers()
    committed(closing(b), 400, b)
    b.wrenches[0].force_n = np.array([0.0, 0.0, 31.0])
    b.run(2)
    assert b.mode is Mode.STOPPED
    assert b.reason == "ur0: stop by force N, 31 against 30"


@pytest.mark.parametrize("how", ["frozen", "gone"])
def test_a_wrist_sensor_that_falls_silent_stops(how):
    b = with_fingers()
    committed(closing(b), 400, b)
    if how == "frozen":
        b.wrenches[0].frozen_ns = b.t_ns
        b.run(22)
    else:
        b.wrenches[0].read = lambda: None
        b.run(2)
    assert b.mode is Mode.STOPPED
    assert "force N, nan" in b.reason


def test_an_arm_that_falls_silent_in_a_commit_stops_with_that_reason():
    b = committed(ticks=400)
    b.arms[0].silent = True
    b.run(2)
    assert (b.mode, b.reason) == (Mode.STOPPED, "ur0: stop by no state, 0 against 0")
