"""Logs of runs: MCAP files with JSON messages, which Foxglove opens and Python reads back exactly.

The head (resolved settings, scene, versions, seed) is a metadata record at the front, one JSON text
per key. A chunk is closed after each second of log time, so that a killed run leaves a log that can
be read to its last second. Floats come back bit for bit; NaN and infinity are written as null.
Damage shows: chunks and head carry a CRC-32, so does the whole file once it is closed, and the
messages of a channel are numbered.
"""

from __future__ import annotations

import os
import struct
import zlib
from collections.abc import Iterator, Mapping
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
import orjson
import zstandard
from mcap.data_stream import ReadDataStream
from mcap.exceptions import McapError
from mcap.opcode import Opcode
from mcap.records import Channel, Chunk, DataEnd, Message, Metadata, Schema
from mcap.stream_reader import breakup_chunk
from mcap.writer import CompressionType, Writer

from brain.errors import LogError
from brain.types import NS_PER_S

FORMAT_VERSION = 1
TICK = "/tick"
_HEAD_NAME, _HEAD_CRC = "forearm", "crc32"
_MAGIC = b"\x89MCAP0\r\n"
_FLUSH_NS = NS_PER_S
_RECORD = struct.Struct("<BQ")
_FOOTER_END = struct.Struct("<I8s")
_MESSAGE_MAX = 16 * 1024 * 1024
_CHUNK_SIZE = 8 * 1024 * 1024  # a chunk ends with the message that goes over this
_RECORD_MAX = _CHUNK_SIZE + _MESSAGE_MAX + 1024 * 1024  # what a reader will hold, packed or not
_OPTIONS = orjson.OPT_SERIALIZE_NUMPY


class LogWriter:
    """Writes one log. Ticks and events go in as they happen."""

    def __init__(self, path: Path, head: Mapping[str, Any]) -> None:
        """Start the file and put the head on disk.

        Raises:
            LogError: the file exists or cannot be written, or the head has no JSON.
        """
        self.path = path
        texts = {"format_version": str(FORMAT_VERSION)}
        texts |= {key: json_bytes(key, value).decode() for key, value in head.items()}
        try:
            self._file: BinaryIO = path.open("xb")
        except OSError as error:
            raise LogError(f"log {path}: {error.strerror}") from None
        self._writer = Writer(self._file, _CHUNK_SIZE, CompressionType.ZSTD, enable_data_crcs=True)
        self._writer.start(profile="", library="forearm")
        self._writer.add_metadata(_HEAD_NAME, texts | {_HEAD_CRC: _head_crc(texts)})
        self._channels: dict[str, int] = {}
        self._sequence: dict[str, int] = {}
        self._flush_ns: int | None = None
        self._flush()

    def tick(self, record: Mapping[str, Any]) -> None:
        """Write a tick; `record["t_ns"]` is its time.

        Raises:
            LogError: a value has no JSON, or the disk is full.
        """
        self.event(TICK, record["t_ns"], record)

    def event(self, channel: str, t_ns: int, record: Mapping[str, Any]) -> None:
        """Write a record on a channel such as `/operator`; its first record shapes the schema.

        Raises:
            LogError: a value has no JSON, or the disk is full.
        """
        data = json_bytes(channel, record)
        if len(data) > _MESSAGE_MAX:
            raise LogError(f"{channel}: {len(data)} bytes, at most {_MESSAGE_MAX}")
        if channel not in self._channels:
            self._channels[channel] = self._register(channel, orjson.loads(data))
            self._sequence[channel] = 0
        self._sequence[channel] += 1
        try:
            self._writer.add_message(
                self._channels[channel], t_ns, data, t_ns, self._sequence[channel]
            )
        except (OSError, struct.error) as error:
            raise LogError(f"log {self.path}, {channel} at {t_ns} ns: {error}") from None
        if self._flush_ns is None:
            self._flush_ns = t_ns + _FLUSH_NS
        elif t_ns >= self._flush_ns:
            self._flush_ns = t_ns + _FLUSH_NS
            self._flush()

    def close(self) -> None:
        """Write the index and close the file; a second call does nothing."""
        if self._file.closed:
            return
        try:
            self._writer.finish()
            self._file.close()
        except OSError as error:
            raise LogError(f"log {self.path}: {error.strerror}") from None

    def _register(self, channel: str, example: dict[str, Any]) -> int:
        schema = orjson.dumps(_schema(example))
        schema_id = self._writer.register_schema(f"forearm{channel}", "jsonschema", schema)
        return int(self._writer.register_channel(channel, "json", schema_id))

    def _flush(self) -> None:
        try:
            self._writer.flush()
        except OSError as error:
            raise LogError(f"log {self.path}: {error.strerror}") from None


