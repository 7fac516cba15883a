"""The rehearsal on a line of time: scrub, play, and see clearance and force along it."""

from __future__ import annotations

import math

import numpy as np
from imgui_bundle import imgui, implot

from brain.cell import CellArm
from brain.geometry import Array
from brain.types import Mode
from hardware.status import Preview, PreviewArm, Status
from vr import style
from vr.acts import KEYS, Act
from vr.camera_view import Rect
from vr.overlay import clearance_colour
from vr.panel import Moment, fitting
from vr.widgets import Ui

CLEARANCE_TOP_MM = 200.0
"""The plot ends here: farther is free."""
CLEARANCE_SHARE = 0.58
"""Of the width for both plots: two figures stand over this one."""
CLEARANCES = (
    (
        "Verdict",
        "the narrowest place of the whole rehearsal, as physics measured it: all arms, and the "
        "parts they hold, to everything they may not touch.",
    ),
    (
        "Brain",
        "at each moment, how far the arm, but for its shoulder, is at least from what is around "
        "it. The brain pads it with spheres, so this may be less than the verdict; the speed "
        "falls with it.",
    ),
    (
        "Arm",
        "in the panel: what the brain says of the arm now, its shoulder and own links included.",
    ),
)
"""What the figures of clearance are, and why they differ."""


class Timeline:
    """Where in a rehearsal the ghost is."""

    def __init__(self) -> None:
        self.preview: Preview | None = None
        self.t_s = 0.0
        self.playing = False

    @property
    def duration_s(self) -> float:
        """How long the rehearsal takes."""
        return 0.0 if self.preview is None else float(self.preview.t_ns[-1]) * 1e-9

    def update(self, preview: Preview | None, status: Status | None, dt_s: float) -> None:
        """Take over a new rehearsal and play it once; during a commit follow its progress."""
        wanted = None if status is None else status.digest
        if preview is None or preview.digest != wanted:
            preview = None
        if (preview is None) != (self.preview is None) or (
            preview is not None
            and self.preview is not None
            and preview.digest != self.preview.digest
        ):
            self.preview, self.t_s, self.playing = preview, 0.0, preview is not None
        if self.preview is None or status is None:
            return
        if status.mode is Mode.COMMIT and status.progress is not None:
            self.playing = False
            self.t_s = status.progress * self.duration_s
        elif self.playing:
            self.t_s += dt_s
            if self.t_s >= self.duration_s:
                self.t_s, self.playing = self.duration_s, False

    def toggle(self) -> None:
        """Play or pause; at the end play again from the start."""
        if self.preview is None:
            return
        if not self.playing and self.t_s >= self.duration_s:
            self.t_s = 0.0
        self.playing = not self.playing

    def row(self) -> int:
        """Return the preview's row that is shown now."""
        if self.preview is None:
            return 0
        t_ns = round(self.t_s * 1e9)
        return min(int(np.searchsorted(self.preview.t_ns, t_ns)), len(self.preview.t_ns) - 1)

    def poses(self) -> dict[str, tuple[Array, float | None]]:
        """Return joints and opening of each arm at the time that is shown."""
        if self.preview is None:
            return {}
        row = self.row()
        return {
            arm.name: (arm.q_rad[row], None if arm.opening_m is None else float(arm.opening_m[row]))
            for arm in self.preview.arms
        }


def draw_timeline(ui: Ui, rect: Rect, line: Timeline, now: Moment, arm: CellArm) -> None:
    """Draw verdict, slider and plots into a rectangle."""
    status = now.status
    with ui.area("timeline", rect):
        preview = line.preview
        if preview is None:
            ui.text("REHEARSAL", style.DIM, bold=True, size_px=style.SMALL_PX)
            busy = status is not None and status.mode is Mode.REHEARSING
            ui.text("Planning and rehearsing ..." if busy else "Nothing is rehearsed.", style.DIM)
            ui.text(how_to_rehearse(now.situation.onlooking), style.FAINT, wrap=True)
            return
        colour = VERDICT_COLOUR.get(str(preview.verdict.get("kind")), style.STOPPED)
        ui.chip(str(preview.verdict.get("kind", "?")).upper(), colour, style.SMALL_PX)
        imgui.same_line()
        with ui.face(True):
            words = fitting(verdict_words(preview), imgui.get_content_region_avail().x)
        ui.text(words, bold=True)
        _slider(ui, line, status)
        width = imgui.get_content_region_avail().x - imgui.get_style().item_spacing.x
        height = imgui.get_content_region_avail().y
        shown = next((a for a in preview.arms if a.name == arm.name), preview.arms[0])
        _clearance(ui, shown, line, (CLEARANCE_SHARE * width, height), colour)
        imgui.same_line()
        _force(ui, shown, line, ((1.0 - CLEARANCE_SHARE) * width, height))


VERDICT_COLOUR = {"safe": style.STILL, "near": style.MOVES}


def how_to_rehearse(onlooking: bool) -> str:
    """Say how a rehearsal comes to be, where there is none."""
    if onlooking:
        return "A script drives; what it rehearses is shown here."
    task, here, home = (KEYS[a] for a in (Act.REHEARSE_TASK, Act.REHEARSE_HERE, Act.REHEARSE_HOME))
    return (
        f"Rehearse a task ({task}), drag the gizmo and rehearse there ({here}), "
        f"or rehearse home ({home})."
    )


def verdict_words(preview: Preview) -> str:
    """Say the verdict behind its kind, and that the figure is of physics."""
    kind, _, words = str(preview.verdict.get("sentence", "")).partition(": ")
    return f"In physics: {words or kind}"


