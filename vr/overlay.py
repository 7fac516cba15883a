"""What is drawn into the scene beside the cell: the rehearsed way of the tool and its envelope.

Only the way that was rehearsed is drawn, nothing of the search for it. Its colour and its thickness
both say how near the arm comes to anything there: thin and blue is far, thick and red is near.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import mujoco
import numpy as np

from brain.cell import CellModel
from brain.geometry import Array
from brain.kinematics import tool_pose
from hardware.status import Preview
from vr.style import LIMP, Rgb, mix

ENVELOPE_M = 0.05
"""Radius of the safety envelope round the tool's way."""
# Blue to yellow to red, told apart also without colour vision (the ends differ in lightness and the
# line in thickness). Source: ColorBrewer 2.0, diverging scheme RdYlBu, marked colour-blind safe.
SCALE: tuple[tuple[float, Rgb], ...] = (
    (0.00, (0.647, 0.000, 0.149)),
    (0.02, (0.957, 0.427, 0.263)),
    (0.05, (0.996, 0.878, 0.565)),
    (0.10, (0.455, 0.678, 0.820)),
    (0.20, (0.192, 0.212, 0.584)),
)
"""Clearance in m and colour."""
THIN_M, THICK_M = 0.003, 0.008
LINE_STEP_M, TUBE_STEP_M = 0.012, 0.05
TUBE_ALPHA = 0.09
TUBE: Rgb = (0.88, 0.95, 1.0)
SEGMENTS_MAX = 400


def clearance_colour(clearance_m: float | None) -> Rgb:
    """Return the colour of a clearance; grey where it is unknown."""
    if clearance_m is None or math.isnan(clearance_m):
        return LIMP
    for (low, a), (high, b) in zip(SCALE, SCALE[1:], strict=False):
        if clearance_m <= high:
            return mix(a, b, max((clearance_m - low) / (high - low), 0.0))
    return SCALE[-1][1]


def line_radius_m(clearance_m: float | None) -> float:
    """Return how thick the way is drawn: thick where it is near."""
    if clearance_m is None or math.isnan(clearance_m):
        return THIN_M
    near = 1.0 - min(max(clearance_m / SCALE[-2][0], 0.0), 1.0)
    return THIN_M + near * (THICK_M - THIN_M)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Way:
    """The rehearsed way of one tool: points (n, 3) in the world, the clearance at each (n,)."""

    arm: str
    points_m: Array
    clearance_m: Array


def ways(cell: CellModel, preview: Preview) -> tuple[Way, ...]:
    """Return the ways of the arms that move in a rehearsal."""
    found = []
    for part in preview.arms:
        arm = cell.arms[cell.arm_index(part.name)]
        points = np.array([(arm.T_world_base @ tool_pose(arm.model, q))[:3, 3] for q in part.q_rad])
        if np.ptp(points, axis=0).max(initial=0.0) < 1e-4:
            continue
        clearance = part.clearance_m
        if clearance is None:
            clearance = np.full(len(points), np.nan)
        found.append(Way(arm=part.name, points_m=points, clearance_m=clearance))
    return tuple(found)


def thinned(points_m: Array, step_m: float) -> list[int]:
    """Return the rows to draw: about `step_m` apart along the way, first and last among them."""
    gone = np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(points_m, axis=0), axis=1))])
    step_m = max(step_m, gone[-1] / SEGMENTS_MAX)
    steps = np.arange(0.0, gone[-1], step_m)
    rows = np.unique(np.append(np.searchsorted(gone, steps), len(points_m) - 1))
    return [int(row) for row in rows]


def draw_ways(scene: mujoco.MjvScene, shown: tuple[Way, ...]) -> None:
    """Add ways and envelopes to a scene."""
    for way in shown:
        rows = thinned(way.points_m, LINE_STEP_M)
        for a, b in zip(rows, rows[1:], strict=False):
            near = way.clearance_m[a : b + 1]
            worst = float(np.nanmin(near)) if np.any(np.isfinite(near)) else math.nan
            colour, width = clearance_colour(worst), line_radius_m(worst)
            ends = way.points_m[a], way.points_m[b]
            _connect(scene, mujoco.mjtGeom.mjGEOM_CAPSULE, width, ends, colour, 1.0)
        rows = thinned(way.points_m, TUBE_STEP_M)
        for a, b in zip(rows, rows[1:], strict=False):
            ends = way.points_m[a], way.points_m[b]
            tube = mujoco.mjtGeom.mjGEOM_CYLINDER
            _connect(scene, tube, ENVELOPE_M, ends, TUBE, TUBE_ALPHA)


def draw_marker(scene: mujoco.MjvScene, point_m: Array, colour: Rgb, radius_m: float) -> None:
    """Add a ball to a scene."""
    if scene.ngeom >= scene.maxgeom:
        return
    geom = scene.geoms[scene.ngeom]
    rgba = np.array((*colour, 1.0), dtype=np.float32)
    size = np.full(3, radius_m)
    sphere = mujoco.mjtGeom.mjGEOM_SPHERE
    mujoco.mjv_initGeom(geom, sphere, size, np.asarray(point_m), np.eye(3).ravel(), rgba)
    _glow(geom)
    scene.ngeom += 1


def _connect(
    scene: mujoco.MjvScene,
    kind: mujoco.mjtGeom,
    radius_m: float,
    ends: tuple[Array, Array],
    colour: Rgb,
    alpha: float,
) -> None:
    if scene.ngeom >= scene.maxgeom:
        return
    geom = scene.geoms[scene.ngeom]
    rgba = np.array((*colour, alpha), dtype=np.float32)
    mujoco.mjv_initGeom(geom, kind, np.zeros(3), np.zeros(3), np.eye(3).ravel(), rgba)
    mujoco.mjv_connector(geom, kind, radius_m, *ends)
    _glow(geom)
    scene.ngeom += 1


def _glow(geom: mujoco.MjvGeom) -> None:
    """Let a drawn thing shine a little, so that its colour can be told in the shade too."""
    geom.category = mujoco.mjtCatBit.mjCAT_DECOR
    geom.emission, geom.specular, geom.shininess = 0.2, 0.0, 0.0
