"""The report of a run: one HTML file, made from its log alone.

`python -m sim.report LOG [OUT]` makes one for any log. A log that was cut off, a scene that cannot
be rebuilt here or a machine without OpenGL each give a report that says what is missing.
"""

from __future__ import annotations

import json
import re
import sys
from dataclasses import dataclass, replace
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
import tyro

from brain.cell import CellModel
from brain.errors import ConfigError, ForearmError, LogError
from brain.limits import LimitProfile, profile
from brain.types import Mode
from hardware.scene import cell_model, parse_resolved
from sim import report_tables as tables
from sim.report_data import Run
from sim.report_film import Film, Still, Studio, moments, shoot
from sim.report_plots import arm_of, arm_plots, cell_plots
from sim.report_read import read_run
from sim.report_svg import (
    BASE,
    LEFT,
    RIGHT,
    TOP,
    WIDTH,
    Plot,
    draw,
    mode_class,
    mode_strip,
    time_place,
)
from sim.scene import SceneModel, build_model

TEMPLATE = Path(__file__).with_name("report.html")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Known:
    """What could be rebuilt of the cell; None and a reason where its scene could not."""

    scene: SceneModel | None
    cell: CellModel | None
    limits: LimitProfile | None
    problem: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Shots:
    """The pictures; `film` None and a reason where there are none."""

    film: Film | None
    stills: tuple[Still, ...]
    problem: str | None


def write_report(log: Path, report: Path) -> None:
    """Make the report of a log.

    Raises:
        LogError: the log is missing, foreign, or not of a run; or the report cannot be written.
    """
    run = read_run(log)
    known = _rebuild(run)
    run, shots = _shoot(run, known)
    page = _page(run, known, shots, log.name)
    try:
        report.write_text(page, encoding="utf-8")
    except OSError as error:
        raise LogError(f"report {report}: {error.strerror}") from None


def _rebuild(run: Run) -> Known:
    try:
        resolved = parse_resolved(run.head["scene"])
        return Known(
            scene=build_model(resolved),
            cell=cell_model(resolved),
            limits=profile(resolved.scene.limits),
            problem=None,
        )
    except KeyError as error:
        problem = f"the head of the log has no {error}"
    except ConfigError as error:
        problem = str(error)
    return Known(scene=None, cell=None, limits=None, problem=problem)


def _shoot(run: Run, known: Known) -> tuple[Run, Shots]:
    """Draw what can be drawn, and measure clearance where nobody did while it ran."""
    if known.scene is None:
        return run, Shots(film=None, stills=(), problem=known.problem)
    try:
        studio = Studio(known.scene, run.truth)
        if np.all(np.isnan(run.truth.clearance_m)):
            run = replace(run, truth=studio.clearance(run.grips))
        film, stills = shoot(studio, moments(run))
    except ConfigError as error:
        return run, Shots(film=None, stills=(), problem=str(error))
    return run, Shots(film=film, stills=stills, problem=None)


# -------------------------------------------------------------------------------------- page


def _page(run: Run, known: Known, shots: Shots, log_name: str) -> str:
    word, sentence = tables.headline(run)
    tick_s = None if known.cell is None else known.cell.tick_ns * 1e-9
    problems = [run.problem]
    if known.problem is not None:
        problems.append(f"The cell cannot be rebuilt here, so limits are missing: {known.problem}")
    scene_text = _indented(run.head.get("scene"))
    parts = {
        "title": escape(f"{_scene_name(known)}: {word}"),
        "word": word,
        "sign": {"done": "✓", "failed": "✕"}.get(word, "…"),
        "headline": escape(word.capitalize()),
        "sentence": escape(sentence[:1].upper() + sentence[1:]),
        "about": _about(run, known),
        "problems": "".join(f'<p class="problem">{escape(p)}</p>' for p in problems if p),
        "film": _film(shots),
        "result": tables.result_table(run, tick_s),
        "moments": "".join(map(_still, shots.stills)),
        "verdicts": tables.verdict_table(run),
        "refusals": tables.refusal_table(run),
        "mode_legend": "".join(
            f'<span class="key"><i class="{mode_class(m)}"></i>{m}</span>'
            for m in Mode
            if np.any(run.mode == m)
        ),
        "strip": mode_strip(run.spells, run.end_s),
        "plots": _plots(run, known, tick_s),
        "modes": tables.mode_table(run),
        "gate": tables.gate_table(run),
        "faults": tables.fault_list(run),
        "setup": tables.setup_tables(run),
        "scene": escape(scene_text),
        "band": _band(run),
        "end_s": f"{run.end_s:.3f}",
        "top": str(TOP),
        "base": str(BASE),
        "log": escape(log_name),
        "data": _script_json(_data(run, shots.film)),
    }
    template = TEMPLATE.read_text(encoding="utf-8")
    return re.sub(r"\{\{(\w+)\}\}", lambda found: parts[found[1]], template)


