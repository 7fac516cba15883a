"""Both ends over a line in simulated time that is as bad as the requirements say, and worse."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from brain.errors import ConfigError
from brain.types import NS_PER_MS, NS_PER_S, Intent
from hardware.clock import SimClock
from hardware.inline_link import Faults, InlineLine, inline_line
from hardware.link import CellLink
from hardware.seat_link import Connection
from hardware.status import SceneText
from tests.hardware import samples

TICK_NS = 2 * NS_PER_MS
LIFE_NS = 250 * NS_PER_MS
BAD = Faults(
    loss=0.2,
    delay_ns=5 * NS_PER_MS,
    jitter_ns=200 * NS_PER_MS,
    reorder=0.1,
    reorder_ns=50 * NS_PER_MS,
    duplicate=0.1,
    seat_ahead_ns=123 * NS_PER_S,
)


@dataclass
class Run:
    """What came out at both ends: (tick time, thing); `sent` has each pose's time at the cell."""

    sent: dict[int, int] = field(default_factory=dict)
    poses: list = field(default_factory=list)
    intents: list = field(default_factory=list)
    stops: list = field(default_factory=list)
    unanswered: list = field(default_factory=list)
    states: list = field(default_factory=list)
    previews: list = field(default_factory=list)
    scenes: list = field(default_factory=list)
    cell: CellLink | None = None


