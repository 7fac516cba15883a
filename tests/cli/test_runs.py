"""What a run leaves: the exit status, what it says, its log, its report, and the run again."""

from __future__ import annotations

import copy
import json
import re
import subprocess
import sys
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path

import pytest

import run_sim
from hardware.log import LogReader, LogWriter
from tests.cli.door import Said, brief_hand, door, log_of, run, stored

KEYS = {"ok", "placed_error_mm", "min_clearance_mm", "peak_force_n", "duration_s", "hash"}


@dataclass(frozen=True)
class Made:
    """A run, where its folder is, and the trace of its operator."""

    said: Said
    out: Path
    trace: Path


@pytest.fixture(scope="module")
def done(tmp_path_factory) -> Made:
    """The scripted demonstration, recorded."""
    out = tmp_path_factory.mktemp("done")
    trace = out / "hand.jsonl"
    return Made(run(out, "--json", "--record-trace", trace), out, trace)


@pytest.fixture(scope="module")
def brief(tmp_path_factory) -> Made:
    """An operator who only presses the dead-man."""
    out = tmp_path_factory.mktemp("brief")
    trace = stored(out / "brief.jsonl", brief_hand())
    return Made(run(out, "--json", "--trace", trace), out, trace)


def test_a_task_that_is_done_ends_with_status_0_and_one_json_object(done):
    assert done.said.status == 0, done.said
    found = done.said.json()
    assert set(found) >= KEYS, found
    assert found["ok"] is True
    assert found["placed_error_mm"] <= 10.0, "limit 10 mm"
    assert re.fullmatch("[0-9a-f]{64}", found["hash"])


def test_only_the_outcome_is_on_standard_output(done):
    assert len(done.said.out.splitlines()) == 1, done.said


def test_where_the_run_is_stands_on_standard_error(done):
    assert done.said.err == f"{log_of(done.out).parent}/\n"


def test_the_trace_of_a_run_played_again_is_the_same_run(done, tmp_path):
    again = run(tmp_path, "--json", "--trace", done.trace)
    print(again)
    assert again.status == 0
    assert again.json() == done.said.json()


def test_a_trace_of_another_arrangement_is_played_and_its_commit_refused(done, tmp_path):
    other = run(tmp_path, "--json", "--trace", done.trace, "--seed", "4")
    assert other.status == 1, other
    assert re.match(r"commit refused: no rehearsal with digest '[0-9a-f]+'", other.json()["reason"])


def test_a_task_that_is_not_done_ends_with_status_1_and_its_reason(brief):
    assert brief.said.status == 1, brief.said
    found = brief.said.json()
    assert found["ok"] is False
    assert found["reason"] == "the trace came to its end"


def test_without_json_the_outcome_is_a_sentence(brief, tmp_path):
    said = run(tmp_path, "--trace", brief.trace)
    assert said.out.startswith("FAILED: the trace came to its end: parts up to "), said
    assert len(said.out.splitlines()) == 1


def test_several_seeds_give_a_line_each_and_a_summary(brief, tmp_path):
    said = run(tmp_path, "--json", "--trace", brief.trace, "--seeds", "1-2")
    assert said.status == 1, said
    *lines, summary = (json.loads(line) for line in said.out.splitlines())
    assert [line["seed"] for line in lines] == [1, 2]
    assert all(set(line) >= KEYS for line in lines)
    assert summary == {"ok": False, "runs": 2, "done": 0, "hashes": 2}
    assert len(list(tmp_path.glob("*/seed-00?/run.mcap"))) == 2


def test_a_device_that_cannot_be_started_ends_with_status_3(tmp_path):
    said = run(tmp_path, "--fault", "arm.refuse")
    assert said.status == 3, said
    assert "z1/arm: refuses to start" in said.error()


# ---------------------------------------------------------------- again from the log


def test_a_log_runs_again_with_status_0(brief):
    said = door("--replay", log_of(brief.out))
    assert said.status == 0, said
    assert said.out == f"identical, hash {brief.said.json()['hash'][:16]}\n"


def test_a_log_runs_again_to_the_hash_of_the_run(brief):
    said = door("--replay", log_of(brief.out), "--json")
    assert said.json() == {"ok": True, "hash": brief.said.json()["hash"], "difference": None}


def test_an_altered_log_ends_with_status_1_and_names_the_first_tick(brief, tmp_path):
    reader = LogReader(log_of(brief.out))
    writer = LogWriter(tmp_path / "run.mcap", reader.head)
    for number, tick in enumerate(reader.ticks()):
        data = copy.deepcopy(tick)
        if number >= 120:
            data["arms"][0]["state"]["q_rad"][2] += 1e-9
        writer.tick(data)
    writer.close()
    said = door("--replay", tmp_path / "run.mcap")
    assert said.status == 1, said
    assert re.match(r"tick 120 at 0\.480 s differs: measured joints of z1", said.out), said
    with_json = door("--replay", tmp_path / "run.mcap", "--json")
    assert with_json.status == 1
    assert with_json.json()["difference"]["tick"] == 120


# ---------------------------------------------------------------- the report


class References(HTMLParser):
    """Whatever a page would fetch."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found = re.findall(r"url\(\s*['\"]?(?!data:|#)([^)'\"]+)|@import\s+(\S+)", text)
        self.images = 0
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name in ("src", "href", "xlink:href", "srcset", "data", "action", "poster"):
                self.images += (value or "").startswith("data:image/")
                if not (value or "").startswith(("data:", "#")):
                    self.found.append((tag, value or ""))


def test_a_run_without_a_report_leaves_only_its_log(brief):
    assert [path.name for path in log_of(brief.out).parent.iterdir()] == ["run.mcap"]


def test_a_run_leaves_a_report_that_needs_nothing_else(brief, tmp_path):
    said = run(tmp_path, "--trace", brief.trace, "--report")
    assert said.status == 1, said
    (path,) = tmp_path.glob("*/report.html")
    page = References(path.read_text())
    print(f"{path.stat().st_size} bytes, {page.images} pictures, fetches {page.found}")
    assert page.images > 0
    assert page.found == []


@pytest.mark.parametrize("args", [(), ("--json",)])
def test_an_answer_that_nobody_can_be_given_is_status_2_and_one_line(args, brief, tmp_path):
    said = answered_nowhere(brief, *args)
    assert said.returncode == 2, said
    assert said.stderr == "error: standard output cannot be written: No space left on device\n"


def answered_nowhere(brief, *args: str) -> subprocess.CompletedProcess[str]:
    """Run a log again with standard output on a full disk."""
    with open("/dev/full", "w") as full:
        return subprocess.run(
            [sys.executable, "run_sim.py", "--replay", log_of(brief.out), *args],
            cwd=Path(run_sim.__file__).parent,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
        )
