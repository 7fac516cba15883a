"""Where the person looks from: an orbit camera with z up, as numbers and matrices.

The camera sits at `distance_m` from `look_at_m`, looking along azimuth and elevation as MuJoCo
counts them: azimuth about z from the x axis, elevation negative when looking down.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from brain.geometry import Array

ORBIT_DEG_PX = 0.35
ZOOM_PER_NOTCH = 0.88
NEAREST_M, FARTHEST_M = 0.15, 12.0
LOWEST_DEG, HIGHEST_DEG = -89.0, 15.0
"""Straight down the azimuth would have no meaning; from far below one only sees the floor."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OrbitView:
    """A view of the cell."""

    look_at_m: tuple[float, float, float]
    distance_m: float
    azimuth_deg: float
    elevation_deg: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Rect:
    """A rectangle of the window; x to the right, y down, from the upper left corner."""

    x: float
    y: float
    width: float
    height: float

    def holds(self, x: float, y: float) -> bool:
        """Whether a point lies inside."""
        return self.x <= x < self.x + self.width and self.y <= y < self.y + self.height


def axes(view: OrbitView) -> tuple[Array, Array, Array]:
    """Return right, up and forward of the camera, unit vectors (3,) in the world."""
    az, el = math.radians(view.azimuth_deg), math.radians(view.elevation_deg)
    forward = np.array((math.cos(az) * math.cos(el), math.sin(az) * math.cos(el), math.sin(el)))
    right = np.array((math.sin(az), -math.cos(az), 0.0))
    return right, np.cross(right, forward), forward


def orbit(view: OrbitView, dx_px: float, dy_px: float) -> OrbitView:
    """Turn round what is looked at, as if the scene were dragged by the mouse."""
    elevation = view.elevation_deg - ORBIT_DEG_PX * dy_px
    return replace(
        view,
        azimuth_deg=(view.azimuth_deg - ORBIT_DEG_PX * dx_px) % 360.0,
        elevation_deg=min(max(elevation, LOWEST_DEG), HIGHEST_DEG),
    )


def pan(view: OrbitView, dx_px: float, dy_px: float, m_per_px: float) -> OrbitView:
    """Shift in the picture's plane, so that what is looked at stays under the mouse."""
    right, up, _ = axes(view)
    return look_at(view, np.array(view.look_at_m) + m_per_px * (dy_px * up - dx_px * right))


def zoom(view: OrbitView, notches: float) -> OrbitView:
    """Go nearer (wheel forward) or farther."""
    distance = view.distance_m * ZOOM_PER_NOTCH**notches
    return replace(view, distance_m=min(max(distance, NEAREST_M), FARTHEST_M))


def look_at(view: OrbitView, point_m: Array) -> OrbitView:
    """Look at a point (3,) from the same side and distance."""
    x, y, z = (float(v) for v in point_m)
    return replace(view, look_at_m=(x, y, z))


def presets(home: OrbitView, tool_m: Array) -> tuple[OrbitView, ...]:
    """Return the views of the keys 1 to 4: overview, from the side, from above, at the tool."""
    side = replace(home, azimuth_deg=(home.azimuth_deg + 90.0) % 360.0, elevation_deg=-15.0)
    above = replace(home, elevation_deg=LOWEST_DEG)
    near = replace(home, distance_m=0.75, elevation_deg=-25.0)
    return home, side, above, look_at(near, tool_m)


# ---------------------------------------------------------------- matrices


def view_matrix(view: OrbitView) -> Array:
    """World to camera (4, 4) as OpenGL has it: x right, y up, looking along -z."""
    right, up, forward = axes(view)
    eye = np.array(view.look_at_m) - view.distance_m * forward
    out = np.eye(4)
    out[:3, :3] = (right, up, -forward)
    out[:3, 3] = -out[:3, :3] @ eye
    return out


def projection(fovy_deg: float, aspect: float, near_m: float, far_m: float) -> Array:
    """Camera to clip space (4, 4). Source: OpenGL 2.1 reference, gluPerspective."""
    f = 1.0 / math.tan(0.5 * math.radians(fovy_deg))
    out = np.zeros((4, 4))
    out[0, 0], out[1, 1] = f / aspect, f
    out[2, 2] = (far_m + near_m) / (near_m - far_m)
    out[2, 3] = 2.0 * far_m * near_m / (near_m - far_m)
    out[3, 2] = -1.0
    return out


def pixel(view: OrbitView, fovy_deg: float, rect: Rect, point_m: Array) -> tuple[float, float]:
    """Return where a point (3,) of the world appears in the window; NaN behind the camera."""
    x, y, z = (view_matrix(view) @ (*point_m, 1.0))[:3]
    if z >= 0.0:
        return math.nan, math.nan
    scale = 0.5 * rect.height / (math.tan(0.5 * math.radians(fovy_deg)) * -z)
    return rect.x + 0.5 * rect.width + scale * x, rect.y + 0.5 * rect.height - scale * y


def m_per_px(view: OrbitView, fovy_deg: float, height_px: float) -> float:
    """Return how much of the world one pixel covers at the point looked at."""
    return 2.0 * view.distance_m * math.tan(0.5 * math.radians(fovy_deg)) / height_px
