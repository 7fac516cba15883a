"""Canonical SHA-256 over named values: the identity of a scene, a rehearsal, a run.

Each value enters as: length and UTF-8 bytes of its name, one tag, then the value. Lengths, counts
and shapes are little-endian uint32, integers int64, floats float64; -0 counts as 0 and NaN and
infinity have no digest. Thus equal digests mean equal values, in order, under equal names.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import TypeAlias

import numpy as np

Value: TypeAlias = "None | bool | int | float | str | bytes | np.ndarray | Iterable[Value]"

_UINT32 = struct.Struct("<I")
_INT64 = struct.Struct("<q")
_FLOAT64 = np.dtype("<f8")


class Digest:
    """A running digest; `add_all` over a mapping equals `add` for each of its items."""

    def __init__(self) -> None:
        self._sha = hashlib.sha256()
        self._heads: dict[tuple[str, tuple[int, ...]], bytes] = {}

    def add(self, name: str, value: Value) -> None:
        """Take one named value.

        Raises:
            ValueError: it is NaN or infinite, or an integer beyond 64 bits; names the field.
            TypeError: values of that type have no digest; names the field.
        """
        self.add_all({name: value})

    def add_all(self, values: Mapping[str, Value]) -> None:
        """Take named values in order; a list counts as its length and `name.0`, `name.1` ...

        All floats of one call are checked and cleaned together: about 10 us for 20 arrays. When it
        raises, nothing of this call has entered. Raises as `add`.
        """
        parts: list[bytes | None] = []  # None: the place of the next entry of `floats`
        floats: list[bytes] = []
        names: list[str] = []
        for name, value in values.items():
            self._take(name, value, parts, floats, names)
        raw = np.frombuffer(b"".join(floats), dtype=_FLOAT64)
        if not np.isfinite(raw).all():
            raise ValueError(f"{_first_not_finite(names, floats)}: NaN or infinity has no digest")
        clean, at = (raw + 0.0).tobytes(), 0  # adding 0 turns -0 into 0
        lengths = iter(floats)
        out: list[bytes] = []
        for part in parts:
            if part is None:
                size = len(next(lengths))
                out.append(clean[at : at + size])
                at += size
            else:
                out.append(part)
        self._sha.update(b"".join(out))

    def hexdigest(self) -> str:
        """Return the digest of all that was added so far, 64 hexadecimal characters."""
        return self._sha.hexdigest()

    def _take(
        self,
        name: str,
        value: Value,
        parts: list[bytes | None],
        floats: list[bytes],
        names: list[str],
    ) -> None:
        if value is None:
            parts.append(_head(name, b"n"))
        elif isinstance(value, np.ndarray) and value.dtype.kind == "f":
            names.append(name)
            floats.append((value if value.dtype == _FLOAT64 else value.astype(_FLOAT64)).tobytes())
            key = (name, value.shape)
            head = self._heads.get(key)
            if head is None:
                head = self._heads[key] = _head(name, b"a") + _shape(value)
            parts.append(head)
            parts.append(None)
        elif isinstance(value, np.ndarray):
            if value.dtype.kind not in "iub":
                raise TypeError(f"{name}: arrays of {value.dtype} have no digest")
            if value.dtype.kind == "u" and value.size and value.max() > np.iinfo(np.int64).max:
                raise ValueError(f"{name}: beyond 64 bits")
            parts += (_head(name, b"A"), _shape(value), value.astype("<i8").tobytes())
        elif isinstance(value, (bool, np.bool_)):
            parts.append(_head(name, b"t" if value else b"f"))
        elif isinstance(value, (int, np.integer)):
            if not -(2**63) <= value < 2**63:
                raise ValueError(f"{name}: {value} is beyond 64 bits")
            parts += (_head(name, b"i"), _INT64.pack(value))
        elif isinstance(value, (float, np.floating)):
            names.append(name)
            floats.append(struct.pack("<d", value))
            parts += (_head(name, b"d"), None)
        elif isinstance(value, str):
            parts += (_head(name, b"s"), _sized(value.encode()))
        elif isinstance(value, bytes):
            parts += (_head(name, b"b"), _sized(value))
        elif isinstance(value, (list, tuple)):
            parts += (_head(name, b"l"), _UINT32.pack(len(value)))
            for i, item in enumerate(value):
                self._take(f"{name}.{i}", item, parts, floats, names)
        else:
            raise TypeError(f"{name}: a {type(value).__name__} has no digest")


@lru_cache(4096)
def _head(name: str, tag: bytes) -> bytes:
    return _sized(name.encode()) + tag


def _sized(data: bytes) -> bytes:
    return _UINT32.pack(len(data)) + data


def _shape(value: np.ndarray) -> bytes:
    return struct.pack(f"<I{value.ndim}I", value.ndim, *value.shape)


def _first_not_finite(names: list[str], floats: list[bytes]) -> str:
    return next(
        name
        for name, data in zip(names, floats, strict=True)
        if not np.isfinite(np.frombuffer(data, dtype=_FLOAT64)).all()
    )
