"""Streams of messages between our processes that their writer never waits for.

What the pipe does not take now is kept and written later. A reader that looks now and then, and
does not sleep on the pipe, costs the writer nothing: no write wakes it.
"""

from __future__ import annotations

import contextlib
import fcntl
import multiprocessing
import os
import select
import struct
from collections import deque
from multiprocessing.connection import Connection
from typing import NamedTuple

PIPE_BYTES = 1024 * 1024
"""What Linux lets anybody ask for: /proc/sys/fs/pipe-max-size. Source: man 7 pipe."""
KEPT_BYTES = 64 * 1024 * 1024
DRAIN_S, _LOOK_S = 1.0, 0.01
_AT_ONCE = 128 * 1024  # written or read by one call, so that no call takes a share of a tick
_FRAME = struct.Struct("<IB3x")


class Message(NamedTuple):
    """One message of a stream; its bytes are looked at where they were read to."""

    kind: int
    data: bytes | memoryview


def stream() -> tuple[Connection, Connection]:
    """Make a stream: the end to read from, the end to write to."""
    reader, writer = multiprocessing.Pipe(duplex=False)
    with contextlib.suppress(OSError):  # a small pipe does as well, only later
        fcntl.fcntl(writer.fileno(), fcntl.F_SETPIPE_SZ, PIPE_BYTES)
    return reader, writer


class Outbox:
    """The end to write to. What the pipe does not take is kept, up to `KEPT_BYTES`."""

    def __init__(self, connection: Connection) -> None:
        """Take the end of a stream."""
        self._connection = connection
        self._file = connection.fileno()
        os.set_blocking(self._file, False)
        self._kept: deque[memoryview] = deque()
        self._size = 0
        self.broken = False
        self.dropped = 0

    def send(self, kind: int, data: bytes) -> None:
        """Send one message, in order, without waiting; count it when it cannot be kept."""
        if self.broken or self._size + len(data) > KEPT_BYTES:
            self.dropped += 1
            return
        self._keep(_FRAME.pack(len(data), kind) + data)
        self.flush()

    def flush(self) -> None:
        """Write some of what is kept."""
        budget = _AT_ONCE
        while self._kept and budget > 0 and not self.broken:
            part = self._kept[0]
            try:
                written = os.write(self._file, part[:budget])
            except BlockingIOError:
                return
            except OSError:  # nobody reads any more
                self.broken = True
                self._kept.clear()
                return
            budget -= written
            self._size -= written
            if written == len(part):
                self._kept.popleft()
            else:
                self._kept[0] = part[written:]

    @property
    def empty(self) -> bool:
        """Whether all was written."""
        return not self._kept

    def drain(self, seconds: float = DRAIN_S) -> None:
        """Write all that is kept before an end; the only call that waits, and not for ever."""
        room = select.poll()
        room.register(self._file, select.POLLOUT)
        tries = round(seconds / _LOOK_S)
        while self._kept and not self.broken and tries > 0:
            self.flush()
            tries -= not room.poll(1000.0 * _LOOK_S)

    def close(self) -> None:
        """End the stream; what is kept is lost."""
        self._connection.close()

    def _keep(self, frame: bytes) -> None:
        self._kept.append(memoryview(frame))
        self._size += len(frame)


class Inbox:
    """The end to read from."""

    def __init__(self, connection: Connection) -> None:
        """Take the end of a stream."""
        self._connection = connection
        self._file = connection.fileno()
        os.set_blocking(self._file, False)
        self._poll = select.poll()
        self._poll.register(self._file, select.POLLIN)
        self._parts: list[bytes] = []
        self._have = 0
        self._need = _FRAME.size
        self.ended = False

    def take(self) -> list[Message]:
        """Return what has arrived, of what one call reads; never waits."""
        try:
            data = os.read(self._file, _AT_ONCE)
        except BlockingIOError:
            return []
        if not data:
            self.ended = True
            return []
        self._parts.append(data)
        self._have += len(data)
        return [] if self._have < self._need else self._cut()

    def wait(self, seconds: float) -> bool:
        """Wait until something arrives or the stream ends; return whether it did."""
        return bool(self._poll.poll(1000.0 * seconds))

    def close(self) -> None:
        """Let go of it."""
        self._connection.close()

    def _cut(self) -> list[Message]:
        """Cut off whole messages; a long one is put together once, when all of it is there."""
        data, at, out = memoryview(b"".join(self._parts)), 0, []
        self._need = _FRAME.size
        while len(data) - at >= _FRAME.size:
            length, kind = _FRAME.unpack_from(data, at)
            end = at + _FRAME.size + length
            if end > len(data):
                self._need = end - at
                break
            out.append(Message(kind, data[at + _FRAME.size : end]))
            at = end
        rest = bytes(data[at:])
        self._parts, self._have = [rest], len(rest)
        return out
