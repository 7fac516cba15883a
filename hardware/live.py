"""The driver that keeps the wall's time: one thread that calls the cycle when it is due.

A tick is stamped with its due time, a multiple of the tick since the start of the run. One that
starts over `LATE_NS` after that is late; one whose whole period has passed is skipped. Both are
counted, nothing is done twice. What costs time is elsewhere: planning, cameras, the disk and the
seat are processes of their own.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any, Protocol

import numpy as np

from brain.errors import LinkError
from brain.limits import profile
from brain.record import replace
from hardware.api import Clock
from hardware.clock import SimClock, WallClock
from hardware.journal import StreamJournal
from hardware.link import CellLink
from hardware.process import Main, Station
from hardware.receive import Heard
from hardware.record import fault_json
from hardware.remote import DeviceSpecs, SlotNames, remote_devices
from hardware.scene import cell_model, parse_resolved, start_q_rad, world_of
from hardware.spine import Spine, TickRecord
from hardware.status import SceneText
from hardware.streams import Outbox
from hardware.telemetry import Pace, fault_status, preview_of, status_of
from hardware.warm import warm
from hardware.worker import ProcessWorker
from hardware.zenoh_link import Tls, open_cell

LATE_NS = 500_000
STATUS_TICKS = 10
"""A status each 20 ms at a tick of 2 ms: 50 times a second."""
FAULT, LINK, PACE = "/fault", "/link", "/pace"
PACE_NS = 1_000_000_000


class RunClock:
    """The wall's time since the start of a run: the same in all its processes."""

    def __init__(self, zero_ns: int) -> None:
        """`zero_ns` is the start by the machine's monotonic clock."""
        self._wall = WallClock()
        self._zero_ns = zero_ns

    def now_ns(self) -> int:
        """Return the time now."""
        return self._wall.now_ns() - self._zero_ns

    def wait_until_ns(self, t_ns: int) -> None:
        """Return at t_ns, or at once when it has passed."""
        self._wall.wait_until_ns(t_ns + self._zero_ns)


