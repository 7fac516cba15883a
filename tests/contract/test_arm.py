"""What every arm promises (`hardware/api.py`)."""

from __future__ import annotations

import numpy as np
import pytest

from brain.errors import DeviceFault
from brain.limits import DEFAULT
from tests.contract.implementations import ARMS, arm, ideal_arm
from tests.plants import Driver

SPEED_RAD_S = 0.5
WAY = np.array((1.0, -0.6, 0.6, 0.6, 1.0, 1.0))
BRAKING_S = SPEED_RAD_S / DEFAULT.stop_deceleration_rad_s2
SETTLING_S = 0.05
"""What servos may need beyond the ideal ramp."""
STILL_RAD_S = 0.02
SAME_RAD = 0.001


@pytest.fixture(params=ARMS)
def driver(request) -> Driver:
    return arm(request.param)


@pytest.fixture
def running(driver) -> Driver:
    driver.arm.start()
    driver.hold(0.02)
    return driver


def cruise(driver: Driver, seconds: float = 0.4) -> None:
    """Bring an arm to SPEED_RAD_S along WAY and keep it there."""
    q, ramp_s = driver.arm.read().q_rad, SPEED_RAD_S / 5.0

    def way(t: float):
        travel = 0.5 * 5.0 * t * t if t < ramp_s else SPEED_RAD_S * (t - ramp_s / 2)
        return q + WAY * travel

    driver.stream(way, seconds)
    speed = np.abs(driver.states[-1].dq_rad_s).max()
    assert abs(speed - SPEED_RAD_S) < 0.05, f"cruises at {speed:.3f} rad/s"
    driver.states.clear()


def fastest(driver: Driver) -> float:
    return float(np.abs(driver.arm.read().dq_rad_s).max())


@pytest.mark.parametrize("name", [*ARMS, "ideal"])
def test_a_state_is_finite_of_the_right_shape_and_cannot_be_written_to(name):
    driver = ideal_arm() if name == "ideal" else arm(name)
    driver.arm.start()
    driver.hold(0.02)
    state, n = driver.arm.read(), len(driver.arm.spec.joint_names)
    arrays = [state.q_rad, state.dq_rad_s] + ([] if state.tau_nm is None else [state.tau_nm])
    assert all(a.shape == (n,) and np.all(np.isfinite(a)) for a in arrays)
    assert not any(a.flags.writeable for a in arrays)


@pytest.mark.parametrize("name", [*ARMS, "ideal"])
def test_times_and_numbers_of_states_rise(name):
    driver = ideal_arm() if name == "ideal" else arm(name)
    driver.arm.start()
    driver.hold(0.1)
    stamps = [(s.t_ns, s.seq) for s in driver.states]
    assert all(a[0] < b[0] and a[1] < b[1] for a, b in zip(stamps[:-1], stamps[1:], strict=True))


def test_before_the_start_commands_move_nothing(driver):
    q = driver.arm.read().q_rad
    driver.stream(lambda t: q + 0.5 * t * WAY, 0.2)
    off = np.abs(driver.arm.read().q_rad - q).max()
    print(f"moved {off:.6f} rad, limit {SAME_RAD}")
    assert off < SAME_RAD
    assert driver.arm.read().stopped


def test_it_follows_a_motion(running):
    cruise(running)
    wanted = running.arm.read().q_rad
    running.stream(lambda t: wanted, 0.3)
    off = np.abs(running.arm.read().q_rad - wanted).max()
    print(f"off {off:.6f} rad, limit 0.002")
    assert off < 0.002


def test_an_expired_command_moves_nothing(running):
    q = running.hold(0.02)
    running.send(q + 0.05, expires_ns=running.now())
    running.pause(0.1)
    off = np.abs(running.arm.read().q_rad - q).max()
    print(f"moved {off:.6f} rad, limit {SAME_RAD}")
    assert off < SAME_RAD


def test_a_command_not_newer_than_the_last_moves_nothing(running):
    q = running.hold(0.02)
    running.send(q + 0.05, seq=running.seq)
    running.pause(0.1)
    off = np.abs(running.arm.read().q_rad - q).max()
    print(f"moved {off:.6f} rad, limit {SAME_RAD}")
    assert off < SAME_RAD


