"""The pieces that the window is made of: cards, chips, act buttons, bars, rings.

Sizes are given in pixels of a 1:1 display and scaled here. `places` remembers where each button was
drawn, so that hints can point at it and a test can press it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager

from imgui_bundle import imgui

from vr import style
from vr.camera_view import Rect
from vr.style import Fonts, Rgb, u32

RESIZE_NONE = (
    imgui.WindowFlags_.no_decoration
    | imgui.WindowFlags_.no_move
    | imgui.WindowFlags_.no_saved_settings
    | imgui.WindowFlags_.no_bring_to_front_on_focus
    | imgui.WindowFlags_.no_nav
)
BUTTON_PX = 34.0


class Ui:
    """Draws with one set of fonts at one scale."""

    def __init__(self, fonts: Fonts, scale: float) -> None:
        self.fonts = fonts
        self.scale = scale
        self.places: dict[str, Rect] = {}

    def px(self, size: float) -> float:
        """Scale a size."""
        return size * self.scale

    # ------------------------------------------------------------- areas

    @contextmanager
    def area(
        self, name: str, rect: Rect, alpha: float = 1.0, scroll: bool = False
    ) -> Iterator[None]:
        """Draw inside a fixed rectangle of the window."""
        imgui.set_next_window_pos((rect.x, rect.y))
        imgui.set_next_window_size((rect.width, rect.height))
        imgui.push_style_color(imgui.Col_.window_bg, (*style.PAGE, alpha))
        flags = RESIZE_NONE
        if scroll:
            flags = flags & ~imgui.WindowFlags_.no_scrollbar
        imgui.begin(name, None, flags)
        yield
        imgui.end()
        imgui.pop_style_color()

    @contextmanager
    def card(self, name: str, title: str, width: float = 0.0) -> Iterator[None]:
        """Draw inside a card that is as high as what is in it."""
        flags = imgui.ChildFlags_.auto_resize_y | imgui.ChildFlags_.always_use_window_padding
        imgui.begin_child(name, (width, 0.0), flags)
        if title:
            self.text(title, style.DIM, bold=True, size_px=style.SMALL_PX)
        yield
        imgui.end_child()

    # ------------------------------------------------------------- words

    @contextmanager
    def face(self, bold: bool = False, size_px: float = style.BODY_PX) -> Iterator[None]:
        """Write in a face and size."""
        imgui.push_font(self.fonts.bold if bold else self.fonts.regular, size_px)
        yield
        imgui.pop_font()

    def text(
        self,
        words: str,
        colour: Rgb = style.INK,
        bold: bool = False,
        size_px: float = style.BODY_PX,
        wrap: bool = False,
    ) -> None:
        """Write words; `wrap` breaks lines at the area's edge."""
        with self.face(bold, size_px):
            imgui.push_style_color(imgui.Col_.text, (*colour, 1.0))
            if wrap:
                imgui.push_text_wrap_pos(0.0)
            imgui.text_unformatted(words)
            if wrap:
                imgui.pop_text_wrap_pos()
            imgui.pop_style_color()

    def fact(self, name: str, value: str, colour: Rgb = style.INK) -> None:
        """Write a name on the left and a value at the right edge of one line."""
        right = imgui.get_cursor_pos_x() + imgui.get_content_region_avail().x
        self.text(name, style.DIM)
        width = imgui.calc_text_size(value).x
        imgui.same_line(max(right - width, 0.0))
        self.text(value, colour)

    def chip(self, words: str, colour: Rgb, size_px: float, ink: Rgb = style.PAGE) -> None:
        """Write words on a coloured plate."""
        with self.face(True, size_px):
            size = imgui.calc_text_size(words)
            pad_x, pad_y = self.px(0.55 * size_px), self.px(0.28 * size_px)
            x, y = imgui.get_cursor_screen_pos()
            width, height = size.x + 2.0 * pad_x, size.y + 2.0 * pad_y
            draw = imgui.get_window_draw_list()
            draw.add_rect_filled((x, y), (x + width, y + height), u32(colour), self.px(7.0))
            draw.add_text((x + pad_x, y + pad_y), u32(ink), words)
            imgui.dummy((width, height))

    # ------------------------------------------------------------- buttons

    def button(
        self,
        title: str,
        key: str,
        why_not: str,
        width: float,
        colour: Rgb | None = None,
        on: bool = False,
        share: float = 0.0,
        name: str | None = None,
        height_px: float = BUTTON_PX,
        size_px: float = style.BODY_PX,
    ) -> tuple[bool, bool]:
        """Draw a button with its key; return (pressed and let go, held down).

        Greyed with a tooltip when `why_not` is not empty. `on` fills it, `share` draws a ring that
        is so far closed.
        """
        height = self.px(height_px)
        x, y = imgui.get_cursor_screen_pos()
        name = title if name is None else name
        clicked = imgui.invisible_button(f"##{name}", (width, height))
        hovered, held = imgui.is_item_hovered(), imgui.is_item_active()
        self.places[name] = Rect(x=x, y=y, width=width, height=height)
        possible = not why_not
        fill, ink, edge = self._button_colours(colour, possible, hovered, held, on)
        draw = imgui.get_window_draw_list()
        rounding = self.px(7.0)
        draw.add_rect_filled((x, y), (x + width, y + height), u32(fill), rounding)
        draw.add_rect((x, y), (x + width, y + height), u32(edge), rounding, 1.0)
        left = x + self.px(12.0)
        if share > 0.0:
            self._ring(x + self.px(21.0), y + 0.5 * height, share, ink)
            left += self.px(26.0)
        with self.face(True, size_px):
            size = imgui.calc_text_size(title)
            if not key:
                left = x + 0.5 * (width - size.x)
            draw.add_text((left, y + 0.5 * (height - size.y)), u32(ink), title)
        if key:
            self._key(key, x + width - self.px(8.0), y + 0.5 * height, ink)
        if not possible and hovered:
            self.tooltip(why_not)
        return clicked and possible, held and possible

    def _button_colours(
        self, colour: Rgb | None, possible: bool, hovered: bool, held: bool, on: bool
    ) -> tuple[Rgb, Rgb, Rgb]:
        if not possible:
            return style.CARD, style.FAINT, style.EDGE
        if colour is None:
            base, ink, edge = style.FIELD, style.INK, style.EDGE
        elif on:
            base, ink, edge = colour, style.PAGE, colour
        else:
            base, ink, edge = style.mix(style.FIELD, colour, 0.22), style.INK, colour
        lift = 0.16 if held else 0.08 if hovered else 0.0
        return style.mix(base, style.INK, lift), ink, edge

    def _key(self, key: str, right: float, middle: float, ink: Rgb) -> None:
        with self.face(True, style.SMALL_PX):
            size = imgui.calc_text_size(key)
        pad = self.px(6.0)
        x0, x1 = right - size.x - 2.0 * pad, right
        half = 0.5 * size.y + self.px(2.0)
        draw = imgui.get_window_draw_list()
        draw.add_rect((x0, middle - half), (x1, middle + half), u32(ink, 0.45), self.px(4.0), 1.0)
        with self.face(True, style.SMALL_PX):
            draw.add_text((x0 + pad, middle - 0.5 * size.y), u32(ink, 0.9), key)

    def _ring(self, x: float, y: float, share: float, ink: Rgb) -> None:
        draw = imgui.get_window_draw_list()
        radius, thick = self.px(10.0), self.px(4.0)
        draw.add_circle((x, y), radius, u32(ink, 0.25), 0, thick)
        draw.path_arc_to((x, y), radius, -0.5 * math.pi, (2.0 * share - 0.5) * math.pi, 24)
        draw.path_stroke(u32(ink), thick)

    def tooltip(self, words: str) -> None:
        """Say something beside the mouse."""
        imgui.begin_tooltip()
        imgui.push_text_wrap_pos(self.px(340.0))
        imgui.text_unformatted(words)
        imgui.pop_text_wrap_pos()
        imgui.end_tooltip()

    # ------------------------------------------------------------- bars

    def limit_bar(
        self, low: float, high: float, value: float | None, width: float, height_px: float = 8.0
    ) -> None:
        """Draw where a value is between its limits; orange near them."""
        height = self.px(height_px)
        x, y = imgui.get_cursor_screen_pos()
        line = imgui.get_text_line_height()
        y += 0.5 * (line - height)
        draw = imgui.get_window_draw_list()
        draw.add_rect_filled((x, y), (x + width, y + height), u32(style.FIELD), 0.5 * height)
        middle = x + width * (-low / (high - low)) if low < 0.0 < high else x
        if value is not None:
            share = min(max((value - low) / (high - low), 0.0), 1.0)
            near = min(share, 1.0 - share) < NEAR_LIMIT
            colour = style.MOVES if near else style.ACCENT
            at = x + share * width
            a, b = min(middle, at), max(middle, at)
            draw.add_rect_filled((a, y), (b, y + height), u32(colour, 0.55), 0.5 * height)
            half = self.px(3.0)
            draw.add_rect_filled(
                (at - half, y - half), (at + half, y + height + half), u32(colour), half
            )
        imgui.dummy((width, line))


NEAR_LIMIT = 0.04
"""Share of a joint's range at each end in which it is shown as near its limit."""
