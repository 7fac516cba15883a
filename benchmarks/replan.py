"""Answers within a frame: a new path when something drops into the way, a verdict for a stroke.

    python -m benchmarks.replan [--json] [--strokes 200]

`verdict_p50_ms`, `verdict_p99_ms`: from the poses of a stroke (see `strokes`) to its verdict, the
search for a change that clears it included, by the wall's clock; `verdict_cpu_p99_ms` by the
thread's. `false_safe`: strokes that were called safe, or proposed changes, along which MuJoCo's
shapes touch.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from typing import Annotated

import numpy as np
import tyro
from rich.console import Console
from rich.progress import track

from benchmarks.report import last_line, machine, percentiles
from benchmarks.strokes import SCENES, Stroke, StrokeCell, path_of, path_of_change
from brain.path_verdict import PathVerdict
from brain.stroke import stroke_verdict

WARM = 20


def judge(cell: StrokeCell, stroke: Stroke) -> tuple[PathVerdict, float, float]:
    """A stroke's verdict, and how long it took in ms on the wall and of the thread."""
    body, near = cell.bodies[stroke.arm], cell.near[stroke.arm]
    wall, thread = time.perf_counter_ns(), time.thread_time_ns()
    found = stroke_verdict(body, near, stroke.q_rad, stroke.poses)
    thread_ms = (time.thread_time_ns() - thread) / 1e6
    return found, (time.perf_counter_ns() - wall) / 1e6, thread_ms


def flatters(cell: StrokeCell, stroke: Stroke, found: PathVerdict) -> list[str]:
    """What physics touches where the verdict says that nothing does."""
    body, wrong = cell.bodies[stroke.arm], []
    if found.kind == "safe":
        wrong.append(cell.touched(stroke.arm, path_of(body, stroke)))
    if found.change is not None:
        wrong.append(cell.touched(stroke.arm, path_of_change(body, stroke, found)))
    return [f"{found.sentence()}: {touch}" for touch in wrong if touch is not None]


def verdicts(strokes: int, seed: int) -> tuple[dict[str, object], list[str]]:
    """Judge random strokes in our scenes, and hold the verdicts against physics."""
    cells = [StrokeCell(name, seed) for name in SCENES]
    rng = np.random.default_rng(seed)
    wall_ms, thread_ms, wrong = [], [], []
    kinds: Counter[str] = Counter()
    for i in track(range(-WARM, strokes), "strokes", console=Console(stderr=True)):
        cell = cells[i % len(cells)]
        stroke = cell.draw(rng)
        found, wall, thread = judge(cell, stroke)
        if i < 0:  # kernels and caches are warm from here on
            continue
        wall_ms.append(wall)
        thread_ms.append(thread)
        kinds[found.kind] += 1
        kinds["asked for a change"] += found.asked
        kinds["change found"] += found.change is not None
        wrong += flatters(cell, stroke, found)
    p50, p99 = percentiles(wall_ms)
    result: dict[str, object] = {
        "strokes": strokes,
        "verdict_p50_ms": p50,
        "verdict_p99_ms": p99,
        "verdict_cpu_p99_ms": percentiles(thread_ms)[1],
        "false_safe": len(wrong),
        "stroke_kinds": dict(kinds),
    }
    return result, wrong


def main(
    json: bool = False,
    strokes: Annotated[int, tyro.conf.arg(help="random strokes")] = 200,
    seed: int = 1,
) -> None:
    """Run the benchmark."""
    if strokes < 1:
        raise SystemExit("--strokes: at least 1")
    before = machine()
    result, wrong = verdicts(strokes, seed)
    console = Console(file=sys.stdout, width=110)
    for key, value in result.items():
        console.print(f"{key}: {value}", highlight=False)
    for sentence in wrong:
        console.print(f"not so: {sentence}", highlight=False)
    console.print(f"before: {before}; after: {machine()}", highlight=False)
    if json:
        last_line(result)


if __name__ == "__main__":
    tyro.cli(main)