def _scene_name(known: Known) -> str:
    return "unknown" if known.cell is None else known.cell.name


def _about(run: Run, known: Known) -> str:
    facts = [
        ("scene", _scene_name(known)),
        ("task", run.head.get("task")),
        ("seed", run.head.get("seed")),
        ("driver", run.head.get("driver")),
    ]
    said = [
        f"{name} <b>{escape(str(value))}</b>" for name, value in facts if value not in (None, "")
    ]
    run_hash = (run.result or {}).get("hash")
    if run_hash:
        said.append(f"hash <code>{escape(str(run_hash)[:16])}</code>")
    return " · ".join(said)


def _film(shots: Shots) -> str:
    if shots.film is None:
        return f'<p class="none">No pictures: {escape(shots.problem or "nothing to draw")}</p>'
    return (
        f'<img id="film" src="{shots.film.uris[0]}" width="640" height="400" '
        'alt="The cell at the time that the slider below shows">'
    )


def _still(still: Still) -> str:
    moment = still.moment
    title, text = escape(moment.title), escape(moment.text)
    return (
        f'<figure class="moment"><img src="{still.uri}" width="960" height="600" loading="lazy" '
        f'alt="The cell at {moment.t_s:.1f} s: {title}, {text}"><figcaption>'
        f"<b>{title}</b> {tables.at(moment.t_s)}<br>{text}</figcaption></figure>"
    )


def _plots(run: Run, known: Known, tick_s: float | None) -> str:
    groups: list[tuple[str, list[Plot]]] = [("The cell", cell_plots(run, known.limits))]
    for track in run.arms:
        arm = arm_of(known.cell, track.name)
        groups.append((track.name, arm_plots(run, track, arm, known.limits, tick_s or 1.0)))
    return "".join(
        f"<h3>{escape(name)}</h3>" + "".join(draw(plot, run.end_s) for plot in plots)
        for name, plots in groups
    )


def _band(run: Run) -> str:
    """Draw the modes behind the slider, from edge to edge."""
    rects = []
    for spell in run.spells:
        x, end = ((time_place(t, run.end_s) - LEFT) for t in (spell.start_s, spell.end_s))
        rects.append(
            f'<rect class="{mode_class(spell.mode)}" x="{x:.1f}" y="0" '
            f'width="{max(end - x, 0.6):.1f}" height="10"/>'
        )
    return (
        f'<svg class="band" viewBox="0 0 {RIGHT - LEFT} 10" preserveAspectRatio="none" '
        f'aria-hidden="true">{"".join(rects)}</svg>'
    )


def _data(run: Run, film: Film | None) -> dict[str, Any]:
    """Collect what the page's script needs."""
    return {
        "end_s": run.end_s,
        "left": LEFT,
        "right": RIGHT,
        "width": WIDTH,
        "spells": [[round(s.start_s, 3), s.mode, mode_class(s.mode), s.reason] for s in run.spells],
        "t_s": [] if film is None else [round(t, 3) for t in film.t_s],
        "shown": [] if film is None else film.shown,
        "frames": [] if film is None else film.uris,
    }


def _script_json(data: dict[str, Any]) -> str:
    """Write JSON so that nothing in it can end the script element."""
    return json.dumps(data, separators=(",", ":")).replace("<", "\\u003c").replace("&", "\\u0026")


def _indented(text: Any) -> str:
    try:
        return json.dumps(json.loads(text), indent=1, ensure_ascii=False)
    except (TypeError, ValueError):
        return str(text)


def _main(log: tyro.conf.Positional[Path], out: tyro.conf.Positional[Path | None] = None) -> int:
    """Make the report of a log; it is put beside the log unless OUT says where."""
    try:
        write_report(log, out or log.with_name("report.html"))
    except ForearmError as error:
        sys.stderr.write(f"error: {error}\n")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(tyro.cli(_main, prog="python -m sim.report"))
