"""Which curves a report shows: of the whole cell first, then of each arm."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import cycle, pairwise

import numpy as np

from brain import playback
from brain.cell import CellArm, CellModel
from brain.geometry import Array
from brain.kinematics import tool_jacobian, tool_pose
from brain.limits import LimitProfile, joint_speed
from brain.rehearsal import NEAR_M
from brain.types import Mode
from sim.report_data import ArmTrack, Run
from sim.report_svg import COLOURS, Bound, Line, Plot

TRUE = "#1b2430"
PALE = "#7fb3d5"
PEAK_S = 0.1
"""Of what jitters from tick to tick the largest value in each such time is shown."""


def cell_plots(run: Run, limits: LimitProfile | None) -> list[Plot]:
    """Clearance, departures from the rehearsal, latency and lateness."""
    return [_clearance(run, limits), _departures(run), _ages(run, limits), _lateness(run)]


def arm_plots(
    run: Run, track: ArmTrack, arm: CellArm | None, limits: LimitProfile | None, dt_s: float
) -> list[Plot]:
    """Joints, speeds, tracking, force and fingers of one arm.

    Without the arm's model (`arm` None) there is no speed of the tool, without a profile no limit.
    """
    plots = [_joints(run, track, arm), _joint_speeds(run, track, arm, limits)]
    plots.append(_tracking(run, track, arm, limits))
    if arm is not None:
        plots.append(_tool_speed(run, track, arm, limits, dt_s))
    plots += [_force(run, track, limits), _fingers(run, track)]
    return plots


# --------------------------------------------------------------------------------- whole cell


def _clearance(run: Run, limits: LimitProfile | None) -> Plot:
    lines = [
        _line(
            run,
            f"{track.name}, by the brain (padded, without its own links)",
            1e3 * track.clearance_m,
            colour,
        )
        for track, colour in zip(run.arms, cycle(COLOURS), strict=False)
    ]
    truth = Line(
        label="true, from the simulator",
        colour=TRUE,
        t_s=run.truth.t_s,
        y=1e3 * run.truth.clearance_m,
    )
    bounds = [Bound(label="true: called near below", value=1e3 * NEAR_M)]
    if limits is not None:
        bounds.append(Bound(label="hold below", value=1e3 * limits.clearance_stop_m))
    return Plot(
        title="Clearance",
        unit="mm",
        lines=(*lines, truth),
        bounds=tuple(bounds),
        note="robots and held parts to all they must not touch",
        from_zero=True,
    )


def _departures(run: Run) -> Plot:
    """Measured against predicted while a commit runs, as a share of what is allowed."""
    joint, force, opening = departures(run)
    allowed = (
        ("joints", joint, playback.DEPART_RAD, 1e3, "mrad"),
        ("force", force, playback.DEPART_FORCE_N, 1.0, "N"),
        ("fingers", opening, playback.DEPART_OPENING_M, 1e3, "mm"),
    )
    lines = [
        _peaks(run, f"{name} (100 % is {scale * most:.3g} {unit})", 100.0 * values / most, colour)
        for (name, values, most, scale, unit), colour in zip(allowed, COLOURS, strict=False)
    ]
    measured = any(np.any(np.isfinite(line.y)) for line in lines)
    return Plot(
        title="Departure from the rehearsal",
        unit="% of what is allowed",
        lines=tuple(lines),
        bounds=(Bound(label="hold above", value=100.0),),
        note=f"the largest in each {PEAK_S:.1g} s; fingers may be off for "
        f"{playback.DEPART_OPENING_TICKS} ticks"
        if measured
        else "nothing was committed",
        from_zero=True,
    )


def departures(run: Run) -> tuple[Array, Array, Array]:
    """Differences to the prediction in each tick of a commit: rad, N, m; (ticks,) each.

    The row that a tick compares with is the one at which the tick before left the playback.
    """
    out = tuple(np.full(len(run.t_s), np.nan) for _ in range(3))
    committing = run.mode == Mode.COMMIT
    before = np.concatenate([[""], run.digest[:-1]])
    came = np.concatenate([[np.nan], run.row[:-1]])
    for answer in run.rehearsed:
        found = answer.rehearsal
        if found is None:
            continue
        predicted = found.prediction
        last = len(predicted.q_rad) - 1
        ticks = np.flatnonzero(run.digest == found.digest)
        ticks = ticks[committing[ticks] | committing[ticks - 1]]
        rows = np.where(before[ticks] == found.digest, came[ticks], 0.0)
        rows = np.minimum(rows.astype(np.int64), last)
        measured = (
            np.concatenate([track.q_rad[ticks] for track in run.arms], axis=1),
            np.stack([track.force_n[ticks] for track in run.arms], axis=1),
            np.stack([track.opening_m[ticks] for track in run.arms], axis=1),
        )
        wanted = (predicted.q_rad, predicted.force_n, predicted.opening_m)
        for values, now, then in zip(out, measured, wanted, strict=True):
            if now.shape[1] == then.shape[1]:
                values[ticks] = np.fmax.reduce(np.abs(now - then[rows]), axis=1)
    return out[0], out[1], out[2]


def _ages(run: Run, limits: LimitProfile | None) -> Plot:
    lines = [_peaks(run, "operator's newest sample", run.input_age_ms, COLOURS[0])]
    lines += [
        _peaks(run, f"state of {track.name}", track.state_age_ms, colour)
        for track, colour in zip(run.arms, cycle(COLOURS[1:]), strict=False)
    ]
    bounds: tuple[Bound, ...] = ()
    if limits is not None:
        bounds = (
            Bound(label="arm stops above", value=limits.state_age_ns * 1e-6),
            Bound(label="seat is silent above", value=limits.seat_silent_ns * 1e-6),
        )
    return Plot(
        title="Latency",
        unit="ms",
        lines=tuple(lines),
        bounds=bounds,
        note=f"age of what a tick acts on, the largest in each {PEAK_S:.1g} s",
        from_zero=True,
    )


def _lateness(run: Run) -> Plot:
    """Count late and skipped ticks from one record of the driver to the next."""
    t_s, counts = run.pace[1:, 0], np.diff(run.pace[:, 2:], axis=0)
    lines = [
        Line(label=label, colour=colour, t_s=t_s, y=counts[:, i])
        for i, (label, colour) in enumerate(zip(("late", "skipped"), COLOURS, strict=False))
    ]
    lockstep = run.head.get("driver") == "lockstep"
    note = "" if len(t_s) else "not measured"
    return Plot(
        title="Lateness",
        unit="ticks a second",
        lines=tuple(lines),
        note="not measured: in lockstep nothing waits for a clock" if lockstep else note,
        from_zero=True,
    )


# ------------------------------------------------------------------------------------ one arm


def _joints(run: Run, track: ArmTrack, arm: CellArm | None) -> Plot:
    names = _joint_names(track, arm)
    sent = _each(run, names, track.command_rad, wide=True)
    return Plot(
        title="Joints",
        unit="rad",
        lines=(*sent, *_each(run, names, track.q_rad)),
        note="thin: measured; wide and pale: commanded",
    )


def _joint_speeds(
    run: Run, track: ArmTrack, arm: CellArm | None, limits: LimitProfile | None
) -> Plot:
    bounds: list[Bound] = []
    if arm is not None and limits is not None:
        for value in sorted({float(v) for v in joint_speed(limits, arm.model.limits)}):
            bounds += [Bound(label="limit", value=value), Bound(label="limit", value=-value)]
    return Plot(
        title="Joint speeds",
        unit="rad/s",
        lines=_each(run, _joint_names(track, arm), track.dq_rad_s),
        bounds=tuple(bounds),
    )


def _tracking(run: Run, track: ArmTrack, arm: CellArm | None, limits: LimitProfile | None) -> Plot:
    """Joint by joint, how far an arm is from its command of the tick before."""
    off = np.full(track.q_rad.shape, np.nan)
    if track.command_rad.shape == track.q_rad.shape:
        off[1:] = track.q_rad[1:] - track.command_rad[:-1]
    bounds: tuple[Bound, ...] = ()
    if limits is not None:
        most = 1e3 * limits.tracking_rad
        bounds = (Bound(label="stop above", value=most), Bound(label="stop below", value=-most))
    return Plot(
        title="Tracking error",
        unit="mrad",
        lines=_each(run, _joint_names(track, arm), 1e3 * off),
        bounds=bounds,
        note="measured less what was commanded the tick before",
    )


def _tool_speed(
    run: Run, track: ArmTrack, arm: CellArm, limits: LimitProfile | None, dt_s: float
) -> Plot:
    lines = [
        _line(run, "commanded", commanded_m_s(arm, track, dt_s), PALE, wide=True),
        _line(run, "measured", measured_m_s(arm, track), COLOURS[0]),
    ]
    if limits is not None:
        share = np.array([limits.speed_share(float(c)) for c in track.clearance_m])
        allowed = np.where(np.isnan(track.clearance_m), np.nan, limits.tool_speed_m_s * share)
        limit = Line(
            label="limit by clearance", colour="#a02c2c", t_s=run.t_s, y=allowed, style="limit"
        )
        lines.append(limit)
    return Plot(
        title="Tool speed",
        unit="m/s",
        lines=tuple(lines),
        note="thin: measured; wide and pale: commanded",
        from_zero=True,
    )


def commanded_m_s(arm: CellArm, track: ArmTrack, dt_s: float) -> Array:
    """Speed (ticks,) of the tool by the commands of this tick and the one before."""
    speed = np.full(len(track.command_rad), np.nan)
    if track.command_rad.shape[1] != arm.model.dof:
        return speed
    sent = np.all(np.isfinite(track.command_rad), axis=1)
    place = np.full((len(sent), 3), np.nan)
    for k in np.flatnonzero(sent):
        place[k] = tool_pose(arm.model, track.command_rad[k])[:3, 3]
    speed[1:] = np.linalg.norm(np.diff(place, axis=0), axis=1) / dt_s
    return speed


def measured_m_s(arm: CellArm, track: ArmTrack) -> Array:
    """Speed (ticks,) of the tool by measured joints and joint speeds."""
    n = arm.model.dof
    speed = np.full(len(track.q_rad), np.nan)
    if track.q_rad.shape[1] != n or track.dq_rad_s.shape[1] != n:
        return speed
    J, T_links, T_base_tool = np.empty((6, n)), np.empty((n + 1, 4, 4)), np.empty((4, 4))
    for k in np.flatnonzero(np.all(np.isfinite(track.q_rad + track.dq_rad_s), axis=1)):
        tool_jacobian(arm.model.arrays, np.array(track.q_rad[k]), J, T_links, T_base_tool)
        speed[k] = np.linalg.norm(J[:3] @ track.dq_rad_s[k])
    return speed


def _force(run: Run, track: ArmTrack, limits: LimitProfile | None) -> Plot:
    bounds: tuple[Bound, ...] = ()
    if limits is not None:
        bounds = (Bound(label="stop above", value=limits.force_n),)
    return Plot(
        title="Wrist force",
        unit="N",
        lines=(_line(run, "tared, all directions", track.force_n, COLOURS[0]),),
        bounds=bounds,
        from_zero=True,
    )


def _fingers(run: Run, track: ArmTrack) -> Plot:
    return Plot(
        title="Opening of the gripper",
        unit="mm",
        lines=(
            _line(run, "commanded", 1e3 * track.grip_m, PALE, wide=True),
            _line(run, "measured", 1e3 * track.opening_m, COLOURS[0]),
        ),
        note="thin: measured; wide and pale: commanded",
        from_zero=True,
    )


def _joint_names(track: ArmTrack, arm: CellArm | None) -> Sequence[str]:
    n = max(track.q_rad.shape[1], track.command_rad.shape[1])
    if arm is not None and arm.model.dof == n:
        return arm.model.chain.joint_names
    return [f"joint {i + 1}" for i in range(n)]


def _each(run: Run, names: Sequence[str], rows: Array, wide: bool = False) -> tuple[Line, ...]:
    return tuple(
        _line(run, name, column, colour, wide=wide)
        for name, column, colour in zip(names, rows.T, cycle(COLOURS), strict=False)
    )


def _line(run: Run, label: str, y: Array, colour: str, wide: bool = False) -> Line:
    return Line(label=label, colour=colour, t_s=run.t_s, y=y, style="wide" if wide else "line")


def _peaks(run: Run, label: str, y: Array, colour: str) -> Line:
    """Keep the largest value of each `PEAK_S`, where it stands; NaN where there is none."""
    window = np.floor(run.t_s / PEAK_S)
    starts = np.flatnonzero(np.diff(window, prepend=np.nan))
    kept = [
        a + (0 if np.all(np.isnan(y[a:b])) else int(np.nanargmax(y[a:b])))
        for a, b in pairwise([*starts.tolist(), len(y)])
    ]
    return Line(label=label, colour=colour, t_s=run.t_s[kept], y=y[kept])


def arm_of(cell: CellModel | None, name: str) -> CellArm | None:
    """Find the model of an arm of a log."""
    if cell is None:
        return None
    return next((arm for arm in cell.arms if arm.name == name), None)
