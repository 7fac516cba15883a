"""The cell's ears without a line: what is taken, what is dropped, and how it is counted."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brain.types import NS_PER_MS, NS_PER_S
from hardware import messages, wire
from hardware.receive import TAKEOVER_NS, ClockOffset, Receiver, SequenceWindow
from hardware.wire import Kind, Pong
from tests.hardware import samples

CELL, SEAT, OTHER = 1, 2, 3
T0 = 10 * NS_PER_S


def pong(now_ns: int, session: int = SEAT, ahead_ns: int = 0, cell: int = CELL) -> bytes:
    """Answer a ping that took no time on the way."""
    there_ns = now_ns + ahead_ns
    return wire.pack_pong(Pong(cell, now_ns, there_ns), session=session, seq=0, t_ns=there_ns)


def synced(session: int = SEAT, ahead_ns: int = 0) -> Receiver:
    receiver = Receiver(CELL)
    receiver.hear(pong(T0, session, ahead_ns), T0)
    return receiver


def pose(seq: int, t_ns: int, session: int = SEAT) -> bytes:
    return wire.pack_pose(samples.hand(seq, t_ns), session)


def intent(seq: int, t_ns: int, session: int = SEAT) -> bytes:
    return messages.pack_intent(
        samples.commit(seq, t_ns), session=session, expires_ns=t_ns + NS_PER_S
    )


def stop(seq: int, session: int = SEAT) -> bytes:
    return wire.pack(Kind.STOP, session=session, seq=seq, t_ns=0, expires_ns=0)


# ---------------------------------------------------------------- numbers


@given(st.data())
def test_loss_and_duplicates_are_counted_right_whatever_the_order(data: st.DataObject):
    arrived = data.draw(st.lists(st.integers(1000, 1300), min_size=1, max_size=60))
    window, duplicates, late, highest = SequenceWindow(), 0, 0, -1
    for seq in arrived:
        place = window.see(seq)
        duplicates += place == "duplicate"
        late += place == "late"
        assert (place == "new") == (seq > highest)
        highest = max(highest, seq)
    unique = set(arrived)
    assert window.lost == max(unique) - min(unique) + 1 - len(unique)
    assert duplicates == len(arrived) - len(unique)


@pytest.mark.parametrize("seq", [2**63, 5_000_000, 3])
def test_a_number_far_off_is_broken_and_changes_nothing(seq: int):
    window = SequenceWindow()
    window.see(3000)
    assert window.see(seq) == "broken"
    assert (window.lost, window.see(3001)) == (0, "new")


# ---------------------------------------------------------------- clocks


@given(
    st.integers(-(10**15), 10**15),
    st.lists(st.tuples(*[st.integers(0, 200 * NS_PER_MS)] * 3), min_size=1, max_size=40),
)
def test_the_clock_offset_is_never_off_by_more_than_it_says(ahead_ns: int, delays: list):
    clock = ClockOffset()
    for i, (out_ns, hold_ns, back_ns) in enumerate(delays):
        sent = T0 + i * 100 * NS_PER_MS
        arrived = sent + out_ns
        left = arrived + hold_ns
        clock.add(sent, arrived + ahead_ns, left + ahead_ns, left + back_ns)
    error_ns = abs(clock.local_ns(T0 + ahead_ns) - T0)
    limit_ns = min(out + back for out, _, back in delays) / 2 + NS_PER_MS
    assert error_ns <= clock.error_ns <= limit_ns, f"{error_ns} ns off, limit {limit_ns} ns"


def test_a_comparison_is_forgotten_after_ten_seconds():
    clock = ClockOffset()
    clock.add(T0, T0, T0, T0)  # perfect, but then the other clock is set forward by one second
    late = T0 + 11 * NS_PER_S
    clock.add(late, late + NS_PER_S + 5, late + NS_PER_S + 5, late + 10)
    assert clock.local_ns(late + NS_PER_S) == late


def test_an_impossible_ping_is_not_taken():
    clock = ClockOffset()
    clock.add(T0, T0, T0 + 20, T0 + 10)  # held for longer than it was away
    clock.add(T0, T0 + 5, T0, T0 + 10)  # left before it arrived
    assert clock.local_ns(T0) is None


# ---------------------------------------------------------------- poses


def test_a_pose_is_given_out_once_in_the_time_of_the_cell():
    receiver = synced(ahead_ns=5 * NS_PER_S)
    receiver.hear(pose(0, T0 + 5 * NS_PER_S), T0 + NS_PER_MS)
    first, second = receiver.take().operator, receiver.take().operator
    assert (first.t_ns, first.expires_ns) == (T0, T0 + 150 * NS_PER_MS)
    assert second is None


def test_of_several_poses_the_newest_is_given_out():
    receiver = synced()
    for seq in (3, 5, 4):
        receiver.hear(pose(seq, T0), T0)
    assert receiver.take().operator.seq == 5
    assert receiver.counts.reordered == 1


def test_an_older_pose_is_never_given_out_after_a_newer():
    receiver = synced()
    receiver.hear(pose(5, T0), T0)
    receiver.take()
    receiver.hear(pose(4, T0), T0)
    assert receiver.take().operator is None


def test_a_pose_before_the_clocks_are_compared_is_dropped_and_counted():
    receiver = Receiver(CELL)
    receiver.hear(pose(0, T0), T0)
    assert (receiver.take().operator, receiver.counts.unsynced) == (None, 1)


def test_an_answer_to_the_ping_of_an_earlier_cell_compares_no_clocks():
    receiver = Receiver(CELL)
    receiver.hear(pong(T0, cell=99), T0)
    receiver.hear(pose(0, T0), T0)
    assert receiver.take().operator is None


@pytest.mark.parametrize(("age_ms", "taken"), [(149, True), (150, False)])
def test_a_pose_is_taken_until_it_expires(age_ms: int, taken: bool):
    receiver = synced()
    receiver.hear(pose(0, T0), T0 + age_ms * NS_PER_MS)
    assert (receiver.take().operator is not None) == taken
    assert receiver.counts.expired == (not taken)


def test_a_pose_from_the_future_is_dropped_until_the_clocks_are_compared_anew():
    receiver = synced()
    receiver.hear(pose(0, T0 + 10 * NS_PER_S), T0)
    receiver.hear(pose(1, T0 + 10 * NS_PER_S), T0)
    assert (receiver.take().operator, receiver.counts.unsynced) == (None, 2)
    receiver.hear(pong(T0, ahead_ns=10 * NS_PER_S), T0)
    receiver.hear(pose(2, T0 + 10 * NS_PER_S), T0)
    assert receiver.take().operator.t_ns == T0


def test_a_pose_that_seems_to_come_from_a_moment_ahead_counts_as_now():
    receiver = synced()
    receiver.hear(pose(0, T0 + NS_PER_MS // 2), T0)  # within what the comparison may be off
    assert receiver.take().operator.t_ns == T0


def test_a_better_comparison_of_clocks_turns_no_time_back():
    receiver = Receiver(CELL)
    slow = wire.pack_pong(Pong(CELL, T0, T0), session=SEAT, seq=0, t_ns=T0)
    receiver.hear(slow, T0 + 20 * NS_PER_MS)  # off by 10 ms: the way back took it all
    receiver.hear(pose(0, T0 + 20 * NS_PER_MS), T0 + 30 * NS_PER_MS)
    first = receiver.take().operator
    receiver.hear(pong(T0 + 30 * NS_PER_MS), T0 + 30 * NS_PER_MS)
    receiver.hear(pose(1, T0 + 21 * NS_PER_MS), T0 + 30 * NS_PER_MS)
    assert receiver.take().operator.t_ns >= first.t_ns


def test_a_pose_that_is_not_valid_is_refused_and_the_newest_valid_one_stays():
    receiver = synced()
    receiver.hear(pose(0, T0), T0)
    nan = wire.pack(
        Kind.POSE, b"\xff" * 112, session=SEAT, seq=1, t_ns=T0, expires_ns=T0 + NS_PER_MS
    )
    receiver.hear(nan, T0)
    assert receiver.take().operator.seq == 0
    assert receiver.counts.refused == 1


def test_a_pose_that_says_it_lives_for_an_hour_is_refused():
    receiver = synced()
    payload = wire.unpack(pose(0, T0)).payload
    long = wire.pack(
        Kind.POSE, payload, session=SEAT, seq=0, t_ns=T0, expires_ns=T0 + 3600 * NS_PER_S
    )
    receiver.hear(long, T0)
    assert receiver.take().operator is None


@given(st.binary(max_size=200))
def test_rubbish_is_counted_and_nothing_else_happens(data: bytes):
    receiver = synced()
    receiver.hear(data, T0)
    heard = receiver.take()
    assert (heard.operator, heard.intents, heard.stop) == (None, (), False)
    assert receiver.counts.refused == 1


@pytest.mark.parametrize("kind", [Kind.PING, Kind.STATUS, Kind.WANT])
def test_a_message_that_no_seat_says_is_refused_and_takes_no_cell(kind: Kind):
    receiver = Receiver(CELL)
    receiver.hear(wire.pack(kind, session=OTHER, seq=0, t_ns=T0, expires_ns=T0), T0)
    assert (receiver.counts.refused, receiver.echo.session) == (1, None)


# ---------------------------------------------------------------- intents, stop, life signs


def test_an_intent_is_given_out_once_however_often_it_is_sent():
    receiver = synced()
    for _ in range(3):
        receiver.hear(intent(4, T0), T0)
    assert [i.seq for i in receiver.take().intents] == [4]


def test_an_intent_that_comes_after_a_later_one_is_dropped():
    receiver = synced()
    receiver.hear(intent(5, T0), T0)
    receiver.hear(intent(4, T0), T0)
    assert [i.seq for i in receiver.take().intents] == [5]


def test_an_intent_older_than_its_life_is_dropped():
    receiver = synced()
    receiver.hear(intent(0, T0), T0 + NS_PER_S)
    assert receiver.take().intents == ()


def test_a_press_of_stop_counts_once_however_many_copies_come():
    receiver = synced()
    heard = []
    for seq in (1, 1, 1, 2):
        receiver.hear(stop(seq), T0)
        heard.append(receiver.take().stop)
    assert heard == [True, False, False, True]


def test_anybody_may_press_stop_at_any_time():
    receiver = synced()
    receiver.hear(stop(1, OTHER), T0)
    assert receiver.take().stop
    unsynced = Receiver(CELL)
    unsynced.hear(stop(1), T0)
    assert unsynced.take().stop


def test_a_life_sign_counts_from_when_it_was_sent():
    receiver = synced()
    receiver.hear(pose(0, T0 + 10 * NS_PER_MS), T0 + 100 * NS_PER_MS)
    assert receiver.last_heard_ns == T0 + 10 * NS_PER_MS


def test_a_burst_of_old_messages_is_no_life_sign():
    receiver = synced()
    now_ns = T0 + 2 * NS_PER_S
    for seq in range(100):
        receiver.hear(pose(seq, T0 + seq * NS_PER_MS), now_ns)
    silent_ms = (now_ns - receiver.last_heard_ns) / NS_PER_MS
    assert silent_ms >= 1900, f"silent for {silent_ms} ms, at least 1900"


# ---------------------------------------------------------------- whose cell it is


def test_a_second_seat_is_ignored_while_the_first_is_there():
    receiver = synced()
    receiver.hear(pong(T0, OTHER), T0)
    receiver.hear(pose(0, T0, OTHER), T0)
    assert receiver.take().operator is None
    assert receiver.counts.foreign == 2


def test_a_second_seat_takes_over_when_the_first_is_silent_and_the_first_cannot_return():
    receiver = synced()
    now_ns = T0 + TAKEOVER_NS + 1
    receiver.hear(pong(now_ns, OTHER), now_ns)
    receiver.hear(pose(0, now_ns, OTHER), now_ns)
    assert receiver.take().operator.seq == 0
    later_ns = now_ns + 2 * TAKEOVER_NS
    receiver.hear(pong(later_ns), later_ns)
    receiver.hear(pose(900, later_ns), later_ns)
    assert receiver.take().operator is None


def test_a_seat_that_starts_again_is_heard_though_its_numbers_begin_anew():
    receiver = synced()
    receiver.hear(pose(500, T0), T0)
    receiver.hear(intent(7, T0), T0)
    receiver.take()
    now_ns = T0 + 2 * TAKEOVER_NS
    receiver.hear(pong(now_ns, OTHER), now_ns)
    receiver.hear(pose(0, now_ns, OTHER), now_ns)
    receiver.hear(intent(0, now_ns, OTHER), now_ns)
    heard = receiver.take()
    assert (heard.operator.seq, [i.seq for i in heard.intents]) == (0, [0])


def test_loss_is_kept_when_the_seat_changes():
    receiver = synced()
    for seq in (0, 5):
        receiver.hear(pose(seq, T0), T0)
    now_ns = T0 + 2 * TAKEOVER_NS
    receiver.hear(pong(now_ns, OTHER), now_ns)
    assert receiver.counts.lost == 4


def test_the_echo_says_what_was_heard_last_in_the_stamps_of_the_seat():
    receiver = synced(ahead_ns=NS_PER_S)
    receiver.hear(pose(6, T0 + NS_PER_S), T0)
    receiver.hear(intent(2, T0 + NS_PER_S), T0)
    receiver.hear(stop(3), T0)
    echo = receiver.echo
    assert (echo.session, echo.pose_seq, echo.pose_t_ns) == (SEAT, 6, T0 + NS_PER_S)
    assert (echo.intent_seq, echo.stop_seq) == (2, 3)
