"""A log runs again to the same bits; where it was altered the first differing tick is named."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path

import pytest

from brain.errors import LogError
from brain.types import Mode
from hardware.live import FAULT
from hardware.log import LogReader, LogWriter
from sim.plant import PlantChange
from sim.runlog import LOG_NAME
from sim.session import replay
from tests.closed_loop.rig import Run, a_move, alone, play
from vr.scripted import arm_up, demo

TICK = 700
"""Which tick the tests alter: the arm moves."""


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> tuple[Run, Path]:
    folder = tmp_path_factory.mktemp("run")
    run = play("z1_bench", a_move, folder=folder)
    assert run.records[TICK].state.mode.mode is Mode.COMMIT, run.story()
    return run, folder / LOG_NAME


def rewritten(log: Path, to: Path, alter: Callable[[list[dict]], None]) -> Path:
    """Write a log again with its ticks altered."""
    reader = LogReader(log)
    ticks = copy.deepcopy(list(reader.ticks()))
    alter(ticks)
    writer = LogWriter(to, reader.head)
    for tick in ticks:
        writer.tick(tick)
    for event in LogReader(log).events():
        writer.event(event.channel, event.t_ns, event.data)
    writer.close()
    return to


def first_difference(made: tuple[Run, Path], to: Path, alter: Callable[[list[dict]], None]):
    difference, _ = replay(rewritten(made[1], to / LOG_NAME, alter))
    assert difference is not None, "an altered log replays as if it were not"
    print(difference.sentence())
    return difference


def test_a_log_runs_again_to_the_same_hash(made):
    run, log = made
    assert replay(log) == (None, run.outcome.hash)


def test_a_log_that_is_written_again_as_it_is_runs_to_the_same_hash(made, tmp_path):
    run, log = made
    assert replay(rewritten(log, tmp_path / LOG_NAME, lambda ticks: None)) == (
        None,
        run.outcome.hash,
    )


def test_a_log_of_a_plant_that_was_made_different_runs_again_to_the_same_hash(tmp_path):
    change = PlantChange(payload_kg=0.3, friction_scale=1.5, delay_ms=8, part_shift_m=0.004)
    run = play("z1_bench", alone(demo("pick_place")), folder=tmp_path, change=change)
    assert replay(tmp_path / LOG_NAME) == (None, run.outcome.hash)


def test_a_log_with_a_fault_in_it_runs_again_to_the_same_hash(tmp_path):
    def script(seat, cell):
        yield from a_move(seat, cell)
        yield from seat.wait(0.2)
        return (yield from arm_up(seat))

    run = play("z1_bench", script, folder=tmp_path, faults=("arm.die@2.8s-2.9s",))
    assert Mode.FAULT in {record.state.mode.mode for record in run.records}, run.story()
    assert replay(tmp_path / LOG_NAME) == (None, run.outcome.hash)
    (fault,) = LogReader(tmp_path / LOG_NAME).events(FAULT)
    assert (fault.t_ns, "z1/arm: does not answer" in fault.data["error"]) == (2_800_000_000, True)


def test_one_changed_joint_value_is_named(made, tmp_path):
    def alter(ticks):
        ticks[TICK]["arms"][0]["state"]["q_rad"][2] += 1e-9

    found = first_difference(made, tmp_path, alter)
    assert (found.tick, "joints of z1" in found.what) == (TICK, True)


def test_one_changed_command_is_named(made, tmp_path):
    def alter(ticks):
        ticks[TICK]["arms"][0]["command_rad"][0] -= 1e-9

    found = first_difference(made, tmp_path, alter)
    assert (found.tick, "command of z1" in found.what) == (TICK, True)


def test_one_changed_gate_answer_is_named(made, tmp_path):
    def alter(ticks):
        ticks[TICK]["arms"][0]["answer"]["action"] = "hold"

    found = first_difference(made, tmp_path, alter)
    assert (found.tick, "gate answer of z1" in found.what) == (TICK, True)


def test_one_removed_tick_is_named(made, tmp_path):
    found = first_difference(made, tmp_path, lambda ticks: ticks.pop(TICK))
    assert (found.tick, "time" in found.what) == (TICK, True)


def test_a_released_dead_man_that_was_not_is_named_where_it_matters(made, tmp_path):
    def alter(ticks):
        for tick in ticks[TICK:]:
            if tick["operator"] is not None:
                tick["operator"]["engaged"] = False

    found = first_difference(made, tmp_path, alter)
    assert TICK <= found.tick < TICK + 4, "the seat speaks every 12 ms, the tick is 4 ms"
    assert "hold (dead-man released)" in found.what


def test_a_log_that_ends_early_is_the_same_as_far_as_it_goes(made, tmp_path):
    def alter(ticks):
        del ticks[TICK:]

    log = rewritten(made[1], tmp_path / LOG_NAME, alter)
    assert replay(log)[0] is None


def test_an_altered_rehearsal_in_a_log_is_refused(made, tmp_path):
    reader = LogReader(made[1])
    writer = LogWriter(tmp_path / LOG_NAME, reader.head)
    for record in reader.records():
        data = copy.deepcopy(record.data)
        if record.channel == "/rehearsal":
            data["rehearsal"]["stream"]["q_rad"][100][0] += 1e-9
        writer.event(record.channel, record.t_ns, data)
    writer.close()
    with pytest.raises(LogError, match="does not fit its digest"):
        replay(tmp_path / LOG_NAME)
