"""What the panel reads out: the gate where it objects, every arm, the link and the loop."""

from __future__ import annotations

import math

import numpy as np
from imgui_bundle import imgui

from brain.cell import CellArm, CellModel
from brain.geometry import Array, invert
from brain.mode import LIMP
from brain.types import Action
from hardware.seat_link import Connection
from hardware.status import ArmStatus, Status
from vr import style
from vr.overlay import clearance_colour
from vr.panel import Moment
from vr.widgets import Ui

UNKNOWN = "unknown"


def draw_readings(ui: Ui, cell: CellModel, now: Moment) -> None:
    """Draw the cards below the buttons."""
    status = now.status
    if status is not None:
        draw_gate(ui, status)
        for arm in sorted(status.arms, key=lambda arm: arm.name != now.arm):  # the chosen one first
            known = [a for a in cell.arms if a.name == arm.name]
            if known:
                draw_arm(ui, known[0], arm)
    draw_link(ui, now)


def draw_gate(ui: Ui, status: Status) -> None:
    """Draw the gate's answers that are not ALLOW."""
    if status.mode in LIMP:  # the gate stops braked arms by definition
        return
    answers = [a for a in status.answers if a.action is not Action.ALLOW]
    if not answers:
        return
    with ui.card("gate", "THE GATE OBJECTS"):
        for answer in answers:
            hard = answer.action is Action.STOP
            colour = style.STOPPED if hard else style.MOVES
            ui.text(f"{style.WARNING}  {answer.sentence()}", colour, wrap=True)


# ---------------------------------------------------------------- one arm


def draw_arm(ui: Ui, arm: CellArm, now: ArmStatus) -> None:
    """Draw joints, pose, clearance, force and gripper of an arm."""
    title = f"ARM  {now.name}" + ("   (braked)" if now.stopped else "")
    with ui.card(f"arm {now.name}", title):
        draw_joints(ui, arm, now.q_rad)
        imgui.dummy((0.0, ui.px(1.0)))
        position, angles = pose_words(arm, now.T_world_tool)
        ui.fact("x y z  mm", position)
        ui.fact("r p y  deg", angles)
        draw_clearance(ui, now)
        ui.fact("Force", amount(now.force_n, 1.0, "N", 1))
        if arm.model.gripper is not None:
            holding = {True: "holding", False: "empty", None: ""}[now.holding]
            ui.fact("Gripper", f"{amount(now.opening_m, 1e3, 'mm', 1)}  {holding}".rstrip())


def draw_joints(ui: Ui, arm: CellArm, q_rad: Array | None) -> None:
    """Draw each joint's angle in degrees and where it is between its limits."""
    limits = arm.model.limits
    value_width = ui.px(64.0)
    name_width = ui.px(112.0)
    for i, name in enumerate(arm.model.chain.joint_names):
        value = None if q_rad is None else math.degrees(q_rad[i])
        left = imgui.get_cursor_pos_x()
        room = imgui.get_content_region_avail().x
        ui.text(name.replace("_joint", "").replace("_", " "), style.DIM, size_px=style.SMALL_PX)
        imgui.same_line(left + name_width)
        low, high = math.degrees(limits.q_min_rad[i]), math.degrees(limits.q_max_rad[i])
        ui.limit_bar(low, high, value, room - name_width - value_width)
        words = UNKNOWN if value is None else f"{value:.1f}"
        imgui.same_line(left + room - imgui.calc_text_size(words).x)
        ui.text(words)


def pose_words(arm: CellArm, T_world_tool: Array | None) -> tuple[str, str]:
    """Say the tool's place in mm and its roll, pitch, yaw in degrees, both in the arm's base."""
    if T_world_tool is None:
        return UNKNOWN, UNKNOWN
    T = invert(np.array(arm.T_world_base)) @ T_world_tool
    x, y, z = 1000.0 * T[:3, 3]
    roll, pitch, yaw = (math.degrees(a) for a in rpy_of(T[:3, :3]))
    return f"{x:.1f}   {y:.1f}   {z:.1f}", f"{roll:.1f}   {pitch:.1f}   {yaw:.1f}"


