"""The recorded operator: what a hand did and asked for is kept in a file, and done again from it.

A trace is played through the very link that a person uses. In lockstep the same scene and seed give
the same run as when it was recorded, bit for bit. A commit names the rehearsal that was looked at
then; where another one is shown now the cell refuses it and says so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TypeAlias

from brain.errors import ConfigError
from brain.playback import DONE
from brain.record import replace
from brain.types import Intent, Mode, OperatorInput
from hardware.api import Clock
from hardware.scene import ResolvedScene
from hardware.seat_link import SeatLink
from hardware.status import Status
from hardware.trace import TraceEvent, TraceWriter, read_trace
from vr.scripted import ScriptedSeat, demo_seat

Seat: TypeAlias = "ScriptedSeat | TracedSeat | RecordedSeat"
SeatMaker: TypeAlias = Callable[[SeatLink, Clock, str], Seat]
"""(the seat's end of a line, its clock, the first arm) -> who sits there."""


def operator(
    resolved: ResolvedScene, task: str, trace: Path | None = None, record: Path | None = None
) -> SeatMaker:
    """Choose who does a task: a script, or the operator of a trace; and where to record it.

    Raises:
        ConfigError: the trace is not one, or was recorded for another cell or robot.
    """
    maker: SeatMaker = partial(demo_seat, task)
    if trace is not None:
        events = read_trace(trace, resolved.scene.cell, _robots(resolved))
        if not events:
            raise ConfigError(f"trace {trace}: nothing happens in it")
        maker = partial(TracedSeat, events)
    return maker if record is None else partial(RecordedSeat, maker, record, resolved)


@contextmanager
def recording(link: SeatLink, path: Path | None, resolved: ResolvedScene) -> Iterator[None]:
    """Record what is said at a seat's end of a link, if a path is given.

    Raises:
        ConfigError: the file exists or cannot be written.
    """
    if path is None:
        yield
        return
    recorder = _Recorder(link, path, resolved)
    try:
        yield
    finally:
        recorder.close()


class TracedSeat:
    """Does again what a trace says, each thing in the first step at or after its time.

    `done` is true at the end when the cell then neither has a fault nor was stopped, and the last
    commit, if any, went to its end; `why` is the reason of that, or of the first refusal.
    """

    def __init__(
        self, events: tuple[TraceEvent, ...], link: SeatLink, clock: Clock, arm: str
    ) -> None:
        """Sit down at the seat's end of a link; the trace's time begins with the first step."""
        self.done: bool | None = None
        self.why = ""
        self._events = events
        self._link = link
        self._clock = clock
        self._played = 0
        self._start_ns: int | None = None
        self._mode = Mode.DISARMED
        self._completed = True

    def step(self) -> None:
        """Do what is due now."""
        now_ns = self._clock.now_ns()
        if self._start_ns is None:
            self._start_ns = now_ns
        if self.done is not None or self._due_ns > now_ns:
            return
        self._hear(self._link.poll(now_ns).status)
        while self.done is None and self._due_ns <= now_ns:
            self._say(_shifted(self._events[self._played], self._start_ns))
            self._played += 1
            if self._played == len(self._events):
                self.why = self.why or "the trace came to its end"
                self.done = self._completed and self._mode not in (Mode.STOPPED, Mode.FAULT)

    @property
    def _due_ns(self) -> int:
        return (self._start_ns or 0) + self._events[self._played].t_ns

    def _say(self, event: TraceEvent) -> None:
        if isinstance(event, OperatorInput):
            self._link.send(event)
        elif isinstance(event, Intent):
            self._link.act(event)
        else:
            self._link.stop(event.t_ns)

    def _hear(self, status: Status | None) -> None:
        if status is None:
            return
        if self._mode is Mode.COMMIT and status.mode is not Mode.COMMIT:
            self._completed = status.mode is Mode.HOLD and status.reason == DONE
            self.why = status.reason
        elif status.mode in (Mode.STOPPED, Mode.FAULT):
            self.why = status.reason
        self.why = self.why or status.note
        self._mode = status.mode


class _Recorder:
    """Writes down what is said at a seat's end of a link, from the first word on."""

    def __init__(self, link: SeatLink, path: Path, resolved: ResolvedScene) -> None:
        self._writer = TraceWriter(path, resolved.scene.cell, _robots(resolved))
        self._link = link
        self._start_ns: int | None = None
        link.tap = self._write

    def _write(self, event: TraceEvent) -> None:
        if self._start_ns is None:
            self._start_ns = event.t_ns
        self._writer.add(_shifted(event, -self._start_ns))

    def close(self) -> None:
        self._link.tap = None
        self._writer.close()


class RecordedSeat:
    """A seat that is recorded until it is done."""

    def __init__(
        self,
        maker: SeatMaker,
        path: Path,
        resolved: ResolvedScene,
        link: SeatLink,
        clock: Clock,
        arm: str,
    ) -> None:
        """Sit down whom `maker` makes."""
        self._recorder = _Recorder(link, path, resolved)
        self._seat = maker(link, clock, arm)
        self.done: bool | None = None
        self.why = ""

    def step(self) -> None:
        """Do what is due now."""
        self._seat.step()
        if self.done is None and self._seat.done is not None:
            self._recorder.close()
        self.done, self.why = self._seat.done, self._seat.why


def _shifted(event: TraceEvent, by_ns: int) -> TraceEvent:
    if isinstance(event, OperatorInput):
        return replace(event, t_ns=event.t_ns + by_ns, expires_ns=event.expires_ns + by_ns)
    return replace(event, t_ns=event.t_ns + by_ns)


def _robots(resolved: ResolvedScene) -> dict[str, str]:
    return {arm.name: arm.robot for arm in resolved.scene.arms}
