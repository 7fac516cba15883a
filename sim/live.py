"""A simulated cell that runs in the wall's time, in processes of its own.

    with start_live(resolved, log=folder / "run.mcap") as live:
        seat = open_seat(live.cell, live.endpoint)

Cell (physics, devices, watchdogs), control (the cycle, one thread), planner, cameras, logger; the
seat is whoever connects. All are spawned, begin together, and end when their parent does.
"""

from __future__ import annotations

import atexit
import contextlib
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType

from brain.errors import ConfigError, ForearmError
from hardware.api import Camera
from hardware.bus import Slot
from hardware.device_bytes import frame_bytes
from hardware.journal import log_main
from hardware.live import Begin, ControlSetup, LoopReport, control_main
from hardware.process import STOP_S, Child, wait_ready
from hardware.remote import RemoteCamera, create_slots
from hardware.scene import ResolvedScene, camera_specs
from hardware.streams import stream
from hardware.zenoh_link import Tls, loopback_endpoint
from sim.build import brief_of
from sim.conditions import Conditions
from sim.processes import (
    CameraSetup,
    CellReport,
    CellSetup,
    Truth,
    cameras_main,
    cell_main,
    planner_main,
    truth_bytes,
    unpack_truth,
)
from sim.runlog import head
from sim.scene import Models, SceneModel, build_model

BEGIN_NS = 100_000_000
"""All begin together, so long after they were told."""
NICE = 10
"""Cameras, planner and logger give way to the cell and to control."""
AS_IT_SHOULD_BE = Conditions()
DRAWING = {"LP_NUM_THREADS": "0", "MUJOCO_GL": "egl"}
"""Mesa's drawing threads, without this, keep a 500 Hz loop from its time where there is no GPU."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveReport:
    """What came of a live cell; None of a process that did not come to its end.

    `frames` drawn per camera. `problems` are sentences, one for each process that failed.
    """

    control: LoopReport | None
    cell: CellReport | None
    frames: tuple[int, ...] | None
    problems: tuple[str, ...]


class Live:
    """A cell that runs; made by `start_live`."""

    def __init__(
        self,
        scene: SceneModel,
        endpoint: str,
        children: Mapping[str, Child],
        slots: list[Slot],
        truth: Slot,
        cameras: tuple[Camera, ...],
    ) -> None:
        """Take over processes and memory."""
        self.scene = scene
        self.cell = scene.resolved.scene.cell
        self.endpoint = endpoint
        self.cameras = cameras
        self._children = dict(children)
        self._slots = slots
        self._truth = truth
        self._report: LiveReport | None = None
        atexit.register(self.stop)

    @property
    def pids(self) -> dict[str, int]:
        """Process numbers by name; the planner's is that of the one it began with."""
        pids = {name: child.pid for name, child in self._children.items()}
        pids |= self._children["control"].info
        return pids

    @property
    def problem(self) -> ForearmError | None:
        """Why a process ended that was not meant to, None while all is well."""
        return next((p for c in self._children.values() if (p := c.problem) is not None), None)

    def truth(self) -> Truth | None:
        """The simulator's state now, None before the first step; never for the brain."""
        value = self._truth.read()
        return None if value is None else unpack_truth(value.data, self.scene.model)

    def stop(self) -> LiveReport:
        """End everything, control first, and say what came of it; a second call says it again."""
        if self._report is None:
            atexit.unregister(self.stop)
            self._report = _end(self._children, self._slots)
        return self._report

    def __enter__(self) -> Live:
        """Nothing more to start."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End everything."""
        self.stop()


def start_live(
    resolved: ResolvedScene,
    *,
    conditions: Conditions = AS_IT_SHOULD_BE,
    models: Models = "forearm",
    cameras: bool = True,
    log: Path | None = None,
    endpoint: str | None = None,
    tls: Tls | None = None,
) -> Live:
    """Start every process of a cell, wait until all are ready, and let them begin.

    Without an endpoint a free port on loopback is taken. `log` is the file of the log.

    Raises:
        ConfigError: scene or conditions cannot be, or there is no OpenGL for the cameras.
        ForearmError: a process does not start; says which and why.
    """
    if conditions.line is not None:
        raise ConfigError("line: a live cell has a real one; only a lockstep run can spoil it")
    faults = conditions.parsed_faults()
    scene, brief = build_model(resolved, models=models), brief_of(resolved)
    endpoint = endpoint or loopback_endpoint()
    specs = camera_specs(resolved) if cameras else ()
    children: dict[str, Child] = {}
    slots: list[Slot] = []
    with contextlib.ExitStack() as undo:
        undo.callback(lambda: _end(children, slots, patience_s=0.0))
        names, made = create_slots(brief.cell, tuple(scene.moving_mocap))
        slots += made
        truth = Slot.create("truth", truth_bytes(scene.model))
        frames = [Slot.create("frames", frame_bytes(s.width_px, s.height_px)) for s in specs]
        slots += [truth, *frames]
        control_log, cell_log = None, None
        if log is not None:
            readers, writers = zip(stream(), stream(), strict=True)
            control_log, cell_log = writers
            about = head(resolved, "live", "", asdict(conditions))
            children["log"] = Child("log", log_main, log, about, readers, nice=NICE)
            for reader in readers:
                reader.close()
        control = ControlSetup(
            scene_text=resolved.text,
            slots=names,
            endpoint=endpoint,
            tls=tls,
            planner=planner_main,
            planner_nice=NICE,
            log=control_log,
        )
        cell = CellSetup(
            scene_text=resolved.text,
            change=conditions.change,
            faults=tuple(faults),
            slots=names,
            truth=truth.name,
            log=cell_log,
        )
        children["control"] = Child("control", control_main, control)
        children["cell"] = Child("cell", cell_main, cell)
        if specs:
            views = CameraSetup(
                scene_text=resolved.text,
                models=models,
                truth=truth.name,
                frames=tuple(slot.name for slot in frames),
            )
            children["cameras"] = Child(
                "cameras", cameras_main, views, nice=NICE, environment=DRAWING
            )
        for writer in (control_log, cell_log):
            if writer is not None:
                writer.close()
        wait_ready(list(children.values()))
        zero_ns = time.monotonic_ns() + BEGIN_NS
        for child in children.values():
            child.begin(Begin(zero_ns=zero_ns, specs=children["cell"].info))
        remote = tuple(RemoteCamera(s, slot) for s, slot in zip(specs, frames, strict=True))
        undo.pop_all()
        return Live(scene, endpoint, children, slots, truth, remote)
    raise AssertionError("not reached")


def _end(
    children: Mapping[str, Child], slots: list[Slot], patience_s: float = STOP_S
) -> LiveReport:
    """End processes in order, and give the memory back."""
    problems = []
    for name in ("control", "cell", "cameras", "log"):
        child = children.get(name)
        if child is not None:
            child.ask_stop()
            child.join(patience_s)
            if child.problem is not None:
                problems.append(str(child.problem))
    for slot in slots:
        slot.close()
    slots.clear()
    reports = {name: child.report for name, child in children.items()}
    return LiveReport(
        control=reports.get("control"),
        cell=reports.get("cell"),
        frames=reports.get("cameras"),
        problems=tuple(problems),
    )
