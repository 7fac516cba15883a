"""Where the parts of the window are."""

from __future__ import annotations

from dataclasses import dataclass

from vr.camera_view import Rect

TOP_PX, SIDE_PX, BOTTOM_PX, CAMERAS_PX = 72.0, 404.0, 232.0, 372.0
VIEW_MIN_PX = 160.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """The window's parts; `cameras` has no width where there are none."""

    top: Rect
    view: Rect
    timeline: Rect
    cameras: Rect
    side: Rect


def layout(width: float, height: float, scale: float, cameras: bool) -> Layout:
    """Divide a window: bar on top, picture with timeline and cameras below it, panel at the side.

    A small window keeps a picture of `VIEW_MIN_PX` and lets the panels run out of it.
    """
    least = VIEW_MIN_PX * scale
    top = TOP_PX * scale
    middle = max(width - SIDE_PX * scale, least)
    upper = max(height - top - BOTTOM_PX * scale, least)
    lower = max(height - top - upper, 1.0)
    wall = min(CAMERAS_PX * scale, 0.45 * middle) if cameras else 0.0
    return Layout(
        top=Rect(x=0.0, y=0.0, width=width, height=top),
        view=Rect(x=0.0, y=top, width=middle, height=upper),
        timeline=Rect(x=0.0, y=top + upper, width=middle - wall, height=lower),
        cameras=Rect(x=middle - wall, y=top + upper, width=wall, height=lower),
        side=Rect(x=middle, y=top, width=max(width - middle, 1.0), height=max(height - top, 1.0)),
    )
