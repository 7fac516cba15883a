"""Hands as runtimes report them when something is wrong, through the whole stack."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from brain.geometry import (
    Array,
    frozen,
    largest,
    pose_transform,
    quat_from_matrix,
    rotvec_to_matrix,
    transform,
)
from brain.kinematics import tool_pose
from brain.limits import DEFAULT, joint_speed
from brain.types import Mode, OperatorInput
from sim.build import SimCell
from tests.closed_loop.rig import Run, play
from tests.operator.hands import CHEAP, OddLink, drive, glide
from tests.values import replace
from vr.scripted import Script, ScriptedSeat

WAY_M = np.array([-0.05, 0.06, 0.04])
TURN = np.array([0.0, 0.1, 0.4])
START = transform((0.3, 0.2, 1.1), rotvec_to_matrix(np.array([0.4, -0.2, 3.0])))
Alter = Callable[[OperatorInput], OperatorInput | None]


def driven(alter: Alter | None = None) -> Run:
    """Drive there and back with an even hand, whose samples are altered."""

    def script(seat: ScriptedSeat, cell: SimCell) -> Script:
        seat.T_seat_hand = START
        if alter is not None:
            seat.link = OddLink(seat.link, alter)
        yield from drive(seat)
        yield from glide(seat, WAY_M, 0.8, TURN)
        yield from seat.wait(0.3)
        yield from glide(seat, -WAY_M / 2.0, 0.4)
        yield from seat.wait(0.5)
        return True

    return play(CHEAP, script)


@pytest.fixture(scope="module")
def plain() -> Run:
    return driven()


def tool_at_end(run: Run) -> Array:
    arm = run.cell.brief.cell.arms[0]
    return np.asarray(tool_pose(arm.model, run.sent()[-1])[:3, 3])


def fastest(run: Run) -> float:
    """Largest share of a joint's speed limit that was commanded."""
    allowed = joint_speed(DEFAULT, run.cell.brief.cell.arms[0].model.limits)
    dt_s = run.cell.brief.cell.tick_ns * 1e-9
    return float(np.nanmax(np.abs(np.diff(run.sent(), axis=0)) / dt_s / allowed))


def test_an_ordinary_hand_is_followed(plain):
    arm = plain.cell.brief.cell.arms[0]
    start = next(q for q in plain.sent() if not np.isnan(q[0]))
    moved = tool_at_end(plain) - tool_pose(arm.model, start)[:3, 3]
    off = np.linalg.norm(moved - WAY_M / 2.0)
    print(f"tool {1000 * off:.1f} mm from where the hand led it, limit 5")
    assert off <= 0.005


# --------------------------------------------------------------------------- equal stamps


class Twins:
    """Gives every second sample the time stamp of the one before."""

    def __init__(self) -> None:
        self._before: OperatorInput | None = None

    def __call__(self, sample: OperatorInput) -> OperatorInput:
        if self._before is None:
            self._before = sample
            return sample
        twin = replace(sample, t_ns=self._before.t_ns)
        self._before = None
        return twin


@pytest.fixture(scope="module")
def twins() -> Run:
    return driven(Twins())


def test_two_samples_with_one_time_stamp_reach_the_brain(twins):
    heard = [r.seen.operator for r in twins.records if r.seen.operator is not None]
    equal = sum(
        a.t_ns == b.t_ns and a.seq != b.seq for a, b in zip(heard[:-1], heard[1:], strict=True)
    )
    print(f"{equal} pairs with equal stamps of {len(heard)} samples, at least 50")
    assert equal >= 50


def test_samples_with_equal_time_stamps_are_driven_on(twins):
    assert twins.records[-1].state.mode.mode is Mode.TELEOP, twins.story()


def test_samples_with_equal_time_stamps_lead_the_arm_to_the_same_place(plain, twins):
    off = np.linalg.norm(tool_at_end(twins) - tool_at_end(plain))
    print(f"{1000 * off:.2f} mm from where single stamps lead, limit 2")
    assert off <= 0.002


def test_samples_with_equal_time_stamps_make_the_arm_no_faster_than_its_limits(twins):
    share = fastest(twins)
    print(f"{share:.3f} of the joint speed limits, limit 1")
    assert share <= 1.0


# ------------------------------------------------------------------------- quaternion signs


def from_quaternion(sign: Callable[[int], float]) -> Alter:
    """Poses made of quaternions, as a runtime reports them, of either sign."""

    def alter(sample: OperatorInput) -> OperatorInput:
        pose = np.asarray(sample.T_seat_hand)
        quat = quat_from_matrix(np.ascontiguousarray(pose[:3, :3]))
        made = pose_transform(pose[:3, 3], sign(sample.seq) * quat)
        return replace(sample, T_seat_hand=frozen(made))

    return alter


def test_quaternions_that_flip_their_sign_in_every_second_sample_change_no_command():
    steady = driven(from_quaternion(lambda seq: 1.0))
    flipping = driven(from_quaternion(lambda seq: 1.0 if seq % 2 else -1.0))
    assert np.array_equal(flipping.sent(), steady.sent(), equal_nan=True)


# ----------------------------------------------------------------------------------- jumps


@pytest.fixture(scope="module")
def jumped() -> Run:
    """From one frame to the next the hand is half a metre away, while it drives."""

    def script(seat: ScriptedSeat, cell: SimCell) -> Script:
        seat.T_seat_hand = START
        yield from drive(seat)
        yield from glide(seat, np.array([0.0, 0.09, 0.0]), 0.6)
        moved = np.array(seat.T_seat_hand)
        moved[:3, 3] += (0.3, 0.4, 0.0)
        seat.T_seat_hand = moved
        yield from seat.wait(1.0)
        return True

    return play(CHEAP, script)


def after_the_jump(run: Run) -> tuple[Array, float]:
    """Joints sent from the jump on, and the speed in rad/s at it."""
    records = run.records
    at = next(k for k, r in enumerate(records) if "jumped" in r.state.mode.reason)
    q, dt_s = run.sent(), run.cell.brief.cell.tick_ns * 1e-9
    return q[at:], largest(q[at - 1] - q[at - 2]) / dt_s


def test_a_hand_half_a_metre_away_in_one_frame_drops_the_clutch_and_says_so(jumped):
    print(jumped.story())
    assert "the hand jumped 50 cm in one frame" in jumped.reasons(Mode.HOLD)


def test_a_hand_half_a_metre_away_moves_the_arm_no_farther_than_it_takes_to_stop(jumped):
    q, speed = after_the_jump(jumped)
    went = largest(q[-1] - q[0])
    dt_s = jumped.cell.brief.cell.tick_ns * 1e-9
    limit = speed * dt_s + speed * speed / (2.0 * DEFAULT.stop_deceleration_rad_s2)
    print(f"went {went:.4f} rad at {speed:.3f} rad/s, limit {limit:.4f}")
    assert speed > 0.1
    assert went <= limit


def test_after_a_jump_the_arm_stays_though_the_dead_man_is_held(jumped):
    last = jumped.records[-1]
    q, _ = after_the_jump(jumped)
    assert last.state.operator.engaged
    assert np.array_equal(q[-1], q[-150]), "moving 0.4 s to 1 s after the jump"
