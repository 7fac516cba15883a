"""Colours with a meaning, type and spacing of the window.

Cyan is what is rehearsed and not real: the ghost, the timeline, the mode PREVIEW; it is also the
accent of whatever can be pressed. Orange means that an arm may move under the person's hand. Blue:
holds still under power. Red: stopped. No meaning rests on red against green, or on colour alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import imgui_bundle
from imgui_bundle import imgui, implot

from brain.types import Mode

Rgb: TypeAlias = tuple[float, float, float]

INK: Rgb = (0.91, 0.93, 0.96)
DIM: Rgb = (0.62, 0.67, 0.73)
FAINT: Rgb = (0.42, 0.47, 0.53)
PAGE: Rgb = (0.071, 0.086, 0.110)
CARD: Rgb = (0.106, 0.129, 0.161)
FIELD: Rgb = (0.157, 0.188, 0.231)
EDGE: Rgb = (0.204, 0.243, 0.294)
ACCENT: Rgb = (0.22, 0.74, 0.90)
MOVES: Rgb = (0.98, 0.62, 0.18)
STILL: Rgb = (0.36, 0.58, 0.98)
BUSY: Rgb = (0.69, 0.53, 0.98)
STOPPED: Rgb = (0.93, 0.26, 0.27)
LIMP: Rgb = (0.45, 0.50, 0.57)

MODE_COLOUR: dict[Mode, Rgb] = {
    Mode.DISARMED: LIMP,
    Mode.HOLD: STILL,
    Mode.TELEOP: MOVES,
    Mode.REHEARSING: BUSY,
    Mode.PREVIEW: ACCENT,
    Mode.COMMIT: MOVES,
    Mode.STOPPED: STOPPED,
    Mode.FAULT: STOPPED,
}

BODY_PX, SMALL_PX, HEAD_PX, MODE_PX = 17.0, 16.0, 19.0, 26.0

# Font Awesome 6, Free Solid. Source: fontawesome.com/icons
PLAY, PAUSE, WARNING, EYE = "\uf04b", "\uf04c", "\uf071", "\uf06e"


def u32(colour: Rgb, alpha: float = 1.0) -> int:
    """Pack a colour as Dear ImGui's draw lists take it (ABGR)."""
    r, g, b, a = (round(255.0 * min(max(v, 0.0), 1.0)) for v in (*colour, alpha))
    return a << 24 | b << 16 | g << 8 | r


def mix(a: Rgb, b: Rgb, share: float) -> Rgb:
    """Blend two colours: `share` 0 gives a, 1 gives b."""
    x, y, z = (p + share * (q - p) for p, q in zip(a, b, strict=True))
    return x, y, z


@dataclass(frozen=True, slots=True, kw_only=True)
class Fonts:
    """Faces of the window; sizes are given where they are used."""

    regular: Any
    bold: Any


def load_fonts() -> Fonts:
    """Load Roboto, with icons in it, from where imgui-bundle keeps it."""
    folder = Path(imgui_bundle.__file__).parent / "assets" / "fonts"
    atlas = imgui.get_io().fonts
    faces = []
    for name in ("Roboto-Regular.ttf", "Roboto-Bold.ttf"):
        faces.append(atlas.add_font_from_file_ttf(str(folder / "Roboto" / name), BODY_PX))
        icons = imgui.ImFontConfig()
        icons.merge_mode = True
        icons.glyph_min_advance_x = BODY_PX
        path = folder / "Font_Awesome_6_Free-Solid-900.otf"
        atlas.add_font_from_file_ttf(str(path), BODY_PX, icons)
    return Fonts(regular=faces[0], bold=faces[1])


def apply_theme(scale: float) -> None:
    """Set Dear ImGui's and ImPlot's styles for a scale of the display."""
    style = imgui.get_style()
    style.font_scale_dpi = scale
    style.window_padding = imgui.ImVec2(14.0 * scale, 12.0 * scale)
    style.frame_padding = imgui.ImVec2(10.0 * scale, 7.0 * scale)
    style.item_spacing = imgui.ImVec2(8.0 * scale, 7.0 * scale)
    style.item_inner_spacing = imgui.ImVec2(8.0 * scale, 6.0 * scale)
    style.grab_min_size = 16.0 * scale
    style.scrollbar_size = 10.0 * scale
    style.window_rounding = 0.0
    for name in ("child_rounding", "frame_rounding", "popup_rounding", "grab_rounding"):
        setattr(style, name, 6.0 * scale)
    style.window_border_size = style.frame_border_size = 0.0
    style.popup_border_size = 1.0
    col = imgui.Col_
    for index, colour, alpha in (
        (col.text, INK, 1.0),
        (col.text_disabled, FAINT, 1.0),
        (col.window_bg, PAGE, 1.0),
        (col.child_bg, CARD, 1.0),
        (col.popup_bg, CARD, 0.98),
        (col.border, EDGE, 1.0),
        (col.frame_bg, FIELD, 1.0),
        (col.frame_bg_hovered, EDGE, 1.0),
        (col.frame_bg_active, EDGE, 1.0),
        (col.slider_grab, ACCENT, 1.0),
        (col.slider_grab_active, INK, 1.0),
        (col.button, FIELD, 1.0),
        (col.button_hovered, EDGE, 1.0),
        (col.button_active, ACCENT, 0.6),
        (col.header, FIELD, 1.0),
        (col.header_hovered, EDGE, 1.0),
        (col.header_active, ACCENT, 0.6),
        (col.scrollbar_bg, PAGE, 0.0),
        (col.scrollbar_grab, EDGE, 1.0),
        (col.scrollbar_grab_hovered, LIMP, 1.0),
        (col.scrollbar_grab_active, ACCENT, 1.0),
        (col.separator, EDGE, 1.0),
    ):
        style.set_color_(index, (*colour, alpha))
    plot = implot.get_style()
    plot.plot_padding = imgui.ImVec2(8.0 * scale, 4.0 * scale)
    plot.label_padding = imgui.ImVec2(4.0 * scale, 3.0 * scale)
    plot.plot_border_size = 0.0
    for item, colour, alpha in (
        (implot.Col_.frame_bg, CARD, 0.0),
        (implot.Col_.plot_bg, FIELD, 0.45),
        (implot.Col_.axis_grid, EDGE, 0.9),
        (implot.Col_.axis_text, DIM, 1.0),
    ):
        plot.set_color_(item, (*colour, alpha))
