"""Runs as the command line asks for them.

One or many, headless or at a window, or again from a log.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path

from brain.errors import ConfigError
from hardware.console import SEED_MOST, has_display, seeds_of
from hardware.resolve import resolve
from hardware.scene import ResolvedScene, load_scene
from sim.outcome import Outcome
from sim.report import write_report
from sim.runlog import LOG_NAME, run_folder
from sim.session import replay
from sim.settings import Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class Ways:
    """How a resolved scene is run, with its log in a folder: headless, watched, or live by hand."""

    headless: Callable[[Settings, ResolvedScene, Path], Outcome]
    watched: Callable[[Settings, ResolvedScene, Path], Outcome]
    live: Callable[[Settings, ResolvedScene, Path], int]


def run(settings: Settings, ways: Ways) -> int:
    """Run one seed or several; return the exit status, 0 when all tasks were done."""
    scene = load_scene(settings.scene)
    if settings.task not in scene.tasks:
        known = ", ".join(scene.tasks) or "none"
        raise ConfigError(f"task: no {settings.task!r} in {scene.cell}; it has {known}")
    seeds = _seeds(settings)
    folder = run_folder(settings.out, datetime.now().strftime("%Y-%m-%dT%H-%M-%S"))
    window = settings.seat == "window" or (settings.seat == "auto" and has_display())
    if window and settings.seeds is None and not settings.plays_alone:
        return ways.live(settings, resolve(scene, settings.seed), folder)
    outcomes = []
    for seed in seeds:
        resolved = resolve(scene, seed)
        place = folder if settings.seeds is None else run_folder(folder, f"seed-{seed:03d}")
        show = ways.watched if window and settings.seeds is None else ways.headless
        outcomes.append(show(settings, resolved, place))
        report(settings, place)
        if settings.seeds is not None:
            _say(json.dumps({"seed": seed} | asdict(outcomes[-1])))
    done = sum(outcome.ok for outcome in outcomes)
    if settings.seeds is not None:
        hashes = len({outcome.hash for outcome in outcomes})
        counts = {"runs": len(seeds), "done": done, "hashes": hashes}
        _say(json.dumps({"ok": done == len(seeds)} | counts))
    else:
        _say(json.dumps(asdict(outcomes[0])) if settings.json else outcomes[0].sentence())
    return 0 if done == len(seeds) else 1


def _seeds(settings: Settings) -> list[int]:
    if settings.seeds is not None:
        if settings.record_trace is not None:
            raise ConfigError("record_trace: one run is recorded, not those of several seeds")
        return seeds_of(settings.seeds)
    if not 0 <= settings.seed <= SEED_MOST:
        raise ConfigError(f"seed: {settings.seed}, allowed are 0 to {SEED_MOST}")
    return [settings.seed]


def report(settings: Settings, folder: Path) -> None:
    """Make the report of a run, if it is wanted, and say where the run is."""
    if settings.report:
        write_report(folder / LOG_NAME, folder / "report.html")
    sys.stderr.write(f"{folder}/\n")


def run_replay(settings: Settings, path: Path) -> int:
    """Run a log again; return the exit status, 1 when it differs."""
    difference, run_hash = replay(path)
    if settings.json:
        found = None if difference is None else asdict(difference)
        _say(json.dumps({"ok": difference is None, "hash": run_hash, "difference": found}))
    else:
        same = f"identical, hash {run_hash[:16]}"
        _say(same if difference is None else difference.sentence())
    return 0 if difference is None else 1


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()
