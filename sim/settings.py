"""The settings of a run of the simulated cell, as the command line takes them."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Literal

from brain.errors import ConfigError
from hardware.console import SEED_MOST
from sim.conditions import Conditions
from sim.plant import PlantChange
from sim.scene import Models

BESIDE_REPLAY = ("replay", "json", "seat", "out", "report")
"""Settings that a replay heeds, or that only say where a run would be shown or written."""


@dataclass(frozen=True)
class Settings:
    """Rehearse and commit robot-arm tasks in a simulated cell."""

    scene: str = "bench_pick"
    """A scene of scenes/ by name, or a path to a .yaml file."""
    task: str = "pick_place"
    """The task that a script does."""
    seat: Literal["auto", "none", "window"] = "auto"
    """none: a script, headless. window: you, live. auto: a window where there is a display."""
    demo: bool = False
    """In the window too a script does the task, in lockstep; you look on and may stop it."""
    exit_when_done: bool = False
    """Close the window when the script of a demo has come to its end."""
    seed: int = 0
    """Chooses the arrangement of the scene and all noise."""
    seeds: str | None = None
    """Several runs without a window, for example 1-20; one line each, then a summary."""
    json: bool = False
    """The last line of standard output is one JSON object."""
    out: Path = Path("runs")
    """Where the folder of the run is made."""
    report: bool = True
    """Write report.html with pictures and a film (takes some seconds)."""
    replay: Path | None = None
    """Run a log again and name the first tick that differs."""
    trace: Path | None = None
    """Let the operator of a recorded trace do the task instead of the script."""
    record_trace: Path | None = None
    """Record what the operator does into a new file, for --trace."""
    models: Models = "forearm"
    """Whose look the arms have; menagerie: official meshes from MENAGERIE_ROOT."""
    change: PlantChange = field(default_factory=PlantChange)
    """How the plant differs from what the twin expects."""
    fault: tuple[str, ...] = ()
    """Faults of devices, for example arm.delay=8ms or ft.noise=2N@5s (see sim/faults.py)."""

    @property
    def plays_alone(self) -> bool:
        """Whether nobody is needed at the window to operate the cell."""
        return self.demo or self.trace is not None

    def check(self) -> None:
        """Refuse what does not go together: nothing that was asked for is left out in silence.

        Raises:
            ConfigError: names the setting and why.
        """
        if self.replay is not None:
            usual = Settings()
            names = [f.name for f in fields(self) if f.name not in BESIDE_REPLAY]
            said = [name for name in names if getattr(self, name) != getattr(usual, name)]
            if said:
                what = ", ".join(said)
                raise ConfigError(f"replay: a log is run as it was; {what} cannot go with it")
        if not 0 <= self.seed <= SEED_MOST:
            raise ConfigError(f"seed: {self.seed}, allowed are 0 to {SEED_MOST}")
        if self.seeds is not None and self.record_trace is not None:
            raise ConfigError("record_trace: one run is recorded, not those of several seeds")
        if self.seeds is not None and self.seat == "window":
            raise ConfigError("seeds: a window shows one run; give --seat none or --seed")
        if self.change.missing is None and self.change.missing_at_s != 0.0:
            at_s = self.change.missing_at_s
            raise ConfigError(f"change.missing_at_s: {at_s}, but change.missing names no part")

    def conditions(self) -> Conditions:
        """Return what is not as it should be in the run."""
        return Conditions(change=self.change, faults=self.fault)
