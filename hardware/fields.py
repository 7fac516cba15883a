"""Field types for what arrives as JSON from outside: bounded, finite, of the right shape.

pydantic reads the annotations; to everything else they are plain `str`, `Array` and so on.
"""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
from pydantic import ConfigDict, Field, PlainValidator, StringConstraints, ValidationError

from brain.errors import LinkError
from brain.geometry import Array, frozen, largest
from brain.types import Action, Answer
from hardware.wire import checked_pose

NAME_MAX, SENTENCE_MAX, JOINTS_MAX = 64, 2000, 16
JOINT_MAX_RAD = 100.0  # many more turns than any joint makes; refuses garbage that is finite
STRICT = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)


def _numbers(value: Any, shape: tuple[int, ...]) -> Array:
    """Return nested lists of numbers as an array of `shape`; NaN where one is null."""
    flat = [value]
    for size in shape:
        for item in flat:
            if type(item) is not list or len(item) != size:
                raise ValueError(f"must be {' lists of '.join(map(str, shape))} numbers")
        flat = [number for item in flat for number in item]
    if set(map(type, flat)) != {float}:
        flat = [_number(item) for item in flat]
    return np.array(flat).reshape(shape)


def _number(value: Any) -> float:
    if value is None:
        return np.nan
    if type(value) is float or (type(value) is int and abs(value) < 2**53):
        return float(value)
    raise ValueError("must be numbers")


def _joints(value: Any) -> Array:
    if not isinstance(value, list) or not 1 <= len(value) <= JOINTS_MAX:
        raise ValueError(f"must be a list of 1 to {JOINTS_MAX} numbers")
    q = _numbers(value, (len(value),))
    if not largest(q) <= JOINT_MAX_RAD:  # false for NaN
        raise ValueError(f"must be finite and at most {JOINT_MAX_RAD}")
    return frozen(q)


def _pose(value: Any) -> Array:
    try:
        return checked_pose("pose", _numbers(value, (4, 4)))
    except LinkError as error:
        raise ValueError(str(error)) from None


def _joints_or_none(value: Any) -> Array | None:
    has_null = value is None or (isinstance(value, list) and None in value)
    return None if has_null else _joints(value)


def _pose_or_none(value: Any) -> Array | None:
    rows = value if isinstance(value, list) else [value]
    has_null = any(row is None or (isinstance(row, list) and None in row) for row in rows)
    return None if has_null else _pose(value)


def _answer(value: Any) -> Answer:
    if not isinstance(value, dict) or set(value) != set(Answer.__struct_fields__):
        raise ValueError(f"must have {', '.join(Answer.__struct_fields__)}")
    for key in ("rule", "arm"):
        if not isinstance(value[key], str) or len(value[key]) > NAME_MAX:
            raise ValueError(f"{key}: must be at most {NAME_MAX} characters")
    number, limit = _numbers([value["value"], value["limit"]], (2,))
    return Answer(
        action=Action(value["action"]),
        rule=value["rule"],
        value=float(number),
        limit=float(limit),
        arm=value["arm"],
    )


Name = Annotated[str, StringConstraints(min_length=1, max_length=NAME_MAX)]
Sentence = Annotated[str, StringConstraints(max_length=SENTENCE_MAX)]
DigestHex = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
Count = Annotated[int, Field(ge=0, lt=2**63)]
TimeNs = Annotated[int, Field(ge=-(2**63), lt=2**63)]
Joints = Annotated[Array, PlainValidator(_joints)]
Pose = Annotated[Array, PlainValidator(_pose)]
MaybeJoints = Annotated[Array | None, PlainValidator(_joints_or_none)]
MaybePose = Annotated[Array | None, PlainValidator(_pose_or_none)]
AnswerField = Annotated[Answer, PlainValidator(_answer)]


def problem(error: ValidationError) -> str:
    """Say the first thing that is wrong as `field: what`."""
    first = error.errors(include_url=False, include_input=False)[0]
    said = first["msg"].removeprefix("Value error, ")
    return f"{'.'.join(str(part) for part in first['loc']) or 'JSON'}: {said}"
