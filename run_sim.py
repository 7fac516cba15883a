"""The door to the simulated cell: read the settings, build, run, say what came of it.

Exit status: 0 done, 1 the task failed, 2 bad input, 3 device or link, 130 interrupted.
"""

from __future__ import annotations

import signal

if __name__ == "__main__":  # until there is something to say, Ctrl-C simply ends it
    signal.signal(signal.SIGINT, signal.SIG_DFL)

import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from hardware.drawing import choose_drawing

choose_drawing()

import tyro

from brain.errors import ConfigError, ForearmError, LogError
from hardware.api import Camera
from hardware.clock import WallClock
from hardware.console import Progress
from hardware.scene import ResolvedScene, cell_model
from hardware.seat_link import SeatLink
from hardware.zenoh_link import open_seat
from sim.live import start_live
from sim.outcome import Outcome
from sim.paced import Paced
from sim.runlog import LOG_NAME
from sim.runs import Ways, report, run, say_failed
from sim.scene import SceneModel, build_model
from sim.session import run_lockstep
from sim.settings import Settings
from vr.traced import operator, recording

if TYPE_CHECKING:
    from vr.desktop import DesktopSeat


def main(argv: list[str] | None = None) -> int:
    """Do what the command line says and return the exit status."""
    settings = tyro.cli(Settings, args=argv, prog="run_sim.py")
    try:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        return run(settings, Ways(headless=run_headless, watched=run_watched, live=run_live))
    except ForearmError as error:
        say_failed(settings, f"error: {error}")
        return 2 if isinstance(error, (ConfigError, LogError)) else 3
    except KeyboardInterrupt as end:
        say_failed(settings, "; ".join(["interrupted", *map(str, end.args)]))
        return 130


def run_headless(settings: Settings, resolved: ResolvedScene, folder: Path) -> Outcome:
    """Run in lockstep with a scripted or recorded operator, as fast as it goes."""
    seat = operator(resolved, settings.task, settings.trace, settings.record_trace)
    with Progress(f"{resolved.scene.cell}, seed {resolved.seed}") as progress:
        return run_lockstep(resolved, settings.task, seat, folder, settings.conditions(), progress)


def run_watched(settings: Settings, resolved: ResolvedScene, folder: Path) -> Outcome:
    """Run the same at the wall's pace, in a process of its own, and look on through a window."""
    seat = operator(resolved, settings.task, settings.trace, settings.record_trace)
    with Paced(resolved, settings.task, seat, folder, settings.conditions()) as paced:
        link = open_seat(resolved.scene.cell, paced.endpoint)
        scene = build_model(resolved, models=settings.models)
        window = open_window(settings, scene, link, lambda: not paced.done)
        paced.begin()
        window.run(lambda: paced.failed or (settings.exit_when_done and paced.done))
        return paced.outcome()


def run_live(settings: Settings, resolved: ResolvedScene, folder: Path) -> int:
    """Run the cell live, in its own processes, with a person at the window."""
    conditions = settings.conditions().for_task(resolved, settings.task)
    log = folder / LOG_NAME
    with start_live(resolved, conditions=conditions, models=settings.models, log=log) as live:
        link = open_seat(live.cell, live.endpoint)
        with recording(link, settings.record_trace, resolved):
            window = open_window(settings, live.scene, link, cameras=live.cameras)
            window.run(lambda: bool(live.problem))
        problem = live.problem
    if problem is not None:
        raise problem
    report(settings, folder)
    return 0


def open_window(
    settings: Settings,
    scene: SceneModel,
    link: SeatLink,
    watch: Callable[[], bool] | None = None,
    cameras: Sequence[Camera] = (),
) -> DesktopSeat:
    """Open the window at a seat's end of a link; only now is anything needed that draws."""
    from vr.cameras import camera_pictures
    from vr.desktop import DesktopSeat

    cell, tasks = cell_model(scene.resolved), scene.resolved.scene.tasks
    return DesktopSeat(
        scene.model,
        cell,
        scene.qpos_start,
        link,
        WallClock(),
        tasks=(settings.task, *(name for name in tasks if name != settings.task)),
        watch=watch,
        pictures=partial(camera_pictures, cameras) if cameras else None,
    )


if __name__ == "__main__":
    sys.exit(main())
