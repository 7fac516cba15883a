"""A tick as a log keeps it.

Everything that went in and came out, and a running hash over what counts.

The hash of a run covers each tick's measured state, command and gate answer, but no wall time, path
or version: two runs are equal when their hashes are. Each tick carries the hash so far, so that a
replay can name the first tick that differs.
"""

from __future__ import annotations

import hashlib
import traceback
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

from msgspec.structs import asdict

from brain.errors import LogError
from brain.geometry import Array, frozen
from brain.record import Record
from brain.rehearsal import (
    GripEvent,
    Prediction,
    Rehearsal,
    Stream,
    Verdict,
    digest_of,
)
from brain.types import Answer, Goal
from brain.world import Held
from hardware.log import json_bytes
from hardware.messages import intent_json
from hardware.spine import TickRecord


class RunHash:
    """The hash of a run so far: SHA-256 over the JSON of what counts of each tick."""

    def __init__(self) -> None:
        """Start an empty run."""
        self._sha = hashlib.sha256()

    def add(self, record: TickRecord) -> str:
        """Take a tick; return the hash up to and with it."""
        self._sha.update(json_bytes("counted", counted(record)))
        return self._sha.hexdigest()

    def hexdigest(self) -> str:
        """Return the hash up to now."""
        return self._sha.hexdigest()


def counted(record: TickRecord) -> dict[str, Any]:
    """All of a tick that counts in the hash; `counted_in` finds the same in a log."""
    seen, grips = record.seen, record.commands.grippers
    return {
        "t_ns": seen.t_ns,
        "mode": str(record.state.mode.mode),
        "arms": [
            {
                "q": None if state is None else state.q_rad,
                "dq": None if state is None else state.dq_rad_s,
                "opening": None if gripper is None else gripper.opening_m,
                "command": passed.command.q_rad,
                "stop": passed.command.stop,
                "grip": None if grip is None else grip.opening_m,
                "action": str(passed.answer.action),
                "rule": passed.answer.rule,
                "value": passed.answer.value,
                "limit": passed.answer.limit,
            }
            for passed, state, gripper, grip in zip(
                record.passed, seen.states, seen.grippers, grips, strict=True
            )
        ],
    }


def counted_in(tick: Mapping[str, Any]) -> dict[str, Any]:
    """Return all of a logged tick that counts in the hash.

    Raises:
        KeyError: something is not there.
        TypeError: something is of another kind.
    """
    return {
        "t_ns": tick["t_ns"],
        "mode": tick["mode"],
        "arms": [
            {
                "q": None if arm["state"] is None else arm["state"]["q_rad"],
                "dq": None if arm["state"] is None else arm["state"]["dq_rad_s"],
                "opening": None if arm["gripper"] is None else arm["gripper"]["opening_m"],
                "command": arm["command_rad"],
                "stop": arm["stop"],
                "grip": arm["grip_m"],
                "action": arm["answer"]["action"],
                "rule": arm["answer"]["rule"],
                "value": arm["answer"]["value"],
                "limit": arm["answer"]["limit"],
            }
            for arm in tick["arms"]
        ],
    }


# ------------------------------------------------------------------------------------ as JSON


def tick_json(record: TickRecord, run_hash: str) -> dict[str, Any]:
    """Everything about a tick, for the log; `inputs_of` reads the inputs back bit for bit."""
    seen, state, play = record.seen, record.state, record.state.playback
    return {
        "t_ns": seen.t_ns,
        "hash": run_hash,
        "mode": str(state.mode.mode),
        "reason": state.mode.reason,
        "note": state.note,
        "refused": record.wanted.refused,
        "world_version": state.world.version,
        "held": {h.arm: h.name for h in state.world.held},
        "digest": None if play is None else play.digest,
        "row": None if play is None else play.phase,
        "rows": None if play is None else play.stream.rows,
        "departure": {
            "joint_rad": state.departure.joint_rad,
            "force_n": state.departure.force_n,
            "opening_m": state.departure.opening_m,
        },
        "arms": [_arm_json(record, i) for i in range(len(record.passed))],
        "operator": _fields(seen.operator),
        "intents": [{"t_ns": i.t_ns, "source": i.source} | intent_json(i) for i in seen.intents],
        "stop": seen.stop,
        "objects": [
            {"t_ns": o.t_ns, "seq": o.seq, "name": o.name, "T_world_object": o.T_world_object}
            for o in seen.objects
        ],
        "finished": None if seen.finished is None else seen.finished.number,
    }


