"""What the cell believes of what it hears: newest wins, nothing old, nothing twice, one seat.

No sockets and no clock here: bytes and times come in as arguments.

One seat holds the cell: the first one heard, until it has been silent for `TAKEOVER_NS`; others are
counted as foreign, except that anybody may press stop. A seat that has lost the cell, or starts
again, comes back under a new session only. Stamps of the seat's clock are converted once, here.
"""

from __future__ import annotations

from collections import Counter, OrderedDict, deque
from dataclasses import dataclass
from typing import Literal

from brain.errors import LinkError
from brain.record import Record, replace
from brain.types import NS_PER_MS, NS_PER_S, Intent, OperatorInput
from hardware.messages import unpack_intent
from hardware.status import Echo, LinkCounts
from hardware.wire import Kind, Message, Pong, unpack, unpack_pong, unpack_pose

TAKEOVER_NS = NS_PER_S
_WINDOW = 1024  # numbers behind the highest that can still be told from duplicates
_JUMP_MAX = 1_000_000  # hours of poses: a larger gap is a broken sender, not loss
_SESSIONS_KEPT = 64
_PINGS_KEPT = 64
_PING_LIFE_NS = 10 * NS_PER_S
_RTT_MAX_NS = 2 * NS_PER_S
# Two crystals of 50 ppm drift 100 us apart per second: 1 ms over the life of a comparison.
_DRIFT_NS = NS_PER_MS
_HEARD = (Kind.POSE, Kind.STOP, Kind.INTENT, Kind.PONG)


class SequenceWindow:
    """Tells new, late and repeated numbers apart and counts what is missing."""

    def __init__(self) -> None:
        self._first = self._highest = -1
        self._seen = 0  # bit k: `highest` - k was seen
        self._unique = 0

    @property
    def lost(self) -> int:
        """How many numbers between the lowest and the highest seen never came."""
        return 0 if self._highest < 0 else self._highest - self._first + 1 - self._unique

    def see(self, seq: int) -> Literal["new", "late", "duplicate", "broken"]:
        """Count a number; "broken": too far ahead or too far behind to say."""
        if self._highest < 0:
            self._first, self._highest, self._seen, self._unique = seq, seq, 1, 1
            return "new"
        ahead = seq - self._highest
        if ahead > _JUMP_MAX or ahead <= -_WINDOW:
            return "broken"
        if ahead > 0:
            self._seen = (self._seen << min(ahead, _WINDOW) | 1) & ((1 << _WINDOW) - 1)
            self._highest = seq
            self._unique += 1
            return "new"
        if self._seen >> -ahead & 1:
            return "duplicate"
        self._seen |= 1 << -ahead
        self._first = min(self._first, seq)
        self._unique += 1
        return "late"


class ClockOffset:
    """How far another clock is ahead of ours, from pings; the quickest of the last 10 s decides.

    Half its round trip bounds the error, wherever the delay was.
    Source: D. L. Mills, RFC 5905 "Network Time Protocol Version 4", section 8, and its clock filter
    (section 10), which keeps the sample of least delay.
    """

    def __init__(self) -> None:
        self._samples: deque[tuple[int, int, int]] = deque(maxlen=_PINGS_KEPT)
        self._best: tuple[int, int] | None = None

    @property
    def error_ns(self) -> int | None:
        """Bound on the error; None before the first answer."""
        return None if self._best is None else self._best[0] // 2 + _DRIFT_NS

    def add(self, sent_ns: int, there_ns: int, left_ns: int, back_ns: int) -> None:
        """Take one ping: sent and back by our clock, arrived there and left there by the other."""
        rtt_ns = (back_ns - sent_ns) - (left_ns - there_ns)
        if left_ns < there_ns or not 0 <= rtt_ns <= _RTT_MAX_NS:
            return
        offset_ns = ((there_ns - sent_ns) + (left_ns - back_ns)) // 2
        self._samples.append((back_ns, rtt_ns, offset_ns))
        while self._samples[0][0] < back_ns - _PING_LIFE_NS:
            self._samples.popleft()
        self._best = min((rtt, offset) for _, rtt, offset in self._samples)

    def local_ns(self, t_ns: int) -> int | None:
        """Convert a stamp of the other clock to ours; None before the first answer."""
        return None if self._best is None else t_ns - self._best[1]


class Heard(Record):
    """What is new from the seat: the newest hand sample, intents in order, whether stop was hit."""

    operator: OperatorInput | None = None
    intents: tuple[Intent, ...] = ()
    stop: bool = False


@dataclass(slots=True)
class _Seat:
    """What is known of the seat that holds the cell."""

    session: int
    arrived_ns: int
    window: SequenceWindow
    clock: ClockOffset
    pose_seq: int | None = None
    pose_sent_ns: int | None = None
    pose_t_ns: int | None = None
    intent_seq: int | None = None
    last_heard_ns: int | None = None


