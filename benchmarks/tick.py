"""The cycle: how long a tick takes, and how well a live cell keeps the wall's time.

    python -m benchmarks.tick [--json] [--seconds 60] [--seed 3]

Lockstep: the whole `bench_pick` run (rehearse, commit, then five seconds of driving by hand) with
its log, in one thread. `tick_*_us`: `tick` plus `gate` of each tick in COMMIT or TELEOP.
`lockstep_rtf`: simulated over wall time of the task with no part of it timed, the median of five
runs (`lockstep_rtf_range`: least and most), without the tick in which the worker, inline here,
plans and rehearses; with it, `lockstep_rtf_planning`.
`lockstep_rtf_cameras`: two simulated seconds with every frame of every camera drawn.
`rehearse_10s_s`: the first 5,000 rows of the task on the twin, the median of three.

Live: every process of the cell (physics, control, planner, cameras, logger) and a scripted seat
that rehearses and commits without a pause, for `--seconds`. `live_late_*_us`: start of each tick
behind its due time; `live_late_pct`: share of ticks that start over 0.5 ms late; `live_skipped`:
ticks whose whole period had passed.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import tyro
from rich.console import Console
from rich.table import Table

import hardware.spine as spine_module
from benchmarks.report import last_line, machine, percentiles
from benchmarks.seat import seat_main
from brain.geometry import frozen, transform
from brain.rehearsal import Finished, Refused, Request, Stream
from brain.swept import swept
from brain.task import plan_goal
from brain.types import NS_PER_S, Goal, Mode
from hardware.clock import SimClock, WallClock
from hardware.inline_link import inline_line
from hardware.log import LogWriter
from hardware.process import Child
from hardware.record import RunHash, tick_json
from hardware.resolve import resolve
from hardware.scene import ResolvedScene, load_scene, start_q_rad
from hardware.spine import Spine, TickRecord
from sim.build import Brief, brief_of, build_desk
from sim.camera import connect_cameras
from sim.live import LiveReport, start_live
from sim.lockstep import Lockstep
from sim.outcome import OutcomeMeter
from sim.plant import build_plant
from sim.rehearser import TwinRehearser
from sim.runlog import RunLog
from sim.scene import build_model
from sim.worker import Desk, InlineWorker, declared_contacts
from vr.scripted import REST, Script, ScriptedSeat, demo, do_goal

SCENE, TASK = "bench_pick", "pick_place"
TEN_SECONDS = 5_000
PACED_RUNS = 5
DRIVEN_S, REACH_M, TURN_S = 5.0, 0.04, 2.5
CAMERAS_NS = 2 * NS_PER_S
SWING = (0.0, -0.6, -0.3, 0.0, 0.0, 0.0)

Samples = dict[str, list[float]]


def drive(seat: ScriptedSeat) -> Script:
    """Take the arm by the hand and move it in circles."""
    seat.engaged = False
    yield from seat.wait(0.1)
    seat.engaged = True
    if not (yield from seat.until(lambda s: s.mode is Mode.TELEOP, 3.0)):
        return False
    for k in range(round(DRIVEN_S * 100)):
        angle = 2.0 * np.pi * k / (100.0 * TURN_S)
        circle = (REACH_M * (np.cos(angle) - 1.0), REACH_M * np.sin(angle), 0.0)
        seat.T_seat_hand = frozen(REST @ transform(circle))
        yield
    return True


def demonstration(seat: ScriptedSeat) -> Script:
    """Do the task, then drive by hand."""
    if not (yield from do_goal(seat, Goal(kind="task", task=TASK))):
        return False
    return (yield from drive(seat))


class TimedDesk:
    """Plans and rehearses, and says how long it takes."""

    def __init__(self, desk: Desk, brief: Brief, seed: int) -> None:
        """Time a desk."""
        self.twin = desk.twin
        self.plan_s = self.rehearse_s = 0.0
        self.rows = 0
        self.ten_s: list[float] = []
        self._brief, self._seed = brief, seed
        contacts = declared_contacts(desk.twin.world.scene.resolved)
        self._rehearser = TwinRehearser(brief.cell, brief.limits, desk.twin, contacts)

    def work(self, request: Request) -> Finished:
        """Answer a request."""
        brief = self._brief
        start = time.perf_counter()
        stream = plan_goal(brief.cell, brief.limits, brief.tasks, request, self._seed)
        self.plan_s = time.perf_counter() - start
        if isinstance(stream, Refused):
            raise SystemExit(f"no plan: {stream.reason}")
        for _ in range(3):
            start = time.perf_counter()
            self._rehearser.rehearse(first_rows(stream, TEN_SECONDS), request)
            self.ten_s.append(time.perf_counter() - start)
        start = time.perf_counter()
        made = self._rehearser.rehearse(stream, request)
        if isinstance(made, Refused):
            raise SystemExit(f"no rehearsal: {made.reason}")
        space = swept(brief.cell, request.world, made.stream, made.held)
        self.rehearse_s, self.rows = time.perf_counter() - start, stream.rows
        return Finished(number=request.number, result=made, swept=space)


def first_rows(stream: Stream, rows: int) -> Stream:
    """The beginning of a stream."""
    return replace(
        stream,
        q_rad=stream.q_rad[:rows],
        opening_m=stream.opening_m[:rows],
        grip_force_n=stream.grip_force_n[:rows],
        events=tuple(e for e in stream.events if e.row < rows),
    )


def timed(call: Callable[..., Any], into: Callable[[float], None]) -> Callable[..., Any]:
    """Return a call that tells how long it takes, in us."""

    def wrapped(*args: Any) -> Any:
        start = time.perf_counter_ns()
        out = call(*args)
        into((time.perf_counter_ns() - start) * 1e-3)
        return out

    return wrapped


class Watch:
    """Takes a spine's cycle apart: what each part takes in each mode, in us."""

    def __init__(self, spine: Spine, world_step: Callable[[int], None]) -> None:
        """Watch a spine; calls of other spines (rehearsals) are left out."""
        self.parts: dict[str, Samples] = defaultdict(lambda: defaultdict(list))
        self._tick, self._gate = spine_module.tick, spine_module.gate
        self._spine = spine
        self._last: dict[str, float] = {}
        self.step = timed(world_step, lambda us: self._note("physics", us))

    def __enter__(self) -> Watch:
        """Put the clocks in."""
        tick, gate = self._tick, self._gate
        timed_tick = timed(tick, lambda us: self._note("tick", us))
        timed_gate = timed(gate, lambda us: self._note("gate", us))
        spine_module.tick = lambda b, s, i: (timed_tick if b is self._spine.brain else tick)(
            b, s, i
        )
        spine_module.gate = lambda c, p, m, v: (timed_gate if m is self._spine.memories else gate)(
            c, p, m, v
        )
        return self

    def __exit__(self, *_: object) -> None:
        """Take them out."""
        spine_module.tick, spine_module.gate = self._tick, self._gate

    def _note(self, part: str, us: float) -> None:
        mode = str(self._spine.state.mode.mode)
        self.parts[part][mode].append(us)
        if part == "gate":
            self.parts["tick + gate"][mode].append(self._last["tick"] + us)
        self._last[part] = us


