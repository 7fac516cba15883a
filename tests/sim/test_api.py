"""The cell from a script: what it cannot do it says, and does nothing else instead."""

from __future__ import annotations

import numpy as np
import pytest

from brain.errors import ConfigError
from brain.types import Goal, Mode
from hardware.telemetry import preview_of
from sim.api import Refusal, open_cell
from sim.plant import PlantChange
from tests.values import replace


@pytest.fixture(scope="module")
def cell():
    opened = open_cell("z1_bench", seed=3)
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def rehearsed(cell):
    return cell.rehearse("pick_place")


def test_a_preview_says_nothing_of_what_no_device_can_tell(cell, rehearsed):
    arm = preview_of(cell.cell.brief.cell, rehearsed).arms[0]
    assert arm.force_n is None  # the Z1 has no wrist sensor
    assert arm.opening_m is not None
    assert arm.clearance_m is not None
    without = replace(cell.cell.brief.cell.arms[0].model, gripper=None)
    bare = replace(cell.cell.brief.cell.arms[0], model=without)
    shown = preview_of(replace(cell.cell.brief.cell, arms=(bare,)), rehearsed).arms[0]
    assert shown.opening_m is None


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


@pytest.mark.parametrize("seed", [-1, 1.5, True, "3", 10**18])
def test_a_seed_that_there_is_not_is_refused(seed):
    with pytest.raises(ConfigError, match=r"seed: .*, allowed are whole numbers from 0 to 9+"):
        open_cell("z1_bench", seed=seed)


def test_only_a_rehearsal_is_committed(cell, rehearsed):
    for wrong in (None, rehearsed.digest):
        with pytest.raises(Refusal, match="is no rehearsal"):
            cell.commit(wrong)


def test_a_log_goes_into_a_folder_by_its_name(tmp_path):
    open_cell("z1_bench", seed=3, folder=str(tmp_path)).close()
    assert (tmp_path / "run.mcap").stat().st_size > 0


def test_the_part_of_the_task_can_be_missing():
    opened = open_cell("z1_bench", seed=3, change=PlantChange(missing="task"))
    outcome = opened.commit(opened.rehearse("pick_place"))
    opened.close()
    assert not outcome.ok


def test_a_closed_cell_says_so():
    opened = open_cell("z1_bench", seed=3)
    opened.close()
    opened.close()
    with pytest.raises(Refusal, match="the cell is closed"):
        opened.rehearse("pick_place")
