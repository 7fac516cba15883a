"""The cell from a script: what it cannot do it says, and does nothing else instead."""

from __future__ import annotations

import numpy as np
import pytest

from brain.errors import ConfigError
from brain.types import Goal, Mode
from sim.api import Refusal, open_cell


@pytest.fixture(scope="module")
def cell():
    opened = open_cell("z1_bench", seed=3)
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def rehearsed(cell):
    return cell.rehearse("pick_place")


BAD = {
    "another arm": (Goal(kind="home", arm="z2"), "no arm 'z2'"),
    "a kind that there is not": (Goal(kind="bogus", arm="z1"), "no kind 'bogus'"),
    "no task": ("", "no task was named"),
    "a number": (5, "neither a task's name nor a Goal"),
    "NaN joints": (Goal(kind="joints", arm="z1", q_rad=np.full(6, np.nan)), "not finite"),
    "a list of joints": (Goal(kind="joints", arm="z1", q_rad=[0.0] * 6), "the joints is missing"),
    "a pose that is not rigid": (
        Goal(kind="pose", arm="z1", T_base_tool=np.ones((4, 4))),
        "not rigid",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_a_goal_is_refused_in_preview_and_the_rehearsal_before_stays(name, cell, rehearsed):
    goal, needle = BAD[name]
    with pytest.raises(Refusal, match=needle):
        cell.rehearse(goal)
    assert cell.mode is Mode.PREVIEW


def test_a_task_that_there_is_not_cannot_be_judged():
    with pytest.raises(ConfigError, match="no 'nope' in z1_bench; it has pick_place"):
        open_cell("z1_bench", task="nope")


def test_a_closed_cell_says_so():
    opened = open_cell("z1_bench", seed=3)
    opened.close()
    opened.close()
    with pytest.raises(Refusal, match="the cell is closed"):
        opened.rehearse("pick_place")