class Histogram:
    """Counts of durations in bins of 1 us; what is longer than all bins counts in the last."""

    BINS = 100_000

    def __init__(self) -> None:
        """Start empty."""
        self._counts = [0] * self.BINS
        self.max_ns = 0

    def add(self, ns: int) -> None:
        """Count one duration."""
        self._counts[min(max(ns, 0) // 1000, self.BINS - 1)] += 1
        if ns > self.max_ns:
            self.max_ns = ns

    def percentiles_us(self, *which: float) -> tuple[float, ...]:
        """Return percentiles, each as the upper edge of its bin; 0 when nothing was counted."""
        total = np.cumsum(self._counts)
        if total[-1] == 0:
            return (0.0,) * len(which)
        return tuple(
            float(np.searchsorted(total, np.ceil(p / 100.0 * total[-1]))) + 1.0 for p in which
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopReport:
    """How a control loop kept its time.

    `late` and `skipped` count ticks; `late_*` are percentiles of the start of a tick behind its due
    time, `busy_*` of how long it took, both with status and log; `dropped` messages never reached
    the log.
    """

    ticks: int
    late: int
    skipped: int
    late_p50_us: float
    late_p99_us: float
    late_max_us: float
    busy_p50_us: float
    busy_p99_us: float
    busy_max_us: float
    dropped: int


class Journal(Protocol):
    """Where a loop writes down what happens."""

    def tick(self, record: TickRecord) -> None:
        """Keep a tick."""
        ...

    def event(self, channel: str, t_ns: int, data: Mapping[str, Any]) -> None:
        """Keep anything else."""
        ...


class Loop:
    """Calls a spine's cycle when it is due and tells seat and journal of it."""

    def __init__(
        self, spine: Spine, link: CellLink, time: SimClock, journal: Journal | None
    ) -> None:
        """Put the parts together; `time` is the time of the cycle, which the devices read."""
        self.pace = Pace()
        self.lateness = Histogram()
        self.busy = Histogram()
        self._spine = spine
        self._link = link
        self._time = time
        self._journal = journal
        self._offered = ""
        self._fault: Exception | None = None
        self._pace_ns = 0

    def run(self, clock: Clock, stopping: Callable[[], bool]) -> None:
        """Run until told to stop, which is looked at with each status; arms are told to stop."""
        spine, tick_ns = self._spine, self._spine.cell.tick_ns
        due_ns = max(0, (clock.now_ns() // tick_ns + 1) * tick_ns)
        self._time.wait_until_ns(due_ns)
        spine.start(due_ns)
        try:
            while True:
                clock.wait_until_ns(due_ns)
                start_ns = clock.now_ns()
                missed = (start_ns - due_ns) // tick_ns
                due_ns += missed * tick_ns
                self.pace.skipped += missed
                self._tick(due_ns, start_ns)
                self.busy.add(clock.now_ns() - start_ns)
                if self.pace.ticks % STATUS_TICKS == 0 and stopping():
                    return
                due_ns += tick_ns
        finally:
            self._time.wait_until_ns(due_ns)
            spine.stop(due_ns)

    def report(self, dropped: int = 0) -> LoopReport:
        """Say how the time was kept so far."""
        late, busy = self.lateness, self.busy
        late_p50_us, late_p99_us = late.percentiles_us(50.0, 99.0)
        busy_p50_us, busy_p99_us = busy.percentiles_us(50.0, 99.0)
        return LoopReport(
            ticks=self.pace.ticks,
            late=self.pace.late,
            skipped=self.pace.skipped,
            late_p50_us=late_p50_us,
            late_p99_us=late_p99_us,
            late_max_us=late.max_ns * 1e-3,
            busy_p50_us=busy_p50_us,
            busy_p99_us=busy_p99_us,
            busy_max_us=busy.max_ns * 1e-3,
            dropped=dropped,
        )

    def _tick(self, due_ns: int, start_ns: int) -> None:
        pace, late_ns = self.pace, start_ns - due_ns
        pace.ticks += 1
        pace.late += late_ns > LATE_NS
        pace.lateness_ms = late_ns * 1e-6
        self.lateness.add(late_ns)
        self._time.wait_until_ns(due_ns)
        record = self._spine.cycle(due_ns, _not_after(self._link.hear(start_ns), due_ns))
        journal = self._journal
        if record is not None and journal is not None:
            journal.tick(record)
        if record is None:
            self._note_fault(due_ns)
        if pace.ticks % STATUS_TICKS == 0:
            self._tell(due_ns, record)
        if journal is not None and due_ns >= self._pace_ns:
            self._pace_ns = due_ns + PACE_NS
            data = {"ticks": pace.ticks, "late": pace.late, "skipped": pace.skipped}
            journal.event(PACE, due_ns, data)

    def _tell(self, t_ns: int, record: TickRecord | None) -> None:
        try:
            if record is None:
                self._link.send_status(fault_status(self._spine, t_ns, self.pace))
                return
            self._link.send_status(status_of(self._spine, record, self.pace))
            store = record.state.store
            if store and store[-1].rehearsal.digest != self._offered:
                self._offered = store[-1].rehearsal.digest
                self._link.offer(preview_of(self._spine.cell, store[-1].rehearsal), t_ns)
        except LinkError as error:  # what cannot be shown must not keep the arms from their ticks
            if self._journal is not None:
                self._journal.event(LINK, t_ns, {"error": str(error)})

    def _note_fault(self, t_ns: int) -> None:
        """Keep a new exception of the cycle, with the place where it came from."""
        fault, self._fault = self._fault, self._spine.fault
        if self._fault is None or self._journal is None or repr(fault) == repr(self._fault):
            return
        self._journal.event(FAULT, t_ns, fault_json(self._fault))


def _not_after(heard: Heard, t_ns: int) -> Heard:
    """A sample that came while the tick was late counts as of the tick, not as of the future."""
    operator = heard.operator
    if operator is None or operator.t_ns <= t_ns:
        return heard
    return replace(heard, operator=replace(operator, t_ns=t_ns))


# ------------------------------------------------------------------------------------ processes


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlSetup:
    """What a control process needs; `planner` is the main function of its worker's process."""

    scene_text: str
    slots: SlotNames
    endpoint: str
    tls: Tls | None
    planner: Main
    planner_nice: int
    log: Connection | None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Begin:
    """The word to begin: zero of the run by the machine's monotonic clock, and the devices."""

    zero_ns: int
    specs: DeviceSpecs


def control_main(station: Station, setup: ControlSetup) -> LoopReport | None:
    """Be the control process of a live cell."""
    resolved = parse_resolved(setup.scene_text)
    cell, world = cell_model(resolved), world_of(resolved)
    limits = profile(resolved.scene.limits)
    outbox = None if setup.log is None else Outbox(setup.log)
    link = open_cell(cell.name, setup.endpoint, setup.tls)
    worker = ProcessWorker(setup.planner, setup.scene_text, nice=setup.planner_nice)
    try:
        warm(cell, limits, world, start_q_rad(resolved.scene))
        worker.wait_ready()
        still_heap()
        begin: Begin | None = station.ready({"planner": worker.pid})
        if begin is None:
            return None
        time = SimClock()
        devices = remote_devices(setup.slots, begin.specs, time)
        spine = Spine(cell, limits, world, devices, worker, 0)
        link.offer(SceneText(digest=resolved.digest, text=resolved.text), 0)
        loop = Loop(spine, link, time, None if outbox is None else StreamJournal(outbox))
        loop.run(RunClock(begin.zero_ns), station.stopping)
        return loop.report(0 if outbox is None else outbox.dropped)
    finally:
        if outbox is not None:
            outbox.drain()
        worker.close()
        link.close()


def still_heap() -> None:
    """Keep Python's cycle collector out of the loop: it would stop it for tens of ms.

    A tick leaves no cycles behind (test), so nothing piles up.
    """
    gc.collect()
    gc.freeze()
    gc.disable()
