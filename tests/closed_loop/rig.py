"""Whole cells in lockstep with a scripted seat; every tick is kept."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path

import numpy as np

from brain.geometry import Array
from brain.types import Goal, Mode
from hardware.clock import SimClock
from hardware.inline_link import Faults, inline_line
from hardware.resolve import resolve
from hardware.scene import ResolvedScene, load_scene
from hardware.spine import TickRecord
from sim.build import SimCell, build_cell
from sim.conditions import Conditions
from sim.faults import parse_fault
from sim.lockstep import Lockstep
from sim.outcome import Outcome, OutcomeMeter
from sim.plant import PlantChange
from sim.runlog import LOG_NAME, RunLog, head
from sim.session import LIMIT_NS
from sim.worker import declared_contacts
from vr.scripted import Script, ScriptedSeat, do_goal

ScriptIn = Callable[[ScriptedSeat, SimCell], Script]
"""A script that may also reach into the cell, as a hand in the real one could."""


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Run:
    """What a run left; one record per tick: too much to be written out where a test fails."""

    cell: SimCell
    seat: ScriptedSeat
    records: list[TickRecord]
    outcome: Outcome

    def changes(self) -> list[tuple[float, Mode, str]]:
        """When a mode was entered in s, which, and why."""
        first = self.records[0]
        out = [(first.seen.t_ns * 1e-9, first.state.mode.mode, first.state.mode.reason)]
        for before, after in pairwise(self.records):
            if after.state.mode.since_ns != before.state.mode.since_ns:
                mode = after.state.mode
                out.append((after.seen.t_ns * 1e-9, mode.mode, mode.reason))
        return out

    def reasons(self, mode: Mode) -> list[str]:
        """Why a mode was entered, each time."""
        return [why for _, entered, why in self.changes() if entered is mode]

    def during(self, mode: Mode) -> list[TickRecord]:
        """All ticks in a mode."""
        return [r for r in self.records if r.state.mode.mode is mode]

    def measured(self, arm: int = 0) -> Array:
        """Joints (ticks, n) that an arm reported."""
        return np.array([r.seen.states[arm].q_rad for r in self.records])

    def sent(self, arm: int = 0) -> Array:
        """Joints (ticks, n) that an arm was told, NaN where it was told to stop."""
        n = self.cell.brief.cell.arms[arm].model.dof
        nothing = np.full(n, np.nan)
        commands = (r.commands.arms[arm].q_rad for r in self.records)
        return np.array([nothing if q is None else q for q in commands])

    def story(self) -> str:
        """All changes of mode, for a failing test to print."""
        return "\n".join(f"{t:8.3f} s {mode}: {why}" for t, mode, why in self.changes())


@cache
def resolved(scene: str, seed: int) -> ResolvedScene:
    """A scene for a seed."""
    return resolve(load_scene(scene), seed)


def play(
    scene: str | ResolvedScene,
    script: ScriptIn,
    *,
    seed: int = 3,
    task: str = "pick_place",
    change: PlantChange | None = None,
    faults: tuple[str, ...] = (),
    line: Faults | None = None,
    folder: Path | None = None,
    each: Callable[[SimCell, TickRecord], None] | None = None,
) -> Run:
    """Run a script in a cell to its end; `each` looks at every tick as it happens.

    The cell is put together as `sim.session.run_lockstep` does it; a log is kept in `folder`.
    """
    text = resolved(scene, seed) if isinstance(scene, str) else scene
    conditions = Conditions(change=change or PlantChange(), faults=faults, line=line)
    conditions = conditions.for_task(text, task)
    parsed = [parse_fault(fault) for fault in faults]
    cell = build_cell(text, change=conditions.change, faults=parsed)
    clock = SimClock(cell.plant.world.t_ns)
    ends = inline_line(clock, line, text.seed)
    seat = ScriptedSeat(ends.seat, ends.seat_clock, cell.brief.cell.arms[0].name)
    seat.play(lambda seat: script(seat, cell))
    run = Lockstep(cell.plant, cell.spine, ends.cell, clock, seat)
    meter = OutcomeMeter(cell.plant, cell.brief.tasks.get(task, ()), declared_contacts(text))
    records: list[TickRecord] = []
    run.observers += [meter, records.append]
    if each is not None:
        run.observers.append(lambda record: each(cell, record))
    with ExitStack() as stack:
        if folder is not None:
            about = head(text, "lockstep", task, asdict(conditions))
            log = stack.enter_context(RunLog(folder / LOG_NAME, about, cell.plant, meter))
            run.observers.append(log)
            run.fault_observers.append(log.fault)
        run.run(lambda: seat.done is not None, LIMIT_NS)
    outcome = meter.outcome(bool(seat.done), seat.reason)
    return Run(cell=cell, seat=seat, records=records, outcome=outcome)


def moved(cell: SimCell, by_rad: float, arm: int = 0) -> Goal:
    """Joints that differ from the present ones by that much in the first joint."""
    q_rad = cell.plant.devices.arms[arm].read().q_rad.copy()
    q_rad[0] += by_rad
    return Goal(kind="joints", arm=cell.brief.cell.arms[arm].name, q_rad=q_rad)


def a_move(seat: ScriptedSeat, cell: SimCell) -> Script:
    """Rehearse and commit a motion of less than a second."""
    return (yield from do_goal(seat, moved(cell, -0.15)))


def alone(script: Callable[[ScriptedSeat], Script]) -> ScriptIn:
    """A script that only the seat needs."""
    return lambda seat, cell: script(seat)
