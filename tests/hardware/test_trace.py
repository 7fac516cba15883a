from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from brain.errors import ConfigError, LinkError
from brain.types import Intent
from hardware.trace import StopPress, TraceWriter, read_trace
from tests.hardware import samples
from tests.values import replace

ROBOTS = {"left": "ur5e", "right": "z1"}
HEAD = {"forearm_trace": 1, "cell": "bench", "robots": ROBOTS}
HAND = {
    "t_ns": 5,
    "seq": 0,
    "expires_ns": 100,
    "tracked": True,
    "T_seat_hand": np.eye(4).tolist(),
    "engaged": True,
    "grip": 0.5,
    "arm": "left",
}
GOAL = {"kind": "task", "task": "pick_place"}
INTENT = {"t_ns": 5, "seq": 0, "kind": "rehearse", "goal": GOAL}
END = {"end": True}


def stored(tmp_path: Path, *lines: object) -> Path:
    path = tmp_path / "trace.jsonl"
    path.write_text("".join((x if isinstance(x, str) else json.dumps(x)) + "\n" for x in lines))
    return path


def refusal(path: Path) -> str:
    with pytest.raises(ConfigError) as caught:
        read_trace(path, "bench", ROBOTS)
    return str(caught.value)


def test_what_was_recorded_is_played_back_bit_for_bit(tmp_path: Path):
    events = [
        samples.hand(0, 0, source="trace"),
        samples.hand(1, 10, source="trace", tracked=False, T_seat_hand=None, grip=None),
        samples.hand(2, 10, source="trace", manner="gently"),
        replace(samples.rehearse(0, 10), source="trace"),
        StopPress(t_ns=20),
        Intent(t_ns=30, seq=1, kind="acknowledge", source="trace"),
    ]
    writer = TraceWriter(tmp_path / "a.jsonl", "bench", ROBOTS)
    for event in events:
        writer.add(event)
    writer.close()
    found = read_trace(tmp_path / "a.jsonl", "bench", ROBOTS)
    assert samples.same(found, tuple(events))


def test_a_trace_written_by_hand_is_read(tmp_path: Path):
    found = read_trace(
        stored(tmp_path, HEAD, {"hand": HAND}, {"intent": INTENT}, {"stop": {"t_ns": 9}}, END),
        "bench",
        ROBOTS,
    )
    assert [event.t_ns for event in found] == [5, 5, 9]


@pytest.mark.parametrize(
    ("head", "field"),
    [
        (HEAD | {"robots": {"left": "ur3e", "right": "z1"}}, "robots"),
        (HEAD | {"robots": {"left": "ur5e"}}, "robots"),
        (HEAD | {"cell": "other"}, "cell"),
        (HEAD | {"forearm_trace": 2}, "forearm_trace"),
        (HEAD | {"extra": 1}, "extra"),
        ({"robots": ROBOTS}, "forearm_trace"),
        ("not JSON", "JSON"),
    ],
)
def test_a_trace_for_something_else_is_refused_by_line_1_and_field(
    tmp_path: Path, head: object, field: str
):
    assert f"line 1: {field}" in refusal(stored(tmp_path, head))


@pytest.mark.parametrize(
    ("line", "field"),
    [
        ({"hand": HAND | {"grip": float("nan")}}, "hand.grip"),
        ({"hand": HAND | {"grip": 2}}, "hand.grip"),
        ({"hand": HAND | {"T_seat_hand": np.full((4, 4), np.inf).tolist()}}, "hand.T_seat_hand"),
        ({"hand": HAND | {"T_seat_hand": (np.eye(4) * 2).tolist()}}, "hand.T_seat_hand"),
        ({"hand": HAND | {"T_seat_hand": [[1.0]]}}, "hand.T_seat_hand"),
        ({"hand": HAND | {"tracked": False}}, "tracked"),
        ({"hand": HAND | {"expires_ns": 5}}, "expires_ns"),
        ({"hand": HAND | {"t_ns": 0.5}}, "hand.t_ns"),
        ({"hand": HAND | {"t_ns": 4}}, "t_ns"),
        ({"hand": HAND | {"seq": 0}}, "seq"),
        ({"hand": HAND | {"seq": 2, "arm": "third"}}, "hand.arm"),
        ({"hand": HAND | {"extra": 1}}, "hand.extra"),
        ({"hand": HAND | {"manner": "softly"}}, "hand.manner"),
        ({"hand": {k: v for k, v in HAND.items() if k != "engaged"}}, "hand.engaged"),
        ({"intent": INTENT | {"kind": "explode"}}, "intent.kind"),
        ({"intent": INTENT | {"kind": "commit"}}, "goal"),
        ({"intent": INTENT | {"goal": {"kind": "home", "arm": "third"}}}, "intent.goal.arm"),
        ({"stop": {"t_ns": -1}}, "stop.t_ns"),
        ({"stop": {"t_ns": 9}, "intent": INTENT}, "line"),
        ({}, "line"),
        ({"hand": None}, "line"),
        ({"end": False}, "end"),
        ('{"hand": {"t_ns": 5,', "JSON"),
        ("x" * 70_000, "line"),
    ],
)
def test_a_wrong_line_is_refused_by_its_number_and_field(tmp_path: Path, line: object, field: str):
    found = refusal(stored(tmp_path, HEAD, {"hand": HAND}, line))
    assert f"line 3: {field}" in found, found


def test_a_trace_that_was_cut_off_anywhere_is_refused(tmp_path: Path):
    whole = stored(tmp_path, HEAD, {"hand": HAND}, {"stop": {"t_ns": 9}}, END).read_bytes()
    read_trace(tmp_path / "trace.jsonl", "bench", ROBOTS)
    cut = tmp_path / "cut.jsonl"
    last = len(whole) - len(b"}\n")  # without its newline it is still whole
    for length in range(last + 1):
        cut.write_bytes(whole[:length])
        assert "trace" in refusal(cut), f"the first {length} of {len(whole)} bytes were taken"


def test_a_recording_that_was_not_finished_is_refused(tmp_path: Path):
    writer = TraceWriter(tmp_path / "a.jsonl", "bench", ROBOTS)
    writer.add(samples.hand(0, 0))
    writer._file.flush()
    assert "cut off" in refusal(tmp_path / "a.jsonl")
    writer.close()


def test_what_comes_after_the_end_is_refused(tmp_path: Path):
    assert "line 3: line: comes after the end" in refusal(
        stored(tmp_path, HEAD, END, {"hand": HAND})
    )


def test_a_missing_trace_is_refused(tmp_path: Path):
    assert "No such file" in refusal(tmp_path / "none.jsonl")


def test_an_empty_trace_is_refused(tmp_path: Path):
    assert "empty" in refusal(stored(tmp_path))


def test_a_trace_is_not_written_over_a_file(tmp_path: Path):
    with pytest.raises(ConfigError, match="File exists"):
        TraceWriter(stored(tmp_path, HEAD), "bench", ROBOTS)


def test_an_event_that_would_be_refused_is_not_written(tmp_path: Path):
    writer = TraceWriter(tmp_path / "a.jsonl", "bench", ROBOTS)
    with pytest.raises(LinkError):
        writer.add(samples.hand(0, 0, grip=float("nan")))
    writer.close()
    assert read_trace(tmp_path / "a.jsonl", "bench", ROBOTS) == ()
