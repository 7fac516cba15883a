"""The line between operator and cell over any `Pipe`, and the cell's end of it.

The pipe may lose, delay, repeat and reorder; the ends make of it: newest pose wins, an intent
arrives once, in order, or its seat is told that it was not answered, a stop is repeated until it is
answered, big things (scene, preview) are asked for until they are there. Neither end ever waits.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, Protocol

from brain.types import NS_PER_MS
from hardware.messages import pack_preview, pack_scene, pack_status
from hardware.receive import Heard, Receiver
from hardware.status import LinkCounts, Preview, SceneText, Status
from hardware.wire import Kind, Message, pack, unpack

Channel = Literal["pose", "stop", "intent", "pong", "want", "ping", "status", "bulk"]
SEAT_TO_CELL: tuple[Channel, ...] = ("stop", "pong", "pose", "intent", "want")
CELL_TO_SEAT: tuple[Channel, ...] = ("ping", "status", "bulk")

# Prime, so that pings wander through the period of a seat that answers in step with the cell: the
# one that waits least for its answer compares the clocks best.
_PING_NS = 97 * NS_PER_MS
_PING_FAST_NS = 23 * NS_PER_MS  # until the clocks are compared
_BULK_GAP_NS = 100 * NS_PER_MS  # the cell sends no big thing twice within this


class Pipe(Protocol):
    """One end of something that carries bytes on named channels and never waits."""

    def put(self, channel: Channel, data: bytes) -> None:
        """Send, or drop."""
        ...

    def take(self, channel: Channel) -> list[bytes]:
        """Return what has arrived since the last call."""
        ...

    def close(self) -> None:
        """Let go of it."""
        ...


@dataclass(slots=True)
class _Offer:
    """Bytes for seats that ask with `want`, and when they were last sent."""

    want: str
    data: bytes
    sent_ns: int = -(2**62)


class CellLink:
    """The cell's end. `session` is a random number below 2**32, drawn anew at each start."""

    def __init__(self, pipe: Pipe, session: int) -> None:
        self._pipe = pipe
        self._session = session
        self._receiver = Receiver(session)
        self._pings = self._bulks = 0
        self._ping_due_ns = -(2**62)
        self._offers: dict[type, _Offer] = {}

    @property
    def last_heard_ns(self) -> int | None:
        """When the newest word of the seat was sent, by the cell's clock; None before the first."""
        return self._receiver.last_heard_ns

    @property
    def counts(self) -> LinkCounts:
        """What became of the messages of the seat."""
        return self._receiver.counts

    def hear(self, now_ns: int) -> Heard:
        """Take all that has arrived, answer what is asked, and return what is new; never wait."""
        for channel in ("stop", "pong", "pose", "intent"):
            for data in self._pipe.take(channel):
                self._receiver.hear(data, now_ns)
        for data in self._pipe.take("want"):
            message = unpack(data)
            if isinstance(message, Message) and message.kind is Kind.WANT:
                self._answer(message.payload.decode("ascii", "replace"), now_ns)
        if now_ns >= self._ping_due_ns:
            synced = self._receiver.counts.clock_error_ms is not None
            period_ns = _PING_NS if synced else _PING_FAST_NS
            self._ping_due_ns += period_ns
            if self._ping_due_ns <= now_ns:  # the first, or after a pause
                self._ping_due_ns = now_ns + period_ns
            self._pings += 1
            ping = pack(
                Kind.PING, session=self._session, seq=self._pings, t_ns=now_ns, expires_ns=now_ns
            )
            self._pipe.put("ping", ping)
        return self._receiver.take()

    def send_status(self, status: Status) -> None:
        """Tell the seat, with what the link knows added.

        Raises:
            LinkError: the status is too large.
        """
        status = replace(status, link=self._receiver.counts, echo=self._receiver.echo)
        self._pipe.put("status", pack_status(status, self._session))

    def offer(self, thing: SceneText | Preview, now_ns: int) -> None:
        """Keep a scene or preview for seats that ask; the next of its kind takes its place.

        Raises:
            LinkError: it is too large or not valid.
        """
        self._bulks += 1
        to = {"session": self._session, "seq": self._bulks, "t_ns": now_ns}
        if isinstance(thing, Preview):
            self._offers[Preview] = _Offer(thing.digest, pack_preview(thing, **to))
        else:
            self._offers[SceneText] = _Offer("", pack_scene(thing, **to))

    def close(self) -> None:
        """Let go of the pipe."""
        self._pipe.close()

    def _answer(self, want: str, now_ns: int) -> None:
        """Send the preview of that digest, or the scene for an empty `want`, but not too often."""
        for offer in self._offers.values():
            if offer.want == want and now_ns - offer.sent_ns >= _BULK_GAP_NS:
                offer.sent_ns = now_ns
                self._pipe.put("bulk", offer.data)
