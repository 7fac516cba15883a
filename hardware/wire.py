"""The bytes between operator and cell: one header, then a payload per kind of message.

Header, little-endian, 44 bytes: magic, version u16, kind u16, payload length u32, session u32, seq
u64, t_ns i64, expires_ns i64, CRC-32 u32 of the 40 bytes before it and of the payload. A session is
a random number that a sender draws at its start: seq begins anew with it. Time stamps are the
sender's. Reading trusts nothing: a message is valid or a `LinkError` value that names the field.
"""

from __future__ import annotations

import math
import re
import struct
import zlib
from enum import IntEnum
from typing import NamedTuple, get_args

import numpy as np

from brain.errors import LinkError
from brain.geometry import Array, frozen, is_rotation
from brain.types import NS_PER_S, Manner, OperatorInput, Source

MAGIC = b"FARM"
VERSION = 1
POSE_LIFE_MAX_NS = NS_PER_S  # a hand pose is never good for longer, whatever its sender says
INTENT_LIFE_MAX_NS = 5 * NS_PER_S
POSITION_MAX_M = 100.0  # beyond any room; refuses garbage that happens to be finite

_HEADER = struct.Struct("<4sHHIIQqqI")
_CRC = struct.Struct("<I")
_POSE = struct.Struct("<BBH12dd")
_PONG = struct.Struct("<Iqq")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
_SOURCES: tuple[Source, ...] = get_args(Source)
_TRACKED, _ENGAGED, _GRIP, _MANNER = 1, 2, 4, 8
_MANNERS: tuple[Manner, ...] = ("normal", "gently", "quickly")
HEADER_SIZE = _HEADER.size


class Kind(IntEnum):
    """Kinds of messages; the numbers are the wire's."""

    POSE = 1
    STOP = 2
    INTENT = 3
    STATUS = 4
    PING = 5
    PONG = 6
    WANT = 7
    PREVIEW = 8
    SCENE = 9


PAYLOAD_MAX = {
    Kind.POSE: _POSE.size + 64,
    Kind.STOP: 0,
    Kind.INTENT: 64 * 1024,
    Kind.STATUS: 64 * 1024,
    Kind.PING: 0,
    Kind.PONG: _PONG.size,
    Kind.WANT: 64,
    Kind.PREVIEW: 4 * 1024 * 1024,
    Kind.SCENE: 1024 * 1024,
}


class Message(NamedTuple):
    """A message whose header is good; its payload is not looked at yet."""

    kind: Kind
    session: int
    seq: int
    t_ns: int
    expires_ns: int
    payload: bytes


def pack(
    kind: Kind, payload: bytes = b"", *, session: int, seq: int, t_ns: int, expires_ns: int
) -> bytes:
    """Return the bytes of a message.

    Raises:
        LinkError: a payload over the bound of its kind, or a number that does not fit.
    """
    if len(payload) > PAYLOAD_MAX[kind]:
        raise LinkError(f"{kind.name} payload: {len(payload)} bytes, at most {PAYLOAD_MAX[kind]}")
    try:
        head = _HEADER.pack(MAGIC, VERSION, kind, len(payload), session, seq, t_ns, expires_ns, 0)[
            : -_CRC.size
        ]
    except struct.error as error:
        raise LinkError(f"{kind.name} header: {error}") from None
    return head + _CRC.pack(zlib.crc32(payload, zlib.crc32(head))) + payload


def unpack(data: bytes) -> Message | LinkError:
    """Read and check the header, the length and the CRC."""
    if len(data) < HEADER_SIZE:
        return LinkError(f"header: {len(data)} bytes, needs {HEADER_SIZE}")
    magic, version, number, length, session, seq, t_ns, expires_ns, crc = _HEADER.unpack_from(data)
    if magic != MAGIC:
        return LinkError(f"magic: {magic!r}, must be {MAGIC!r}")
    if version != VERSION:
        return LinkError(f"version: {version}, this side speaks {VERSION}")
    if number not in PAYLOAD_MAX:
        return LinkError(f"kind: {number} is unknown")
    kind = Kind(number)
    if length > PAYLOAD_MAX[kind]:
        return LinkError(f"length: {length} bytes, {kind.name} has at most {PAYLOAD_MAX[kind]}")
    if len(data) != HEADER_SIZE + length:
        return LinkError(f"length: says {length} bytes, {len(data) - HEADER_SIZE} follow")
    payload = data[HEADER_SIZE:]
    if crc != zlib.crc32(payload, zlib.crc32(data[: HEADER_SIZE - _CRC.size])):
        return LinkError("CRC: does not match")
    return Message(kind, session, seq, t_ns, expires_ns, payload)


# ---------------------------------------------------------------- operator pose


