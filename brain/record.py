"""What is made anew in each tick: frozen values with named fields, built in C.

A frozen dataclass sets field by field in Python; beside it one of these is made, or copied with
changes, ten times faster, and a tick does that some fifty times. Every other value with fields is a
frozen dataclass.
"""

from __future__ import annotations

from typing import Any, dataclass_transform

from msgspec import Struct, StructMeta
from msgspec.structs import replace

__all__ = ["Record", "replace"]


@dataclass_transform(frozen_default=True, kw_only_default=True, eq_default=False)
class _RecordMeta(StructMeta):
    """Makes frozen classes whose fields are keywords; `eq=True` compares by value."""

    def __new__(
        cls, name: str, bases: tuple[type, ...], body: dict[str, Any], eq: bool = False
    ) -> type:
        return super().__new__(cls, name, bases, body, frozen=True, kw_only=True, eq=eq)


class Record(Struct, metaclass=_RecordMeta):
    """Base of such values; `replace(record, field=value)` returns a copy with other fields."""
