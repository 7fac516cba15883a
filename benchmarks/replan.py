"""Answers within a frame: a new path when something drops into the way, a verdict for a stroke.

    python -m benchmarks.replan [--json] [--drops 1000] [--strokes 200]

A box is dropped into a running path (see `drops`) of the five scenes for both arms, where the arm
as it stands and a goal are free; 10 mm margin, what the camera sees at 15 mm beside known shapes.
`frame_to_path_*_ms`: from the depth frame's arrival until there is a new path, certified, that
begins where the arm is: into the map, out of it what nothing known explains, forest repaired, new
path. `replan_*_ms`: the last two of these alone; `scratch_*_ms`: by a planner that kept nothing, in
the same run. By the wall's clock, `*_cpu_*` by the thread's. Counted are drops that block the path
and that a path was found around; `drops_*` says of the others why: the frame does not show the box
in the way, it leaves no room to the start or to a goal as the map has it, or nothing was found
(`none_found`: by a search of 100,000 iterations from another seed neither). `dense_failures`: new
paths that come nearer to what the map holds than their margin somewhere, at 320 configurations per
radian; `hidden_touches`: those that touch the box where the camera did not see it.

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

from benchmarks.drops import Drop, DropCell, drop_cells
from benchmarks.plan import ITERATIONS, is_free
from benchmarks.plan_scenes import MARGIN_M, SELF_MARGIN_M
from benchmarks.report import last_line, machine, percentiles
from benchmarks.strokes import SCENES, Stroke, StrokeCell, path_of, path_of_change
from brain.distance import Obstacles
from brain.geometry import Array
from brain.path_verdict import PathVerdict
from brain.planner import NoPlan, Planner
from brain.planner_edges import keeps_margin, lanes
from brain.stroke import stroke_verdict

WARM = 20
RUNNING = 1500
"""Iterations that go into the path that the arm is on."""
EXHAUSTIVE = 100_000
CLOSE_M = 1e-4
"""Within this it is not told apart whether the running path still keeps its margin."""


class Stopwatch:
    """Time since it was made, in ms, on the wall and of the thread."""

    def __init__(self) -> None:
        self._wall, self._thread = time.perf_counter_ns(), time.thread_time_ns()

    def read_ms(self) -> tuple[float, float]:
        """Wall and thread."""
        thread_ms = (time.thread_time_ns() - self._thread) / 1e6
        return (time.perf_counter_ns() - self._wall) / 1e6, thread_ms


def planner_for(cell: DropCell, near: Obstacles, q_rad: Array, seed: int) -> Planner:
    """A planner that has kept nothing."""
    the = cell.the
    return Planner(
        the.body, near, q_rad, the.goals_rad, the.q_range_rad, seed=seed, margin_m=MARGIN_M,
        self_margin_m=SELF_MARGIN_M,
    )  # fmt: skip


class Drops:
    """Figures of many drops."""

    def __init__(self, seed: int) -> None:
        self._rng = np.random.default_rng(seed)
        self.took: dict[str, list[tuple[float, float]]] = {
            "frame_to_path": [], "replan": [], "scratch": []
        }  # fmt: skip
        self.reasons: Counter[str] = Counter()
        self.dense_failures = self.hidden_touches = self.redrawn = 0

    def run(self, cell: DropCell, seed: int) -> None:
        """Drop a box into a path that is planned anew."""
        the, rng = cell.the, self._rng
        cell.forget()
        self._see(cell, the.start_rad, None)
        planner = planner_for(cell, cell.around(), the.start(seed), seed)
        planner.advance(RUNNING)
        path = planner.path()
        if path is None:
            self.reasons["no path to begin with"] += 1
            return
        drop = cell.drop(path, rng)
        if drop is None:
            self.reasons["no room for a box"] += 1
            return
        self.redrawn += drop.missed
        self._see(cell, drop.q_rad, None)
        planner.change(cell.around(), drop.q_rad)
        planner.advance(RUNNING)
        self._answer(cell, planner, drop, seed)

    def _see(self, cell: DropCell, q_rad: Array, drop: Drop | None) -> None:
        cell.see(cell.image(q_rad, drop, self._rng), q_rad)

    def _answer(self, cell: DropCell, planner: Planner, drop: Drop, seed: int) -> None:
        image = cell.image(drop.q_rad, drop, self._rng)
        whole = Stopwatch()
        cell.see(image, drop.q_rad)
        near = cell.around()
        part = Stopwatch()
        planner.change(near, drop.q_rad)
        planner.advance(ITERATIONS, first=True)
        path = planner.path()
        took = whole.read_ms(), part.read_ms()
        body, extra_m = cell.the.body, MARGIN_M - SELF_MARGIN_M
        margins_m = MARGIN_M, CLOSE_M, extra_m
        if keeps_margin(body.arrays, near.arrays, drop.rest_rad, lanes(body), *margins_m)[0]:
            self.reasons["not in the way as seen"] += 1
            return
        if path is None:
            self.reasons[self._why(cell, planner, near, drop, seed)] += 1
            return
        begin = Stopwatch()
        fresh = planner_for(cell, near, drop.q_rad, seed)
        fresh.advance(ITERATIONS, first=True)
        self.took["frame_to_path"].append(took[0])
        self.took["replan"].append(took[1])
        self.took["scratch"].append(begin.read_ms())
        self.reasons["new path"] += 1
        self.dense_failures += not is_free(cell.the.body, near, path, MARGIN_M, SELF_MARGIN_M)
        self.hidden_touches += not is_free(cell.the.body, cell.with_box(drop), path, 0.0, 0.0)

    def _why(self, cell: DropCell, planner: Planner, near: Obstacles, drop: Drop, seed: int) -> str:
        found = planner.result()
        assert isinstance(found, NoPlan)
        if found.reason != "not found":
            return f"{found.reason} too near"
        long = planner_for(cell, near, drop.q_rad, seed + 1)
        long.advance(EXHAUSTIVE, first=True)
        return "not found" if long.path() is not None else "none found by a long search either"

    def result(self) -> dict[str, object]:
        """Figures by their keys."""
        found: dict[str, object] = {"drops": self.reasons.total()}
        for name, took in self.took.items():
            wall, thread = np.reshape(took, (-1, 2)).T if took else ([np.inf], [np.inf])
            for kind, samples in (("", wall), ("_cpu", thread)):
                p50, p99 = percentiles(samples)
                found |= {f"{name}{kind}_p50_ms": p50, f"{name}{kind}_p99_ms": p99}
        return found | {
            "drops_by_outcome": dict(self.reasons),
            "drops_drawn_again": self.redrawn,
            "dense_failures": self.dense_failures,
            "hidden_touches": self.hidden_touches,
        }


def replans(drops: int, seed: int) -> dict[str, object]:
    """Drop boxes in turn in all scenes."""
    cells = list(drop_cells())
    warm, figures = Drops(seed), Drops(seed)
    for i in track(range(-len(cells), drops), "drops", console=Console(stderr=True)):
        (figures if i >= 0 else warm).run(cells[i % len(cells)], max(i, 0))
    return figures.result()


def judge(cell: StrokeCell, stroke: Stroke) -> tuple[PathVerdict, float, float]:
    """A stroke's verdict, and how long it took in ms on the wall and of the thread."""
    body, near = cell.bodies[stroke.arm], cell.near[stroke.arm]
    watch = Stopwatch()
    found = stroke_verdict(body, near, stroke.q_rad, stroke.poses)
    return found, *watch.read_ms()


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
    drops: Annotated[int, tyro.conf.arg(help="boxes dropped into a path")] = 1000,
    strokes: Annotated[int, tyro.conf.arg(help="random strokes")] = 200,
    seed: int = 1,
) -> None:
    """Run the benchmark."""
    if strokes < 1 or drops < 1:
        raise SystemExit("--strokes and --drops: at least 1")
    before = machine()
    result, wrong = verdicts(strokes, seed)
    result = replans(drops, seed) | result
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