@dataclass
class Stage:
    """A cell in lockstep whose planner's own time is known, and who sits there."""

    run: Lockstep
    desk: TimedDesk
    seat: ScriptedSeat


def stage(resolved: ResolvedScene, script: Callable[[ScriptedSeat], Script]) -> Stage:
    """Build a cell and give its seat a script."""
    brief = brief_of(resolved)
    plant = build_plant(build_model(resolved), resolved.seed)
    desk = TimedDesk(build_desk(resolved, brief), brief, resolved.seed)
    spine = Spine(brief.cell, brief.limits, brief.world, plant.devices, InlineWorker(desk), 0)
    clock = SimClock()
    line = inline_line(clock, None, resolved.seed)
    seat = ScriptedSeat(line.seat, line.seat_clock, brief.cell.arms[0].name)
    seat.play(script)
    return Stage(run=Lockstep(plant, spine, line.cell, clock, seat), desk=desk, seat=seat)


def paces(resolved: ResolvedScene) -> dict[str, object]:
    """Real-time factors of the task in lockstep: the median of some runs, the least and most."""
    found = [pace(resolved) for _ in range(PACED_RUNS)]
    alone = [without for without, _ in found]
    return {
        "lockstep_rtf": float(np.median(alone)),
        "lockstep_rtf_range": [min(alone), max(alone)],
        "lockstep_rtf_planning": float(np.median([planned for _, planned in found])),
    }


