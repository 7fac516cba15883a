"""The folder of a run: its log while it goes on, its result and report at the end."""

from __future__ import annotations

import platform
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from brain.errors import ConfigError
from brain.rehearsal import Finished, Rehearsal
from hardware.live import FAULT
from hardware.log import LogWriter
from hardware.record import fault_json, rehearsal_json, tick_json
from hardware.replay import REFUSED, REHEARSAL
from hardware.scene import ResolvedScene
from hardware.spine import TickRecord
from sim.outcome import Outcome, OutcomeMeter
from sim.plant import Plant

TRUTH = "/sim"
RESULT = "/result"
TRUTH_TICKS = 50
"""The simulator's own state is logged 10 times a second at a tick of 2 ms, for pictures."""
LOG_NAME = "run.mcap"


@contextmanager
def run_folder(parent: Path, name: str) -> Iterator[Path]:
    """Make a new folder for a run, and take it away again if nothing came into it.

    Raises:
        ConfigError: it cannot be made.
    """
    folder = _new_folder(parent, name)
    try:
        yield folder
    finally:
        with suppress(OSError):  # it is not empty
            folder.rmdir()


def _new_folder(parent: Path, name: str) -> Path:
    """Make a folder; a name that is taken gets a number."""
    for number in range(1, 1000):
        folder = parent / (name if number == 1 else f"{name}-{number}")
        try:
            folder.mkdir(parents=True)
        except FileExistsError:
            continue
        except OSError as error:
            raise ConfigError(f"out: {folder} cannot be made: {error.strerror}") from None
        return folder
    raise ConfigError(f"out: {parent} has too many runs called {name}")


def head(
    resolved: ResolvedScene, driver: str, task: str, conditions: dict[str, Any]
) -> dict[str, Any]:
    """What the head of a log says: all that is needed to run it again, and the versions."""
    packages = ("forearm", "mujoco", "numpy", "numba", "ruckig", "scipy")
    return {
        "scene": resolved.text,
        "scene_digest": resolved.digest,
        "seed": resolved.seed,
        "driver": driver,
        "task": task,
        "conditions": conditions,
        "versions": {"python": platform.python_version()} | {p: version(p) for p in packages},
    }


class RunLog:
    """Writes down every tick, what the worker answered, and now and then the simulator's truth."""

    def __init__(self, path: Path, head: dict[str, Any], plant: Plant, meter: OutcomeMeter) -> None:
        """Start a log; `meter` looks at each tick before it is written.

        Raises:
            LogError: the file cannot be written.
        """
        self._writer = LogWriter(path, head)
        self._plant = plant
        self._meter = meter
        self._ticks = 0
        self._fault = ""

    def __call__(self, record: TickRecord) -> None:
        """Write one tick."""
        t_ns, answer = record.seen.t_ns, record.seen.finished
        if answer is not None:
            self._write_answer(t_ns, answer)
        self._writer.tick(tick_json(record, self._meter.hash))
        if self._ticks % TRUTH_TICKS == 0:
            self._write_truth(t_ns)
        self._ticks += 1

    def fault(self, t_ns: int, error: Exception) -> None:
        """Write why a tick failed, which is not in the log; the same reason once."""
        if repr(error) != self._fault:
            self._fault = repr(error)
            self._writer.event(FAULT, t_ns, fault_json(error))

    def _write_answer(self, t_ns: int, answer: Finished) -> None:
        result = answer.result
        if isinstance(result, Rehearsal):
            data = {"number": answer.number, "rehearsal": rehearsal_json(result)}
            self._writer.event(REHEARSAL, t_ns, data)
        else:
            self._writer.event(REFUSED, t_ns, {"number": answer.number, "reason": result.reason})

    def result(self, outcome: Outcome) -> None:
        """Write what came of the run."""
        self._write_truth(self._plant.world.t_ns)
        self._writer.event(RESULT, self._plant.world.t_ns, asdict(outcome))

    def close(self) -> None:
        """Close the file."""
        self._writer.close()

    def __enter__(self) -> Self:
        """Nothing more to do."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close the file, whatever ended the run."""
        self.close()

    def _write_truth(self, t_ns: int) -> None:
        data, near = self._plant.world.data, self._meter.now
        truth = {
            "t_ns": t_ns,
            "qpos": data.qpos,
            "mocap_pos": data.mocap_pos,
            "mocap_quat": data.mocap_quat,
            "clearance_m": None if near is None else near.distance_m,
            "nearest": None if near is None else [near.arm, near.link, near.against],
        }
        self._writer.event(TRUTH, t_ns, truth)
