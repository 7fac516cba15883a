"""The newest value, from one process to many, in shared memory: nobody waits, nobody reads half.

A slot holds three copies in turn. The writer fills the oldest, then moves the number `newest`; a
reader copies the newest and takes it only if its number and CRC-32 are right. So a writer that is
killed half way leaves the value before, and a reader that is overtaken reads again.
"""

from __future__ import annotations

import _posixshmem  # type: ignore[import-not-found]  # what shared_memory itself stands on
import mmap
import os
import secrets
import struct
import zlib
from multiprocessing import shared_memory
from typing import NamedTuple

from brain.errors import ConfigError, LinkError

_MAGIC = b"FARMSLOT"
_HEAD = struct.Struct("=8sQ")  # magic, capacity; behind it `newest`
_NEWEST_AT = 2  # counted in aligned 8 byte words, so that one store moves it
_COPY = struct.Struct("=QqQI4x")  # seq, t_ns, length, CRC-32 of these three and of the value
_CHECKED = struct.Struct("=QqQ")
_COPIES = 3
_FIRST_AT = 64
_TRIES = 8  # a writer would have to overtake a reader this often in a row to be missed once
CAPACITY_MAX = 64 * 1024 * 1024


class Value(NamedTuple):
    """A value, when it was measured, and its number: 1 for the first that was written."""

    data: bytes
    t_ns: int
    seq: int


class Slot:
    """One newest value; made by `create` in one process, by `attach` in the others.

    The creator's death removes the memory, even by kill -9 (Python's resource tracker sees to it);
    an attached slot is not tracked, so that no reader's end takes the memory from the others.
    """

    def __init__(
        self, name: str, memory: memoryview, owner: shared_memory.SharedMemory | None
    ) -> None:
        self.name = name
        self._memory = memory
        self._owner = owner
        magic, capacity = _HEAD.unpack_from(memory)
        if magic != _MAGIC or _size(capacity) > len(memory):
            raise LinkError(f"slot {name}: not a slot of this program")
        self.capacity: int = capacity
        self._stride = _stride(capacity)
        self._words = memory.cast("Q")

    @staticmethod
    def create(label: str, capacity: int) -> Slot:
        """Make a slot for values of up to `capacity` bytes; its name holds a random token.

        Raises:
            ConfigError: capacity out of range.
        """
        if not 1 <= capacity <= CAPACITY_MAX:
            raise ConfigError(f"capacity of {label}: {capacity}, allowed are 1 to {CAPACITY_MAX}")
        owner = shared_memory.SharedMemory(
            f"forearm-{label}-{secrets.token_hex(8)}", create=True, size=_size(capacity)
        )
        assert owner.buf is not None  # it is None only after close
        _HEAD.pack_into(owner.buf, 0, _MAGIC, capacity)
        return Slot(owner.name, owner.buf, owner)

    @staticmethod
    def attach(name: str) -> Slot:
        """Open a slot that another process has made.

        Raises:
            LinkError: there is none of that name, or it is something else.
        """
        # SharedMemory(name) would register the memory with this process's resource tracker, which
        # removes it when this process ends (github.com/python/cpython/issues/82300; `track=False`
        # comes with Python 3.13).
        try:
            file = _posixshmem.shm_open(f"/{name}", os.O_RDWR, mode=0o600)
        except OSError as error:
            raise LinkError(f"slot {name}: {error.strerror}") from None
        try:
            size = os.fstat(file).st_size
            if size < _FIRST_AT:
                raise LinkError(f"slot {name}: not a slot of this program")
            return Slot(name, memoryview(mmap.mmap(file, size)), None)
        finally:
            os.close(file)

    def write(self, data: bytes, t_ns: int) -> None:
        """Put the next value; only one process may write, and only one at a time.

        Raises:
            LinkError: larger than the capacity.
        """
        if len(data) > self.capacity:
            raise LinkError(f"slot {self.name}: {len(data)} bytes, holds {self.capacity}")
        seq = self._words[_NEWEST_AT] + 1
        at = self._place(seq)
        body = at + _COPY.size
        _COPY.pack_into(self._memory, at, 0, 0, 0, 0)
        self._memory[body : body + len(data)] = data
        crc = zlib.crc32(data, zlib.crc32(_CHECKED.pack(seq, t_ns, len(data))))
        _COPY.pack_into(self._memory, at, seq, t_ns, len(data), crc)
        self._words[_NEWEST_AT] = seq

    def read(self, after_seq: int = 0) -> Value | None:
        """Return the newest value; None while there is none newer than number `after_seq`."""
        for _ in range(_TRIES):
            newest = self._words[_NEWEST_AT]
            if newest <= after_seq:
                return None
            at = self._place(newest)
            seq, t_ns, length, crc = _COPY.unpack_from(self._memory, at)
            if seq != newest or length > self.capacity:
                continue
            body = at + _COPY.size
            data = bytes(self._memory[body : body + length])
            if crc == zlib.crc32(data, zlib.crc32(_CHECKED.pack(seq, t_ns, length))):
                return Value(data, t_ns, seq)
        return None

    def close(self) -> None:
        """Let go of the memory; its creator removes it."""
        self._words.release()
        self._memory.release()
        if self._owner is not None:
            self._owner.close()
            self._owner.unlink()
            self._owner = None

    def _place(self, seq: int) -> int:
        return _FIRST_AT + seq % _COPIES * self._stride


def _stride(capacity: int) -> int:
    return (_COPY.size + capacity + 63) // 64 * 64


def _size(capacity: int) -> int:
    return _FIRST_AT + _COPIES * _stride(capacity)