def pace(resolved: ResolvedScene) -> tuple[float, float]:
    """Real-time factor of the task, as `run_sim.py` runs it, with its log; and with planning."""
    on = stage(resolved, demo(TASK))
    run, plant, desk = on.run, on.run.plant, on.desk
    meter = OutcomeMeter(plant, brief_of(resolved).tasks[TASK], declared_contacts(resolved))
    with (
        tempfile.TemporaryDirectory() as folder,
        RunLog(Path(folder) / "run.mcap", {"scene": resolved.text}, plant, meter) as log,
    ):
        run.observers += [meter, log]
        start = time.perf_counter()
        run.run(lambda: on.seat.done is not None, 300 * NS_PER_S)
        wall_s = time.perf_counter() - start
    sim_s, again_s = plant.world.t_ns * 1e-9, sum(desk.ten_s)
    worked_s = desk.plan_s + desk.rehearse_s + again_s
    return sim_s / (wall_s - worked_s), sim_s / (wall_s - again_s)


def run_lockstep(resolved: ResolvedScene, table: Table) -> dict[str, object]:
    """Run the demonstration in lockstep with a log, and time its parts."""
    on = stage(resolved, demonstration)
    run, plant, spine, desk = on.run, on.run.plant, on.run.spine, on.desk
    run_hash = RunHash()
    with tempfile.TemporaryDirectory() as folder, Watch(spine, plant.world.step_to) as watch:
        log = LogWriter(Path(folder) / "run.mcap", {"scene": resolved.text})
        plant.world.step_to = watch.step
        write = timed(
            lambda r: log.tick(tick_json(r, run_hash.add(r))), lambda us: watch._note("log", us)
        )
        run.observers.append(write)
        spine.cycle = timed(spine.cycle, lambda us: watch._note("cycle", us))
        run.run(lambda: on.seat.done is not None, 300 * NS_PER_S)
        log.close()
    if not on.seat.done:
        raise SystemExit(f"the demonstration was not done: {spine.state.mode.reason}")
    for part in ("tick", "gate", "tick + gate", "cycle", "log", "physics"):
        for mode in ("commit", "teleop", "hold"):
            samples = watch.parts[part][mode]
            p50, p99 = percentiles(samples)
            table.add_row(
                f"{part}, {mode}",
                f"{len(samples)}",
                f"{np.mean(samples):.0f}",
                f"{p50:.0f}",
                f"{p99:.0f}",
                f"{np.max(samples):.0f}",
            )
    both = [us for mode in ("commit", "teleop") for us in watch.parts["tick + gate"][mode]]
    p50, p99 = percentiles(both)
    return {
        "tick_mean_us": float(np.mean(both)),
        "tick_p50_us": p50,
        "tick_p99_us": p99,
        "tick_ticks": len(both),
        "rehearse_10s_s": float(np.median(desk.ten_s)),
        "plan_s": desk.plan_s,
        "rehearse_rows": desk.rows,
        "rehearse_s": desk.rehearse_s,
    }


def run_cameras(resolved: ResolvedScene) -> float:
    """Real-time factor of a held cell in lockstep of which every camera draws every frame."""
    brief = brief_of(resolved)
    plant = build_plant(build_model(resolved), resolved.seed)
    cameras = connect_cameras(plant.world, resolved.seed)
    for camera in cameras:
        camera.start()
    worker = InlineWorker(build_desk(resolved, brief))
    spine = Spine(brief.cell, brief.limits, brief.world, plant.devices, worker, 0)
    clock = SimClock()
    line = inline_line(clock, None, resolved.seed)

    def look(record: TickRecord) -> None:
        for camera in cameras:
            camera.read()

    run = Lockstep(plant, spine, line.cell, clock, None)
    run.observers.append(look)
    start = time.perf_counter()
    run.run(lambda: False, CAMERAS_NS)
    return CAMERAS_NS * 1e-9 / (time.perf_counter() - start)


