"""The same scene and seed give the same run, bit for bit, whatever else the machine does."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from brain.rehearsal import Rehearsal, Request
from brain.types import Goal
from sim.build import SimCell
from tests.closed_loop.rig import Run, alone, moved, play
from vr.scripted import Script, ScriptedSeat, arm_up, demo, do_goal

SCENE = "z1_bench"
ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def first() -> Run:
    return play(SCENE, alone(demo("pick_place")))


@contextmanager
def busy(processes: int) -> Iterator[None]:
    """Let processes burn all the time they can get."""
    burning = [
        subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(processes)
    ]
    try:
        yield
    finally:
        for process in burning:
            process.kill()
            process.wait()


def test_a_second_run_beside_two_busy_processes_has_the_same_hash(first):
    with busy(2):
        second = play(SCENE, alone(demo("pick_place")))
    assert second.outcome == first.outcome


def test_another_process_with_another_hash_seed_has_the_same_hash(first, tmp_path):
    command = [sys.executable, "run_sim.py", "--seat", "none", "--scene", SCENE, "--seed", "3"]
    found = subprocess.run(
        [*command, "--json", "--no-report", "--out", str(tmp_path)],
        cwd=ROOT,
        env=os.environ | {"PYTHONHASHSEED": "12345"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(found.stdout.splitlines()[-1])["hash"] == first.outcome.hash


def test_other_seeds_give_other_hashes_and_other_start_joints():
    runs = [play(SCENE, alone(arm_up), seed=seed) for seed in range(5)]
    starts = {run.measured()[0].tobytes() for run in runs}
    assert len({run.outcome.hash for run in runs}) == 5
    assert len(starts) == 5


def by_hand(cell: SimCell) -> None:
    """Have the desk plan and rehearse something that nobody asked for."""
    state = cell.spine.state
    q = tuple(memory.q_rad for memory in cell.spine.memories)
    found = cell.spine.worker._desk.work(
        Request(
            number=99,
            t_ns=cell.plant.world.t_ns,
            goal=Goal(kind="home", arm=cell.brief.cell.arms[0].name),
            world=state.world,
            q_rad=q,
            measured_rad=tuple(device.read().q_rad for device in cell.plant.devices.arms),
            opening_m=tuple(o or 0.0 for o in state.opening_m),
        )
    )
    assert isinstance(found.result, Rehearsal), found.result.reason


def test_rehearsals_in_between_change_nothing_of_a_run():
    def there_and_back(disturbed: bool):
        def script(seat: ScriptedSeat, cell: SimCell) -> Script:
            seat.engaged, count = True, 0
            for by_rad in (-0.15, 0.15):
                for _ in do_goal(seat, moved(cell, by_rad)):
                    count += 1
                    if disturbed and count % 60 == 30 and cell.spine.memories[0] is not None:
                        by_hand(cell)
                    yield
            return True

        return script

    quiet, disturbed = (play(SCENE, there_and_back(d)).outcome for d in (False, True))
    assert quiet == disturbed


def test_after_a_rehearsal_the_twin_is_as_before_bit_for_bit():
    twins = []

    def script(seat: ScriptedSeat, cell: SimCell) -> Script:
        yield from arm_up(seat)
        yield from seat.wait(0.2)
        twin = cell.spine.worker._desk.twin
        twin.catch_up()
        for _ in range(2):
            data = twin.world.data
            actors = repr([actor.snapshot() for actor in twin.world.actors])
            fields = ("time", "qpos", "qvel", "act", "ctrl", "qacc_warmstart", "mocap_pos")
            twins.append((twin.world.t_ns, actors, *(np.copy(getattr(data, f)) for f in fields)))
            if len(twins) == 1:
                by_hand(cell)
        return True

    play(SCENE, script)
    assert all(np.array_equal(a, b) for a, b in zip(*twins, strict=True))
