"""A run that is ended from outside leaves a log that can be read up to there."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from brain.types import NS_PER_S
from hardware.clock import WallClock, wait_for
from hardware.log import LogReader
from tests.cli.door import door, log_of

ROOT = Path(__file__).parents[2]
SOME_BYTES = 100_000
"""A log of about a second; that of the whole run is ten times as long."""


def heed_interrupts() -> None:
    """Undo what a shell does to what it runs in the background."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


def start(out: Path) -> subprocess.Popen[str]:
    """Begin a demonstration."""
    args = ["--seat", "none", "--scene", "z1_bench", "--no-report", "--out", str(out)]
    return subprocess.Popen(
        [sys.executable, "run_sim.py", *args],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=heed_interrupts,
    )


@contextmanager
def running(out: Path) -> Iterator[subprocess.Popen[str]]:
    """A demonstration that has come as far as its second second."""
    process = start(out)

    def wrote() -> bool:
        sizes = [path.stat().st_size for path in out.glob("*/run.mcap")]
        return process.poll() is not None or max(sizes, default=0) > SOME_BYTES

    try:
        assert wait_for(WallClock(), wrote, 120 * NS_PER_S), "no log after 120 s"
        yield process
    finally:
        process.kill()
        process.communicate()


def test_a_run_that_was_killed_leaves_a_log_that_is_read_up_to_there(tmp_path):
    with running(tmp_path) as process:
        process.kill()
        process.wait()
    assert process.returncode == -signal.SIGKILL, "the run was over before it was killed"
    reader = LogReader(log_of(tmp_path), allow_truncated=True)
    times_ns = [tick["t_ns"] for tick in reader.ticks()]
    print(f"{len(times_ns)} ticks up to {times_ns[-1] * 1e-9} s")
    assert reader.truncated
    assert times_ns[-1] > NS_PER_S, "a log is on disk after each second"
    assert times_ns == list(range(times_ns[0], times_ns[-1] + 1, times_ns[1] - times_ns[0]))
    said = door("--replay", log_of(tmp_path))
    assert said.status == 2, said
    assert f"cut off after {len(times_ns)} good ticks" in said.error()


def test_an_interrupted_run_ends_with_status_130_and_a_whole_log(tmp_path):
    with running(tmp_path) as process:
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert out == ""
    log = log_of(tmp_path)
    assert err == f"interrupted; the log {log} is complete up to here\n"
    reader = LogReader(log)
    ticks = list(reader.ticks())
    print(f"{len(ticks)} ticks up to {ticks[-1]['t_ns'] * 1e-9} s")
    assert not reader.truncated
    assert ticks[-1]["t_ns"] > NS_PER_S


@pytest.mark.parametrize("after_s", [0.05, 0.3, 0.6, 0.9, 1.2])
def test_an_interrupt_at_any_time_is_status_130_without_a_trace_of_calls(after_s, tmp_path):
    process = start(tmp_path)
    due_ns = WallClock().now_ns() + round(after_s * NS_PER_S)
    WallClock().wait_until_ns(due_ns)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode in (130, -signal.SIGINT), err
    assert "Traceback" not in err
    assert out == ""