def json_bytes(name: str, value: Any) -> bytes:
    """Return plain data and arrays as JSON; NaN and infinity become null.

    Raises:
        LogError: a value has no JSON; `name` says where.
    """
    try:
        return orjson.dumps(value, default=_plain, option=_OPTIONS)
    except TypeError as error:  # orjson's own is one as well
        raise LogError(f"{name}: {error}") from None


def _head_crc(texts: Mapping[str, str]) -> str:
    return str(zlib.crc32(orjson.dumps(sorted(texts.items()))))


def _plain(value: Any) -> Any:
    """Help orjson with arrays that are not contiguous."""
    if isinstance(value, np.ndarray):
        return value.tolist()
    raise TypeError(f"{type(value).__name__} has no JSON")


def _schema(example: Any) -> dict[str, Any]:
    """Return a JSON schema of what Foxglove can plot in an object: numbers, texts, lists, objects.

    What it cannot read in a schema (null, lists in lists) is left out; the messages still hold it.
    Source: github.com/foxglove/studio, packages/mcap-support/src/parseJsonSchema.ts @ 9abf665.
    """
    if isinstance(example, dict):
        parts = {key: part for key, value in example.items() if (part := _schema(value))}
        return {"type": "object", "properties": parts}
    if isinstance(example, list):
        items = _schema(example[0]) if example else {}
        return {"type": "array", "items": items} if items.get("type", "array") != "array" else {}
    if isinstance(example, bool):
        return {"type": "boolean"}
    if isinstance(example, (int, float)):
        return {"type": "number"}
    return {"type": "string"} if isinstance(example, str) else {}


class Record(NamedTuple):
    """One record of a log."""

    channel: str
    t_ns: int
    data: dict[str, Any]


