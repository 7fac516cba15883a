"""Runs as the command line asks for them.

One or many, headless or at a window, or again from a log.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path

from brain.errors import ConfigError, LogError
from hardware.console import has_display, seeds_of
from hardware.resolve import resolve
from hardware.scene import ResolvedScene, load_scene
from hardware.scene_file import Scene
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
    """Run one seed or several, or a log again; return the exit status, 0 when all went well.

    Raises:
        ConfigError, LogError: a setting, scene, trace or log that cannot be.
        KeyboardInterrupt: Ctrl-C; its text says where the log is.
    """
    settings.check()
    if settings.replay is not None:
        return _replay(settings, settings.replay)
    scene = load_scene(settings.scene)
    if settings.task not in scene.tasks:
        known = ", ".join(scene.tasks) or "none"
        raise ConfigError(f"task: no {settings.task!r} in {scene.cell}; it has {known}")
    seeds = [settings.seed] if settings.seeds is None else seeds_of(settings.seeds)
    window = _has_window(settings)
    with run_folder(settings.out, datetime.now().strftime("%Y-%m-%dT%H-%M-%S")) as folder:
        if settings.seeds is not None:
            return _run_seeds(settings, ways, scene, seeds, folder)
        resolved = resolve(scene, settings.seed)
        with _saying_where(folder):
            if window and not settings.plays_alone:
                return ways.live(settings, resolved, folder)
            outcome = (ways.watched if window else ways.headless)(settings, resolved, folder)
        _say(json.dumps(asdict(outcome)) if settings.json else outcome.sentence())
        report(settings, folder)
        return 0 if outcome.ok else 1


def _has_window(settings: Settings) -> bool:
    """Whether to open one; says so where one is wanted and cannot be, or not and should be."""
    window = settings.seat != "none" and settings.seeds is None and has_display()
    if settings.seat == "window" and not window:
        display = os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY") or "not set"
        raise ConfigError(f"seat: window, but DISPLAY is {display}; --seat none needs none")
    if settings.models != "forearm" and not window:
        raise ConfigError(f"models: {settings.models} are shown in a window only")
    if settings.exit_when_done and window and not settings.plays_alone:
        raise ConfigError("exit_when_done: no script comes to an end here; --demo plays one")
    return window


def _run_seeds(settings: Settings, ways: Ways, scene: Scene, seeds: list[int], folder: Path) -> int:
    """Run several seeds, a line for each and a summary."""
    outcomes = []
    for seed in seeds:
        with run_folder(folder, f"seed-{seed:03d}") as place:
            resolved = resolve(scene, seed)
            with _saying_where(place):
                outcomes.append(ways.headless(settings, resolved, place))
            _say(json.dumps({"seed": seed} | asdict(outcomes[-1])))
            report(settings, place)
    done, hashes = sum(o.ok for o in outcomes), len({o.hash for o in outcomes})
    ok = done == len(seeds)
    _say(json.dumps({"ok": ok, "runs": len(seeds), "done": done, "hashes": hashes}))
    return 0 if ok else 1


@contextmanager
def _saying_where(folder: Path) -> Iterator[None]:
    """Let an interrupt say where the log is."""
    try:
        yield
    except KeyboardInterrupt:
        log = folder / LOG_NAME
        where = f"the log {log} is complete up to here" if log.exists() else "there is no log"
        raise KeyboardInterrupt(where) from None


def report(settings: Settings, folder: Path) -> None:
    """Make the report of a run, if it is wanted, and say where the run is."""
    if settings.report:
        write_report(folder / LOG_NAME, folder / "report.html")
    sys.stderr.write(f"{folder}/\n")


def _replay(settings: Settings, path: Path) -> int:
    """Run a log again; return the exit status, 1 when it differs."""
    difference, run_hash = replay(path)
    if settings.json:
        found = None if difference is None else asdict(difference)
        _say(json.dumps({"ok": difference is None, "hash": run_hash, "difference": found}))
    else:
        same = f"identical, hash {run_hash[:16]}"
        _say(same if difference is None else difference.sentence())
    return 0 if difference is None else 1


def say_failed(settings: Settings, sentence: str) -> None:
    """Say on standard error why there is no outcome; as JSON as well where that was asked for."""
    sys.stderr.write(sentence + "\n")
    if settings.json:
        with suppress(LogError):  # then standard error has to do
            _say(json.dumps({"ok": False, "error": sentence.removeprefix("error: ")}))


def _say(line: str) -> None:
    """Write a line of the answer.

    Raises:
        LogError: standard output is full or nobody reads it any more; nothing more goes there.
    """
    try:
        sys.stdout.write(line + "\n")
        sys.stdout.flush()
    except OSError as error:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())  # what is still in the buffer would fail at the end
        os.close(nowhere)
        raise LogError(f"standard output cannot be written: {error.strerror}") from None