def rpy_of(rotation: Array) -> tuple[float, float, float]:
    """Return roll, pitch, yaw in rad about fixed x, y, z; yaw is 0 where pitch is straight up.

    The inverse of `geometry.rpy_to_matrix`.
    """
    pitch = math.asin(min(max(-rotation[2, 0], -1.0), 1.0))
    if math.hypot(rotation[0, 0], rotation[1, 0]) < 1e-9:
        return math.atan2(-rotation[1, 2], rotation[1, 1]), pitch, 0.0
    roll = math.atan2(rotation[2, 1], rotation[2, 2])
    return roll, pitch, math.atan2(rotation[1, 0], rotation[0, 0])


def draw_clearance(ui: Ui, now: ArmStatus) -> None:
    """Draw how near the arm is to what, on a plate in the colour of that clearance."""
    if now.clearance_m is None:
        ui.fact("Clearance", UNKNOWN)
        return
    against = "" if now.clearance_against is None else f"   {against_words(now.clearance_against)}"
    ui.fact("Clearance", f"{1000.0 * now.clearance_m:.0f} mm{against}")
    right = imgui.get_item_rect_max().x
    x, y = right - imgui.get_item_rect_size().x - ui.px(22.0), imgui.get_item_rect_min().y
    imgui.get_window_draw_list().add_rect_filled(
        (x, y + ui.px(3.0)),
        (x + ui.px(14.0), y + ui.px(17.0)),
        style.u32(clearance_colour(now.clearance_m)),
        ui.px(3.0),
    )


def against_words(against: str) -> str:
    """Say what an arm is near, as `brain.distance.Clearance` names it: perhaps its own sphere."""
    own = against.removeprefix("self:")
    return against if own == against else f"own {own}"


def amount(value: float | None, factor: float, unit: str, digits: int) -> str:
    """Say a figure in its unit, or that it is unknown."""
    if value is None or math.isnan(value):
        return UNKNOWN
    return f"{factor * value:.{digits}f} {unit}"


# ---------------------------------------------------------------- link and loop


def draw_link(ui: Ui, now: Moment) -> None:
    """Draw how well seat and cell hear each other, and how well the loop keeps its time."""
    colour = {
        Connection.CONNECTED: style.STILL,
        Connection.CONNECTING: style.LIMP,
        Connection.LOST: style.STOPPED,
    }[now.situation.connection]
    with ui.card("link", ""):
        status = now.status
        link = None if status is None else status.link
        rows: list[tuple[str, str, style.Rgb]] = [
            ("Link", str(now.situation.connection), colour),
            ("Round trip", amount(now.round_trip_ms, 1.0, "ms", 1), style.INK),
        ]
        if status is not None and link is not None:
            sent = link.received + link.lost
            share = 100.0 * link.lost / sent if sent else 0.0
            rows += [
                ("Latency", amount(link.latency_ms, 1.0, "ms", 1), style.INK),
                ("Lost", f"{share:.2f} %", _alarm(link.lost)),
                ("Loop late", str(status.late), style.INK),
                ("Skipped", str(status.skipped), _alarm(status.skipped)),
                ("Lateness", f"{status.lateness_ms:.2f} ms", style.INK),
                ("Refused", str(link.refused + link.expired), _alarm(link.refused)),
            ]
        rows.append(("Samples", rate(now.samples_hz), style.INK))
        rows.append(("Frames", rate(now.frames_hz), style.INK))
        draw_pairs(ui, rows)


def draw_pairs(ui: Ui, rows: list[tuple[str, str, style.Rgb]]) -> None:
    """Draw facts two in a line."""
    left, room = imgui.get_cursor_pos_x(), imgui.get_content_region_avail().x
    half = 0.5 * (room - ui.px(20.0))
    for i, (name, value, colour) in enumerate(rows):
        start = left + (half + ui.px(20.0)) * (i % 2)
        if i % 2:
            imgui.same_line(start)
        ui.text(name, style.DIM)
        imgui.same_line(start + half - imgui.calc_text_size(value).x)
        ui.text(value, colour)


def rate(hz: float | None) -> str:
    """Say how often something happens."""
    return UNKNOWN if hz is None else f"{hz:.0f} /s"


def _alarm(count: int) -> style.Rgb:
    return style.MOVES if count else style.INK
