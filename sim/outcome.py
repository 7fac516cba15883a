"""What came of a run, read from the simulator's truth and never from the plan."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from brain.task import PickPlace
from hardware.record import RunHash
from hardware.spine import TickRecord
from sim.clearance import LOOK_M, ClearanceMeter, Nearest
from sim.plant import Plant

PLACED_M = 0.010
"""A part counts as placed within this distance of where the task wants it."""
LOOK_TICKS = 10
"""True clearance is measured every so many ticks, 50 times a second at a tick of 2 ms."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The result of a run.

    `placed_error_mm`: largest distance of a part of the task from its place at the end.
    `min_clearance_mm`: smallest distance of robots and held parts to all that the task does not
    declare as contact, 300 where nothing came nearer. `peak_force_n`: largest tared wrist force,
    None without a sensor. `duration_s`: simulated time. `hash`: of every tick, see `RunHash`.
    """

    ok: bool
    placed_error_mm: float
    min_clearance_mm: float
    peak_force_n: float | None
    duration_s: float
    hash: str
    reason: str

    def sentence(self) -> str:
        """Say what came of it."""
        force = "not measured" if self.peak_force_n is None else f"{self.peak_force_n:.1f} N"
        return (
            f"{'done' if self.ok else 'FAILED: ' + self.reason}: parts up to "
            f"{self.placed_error_mm:.1f} mm from their place, nothing nearer than "
            f"{self.min_clearance_mm:.1f} mm, peak force {force}, {self.duration_s:.1f} s; "
            f"hash {self.hash[:16]}"
        )


class OutcomeMeter:
    """Watches a run tick by tick; `outcome` at the end."""

    def __init__(
        self, plant: Plant, task: Sequence[PickPlace], contacts: frozenset[tuple[str, str]]
    ) -> None:
        """`contacts` are the (group, object) pairs that the task declares."""
        self._plant = plant
        self._task = task
        self._meter = ClearanceMeter(plant.world.scene, contacts)
        self._hash = RunHash()
        self._ticks = 0
        self.hash = ""
        self.nearest: Nearest | None = None
        self.now: Nearest | None = None
        self.peak_force_n: float | None = None

    def __call__(self, record: TickRecord) -> None:
        """Look at one tick."""
        self.hash = self._hash.add(record)
        for force_n in record.wanted.force_n:
            if force_n is not None and math.isfinite(force_n):
                self.peak_force_n = max(force_n, self.peak_force_n or 0.0)
        if self._ticks % LOOK_TICKS == 0:
            held = {h.arm: h.name for h in record.state.world.held}
            self.now = self._meter.measure(self._plant.world.data, held)
            least_m = LOOK_M if self.nearest is None else self.nearest.distance_m
            if self.now is not None and self.now.distance_m < least_m:
                self.nearest = self.now
        self._ticks += 1

    def outcome(self, done: bool, reason: str) -> Outcome:
        """Say what came of it; `done` is whether the operator got to the end."""
        world = self._plant.world
        error_m = 0.0
        for step in self._task:
            at = world.scene.part_qpos[step.name]
            off = world.data.qpos[at : at + 3] - step.T_world_place[0, :3, 3]
            error_m = max(error_m, float(np.linalg.norm(off)))
        least_m = LOOK_M if self.nearest is None else self.nearest.distance_m
        return Outcome(
            ok=done and error_m <= PLACED_M and least_m > 0.0,
            placed_error_mm=round(1000.0 * error_m, 3),
            min_clearance_mm=round(1000.0 * least_m, 3),
            peak_force_n=None if self.peak_force_n is None else round(self.peak_force_n, 3),
            duration_s=round(world.t_ns * 1e-9, 3),
            hash=self.hash,
            reason=reason,
        )