class LogReader:
    """Reads a log in order, chunk by chunk; `head` is there at once."""

    def __init__(self, path: Path, allow_truncated: bool = False) -> None:
        """Open a log and read its head.

        With `allow_truncated` a log that was cut off (a killed run) is read up to the cut; damage
        inside is an error all the same.

        Raises:
            LogError: missing, empty, foreign, cut off (saying the last good tick) or damaged.
        """
        self.path = path
        try:
            self._size = path.stat().st_size
            with path.open("rb") as file:
                start = file.read(len(_MAGIC))
                file.seek(-min(self._size, len(_MAGIC)), os.SEEK_END)
                end = file.read()
        except OSError as error:
            raise LogError(f"log {path}: {error.strerror}") from None
        if start != _MAGIC:
            raise LogError(f"log {path}: {'empty' if not start else 'not an MCAP file'}")
        self.truncated = end != _MAGIC or self._size < 2 * len(_MAGIC)
        self.head = self._read_head()
        if self.truncated and not allow_truncated:
            raise LogError(f"log {path}: cut off{self._last_good()}")

    def records(self) -> Iterator[Record]:
        """Yield every record in the order it was written.

        Raises:
            LogError: damage, saying the last good tick.
        """
        ticks, t_ns = 0, 0
        channels: dict[int, str] = {}
        numbers: dict[int, int] = {}
        try:
            for part in self._parts():
                if isinstance(part, Channel):
                    channels[part.id] = part.topic
                elif isinstance(part, Message):
                    number = numbers[part.channel_id] = numbers.get(part.channel_id, 0) + 1
                    if part.sequence != number:
                        raise LogError(f"message {part.sequence} where {number} should be")
                    record = _record(channels, part)
                    if record.channel == TICK:
                        ticks, t_ns = ticks + 1, record.t_ns
                    yield record
        except _DAMAGE as error:
            after = f" after {ticks} good ticks, the last at {t_ns} ns"
            raise LogError(f"log {self.path}: damaged{after}: {error}") from None

    def ticks(self) -> Iterator[dict[str, Any]]:
        """Yield the ticks in order. Raises as `records`."""
        return (record.data for record in self.records() if record.channel == TICK)

    def events(self, channel: str | None = None) -> Iterator[Record]:
        """Yield what is no tick, of one channel or of all. Raises as `records`."""
        for record in self.records():
            if record.channel == channel or (channel is None and record.channel != TICK):
                yield record

    def _read_head(self) -> dict[str, Any]:
        try:
            for part in self._parts():
                if isinstance(part, Metadata) and part.name == _HEAD_NAME:
                    return _check_head(part.metadata)
                if isinstance(part, (Channel, Message)):
                    break
        except _DAMAGE as error:
            raise LogError(f"log {self.path}: head: {error}") from None
        raise LogError(f"log {self.path}: has no head of this program")

    def _last_good(self) -> str:
        """Say how far a log that was cut off can be read."""
        ticks = [record.t_ns for record in self.records() if record.channel == TICK]
        if not ticks:
            return " before its first tick"
        return f" after {len(ticks)} good ticks, the last at {ticks[-1]} ns"

    def _parts(self) -> Iterator[Any]:
        """Yield metadata, channels and messages up to the end of the data, or to the cut.

        No record is held that is larger than the file or than `_RECORD_MAX`.
        """
        with self.path.open("rb") as file:
            crc = zlib.crc32(file.read(len(_MAGIC)))
            while True:
                head = file.read(_RECORD.size)
                opcode, length = _RECORD.unpack(head) if len(head) == _RECORD.size else (0, 1)
                if length > self._size - file.tell():
                    if self.truncated:
                        return
                    raise LogError("a record that is longer than the file")
                if length > _RECORD_MAX:
                    raise LogError(f"a record of {length} bytes")
                body = file.read(length)
                if opcode == Opcode.DATA_END:
                    said = DataEnd.read(ReadDataStream(BytesIO(body))).data_section_crc
                    if said not in (crc, 0):  # 0: written without one, by another program
                        raise LogError("CRC of the whole file does not match")
                    if not self.truncated:
                        _check_rest(file.read(_RECORD_MAX))
                    return
                crc = zlib.crc32(body, zlib.crc32(head, crc))
                if opcode == Opcode.CHUNK:
                    yield from _unpack_chunk(body)
                elif opcode == Opcode.METADATA:
                    yield Metadata.read(ReadDataStream(BytesIO(body)))


_DAMAGE = (
    LogError,
    McapError,
    ValueError,
    KeyError,
    OverflowError,
    struct.error,
    zstandard.ZstdError,
)


def _check_rest(rest: bytes) -> None:
    """Check what follows the data: index and footer, under a CRC of their own."""
    ours = zlib.crc32(rest[: -_FOOTER_END.size])
    said, magic = _FOOTER_END.unpack(rest[-_FOOTER_END.size :])
    if magic != _MAGIC or said not in (ours, 0):
        raise LogError("CRC of the index does not match")


def _check_head(texts: dict[str, str]) -> dict[str, Any]:
    version = texts.get("format_version")
    if version != str(FORMAT_VERSION):
        raise LogError(f"format version {version}, can read {FORMAT_VERSION}")
    if texts.pop(_HEAD_CRC, None) != _head_crc(texts):
        raise LogError("CRC does not match")
    return {key: orjson.loads(text) for key, text in texts.items() if key != "format_version"}


def _unpack_chunk(body: bytes) -> list[Any]:
    """Return schemas, channels and messages of a chunk whose sizes and CRC are right."""
    chunk = Chunk.read(ReadDataStream(BytesIO(body)))
    if chunk.compression != "zstd" or chunk.uncompressed_crc == 0:
        raise LogError(f"a chunk with compression {chunk.compression!r} or without CRC")
    frame_size = zstandard.frame_content_size(chunk.data)
    if frame_size != chunk.uncompressed_size or frame_size > _RECORD_MAX:
        raise LogError(f"a chunk of {frame_size} bytes that says {chunk.uncompressed_size}")
    parts: list[Any] = breakup_chunk(chunk, validate_crc=True)
    return [part for part in parts if not isinstance(part, Schema)]


def _record(channels: dict[int, str], message: Any) -> Record:
    data = orjson.loads(message.data)
    if not isinstance(data, dict):
        raise LogError("a message that is no object")
    return Record(channels[message.channel_id], message.log_time, data)
