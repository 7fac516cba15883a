"""A recorded operator does again exactly what was done, through the link that a person uses."""

from __future__ import annotations

import pickle
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from brain.errors import ConfigError
from brain.geometry import frozen, rotvec_to_matrix, transform
from brain.playback import DONE
from brain.types import NS_PER_MS, Intent, Mode
from hardware.clock import SimClock
from hardware.inline_link import InlineLine, inline_line
from hardware.log import LogReader
from hardware.resolve import resolve
from hardware.scene import load_scene
from hardware.trace import StopPress, TraceEvent, read_trace
from sim.runlog import LOG_NAME
from sim.session import run_lockstep
from tests.hardware import samples
from vr.scripted import REST, Script, ScriptedSeat, arm_up
from vr.traced import RecordedSeat, TracedSeat, operator, recording

TICK_NS = 4 * NS_PER_MS
RESOLVED = resolve(load_scene("z1_bench"), 3)
ROBOTS = {"z1": "z1"}


class Stage:
    """A seat at a line in simulated time, and the far end, which says what a test wants."""

    def __init__(self, start_ns: int = 0) -> None:
        self.clock = SimClock(start_ns)
        self.line: InlineLine = inline_line(self.clock)
        self.said: list[TraceEvent] = []
        self.line.seat.tap = self.said.append
        self.told = 0

    def tell(self, mode: Mode, reason: str = "", note: str = "") -> None:
        self.told += 1
        state = samples.status(
            self.told, self.clock.now_ns(), mode=mode, reason=reason, note=note, arms=()
        )
        self.line.cell.send_status(state)

    def step(self, seat: TracedSeat, steps: int = 1) -> None:
        for _ in range(steps):
            self.line.cell.hear(self.clock.now_ns())
            seat.step()
            self.clock.wait_until_ns(self.clock.now_ns() + TICK_NS)

    def seat(self, *events: TraceEvent) -> TracedSeat:
        return TracedSeat(events, self.line.seat, self.clock, "z1")


def hand(seq: int, t_ms: int):
    return samples.hand(seq, t_ms * NS_PER_MS, source="trace", arm="z1")


def act(kind: str, seq: int, t_ms: int) -> Intent:
    return Intent(t_ns=t_ms * NS_PER_MS, seq=seq, kind=kind, source="trace")


def wave(seat: ScriptedSeat) -> Script:
    """Lead the arm by the hand, press stop."""
    if not (yield from arm_up(seat)):
        return False
    seat.engaged = False
    yield from seat.wait(0.1)
    seat.engaged = True
    if not (yield from seat.until(lambda s: s.mode is Mode.TELEOP, 0.5)):
        return False
    for i in range(80):
        turn = rotvec_to_matrix(np.array([0.0, 0.0, 0.002 * i]))
        seat.T_seat_hand = frozen(REST @ transform((0.0, 0.0, 0.0004 * i), turn))
        seat.grip = min(1.0, 0.02 * i)
        yield
    seat.stop()
    return (yield from seat.until(lambda s: s.mode is Mode.STOPPED, 1.0))


def waving(link, clock, arm: str) -> ScriptedSeat:
    seat = ScriptedSeat(link, clock, arm)
    seat.play(wave)
    return seat


def test_a_run_led_by_hand_is_the_same_bit_for_bit_when_its_trace_is_played(tmp_path):
    path, folders = tmp_path / "hand.jsonl", [tmp_path / "a", tmp_path / "b"]
    for folder in folders:
        folder.mkdir()
    recorded = partial(RecordedSeat, waving, path, RESOLVED)
    then = run_lockstep(RESOLVED, "pick_place", recorded, folders[0])
    again = run_lockstep(
        RESOLVED, "pick_place", operator(RESOLVED, "pick_place", trace=path), folders[1]
    )
    ticks = list(LogReader(folders[0] / LOG_NAME).ticks())
    led = np.array([t["arms"][0]["state"]["q_rad"] for t in ticks if t["mode"] == Mode.TELEOP])
    moved_rad = float(np.ptp(led, axis=0).max())
    print(f"led by {moved_rad:.3f} rad, hashes {then.hash[:16]} and {again.hash[:16]}")
    assert moved_rad > 0.05, "the hand did not lead the arm"
    assert ticks[-1]["mode"] == Mode.STOPPED
    assert again.hash == then.hash


def test_what_is_said_is_recorded_once_from_the_first_word_on(tmp_path):
    stage = Stage(start_ns=7 * 10**9)
    with recording(stage.line.seat, tmp_path / "a.jsonl", RESOLVED):
        start = stage.clock.now_ns()
        stage.line.seat.send(samples.hand(1, start, source="window", arm="z1"))
        stage.line.seat.act(Intent(t_ns=start, seq=1, kind="disarm", source="window"))
        stage.line.seat.stop(start + 5)
        for _ in range(100):  # nobody answers: all is sent again and again
            stage.clock.wait_until_ns(stage.clock.now_ns() + TICK_NS)
            stage.line.seat.poll(stage.clock.now_ns())
    found = read_trace(tmp_path / "a.jsonl", "z1_bench", ROBOTS)
    assert [event.t_ns for event in found] == [0, 0, 5]
    assert [type(event).__name__ for event in found] == ["OperatorInput", "Intent", "StopPress"]