def pack_pose(sample: OperatorInput, session: int) -> bytes:
    """Return the bytes of a sample; every float64 of it arrives unchanged.

    Raises:
        LinkError: a field is not valid; the receiver would refuse it.
    """
    _check(sample.tracked == (sample.T_seat_hand is not None), "tracked: goes with T_seat_hand")
    pose, grip = np.zeros(12), 0.0
    _check(sample.manner in _MANNERS, f"manner: {sample.manner!r} is unknown")
    flags = _TRACKED * sample.tracked + _ENGAGED * sample.engaged
    flags += _MANNER * _MANNERS.index(sample.manner)
    if sample.T_seat_hand is not None:
        pose = checked_pose("T_seat_hand", sample.T_seat_hand)[:3].ravel()
    if sample.grip is not None:
        flags, grip = flags + _GRIP, sample.grip
    _check_pose_fields(sample.t_ns, sample.expires_ns, grip, sample.arm)
    head = _POSE.pack(_SOURCES.index(sample.source), flags, len(sample.arm), *pose, grip)
    return pack(
        Kind.POSE,
        head + sample.arm.encode(),
        session=session,
        seq=sample.seq,
        t_ns=sample.t_ns,
        expires_ns=sample.expires_ns,
    )


def unpack_pose(message: Message) -> OperatorInput | LinkError:
    """Read a sample; its time stamps are still the sender's."""
    try:
        return _read_pose(message)
    except LinkError as error:
        return error


def _read_pose(message: Message) -> OperatorInput:
    payload = message.payload
    _check(len(payload) >= _POSE.size, f"pose: {len(payload)} bytes, at least {_POSE.size}")
    source, flags, name_length, *pose, grip = _POSE.unpack_from(payload)
    _check(source < len(_SOURCES), f"source: {source} is unknown")
    _check(flags // _MANNER < len(_MANNERS), f"flags: {flags:#x} has unknown bits")
    name = payload[_POSE.size :]
    _check(len(name) == name_length, f"arm: says {name_length} bytes, {len(name)} follow")
    _check(name.isascii(), "arm: not ASCII")
    arm, tracked = name.decode("ascii"), bool(flags & _TRACKED)
    _check_pose_fields(message.t_ns, message.expires_ns, grip, arm)
    _check(bool(flags & _GRIP) or grip == 0.0, "grip: given but not flagged")
    _check(tracked or not any(pose), "T_seat_hand: given but not tracked")
    T_seat_hand = None
    if tracked:
        T_seat_hand = checked_pose("T_seat_hand", np.array([*pose, 0, 0, 0, 1]).reshape(4, 4))
    return OperatorInput(
        t_ns=message.t_ns,
        seq=message.seq,
        expires_ns=message.expires_ns,
        source=_SOURCES[source],
        tracked=tracked,
        T_seat_hand=T_seat_hand,
        engaged=bool(flags & _ENGAGED),
        grip=grip if flags & _GRIP else None,
        arm=arm,
        manner=_MANNERS[flags // _MANNER],
    )


def _check_pose_fields(t_ns: int, expires_ns: int, grip: float, arm: str) -> None:
    life_ns = expires_ns - t_ns
    _check(
        0 < life_ns <= POSE_LIFE_MAX_NS,
        f"expires_ns: {life_ns} ns after t_ns, allowed are 1 to {POSE_LIFE_MAX_NS}",
    )
    _check(0.0 <= grip <= 1.0, f"grip: {grip}, allowed are 0 to 1")  # false for NaN
    _check(_NAME.fullmatch(arm) is not None, f"arm: {arm!r} is no name")


def checked_pose(field: str, T: Array) -> Array:
    """Return a transform (4, 4) read-only, known to be finite, rigid and in the room.

    Raises:
        LinkError: it is not; names the field.
    """
    problem = _pose_problem(T)
    if problem is not None:
        raise LinkError(f"{field}: {problem}")
    return frozen(T)


def _pose_problem(T: Array) -> str | None:
    if T.shape != (4, 4):
        return f"shape {T.shape}, must be (4, 4)"
    numbers = T.ravel().tolist()
    if not all(map(math.isfinite, numbers)):
        return "not finite"
    if numbers[12:] != [0.0, 0.0, 0.0, 1.0]:
        return "last row is not 0 0 0 1"
    if max(map(abs, numbers[3:12:4])) > POSITION_MAX_M:
        return f"over {POSITION_MAX_M} m away"
    return None if is_rotation(T) else "not a rotation"


def _check(good: bool, sentence: str) -> None:
    if not good:
        raise LinkError(sentence)


# ---------------------------------------------------------------- clock comparison


class Pong(NamedTuple):
    """Answer to a ping: whose it was, when it was sent (its clock), when it arrived (ours)."""

    ping_session: int
    ping_t_ns: int
    received_t_ns: int


def pack_pong(pong: Pong, *, session: int, seq: int, t_ns: int) -> bytes:
    """Return the bytes of a pong that leaves at t_ns."""
    payload = _PONG.pack(*pong)
    return pack(Kind.PONG, payload, session=session, seq=seq, t_ns=t_ns, expires_ns=t_ns)


def unpack_pong(message: Message) -> Pong | LinkError:
    """Read a pong."""
    if len(message.payload) != _PONG.size:
        return LinkError(f"pong: {len(message.payload)} bytes, must be {_PONG.size}")
    return Pong(*_PONG.unpack(message.payload))
