"""What colours mean, over the picture, and the page of help with all keys."""

from __future__ import annotations

from imgui_bundle import imgui

from brain.types import NS_PER_S, Mode
from hardware.seat_link import Connection
from vr import style
from vr.acts import ENTER, HOLD_NS, KEYS, Act, Situation, meaning
from vr.camera_view import Rect
from vr.cell_view import GIZMO_MODES
from vr.overlay import ENVELOPE_M, SCALE, TUBE, clearance_colour, line_radius_m
from vr.style import MODE_COLOUR, u32
from vr.timeline import CLEARANCES
from vr.widgets import Ui

LEGEND_PX = (312.0, 132.0)
USE = {
    Act.CLUTCH: "press to arm, hold to drive or to commit; let go and the arm holds",
    Act.GRIPPER: "open or close it while driving",
    Act.REHEARSE_TASK: "the one chosen above the button",
    Act.REHEARSE_HERE: "to where the gizmo was dragged",
    Act.REHEARSE_HOME: "to the arm's home pose",
    Act.COMMIT: "what the preview shows; then hold ENTER",
    Act.CANCEL: "rehearsal or commit; gizmo back to tool",
    Act.ACKNOWLEDGE: "a stop or a fault that you have read",
    Act.DISARM: "brake the arms",
    Act.STOP: "brake at once, whoever drives",
}
KEY_TABLE: tuple[tuple[str, str], ...] = (
    *((KEYS[act], f"{act}: {USE[act]}") for act in Act),
    (ENTER, f"Held {HOLD_NS / NS_PER_S:.1f} s after {KEYS[Act.COMMIT]}, dead-man held: commits"),
    ("L", "Gizmo along the tool's axes, or the world's"),
    ("M", "How an arm follows the hand: normally, gently (farther from things), quickly"),
    ("TAB", "The other arm"),
    ("1 2 3 4", "View: overview, from the side, from above, at the tool"),
    ("F1", "This page"),
)
MOUSE_TABLE: tuple[tuple[str, str], ...] = (
    ("Left drag", "Turn the view"),
    ("Right drag", "Shift the view"),
    ("Wheel", "Nearer or farther"),
    ("Double click", "Look at that point"),
    ("Gizmo drag", "HOLD: where to rehearse to; TELEOP: drives the arm"),
)


def draw_legend(ui: Ui, view: Rect, has_way: bool, now: Situation) -> None:
    """Draw what is solid and what is not, and the scale of clearance, in the picture's corner."""
    with_gizmo = now.mode in GIZMO_MODES and not now.onlooking
    hint = hint_words(now)
    width, height = (ui.px(v) for v in LEGEND_PX)
    if not has_way:
        height = ui.px(64.0 if hint else 40.0)
    margin = ui.px(12.0)
    rect = Rect(
        x=view.x + margin, y=view.y + view.height - height - margin, width=width, height=height
    )
    imgui.push_style_var(imgui.StyleVar_.window_rounding, ui.px(8.0))
    with ui.area("legend", rect, alpha=0.82):
        _swatch(ui, style.INK, 0.9, "solid: measured")
        imgui.same_line(ui.px(156.0))
        _swatch(ui, style.ACCENT, 0.6, "ghost: at the gizmo" if with_gizmo else "ghost: rehearsed")
        if has_way:
            _swatch(ui, TUBE, 0.35, f"tube: {100.0 * ENVELOPE_M:.0f} cm round the way")
            ui.text("Tool's way: the brain's clearance, mm", style.DIM, size_px=style.SMALL_PX)
            _scale(ui, width - ui.px(28.0))
        elif hint:
            ui.text(hint, style.DIM, size_px=style.SMALL_PX)
    imgui.pop_style_var()


def hint_words(now: Situation) -> str:
    """Say what the gizmo is for where the person may drag it; empty where not."""
    if now.onlooking or now.connection is not Connection.CONNECTED:
        return ""
    if now.mode is Mode.HOLD:
        return f"Drag the gizmo, then rehearse there ({KEYS[Act.REHEARSE_HERE]})"
    return "Drag the gizmo: the arm follows" if now.mode is Mode.TELEOP else ""


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


def draw_help(ui: Ui, view: Rect, now: Situation) -> bool:
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
        ui.text("Keys, mouse, modes and figures", bold=True, size_px=style.HEAD_PX)
        imgui.same_line(rect.width - ui.px(120.0))
        closed = ui.button("Close", "F1", "", ui.px(104.0), height_px=32.0)[0]
        if now.onlooking:
            words = f"A script drives now: until it has ended, only {KEYS[Act.STOP]} and the views"
            ui.text(f"{style.EYE}  {words} do something.", style.ACCENT)
        left = imgui.get_content_region_avail().x * 0.5
        with ui.card("keys", "", left):
            for key, use in (*KEY_TABLE, *MOUSE_TABLE):
                _row(ui, key, use)
        imgui.same_line()
        with ui.card("modes", ""):
            for mode in Mode:
                start = imgui.get_cursor_pos_x()
                ui.chip(mode.upper(), MODE_COLOUR[mode], style.SMALL_PX)
                imgui.same_line(start + ui.px(122.0))
                words = meaning(mode, onlooking=False)
                ui.text(words, style.DIM, size_px=style.SMALL_PX, wrap=True)
            ui.text("CLEARANCE", style.INK, bold=True, size_px=style.SMALL_PX)
            for name, words in CLEARANCES:
                ui.text(f"{name}: {words}", style.DIM, size_px=style.SMALL_PX, wrap=True)
    imgui.pop_style_var()
    return not closed


def _row(ui: Ui, left: str, right: str) -> None:
    start = imgui.get_cursor_pos_x()
    ui.text(left, style.ACCENT, bold=True, size_px=style.SMALL_PX)
    imgui.same_line(start + ui.px(118.0))
    ui.text(right, size_px=style.SMALL_PX, wrap=True)
