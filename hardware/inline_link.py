"""A line between seat and cell inside one process, in simulated time, as bad as is asked for.

What happens to a message depends only on the seed, its channel and its number on that channel: the
same run gives the same losses, however fast the machine and whoever else sends.
"""

from __future__ import annotations

import hashlib
import heapq
import struct
from dataclasses import dataclass
from typing import NamedTuple

from brain.errors import ConfigError
from hardware.api import Clock
from hardware.link import CELL_TO_SEAT, SEAT_TO_CELL, CellLink, Channel
from hardware.seat_link import SeatLink

_KEY = struct.Struct("<qBq")
_CHANNELS = SEAT_TO_CELL + CELL_TO_SEAT


@dataclass(frozen=True, slots=True, kw_only=True)
class Faults:
    """How bad the line is, alike in both directions.

    Each copy of a message is lost with probability `loss`; else it takes `delay_ns` plus a uniform
    share of `jitter_ns`, and with probability `reorder` another `reorder_ns`. With probability
    `duplicate` there are two copies. What is sent within `stall_ns` (from, to) waits until its end.
    `seat_ahead_ns`: the seat's clock minus the cell's.
    """

    loss: float = 0.0
    delay_ns: int = 0
    jitter_ns: int = 0
    reorder: float = 0.0
    reorder_ns: int = 0
    duplicate: float = 0.0
    stall_ns: tuple[int, int] | None = None
    seat_ahead_ns: int = 0

    def __post_init__(self) -> None:
        """Refuse what no line can do.

        Raises:
            ConfigError: names the field.
        """
        for name in ("loss", "reorder", "duplicate"):
            if not 0.0 <= (value := getattr(self, name)) <= 1.0:
                raise ConfigError(f"{name}: {value}, allowed are 0 to 1")
        for name in ("delay_ns", "jitter_ns", "reorder_ns"):
            if (value := getattr(self, name)) < 0:
                raise ConfigError(f"{name}: {value}, must not be negative")
        if self.stall_ns is not None and self.stall_ns[0] > self.stall_ns[1]:
            raise ConfigError(f"stall_ns: {self.stall_ns} ends before it begins")


class InlineLine(NamedTuple):
    """Both ends of a line, and the clock that the seat reads."""

    cell: CellLink
    seat: SeatLink
    seat_clock: Clock


def inline_line(
    clock: Clock, faults: Faults | None = None, seed: int = 0, want_scene: bool = False
) -> InlineLine:
    """Make a line whose messages travel in the time of `clock`, the cell's."""
    faults = Faults() if faults is None else faults
    air = {channel: _Air(clock, faults, seed, i) for i, channel in enumerate(_CHANNELS)}
    seat_clock = _ShiftedClock(clock, faults.seat_ahead_ns)
    return InlineLine(
        CellLink(InlinePipe(air), session=2 * seed % 2**32),
        SeatLink(InlinePipe(air), session=(2 * seed + 1) % 2**32, want_scene=want_scene),
        seat_clock,
    )


class InlinePipe:
    """One end of a line inside the process."""

    def __init__(self, air: dict[Channel, _Air]) -> None:
        self._air = air

    def put(self, channel: Channel, data: bytes) -> None:
        """Send, or lose."""
        self._air[channel].put(data)

    def take(self, channel: Channel) -> list[bytes]:
        """Return what has arrived since the last call."""
        return self._air[channel].take()

    def close(self) -> None:
        """Nothing to let go of."""


class _Air:
    """One channel: copies of messages under way, by when they arrive."""

    def __init__(self, clock: Clock, faults: Faults, seed: int, channel: int) -> None:
        self._clock = clock
        self._faults = faults
        self._key = (seed, channel)
        self._sent = 0
        self._under_way: list[tuple[int, int, bytes]] = []
        self._order = 0

    def put(self, data: bytes) -> None:
        faults, now_ns = self._faults, self._clock.now_ns()
        self._sent += 1
        chance = _chances(*self._key, self._sent)
        for copy in range(2 if chance[0] < faults.duplicate else 1):
            lost, jitter, reorder = chance[1 + 3 * copy : 4 + 3 * copy]
            if lost < faults.loss:
                continue
            start_ns = now_ns
            if faults.stall_ns is not None and faults.stall_ns[0] <= now_ns < faults.stall_ns[1]:
                start_ns = faults.stall_ns[1]
            delay_ns = faults.delay_ns + int(jitter * faults.jitter_ns)
            delay_ns += faults.reorder_ns if reorder < faults.reorder else 0
            self._order += 1
            heapq.heappush(self._under_way, (start_ns + delay_ns, self._order, data))

    def take(self) -> list[bytes]:
        out: list[bytes] = []
        if not self._under_way:
            return out
        now_ns = self._clock.now_ns()
        while self._under_way and self._under_way[0][0] <= now_ns:
            out.append(heapq.heappop(self._under_way)[2])
        return out


class _ShiftedClock:
    """Another clock, ahead by a fixed time."""

    def __init__(self, clock: Clock, ahead_ns: int) -> None:
        self._clock = clock
        self._ahead_ns = ahead_ns

    def now_ns(self) -> int:
        return self._clock.now_ns() + self._ahead_ns

    def wait_until_ns(self, t_ns: int) -> None:
        self._clock.wait_until_ns(t_ns - self._ahead_ns)


def _chances(seed: int, channel: int, number: int) -> tuple[float, ...]:
    """Seven numbers, uniform in [0, 1), that depend on nothing but the arguments."""
    data = hashlib.blake2b(_KEY.pack(seed, channel, number), digest_size=56).digest()
    return tuple(word / 2**64 for word in struct.unpack("<7Q", data))
