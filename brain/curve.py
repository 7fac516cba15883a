"""Smooth curves through joint space: polylines with rounded corners, splines through close rows."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.interpolate import CubicSpline

from brain.geometry import Array
from brain.robot import IntArray

SHORT_RAD = 1e-9
"""Ways shorter than this are gone in one row: no limit notices."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Curve:
    """Pieces of degree 4 at most: `start` (p + 1,) in rad along the way, coefficients (p, 5, n).

    Twice continuously differentiable. `group` (p,): pieces of one group may share limits.
    """

    start: Array
    coefficient: Array
    group: IntArray

    @property
    def length(self) -> float:
        """Length in rad."""
        return float(self.start[-1])

    def at(self, s: Array, derivative: int = 0) -> Array:
        """Joints (..., n) at places s (...), or their derivative with respect to s."""
        last = len(self.start) - 2
        piece = np.clip(np.searchsorted(self.start, s, side="right") - 1, 0, last)
        u = (s - self.start[piece])[..., None]
        out = np.zeros((*np.shape(s), self.coefficient.shape[2]))
        for power in range(4, derivative - 1, -1):
            out = out * u + self.coefficient[piece, power] * math.perm(power, derivative)
        return out


def distinct(path_rad: Array) -> Array:
    """Leave out points (k, n) that are too close to the one before; the ends stay as they are."""
    kept = [path_rad[0]]
    for point in path_rad[1:]:
        if np.linalg.norm(point - kept[-1]) > SHORT_RAD:
            kept.append(point)
    while len(kept) > 1 and np.linalg.norm(path_rad[-1] - kept[-1]) <= SHORT_RAD:
        kept.pop()
    if np.linalg.norm(path_rad[-1] - kept[-1]) > SHORT_RAD:
        kept.append(path_rad[-1])
    return np.array(kept)


def rounded(path_rad: Array, reach_m: Array, tolerance_m: float) -> Curve:
    """Round the corners of a polyline (k, n); no part of the arm strays farther than allowed.

    `reach_m` (n,): how far anything on the arm can be from each joint's axis. Around a corner the
    direction turns from one leg's to the next by 3 t^2 - 2 t^3 over a length L; the way then leaves
    the corner by 3/32 L times the change of direction, and meets both legs with equal tangent and
    no curvature. Legs too short to tell are left out.
    """
    points = distinct(path_rad)
    legs = np.diff(points, axis=0)
    lengths = np.linalg.norm(legs, axis=1)
    ways = legs / lengths[:, None]
    turns = np.diff(ways, axis=0)
    # Legs between two corners are shared by halves; a leg at an end belongs to its corner alone.
    share = lengths.copy()
    share[1:-1] *= 0.5
    stray_m = np.abs(turns) @ reach_m * (3.0 / 32.0)
    half = 0.5 * tolerance_m / np.maximum(stray_m, 1e-12)
    half = np.minimum(half, np.minimum(share[:-1], share[1:]))
    before, after = np.append(0.0, half), np.append(half, 0.0)
    start, pieces = [0.0], []
    for i, way in enumerate(ways):
        straight = lengths[i] - before[i] - after[i]
        if straight > 1e-9:
            begin = points[i] + before[i] * way
            pieces.append(np.stack([begin, way, *np.zeros((3, len(way)))]))
            start.append(start[-1] + straight)
        if i < len(turns) and half[i] > 0.0:
            long = 2.0 * half[i]
            begin = points[i + 1] - half[i] * way
            bend = turns[i] / long**2
            pieces.append(np.stack([begin, way, 0.0 * way, bend, -0.5 * bend / long]))
            start.append(start[-1] + long)
    return Curve(start=np.array(start), coefficient=np.array(pieces), group=np.arange(len(pieces)))


def smooth(rows_rad: Array) -> Curve:
    """Lay a cubic spline through rows (k, n) that are close together, straight at both ends."""
    rows = distinct(rows_rad)
    start = np.append(0.0, np.cumsum(np.linalg.norm(np.diff(rows, axis=0), axis=1)))
    spline = CubicSpline(start, rows, axis=0, bc_type="natural")
    coefficient = np.zeros((len(rows) - 1, 5, rows.shape[1]))
    coefficient[:, :4] = np.moveaxis(spline.c[::-1], 0, 1)
    return Curve(
        start=start, coefficient=coefficient, group=np.zeros(len(rows) - 1, dtype=np.int64)
    )