class Receiver:
    """Hears messages of seats, in any order and state, and gives out what is true and new."""

    def __init__(self, session: int) -> None:
        self._own_session = session
        self._seat: _Seat | None = None
        self._retired: deque[int] = deque(maxlen=_SESSIONS_KEPT)
        self._stops: OrderedDict[int, int] = OrderedDict()
        self._counts: Counter[str] = Counter()
        self._latency_ms: float | None = None
        self._pose: OperatorInput | None = None
        self._intents: list[Intent] = []
        self._stop = False

    @property
    def counts(self) -> LinkCounts:
        """What became of all messages so far."""
        lost, error_ns = 0, None
        if self._seat is not None:
            lost, error_ns = self._seat.window.lost, self._seat.clock.error_ns
        return LinkCounts(
            **(self._counts + Counter(lost=lost)),
            latency_ms=self._latency_ms,
            clock_error_ms=None if error_ns is None else error_ns / NS_PER_MS,
        )

    @property
    def echo(self) -> Echo:
        """The newest that was heard of the seat that holds the cell."""
        seat = self._seat
        if seat is None:
            return Echo()
        return Echo(
            session=seat.session,
            pose_seq=seat.pose_seq,
            pose_t_ns=seat.pose_sent_ns,
            intent_seq=seat.intent_seq,
            stop_seq=self._stops.get(seat.session),
        )

    @property
    def last_heard_ns(self) -> int | None:
        """When the newest word of the seat was *sent*, by our clock: old news is no life sign."""
        return None if self._seat is None else self._seat.last_heard_ns

    def hear(self, data: bytes, now_ns: int) -> None:
        """Take the bytes of one message of a seat."""
        message = unpack(data)
        if isinstance(message, LinkError) or message.kind not in _HEARD:
            self._counts["refused"] += 1
            return
        if message.kind is Kind.STOP:
            self._hear_stop(message)
        seat = self._holder(message, now_ns)
        if seat is None:
            self._counts["foreign"] += 1
        elif message.kind is Kind.PONG:
            self._hear_pong(seat, message, now_ns)
        elif message.kind is Kind.POSE:
            self._hear_pose(seat, message, now_ns)
        elif message.kind is Kind.INTENT:
            self._hear_intent(seat, message, now_ns)

    def take(self) -> Heard:
        """Return what is new since the last call."""
        heard = Heard(operator=self._pose, intents=tuple(self._intents), stop=self._stop)
        self._pose, self._intents, self._stop = None, [], False
        return heard

    def _holder(self, message: Message, now_ns: int) -> _Seat | None:
        """Return the seat if the message is of the one that holds the cell, or takes it now."""
        seat = self._seat
        if seat is None or seat.session != message.session:
            if message.session in self._retired:
                return None
            if seat is not None:
                if now_ns - seat.arrived_ns <= TAKEOVER_NS:
                    return None
                self._retired.append(seat.session)
                self._counts["lost"] += seat.window.lost
            seat = _Seat(message.session, now_ns, SequenceWindow(), ClockOffset())
            self._seat = seat
        seat.arrived_ns = now_ns
        return seat

    def _hear_stop(self, message: Message) -> None:
        """Take a stop of anybody, however late; the same press counts once."""
        if message.seq > self._stops.get(message.session, -1):
            self._stops[message.session] = message.seq
            self._stops.move_to_end(message.session)
            if len(self._stops) > _SESSIONS_KEPT:
                self._stops.popitem(last=False)
            self._stop = True

    def _hear_pong(self, seat: _Seat, message: Message, now_ns: int) -> None:
        pong = unpack_pong(message)
        if not isinstance(pong, Pong):
            self._counts["refused"] += 1
        elif pong.ping_session == self._own_session:
            seat.clock.add(pong.ping_t_ns, pong.received_t_ns, message.t_ns, now_ns)
            if (left_ns := seat.clock.local_ns(message.t_ns)) is not None:
                seat.last_heard_ns = _later(seat.last_heard_ns, min(left_ns, now_ns))

    def _hear_pose(self, seat: _Seat, message: Message, now_ns: int) -> None:
        """Take a pose; what is late or expired is dropped before its payload costs any time."""
        self._counts["received"] += 1
        place = seat.window.see(message.seq)
        if place != "new":
            field = {"late": "reordered", "duplicate": "duplicate", "broken": "refused"}[place]
            self._counts[field] += 1
            return
        t_ns = self._local_ns(seat, message, now_ns)
        if t_ns is None:
            return
        sample = unpack_pose(message)
        if isinstance(sample, LinkError):
            self._counts["refused"] += 1
            return
        seat.pose_seq, seat.pose_sent_ns = message.seq, message.t_ns
        seat.pose_t_ns = _later(seat.pose_t_ns, t_ns)  # a better offset turns no time back
        self._pose = replace(
            sample, t_ns=seat.pose_t_ns, expires_ns=t_ns + message.expires_ns - message.t_ns
        )
        self._latency_ms = (now_ns - t_ns) / NS_PER_MS

    def _hear_intent(self, seat: _Seat, message: Message, now_ns: int) -> None:
        intent = unpack_intent(message)
        if isinstance(intent, LinkError):
            self._counts["refused"] += 1
        elif seat.intent_seq is not None and message.seq <= seat.intent_seq:
            self._counts["duplicate"] += 1
        elif (t_ns := self._local_ns(seat, message, now_ns)) is not None:
            seat.intent_seq = message.seq
            self._intents.append(replace(intent, t_ns=t_ns))

    def _local_ns(self, seat: _Seat, message: Message, now_ns: int) -> int | None:
        """Convert the stamp of a message to our clock; None if it has expired or cannot be."""
        t_ns, error_ns = seat.clock.local_ns(message.t_ns), seat.clock.error_ns
        if t_ns is None or error_ns is None:
            self._counts["unsynced"] += 1
            return None
        if t_ns > now_ns + error_ns:  # from the future: the other clock has been set
            seat.clock = ClockOffset()
            self._counts["unsynced"] += 1
            return None
        t_ns = min(t_ns, now_ns)
        if t_ns + message.expires_ns - message.t_ns <= now_ns:
            self._counts["expired"] += 1
            return None
        seat.last_heard_ns = _later(seat.last_heard_ns, t_ns)
        return t_ns


def _later(a_ns: int | None, b_ns: int) -> int:
    return b_ns if a_ns is None else max(a_ns, b_ns)
