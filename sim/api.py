"""A simulated cell from a script: load a scene, rehearse, look, commit, read the outcome.

    cell = open_cell("bench_pick", seed=3)
    rehearsal = cell.rehearse("pick_place")
    print(rehearsal.verdict.sentence())
    print(cell.commit(rehearsal))

It takes the same ways as a person at a seat: the dead-man is held, intents are said, the cell may
refuse.
"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

from brain.errors import ConfigError, ForearmError
from brain.geometry import Array
from brain.playback import DONE
from brain.rehearsal import Rehearsal
from brain.types import NS_PER_S, Goal, Intent, IntentKind, Mode, OperatorInput
from hardware.receive import Heard
from hardware.resolve import resolve
from hardware.scene import load_scene
from sim.build import SimCell, build_cell
from sim.conditions import Conditions
from sim.outcome import Outcome, OutcomeMeter
from sim.plant import PlantChange
from sim.runlog import LOG_NAME, RunLog, head
from sim.worker import declared_contacts

PATIENCE_NS = 180 * NS_PER_S
AS_IT_SHOULD_BE = PlantChange()


class Refusal(ForearmError):
    """The cell refused or held; its text says why."""


def open_cell(
    scene: str | Path = "bench_pick",
    seed: int = 0,
    *,
    task: str = "pick_place",
    change: PlantChange = AS_IT_SHOULD_BE,
    folder: str | Path | None = None,
) -> ScriptedCell:
    """Build a cell, put its arms under power and hold them; with a folder a log is kept there.

    `task` names the task by which the outcome is judged.

    Raises:
        ConfigError: scene, task, seed or change cannot be.
    """
    loaded = load_scene(scene)
    if task not in loaded.tasks:
        known = ", ".join(loaded.tasks) or "none"
        raise ConfigError(f"task: no {task!r} in {loaded.cell}; it has {known}")
    resolved = resolve(loaded, seed)
    conditions = Conditions(change=change).for_task(resolved, task)
    cell = build_cell(resolved, change=conditions.change)
    steps = cell.brief.tasks.get(task, ())
    meter = OutcomeMeter(cell.plant, steps, declared_contacts(resolved))
    log = None
    if folder is not None:
        about = head(resolved, "lockstep", task, asdict(conditions))
        log = RunLog(Path(folder) / LOG_NAME, about, cell.plant, meter)
    return ScriptedCell(cell, meter, log)


class ScriptedCell:
    """A simulated cell in lockstep, driven by calls."""

    def __init__(self, cell: SimCell, meter: OutcomeMeter, log: RunLog | None) -> None:
        """Start the cell and arm it; use `open_cell`."""
        self.cell = cell
        self._meter = meter
        self._log = log
        self._t_ns = cell.plant.world.t_ns
        self._ticks = 0
        self._acts = 0
        self._engaged = False
        self._closed = False
        cell.spine.start(self._t_ns)
        self._step(ticks=10)
        self._engaged = True
        self._step(ticks=10)

    @property
    def mode(self) -> Mode:
        """What the cell is doing."""
        return self.cell.spine.state.mode.mode

    @property
    def reason(self) -> str:
        """Why it does that."""
        return self.cell.spine.state.mode.reason

    def joints_rad(self) -> dict[str, Array]:
        """Measured joints (n,) of each arm."""
        states = [(arm.spec.name, arm.read()) for arm in self.cell.plant.devices.arms]
        return {name: state.q_rad for name, state in states if state is not None}

    def rehearse(self, goal: str | Goal) -> Rehearsal:
        """Plan a task by name, or a goal, and rehearse it on the twin.

        Raises:
            Refusal: there is no plan, or the rehearsal met something; says what.
        """
        wanted = Goal(kind="task", task=goal) if isinstance(goal, str) else goal
        if not isinstance(wanted, Goal):
            raise Refusal(f"goal: {goal!r} is neither a task's name nor a Goal")
        self._act("rehearse", goal=wanted)
        if not self._is_in(Mode.REHEARSING):
            raise Refusal(self.cell.spine.state.note or self.reason)
        self._while(Mode.REHEARSING)
        if not self._is_in(Mode.PREVIEW):
            raise Refusal(self.reason)
        return self.cell.spine.state.store[-1].rehearsal

    def commit(self, rehearsal: Rehearsal) -> Outcome:
        """Commit what was rehearsed, see it through, and measure what came of it.

        Raises:
            Refusal: the cell does not take this commit; says why.
        """
        if not isinstance(rehearsal, Rehearsal):
            raise Refusal(f"commit: {rehearsal!r} is no rehearsal")
        self._act("commit", digest=rehearsal.digest)
        if self.mode is not Mode.COMMIT:
            raise Refusal(self.cell.spine.state.note or self.reason)
        self._while(Mode.COMMIT)
        reason = self.reason
        self._step(ticks=250)  # half a second for parts to come to rest
        outcome = self._meter.outcome(reason == DONE, reason)
        if self._log is not None:
            self._log.result(outcome)
        return outcome

    def close(self) -> None:
        """Stop the arms and close the log; a second call does nothing."""
        if self._closed:
            return
        self._closed = True
        self.cell.spine.stop(self._t_ns)
        if self._log is not None:
            self._log.close()

    def _act(self, kind: IntentKind, goal: Goal | None = None, digest: str | None = None) -> None:
        self._acts += 1
        intent = Intent(
            t_ns=self._t_ns,
            seq=self._acts,
            kind=kind,
            source="script",
            goal=goal,
            digest=digest,
            nonce=f"api-{self._acts}" if kind == "commit" else None,
        )
        self._step(intents=(intent,))

    def _is_in(self, mode: Mode) -> bool:
        return self.mode is mode

    def _while(self, mode: Mode) -> None:
        until_ns = self._t_ns + PATIENCE_NS
        while self.mode is mode and self._t_ns < until_ns:
            self._step()

    def _step(self, ticks: int = 1, intents: tuple[Intent, ...] = ()) -> None:
        """Go on by some ticks; intents are said in the first."""
        if self._closed:
            raise Refusal("the cell is closed")
        for _ in range(ticks):
            self._ticks += 1
            sample = OperatorInput(
                t_ns=self._t_ns,
                seq=self._ticks,
                expires_ns=self._t_ns + self.cell.brief.cell.tick_ns,
                source="script",
                tracked=False,
                T_seat_hand=None,
                engaged=self._engaged,
                grip=None,
                arm=self.cell.brief.cell.arms[0].name,
            )
            record = self.cell.spine.cycle(self._t_ns, Heard(operator=sample, intents=intents))
            intents = ()
            if record is not None:
                self._meter(record)
                if self._log is not None:
                    self._log(record)
            elif self._log is not None and self.cell.spine.fault is not None:
                self._log.fault(self._t_ns, self.cell.spine.fault)
            self._t_ns += self.cell.brief.cell.tick_ns
            self.cell.plant.world.step_to(self._t_ns)
