"""Payloads that are JSON (intent, status, scene) or JSON with arrays behind it (preview).

Unknown keys, wrong types, lengths over a bound and numbers that are not finite are refused with the
field's name. In a status NaN and infinity are written as null: a field that may be None arrives as
None, a gate answer's number as NaN, and any other makes the status invalid.
"""

from __future__ import annotations

import struct
from dataclasses import replace
from typing import Annotated, Any

import numpy as np
import orjson
from msgspec.structs import asdict
from pydantic import BaseModel, Field, TypeAdapter, ValidationError

from brain.errors import LinkError
from brain.geometry import Array, frozen
from brain.record import Record
from brain.types import Goal, GoalKind, Intent, IntentKind, Source
from hardware.fields import (
    JOINTS_MAX,
    SENTENCE_MAX,
    STRICT,
    DigestHex,
    Joints,
    Name,
    Pose,
    Sentence,
    problem,
)
from hardware.status import ARMS_MAX, Preview, PreviewArm, SceneText, Status
from hardware.wire import INTENT_LIFE_MAX_NS, Kind, Message, pack

_U32 = struct.Struct("<I")
_OPTIONS = orjson.OPT_SERIALIZE_NUMPY

# ---------------------------------------------------------------- intent


class GoalModel(BaseModel):
    """A goal as JSON."""

    model_config = STRICT

    kind: GoalKind
    task: Name | None = None
    arm: Name | None = None
    T_base_tool: Pose | None = None
    q_rad: Joints | None = None


class IntentModel(BaseModel):
    """An intent as JSON; time and seq travel outside it."""

    model_config = STRICT

    kind: IntentKind
    source: Source
    goal: GoalModel | None = None
    digest: DigestHex | None = None
    nonce: Name | None = None

    def intent(self, t_ns: int, seq: int) -> Intent:
        """Return it as the brain's type.

        Raises:
            LinkError: fields are missing or do not belong together.
        """
        made = Intent(
            t_ns=t_ns,
            seq=seq,
            kind=self.kind,
            source=self.source,
            goal=None if self.goal is None else Goal(**dict(self.goal)),
            digest=self.digest,
            nonce=self.nonce,
        )
        _check_intent(made)
        return made


_NEEDED_BY_GOAL: dict[GoalKind, tuple[str, ...]] = {
    "task": ("task",),
    "pose": ("arm", "T_base_tool"),
    "joints": ("arm", "q_rad"),
    "home": ("arm",),
}
_NEEDED_BY_INTENT: dict[IntentKind, tuple[str, ...]] = {
    "rehearse": ("goal",),
    "commit": ("digest", "nonce"),
}


def _check_intent(intent: Intent) -> None:
    needed = _NEEDED_BY_INTENT.get(intent.kind, ())
    for name in ("goal", "digest", "nonce"):
        if (getattr(intent, name) is not None) != (name in needed):
            raise LinkError(f"{name}: {intent.kind} {'needs' if name in needed else 'has no'} one")
    if intent.goal is not None:
        needed = _NEEDED_BY_GOAL[intent.goal.kind]
        for name in ("task", "arm", "T_base_tool", "q_rad"):
            optional = name == "arm" and intent.goal.kind == "task"
            if not optional and (getattr(intent.goal, name) is not None) != (name in needed):
                kind = intent.goal.kind
                raise LinkError(
                    f"goal.{name}: {kind} {'needs' if name in needed else 'has no'} one"
                )


def intent_json(intent: Intent) -> dict[str, Any]:
    """Return what goes into JSON: kind, source, and what else is given.

    Raises:
        LinkError: fields are missing, superfluous or not finite.
    """
    _check_intent(intent)
    out: dict[str, Any] = {"kind": intent.kind, "source": intent.source}
    if intent.goal is not None:
        goal = {name: getattr(intent.goal, name) for name in GoalModel.model_fields}
        out["goal"] = {k: np.asarray(v).tolist() for k, v in goal.items() if v is not None}
    out |= {k: v for k in ("digest", "nonce") if (v := getattr(intent, k)) is not None}
    try:
        IntentModel.model_validate_json(orjson.dumps(out))
    except ValidationError as error:
        raise LinkError(problem(error)) from None
    return out


def pack_intent(intent: Intent, *, session: int, expires_ns: int) -> bytes:
    """Return the bytes of an intent that is void from `expires_ns` on.

    Raises:
        LinkError: the intent is not valid.
    """
    payload = orjson.dumps(intent_json(intent))
    return pack(
        Kind.INTENT,
        payload,
        session=session,
        seq=intent.seq,
        t_ns=intent.t_ns,
        expires_ns=expires_ns,
    )


def unpack_intent(message: Message) -> Intent | LinkError:
    """Read an intent; its time stamp is still the sender's."""
    life_ns = message.expires_ns - message.t_ns
    if not 0 < life_ns <= INTENT_LIFE_MAX_NS:
        return LinkError(
            f"expires_ns: {life_ns} ns after t_ns, allowed are 1 to {INTENT_LIFE_MAX_NS}"
        )
    try:
        model = IntentModel.model_validate_json(message.payload)
        return model.intent(message.t_ns, message.seq)
    except ValidationError as error:
        return LinkError(problem(error))
    except LinkError as error:
        return error


# ---------------------------------------------------------------- status and scene

_STATUS = TypeAdapter(Status)
_SCENE = TypeAdapter(SceneText)


