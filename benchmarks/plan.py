"""Planning: how often, how soon and how short, beside peers; is every path as free as it says.

    python -m benchmarks.plan [--json] [--runs 200] [--problems 700] [--calls 10000]

`scenes_solved_pct`: five scenes (see `plan_scenes`) for the UR5e and the Z1 with their grippers,
each `--runs` times with another seed and a jittered start, 10 mm margin. `mbm_*`: the
MotionBenchMaker UR5 problems (see `plan_problems`; `--kept` is the folder in which their archive is
kept) whose start and goal are free, no margin. `mbm_p50_us`: from the call that makes the planner,
in Python, until a path is there of which every edge is certified; unsolved ones count as infinite.

`ompl_median_ratio`: OMPL's RRTConnect (see `plan_peers` for how it checks) over ours on the
MotionBenchMaker problems, medians; without them it is `scenes_ompl_median_ratio`, which is not of
equal problems: there we keep 10 mm and may take any goal, OMPL keeps no margin and gets the nearest
goal. `vamp_*`: ours over VAMP's, null where it is not installed.
`cost_ratio_25ms_vs_aorrtc`: on the UR5e scenes, one goal, no margin for AORRTC nor for us, our
length after 25 ms of thread time over that of OMPL's AORRTC after 1 s, median of the scenes'
medians; lengths are Euclidean, in rad. A scene where one of the two finds nothing is left out, and
named.

`dense_check_failures`: of all paths that were returned, those that at 320 configurations per radian
come nearer than their margin somewhere. `calls`: calls of `advance` that make up an online search,
each of a slice of iterations; `calls_over_25ms` by the thread's CPU time, overruns of the wall's
clock are printed. Whatever is not measured, because a peer or the archive is not there, is null.
"""

from __future__ import annotations

import math
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import numpy as np
import tyro
from rich.console import Console
from rich.progress import track
from rich.table import Table

from benchmarks.plan_peers import Ompl, has_ompl, vamp_seconds
from benchmarks.plan_problems import Problem, archive, load
from benchmarks.plan_scenes import ARMS, MARGIN_M, SCENES, SELF_MARGIN_M, Case, case
from benchmarks.report import last_line, machine, percentiles
from brain.body import Body, place, work
from brain.distance import Obstacles, arm_clearance, free, obstacles
from brain.geometry import Array
from brain.planner import Plan, Planner
from brain.world import BOX, CYLINDER, World

DENSE_PER_RAD = 320.0
ITERATIONS = 20_000
SLICE = 20
"""Iterations between two looks at whether there is a path."""
BUDGET_S = 0.025
PEER_S = 1.0
TIMES_OF_COST = 5
KEPT = Path(tempfile.gettempdir()) / "forearm-problems"


@dataclass(slots=True)
class Run:
    """What came of planning one kind of problem many times."""

    took_us: list[float] = field(default_factory=list)
    peer_us: list[float] = field(default_factory=list)
    vamp_us: list[float] = field(default_factory=list)
    solved: int = 0
    dense_failures: int = 0


def euclidean(path: Array) -> float:
    """Length of a path in rad."""
    return float(np.linalg.norm(np.diff(path, axis=0), axis=1).sum())


def dense(path: Array) -> Array:
    """Configurations along a path, ten times denser than usual."""
    rows = [path[:1]]
    for a, b in zip(path[:-1], path[1:], strict=True):
        steps = max(1, math.ceil(float(np.linalg.norm(b - a)) * DENSE_PER_RAD))
        rows.append(a + (b - a) * (np.arange(1, steps + 1) / steps)[:, None])
    return np.concatenate(rows)


def is_free(
    body: Body, near: Obstacles, path: Array, margin_m: float, self_margin_m: float
) -> bool:
    """Whether a path keeps its margins at every configuration of the dense check."""
    rows, at = dense(path), work(body)
    return all(free(body.arrays, near.arrays, q, at, margin_m, self_margin_m) for q in rows)


def first(planner: Planner) -> Array | None:
    """Plan until there is a path; None if there is none after all iterations."""
    planner.advance(ITERATIONS, first=True)
    return planner.path()


