"""Strict YAML: every file of ours is checked against a schema, and errors name file, key and value.

Unknown keys are refused with the nearest valid name, numbers must be numbers and finite, the same
key may not stand twice. A key says its unit, and a number that no cell has in that unit is refused:
540 after `_m` is a millimetre meant. A schema is a pydantic model that derives from `Strict`.
"""

from __future__ import annotations

import difflib
import json
import math
import re
import typing
from collections.abc import Hashable
from pathlib import Path
from typing import Annotated, Any, TypeVar

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic_core import ErrorDetails

from brain.errors import ConfigError

LARGEST = 1e6
"""No number of a robot or a cell is larger in SI units or degrees."""
LARGEST_M = 50.0
"""No place or length in a cell is larger."""
PER_M = ("_n_m", "_s_m")
"""Stiffness and damping per metre are no lengths."""
SHOWN = 60
"""A value in an error message is cut to this many characters."""


class Strict(BaseModel):
    """A schema: no unknown keys, no coercion from text, no NaN or infinity, read-only."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)


Vec3 = tuple[float, float, float]
Colour = tuple[
    Annotated[float, Field(ge=0.0, le=1.0)],
    Annotated[float, Field(ge=0.0, le=1.0)],
    Annotated[float, Field(ge=0.0, le=1.0)],
    Annotated[float, Field(ge=0.0, le=1.0)],
]
Positive = Annotated[float, Field(gt=0.0)]
NotNegative = Annotated[float, Field(ge=0.0)]
Name = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$", max_length=40)]
M = TypeVar("M", bound=Strict)


def data_folder(kind: str) -> Path:
    """Return the folder "assets" or "scenes": of the checkout, else of the installed package.

    Raises:
        ConfigError: neither is there.
    """
    package = Path(__file__).parent
    for folder in (package.parent / kind, package / "_data" / kind):
        if folder.is_dir():
            return folder
    raise ConfigError(f"no folder {kind!r} beside {package}: the installation is not complete")


def load(path: Path, schema: type[M]) -> M:
    """Read one YAML file.

    Raises:
        ConfigError: missing, not YAML, or not as the schema says; the text names key and value.
    """
    return check(read_yaml(path), schema, path.name)


def check(data: Any, schema: type[M], where: str) -> M:
    """Check plain data against a schema; `where` names its origin in errors.

    Raises:
        ConfigError: not as the schema says.
    """
    _refuse_odd_numbers(data, where)
    return check_json(json.dumps(data), schema, where)


def check_json(text: str, schema: type[M], where: str) -> M:
    """Check JSON text against a schema; `where` names its origin in errors.

    Raises:
        ConfigError: not JSON, or not as the schema says.
    """
    try:
        checked = schema.model_validate_json(text)
    except ValidationError as error:
        details = error.errors(include_url=False)
        more = f" (and {len(details) - 1} more)" if len(details) > 1 else ""
        raise ConfigError(f"{where}: {_sentence(_telling(details), schema)}{more}") from None
    _refuse_odd_numbers(json.loads(text), where)
    return checked


def read_yaml(path: Path) -> Any:
    """Read a YAML file as plain data.

    Raises:
        ConfigError: missing, unreadable, not YAML, or a key stands twice.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise ConfigError(f"{path}: no such file") from None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: cannot be read: {error}") from None
    try:
        return yaml.load(text, Loader=_Loader)  # noqa: S506 - a SafeLoader with one more check
    except yaml.YAMLError as error:
        raise ConfigError(f"{path.name}: not YAML: {' '.join(str(error).split())}") from None


