"""Children are ready together, say why they failed, and never outlive their parent."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from brain.errors import ConfigError, DeviceLost, DeviceUnavailable
from brain.types import NS_PER_S
from hardware.clock import WallClock, wait_for
from hardware.process import Child, Station, wait_ready

CLOCK = WallClock()
TIMEOUT_NS = 20 * NS_PER_S


def obey(station: Station, word: str) -> str:
    """Be ready, begin when told, end when told."""
    told = station.ready({"word": word, "niceness": os.nice(0), "colour": os.environ.get("COLOUR")})
    while not station.pause(5.0):
        pass
    return f"{word} {told}"


def fail(station: Station) -> None:
    raise ConfigError("scene: no such scene")


def crash(station: Station) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def leave(station: Station) -> None:
    """End without a word."""


def deaf(station: Station) -> None:
    """Be ready and never listen again."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    station.ready()
    signal.pause()


def gone(pid: int) -> bool:
    """Whether a process that is not our child has ended."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return "\nState:\tZ" in Path(f"/proc/{pid}/status").read_text()


def test_children_begin_with_what_they_are_told_and_report_when_told_to_stop():
    pair = [Child("a", obey, "one"), Child("b", obey, "two")]
    wait_ready(pair)
    for child in pair:
        child.begin(7)
    for child in pair:
        child.ask_stop()
        child.join()
    assert [child.info["word"] for child in pair] == ["one", "two"]
    assert [child.report for child in pair] == ["one 7", "two 7"]
    assert [child.problem for child in pair] == [None, None]


def test_a_child_has_the_niceness_and_the_environment_that_were_asked_for():
    child = Child("a", obey, "one", nice=3, environment={"COLOUR": "red"})
    child.wait_ready()
    child.ask_stop()
    child.join()
    assert (child.info["niceness"], child.info["colour"]) == (os.nice(0) + 3, "red")
    assert "COLOUR" not in os.environ


def test_the_error_of_a_child_is_raised_in_the_parent_with_its_sentence():
    child = Child("bad", fail)
    with pytest.raises(ConfigError, match="scene: no such scene"):
        child.wait_ready()
    child.join()


def test_a_child_that_crashes_is_a_lost_device_that_is_named():
    child = Child("poor", crash)
    with pytest.raises(DeviceLost, match="poor process ended unexpectedly .status -9"):
        child.wait_ready()
    child.join()


def test_a_child_that_ends_before_it_is_ready_is_not_waited_for():
    child = Child("shy", leave)
    with pytest.raises(DeviceUnavailable, match="shy process ended before it was ready"):
        child.wait_ready()
    child.join()


def test_a_child_that_does_not_listen_is_ended_by_force():
    child = Child("deaf", deaf)
    child.wait_ready()
    child.begin(None)
    child.ask_stop()
    child.join(timeout_s=0.1)
    assert gone(child.pid)
    assert "did not end when told" in str(child.problem)


@pytest.mark.parametrize("when", ["while it starts", "when it is ready"])
def test_ctrl_c_does_not_end_a_child_by_itself(when: str):
    child = Child("a", obey, "one")
    if when == "while it starts":
        os.kill(child.pid, signal.SIGINT)
    child.wait_ready()
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, ())  # only the child's
    os.kill(child.pid, signal.SIGINT)
    child.begin(1)
    child.ask_stop()
    child.join()
    assert child.report == "one 1"


PARENT = """
import os, sys
from hardware.process import Child
from tests.hardware.test_process import obey
if __name__ == "__main__":
    child = Child("a", obey, "one")
    child.wait_ready()
    child.begin(None)
    print(child.pid, flush=True)
    os.kill(os.getpid(), 9)
"""


def test_a_child_ends_when_its_parent_is_killed(tmp_path: Path):
    root = Path(__file__).parents[2]
    script = tmp_path / "parent.py"
    script.write_text(PARENT)
    done = subprocess.run(
        [sys.executable, script],
        cwd=root,
        env=os.environ | {"PYTHONPATH": str(root)},
        capture_output=True,
        text=True,
    )
    assert wait_for(CLOCK, lambda: gone(int(done.stdout)), TIMEOUT_NS)