def pack_status(status: Status, session: int) -> bytes:
    """Return the bytes of a status; overlong sentences are cut.

    Raises:
        LinkError: too large.
    """
    status = replace(
        status,
        reason=status.reason[:SENTENCE_MAX],
        note=status.note[:SENTENCE_MAX],
        verdict=status.verdict and status.verdict[:SENTENCE_MAX],
    )
    payload = orjson.dumps(status, default=_plain, option=_OPTIONS)
    t_ns = status.t_ns
    return pack(Kind.STATUS, payload, session=session, seq=status.seq, t_ns=t_ns, expires_ns=t_ns)


def unpack_status(message: Message) -> Status | LinkError:
    """Read a status."""
    try:
        return _STATUS.validate_json(message.payload)
    except ValidationError as error:
        return LinkError(problem(error))


def pack_scene(scene: SceneText, *, session: int, seq: int, t_ns: int) -> bytes:
    """Return the bytes of a scene.

    Raises:
        LinkError: too large.
    """
    payload = orjson.dumps(scene)
    return pack(Kind.SCENE, payload, session=session, seq=seq, t_ns=t_ns, expires_ns=t_ns)


def unpack_scene(message: Message) -> SceneText | LinkError:
    """Read a scene."""
    try:
        return _SCENE.validate_json(message.payload)
    except ValidationError as error:
        return LinkError(problem(error))


def _plain(value: Any) -> Any:
    """Help orjson with records, and with arrays that are not contiguous."""
    if isinstance(value, Record):
        return asdict(value)
    if isinstance(value, np.ndarray):
        return value.tolist()
    raise TypeError(f"{type(value).__name__} has no JSON")


# ---------------------------------------------------------------- preview


class _PreviewArmHead(BaseModel):
    """Which columns an arm has, in the order they follow."""

    model_config = STRICT

    name: Name
    dof: Annotated[int, Field(ge=1, le=JOINTS_MAX)]
    opening_m: bool
    clearance_m: bool
    force_n: bool


class _PreviewHead(BaseModel):
    """Everything of a preview but its numbers."""

    model_config = STRICT

    digest: DigestHex
    rows: Annotated[int, Field(ge=1, le=2**20)]
    arms: Annotated[list[_PreviewArmHead], Field(min_length=1, max_length=ARMS_MAX)]
    verdict: Annotated[dict[Name, Sentence | bool | int | float | None], Field(max_length=64)]


_COLUMNS = ("opening_m", "clearance_m", "force_n")


def pack_preview(preview: Preview, *, session: int, seq: int, t_ns: int) -> bytes:
    """Return the bytes of a preview: u32 length of a JSON head, head, int64 times, float64 arrays.

    Raises:
        LinkError: too large, not finite, or arrays of unequal length.
    """
    n = len(preview.t_ns)
    arms, parts = [], [preview.t_ns.astype("<i8").tobytes()]
    for arm in preview.arms:
        columns = {name: getattr(arm, name) for name in _COLUMNS}
        arrays = {"q_rad": arm.q_rad} | {k: v for k, v in columns.items() if v is not None}
        for name, array in arrays.items():
            if len(array) != n or not np.isfinite(array).all():
                raise LinkError(f"{arm.name}.{name}: must be {n} finite rows")
            parts.append(np.ascontiguousarray(array, dtype="<f8").tobytes())
        present = {name: column is not None for name, column in columns.items()}
        arms.append({"name": arm.name, "dof": arm.q_rad.shape[1], **present})
    head = orjson.dumps(
        {"digest": preview.digest, "rows": n, "arms": arms, "verdict": dict(preview.verdict)},
        option=_OPTIONS,
    )
    payload = b"".join([_U32.pack(len(head)), head, *parts])
    return pack(Kind.PREVIEW, payload, session=session, seq=seq, t_ns=t_ns, expires_ns=t_ns)


def unpack_preview(message: Message) -> Preview | LinkError:
    """Read a preview."""
    payload = message.payload
    if len(payload) < _U32.size:
        return LinkError("preview: no head")
    at = _U32.size + _U32.unpack_from(payload)[0]
    try:
        head = _PreviewHead.model_validate_json(payload[_U32.size : at])
    except ValidationError as error:
        return LinkError(problem(error))
    n = head.rows
    columns = sum(a.dof + a.opening_m + a.clearance_m + a.force_n for a in head.arms)
    if len(payload) != at + 8 * n * (1 + columns):
        return LinkError(f"preview: {len(payload) - at} bytes behind the head of {n} rows")
    t_ns = np.frombuffer(payload, "<i8", n, at).astype(np.int64)
    numbers = np.frombuffer(payload, "<f8", n * columns, at + 8 * n)
    if t_ns[0] < 0 or not (t_ns[1:] > t_ns[:-1]).all():
        return LinkError("t_ns: does not rise from 0 or later")
    if not np.isfinite(numbers).all():
        return LinkError("preview: a number is not finite")
    t_ns.flags.writeable = False
    arms, used = [], 0

    def take(width: int) -> Array:
        nonlocal used
        block = numbers[used : used + n * width]
        used += n * width
        return frozen(block.reshape(n, width) if width > 1 else block)

    for arm in head.arms:
        q_rad = take(arm.dof).reshape(n, arm.dof)
        present = {name: take(1) if getattr(arm, name) else None for name in _COLUMNS}
        arms.append(PreviewArm(name=arm.name, q_rad=q_rad, **present))
    return Preview(digest=head.digest, t_ns=t_ns, arms=tuple(arms), verdict=head.verdict)
