from __future__ import annotations

from brain.types import NS_PER_MS
from hardware.api import Clock
from hardware.clock import SimClock, WallClock, wait_for


def test_both_clocks_fulfil_the_protocol():
    assert isinstance(WallClock(), Clock)
    assert isinstance(SimClock(), Clock)


def test_the_wall_clock_never_returns_before_the_time():
    clock = WallClock()
    early_ns = []
    for wait_ns in (0, 50_000, NS_PER_MS, 3 * NS_PER_MS):
        due_ns = clock.now_ns() + wait_ns
        clock.wait_until_ns(due_ns)
        early_ns.append(due_ns - clock.now_ns())
    assert max(early_ns) <= 0, f"returned {max(early_ns)} ns early, limit 0"


def test_waiting_on_the_simulated_clock_moves_it_to_the_time():
    clock = SimClock(5)
    clock.wait_until_ns(12)
    assert clock.now_ns() == 12


def test_the_simulated_clock_never_goes_back():
    clock = SimClock(5)
    clock.wait_until_ns(3)
    assert clock.now_ns() == 5


def test_waiting_for_something_that_never_comes_ends_at_the_time_limit():
    clock = SimClock()
    assert not wait_for(clock, lambda: False, 10 * NS_PER_MS)
    assert clock.now_ns() == 10 * NS_PER_MS


def test_waiting_for_something_ends_when_it_holds():
    clock = SimClock()
    assert wait_for(clock, lambda: clock.now_ns() >= 4 * NS_PER_MS, 10 * NS_PER_MS)
    assert clock.now_ns() == 4 * NS_PER_MS
