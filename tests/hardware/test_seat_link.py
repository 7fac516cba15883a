"""Each end alone, with a pipe that the test fills and reads by hand."""

from __future__ import annotations

from collections import defaultdict

import pytest

from brain.types import NS_PER_MS, NS_PER_S
from hardware import messages, wire
from hardware.link import CellLink
from hardware.seat_link import Connection, SeatLink
from hardware.status import Echo, SceneText
from hardware.wire import Kind
from tests.hardware import samples

CELL, SEAT = 1, 2
T0 = 10 * NS_PER_S


class HandPipe:
    """Keeps what is put; gives what the test has laid ready."""

    def __init__(self) -> None:
        self.sent: dict[str, list[bytes]] = defaultdict(list)
        self.ready: dict[str, list[bytes]] = defaultdict(list)

    def put(self, channel: str, data: bytes) -> None:
        self.sent[channel].append(data)

    def take(self, channel: str) -> list[bytes]:
        return self.ready.pop(channel, [])

    def close(self) -> None:
        pass


@pytest.fixture
def pipe() -> HandPipe:
    return HandPipe()


@pytest.fixture
def seat(pipe: HandPipe) -> SeatLink:
    return SeatLink(pipe, SEAT)


def status(seq: int, session: int = CELL, **echo: int) -> bytes:
    told = samples.status(seq, T0, echo=Echo(session=SEAT, **echo))
    return messages.pack_status(told, session)


def test_of_several_statuses_the_newest_is_given_out_and_never_an_older(
    pipe: HandPipe, seat: SeatLink
):
    pipe.ready["status"] = [status(3), status(5), status(4)]
    first = seat.poll(T0).status
    pipe.ready["status"] = [status(4)]
    assert (first.seq, seat.poll(T0).status) == (5, None)


def test_a_cell_that_starts_again_is_heard_and_the_one_before_no_more(
    pipe: HandPipe, seat: SeatLink
):
    found = []
    for data in (status(900), status(0, session=7), status(901), status(1, session=7)):
        pipe.ready["status"] = [data]
        news = seat.poll(T0).status
        found.append(None if news is None else news.seq)
    assert found == [900, 0, None, 1]


def test_a_stop_is_repeated_until_this_very_press_is_answered(pipe: HandPipe, seat: SeatLink):
    seat.stop(T0)
    seat.stop(T0)
    pipe.ready["status"] = [status(0, stop_seq=1)]
    pipe.sent.clear()
    seat.poll(T0 + 20 * NS_PER_MS)
    repeated = len(pipe.sent["stop"])
    pipe.ready["status"] = [status(1, stop_seq=2)]
    pipe.sent.clear()
    seat.poll(T0 + 40 * NS_PER_MS)
    assert (repeated, len(pipe.sent["stop"])) == (1, 0)


def test_a_stop_that_is_never_answered_is_repeated_for_a_second(pipe: HandPipe, seat: SeatLink):
    seat.stop(T0)
    pipe.sent.clear()
    for ms in range(0, 2000, 10):
        seat.poll(T0 + ms * NS_PER_MS)
    count = len(pipe.sent["stop"])
    assert 98 <= count <= 100, f"{count} copies, one each 10 ms for a second"


def test_the_next_intent_is_sent_only_when_the_one_before_is_answered(
    pipe: HandPipe, seat: SeatLink
):
    seat.act(samples.commit(0, T0))
    seat.act(samples.commit(1, T0))
    before = [wire.unpack(data).seq for data in pipe.sent["intent"]]
    pipe.ready["status"] = [status(0, intent_seq=0)]
    seat.poll(T0)
    assert (before, wire.unpack(pipe.sent["intent"][-1]).seq) == ([0], 1)


def test_a_preview_other_than_the_status_names_is_not_given_out(pipe: HandPipe, seat: SeatLink):
    other = samples.preview(digest="cd" * 32)
    pipe.ready["status"] = [status(0)]
    pipe.ready["bulk"] = [messages.pack_preview(other, session=CELL, seq=0, t_ns=T0)]
    assert seat.poll(T0).preview is None


def test_rubbish_on_every_channel_changes_nothing(pipe: HandPipe, seat: SeatLink):
    for channel in ("ping", "status", "bulk"):
        pipe.ready[channel] = [
            b"",
            b"\xff" * 100,
            wire.pack(Kind.STOP, session=CELL, seq=0, t_ns=T0, expires_ns=T0),
        ]
    news = seat.poll(T0)
    assert (news.connection, news.status, news.preview) == (Connection.CONNECTING, None, None)
    assert pipe.sent == {}


def test_a_cell_sends_a_big_thing_at_most_every_tenth_of_a_second_however_often_it_is_asked(
    pipe: HandPipe,
):
    cell = CellLink(pipe, CELL)
    cell.offer(SceneText(digest=samples.DIGEST, text="table: 1"), T0)
    want = wire.pack(Kind.WANT, session=SEAT, seq=0, t_ns=T0, expires_ns=T0)
    for ms in range(0, 1000, 2):
        pipe.ready["want"] = [want] * 5
        cell.hear(T0 + ms * NS_PER_MS)
    count = len(pipe.sent["bulk"])
    assert count == 10, f"sent {count} times in a second, limit 10"


def test_rubbish_asked_of_a_cell_is_not_answered(pipe: HandPipe):
    cell = CellLink(pipe, CELL)
    cell.offer(samples.preview(), T0)
    payload = b"\xff" * 64
    pipe.ready["want"] = [
        b"junk",
        wire.pack(Kind.WANT, payload, session=SEAT, seq=0, t_ns=T0, expires_ns=T0),
    ]
    cell.hear(T0)
    assert pipe.sent["bulk"] == []
