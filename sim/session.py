"""A whole run in lockstep: cell, line, seat, log and outcome; and a run again from a log."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Protocol

from brain.errors import LogError
from brain.types import NS_PER_S
from hardware.api import Clock
from hardware.clock import SimClock
from hardware.inline_link import inline_line
from hardware.replay import (
    Comparison,
    Difference,
    RecordedLink,
    RecordedWorker,
    Recording,
    recorded_devices,
)
from hardware.scene import ResolvedScene, parse_resolved
from hardware.seat_link import SeatLink
from hardware.spine import Spine, TickRecord
from sim.build import SimCell, brief_of, build_cell
from sim.conditions import Conditions
from sim.lockstep import Lockstep
from sim.lockstep import Seat as LockstepSeat
from sim.outcome import Outcome, OutcomeMeter
from sim.plant import PlantChange
from sim.runlog import LOG_NAME, RunLog, head
from sim.worker import declared_contacts

LIMIT_NS = 400 * NS_PER_S
"""A run that takes longer in simulated time has failed."""


class Seat(LockstepSeat, Protocol):
    """A seat that comes to an end: `done` is None until then, then whether it succeeded."""

    done: bool | None
    why: str


SeatMaker = Callable[[SeatLink, Clock, str], Seat]
"""(the seat's end of a line, its clock, the first arm) -> who sits there."""


def run_lockstep(
    resolved: ResolvedScene,
    task: str,
    seat_maker: SeatMaker,
    folder: Path,
    conditions: Conditions | None = None,
    watch: Callable[[TickRecord], None] | None = None,
) -> Outcome:
    """Run a cell until its seat is done; leaves the log in `folder`.

    Raises:
        ConfigError: the scene cannot be built, or the change or a fault does not fit it.
        LogError: the log cannot be written.
    """
    conditions = (conditions or Conditions()).for_task(resolved, task)
    cell = _build(resolved, conditions)
    clock = SimClock(cell.plant.world.t_ns)
    line = inline_line(clock, conditions.line, resolved.seed)
    seat = seat_maker(line.seat, line.seat_clock, cell.brief.cell.arms[0].name)
    run = Lockstep(cell.plant, cell.spine, line.cell, clock, seat)
    steps = cell.brief.tasks.get(task, ())
    meter = OutcomeMeter(cell.plant, steps, declared_contacts(cell.scene.resolved))
    about = head(resolved, "lockstep", task, asdict(conditions))
    with RunLog(folder / LOG_NAME, about, cell.plant, meter) as log:
        run.observers += [meter, log] if watch is None else [meter, log, watch]
        run.fault_observers.append(log.fault)
        run.run(lambda: seat.done is not None, LIMIT_NS)
        outcome = meter.outcome(bool(seat.done), seat.why or cell.spine.state.mode.reason)
        log.result(outcome)
    return outcome


def _build(resolved: ResolvedScene, conditions: Conditions) -> SimCell:
    return build_cell(resolved, change=conditions.change, faults=conditions.parsed_faults())


def replay(path: Path) -> tuple[Difference | None, str]:
    """Run a log again; return the first difference, and the hash.

    The seat's words come from the log. Of a lockstep run physics, planner, tick and gate run again;
    of any other tick and gate, on what devices and worker reported then.

    Raises:
        LogError: the log is missing, foreign, cut off or damaged.
    """
    recording = Recording(path)
    comparison = Comparison(recording)
    try:
        resolved = parse_resolved(recording.head["scene"])
        driver, conditions = recording.head["driver"], recording.head["conditions"]
        change, faults = PlantChange(**conditions["change"]), tuple(conditions["faults"])
    except (KeyError, TypeError) as error:
        raise LogError(f"log {path}: its head lacks {error}") from None
    if driver == "lockstep":
        cell = _build(resolved, Conditions(change=change, faults=faults))
        clock = SimClock(cell.plant.world.t_ns)
        run = Lockstep(cell.plant, cell.spine, RecordedLink(recording), clock, None)
        run.observers.append(comparison)
        last_ns = recording.ticks[-1]["t_ns"]
        run.run(lambda: comparison.finished or clock.now_ns() > last_ns, LIMIT_NS)
        comparison.end(clock.now_ns(), cell.spine.state.mode.reason)
    else:
        replay_devices(recording, resolved, comparison)
    return comparison.difference, comparison.hash


def replay_devices(recording: Recording, resolved: ResolvedScene, comparison: Comparison) -> None:
    """Run tick and gate again on what the devices and the worker of a log reported."""
    brief = brief_of(resolved)
    spine = Spine(
        brief.cell,
        brief.limits,
        brief.world,
        recorded_devices(recording, brief.cell, simulated=True),
        RecordedWorker(recording),
        recording.ticks[0]["t_ns"],
    )
    for number, tick in enumerate(recording.ticks):
        record = spine.cycle(tick["t_ns"], recording.heard(number))
        if record is not None:
            comparison(record)
        if comparison.finished:
            return
    comparison.end(recording.ticks[-1]["t_ns"], spine.state.mode.reason)
