"""What every gripper promises (`hardware/api.py`)."""

from __future__ import annotations

import numpy as np
import pytest

from brain.errors import DeviceFault
from tests.contract.implementations import GRIPPERS, PART_WIDTH_M, free_gripper, gripper
from tests.plants import grip

CLOSE_ENOUGH_M = 0.001


@pytest.fixture(params=GRIPPERS)
def free(request):
    bench = free_gripper(request.param)
    bench.device.start()
    bench.wait(bench.step_ns)
    return bench


@pytest.fixture(params=GRIPPERS)
def over_part(request):
    bench = gripper(request.param)
    bench.device.start()
    bench.wait(bench.step_ns)
    return bench


def tell(bench, opening_m: float, **over) -> None:
    bench.device.write(grip(bench.now_ns, opening_m, **over))


def opening(bench) -> float:
    return bench.device.read().opening_m


def close_on_part(bench) -> list:
    """Close without end; by far enough that it must be at the part."""
    tell(bench, 0.0)
    seen = bench.watch(1.0)
    assert seen[-1].holding, f"holds nothing at {seen[-1].opening_m:.4f} m"
    return seen


def test_a_state_is_finite_and_its_times_and_numbers_rise(free):
    seen = free.watch(0.05)
    assert all(np.isfinite(s.opening_m) for s in seen)
    stamps = [(s.t_ns, s.seq) for s in seen]
    assert all(a[0] < b[0] and a[1] < b[1] for a, b in zip(stamps[:-1], stamps[1:], strict=True))


@pytest.mark.parametrize("share", [0.0, 0.3, 0.8, 1.0])
def test_it_reaches_an_opening(free, share):
    wanted = share * free.device.spec.opening_max_m
    tell(free, wanted)
    free.watch(1.3)
    print(f"at {opening(free):.5f} m, wanted {wanted:.5f}, within {CLOSE_ENOUGH_M}")
    assert abs(opening(free) - wanted) < CLOSE_ENOUGH_M


def test_it_moves_no_faster_than_it_is_told(free):
    tell(free, 0.0, speed_m_s=0.05)
    openings = np.array([s.opening_m for s in free.watch(0.3)])
    fastest = np.abs(np.diff(openings)).max() / (free.step_ns * 1e-9)
    print(f"{fastest:.4f} m/s, told 0.05, limit 0.06")
    assert fastest < 0.06


def test_it_never_says_that_it_holds_while_nothing_is_there(free):
    for wanted in (0.0, free.device.spec.opening_max_m, 0.5 * free.device.spec.opening_max_m):
        tell(free, wanted)
        seen = [free.device.read(), *free.watch(1.0)]
        assert not any(s.holding for s in seen), f"says so on its way to {wanted:.3f} m"


def test_it_says_that_it_holds_what_stops_the_fingers(over_part):
    seen = close_on_part(over_part)
    width = seen[-1].opening_m
    print(f"held at {width:.4f} m, the part is {PART_WIDTH_M} m wide, within {CLOSE_ENOUGH_M}")
    assert abs(width - PART_WIDTH_M) < CLOSE_ENOUGH_M


def test_it_says_so_only_once_the_fingers_are_at_the_part(over_part):
    seen = close_on_part(over_part)
    first = next(s for s in seen if s.holding)
    print(f"first at {first.opening_m:.4f} m, the part is {PART_WIDTH_M} m wide")
    assert abs(first.opening_m - PART_WIDTH_M) < CLOSE_ENOUGH_M


def test_it_presses_no_harder_than_it_is_told_if_it_knows(over_part):
    tell(over_part, 0.0, force_n=30.0)
    assert all(s.force_n is None or s.force_n < 33.0 for s in over_part.watch(0.8))


def test_blocked_fingers_still_take_a_command(over_part):
    close_on_part(over_part)
    tell(over_part, over_part.device.spec.opening_max_m)
    over_part.watch(1.0)
    assert abs(opening(over_part) - over_part.device.spec.opening_max_m) < CLOSE_ENOUGH_M
    assert not over_part.device.read().holding


def test_what_is_held_stays_held_through_a_stop_and_a_start(over_part):
    close_on_part(over_part)
    over_part.device.stop()
    assert all(s.holding for s in over_part.watch(0.3))
    over_part.device.start()
    assert all(s.holding for s in over_part.watch(0.3))


def test_a_stop_leaves_moving_fingers_where_they_are(free):
    tell(free, 0.0, speed_m_s=0.1)
    free.watch(0.1)
    at = opening(free)
    free.device.stop()
    free.watch(0.5)
    went = abs(opening(free) - at)
    print(f"went on {went:.5f} m, limit 0.003")
    assert went < 0.003


def test_after_a_stop_commands_move_nothing(free):
    at = opening(free)
    free.device.stop()
    tell(free, 0.0)
    free.watch(0.3)
    assert abs(opening(free) - at) < CLOSE_ENOUGH_M


@pytest.mark.parametrize("name", GRIPPERS)
def test_before_the_start_commands_move_nothing(name):
    bench = free_gripper(name)
    at = bench.device.spec.opening_max_m
    tell(bench, 0.0)
    bench.watch(0.3)
    assert abs(opening(bench) - at) < CLOSE_ENOUGH_M


@pytest.mark.parametrize("late", ["expired", "not newer"])
def test_a_command_too_late_moves_nothing(free, late):
    at = free.device.spec.opening_max_m
    tell(free, at, seq=10)
    tell(free, 0.0, **({"expires_ns": free.now_ns} if late == "expired" else {"seq": 10}))
    free.watch(0.3)
    assert abs(opening(free) - at) < CLOSE_ENOUGH_M


@pytest.mark.parametrize("figure", ["opening_m", "force_n", "speed_m_s"])
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_command_that_is_not_finite_is_refused_and_moves_nothing(free, figure, bad):
    at = opening(free)
    with pytest.raises(DeviceFault):
        free.device.write(grip(free.now_ns, **({"opening_m": 0.0} | {figure: bad})))
    free.watch(0.2)
    assert abs(opening(free) - at) < CLOSE_ENOUGH_M


def test_it_follows_a_command_beyond_its_range_as_far_as_it_can(free):
    tell(free, -1.0, force_n=1e6, speed_m_s=1e6)
    openings = [s.opening_m for s in free.watch(1.0)]
    fastest = np.abs(np.diff(openings)).max() / (free.step_ns * 1e-9)
    print(f"{fastest:.3f} m/s, can do {free.device.spec.speed_max_m_s}")
    assert fastest < 1.2 * free.device.spec.speed_max_m_s
    assert abs(openings[-1]) < CLOSE_ENOUGH_M


def test_starting_and_stopping_twice_is_the_same_as_once(free):
    free.device.start()
    tell(free, 0.0)
    free.watch(1.0)
    assert abs(opening(free)) < CLOSE_ENOUGH_M
    free.device.stop()
    free.device.stop()
    assert free.device.read() is not None