def drive(line: InlineLine, clock: SimClock, duration_ns: int, acts: dict | None = None) -> Run:
    """Run cell at 500 Hz and seat at 100 Hz; `acts`: what to do at the seat by tick number."""
    run, seq, start_ns = Run(cell=line.cell), 0, clock.now_ns()
    for tick in range(duration_ns // TICK_NS):
        clock.wait_until_ns(start_ns + tick * TICK_NS)
        now_ns, seat_ns = clock.now_ns(), line.seat_clock.now_ns()
        if act := (acts or {}).get(tick):
            act(seat_ns)
        if tick % 5 == 0:
            run.sent[seq] = now_ns
            line.seat.send(samples.hand(seq, seat_ns, LIFE_NS))
            seq += 1
            news = line.seat.poll(seat_ns)
            run.unanswered += [(now_ns, i) for i in news.unanswered]
            run.states += [(now_ns, news.connection)] if news.changed else []
            run.previews += [(now_ns, news.preview)] if news.preview else []
            run.scenes += [(now_ns, news.scene)] if news.scene else []
        heard = line.cell.hear(now_ns)
        run.poses += [(now_ns, heard.operator)] if heard.operator else []
        run.intents += [(now_ns, i) for i in heard.intents]
        run.stops += [now_ns] if heard.stop else []
        if tick % 10 == 0:
            line.cell.send_status(samples.status(tick, now_ns))
    return run


def bad_run(seed: int = 5, acts: dict | None = None, duration_ns: int = 10 * NS_PER_S) -> Run:
    clock = SimClock()
    return drive(inline_line(clock, BAD, seed), clock, duration_ns, acts)


def test_over_a_bad_line_the_newest_wins_and_no_older_follows_a_newer():
    seqs = [pose.seq for _, pose in bad_run().poses]
    assert len(seqs) > 200, f"{len(seqs)} poses of 1000 got through, limit 200"
    assert all(a < b for a, b in zip(seqs, seqs[1:], strict=False))


def test_over_a_bad_line_no_pose_is_taken_after_it_has_expired():
    run = bad_run()
    error_ns = run.cell.counts.clock_error_ms * NS_PER_MS
    worst_ns = max(now_ns - run.sent[pose.seq] for now_ns, pose in run.poses)
    assert worst_ns < LIFE_NS + error_ns, f"{worst_ns} ns old, limit {LIFE_NS + error_ns} ns"


def test_over_a_bad_line_stamps_are_converted_as_well_as_the_link_says():
    run = bad_run()
    error_ms = run.cell.counts.clock_error_ms
    off_ms = [abs(pose.t_ns - run.sent[pose.seq]) / NS_PER_MS for _, pose in run.poses]
    worst_ms = max(off_ms[len(off_ms) // 2 :])  # once the comparison has settled
    assert worst_ms <= error_ms, f"{worst_ms} ms off, says {error_ms} ms"


def test_over_a_bad_line_loss_is_counted_right():
    counts = bad_run().cell.counts
    share = counts.lost / 1000
    assert 0.15 < share < 0.21, f"counted {share} lost, 0.2 * 0.9 + 0.1 * 0.2 ** 2 were"


def test_over_a_bad_line_intents_arrive_once_and_in_order():
    clock = SimClock()
    line = inline_line(clock, BAD, 5)
    acts = {
        500 + 20 * k: lambda t_ns, k=k: line.seat.act(samples.commit(k, t_ns)) for k in range(5)
    }
    run = drive(line, clock, 8 * NS_PER_S, acts)
    assert [i.seq for _, i in run.intents] + [i.seq for _, i in run.unanswered] == list(range(5))


@pytest.mark.parametrize("seed", range(5))
def test_over_a_bad_line_every_press_of_stop_gets_through_once_and_soon(seed: int):
    clock = SimClock()
    line = inline_line(clock, BAD, seed)
    run = drive(line, clock, 6 * NS_PER_S, {500: line.seat.stop, 1500: line.seat.stop})
    after_ms = [(t - s) / NS_PER_MS for t, s in zip(run.stops, (1e9, 3e9), strict=True)]
    limit_ms = (BAD.delay_ns + BAD.jitter_ns) / NS_PER_MS
    assert max(after_ms) <= limit_ms, f"stops took {after_ms} ms, limit {limit_ms}"


def test_a_stop_gets_through_when_nine_of_ten_messages_are_lost():
    clock = SimClock()
    line = inline_line(clock, Faults(loss=0.9), 1)
    assert len(drive(line, clock, 3 * NS_PER_S, {500: line.seat.stop}).stops) == 1


def test_a_stop_gets_through_before_the_cell_has_heard_anything_else():
    clock = SimClock()
    line = inline_line(clock)
    line.seat.stop(line.seat_clock.now_ns())
    assert line.cell.hear(clock.now_ns()).stop


def test_after_a_stall_of_two_seconds_the_burst_delivers_nothing_stale():
    stall = (3 * NS_PER_S, 5 * NS_PER_S)
    clock = SimClock()
    line = inline_line(clock, Faults(stall_ns=stall, seat_ahead_ns=-7 * NS_PER_S))
    commit = {1600: lambda t_ns: line.seat.act(samples.commit(0, t_ns))}  # 200 ms into the stall
    run = drive(line, clock, 8 * NS_PER_S, commit)
    worst_ns = max(now_ns - run.sent[pose.seq] for now_ns, pose in run.poses)
    assert worst_ns <= LIFE_NS, f"{worst_ns} ns old, limit {LIFE_NS} ns"
    assert not any(stall[0] < now_ns < stall[1] for now_ns, _ in run.poses)
    assert run.intents == []
    assert [i.seq for _, i in run.unanswered] == [0]
    assert run.cell.counts.expired > 100
    assert run.poses[-1][0] > 7 * NS_PER_S  # and it goes on afterwards


def test_a_silent_seat_shows_within_the_age_of_its_last_word():
    clock = SimClock()
    line = inline_line(clock)
    drive(line, clock, NS_PER_S)
    clock.wait_until_ns(clock.now_ns() + 200 * NS_PER_MS)
    line.cell.hear(clock.now_ns())
    silent_ms = (clock.now_ns() - line.cell.last_heard_ns) / NS_PER_MS
    assert 200 <= silent_ms <= 212, f"silent for {silent_ms} ms, it was 200 to 210, 2 off at most"


def test_an_intent_that_gets_no_answer_is_handed_back_after_a_second():
    clock = SimClock()
    line = inline_line(clock, Faults(loss=1.0))
    cancel = Intent(t_ns=0, seq=0, kind="cancel", source="script")
    run = drive(line, clock, 2 * NS_PER_S, {0: lambda _: line.seat.act(cancel)})
    assert [now_ns for now_ns, _ in run.unanswered] == [NS_PER_S]


def test_the_state_of_the_connection_follows_a_stall():
    clock = SimClock()
    line = inline_line(clock, Faults(stall_ns=(2 * NS_PER_S, 4 * NS_PER_S)))
    states = drive(line, clock, 6 * NS_PER_S).states
    assert [state for _, state in states] == [
        Connection.CONNECTED,
        Connection.LOST,
        Connection.CONNECTED,
    ]
    lost_ms = (states[1][0] - 2 * NS_PER_S) / NS_PER_MS
    assert lost_ms <= 510, f"loss noticed after {lost_ms} ms, limit 510"


def test_before_anything_is_heard_the_seat_is_connecting():
    assert inline_line(SimClock()).seat.connection is Connection.CONNECTING


def test_a_scene_and_a_preview_arrive_over_a_bad_line_and_once():
    clock = SimClock()
    line = inline_line(clock, BAD, 2, want_scene=True)
    line.cell.offer(SceneText(digest=samples.DIGEST, text="table: 1"), 0)
    line.cell.offer(samples.preview(500), 0)
    run = drive(line, clock, 6 * NS_PER_S)
    assert [scene.text for _, scene in run.scenes] == ["table: 1"]
    assert [preview.digest for _, preview in run.previews] == [samples.DIGEST]


def test_a_preview_that_the_status_does_not_name_is_not_fetched():
    clock = SimClock()
    line = inline_line(clock)
    line.cell.offer(samples.preview(digest="cd" * 32), 0)
    assert drive(line, clock, NS_PER_S).previews == []


def test_the_round_trip_is_what_the_line_takes():
    clock = SimClock()
    line = inline_line(clock, Faults(delay_ns=30 * NS_PER_MS, seat_ahead_ns=NS_PER_S))
    drive(line, clock, 2 * NS_PER_S)
    trip_ms = line.seat.round_trip_ns / NS_PER_MS
    # both ways, and up to a status period and a seat period of waiting
    assert 60 <= trip_ms <= 92, f"round trip {trip_ms} ms, 60 to 92 are possible"


def test_a_restarted_cell_is_heard_though_its_numbers_begin_anew():
    clock = SimClock()
    line = inline_line(clock)
    drive(line, clock, NS_PER_S)
    again = line._replace(cell=CellLink(line.cell._pipe, session=77))
    run = drive(again, clock, NS_PER_S)
    assert len(run.poses) > 50
    assert line.seat.holds_cell


def test_a_seat_that_lost_the_cell_waits_and_gets_it_back_under_a_new_session():
    clock = SimClock()
    line = inline_line(clock)
    drive(line, clock, NS_PER_S)
    other = inline_line(clock, seed=9)
    pipe = line.seat._pipe
    other.seat._pipe = pipe
    clock.wait_until_ns(clock.now_ns() + 1100 * NS_PER_MS)  # the first seat says nothing
    drive(line._replace(seat=other.seat), clock, NS_PER_S)
    assert (line.seat.poll(clock.now_ns()).status, other.seat.holds_cell) == (None, True)
    clock.wait_until_ns(clock.now_ns() + 1100 * NS_PER_MS)  # now the second says nothing
    run = drive(line, clock, 2 * NS_PER_S)
    assert line.seat.holds_cell
    assert len(run.poses) > 50


def test_the_same_seed_gives_the_same_line_and_another_seed_another():
    outcomes = [
        [(now_ns, pose.seq) for now_ns, pose in bad_run(seed, duration_ns=NS_PER_S).poses]
        for seed in (5, 5, 6)
    ]
    assert outcomes[0] == outcomes[1] != outcomes[2]


def test_what_happens_to_a_message_does_not_depend_on_other_channels():
    runs = []
    for acts in ({}, {10: True}):
        clock = SimClock()
        line = inline_line(clock, BAD, 5)
        stop = {tick: line.seat.stop for tick in acts}
        runs.append([(n, p.seq) for n, p in drive(line, clock, NS_PER_S, stop).poses])
    assert runs[0] == runs[1]


def test_a_hand_over_a_good_line_arrives_bit_for_bit_in_the_tick_it_was_sent():
    clock = SimClock()
    line = inline_line(clock)
    drive(line, clock, NS_PER_S)
    clock.wait_until_ns(clock.now_ns() + TICK_NS)
    sample = samples.hand(1000, clock.now_ns())
    line.seat.send(sample)
    heard = line.cell.hear(clock.now_ns()).operator
    off_ms = abs(heard.t_ns - sample.t_ns) / NS_PER_MS
    assert off_ms <= 2, f"stamp {off_ms} ms off, limit is the 2 ms that the ends look"
    assert heard.T_seat_hand.tobytes() == sample.T_seat_hand.tobytes()


@pytest.mark.parametrize(
    "bad", [{"loss": 1.5}, {"loss": float("nan")}, {"delay_ns": -1}, {"stall_ns": (2, 1)}]
)
def test_a_line_that_cannot_be_is_refused_by_the_name_of_its_field(bad: dict):
    with pytest.raises(ConfigError, match=next(iter(bad))):
        Faults(**bad)