def clearance_words(brain_m: float | None, preview: Preview) -> tuple[str, str]:
    """Say the brain's clearance at one moment in m, and that of the verdict; they differ."""
    brain, least = "brain: unknown", _least_mm(preview)
    if brain_m is not None and math.isfinite(brain_m):
        brain = f"brain: at least {1000.0 * brain_m:.0f}"
    return brain, "" if least is None else f"verdict: {least:.0f}"


def _least_mm(preview: Preview) -> float | None:
    """Return the verdict's clearance, if it has one."""
    least_m = preview.verdict.get("clearance_m")
    return 1000.0 * least_m if isinstance(least_m, float | int) else None


def _slider(ui: Ui, line: Timeline, status: Status | None) -> None:
    committing = status is not None and status.mode is Mode.COMMIT
    icon = style.PAUSE if line.playing else style.PLAY
    why = "the arm is moving; the line follows it" if committing else ""
    if ui.button(icon, "", why, ui.px(46.0), style.ACCENT, name="play", height_px=34.0)[0]:
        line.toggle()
    imgui.same_line()
    imgui.align_text_to_frame_padding()
    ui.text(f"{line.t_s:.2f}", bold=True)
    imgui.same_line()
    ui.text(f"of {line.duration_s:.2f} s", style.DIM)
    imgui.same_line(ui.px(200.0))
    imgui.set_next_item_width(imgui.get_content_region_avail().x)
    imgui.begin_disabled(committing)
    changed, t_s = imgui.slider_float("##time", line.t_s, 0.0, line.duration_s, "")
    low, high = imgui.get_item_rect_min(), imgui.get_item_rect_max()
    ui.places["time"] = Rect(x=low.x, y=low.y, width=high.x - low.x, height=high.y - low.y)
    imgui.end_disabled()
    if changed:
        line.t_s, line.playing = min(max(t_s, 0.0), line.duration_s), False


def _clearance(
    ui: Ui, arm: PreviewArm, line: Timeline, size: tuple[float, float], verdict: style.Rgb
) -> None:
    """Draw the brain's clearance along the rehearsal, and the verdict's as a level line."""
    assert line.preview is not None
    values = None if arm.clearance_m is None else 1000.0 * arm.clearance_m
    now_m = None if arm.clearance_m is None else float(arm.clearance_m[line.row()])
    brain, least = clearance_words(now_m, line.preview)
    imgui.begin_group()
    left = imgui.get_cursor_pos_x()
    ui.text("Clearance mm", style.DIM, size_px=style.SMALL_PX)
    for words, colour in ((brain, clearance_colour(now_m)), (least, verdict)):
        imgui.same_line()
        with ui.face(True, style.SMALL_PX):
            fits = imgui.calc_text_size(words).x <= left + size[0] - imgui.get_cursor_pos_x()
        ui.text(
            words if fits else "",
            style.mix(colour, style.INK, 0.35),
            bold=True,
            size_px=style.SMALL_PX,
        )
    level = (_least_mm(line.preview), verdict)
    _plot(ui, "clearance", values, line, size, CLEARANCE_TOP_MM, level)
    imgui.end_group()
    if imgui.is_item_hovered():
        ui.tooltip("\n\n".join(f"{name}: {words}" for name, words in CLEARANCES[:2]))


def _force(ui: Ui, arm: PreviewArm, line: Timeline, size: tuple[float, float]) -> None:
    """Draw the force that physics predicts at the wrist."""
    values = arm.force_n
    now_n = math.nan if values is None else float(values[line.row()])
    now = "unknown" if math.isnan(now_n) else f"{now_n:.1f}"
    imgui.begin_group()
    ui.text("Wrist force N", style.DIM, size_px=style.SMALL_PX)
    imgui.same_line()
    ui.text(now, bold=True, size_px=style.SMALL_PX)
    _plot(ui, "force", values, line, size, None, (None, style.INK))
    imgui.end_group()


def _plot(
    ui: Ui,
    name: str,
    values: Array | None,
    line: Timeline,
    size: tuple[float, float],
    top: float | None,
    level: tuple[float | None, style.Rgb],
) -> None:
    """Draw one figure over time, a level line, and a line at the time that is shown."""
    assert line.preview is not None
    t_s = np.array(line.preview.t_ns, dtype=np.float64) * 1e-9
    room = (size[0], size[1] - imgui.get_text_line_height_with_spacing())
    flags = implot.Flags_.canvas_only | implot.Flags_.no_inputs
    with ui.face(False, style.SMALL_PX):
        known = values is not None and bool(np.any(np.isfinite(values)))
        if not known or not implot.begin_plot(f"##{name}", room, flags):
            imgui.dummy(room)
            return
        assert values is not None
        ceiling = top if top is not None else max(float(np.nanmax(values)) * 1.15, 5.0)
        implot.setup_axes("", "", implot.AxisFlags_.no_highlight, implot.AxisFlags_.no_highlight)
        implot.setup_axes_limits(0.0, max(float(t_s[-1]), 1e-3), 0.0, ceiling, implot.Cond_.always)
        implot.setup_finish()
        spec = implot.Spec()
        spec.line_color, spec.line_weight = imgui.ImVec4(*style.ACCENT, 1.0), ui.px(2.0)
        implot.plot_line("##v", t_s, np.minimum(values, ceiling), spec)
        if level[0] is not None:
            flat = implot.Spec()
            flat.line_color, flat.line_weight = imgui.ImVec4(*level[1], 0.9), ui.px(1.5)
            implot.plot_line("##level", np.array([0.0, t_s[-1]]), np.full(2, level[0]), flat)
        cursor = implot.Spec()
        cursor.line_color, cursor.line_weight = imgui.ImVec4(*style.INK, 0.9), ui.px(1.5)
        implot.plot_inf_lines("##now", np.array([line.t_s]), cursor)
        implot.end_plot()
