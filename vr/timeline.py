"""The rehearsal on a line of time: scrub, play, and see clearance and force along it."""

from __future__ import annotations

import math

import numpy as np
from imgui_bundle import imgui, implot

from brain.cell import CellArm
from brain.geometry import Array
from brain.types import Mode
from hardware.status import Preview, Status
from vr import style
from vr.camera_view import Rect
from vr.overlay import clearance_colour
from vr.widgets import Ui

CLEARANCE_TOP_MM = 200.0
"""The plot ends here: farther is free."""
NEAR_MM = 20.0
"""Below this a verdict says near (see `brain/rehearsal.py`)."""


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


def draw_timeline(ui: Ui, rect: Rect, line: Timeline, status: Status | None, arm: CellArm) -> None:
    """Draw verdict, slider and plots into a rectangle."""
    with ui.area("timeline", rect):
        preview = line.preview
        if preview is None:
            ui.text("REHEARSAL", style.DIM, bold=True, size_px=style.SMALL_PX)
            busy = status is not None and status.mode is Mode.REHEARSING
            ui.text("Planning and rehearsing ..." if busy else "Nothing is rehearsed.", style.DIM)
            ui.text(
                "Preview a task (P), drag the gizmo and preview there (V), or preview home (H).",
                style.FAINT,
            )
            return
        _verdict(ui, preview, status)
        _slider(ui, line, status)
        width = 0.5 * (imgui.get_content_region_avail().x - imgui.get_style().item_spacing.x)
        height = imgui.get_content_region_avail().y
        shown = next((a for a in preview.arms if a.name == arm.name), preview.arms[0])
        t_s = np.array(preview.t_ns, dtype=np.float64) * 1e-9
        clearance = None if shown.clearance_m is None else np.array(1000.0 * shown.clearance_m)
        _plot(ui, "Clearance  mm", t_s, clearance, line, (width, height), CLEARANCE_TOP_MM)
        imgui.same_line()
        force_n = shown.force_n if arm.has_wrench else None
        _plot(ui, "Force  N", t_s, force_n, line, (width, height), None)


def _verdict(ui: Ui, preview: Preview, status: Status | None) -> None:
    kind = str(preview.verdict.get("kind", ""))
    sentence = (status.verdict if status is not None else None) or str(
        preview.verdict.get("sentence", "")
    )
    colour = {"safe": style.STILL, "near": style.MOVES}.get(kind, style.STOPPED)
    ui.chip(kind.upper() or "?", colour, style.SMALL_PX)
    imgui.same_line()
    _, _, words = sentence.partition(": ")
    ui.text((words or sentence)[:1].upper() + (words or sentence)[1:], bold=True)


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


def _plot(
    ui: Ui,
    title: str,
    t_s: Array,
    values: Array | None,
    line: Timeline,
    size: tuple[float, float],
    top: float | None,
) -> None:
    """Draw one figure over time, a line at the time that is shown, and its value there."""
    known = values is not None and bool(np.any(np.isfinite(values)))
    row = line.row()
    value = math.nan if values is None else float(values[row])
    now = "unknown" if math.isnan(value) else f"{value:.0f}" if top else f"{value:.1f}"
    imgui.begin_group()
    ui.text(f"{title}", style.DIM, size_px=style.SMALL_PX)
    imgui.same_line()
    colour = clearance_colour(value / 1000.0) if top and not math.isnan(value) else style.INK
    ui.text(now, style.mix(colour, style.INK, 0.35), bold=True, size_px=style.SMALL_PX)
    left = (size[0], size[1] - imgui.get_text_line_height_with_spacing())
    flags = implot.Flags_.canvas_only | implot.Flags_.no_inputs
    with ui.face(False, style.SMALL_PX):
        if not known or not implot.begin_plot(f"##{title}", left, flags):
            imgui.dummy(left)
            imgui.end_group()
            return
        assert values is not None
        ceiling = top if top is not None else max(float(np.nanmax(values)) * 1.15, 5.0)
        implot.setup_axes("", "", implot.AxisFlags_.no_highlight, implot.AxisFlags_.no_highlight)
        implot.setup_axes_limits(0.0, max(float(t_s[-1]), 1e-3), 0.0, ceiling, implot.Cond_.always)
        implot.setup_finish()
        spec = implot.Spec()
        spec.line_color, spec.line_weight = imgui.ImVec4(*style.ACCENT, 1.0), ui.px(2.0)
        implot.plot_line("##v", np.array(t_s), np.minimum(values, ceiling), spec)
        if top is not None:
            near = implot.Spec()
            near.line_color, near.line_weight = imgui.ImVec4(*style.MOVES, 0.8), ui.px(1.5)
            ends = np.array([0.0, float(t_s[-1])])
            implot.plot_line("##near", ends, np.full(2, NEAR_MM), near)
        cursor = implot.Spec()
        cursor.line_color, cursor.line_weight = imgui.ImVec4(*style.INK, 0.9), ui.px(1.5)
        implot.plot_inf_lines("##now", np.array([line.t_s]), cursor)
        implot.end_plot()
    imgui.end_group()
