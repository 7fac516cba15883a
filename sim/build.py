"""Puts a simulated cell together from a resolved scene: plant, twin, worker and spine.

Everything that a run needs follows from the resolved text, the seed and the options here; two
builds are equal.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from brain.cell import CellModel
from brain.limits import LimitProfile, profile
from brain.task import Task
from brain.world import World
from hardware.scene import ResolvedScene, cell_model, tasks_of, world_of
from hardware.spine import Spine, Worker
from sim.faults import Fault
from sim.plant import Plant, PlantChange, build_plant
from sim.scene import Models, SceneModel, build_model
from sim.twin import Twin
from sim.worker import Desk, InlineWorker


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Brief:
    """What the brain is told of a cell: its static model, limits, world and tasks."""

    cell: CellModel
    limits: LimitProfile
    world: World
    tasks: dict[str, Task]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SimCell:
    """A simulated cell that is ready to be driven."""

    brief: Brief
    scene: SceneModel
    plant: Plant
    spine: Spine


def brief_of(resolved: ResolvedScene) -> Brief:
    """Work out what the brain is told.

    Raises:
        ConfigError: a description is wrong, or the arms' periods do not fit the tick.
    """
    return Brief(
        cell=cell_model(resolved),
        limits=profile(resolved.scene.limits),
        world=world_of(resolved),
        tasks=tasks_of(resolved),
    )


def build_desk(resolved: ResolvedScene, brief: Brief) -> Desk:
    """Build the twin, and the desk that plans and rehearses on it."""
    twin = Twin(build_model(resolved), resolved.seed, brief.cell.tick_ns)
    return Desk(brief.cell, brief.limits, brief.tasks, twin, resolved.seed)


def build_cell(
    resolved: ResolvedScene,
    *,
    change: PlantChange | None = None,
    faults: Sequence[Fault] = (),
    models: Models = "forearm",
    worker: Worker | None = None,
) -> SimCell:
    """Build a cell in one process; without a worker the desk works inline.

    Raises:
        ConfigError: the scene cannot be built, or the change or a fault does not fit it.
    """
    brief = brief_of(resolved)
    scene = build_model(resolved, models=models)
    plant = build_plant(scene, resolved.seed, change, faults=faults)
    if worker is None:
        worker = InlineWorker(build_desk(resolved, brief))
    spine = Spine(brief.cell, brief.limits, brief.world, plant.devices, worker, plant.world.t_ns)
    return SimCell(brief=brief, scene=scene, plant=plant, spine=spine)