def test_without_commands_it_stops_by_itself_within_its_watchdog(running):
    cruise(running)
    watchdog_s = running.arm.spec.watchdog_ns * 1e-9
    running.pause(watchdog_s + 2 * running.arm.spec.period_ns * 1e-9)
    assert running.arm.read().stopped
    running.pause(BRAKING_S + SETTLING_S)
    print(f"{fastest(running):.4f} rad/s, limit {STILL_RAD_S}")
    assert fastest(running) < STILL_RAD_S


def test_without_commands_it_does_not_run_on_farther_than_the_watchdog_and_the_brake_allow(running):
    cruise(running)
    q, watchdog_s = running.arm.read().q_rad, running.arm.spec.watchdog_ns * 1e-9
    running.pause(0.5)
    went = np.abs(running.arm.read().q_rad - q).max()
    limit = SPEED_RAD_S * (watchdog_s + BRAKING_S / 2) + 0.005
    print(f"went on {went:.4f} rad, limit {limit:.4f}")
    assert went < limit


def test_a_stop_brings_it_to_rest_within_its_deceleration(running):
    cruise(running)
    running.stop()
    running.pause(BRAKING_S + SETTLING_S)
    print(f"{fastest(running):.4f} rad/s after {BRAKING_S + SETTLING_S:.3f} s")
    assert fastest(running) < STILL_RAD_S
    assert running.arm.read().stopped


def test_a_stop_is_no_jerk(running):
    cruise(running)
    running.stop()
    running.pause(0.3)
    period_s = running.arm.spec.period_ns * 1e-9
    hardest = np.abs(np.diff(running.speeds(), axis=0)).max() / period_s
    limit = 2.0 * DEFAULT.stop_deceleration_rad_s2
    print(f"slows by {hardest:.1f} rad/s^2 at most, limit {limit}")
    assert hardest < limit


def test_after_a_stop_positions_move_nothing_until_it_is_started(running):
    cruise(running)
    running.stop()
    running.pause(0.3)
    q = running.arm.read().q_rad
    running.stream(lambda t: q + 0.5 * t * WAY, 0.2)
    off = np.abs(running.arm.read().q_rad - q).max()
    print(f"moved {off:.6f} rad, limit {SAME_RAD}")
    assert off < SAME_RAD
    assert running.arm.read().stopped


def test_a_start_clears_a_stop_and_holds_where_it_is(running):
    cruise(running)
    running.stop()
    running.pause(0.3)
    q = running.arm.read().q_rad
    running.arm.start()
    assert not running.arm.read().stopped
    running.hold(0.2)
    off = np.abs(running.arm.read().q_rad - q).max()
    print(f"moved {off:.6f} rad, limit {SAME_RAD}")
    assert off < SAME_RAD


def test_a_start_while_it_brakes_is_no_jerk(running):
    cruise(running)
    running.stop()
    running.pause(0.02)
    running.arm.start()
    running.pause(0.04)
    period_s = running.arm.spec.period_ns * 1e-9
    hardest = np.abs(np.diff(running.speeds(), axis=0)).max() / period_s
    limit = 2.0 * DEFAULT.stop_deceleration_rad_s2
    print(f"slows by {hardest:.1f} rad/s^2 at most, limit {limit}")
    assert hardest < limit


@pytest.mark.parametrize("bad", [np.nan, np.inf, "shape"])
def test_a_command_that_is_no_joints_is_refused_and_moves_nothing(running, bad):
    q = running.hold(0.02)
    wrong = q[:-1] + 0.05 if bad == "shape" else np.append(q[:-1] + 0.05, bad)
    with pytest.raises(DeviceFault):
        running.send(wrong)
    running.pause(0.1)
    off = np.abs(running.arm.read().q_rad - q).max()
    print(f"moved {off:.6f} rad, limit {SAME_RAD}")
    assert off < SAME_RAD


def test_starting_and_stopping_twice_is_the_same_as_once(driver):
    driver.arm.start()
    driver.arm.start()
    driver.hold(0.05)
    assert not driver.arm.read().stopped
    driver.arm.stop()
    driver.arm.stop()
    driver.pause(0.05)
    assert driver.arm.read().stopped


def test_closing_a_moving_arm_brakes_it(running):
    cruise(running)
    running.arm.stop()
    running.pause(BRAKING_S + SETTLING_S)
    print(f"{fastest(running):.4f} rad/s, limit {STILL_RAD_S}")
    assert fastest(running) < STILL_RAD_S
