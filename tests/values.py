"""Copies of values with other fields, whichever kind of value they are."""

import dataclasses
from typing import Any, TypeVar

from brain import record
from brain.record import Record

T = TypeVar("T")


def replace(value: T, **changes: Any) -> T:
    """Copy a record or a dataclass with some fields changed."""
    if isinstance(value, Record):
        return record.replace(value, **changes)
    return dataclasses.replace(value, **changes)


def field_names(value: Any) -> tuple[str, ...] | None:
    """Names of the fields of a record or a dataclass, None for any other value."""
    if isinstance(value, Record):
        return value.__struct_fields__
    if dataclasses.is_dataclass(value):
        return tuple(f.name for f in dataclasses.fields(value))
    return None
