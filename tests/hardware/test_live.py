"""The loop that keeps the wall's time: what is late is counted, what is missed is never made up."""

from __future__ import annotations

import gc
from pathlib import Path

import numpy as np
import pytest

from brain.errors import DeviceFault, LinkError
from brain.limits import DEFAULT
from brain.types import Goal, Intent, Mode
from brain.world import make_world
from hardware.clock import SimClock
from hardware.journal import StreamJournal, log_main
from hardware.live import LATE_NS, STATUS_TICKS, Histogram, Loop
from hardware.log import LogReader
from hardware.receive import Heard
from hardware.record import RunHash
from hardware.replay import Recording
from hardware.streams import Outbox, stream
from hardware.warm import warm
from tests.brain.cells import HOME, cell
from tests.brain.streams import SPUN, rehearsal, timed
from tests.brain.streams import stream as motion
from tests.ideal import TICK_NS, Bench

ONE = cell()


class LateClock(SimClock):
    """A clock at which the waits end late by what a test says: tick number to ns."""

    def __init__(self, late_ns: dict[int, int] | None = None) -> None:
        super().__init__()
        self.late_ns = late_ns or {}

    def wait_until_ns(self, t_ns: int) -> None:
        super().wait_until_ns(t_ns + self.late_ns.pop(t_ns // TICK_NS, 0))


class Talk:
    """The cell's end of a link: says what a test has laid ready, keeps what it is sent."""

    def __init__(self) -> None:
        self.ready: dict[int, Heard] = {}
        self.statuses: list = []
        self.previews: list = []
        self.refuse = False
        self.calls = 0

    def hear(self, now_ns: int) -> Heard:
        self.calls += 1
        return self.ready.pop(self.calls, Heard())

    def send_status(self, status) -> None:
        if self.refuse:
            raise LinkError("status: too large")
        self.statuses.append(status)

    def offer(self, thing, now_ns: int) -> None:
        self.previews.append(thing)


class Notes:
    """A journal in memory."""

    def __init__(self) -> None:
        self.ticks: list = []
        self.events: list = []

    def tick(self, record) -> None:
        self.ticks.append(record)

    def event(self, channel, t_ns, data) -> None:
        self.events.append((channel, t_ns, data))


class Rig:
    """A loop over ideal devices and a clock of the test's."""

    def __init__(self, late_ns: dict[int, int] | None = None) -> None:
        self.bench = Bench(ONE)
        self.talk, self.notes, self.time = Talk(), Notes(), SimClock()
        self.loop = Loop(self.bench.spine, self.talk, self.time, self.notes)
        self.clock = LateClock(late_ns)
        self.ticks: list[int] = []
        cycle = self.bench.spine.cycle

        def counted(t_ns: int, heard: Heard):
            self.ticks.append(t_ns // TICK_NS)
            for device in (*self.bench.arms, self.bench.tracker):
                device.t_ns = t_ns
            return cycle(t_ns, heard)

        self.bench.spine.cycle = counted

    def run(self, ticks: int) -> None:
        """Run so many ticks; a multiple of `STATUS_TICKS`."""
        self.loop.run(self.clock, lambda: len(self.ticks) >= ticks)


# ----------------------------------------------------------------------------------------- pace


def test_ticks_come_at_every_multiple_of_the_tick_and_carry_that_time():
    rig = Rig()
    rig.run(50)
    assert rig.ticks == list(range(1, 51))
    assert (rig.loop.pace.ticks, rig.loop.pace.late, rig.loop.pace.skipped) == (50, 0, 0)


@pytest.mark.parametrize(("late_ns", "counted"), [(LATE_NS, 0), (LATE_NS + 1, 1)])
def test_a_tick_is_late_when_it_starts_more_than_half_a_ms_after_it_was_due(late_ns, counted):
    rig = Rig({7: late_ns})
    rig.run(20)
    assert rig.loop.pace.late == counted
    assert rig.ticks == list(range(1, 21))


def test_ticks_whose_time_has_passed_are_skipped_counted_and_never_made_up():
    rig = Rig({7: 5 * TICK_NS + LATE_NS // 2})
    rig.run(20)
    assert rig.ticks == [*range(1, 7), *range(12, 26)]
    assert (rig.loop.pace.skipped, rig.loop.pace.late) == (5, 0)


def test_a_tick_that_is_late_by_less_than_its_period_is_done_once():
    rig = Rig({7: TICK_NS - 1})
    rig.run(20)
    assert rig.ticks == list(range(1, 21))
    assert (rig.loop.pace.skipped, rig.loop.pace.late) == (0, 1)


def test_the_report_holds_the_true_percentiles_and_the_worst():
    rig = Rig({k: 10_000 * k for k in range(1, 101)})
    rig.run(100)
    report = rig.loop.report()
    assert (report.late_p50_us, report.late_p99_us, report.late_max_us) == (501.0, 991.0, 1000.0)


def test_a_histogram_counts_what_is_beyond_its_bins_and_keeps_the_worst():
    found = Histogram()
    for ns in (-5, 1_000, 10**12):
        found.add(ns)
    assert found.percentiles_us(1.0, 100.0) == (1.0, float(Histogram.BINS))
    assert found.max_ns == 10**12


def test_the_pace_is_in_every_status_and_once_a_second_in_the_journal():
    rig = Rig({7: LATE_NS + 1, 9: TICK_NS})
    rig.run(1000)
    assert len(rig.talk.statuses) == 1000 // STATUS_TICKS
    last = rig.talk.statuses[-1]
    assert (last.ticks, last.late, last.skipped) == (1000, 1, 1)
    paces = [t_ns for channel, t_ns, _ in rig.notes.events if channel == "/pace"]
    assert paces == [TICK_NS, TICK_NS + 10**9, TICK_NS + 2 * 10**9][: len(paces)]
    assert len(paces) == 3


# ------------------------------------------------------------------------------------- the seat


def test_a_sample_that_comes_while_a_tick_is_late_is_not_from_the_future():
    rig = Rig({k: LATE_NS for k in range(1, 30)})
    rig.bench.t_ns = 5 * TICK_NS + LATE_NS // 2
    rig.talk.ready[5] = Heard(operator=rig.bench.sample())
    rig.run(20)
    assert rig.notes.ticks[4].seen.operator.t_ns == 5 * TICK_NS
    assert rig.notes.ticks[4].seen.t_ns == 5 * TICK_NS


def test_a_rehearsal_is_offered_to_the_seat_once():
    rig = Rig()
    rig.bench.worker.result = rehearsal(ONE, motion(timed(ONE.arms[0].model, HOME, SPUN)))
    engaged = rig.bench.sample

    def hand(tick: int, down: bool, *intents: Intent) -> None:
        rig.bench.t_ns, rig.bench.engaged = tick * TICK_NS, down
        rig.talk.ready[tick] = Heard(operator=engaged(), intents=intents)

    hand(5, False)
    hand(10, True)
    goal = Goal(kind="task", task="test")
    hand(15, True, Intent(t_ns=0, seq=1, kind="rehearse", source="script", goal=goal))
    rig.run(60)
    assert rig.bench.mode is Mode.PREVIEW
    assert [p.digest for p in rig.talk.previews] == [rig.bench.worker.result.digest]


# --------------------------------------------------------------------------------------- faults


def test_after_a_fault_the_loop_goes_on_and_the_seat_sees_why():
    rig = Rig()
    rig.bench.arms[0].read_error = DeviceFault("joint 3 is on fire")
    rig.run(40)
    assert len(rig.ticks) == 40
    last = rig.talk.statuses[-1]
    assert last.mode is Mode.FAULT
    assert "joint 3 is on fire" in last.reason
    assert rig.bench.arms[0].commands[-1].stop


def test_a_fault_is_written_down_once_with_the_place_it_came_from():
    rig = Rig()
    rig.bench.arms[0].read_error = DeviceFault("joint 3 is on fire")
    rig.run(100)
    faults = [data for channel, _, data in rig.notes.events if channel == "/fault"]
    assert len(faults) == 1
    assert "ideal.py" in faults[0]["trace"]


def test_a_status_that_cannot_be_sent_does_not_keep_the_arms_from_their_ticks():
    rig = Rig()
    rig.talk.refuse = True
    rig.run(40)
    assert len(rig.ticks) == 40
    assert ("/link", 10 * TICK_NS, {"error": "status: too large"}) in rig.notes.events


def test_the_loop_s_end_tells_every_arm_to_stop_and_closes_it():
    rig = Rig()
    rig.run(10)
    assert rig.bench.arms[0].commands[-1].stop
    assert rig.bench.arms[0].closed


def test_whatever_ends_the_loop_the_arms_are_told_to_stop():
    rig = Rig()

    def interrupt(now_ns: int) -> Heard:
        raise KeyboardInterrupt

    rig.talk.hear = interrupt
    with pytest.raises(KeyboardInterrupt):
        rig.run(10)
    assert rig.bench.arms[0].commands[-1].stop
    assert rig.bench.arms[0].closed


def test_ticks_leave_no_cycles_for_the_collector_which_is_off_while_the_loop_runs():
    bench = Bench(ONE)
    bench.arm_and_drive()
    bench.run(50)  # what is done once, loading kernels, may leave some
    while gc.collect():  # finalizers of what other tests left may leave some more
        pass
    gc.disable()
    bench.records.clear()
    bench.run(500)
    gc.set_debug(gc.DEBUG_SAVEALL)
    gc.collect()
    gc.set_debug(0)
    found = [repr(thing)[:200] for thing in gc.garbage]
    gc.garbage.clear()
    gc.enable()
    assert bench.mode is Mode.TELEOP
    assert found == [], "in cycles after 500 ticks; a tick must leave none"


# ------------------------------------------------------------------------------ warm, written


def test_warming_up_goes_through_every_mode_in_which_an_arm_moves():
    modes = warm(ONE, DEFAULT, make_world(()), (HOME,))
    assert {Mode.HOLD, Mode.TELEOP, Mode.REHEARSING, Mode.PREVIEW, Mode.COMMIT} <= modes


class Post:
    """A parent that never says stop."""

    def ready(self) -> None:
        pass

    def pause(self, seconds: float) -> bool:
        return False


def test_what_a_loop_sends_is_in_the_log_as_if_it_had_been_written_there(tmp_path: Path):
    bench = Bench(ONE)
    made = rehearsal(ONE, motion(timed(ONE.arms[0].model, HOME, SPUN)))
    bench.commit(made)
    bench.run(20)
    reader, writer = stream()
    journal = StreamJournal(outbox := Outbox(writer))
    for record in bench.records:
        journal.tick(record)
    journal.event("/pace", 5, {"late": 3})
    other_reader, other_writer = stream()
    StreamJournal(other := Outbox(other_writer)).event("/sim", 7, {"qpos": np.arange(3.0)})
    outbox.close()
    other.close()
    log_main(Post(), tmp_path / "run.mcap", {"seed": 1}, (reader, other_reader))
    recording = Recording(tmp_path / "run.mcap")
    run_hash = RunHash()
    assert [t["hash"] for t in recording.ticks] == [run_hash.add(r) for r in bench.records]
    assert recording.answers[1].result.digest == made.digest
    events = {e.channel: e.data for e in LogReader(tmp_path / "run.mcap").events()}
    assert (events["/pace"], events["/sim"]) == ({"late": 3}, {"qpos": [0.0, 1.0, 2.0]})
