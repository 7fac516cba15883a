"""One fault of a device as data, and its form on the command line.

`<device>[:<name>].<kind>[=<value>][@<from>[-<until>]]`, for instance `arm.delay=8ms`,
`arm:z1.drop=5%@2s-3s`, `ft.noise=2N`, `camera.freeze@4s`, `tracker.die@10s`. Without a name it
strikes every device of its kind; without a time it is there from the start and for ever.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from brain.errors import ConfigError


class Kind(StrEnum):
    """What is wrong.

    `drop` and `delay` strike what an arm or gripper is told, `drop_samples` and `delay_samples`
    what any device reports. `freeze` repeats a sample with its old time, `freeze_fresh` with a time
    that lies. `offset`, `sign`, `nan` and `noise` change joints, opening, force, depth or position;
    `holding` makes a gripper say that it holds something. `die`: no answer any more. `refuse`:
    cannot be started.
    """

    DROP = "drop"
    DELAY = "delay"
    DROP_SAMPLES = "drop_samples"
    DELAY_SAMPLES = "delay_samples"
    NOISE = "noise"
    OFFSET = "offset"
    SIGN = "sign"
    NAN = "nan"
    HOLDING = "holding"
    FREEZE = "freeze"
    FREEZE_FRESH = "freeze_fresh"
    DIE = "die"
    REFUSE = "refuse"


ANGLE = {"rad": 1.0, "mrad": 1e-3, "deg": 0.017453292519943295}
LENGTH = {"m": 1.0, "mm": 1e-3}
SIZES: dict[str, Mapping[str, float]] = {
    "arm": ANGLE,
    "gripper": LENGTH,
    "ft": {"N": 1.0},
    "camera": LENGTH,
    "tracker": LENGTH,
}
"""The devices that can have faults, and the units of what they measure."""
TIME_NS = {"ns": 1.0, "us": 1e3, "ms": 1e6, "s": 1e9}
SHARE = {"": 1.0, "%": 0.01}
LOSSES = (Kind.DROP, Kind.DROP_SAMPLES)
DELAYS = (Kind.DELAY, Kind.DELAY_SAMPLES)
ERRORS = (Kind.NOISE, Kind.OFFSET)
ON_COMMANDS = {Kind.DROP: Kind.DROP_SAMPLES, Kind.DELAY: Kind.DELAY_SAMPLES}
"""What strikes commands strikes the samples of a device that is told nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """A fault of one device, or of all of a sort (`name` None), within a time.

    `share` of what is lost, `delay_ns`, or `size_si` of an error in rad, m or N, as the kind needs.
    """

    device: str
    kind: Kind
    name: str | None = None
    share: float = 0.0
    delay_ns: int = 0
    size_si: float = 0.0
    from_ns: int = 0
    until_ns: int | None = None

    def is_active(self, t_ns: int) -> bool:
        """Whether it is there at a time."""
        return self.from_ns <= t_ns and (self.until_ns is None or t_ns < self.until_ns)


_FAULT = re.compile(
    r"(?P<device>[^.:=@]+)(:(?P<name>[^.=@]+))?\.(?P<kind>[^=@]+)(=(?P<value>[^@]*))?(@(?P<when>.*))?"
)
_QUANTITY = re.compile(r"([+-]?[0-9]*\.?[0-9]+(?:e[+-]?[0-9]+)?)([A-Za-z%]*)")


def parse_fault(text: str) -> Fault:
    """Read a fault from the command line.

    Raises:
        ConfigError: it is not one; says what is wrong and what is allowed.
    """
    match = _FAULT.fullmatch(text.strip())
    if match is None:
        raise ConfigError(
            f"fault {text!r}: must look like arm.delay=8ms, arm:z1.drop=5%@2s-3s or camera.die@4s"
        )
    device, value = match["device"], match["value"]
    if device not in SIZES:
        raise ConfigError(f"fault {text!r}: no device {device!r}; allowed: {', '.join(SIZES)}")
    if match["kind"] not in list(Kind):
        raise ConfigError(
            f"fault {text!r}: no kind of fault {match['kind']!r}; allowed: {', '.join(Kind)}"
        )
    kind = Kind(match["kind"])
    if device not in ("arm", "gripper"):
        kind = ON_COMMANDS.get(kind, kind)
    if kind is Kind.HOLDING and device != "gripper":
        raise ConfigError(f"fault {text!r}: only a gripper can hold")
    from_ns, until_ns = _window(text, match["when"])
    share, delay_ns, size_si = 0.0, 0, 0.0
    if kind in LOSSES:
        share = _number(text, value, SHARE, "a share")
        if not 0.0 <= share <= 1.0:
            raise ConfigError(f"fault {text!r}: a share is 0 to 1, or 0% to 100%")
    elif kind in DELAYS:
        delay_ns = _time_ns(text, value)
    elif kind in ERRORS:
        size_si = _number(text, value, SIZES[device], "a size")
    elif value is not None:
        raise ConfigError(f"fault {text!r}: {kind} takes no value")
    return Fault(
        device=device,
        kind=kind,
        name=match["name"],
        share=share,
        delay_ns=delay_ns,
        size_si=size_si,
        from_ns=from_ns,
        until_ns=until_ns,
    )


def of_device(faults: Iterable[Fault], device: str, name: str) -> tuple[Fault, ...]:
    """Return those faults that strike one device."""
    return tuple(f for f in faults if f.device == device and f.name in (None, name))


def check_targets(faults: Iterable[Fault], there: Mapping[str, Iterable[str]]) -> None:
    """Refuse faults of devices that a cell does not have; `there` names those of each sort.

    Raises:
        ConfigError: no device is struck.
    """
    for fault in faults:
        names = list(there.get(fault.device, ()))
        if not names or (fault.name is not None and fault.name not in names):
            which = fault.device if fault.name is None else f"{fault.device}:{fault.name}"
            known = ", ".join(f"{sort}:{name}" for sort, each in there.items() for name in each)
            raise ConfigError(f"fault {which}.{fault.kind}: no such device; this cell has {known}")


def _window(text: str, when: str | None) -> tuple[int, int | None]:
    if when is None:
        return 0, None
    first, dash, last = when.partition("-")
    from_ns = _time_ns(text, first)
    if not dash:
        return from_ns, None
    until_ns = _time_ns(text, last)
    if until_ns <= from_ns:
        raise ConfigError(f"fault {text!r}: {last} is not after {first}")
    return from_ns, until_ns


def _time_ns(text: str, value: str | None) -> int:
    t_ns = round(_number(text, value, TIME_NS, "a time"))
    if t_ns < 0:
        raise ConfigError(f"fault {text!r}: a time cannot be negative")
    return t_ns


def _number(text: str, value: str | None, units: Mapping[str, float], what: str) -> float:
    match = _QUANTITY.fullmatch(value or "")
    if match is None or match[2] not in units or not math.isfinite(float(match[1])):
        allowed = " or ".join(f"5{unit}" for unit in units)
        raise ConfigError(f"fault {text!r}: needs {what} such as {allowed}, got {value!r}")
    return float(match[1]) * units[match[2]]
