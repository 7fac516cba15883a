"""After warming up, no tick meets a kernel for the first time."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from brain.types import Mode
from hardware.resolve import resolve
from hardware.scene import load_scene, start_q_rad
from hardware.warm import warm
from sim.build import brief_of

ROOT = Path(__file__).parents[2]
RUN = r"""
import sys
from hardware.clock import SimClock
from hardware.inline_link import inline_line
from hardware.resolve import resolve
from hardware.scene import load_scene, start_q_rad
from hardware.spine import Spine
from hardware.warm import warm
from hardware.worker import ProcessWorker
from sim.build import brief_of
from sim.lockstep import Lockstep
from sim.plant import build_plant
from sim.processes import planner_main
from sim.scene import build_model
from sim.worker import LATENCY_NS
from vr.scripted import ScriptedSeat, demo

def variants():
    return {
        f"{name}.{key}": set(value.overloads)
        for name, module in list(sys.modules.items()) if name.startswith(("brain.", "hardware."))
        for key, value in vars(module).items()
        if hasattr(value, "overloads") and value.__module__ == name
    }

def main():
    resolved = resolve(load_scene(sys.argv[1]), 3)
    brief, clock = brief_of(resolved), SimClock()
    worker = ProcessWorker(planner_main, resolved.text, latency_ns=LATENCY_NS)
    plant = build_plant(build_model(resolved), resolved.seed)
    spine = Spine(brief.cell, brief.limits, brief.world, plant.devices, worker, 0)
    line = inline_line(clock, None, resolved.seed)
    seat = ScriptedSeat(line.seat, line.seat_clock, brief.cell.arms[0].name)
    seat.play(demo("pick_place"))
    if plant.devices.tracker is not None:
        plant.devices.tracker.read()  # live, it is in another process
    warm(brief.cell, brief.limits, brief.world, start_q_rad(resolved.scene))
    worker.wait_ready()
    before = variants()
    Lockstep(plant, spine, line.cell, clock, seat).run(lambda: seat.done is not None, 10**11)
    worker.close()
    met = {
        f"{name}{tuple(map(str, kinds))}"
        for name, found in variants().items()
        for kinds in found - before.get(name, set())
    }
    print("done" if seat.done else seat.reason, *sorted(met), sep="\n")

if __name__ == "__main__":
    main()
"""


@pytest.mark.parametrize("scene", ["bench_pick", "z1_bench", "two_arms", "moving_obstacle"])
def test_every_cell_comes_to_a_commit_while_it_is_warmed(scene: str):
    resolved = resolve(load_scene(scene), 3)
    brief = brief_of(resolved)
    modes = warm(brief.cell, brief.limits, brief.world, start_q_rad(resolved.scene))
    assert {Mode.HOLD, Mode.TELEOP, Mode.REHEARSING, Mode.PREVIEW, Mode.COMMIT} <= modes


@pytest.mark.parametrize(
    "scene", ["z1_bench", pytest.param("moving_obstacle", marks=pytest.mark.long)]
)
def test_a_whole_task_meets_no_kernel_that_was_not_warmed(scene: str, tmp_path: Path):
    script = tmp_path / "run.py"
    script.write_text(RUN)
    done = subprocess.run(
        [sys.executable, script, scene],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    print(done.stdout, done.stderr)
    assert done.stdout.splitlines() == ["done"], "each named kernel would have stalled a live tick"