class _Loader(yaml.CSafeLoader):
    """YAML's safe loader, refusing a key that stands twice and reading 1e-3 as a number."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        keys = [self.construct_object(key, deep=True) for key, _ in node.value]
        for key in keys:
            if not isinstance(key, str):
                raise yaml.constructor.ConstructorError(
                    None, None, f"key {key!r} must be text", node.start_mark
                )
            if keys.count(key) > 1:
                raise yaml.constructor.ConstructorError(
                    None, None, f"key {key!r} stands twice", node.start_mark
                )
        return super().construct_mapping(node, deep)


def _float(loader: yaml.CSafeLoader, node: yaml.ScalarNode) -> float:
    return float(loader.construct_scalar(node))


_Loader.add_constructor("tag:forearm,2026:float", _float)
# YAML 1.1 reads 1e-3 (no point) as text; read it as the number that everyone means.
_EXPONENT = re.compile(r"^[-+]?[0-9]+[eE][-+]?[0-9]+$")
_Loader.add_implicit_resolver("tag:forearm,2026:float", _EXPONENT, list("-+0123456789"))


def _refuse_odd_numbers(data: Any, where: str, key: str = "", name: str = "") -> None:
    """Walk plain data; refuse NaN, infinity, the absurdly large and what JSON cannot say (dates).

    `key` is the whole way to the data, `name` the last one in it that says a unit.
    """
    if isinstance(data, dict):
        for part, value in data.items():
            _refuse_odd_numbers(value, where, f"{key}.{part}" if key else str(part), str(part))
    elif isinstance(data, list):
        for i, value in enumerate(data):
            _refuse_odd_numbers(value, where, f"{key}.{i}", name)
    elif isinstance(data, float) and not math.isfinite(data):
        raise ConfigError(f"{where}: {key}: must be a finite number, got {data}")
    elif data is not None and not isinstance(data, str | int | float | bool):
        raise ConfigError(f"{where}: {key}: cannot be a {type(data).__name__}, got {data}")
    elif isinstance(data, int | float) and name != "seed":
        most = LARGEST_M if name.endswith("_m") and not name.endswith(PER_M) else LARGEST
        if abs(data) > most:
            unit = " (in m)" if most == LARGEST_M else ""
            raise ConfigError(f"{where}: {key}: at most {most:g}{unit} is possible, got {data:g}")


# ---------------------------------------------------------------- words for what is wrong


def _telling(details: list[ErrorDetails]) -> ErrorDetails:
    """Pick the first finding; an unknown key beside a missing one is that key, misspelt."""
    first = details[0]
    for other in details if first["type"] == "missing" else ():
        if other["type"] == "extra_forbidden" and other["loc"][:-1] == first["loc"][:-1]:
            return other
    return first


def _sentence(detail: ErrorDetails, schema: type[Strict]) -> str:
    """Say one of pydantic's findings in our words."""
    key = ".".join(str(part) for part in detail["loc"]) or "the file"
    shown = json.dumps(detail["input"], default=str)
    shown = shown if len(shown) <= SHOWN else shown[: SHOWN - 3] + "..."
    if detail["type"] == "extra_forbidden":
        allowed = _allowed(schema, detail["loc"][:-1])
        near = difflib.get_close_matches(str(detail["loc"][-1]), allowed, n=1, cutoff=0.0)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        return f"{key}: unknown key{hint} Allowed: {', '.join(allowed)}"
    if detail["type"] == "missing":
        return f"{key}: is missing"
    if detail["type"] == "value_error":
        return f"{key}: {detail['msg'].removeprefix('Value error, ')}"
    return f"{key}: {detail['msg'].removeprefix('Input ')}, got {shown}"


def _allowed(schema: type[Strict], loc: tuple[int | str, ...]) -> list[str]:
    """Return the keys that may stand at a place of a schema."""
    here = [schema]
    for part in loc:
        deeper = [
            model
            for owner in here
            if part in owner.model_fields
            for model in _models(owner.model_fields[str(part)].annotation)
        ]
        # A list index or the tag of a union stays where it is; a tag picks its member.
        tagged = [m for m in here if any(_is_tag(f.annotation, part) for f in _fields(m))]
        here = deeper or tagged or here
    return sorted({name for model in here for name in model.model_fields})


def _fields(model: type[Strict]) -> list[Any]:
    return list(model.model_fields.values())


def _is_tag(annotation: Any, part: int | str) -> bool:
    is_literal = typing.get_origin(annotation) is typing.Literal
    return is_literal and typing.get_args(annotation) == (part,)


def _models(annotation: Any) -> list[type[Strict]]:
    """Return the schemas that an annotation mentions."""
    if isinstance(annotation, type) and issubclass(annotation, Strict):
        return [annotation]
    return [model for arg in typing.get_args(annotation) for model in _models(arg)]
