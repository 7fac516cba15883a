"""The driver that waits for nothing: one thread, simulated time, bit for bit repeatable.

In each tick, in this order: the seat, the cycle, the log, the status, physics. Simulated time is an
int; with `pace` the wall clock is waited for now and then, which changes nothing but how long it
takes.
"""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Protocol

from hardware.api import Clock
from hardware.clock import SimClock
from hardware.receive import Heard
from hardware.spine import Spine, TickRecord
from hardware.status import Preview, SceneText, Status
from hardware.telemetry import Pace, fault_status, preview_of, status_of
from sim.plant import Plant

BEHIND_NS = 100_000_000
STATUS_TICKS = 10
"""A status each 20 ms at a tick of 2 ms: 50 times a second."""
COLLECTED_OBJECTS = 50_000
"""Python looks for cycles once in so many new objects: a tick makes hundreds, and leaves none."""


class Seat(Protocol):
    """The operator's end."""

    def step(self) -> None:
        """Do what is due now."""
        ...


class CellEnd(Protocol):
    """The cell's end of a link, as `hardware.link.CellLink`."""

    def hear(self, now_ns: int) -> Heard:
        """Return what was said since the last call."""
        ...

    def send_status(self, status: Status) -> None:
        """Tell the seat."""
        ...

    def offer(self, thing: SceneText | Preview, now_ns: int) -> None:
        """Keep something large for seats that ask."""
        ...


class Lockstep:
    """Runs a simulated cell tick by tick."""

    def __init__(
        self,
        plant: Plant,
        spine: Spine,
        link: CellEnd,
        clock: SimClock,
        seat: Seat | None,
    ) -> None:
        """Put the parts together; `clock` is what seat and link read."""
        self.plant = plant
        self.spine = spine
        self.pace = Pace()
        self._link = link
        self._clock = clock
        self._seat = seat
        self._offered = ""
        self.observers: list[Callable[[TickRecord], None]] = []
        self.fault_observers: list[Callable[[int, Exception], None]] = []

    def run(self, finished: Callable[[], bool], limit_ns: int, wall: Clock | None = None) -> None:
        """Run until `finished` says so or simulated time is up.

        At the wall's pace if it is given.
        """
        usual = gc.get_threshold()
        gc.freeze()  # collections do not look again and again at all that was loaded before
        gc.set_threshold(COLLECTED_OBJECTS, *usual[1:])
        try:
            self._run(finished, limit_ns, wall)
        finally:
            gc.set_threshold(*usual)
            gc.unfreeze()

    def _run(self, finished: Callable[[], bool], limit_ns: int, wall: Clock | None) -> None:
        spine, tick_ns = self.spine, self.spine.cell.tick_ns
        t_ns = self.plant.world.t_ns
        spine.start(t_ns)
        ahead_ns = 0 if wall is None else wall.now_ns() - t_ns
        while not finished() and t_ns < limit_ns:
            self._clock.wait_until_ns(t_ns)
            if self._seat is not None:
                self._seat.step()
            record = spine.cycle(t_ns, self._link.hear(t_ns))
            self.pace.ticks += 1
            if record is not None:
                self._tell(record)
            else:
                self._tell_fault(t_ns)
            t_ns += tick_ns
            self.plant.world.step_to(t_ns)
            if wall is not None:
                behind_ns = wall.now_ns() - t_ns - ahead_ns
                if behind_ns > BEHIND_NS:  # a pause is not caught up with in a rush
                    ahead_ns += behind_ns
                wall.wait_until_ns(t_ns + ahead_ns)
        spine.stop(t_ns)

    def _tell_fault(self, t_ns: int) -> None:
        assert self.spine.fault is not None
        for observer in self.fault_observers:
            observer(t_ns, self.spine.fault)
        if self.pace.ticks % STATUS_TICKS == 0:
            self._link.send_status(fault_status(self.spine, t_ns, self.pace))

    def _tell(self, record: TickRecord) -> None:
        for observer in self.observers:
            observer(record)
        if self.pace.ticks % STATUS_TICKS:
            return
        self._link.send_status(status_of(self.spine, record, self.pace))
        store = record.state.store
        if store and store[-1].rehearsal.digest != self._offered:
            self._offered = store[-1].rehearsal.digest
            preview = preview_of(self.spine.cell, store[-1].rehearsal)
            self._link.offer(preview, record.seen.t_ns)
