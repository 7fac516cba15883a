"""What colours mean, over the picture, and the page of help with all keys."""

from __future__ import annotations

from imgui_bundle import imgui

from vr import style
from vr.acts import KEYS, MEANING, Act
from vr.camera_view import Rect
from vr.overlay import ENVELOPE_M, SCALE, TUBE, clearance_colour, line_radius_m
from vr.style import MODE_COLOUR, u32
from vr.widgets import Ui

LEGEND_PX = (300.0, 132.0)
OTHERS = (
    ("L", "gizmo along the tool's axes or the world's"),
    ("TAB", "the other arm"),
    ("1  2  3  4", "overview, side, from above, at the tool"),
    ("Left drag", "turn the view; right: shift it; wheel: nearer or farther"),
    ("Double click", "look at that point"),
    ("Gizmo drag", "in HOLD: where to preview; with SPACE held: drives the arm"),
)
HELD = {
    Act.CLUTCH: "to arm, to drive, to commit; let go and the arm holds",
    Act.GRIPPER: "open or close while driving",
    Act.COMMIT: "then hold ENTER or the button 0.7 s, with SPACE",
    Act.CANCEL: "the rehearsal, or the gizmo back to the tool",
    Act.STOP: "at any time, also when only looking on",
}


def draw_legend(ui: Ui, view: Rect, has_preview: bool) -> None:
    """Draw the scale of clearance and what is solid and what is not, in the picture's corner."""
    width, height = (ui.px(v) for v in LEGEND_PX)
    if not has_preview:
        height = ui.px(64.0)
    margin = ui.px(12.0)
    rect = Rect(
        x=view.x + margin, y=view.y + view.height - height - margin, width=width, height=height
    )
    imgui.push_style_var(imgui.StyleVar_.window_rounding, ui.px(8.0))
    with ui.area("legend", rect, alpha=0.82):
        _swatch(ui, style.INK, 0.9, "solid: measured")
        imgui.same_line(ui.px(156.0))
        _swatch(ui, style.ACCENT, 0.6, "ghost: rehearsed")
        if has_preview:
            _swatch(ui, TUBE, 0.35, f"tube: {100.0 * ENVELOPE_M:.0f} cm round the way")
            ui.text("Way of the tool: clearance in mm", style.DIM, size_px=style.SMALL_PX)
            _scale(ui, width - ui.px(28.0))
        else:
            ui.text("Drag the gizmo to preview a pose", style.DIM, size_px=style.SMALL_PX)
    imgui.pop_style_var()


def draw_veil(ui: Ui, view: Rect) -> None:
    """Dim a picture that shows no present time, and say so."""
    draw = imgui.get_background_draw_list()
    low, high = (view.x, view.y), (view.x + view.width, view.y + view.height)
    draw.add_rect_filled(low, high, u32(style.PAGE, 0.6))
    words = "No word from the cell: this is not the present"
    with ui.face(True, style.HEAD_PX):
        size = imgui.calc_text_size(words)
        at = view.x + 0.5 * (view.width - size.x), view.y + 0.5 * (view.height - size.y)
        draw.add_text(at, u32(style.INK), words)


def _swatch(ui: Ui, colour: style.Rgb, alpha: float, words: str) -> None:
    x, y = imgui.get_cursor_screen_pos()
    size = ui.px(13.0)
    draw = imgui.get_window_draw_list()
    draw.add_rect_filled(
        (x, y + ui.px(3.0)), (x + size, y + ui.px(3.0) + size), u32(colour, alpha), ui.px(3.0)
    )
    imgui.dummy((size, ui.px(17.0)))
    imgui.same_line()
    ui.text(words, size_px=style.SMALL_PX)


def _scale(ui: Ui, width: float) -> None:
    """Draw the colours of clearance with the line's thickness, evenly from stop to stop."""
    x, y = imgui.get_cursor_screen_pos()
    draw = imgui.get_window_draw_list()
    stops, parts = [m for m, _ in SCALE], 12
    span = width / (len(stops) - 1)
    middle = y + ui.px(8.0)
    for i, (a, b) in enumerate(zip(stops, stops[1:], strict=False)):
        for k in range(parts):
            at = a + (k + 0.5) / parts * (b - a)
            half = ui.px(900.0 * line_radius_m(at))
            left = x + span * (i + k / parts)
            draw.add_rect_filled(
                (left, middle - half),
                (left + span / parts + 0.5, middle + half),
                u32(clearance_colour(at)),
            )
    with ui.face(False, style.SMALL_PX):
        for i, at in enumerate(stops):
            words = f"{1000.0 * at:.0f}"
            size = imgui.calc_text_size(words).x
            left = min(max(x + span * i - 0.5 * size, x), x + width - size)
            draw.add_text((left, y + ui.px(16.0)), u32(style.INK), words)
    imgui.dummy((width, ui.px(34.0)))


def draw_help(ui: Ui, view: Rect) -> bool:
    """Draw the page of help; false when it was closed."""
    margin = ui.px(20.0)
    rect = Rect(
        x=view.x + margin,
        y=view.y + margin,
        width=view.width - 2.0 * margin,
        height=view.height - 2.0 * margin,
    )
    imgui.push_style_var(imgui.StyleVar_.window_rounding, ui.px(10.0))
    with ui.area("help", rect, alpha=0.97, scroll=True):
        ui.text("Keys, mouse and colours", bold=True, size_px=style.HEAD_PX)
        imgui.same_line(rect.width - ui.px(120.0))
        closed = ui.button("Close", "F1", "", ui.px(104.0), height_px=32.0)[0]
        left = imgui.get_content_region_avail().x * 0.56
        with ui.card("keys", "", left):
            for act in Act:
                _row(ui, KEYS[act], act if act not in HELD else f"{act}: {HELD[act]}")
            for key, meaning in OTHERS:
                _row(ui, key, meaning)
        imgui.same_line()
        with ui.card("modes", ""):
            for mode, meaning in MEANING.items():
                ui.chip(mode.upper(), MODE_COLOUR[mode], style.SMALL_PX)
                ui.text(meaning, style.DIM, size_px=style.SMALL_PX, wrap=True)
    imgui.pop_style_var()
    return not closed


def _row(ui: Ui, left: str, right: str) -> None:
    start = imgui.get_cursor_pos_x()
    ui.text(left, style.ACCENT, bold=True, size_px=style.SMALL_PX)
    imgui.same_line(start + ui.px(118.0))
    ui.text(right, size_px=style.SMALL_PX, wrap=True)