def test_a_trace_is_played_on_the_clock_of_the_first_step():
    stage = Stage(start_ns=10**9)
    events = hand(1, 0), act("disarm", 1, 12), hand(2, 12), StopPress(t_ns=13 * NS_PER_MS)
    seat = stage.seat(*events)
    stage.step(seat, 3)
    assert [event.t_ns - 10**9 for event in stage.said] == [0], "only the first is due at 8 ms"
    stage.step(seat)
    assert [event.t_ns - 10**9 for event in stage.said] == [0, 12_000_000, 12_000_000]
    assert seat.done is None
    stage.step(seat)
    assert [event.t_ns - 10**9 for event in stage.said] == [0, 12_000_000, 12_000_000, 13_000_000]
    assert seat.done is True


def test_after_its_end_a_trace_says_nothing():
    stage = Stage()
    seat = stage.seat(hand(1, 0))
    stage.step(seat, 10)
    assert len(stage.said) == 1


def test_a_trace_whose_commit_went_to_its_end_succeeds():
    stage = Stage()
    seat = stage.seat(hand(1, 0), hand(2, 8), hand(3, 16))
    stage.tell(Mode.COMMIT, "committed by trace")
    stage.step(seat)
    stage.tell(Mode.HOLD, DONE)
    stage.step(seat, 5)
    assert (seat.done, seat.why) == (True, DONE)


@pytest.mark.parametrize(
    ("mode", "reason"),
    [(Mode.HOLD, "dead-man released"), (Mode.STOPPED, "stop pressed"), (Mode.FAULT, "arm: gone")],
)
def test_a_trace_whose_commit_ended_otherwise_fails_with_the_reason(mode, reason):
    stage = Stage()
    seat = stage.seat(hand(1, 0), hand(2, 8), hand(3, 16))
    stage.tell(Mode.COMMIT, "committed by trace")
    stage.step(seat)
    stage.tell(mode, reason)
    stage.step(seat, 5)
    assert (seat.done, seat.why) == (False, reason)


def test_a_trace_that_ends_in_a_fault_fails_with_the_reason():
    stage = Stage()
    seat = stage.seat(hand(1, 0), hand(2, 8))
    stage.tell(Mode.FAULT, "arm: gone")
    stage.step(seat, 5)
    assert (seat.done, seat.why) == (False, "arm: gone")


def test_the_first_refusal_is_the_reason():
    stage = Stage()
    seat = stage.seat(hand(1, 0), hand(2, 8), hand(3, 16))
    for note in ("commit refused: no such rehearsal", "rehearse refused: busy"):
        stage.tell(Mode.HOLD, "", note)
        stage.step(seat, 2)
    stage.step(seat)
    assert seat.why == "commit refused: no such rehearsal"


def test_a_trace_in_which_nothing_happens_is_refused(tmp_path):
    path: Path = tmp_path / "a.jsonl"
    with recording(Stage().line.seat, path, RESOLVED):
        pass
    with pytest.raises(ConfigError, match="nothing happens in it"):
        operator(RESOLVED, "pick_place", trace=path)


def test_a_trace_of_another_cell_is_refused(tmp_path):
    path: Path = tmp_path / "a.jsonl"
    stage = Stage()
    with recording(stage.line.seat, path, RESOLVED):
        stage.line.seat.stop(0)
    with pytest.raises(ConfigError, match="cell: recorded for 'z1_bench', this is 'bench_pick'"):
        operator(resolve(load_scene("bench_pick"), 3), "pick_place", trace=path)


def test_nothing_is_recorded_over_a_file(tmp_path):
    path: Path = tmp_path / "a.jsonl"
    path.write_text("mine")
    with (
        pytest.raises(ConfigError, match="File exists"),
        recording(Stage().line.seat, path, RESOLVED),
    ):
        pass
    assert path.read_text() == "mine"


def test_who_sits_there_can_be_sent_to_the_process_of_a_paced_run(tmp_path):
    path: Path = tmp_path / "a.jsonl"
    stage = Stage()
    with recording(stage.line.seat, path, RESOLVED):
        stage.line.seat.send(samples.hand(1, 0, arm="z1"))
    maker = operator(RESOLVED, "pick_place", trace=path, record=tmp_path / "b.jsonl")
    seat = pickle.loads(pickle.dumps(maker))(stage.line.seat, stage.clock, "z1")
    stage.step(seat)
    assert seat.done is True
    assert (tmp_path / "b.jsonl").read_bytes() == path.read_bytes()
