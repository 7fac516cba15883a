"""A lockstep run that keeps the wall's pace, in a process of its own, for a window to look at.

The run itself is the headless one: the same script, the same order of events, the same hash. A
person at the window may stop it at any time; once the script has come to its end the cell listens
to the person.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from brain.errors import ConfigError
from brain.types import NS_PER_S
from hardware.clock import SimClock, WallClock
from hardware.inline_link import inline_line
from hardware.link import CellLink
from hardware.process import Child, Station
from hardware.receive import Heard
from hardware.scene import ResolvedScene, parse_resolved
from hardware.status import Preview, SceneText, Status
from hardware.worker import ProcessWorker
from hardware.zenoh_link import loopback_endpoint, open_cell
from sim.build import build_cell
from sim.conditions import Conditions
from sim.lockstep import CellEnd, Lockstep
from sim.outcome import Outcome, OutcomeMeter
from sim.processes import planner_main
from sim.runlog import LOG_NAME, RunLog, head
from sim.session import LIMIT_NS, Seat, SeatMaker
from sim.worker import LATENCY_NS, declared_contacts

FOREVER_NS = 24 * 3600 * NS_PER_S


@dataclass(frozen=True, slots=True, kw_only=True)
class PacedRun:
    """What a paced run is asked to do; `scene` is the resolved text."""

    scene: str
    task: str
    seat_maker: SeatMaker
    folder: Path
    endpoint: str
    conditions: Conditions


class TwoSeats:
    """The cell's ends of two lines: the script's, and the window's, which may always stop."""

    def __init__(self, script: CellEnd, window: CellLink, script_done: Callable[[], bool]) -> None:
        """Listen to the script until it is done, then to the window."""
        self._script = script
        self._window = window
        self._script_done = script_done

    def hear(self, now_ns: int) -> Heard:
        """Return what counts of what was said."""
        script, window = self._script.hear(now_ns), self._window.hear(now_ns)
        if self._script_done():
            return window
        return Heard(
            operator=script.operator, intents=script.intents, stop=script.stop or window.stop
        )

    def send_status(self, status: Status) -> None:
        """Tell both."""
        self._script.send_status(status)
        self._window.send_status(status)

    def offer(self, thing: SceneText | Preview, now_ns: int) -> None:
        """Keep it for both."""
        self._script.offer(thing, now_ns)
        self._window.offer(thing, now_ns)


def paced_main(station: Station, asked: PacedRun) -> None:
    """Be the process: run the script, tell its outcome, go on until the parent says stop."""
    resolved = parse_resolved(asked.scene)
    conditions = asked.conditions.for_task(resolved, asked.task)
    worker = ProcessWorker(planner_main, resolved.text, latency_ns=LATENCY_NS)
    window = open_cell(resolved.scene.cell, asked.endpoint)
    try:
        cell = build_cell(
            resolved, change=conditions.change, faults=conditions.parsed_faults(), worker=worker
        )
        worker.wait_ready()
        clock = SimClock(cell.plant.world.t_ns)
        line = inline_line(clock, conditions.line, resolved.seed)
        seat: Seat = asked.seat_maker(line.seat, line.seat_clock, cell.brief.cell.arms[0].name)
        link = TwoSeats(line.cell, window, lambda: seat.done is not None)
        if station.ready() is None:
            return
        run = Lockstep(cell.plant, cell.spine, link, clock, seat)
        meter = OutcomeMeter(
            cell.plant, cell.brief.tasks.get(asked.task, ()), declared_contacts(resolved)
        )
        about = head(resolved, "lockstep", asked.task, asdict(conditions))
        with RunLog(asked.folder / LOG_NAME, about, cell.plant, meter) as log:
            run.observers += [meter, log]
            run.fault_observers.append(log.fault)
            told = False

            def finished() -> bool:
                """Tell what came of the script when it is over, and go on until asked to stop."""
                nonlocal told
                over = seat.done is not None or clock.now_ns() > LIMIT_NS or station.stopping()
                if over and not told:
                    told = True
                    why = seat.why or cell.spine.state.mode.reason
                    outcome = meter.outcome(bool(seat.done), why)
                    log.result(outcome)
                    station.tell("meanwhile", outcome)
                return station.stopping()

            run.run(finished, FOREVER_NS, WallClock())
    finally:
        worker.close()
        window.close()


class Paced:
    """A paced run in its process, from the parent's side."""

    def __init__(
        self,
        resolved: ResolvedScene,
        task: str,
        seat_maker: SeatMaker,
        folder: Path,
        conditions: Conditions,
    ) -> None:
        """Start the process; it waits for `begin`."""
        self.endpoint = loopback_endpoint()
        asked = PacedRun(
            scene=resolved.text,
            task=task,
            seat_maker=seat_maker,
            folder=folder,
            endpoint=self.endpoint,
            conditions=conditions,
        )
        self._child = Child("cell", paced_main, asked)

    def __enter__(self) -> Self:
        """Wait until it can begin."""
        self._child.wait_ready()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End it."""
        self._child.ask_stop()
        self._child.join()

    def begin(self) -> None:
        """Let it run."""
        self._child.begin(True)

    @property
    def failed(self) -> bool:
        """Whether it has ended and was not meant to."""
        return self._child.problem is not None

    @property
    def done(self) -> bool:
        """Whether the script has come to its end."""
        return self._child.told is not None

    def outcome(self) -> Outcome:
        """Return what came of the script.

        Raises:
            ForearmError: the process failed, or the window was closed before the end.
        """
        if self._child.problem is not None:
            raise self._child.problem
        if not isinstance(self._child.told, Outcome):
            raise ConfigError("the window was closed before the script had come to its end")
        return self._child.told
