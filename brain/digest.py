"""Canonical SHA-256 over named values: the identity of a scene or a rehearsal.

Each value enters as: length and UTF-8 bytes of its name, one tag, then the value. Lengths, counts
and shapes are little-endian uint32, integers int64, floats float64; -0 counts as 0 and NaN and
infinity have no digest. Thus equal digests mean equal values, in order, under equal names.
"""

from __future__ import annotations

import hashlib
import math
import struct
from collections.abc import Iterable
from typing import TypeAlias

import numpy as np

Value: TypeAlias = "None | bool | int | float | str | bytes | np.ndarray | Iterable[Value]"


class Digest:
    """A running digest."""

    def __init__(self) -> None:
        self._sha = hashlib.sha256()

    def add(self, name: str, value: Value) -> None:
        """Take one named value; a list counts as its length and `name.0`, `name.1` ...

        When it raises, nothing of this call has entered.

        Raises:
            ValueError: it is NaN or infinite, or an integer beyond 64 bits; names the field.
            TypeError: values of that type have no digest; names the field.
        """
        self._sha.update(b"".join(_parts(name, value)))

    def hexdigest(self) -> str:
        """Return the digest of all that was added so far, 64 hexadecimal characters."""
        return self._sha.hexdigest()


def _parts(name: str, value: Value) -> list[bytes]:
    head = _sized(name.encode())
    if value is None:
        return [head, b"n"]
    if isinstance(value, np.ndarray):
        return [head, *_array(name, value)]
    if isinstance(value, (bool, np.bool_)):
        return [head, b"t" if value else b"f"]
    if isinstance(value, (int, np.integer)):
        if not -(2**63) <= value < 2**63:
            raise ValueError(f"{name}: {value} is beyond 64 bits")
        return [head, b"i", struct.pack("<q", value)]
    if isinstance(value, (float, np.floating)):
        if not math.isfinite(value):
            raise ValueError(f"{name}: NaN or infinity has no digest")
        return [head, b"d", struct.pack("<d", value + 0.0)]  # adding 0 turns -0 into 0
    if isinstance(value, str):
        return [head, b"s", _sized(value.encode())]
    if isinstance(value, bytes):
        return [head, b"b", _sized(value)]
    if isinstance(value, (list, tuple)):
        parts = [head, b"l", struct.pack("<I", len(value))]
        for i, item in enumerate(value):
            parts += _parts(f"{name}.{i}", item)
        return parts
    raise TypeError(f"{name}: a {type(value).__name__} has no digest")


def _array(name: str, value: np.ndarray) -> tuple[bytes, bytes, bytes]:
    shape = struct.pack(f"<I{value.ndim}I", value.ndim, *value.shape)
    if value.dtype.kind == "f":
        if not np.isfinite(value).all():
            raise ValueError(f"{name}: NaN or infinity has no digest")
        return b"a", shape, (value + 0.0).astype("<f8").tobytes()
    if value.dtype.kind not in "iub":
        raise TypeError(f"{name}: arrays of {value.dtype} have no digest")
    if value.dtype.kind == "u" and value.size and value.max() > np.iinfo(np.int64).max:
        raise ValueError(f"{name}: beyond 64 bits")
    return b"A", shape, value.astype("<i8").tobytes()


def _sized(data: bytes) -> bytes:
    return struct.pack("<I", len(data)) + data
