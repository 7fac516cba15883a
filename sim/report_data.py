"""What a report knows of a run: columns over time, spells, and what was rehearsed.

Times are seconds of the run. What the log does not hold is NaN in a column and None elsewhere.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from brain.geometry import Array
from brain.rehearsal import Rehearsal


@dataclass(frozen=True, slots=True, kw_only=True)
class Spell:
    """A time in one mode, and why it was entered."""

    start_s: float
    end_s: float
    mode: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Grip:
    """A time in which an arm was believed to hold a part; `end_s` None where it never let go."""

    start_s: float
    end_s: float | None
    arm: str
    part: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GateSpell:
    """Ticks on end with one answer of the gate; `value` is the first."""

    start_s: float
    end_s: float
    ticks: int
    arm: str
    action: str
    rule: str
    value: float | None
    limit: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """What was asked for in vain, and why."""

    t_s: float
    asked: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """What went wrong in the program itself, with the place in it if that is known."""

    t_s: float
    error: str
    trace: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """A rehearsal being executed: by whose act, how it ended, and how far it departed at most."""

    digest: str
    start_s: float
    end_s: float
    by: str
    ended: str
    joint_rad: float
    force_n: float
    opening_m: float


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Rehearsed:
    """An answer of the worker; `rehearsal` None where it does not fit its digest."""

    t_s: float
    rehearsal: Rehearsal | None
    problem: str


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ArmTrack:
    """One arm, a row per tick: joints (ticks, n), the others (ticks,)."""

    name: str
    q_rad: Array
    dq_rad_s: Array
    command_rad: Array
    clearance_m: Array
    force_n: Array
    opening_m: Array
    grip_m: Array
    state_age_ms: Array


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Truth:
    """The simulator's own state, a row per record; `nearest` says what is nearest to what."""

    t_s: Array
    qpos: Array
    mocap_pos: Array
    mocap_quat: Array
    clearance_m: Array
    nearest: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Run:
    """A whole run; `problem` says how the log is incomplete.

    `row` and `digest`: of the playback after each tick, NaN and "" where there is none. `pace`
    (k, 4): seconds, and ticks so far, late and skipped, where the driver counts them.
    """

    head: dict[str, Any]
    problem: str | None
    t_s: Array
    mode: npt.NDArray[np.str_]
    row: Array
    digest: npt.NDArray[np.str_]
    input_age_ms: Array
    pace: Array
    arms: tuple[ArmTrack, ...]
    spells: tuple[Spell, ...]
    grips: tuple[Grip, ...]
    answers: tuple[GateSpell, ...]
    rehearsed: tuple[Rehearsed, ...]
    commits: tuple[Commit, ...]
    refusals: tuple[Refusal, ...]
    faults: tuple[Fault, ...]
    truth: Truth
    result: dict[str, Any] | None

    @property
    def end_s(self) -> float:
        """The last time that the log holds a tick or a state of."""
        return max((float(t_s[-1]) for t_s in (self.t_s, self.truth.t_s) if len(t_s)), default=0.0)
