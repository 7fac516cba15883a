"""Messages arrive whole and in order, and nobody waits for anybody."""

from __future__ import annotations

import os

import pytest

from hardware.streams import KEPT_BYTES, Inbox, Message, Outbox, stream


@pytest.fixture
def ends():
    reader, writer = stream()
    inbox, outbox = Inbox(reader), Outbox(writer)
    yield inbox, outbox
    inbox.close()
    if not writer.closed:
        outbox.close()


def drain(inbox: Inbox, outbox: Outbox) -> list[Message]:
    out: list[Message] = []
    while not outbox.empty:
        outbox.flush()
        out += inbox.take()
    while inbox.wait(0.0) and not inbox.ended:
        out += inbox.take()
    return out


def test_messages_arrive_whole_and_in_order_whatever_their_size(ends):
    inbox, outbox = ends
    sent = [
        Message(i % 256, bytes([i % 251]) * n) for i, n in enumerate([0, 1, 5, 4096, 3, 70_000])
    ]
    sent += [Message(9, os.urandom(3_000_000)), Message(1, b"last")]
    for message in sent:
        outbox.send(*message)
    assert drain(inbox, outbox) == sent


def test_a_writer_never_waits_for_a_reader_that_does_not_read(ends):
    inbox, outbox = ends
    for _ in range(50):
        outbox.send(1, bytes(100_000))  # the pipe holds a fifth of it
    assert not outbox.empty
    assert len(drain(inbox, outbox)) == 50


def test_what_cannot_be_kept_is_counted_and_the_rest_arrives(ends):
    inbox, outbox = ends
    piece = bytes(1_000_000)
    for _ in range(KEPT_BYTES // len(piece) + 10):
        outbox.send(1, piece)
    assert outbox.dropped > 0
    arrived = len(drain(inbox, outbox))
    assert arrived + outbox.dropped == KEPT_BYTES // len(piece) + 10


def test_before_an_end_what_is_kept_is_written_as_far_as_anybody_reads(ends):
    inbox, outbox = ends
    for _ in range(20):
        outbox.send(1, bytes(100_000))
    outbox.drain(seconds=0.02)
    assert not outbox.empty
    got: list[Message] = []
    while not outbox.empty:
        got += inbox.take()
        outbox.drain(seconds=0.02)
    outbox.close()
    assert len(got + drain(inbox, outbox)) == 20


def test_a_writer_learns_that_nobody_reads_any_more(ends):
    inbox, outbox = ends
    inbox.close()
    outbox.send(1, b"x")
    assert outbox.broken


def test_what_was_written_before_the_writer_ended_is_read_and_then_the_end(ends):
    inbox, outbox = ends
    outbox.send(1, b"x")
    outbox.close()
    assert inbox.take() == [Message(1, b"x")]
    assert inbox.take() == []
    assert inbox.ended
