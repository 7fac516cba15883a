"""What a person at a terminal may press and write."""

from __future__ import annotations

import os
import signal
from unittest.mock import sentinel

import pytest

from brain.errors import ConfigError
from hardware.console import Progress, seeds_of


def press_ctrl_c() -> None:
    os.kill(os.getpid(), signal.SIGINT)


@pytest.fixture(autouse=True)
def _heed_interrupts():
    """Undo what a shell does to what it runs in the background."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def run(presses: int, reached: list[str]) -> None:
    with Progress("a run") as progress:
        for _ in range(presses):
            press_ctrl_c()
        reached.append("the end of the tick")
        progress(sentinel.record)
        reached.append("the next tick")


def test_ctrl_c_is_heeded_after_the_tick_in_which_it_was_pressed():
    reached: list[str] = []
    with pytest.raises(KeyboardInterrupt):
        run(1, reached)
    assert reached == ["the end of the tick"]


def test_ctrl_c_pressed_again_is_heeded_at_once():
    reached: list[str] = []
    with pytest.raises(KeyboardInterrupt):
        run(2, reached)
    assert reached == []


def test_after_the_run_ctrl_c_is_what_it_was():
    with Progress("a run"):
        pass
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.parametrize(
    ("text", "seeds"), [("3", [3]), ("1-4", [1, 2, 3, 4]), ("1, 4,9-11", [1, 4, 9, 10, 11])]
)
def test_seeds_are_read(text, seeds):
    assert seeds_of(text) == seeds


@pytest.mark.parametrize("text", ["", "one", "-1", "3-1", "1-", "1,,2", "0-10000", "1" * 19])
def test_what_is_not_seeds_is_refused(text):
    with pytest.raises(ConfigError, match="seeds: "):
        seeds_of(text)
