"""Running a log again.

Its inputs go through the cycle once more, and the first tick that differs is named.

`Recording` reads a log. `RecordedLink` says again what the seat said. Where physics cannot be run
again (a live or a real cell), `recorded_devices` report again what the devices reported and
`RecordedWorker` answers what the worker answered.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import orjson

from brain.cell import CellModel
from brain.errors import LogError
from brain.geometry import frozen
from brain.rehearsal import Finished, Refused, Request
from brain.types import (
    ArmCommand,
    ArmState,
    Goal,
    GripperCommand,
    GripperState,
    Intent,
    ObjectPose,
    OperatorInput,
    Wrench,
)
from hardware.api import ArmSpec, ForceTorqueSpec, GripperSpec
from hardware.log import LogReader, json_bytes
from hardware.receive import Heard
from hardware.record import RunHash, counted, counted_in, rehearsal_from
from hardware.spine import CellDevices, Commands, TickRecord
from hardware.status import Preview, SceneText, Status

REHEARSAL = "/rehearsal"
REFUSED = "/refused"


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """Where a replay first differs from its log, and in what."""

    tick: int
    t_ns: int
    what: str

    def sentence(self) -> str:
        """Say it to the developer."""
        return f"tick {self.tick} at {self.t_ns * 1e-9:.3f} s differs: {self.what}"


class Recording:
    """A log in memory: its head, its ticks, and the worker's answers by request number."""

    def __init__(self, path: Path) -> None:
        """Read a whole log.

        Raises:
            LogError: missing, foreign, cut off, damaged, or not a log of a run.
        """
        reader = LogReader(path)
        self.head: Mapping[str, Any] = reader.head
        self.ticks: list[dict[str, Any]] = []
        self.answers: dict[int, Finished] = {}
        for record in reader.records():
            if record.channel == "/tick":
                self.ticks.append(record.data)
            elif record.channel == REHEARSAL:
                number = int(record.data["number"])
                found = rehearsal_from(record.data["rehearsal"])
                self.answers[number] = Finished(number=number, result=found)
            elif record.channel == REFUSED:
                number = int(record.data["number"])
                refused = Refused(reason=str(record.data["reason"]))
                self.answers[number] = Finished(number=number, result=refused)
        if not self.ticks:
            raise LogError(f"log {path}: has no tick in it")

    def heard(self, tick: int) -> Heard:
        """What the seat said in a tick."""
        data = self.ticks[tick]
        try:
            return Heard(
                operator=None if data["operator"] is None else _operator(data["operator"]),
                intents=tuple(_intent(i, n) for n, i in enumerate(data["intents"])),
                stop=bool(data["stop"]),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise LogError(f"tick {tick} of the log: {error!r}") from None


class Comparison:
    """Watches a replay and finds the first tick that differs."""

    def __init__(self, recording: Recording) -> None:
        """Compare with a recording."""
        self._ticks = recording.ticks
        self._hash = RunHash()
        self._tick = 0
        self.difference: Difference | None = None

    def __call__(self, record: TickRecord) -> None:
        """Look at one tick of the replay.

        Raises:
            LogError: the log's tick lacks something.
        """
        if self.finished:
            return
        logged = self._ticks[self._tick]
        try:
            what = _what_differs(record, counted_in(logged))
            hash_logged = logged["hash"]
        except (KeyError, TypeError, ValueError) as error:
            raise LogError(f"tick {self._tick} of the log: {error!r}") from None
        if self._hash.add(record) != hash_logged and what is None:
            what = "the hash of all ticks so far"
        if what is not None:
            self.difference = Difference(tick=self._tick, t_ns=record.seen.t_ns, what=what)
        self._tick += 1

    def end(self, t_ns: int, reason: str) -> None:
        """Say that the replay is over; a tick that it did not get to is a difference."""
        if not self.finished:
            logged_ns = self._ticks[self._tick]["t_ns"]
            what = f"the log goes on, the replay at {t_ns * 1e-9:.3f} s does not: {reason}"
            self.difference = Difference(tick=self._tick, t_ns=logged_ns, what=what)

    @property
    def finished(self) -> bool:
        """Whether it differs or is at its end."""
        return self.difference is not None or self._tick >= len(self._ticks)

    @property
    def hash(self) -> str:
        """The hash of the replay so far."""
        return self._hash.hexdigest()


_WORDS = {
    "q": "measured joints",
    "dq": "measured speeds",
    "opening": "measured opening",
    "command": "command",
    "stop": "stop command",
    "grip": "gripper command",
    "action": "gate answer",
    "rule": "rule of the gate answer",
    "value": "value of the gate answer",
    "limit": "limit of the gate answer",
}


def _what_differs(record: TickRecord, logged: Mapping[str, Any]) -> str | None:
    """Say what of a tick is not as the log has it, the most telling first; None if all is equal."""
    here_bytes = json_bytes("counted", counted(record))
    if here_bytes == json_bytes("counted", logged):
        return None
    here = orjson.loads(here_bytes)
    if len(here["arms"]) != len(logged["arms"]):
        return f"number of arms, {len(here['arms'])} here"
    if here["t_ns"] != logged["t_ns"]:
        return f"time, {here['t_ns']} ns where the log has {logged['t_ns']} ns"
    if here["mode"] != logged["mode"]:
        reason = record.state.mode.reason
        return f"mode, {here['mode']} ({reason}) where the log has {logged['mode']}"
    for mine, its, passed in zip(here["arms"], logged["arms"], record.passed, strict=True):
        for name, word in _WORDS.items():
            if (off := _off(mine[name], its[name], "rad/s" if name == "dq" else "rad")) is not None:
                return f"{word} of {passed.answer.arm}, {off}"
    return "the JSON of what counts in the hash"


def _off(here: Any, there: Any, unit: str) -> str | None:
    """Say how far a value is from the logged one; None if they are equal."""
    if here == there:
        return None
    joints = isinstance(here, list) and isinstance(there, list) and len(here) == len(there)
    if joints and None not in [*here, *there]:
        return f"by up to {np.max(np.abs(np.subtract(here, there))):.3g} {unit}"
    return f"{here} where the log has {there}"


class RecordedLink:
    """The cell's end of a link on which everything is said again that was said then."""

    def __init__(self, recording: Recording) -> None:
        """Say again what a recording holds."""
        self._recording = recording
        self._number = {tick["t_ns"]: number for number, tick in enumerate(recording.ticks)}

    def hear(self, now_ns: int) -> Heard:
        """Return what was said in the tick of that time; nothing where the log has none.

        A tick that failed is not in a log.
        """
        number = self._number.get(now_ns)
        return Heard() if number is None else self._recording.heard(number)

    def send_status(self, status: Status) -> None:
        """Nobody listens."""

    def offer(self, thing: SceneText | Preview, now_ns: int) -> None:
        """Nobody asks."""


class RecordedWorker:
    """Answers what was answered then, in the tick in which it was answered."""

    def __init__(self, recording: Recording) -> None:
        """Answer from a recording."""
        self._answers = recording.answers
        self._due: Iterator[int | None] = iter([t["finished"] for t in recording.ticks])

    def observe(self, commands: Commands) -> None:
        """No twin follows."""

    def submit(self, request: Request) -> None:
        """The answer is known already."""

    def finished(self, t_ns: int) -> Finished | None:
        """Return what was answered in this tick."""
        number = next(self._due, None)
        return None if number is None else self._answers[number]


# ------------------------------------------------------------------------ devices from a log


class _Tape:
    """The arms' part of every tick, read one after the other."""

    def __init__(self, recording: Recording, index: int, key: str) -> None:
        self._samples = iter([tick["arms"][index][key] for tick in recording.ticks])

    def next(self) -> dict[str, Any] | None:
        return next(self._samples, None)


class RecordedArm:
    """Reports again what an arm reported, and takes commands without effect."""

    def __init__(self, spec: ArmSpec, tape: _Tape) -> None:
        """Report from a recording."""
        self.spec = spec
        self._tape = tape

    def start(self) -> None:
        """Nothing to open."""

    def stop(self) -> None:
        """Nothing to close."""

    def read(self) -> ArmState | None:
        """Return the state of the next tick."""
        data = self._tape.next()
        if data is None:
            return None
        return ArmState(
            t_ns=data["t_ns"],
            seq=data["seq"],
            q_rad=_floats(data["q_rad"]),
            dq_rad_s=_floats(data["dq_rad_s"]),
            tau_nm=None if data["tau_nm"] is None else _floats(data["tau_nm"]),
            stopped=data["stopped"],
        )

    def write(self, command: ArmCommand) -> None:
        """No arm moves."""


class RecordedGripper:
    """Reports again what a gripper reported."""

    def __init__(self, spec: GripperSpec, tape: _Tape) -> None:
        """Report from a recording."""
        self.spec = spec
        self._tape = tape

    def start(self) -> None:
        """Nothing to open."""

    def stop(self) -> None:
        """Nothing to close."""

    def read(self) -> GripperState | None:
        """Return the state of the next tick."""
        data = self._tape.next()
        return None if data is None else GripperState(**data)

    def write(self, command: GripperCommand) -> None:
        """No finger moves."""


class RecordedForceTorque:
    """Reports again what a wrist sensor reported."""

    def __init__(self, spec: ForceTorqueSpec, tape: _Tape) -> None:
        """Report from a recording."""
        self.spec = spec
        self._tape = tape

    def start(self) -> None:
        """Nothing to open."""

    def stop(self) -> None:
        """Nothing to close."""

    def read(self) -> Wrench | None:
        """Return the sample of the next tick."""
        data = self._tape.next()
        if data is None:
            return None
        return Wrench(
            t_ns=data["t_ns"],
            seq=data["seq"],
            force_n=_floats(data["force_n"]),
            torque_nm=_floats(data["torque_nm"]),
        )


class RecordedTracker:
    """Reports again where objects were seen."""

    def __init__(self, recording: Recording) -> None:
        """Report from a recording."""
        self._ticks = iter([tick["objects"] for tick in recording.ticks])

    def start(self) -> None:
        """Nothing to open."""

    def stop(self) -> None:
        """Nothing to close."""

    def read(self) -> tuple[ObjectPose, ...]:
        """Return the poses of the next tick."""
        return tuple(
            ObjectPose(
                t_ns=item["t_ns"],
                seq=item["seq"],
                name=item["name"],
                T_world_object=frozen(item["T_world_object"]),
            )
            for item in next(self._ticks, [])
        )


def recorded_devices(recording: Recording, cell: CellModel, simulated: bool) -> CellDevices:
    """Make devices that report again what a recording holds; `simulated` as it was then."""
    arms: list[RecordedArm] = []
    grippers: list[RecordedGripper | None] = []
    wrenches: list[RecordedForceTorque | None] = []
    for i, arm in enumerate(cell.arms):
        spec = ArmSpec(
            name=arm.name,
            robot=arm.model.name,
            joint_names=arm.model.chain.joint_names,
            period_ns=arm.period_ns,
            watchdog_ns=arm.period_ns,
            simulated=simulated,
        )
        arms.append(RecordedArm(spec, _Tape(recording, i, "state")))
        model = arm.model.gripper
        if model is None:
            grippers.append(None)
        else:
            grip_spec = GripperSpec(
                name=arm.name,
                model=model.name,
                opening_min_m=model.opening_min_m,
                opening_max_m=model.opening_max_m,
                force_max_n=model.force_max_n,
                speed_max_m_s=model.speed_max_m_s,
                simulated=simulated,
            )
            grippers.append(RecordedGripper(grip_spec, _Tape(recording, i, "gripper")))
        if not arm.has_wrench:
            wrenches.append(None)
        else:
            wrench_spec = ForceTorqueSpec(
                name=arm.name,
                force_max_n=float("inf"),
                torque_max_nm=float("inf"),
                T_flange_sensor=frozen(np.eye(4)),
                simulated=simulated,
            )
            wrenches.append(RecordedForceTorque(wrench_spec, _Tape(recording, i, "wrench")))
    return CellDevices(
        arms=tuple(arms),
        grippers=tuple(grippers),
        wrenches=tuple(wrenches),
        tracker=RecordedTracker(recording),
    )


# -------------------------------------------------------------------------------- plain data back


def _floats(values: list[float | None]) -> Any:
    return frozen([np.nan if v is None else v for v in values])


def _operator(data: Mapping[str, Any]) -> OperatorInput:
    pose = data["T_seat_hand"]
    return OperatorInput(
        **{k: v for k, v in data.items() if k != "T_seat_hand"},
        T_seat_hand=None if pose is None else frozen(pose),
    )


def _intent(data: Mapping[str, Any], seq: int) -> Intent:
    goal = data.get("goal")
    return Intent(
        t_ns=data["t_ns"],
        seq=seq,
        kind=data["kind"],
        source=data["source"],
        digest=data.get("digest"),
        nonce=data.get("nonce"),
        goal=None
        if goal is None
        else Goal(
            kind=goal["kind"],
            task=goal.get("task"),
            arm=goal.get("arm"),
            T_base_tool=None if goal.get("T_base_tool") is None else frozen(goal["T_base_tool"]),
            q_rad=None if goal.get("q_rad") is None else frozen(goal["q_rad"]),
        ),
    )