def run_live(resolved: ResolvedScene, seconds: float) -> tuple[LiveReport, dict[str, int] | None]:
    """Run the whole live cell with a seat that works without a pause."""
    q_start, arm = start_q_rad(resolved.scene)[0], resolved.scene.arms[0].name
    goals = (
        Goal(kind="task", task=TASK),
        Goal(kind="joints", arm=arm, q_rad=q_start + np.array(SWING)),
        Goal(kind="home", arm=arm),
    )
    clock = WallClock()
    with (
        tempfile.TemporaryDirectory() as folder,
        start_live(resolved, log=Path(folder) / "run.mcap") as live,
    ):
        drawing = {"LP_NUM_THREADS": "0"}
        seat = Child("seat", seat_main, live.cell, live.endpoint, arm, goals, environment=drawing)
        seat.wait_ready()
        seat.begin(True)
        clock.wait_until_ns(clock.now_ns() + round(seconds * 1e9))
        seat.ask_stop()
        seat.join()
        return live.stop(), seat.report


def live_rows(report: LiveReport, seat: dict[str, int] | None, table: Table) -> dict[str, object]:
    """Put the live run into the table and the result."""
    loop, cell = report.control, report.cell
    if loop is None or cell is None:
        raise SystemExit("; ".join(report.problems) or "the live cell did not run")
    for name, p50, p99, worst in (
        ("live: start behind due", loop.late_p50_us, loop.late_p99_us, loop.late_max_us),
        ("live: whole tick", loop.busy_p50_us, loop.busy_p99_us, loop.busy_max_us),
    ):
        table.add_row(name, f"{loop.ticks}", "", f"{p50:.0f}", f"{p99:.0f}", f"{worst:.0f}")
    return {
        "live_ticks": loop.ticks,
        "live_late_p50_us": loop.late_p50_us,
        "live_late_p99_us": loop.late_p99_us,
        "live_late_max_us": loop.late_max_us,
        "live_late_pct": 100.0 * loop.late / max(loop.ticks, 1),
        "live_skipped": loop.skipped,
        "live_busy_p50_us": loop.busy_p50_us,
        "live_busy_p99_us": loop.busy_p99_us,
        "live_busy_max_us": loop.busy_max_us,
        "live_log_dropped": loop.dropped,
        "live_physics_steps": cell.steps,
        "live_physics_late": cell.late,
        "live_physics_behind_max_ms": cell.behind_max_ms,
        "live_frames": None if report.frames is None else list(report.frames),
        "live_seat": seat,
        "live_problems": list(report.problems),
    }


def main(
    json: bool = False,
    seconds: Annotated[float, tyro.conf.arg(help="of the live run; 0 leaves it out")] = 60.0,
    cameras: Annotated[bool, tyro.conf.arg(help="draw camera frames in lockstep")] = True,
    seed: int = 3,
) -> None:
    """Run the benchmark."""
    resolved = resolve(load_scene(SCENE), seed)
    table = Table("us", "n", "mean", "p50", "p99", "max")
    result: dict[str, object] = {}
    run_lockstep(resolved, Table(*"abcdef"))  # loads and warms every kernel
    result |= run_lockstep(resolved, table)
    result |= paces(resolved)
    result["lockstep_rtf_cameras"] = run_cameras(resolved) if cameras else None
    if seconds > 0.0:
        result |= live_rows(*run_live(resolved, seconds), table)
    console = Console(file=sys.stdout, width=100)
    console.print(table)
    for key, value in result.items():
        if not key.startswith("tick_"):
            console.print(f"{key}: {value if not isinstance(value, float) else round(value, 3)}")
    console.print(machine(), highlight=False)
    if json:
        last_line(result)


if __name__ == "__main__":
    tyro.cli(main)