def scenes(runs: int, ompl: bool) -> dict[str, Run]:
    """Plan the five scenes for each arm."""
    found = {}
    names = [(arm, scene) for arm in ARMS for scene in SCENES]
    for arm, scene in track(names, description="scenes", console=Console(stderr=True)):
        the, run = case(arm, scene), Run()
        peer = Ompl(the.body, the.near, the.q_range_rad) if ompl else None
        for seed in range(-1, runs):
            start = the.start(seed + 1)
            begin = time.perf_counter()
            planner = Planner(
                the.body,
                the.near,
                start,
                the.goals_rad,
                the.q_range_rad,
                seed=seed + 1,
                margin_m=MARGIN_M,
                self_margin_m=SELF_MARGIN_M,
            )
            plan = first(planner)
            took_us = (time.perf_counter() - begin) * 1e6
            if seed < 0:  # kernels and caches are warm from here on
                continue
            run.took_us.append(took_us if plan is not None else math.inf)
            run.solved += plan is not None
            if plan is not None:
                kept = is_free(the.body, the.near, plan, MARGIN_M, SELF_MARGIN_M)
                run.dense_failures += not kept
            if peer is not None:
                took_s, path = peer.solve("RRTConnect", start, the.goals_rad[0], PEER_S)
                run.peer_us.append(took_s * 1e6 if path is not None else math.inf)
        found[the.name] = run
    return found


def upright_boxes(world: World) -> list[tuple[Array, Array, Array]]:
    """Shapes as boxes for VAMP: centre, Euler angles, half lengths; cylinders in boxes."""
    from scipy.spatial.transform import Rotation

    found = []
    shapes = world.shapes
    for kind, size, T in zip(shapes.kind, shapes.size_m, shapes.T_world_shape, strict=True):
        assert kind in (BOX, CYLINDER)
        half = size if kind == BOX else np.array([size[0], size[0], size[1]])
        found.append((T[:3, 3], Rotation.from_matrix(T[:3, :3]).as_euler("xyz"), half))
    return found


def motion_bench_maker(body: Body, problems: list[Problem], ompl: bool) -> Run:
    """Plan each problem once."""
    run, limits = Run(), body.model.limits
    q_range = limits.q_min_rad, limits.q_max_rad
    for i in track(range(-1, len(problems)), description="MBM", console=Console(stderr=True)):
        problem = problems[max(i, 0)]
        near = obstacles(problem.world)
        begin = time.perf_counter()
        planner = Planner(
            body,
            near,
            problem.start_rad,
            problem.goal_rad[None],
            q_range,
            seed=max(i, 0),
            margin_m=0.0,
            self_margin_m=0.0,
        )
        plan = first(planner)
        took_us = (time.perf_counter() - begin) * 1e6
        if i < 0:
            continue
        run.took_us.append(took_us if plan is not None else math.inf)
        run.solved += plan is not None
        if plan is not None:
            run.dense_failures += not is_free(body, near, plan, 0.0, 0.0)
        if ompl:
            peer = Ompl(body, near, q_range)
            took_s, path = peer.solve("RRTConnect", problem.start_rad, problem.goal_rad, PEER_S)
            run.peer_us.append(took_s * 1e6 if path is not None else math.inf)
        vamp_s = vamp_seconds(upright_boxes(problem.world), problem.start_rad, problem.goal_rad)
        if vamp_s is not None:
            run.vamp_us.append(vamp_s * 1e6)
    return run


def cost_ratios(ompl: bool) -> tuple[dict[str, float], dict[str, str], int]:
    """Our length after 25 ms over AORRTC's after 1 s by scene, what had none, dense failures."""
    ratios: dict[str, float] = {}
    missing, failures = {}, 0
    for scene in SCENES if ompl else ():
        the = case("ur5e", scene)
        peer = Ompl(the.body, the.near, the.q_range_rad)
        ours, theirs = [], []
        for seed in range(TIMES_OF_COST):
            planner = Planner(
                the.body,
                the.near,
                the.start_rad,
                the.goals_rad[:1],
                the.q_range_rad,
                seed=seed,
                margin_m=0.0,
                self_margin_m=0.0,
                weight=np.ones(len(the.start_rad)),
            )
            begin = time.thread_time()
            while time.thread_time() - begin < BUDGET_S and not planner.advance(SLICE):
                pass
            plan = planner.result()
            if isinstance(plan, Plan):
                ours.append(euclidean(plan.path_rad))
                failures += not is_free(the.body, the.near, plan.path_rad, 0.0, 0.0)
            _, path = peer.solve("AORRTC", the.start_rad, the.goals_rad[0], PEER_S)
            if path is not None:
                theirs.append(euclidean(path))
        if ours and theirs:
            ratios[scene] = float(np.median(ours) / np.median(theirs))
        else:
            missing[scene] = f"paths of ours {len(ours)}, of AORRTC {len(theirs)}"
    return ratios, missing, failures


def calls_over(the: Case, calls: int) -> tuple[Array, Array]:
    """Thread and wall time in ms of many calls of `advance`, over many searches."""
    thread_ms, wall_ms = np.empty(calls), np.empty(calls)
    planner, seed = None, 0
    for i in track(range(calls), description="calls", console=Console(stderr=True)):
        if planner is None:
            planner = Planner(
                the.body, the.near, the.start(seed), the.goals_rad, the.q_range_rad, seed=seed
            )
            seed += 1
        wall, thread = time.perf_counter_ns(), time.thread_time_ns()
        over = planner.advance(SLICE)
        thread_ms[i] = (time.thread_time_ns() - thread) / 1e6
        wall_ms[i] = (time.perf_counter_ns() - wall) / 1e6
        if over:
            planner = None
    return thread_ms, wall_ms


