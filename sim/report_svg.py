"""Curves over time as small SVG pictures: crisp at every size, readable without any program.

All pictures share one time axis and one strip of modes below it, so that a cursor can run through
all of them. Lines are thinned to what the eye can tell: per column of the picture the first,
lowest, highest and last point, without those that lie on the way between their neighbours.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise
from typing import Literal

import numpy as np
import numpy.typing as npt

from brain.geometry import Array
from brain.types import Mode
from sim.report_data import Spell

WIDTH, HEIGHT = 960, 156
LEFT, RIGHT, TOP, BASE = 50, 952, 8, 122
"""Where the curves lie in the picture."""
STRIP, STRIP_END = 125, 131
"""Where the strip of modes lies, from top to bottom."""
FLAT = 0.15
"""A point nearer to the straight way than this, in units of the picture, is left out."""
NEAR_LIMIT = 8.0
"""A limit is drawn unless it is so many times larger than everything else."""
COLOURS = ("#0072b2", "#c65102", "#00805e", "#b0508a", "#7a6100", "#44505c", "#3d9bdc")
"""Told apart with every kind of colour vision. Source: Okabe and Ito, Color Universal Design
(2008), darkened for thin lines on white."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Line:
    """A curve; NaN is a gap. `wide` lies pale below the others, `limit` is dashed."""

    label: str
    colour: str
    t_s: Array
    y: Array
    style: Literal["line", "wide", "limit"] = "line"


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """A level that must not be passed."""

    label: str
    value: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Plot:
    """A picture with curves of one unit; `note` says how to read it."""

    title: str
    unit: str
    lines: tuple[Line, ...]
    bounds: tuple[Bound, ...] = ()
    note: str = ""
    from_zero: bool = False


def time_place(t_s: float, end_s: float) -> float:
    """Where a time lies in the picture."""
    return LEFT + (RIGHT - LEFT) * t_s / max(end_s, 1e-9)


def mode_class(mode: str) -> str:
    """Name the style of a mode."""
    return f"mode-{mode}" if mode in {str(m) for m in Mode} else "mode-unknown"


def mode_strip(spells: Sequence[Spell], end_s: float) -> str:
    """Draw the strip of modes that every plot uses."""
    rects = "".join(
        f'<rect class="{mode_class(s.mode)}" x="{time_place(s.start_s, end_s):.1f}" y="{STRIP}" '
        f'width="{_span(s, end_s):.1f}" height="{STRIP_END - STRIP}"><title>'
        f"{escape(f'{s.mode}: {s.reason}')}</title></rect>"
        for s in spells
    )
    group = f'<defs><g id="modes">{rects}</g></defs>'
    return f'<svg class="defs" width="0" height="0" aria-hidden="true">{group}</svg>'


def _span(spell: Spell, end_s: float) -> float:
    return max(time_place(spell.end_s, end_s) - time_place(spell.start_s, end_s), 0.6)


def draw(plot: Plot, end_s: float) -> str:
    """Draw one plot with its title and legend, as HTML; a sentence where nothing was measured."""
    head = f"<figcaption><b>{escape(plot.title)}</b> <span>{escape(plot.unit)}</span></figcaption>"
    shown = [line for line in plot.lines if np.any(np.isfinite(line.y))]
    if not shown:
        note = escape(plot.note or "not measured")
        return f'<figure class="plot">{head}<p class="none">{note}</p></figure>'
    low, high = _range(plot, shown)
    keys: list[str] = []
    curves: list[str] = []
    for line in shown:
        d = _path(line, low, high, end_s)
        named = line.style != "wide"
        curves.append(
            f'<path class="{line.style}" d="{d}" stroke="{line.colour}"'
            + (f' data-key="{len(keys)}"' if named else "")
            + "/>"
        )
        if named:
            keys.append(
                f'<span class="key"><i class="{line.style}" style="color:{line.colour}"></i>'
                f"{escape(line.label)} <output></output></span>"
            )
    marks, notes = _bounds(plot, low, high)
    notes = [escape(n) for n in ([plot.note] if plot.note else []) + notes]
    if notes:
        keys.append(f'<span class="note">{"; ".join(notes)}</span>')
    said = escape(_said(plot, shown))
    return (
        f'<figure class="plot" data-low="{low:.6g}" data-high="{high:.6g}">{head}'
        f'<div class="legend">{"".join(keys)}</div>'
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{said}">'
        f"{_grid(low, high, end_s)}{''.join(curves)}{marks}"
        f'<use href="#modes"/><line class="cursor" x1="0" x2="0" y1="{TOP}" y2="{STRIP_END}"/>'
        "</svg></figure>"
    )


# ------------------------------------------------------------------------------------- scale


def _range(plot: Plot, lines: Sequence[Line]) -> tuple[float, float]:
    """Lowest and highest value to show: of all lines, and of bounds that are not far away."""
    values = [float(f(line.y)) for line in lines for f in (np.nanmin, np.nanmax)]
    largest = max(abs(v) for v in values)
    values += [b.value for b in plot.bounds if abs(b.value) <= NEAR_LIMIT * largest]
    low, high = min(values), max(values)
    if plot.from_zero:
        low = min(low, 0.0)
    margin = 0.06 * (high - low) or 0.5 * abs(high) or 1.0
    return low - margin * (low != 0.0), high + margin


