"""What the cell tells the seat: its status, and a rehearsal to look at."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from brain.cell import CellModel
from brain.geometry import Array
from brain.kinematics import tool_pose
from brain.rehearsal import Rehearsal
from brain.types import Mode
from brain.world import SceneObject
from hardware.spine import Spine, TickRecord
from hardware.status import ArmStatus, ObjectStatus, Preview, PreviewArm, Status

PREVIEW_PERIOD_NS = 20_000_000
"""A preview shows a row of the rehearsal each 20 ms."""


@dataclass(slots=True, kw_only=True)
class Pace:
    """How well the driver keeps its time.

    Ticks done, started late, missed, and the last lateness.
    """

    ticks: int = 0
    late: int = 0
    skipped: int = 0
    lateness_ms: float = 0.0


def status_of(spine: Spine, record: TickRecord, pace: Pace) -> Status:
    """Put together the status after a tick."""
    state = record.state
    play = state.playback
    shown = None
    if state.mode.mode in (Mode.PREVIEW, Mode.COMMIT) and state.store:
        shown = state.store[-1].rehearsal
    return Status(
        t_ns=record.seen.t_ns,
        seq=pace.ticks,
        scene_digest=spine.cell.scene_digest,
        mode=state.mode.mode,
        reason=state.mode.reason,
        note=state.note,
        arms=tuple(_arm_status(spine, record, i) for i in range(len(spine.cell.arms))),
        answers=tuple(p.answer for p in record.passed),
        objects=tuple(
            ObjectStatus(name=o.name, T_world_object=_believed(spine, record, o))
            for o in state.world.objects
            if o.role in ("part", "moving")
        ),
        ticks=pace.ticks,
        late=pace.late,
        skipped=pace.skipped,
        lateness_ms=pace.lateness_ms,
        digest=None if shown is None else shown.digest,
        verdict=None if shown is None else shown.verdict.sentence(),
        progress=None if play is None else min(play.phase / play.stream.rows, 1.0),
    )


def fault_status(spine: Spine, t_ns: int, pace: Pace) -> Status:
    """Put together what can still be said when a tick failed: the mode and why, no measurement."""
    return Status(
        t_ns=t_ns,
        seq=pace.ticks,
        scene_digest=spine.cell.scene_digest,
        mode=spine.state.mode.mode,
        reason=spine.state.mode.reason,
        note=spine.state.note,
        arms=tuple(
            ArmStatus(
                name=arm.name,
                q_rad=None,
                dq_rad_s=None,
                T_world_tool=None,
                T_world_target=None,
                clearance_m=None,
                clearance_against=None,
                force_n=None,
                opening_m=None,
                holding=None,
                stopped=True,
            )
            for arm in spine.cell.arms
        ),
        answers=(),
        objects=(),
        ticks=pace.ticks,
        late=pace.late,
        skipped=pace.skipped,
        lateness_ms=pace.lateness_ms,
    )


def _believed(spine: Spine, record: TickRecord, item: SceneObject) -> Array:
    """Return where an object is believed to be, (4, 4): what is held is in the hand."""
    for held in record.state.world.held:
        if held.name == item.name:
            i = spine.cell.arm_index(held.arm)
            arm, state = spine.cell.arms[i], record.seen.states[i]
            if state is not None:
                return arm.T_world_base @ tool_pose(arm.model, state.q_rad) @ held.T_tool_object
    return item.T_world_object


def _arm_status(spine: Spine, record: TickRecord, i: int) -> ArmStatus:
    arm, state, gripper = spine.cell.arms[i], record.seen.states[i], record.seen.grippers[i]
    command, teleop = record.passed[i].command, record.state.teleop
    nearest = None
    if state is not None:
        nearest = spine.brain.proximity.nearest(
            record.seen.states, record.seen.t_ns, record.state.world, i, state.q_rad
        )
    target = None
    if teleop is not None and teleop.arm == i:
        target = arm.T_world_base @ teleop.T_base_reference
    elif command.q_rad is not None:
        target = arm.T_world_base @ tool_pose(arm.model, command.q_rad)
    return ArmStatus(
        name=arm.name,
        q_rad=None if state is None else state.q_rad,
        dq_rad_s=None if state is None else state.dq_rad_s,
        T_world_tool=(
            None if state is None else arm.T_world_base @ tool_pose(arm.model, state.q_rad)
        ),
        T_world_target=target,
        clearance_m=None if nearest is None else nearest.distance_m,
        clearance_against=None if nearest is None else nearest.against,
        force_n=record.wanted.force_n[i],
        opening_m=None if gripper is None else gripper.opening_m,
        holding=None if gripper is None else gripper.holding,
        stopped=state is None or state.stopped,
    )


def preview_of(cell: CellModel, rehearsal: Rehearsal) -> Preview:
    """Thin out a rehearsal for a seat to look at; the last row is always there."""
    stream, predicted = rehearsal.stream, rehearsal.prediction
    every = max(1, PREVIEW_PERIOD_NS // rehearsal.tick_ns)
    rows = np.unique(np.append(np.arange(0, stream.rows, every), stream.rows - 1))
    arms, column = [], 0
    for i, arm in enumerate(cell.arms):
        columns = slice(column, column + arm.model.dof)
        column = columns.stop
        arms.append(
            PreviewArm(
                name=arm.name,
                q_rad=stream.q_rad[rows, columns],
                opening_m=None if arm.model.gripper is None else predicted.opening_m[rows, i],
                clearance_m=predicted.clearance_m[rows, i],
                force_n=predicted.force_n[rows, i] if arm.has_wrench else None,
            )
        )
    verdict = rehearsal.verdict
    return Preview(
        digest=rehearsal.digest,
        t_ns=rows * rehearsal.tick_ns,
        arms=tuple(arms),
        verdict={
            "sentence": verdict.sentence(),
            "kind": verdict.kind,
            "clearance_m": verdict.clearance_m,
            "along_m": verdict.along_m,
            "arm": verdict.arm,
            "link": verdict.link,
            "against": verdict.against,
        },
    )
