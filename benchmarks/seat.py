"""A scripted operator in a process of its own who works without a pause."""

from __future__ import annotations

from collections import Counter
from itertools import cycle

from brain.playback import DONE
from brain.types import Goal, Mode
from hardware.clock import WallClock
from hardware.process import Station
from hardware.zenoh_link import open_seat
from vr.scripted import COMMIT_S, REHEARSE_S, Script, ScriptedSeat, arm_up

STEP_S = 0.002
SOON_S = 3.0


def seat_main(
    station: Station, cell: str, endpoint: str, arm: str, goals: tuple[Goal, ...]
) -> dict[str, int] | None:
    """Rehearse and commit the goals in turn until told to stop; return what was counted."""
    seat = ScriptedSeat(open_seat(cell, endpoint), WallClock(), arm)
    counts = Counter(rehearsed=0, committed=0, done=0, stopped=0)
    if station.ready() is None:
        return None
    seat.play(lambda seat: _work(seat, goals, counts))
    while not station.pause(STEP_S):
        seat.step()
    seat.link.close()
    return dict(counts)


def _work(seat: ScriptedSeat, goals: tuple[Goal, ...], counts: Counter[str]) -> Script:
    for goal in cycle(goals):
        if not seat.is_in(Mode.HOLD):
            counts["stopped"] += seat.is_in(Mode.STOPPED, Mode.FAULT)
            yield from arm_up(seat)
        seat.act("rehearse", goal=goal)
        yield from seat.until(lambda s: s.mode is Mode.REHEARSING, SOON_S)
        yield from seat.until(lambda s: s.mode is not Mode.REHEARSING, REHEARSE_S)
        if not seat.is_in(Mode.PREVIEW) or seat.digest is None:
            counts[f"refused: {seat.reason}"] += 1
            continue
        counts["rehearsed"] += 1
        seat.act("commit", digest=seat.digest)
        counts["committed"] += yield from seat.until(lambda s: s.mode is Mode.COMMIT, SOON_S)
        yield from seat.until(lambda s: s.mode is not Mode.COMMIT, COMMIT_S)
        counts["done" if seat.reason == DONE else f"held: {seat.reason}"] += 1
    return True
