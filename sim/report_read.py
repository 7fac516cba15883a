"""Reads the log of a run for its report, as far as it can be read."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from brain.errors import LogError
from brain.geometry import Array
from brain.types import Action, Mode
from hardware.live import FAULT, LINK, PACE
from hardware.log import TICK, LogReader, Record
from hardware.record import rehearsal_from
from hardware.replay import REFUSED, REHEARSAL
from sim.report_data import (
    ArmTrack,
    Commit,
    Fault,
    GateSpell,
    Grip,
    Refusal,
    Rehearsed,
    Run,
    Spell,
    Truth,
)
from sim.runlog import RESULT, TRUTH


def read_run(path: Path) -> Run:
    """Read a log; what was cut off or is damaged is left out and said in `problem`.

    Raises:
        LogError: missing, foreign, or not as a run's log should be.
    """
    reader = LogReader(path, allow_truncated=True)
    book = _Book()
    problem = (
        "The log was cut off: the run was killed, or still goes on." if reader.truncated else None
    )
    try:
        for record in reader.records():
            book.take(record)
    except LogError as error:
        problem = f"The log is damaged: {error}"
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise LogError(f"log {path}: not the log of a run: {error!r}") from None
    return book.run(reader.head, problem)


@dataclass(slots=True)
class _Book:
    """Takes records one after the other."""

    arms: tuple[str, ...] = ()
    columns: dict[str, list[Any]] = field(default_factory=lambda: defaultdict(list))
    operator_ns: int | None = None
    spells: list[Spell] = field(default_factory=list)
    held: dict[str, tuple[str, float]] = field(default_factory=dict)
    grips: list[Grip] = field(default_factory=list)
    answers: list[GateSpell] = field(default_factory=list)
    open_answers: dict[str, int] = field(default_factory=dict)
    commits: list[Commit] = field(default_factory=list)
    rehearsed: list[Rehearsed] = field(default_factory=list)
    refusals: list[Refusal] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    result: dict[str, Any] | None = None

    def take(self, record: Record) -> None:
        """Take one record."""
        t_s, data = record.t_ns * 1e-9, record.data
        if record.channel == TICK:
            self._tick(t_s, data)
        elif record.channel == TRUTH:
            self._add("truth.t_s", t_s)
            for name in ("qpos", "mocap_pos", "mocap_quat", "clearance_m", "nearest"):
                self._add(f"truth.{name}", data[name])
        elif record.channel == REHEARSAL:
            self.rehearsed.append(_rehearsed(t_s, data["rehearsal"]))
        elif record.channel == REFUSED:
            self.refusals.append(Refusal(t_s=t_s, asked="rehearse", reason=str(data["reason"])))
        elif record.channel == PACE:
            self._add("pace", [t_s, data["ticks"], data["late"], data["skipped"]])
        elif record.channel in (FAULT, LINK):
            error, trace = str(data["error"]), str(data.get("trace", ""))
            self.faults.append(Fault(t_s=t_s, error=error, trace=trace))
        elif record.channel == RESULT:
            self.result = data

    def _add(self, column: str, value: Any) -> None:
        self.columns[column].append(value)

    def _tick(self, t_s: float, data: dict[str, Any]) -> None:
        if data["operator"] is not None:
            self.operator_ns = data["operator"]["t_ns"]
        age_ns = None if self.operator_ns is None else data["t_ns"] - self.operator_ns
        self._add("t_s", t_s)
        self._add("mode", data["mode"])
        self._add("row", data["row"])
        self._add("digest", data["digest"] or "")
        self._add("input_age_ms", None if age_ns is None else age_ns * 1e-6)
        self.arms = tuple(str(arm["answer"]["arm"]) for arm in data["arms"])
        for i, arm in enumerate(data["arms"]):
            self._arm(t_s, data["t_ns"], i, arm)
        self._commit(t_s, data)
        self._spell(t_s, data["mode"], data["reason"])
        self._grip(t_s, data["held"])
        if data["refused"] is not None:
            asked = ", ".join(str(intent["kind"]) for intent in data["intents"])
            self.refusals.append(Refusal(t_s=t_s, asked=asked, reason=data["refused"]))

    def _arm(self, t_s: float, t_ns: int, i: int, arm: dict[str, Any]) -> None:
        state, gripper = arm["state"] or {}, arm["gripper"] or {}
        age_ms = None if not state else (t_ns - state["t_ns"]) * 1e-6
        for name, value in (
            ("q_rad", state.get("q_rad")),
            ("dq_rad_s", state.get("dq_rad_s")),
            ("command_rad", arm["command_rad"]),
            ("clearance_m", arm["around_m"]),
            ("force_n", arm["force_n"]),
            ("opening_m", gripper.get("opening_m")),
            ("grip_m", arm["grip_m"]),
            ("state_age_ms", age_ms),
        ):
            self._add(f"{i}.{name}", value)
        self._answer(t_s, arm["answer"])

    def _answer(self, t_s: float, answer: dict[str, Any]) -> None:
        arm, what = answer["arm"], (answer["action"], answer["rule"])
        at = self.open_answers.pop(arm, None)
        if at is not None:
            last = self.answers[at] = replace(self.answers[at], end_s=t_s)
            if (last.action, last.rule) == what:
                self.answers[at] = replace(last, ticks=last.ticks + 1)
                self.open_answers[arm] = at
                return
        if what[0] != Action.ALLOW:
            self.open_answers[arm] = len(self.answers)
            self.answers.append(GateSpell(start_s=t_s, end_s=t_s, ticks=1, **answer))

    def _spell(self, t_s: float, mode: str, reason: str) -> None:
        if self.spells:
            last = self.spells[-1] = replace(self.spells[-1], end_s=t_s)
            if (last.mode, last.reason) == (mode, reason):
                return
        self.spells.append(Spell(start_s=t_s, end_s=t_s, mode=mode, reason=reason))

    def _grip(self, t_s: float, held: dict[str, str]) -> None:
        for arm, (part, start_s) in list(self.held.items()):
            if held.get(arm) != part:
                del self.held[arm]
                self.grips.append(Grip(start_s=start_s, end_s=t_s, arm=arm, part=part))
        for arm, part in held.items():
            self.held.setdefault(arm, (part, t_s))

    def _commit(self, t_s: float, data: dict[str, Any]) -> None:
        was = self.spells[-1].mode if self.spells else ""
        if data["mode"] == Mode.COMMIT and was != Mode.COMMIT:
            by = str(data["reason"]).removeprefix("committed by ")
            self.commits.append(
                Commit(
                    digest=data["digest"] or "",
                    start_s=t_s,
                    end_s=t_s,
                    by=by,
                    ended="",
                    **data["departure"],
                )
            )
        elif Mode.COMMIT in (data["mode"], was):
            ended = "" if data["mode"] == Mode.COMMIT else f"{data['mode']}: {data['reason']}"
            self.commits[-1] = replace(
                self.commits[-1], end_s=t_s, ended=ended, **data["departure"]
            )

    def run(self, head: dict[str, Any], problem: str | None) -> Run:
        """Put everything together."""
        column = self.columns
        still = [
            Grip(start_s=start_s, end_s=None, arm=arm, part=part)
            for arm, (part, start_s) in self.held.items()
        ]
        return Run(
            head=head,
            problem=problem,
            t_s=_numbers(column["t_s"]),
            mode=np.array(column["mode"], dtype=np.str_),
            row=_numbers(column["row"]),
            digest=np.array(column["digest"], dtype=np.str_),
            input_age_ms=_numbers(column["input_age_ms"]),
            pace=np.array(column["pace"], dtype=np.float64).reshape(-1, 4),
            arms=tuple(_track(column, i, name) for i, name in enumerate(self.arms)),
            spells=tuple(self.spells),
            grips=tuple(sorted(self.grips + still, key=lambda grip: grip.start_s)),
            answers=tuple(self.answers),
            rehearsed=tuple(self.rehearsed),
            commits=tuple(self.commits),
            refusals=tuple(self.refusals),
            faults=tuple(self.faults),
            truth=_truth(column),
            result=self.result,
        )


def _rehearsed(t_s: float, data: Mapping[str, Any]) -> Rehearsed:
    try:
        return Rehearsed(t_s=t_s, rehearsal=rehearsal_from(data), problem="")
    except LogError as error:
        return Rehearsed(t_s=t_s, rehearsal=None, problem=str(error))


def _track(column: Mapping[str, list[Any]], i: int, name: str) -> ArmTrack:
    rows = {key: _rows(column[f"{i}.{key}"]) for key in ("q_rad", "dq_rad_s", "command_rad")}
    single = ("clearance_m", "force_n", "opening_m", "grip_m", "state_age_ms")
    return ArmTrack(name=name, **rows, **{key: _numbers(column[f"{i}.{key}"]) for key in single})


def _truth(column: Mapping[str, list[Any]]) -> Truth:
    near = [None if n is None else [str(word) for word in n] for n in column["truth.nearest"]]
    return Truth(
        t_s=_numbers(column["truth.t_s"]),
        qpos=_rows(column["truth.qpos"]),
        mocap_pos=np.array(column["truth.mocap_pos"], dtype=np.float64),
        mocap_quat=np.array(column["truth.mocap_quat"], dtype=np.float64),
        clearance_m=_numbers(column["truth.clearance_m"]),
        nearest=tuple("" if n is None else f"{n[1]} of {n[0]} and {n[2]}" for n in near),
    )


def _numbers(values: Sequence[float | None]) -> Array:
    return np.array(values, dtype=np.float64)


def _rows(values: Sequence[Sequence[float | None] | None]) -> Array:
    """Stack rows of one width, NaN where there is none."""
    width = next((len(row) for row in values if row is not None), 0)
    none = [None] * width
    return np.array([none if row is None else row for row in values], dtype=np.float64).reshape(
        len(values), width
    )