def _arm_json(record: TickRecord, i: int) -> dict[str, Any]:
    seen, passed, grip = record.seen, record.passed[i], record.commands.grippers[i]
    return {
        "state": _fields(seen.states[i]),
        "gripper": _fields(seen.grippers[i]),
        "wrench": _fields(seen.wrenches[i]),
        "force_n": record.wanted.force_n[i],
        "clearance_m": passed.clearance_m,
        "around_m": passed.around_m,
        "command_rad": passed.command.q_rad,
        "stop": passed.command.stop,
        "grip_m": None if grip is None else grip.opening_m,
        "answer": answer_json(passed.answer),
    }


def answer_json(answer: Answer) -> dict[str, Any]:
    """Return a gate answer as plain data."""
    return {
        "action": str(answer.action),
        "rule": answer.rule,
        "value": answer.value,
        "limit": answer.limit,
        "arm": answer.arm,
    }


def fault_json(error: Exception) -> dict[str, str]:
    """Return an exception of the cycle as plain data, with the place where it came from."""
    return {"error": repr(error), "trace": "".join(traceback.format_exception(error))}


def _fields(sample: Record | None) -> dict[str, Any] | None:
    return None if sample is None else asdict(sample)


# ------------------------------------------------------------------------- a rehearsal in a log


def rehearsal_json(rehearsal: Rehearsal) -> dict[str, Any]:
    """Return all of a rehearsal as plain data; `rehearsal_from` reads it back bit for bit."""
    return dict(_plain(rehearsal))


def _plain(value: Any) -> Any:
    if is_dataclass(value):
        return {f.name: _plain(getattr(value, f.name)) for f in fields(value)}
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    return value


def rehearsal_from(data: Mapping[str, Any]) -> Rehearsal:
    """Read back a rehearsal from a log.

    Raises:
        LogError: fields are missing, or its digest does not fit.
    """
    try:
        goal, stream, predicted = data["goal"], data["stream"], data["prediction"]
        found = Rehearsal(
            **{
                name: data[name]
                for name in ("cell", "scene_digest", "limits", "tick_ns", "made_ns", "digest")
            },
            world_version=data["world_version"],
            goal=Goal(
                kind=goal["kind"],
                task=goal["task"],
                arm=goal["arm"],
                T_base_tool=_array(goal["T_base_tool"]),
                q_rad=_array(goal["q_rad"]),
            ),
            held=tuple(
                Held(arm=h["arm"], name=h["name"], T_tool_object=frozen(h["T_tool_object"]))
                for h in data["held"]
            ),
            tool_mass_kg=tuple(data["tool_mass_kg"]),
            stream=Stream(
                q_rad=frozen(stream["q_rad"]),
                opening_m=frozen(stream["opening_m"]),
                grip_force_n=frozen(stream["grip_force_n"]),
                events=tuple(
                    GripEvent(
                        row=e["row"],
                        arm=e["arm"],
                        name=e["name"],
                        T_tool_object=_array(e["T_tool_object"]),
                        T_world_object=_array(e["T_world_object"]),
                    )
                    for e in stream["events"]
                ),
            ),
            prediction=Prediction(**{k: frozen(predicted[k]) for k in Prediction.__slots__}),
            verdict=Verdict(**data["verdict"]),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise LogError(f"rehearsal in the log: {error!r}") from None
    if digest_of(found) != found.digest:
        raise LogError(f"rehearsal {found.digest[:12]} in the log does not fit its digest")
    return found


def _array(value: Any) -> Array | None:
    return None if value is None else frozen(value)
