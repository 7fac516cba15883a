"""Recorded operators: what a hand did and asked for, to be played back by a seat.

JSON lines, not MCAP: a trace is written by hand as often as recorded, belongs into a version
control, and a mistake in it is named by its line. The first line says for what it was recorded:

    {"forearm_trace": 1, "cell": "bench_pick", "robots": {"arm": "ur5e"}}

Each other line is one of, in order of `t_ns` (ns from the start of the trace), the last an end:

    {"hand": {"t_ns": 0, "seq": 0, "expires_ns": 150000000, "tracked": true, "T_seat_hand": [...],
              "engaged": false, "grip": null, "arm": "arm", "manner": "normal"}}
    {"intent": {"t_ns": 5, "seq": 0, "kind": "rehearse", "goal": {"kind": "task", "task": "pick"}}}
    {"stop": {"t_ns": 9}}
    {"end": true}
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

import orjson
from pydantic import BaseModel, Field, ValidationError

from brain.errors import ConfigError, LinkError
from brain.record import Record
from brain.types import Intent, Manner, OperatorInput
from hardware.fields import STRICT, Count, Name, Pose, problem
from hardware.messages import IntentModel, intent_json
from hardware.wire import pack_pose

FORMAT_VERSION = 1
_FILE_MAX = 512 * 1024 * 1024
_LINE_MAX = 64 * 1024


class StopPress(Record, eq=True):
    """The operator hit stop."""

    t_ns: int


TraceEvent: TypeAlias = OperatorInput | Intent | StopPress


class _Head(BaseModel):
    model_config = STRICT

    forearm_trace: int
    cell: Name
    robots: dict[Name, Name]


class _Hand(BaseModel):
    model_config = STRICT

    t_ns: Count
    seq: Count
    expires_ns: Count
    tracked: bool
    T_seat_hand: Pose | None
    engaged: bool
    grip: Annotated[float, Field(ge=0, le=1)] | None
    arm: Name
    manner: Manner = "normal"


class _Act(IntentModel):
    t_ns: Count
    seq: Count
    source: Literal["trace"] = "trace"


class _Stop(BaseModel):
    model_config = STRICT

    t_ns: Count


class _Line(BaseModel):
    model_config = STRICT

    hand: _Hand | None = None
    intent: _Act | None = None
    stop: _Stop | None = None
    end: Literal[True] | None = None


def read_trace(path: Path, cell: str, robots: Mapping[str, str]) -> tuple[TraceEvent, ...]:
    """Read a whole trace, so that nothing moves before all of it is known to be good.

    `robots` gives for each arm of the cell its robot type. Events come in order of time, their
    source is "trace".

    Raises:
        ConfigError: missing, too large, cut off, for another cell or robot, NaN, time or seq that
            goes back, or anything else that does not belong; names line and field.
    """
    try:
        if path.stat().st_size > _FILE_MAX:
            raise ConfigError(f"trace {path}: over {_FILE_MAX} bytes")
        lines = path.read_bytes().splitlines()
    except OSError as error:
        raise ConfigError(f"trace {path}: {error.strerror}") from None
    if not lines:
        raise ConfigError(f"trace {path}: empty")
    number = 1
    try:
        _check_head(_Head.model_validate_json(lines[0]), cell, robots)
        events: list[TraceEvent] = []
        order, ended = _Order(), False
        for line in lines[1:]:
            number += 1
            if len(line) > _LINE_MAX:
                raise LinkError(f"line: {len(line)} bytes, at most {_LINE_MAX}")
            if ended:
                raise LinkError("line: comes after the end")
            event = _event(_Line.model_validate_json(line), robots)
            if event is None:
                ended = True
                continue
            order.check(event)
            events.append(event)
        if not ended:
            raise LinkError('cut off: the last line must be {"end": true}')
    except ValidationError as error:
        raise ConfigError(f"trace {path}, line {number}: {problem(error)}") from None
    except LinkError as error:
        raise ConfigError(f"trace {path}, line {number}: {error}") from None
    return tuple(events)


class TraceWriter:
    """Writes a trace as it happens, for `read_trace`; the source of events is not kept."""

    def __init__(self, path: Path, cell: str, robots: Mapping[str, str]) -> None:
        """Start the file.

        Raises:
            ConfigError: the file exists or cannot be written.
        """
        try:
            self._file = path.open("xb")
        except OSError as error:
            raise ConfigError(f"trace {path}: {error.strerror}") from None
        self._write({"forearm_trace": FORMAT_VERSION, "cell": cell, "robots": dict(robots)})

    def add(self, event: TraceEvent) -> None:
        """Write an event.

        Raises:
            LinkError: it is not valid.
        """
        self._write(_plain(event))

    def close(self) -> None:
        """Finish the file; a trace that was not is refused as cut off."""
        self._write({"end": True})
        try:
            self._file.close()
        except OSError as error:
            raise ConfigError(f"record_trace: {self._file.name}: {error.strerror}") from None

    def _write(self, line: dict[str, Any]) -> None:
        try:
            self._file.write(orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE))
        except OSError as error:
            raise ConfigError(f"record_trace: {self._file.name}: {error.strerror}") from None


def _check_head(head: _Head, cell: str, robots: Mapping[str, str]) -> None:
    if head.forearm_trace != FORMAT_VERSION:
        raise LinkError(f"forearm_trace: version {head.forearm_trace}, can read {FORMAT_VERSION}")
    if head.cell != cell:
        raise LinkError(f"cell: recorded for {head.cell!r}, this is {cell!r}")
    if head.robots != dict(robots):
        raise LinkError(f"robots: recorded for {head.robots}, this cell has {dict(robots)}")


def _event(line: _Line, robots: Mapping[str, str]) -> TraceEvent | None:
    """Return what a line says, None for the end."""
    if len(line.model_fields_set) != 1:
        raise LinkError("line: must hold one of hand, intent, stop, end")
    if line.end is not None:
        return None
    if line.stop is not None:
        return StopPress(t_ns=line.stop.t_ns)
    if line.intent is not None:
        intent = line.intent.intent(line.intent.t_ns, line.intent.seq)
        if intent.goal is not None and intent.goal.arm not in (None, *robots):
            raise LinkError(f"intent.goal.arm: {intent.goal.arm!r}, the cell has {list(robots)}")
        return intent
    if line.hand is None:  # a null
        raise LinkError("line: must hold one of hand, intent, stop, end")
    sample = OperatorInput(source="trace", **dict(line.hand))
    pack_pose(sample, session=0)  # checks what the cell will check
    if sample.arm not in robots:
        raise LinkError(f"hand.arm: {sample.arm!r}, the cell has {list(robots)}")
    return sample


class _Order:
    """Refuses time that goes back, and seq that does not rise, each for its own kind."""

    def __init__(self) -> None:
        self._t_ns = 0
        self._seq: dict[type, int] = {}

    def check(self, event: TraceEvent) -> None:
        if event.t_ns < self._t_ns:
            raise LinkError(f"t_ns: {event.t_ns}, goes back from {self._t_ns}")
        self._t_ns = event.t_ns
        if not isinstance(event, StopPress):
            before = self._seq.get(type(event), -1)
            if event.seq <= before:
                raise LinkError(f"seq: {event.seq}, does not rise from {before}")
            self._seq[type(event)] = event.seq


def _plain(event: TraceEvent) -> dict[str, Any]:
    if isinstance(event, StopPress):
        return {"stop": {"t_ns": event.t_ns}}
    if isinstance(event, Intent):
        act = intent_json(event)
        act.pop("source")
        return {"intent": {"t_ns": event.t_ns, "seq": event.seq, **act}}
    pack_pose(event, session=0)
    hand = {name: getattr(event, name) for name in _Hand.model_fields}
    if event.T_seat_hand is not None:
        hand["T_seat_hand"] = event.T_seat_hand.tolist()
    return {"hand": hand}
