"""What moves by itself and is not seen any more holds the arms: it may be anywhere."""

from __future__ import annotations

import pytest

from brain.types import NS_PER_S, Mode
from tests.closed_loop.rig import alone, play
from vr.scripted import demo


@pytest.mark.parametrize("fault", ["tracker.freeze@3s", "tracker.drop=100%@3s", "tracker.nan@3s"])
def test_a_commit_is_held_when_the_trolley_is_not_seen_any_more(fault):
    run = play("moving_obstacle", alone(demo("pick_place")), faults=(fault,))
    held = [r for r in run.records if "trolley, which moves, was last seen" in r.state.mode.reason]
    first_ns = held[0].seen.t_ns
    print(f"held {(first_ns - 3 * NS_PER_S) / 1e6:.0f} ms after the last sight, limit 110")
    assert (held[0].state.mode.mode, first_ns <= 3_110_000_000) == (Mode.HOLD, True)
    assert run.outcome.min_clearance_mm > 0.0
    after = {r.state.mode.mode for r in run.records if r.seen.t_ns > first_ns}
    assert not after & {Mode.COMMIT, Mode.REHEARSING}