def row(table: Table, name: str, run: Run) -> None:
    """Add a line for people."""
    p50, p95, p99 = percentiles(run.took_us, 50.0, 95.0, 99.0)
    peer = f"{percentiles(run.peer_us)[0]:.0f}" if run.peer_us else ""
    n = len(run.took_us)
    cells = (f"{p50:.0f}", f"{p95:.0f}", f"{p99:.0f}", peer, f"{run.dense_failures}")
    table.add_row(name, f"{run.solved} of {n}", *cells)


def main(
    json: bool = False,
    runs: Annotated[int, tyro.conf.arg(help="times per scene and arm")] = 200,
    problems: Annotated[int, tyro.conf.arg(help="MotionBenchMaker problems, 0 for none")] = 700,
    calls: int = 10_000,
    costs: bool = True,
    kept: Annotated[Path, tyro.conf.arg(help="where the problems' archive is kept")] = KEPT,
) -> None:
    """Run the benchmark."""
    ompl = has_ompl()
    table = Table("problem", "solved", "p50 us", "p95 us", "p99 us", "OMPL p50", "dense fails")
    result: dict[str, object] = {}
    by_scene = scenes(runs, ompl)
    for name, run in by_scene.items():
        row(table, name, run)
    solved = sum(run.solved for run in by_scene.values())
    result["scenes_solved_pct"] = 100.0 * solved / (runs * len(by_scene))
    failures = sum(run.dense_failures for run in by_scene.values())
    ratios = [
        percentiles(run.peer_us)[0] / percentiles(run.took_us)[0]
        for run in by_scene.values()
        if run.peer_us
    ]
    data = archive(kept) if problems > 0 else None
    mbm = None
    if data is not None:
        robot, every = load(data)
        body = place(robot, np.eye(4))
        step = max(1, len(every) // problems)
        usable = [
            p
            for p in every[::step]
            if all(
                arm_clearance(body, obstacles(p.world), q).distance_m > 0.0
                for q in (p.start_rad, p.goal_rad)
            )
        ]
        mbm = motion_bench_maker(body, usable, ompl)
        row(table, "MotionBenchMaker UR5", mbm)
        failures += mbm.dense_failures
    p50, p99 = percentiles(mbm.took_us) if mbm else (None, None)
    result |= {
        "mbm_problems": len(mbm.took_us) if mbm else None,
        "mbm_solved": mbm.solved if mbm else None,
        "mbm_p50_us": p50,
        "mbm_p99_us": p99 if p99 is not None and math.isfinite(p99) else None,
    }
    if mbm and mbm.peer_us and p50:
        result["ompl_median_ratio"] = percentiles(mbm.peer_us)[0] / p50
    else:
        result["ompl_median_ratio"] = float(np.median(ratios)) if ratios else None
    result["scenes_ompl_median_ratio"] = float(np.median(ratios)) if ratios else None
    vamp = percentiles(mbm.vamp_us) if mbm and mbm.vamp_us else None
    result["vamp_p50_ratio"] = p50 / vamp[0] if vamp and p50 else None
    result["vamp_p99_ratio"] = p99 / vamp[1] if vamp and p99 else None
    by_cost, missing, failed = cost_ratios(ompl and costs)
    result["cost_ratio_25ms_vs_aorrtc"] = float(np.median([*by_cost.values()])) if by_cost else None
    result["dense_check_failures"] = failures + failed
    thread_ms, wall_ms = calls_over(case("ur5e", "into_shelf"), calls)
    result |= {"calls": calls, "calls_over_25ms": int((thread_ms > 25.0).sum())}
    console = Console(file=sys.stdout, width=110)
    console.print(table)
    if by_cost:
        each = ", ".join(f"{scene} {ratio:.3f}" for scene, ratio in by_cost.items())
        console.print(f"length after 25 ms over AORRTC's after 1 s: {each}", highlight=False)
    for scene, what in missing.items():
        console.print(f"no length to compare in {scene}: {what}, of {TIMES_OF_COST} each")
    late = int((wall_ms > 25.0).sum())
    p50_ms, p99_ms = percentiles(thread_ms)
    console.print(
        f"{calls} calls of {SLICE} iterations: p50 {p50_ms:.2f} ms, p99 {p99_ms:.2f} ms, most "
        f"{thread_ms.max():.2f} ms of thread time; {late} over 25 ms on the wall's clock"
    )
    console.print(machine(), highlight=False)
    if json:
        last_line(result)


if __name__ == "__main__":
    tyro.cli(main)