def _ticks(low: float, high: float, most: int) -> list[float]:
    """Round values between two: steps of 1, 2 or 5 times a power of ten, at most so many."""
    raw = (high - low) / most
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(m * power for m in (1.0, 2.0, 5.0, 10.0) if m * power >= raw * (1 - 1e-9))
    return [k * step for k in range(math.ceil(low / step), math.floor(high / step) + 1)]


def _place(y: float, low: float, high: float) -> float:
    return BASE - (BASE - TOP) * (y - low) / (high - low)


def _grid(low: float, high: float, end_s: float) -> str:
    parts = []
    for value in _ticks(low, high, 5):
        y = _place(value, low, high)
        parts.append(
            f'<path class="grid" d="M{LEFT} {y:.1f}H{RIGHT}"/>'
            f'<text x="{LEFT - 6}" y="{y + 3.5:.1f}" text-anchor="end">{value:.6g}</text>'
        )
    for t_s in _ticks(0.0, max(end_s, 1e-3), 12):
        x = time_place(t_s, end_s)
        parts.append(
            f'<path class="grid" d="M{x:.1f} {TOP}V{BASE}"/>'
            f'<text x="{x:.1f}" y="{HEIGHT - 8}" text-anchor="middle">{t_s:.6g} s</text>'
        )
    return "".join(parts)


def _bounds(plot: Plot, low: float, high: float) -> tuple[str, list[str]]:
    """Draw the bounds that are on the scale, and say the others."""
    marks, notes = [], []
    for bound in plot.bounds:
        if not low <= bound.value <= high:
            notes.append(f"{bound.label} {bound.value:.4g} {plot.unit}, off the scale")
            continue
        y = _place(bound.value, low, high)
        above = y + 11 if y < TOP + 14 else y - 4
        marks.append(
            f'<path class="bound" d="M{LEFT} {y:.1f}H{RIGHT}"/><text class="bound" x="{RIGHT - 4}" '
            f'y="{above:.1f}" text-anchor="end">{escape(bound.label)} {bound.value:.4g}</text>'
        )
    return "".join(marks), notes


def _said(plot: Plot, lines: Sequence[Line]) -> str:
    """Say what is to be seen, for those who cannot."""
    ranges = ", ".join(
        f"{line.label} from {np.nanmin(line.y):.3g} to {np.nanmax(line.y):.3g}"
        for line in lines
        if line.style != "wide"
    )
    bounds = "".join(f"; {b.label} {b.value:.3g}" for b in plot.bounds)
    return f"{plot.title} over time in {plot.unit}: {ranges}{bounds}"


# ------------------------------------------------------------------------------------ curves


def _path(line: Line, low: float, high: float, end_s: float) -> str:
    fine = np.isfinite(line.y)
    edges = np.flatnonzero(np.diff(np.concatenate([[0], fine.astype(np.int8), [0]])))
    x = LEFT + (RIGHT - LEFT) * line.t_s / max(end_s, 1e-9)
    y = BASE - (BASE - TOP) * (line.y - low) / (high - low)
    parts = []
    for a, b in zip(edges[::2], edges[1::2], strict=True):
        kept = thinned(x[a:b], y[a:b])
        points = [f"{px:.1f} {py:.1f}" for px, py in zip(x[a:b][kept], y[a:b][kept], strict=True)]
        parts.append("M" + "L".join(points if len(points) > 1 else points * 2))
    return "".join(parts)


def thinned(x: Array, y: Array) -> npt.NDArray[np.int64]:
    """Places (k,) of the points of a curve that are enough to draw it; x rises."""
    columns = np.floor(x).astype(np.int64)
    starts = np.flatnonzero(np.diff(columns, prepend=columns[0] - 1))
    kept: list[int] = []
    for a, b in pairwise([*starts.tolist(), len(x)]):
        inside = y[a:b]
        kept += sorted({a, a + int(inside.argmin()), a + int(inside.argmax()), b - 1})
    places = np.array(kept, dtype=np.int64)
    return places[_bends(x[places], y[places])]


def _bends(x: Array, y: Array) -> npt.NDArray[np.bool_]:
    """Say of each point (n,) whether a curve needs it to be within `FLAT` everywhere.

    Source: D. H. Douglas and T. K. Peucker, Cartographica 10 (1973) 112, with distances along y.
    """
    needed = np.zeros(len(x), dtype=np.bool_)
    needed[[0, -1]] = True
    spans = [(0, len(x) - 1)]
    while spans:
        a, b = spans.pop()
        if b - a < 2:
            continue
        share = (x[a + 1 : b] - x[a]) / max(float(x[b] - x[a]), 1e-9)
        off = np.abs(y[a] + share * (y[b] - y[a]) - y[a + 1 : b])
        worst = int(off.argmax())
        if off[worst] > FLAT:
            k = a + 1 + worst
            needed[k] = True
            spans += [(a, k), (k, b)]
    return needed
