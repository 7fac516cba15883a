"""The tables of a report as HTML; everything that comes from a log is escaped here."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from html import escape
from itertools import groupby
from typing import Any

import numpy as np

from brain import playback
from brain.rehearsal import Rehearsal
from brain.types import Goal
from hardware.inline_link import Faults
from sim.clearance import LOOK_M
from sim.outcome import PLACED_M
from sim.plant import PlantChange
from sim.report_data import Commit, GateSpell, Rehearsed, Run
from sim.report_svg import mode_class

SIGNS = {
    "safe": "✓",
    "near": "▲",
    "contact": "✕",
    "unseen": "?",
    "allow": "✓",
    "limit": "▼",
    "hold": "❚❚",
    "stop": "■",
}
"""A sign beside every coloured word, so that colour never says it alone."""
MISSING = '<span class="missing">not measured</span>'


def table(head: Sequence[str], rows: Iterable[Sequence[str]], empty: str, style: str = "") -> str:
    """Make a table of cells that are HTML already, or say that it is empty."""
    body = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows)
    if not body:
        return f'<p class="none">{escape(empty)}</p>'
    top = "".join(f'<th scope="col">{escape(title)}</th>' for title in head)
    return (
        f'<div class="scroll"><table class="{style}"><thead><tr>{top}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )


def figure(value: Any, unit: str, digits: int = 1) -> str:
    """Write a measured number with its unit; what is None was not measured."""
    if not isinstance(value, (int, float)):
        return MISSING
    return f"<b>{value:.{digits}f}</b> {unit}"


def at(t_s: float) -> str:
    """Write a time as a button that leads the film there."""
    return f'<button type="button" class="at" data-seek="{t_s:.3f}">{t_s:.2f} s</button>'


def _tag(word: str, style: str, text: str | None = None) -> str:
    sign = SIGNS.get(word, "")
    return f'<span class="tag {style}"><i>{sign}</i>{escape(text or word)}</span>'


def _mode(mode: str) -> str:
    return f'<span class="tag"><i class="{mode_class(mode)}"></i>{escape(mode)}</span>'


def _code(text: str | None, most: int = 12) -> str:
    """Write a digest short, whole where the pointer rests."""
    return "" if not text else f'<code title="{escape(text)}">{escape(text[:most])}</code>'


# ------------------------------------------------------------------------------------ result


def headline(run: Run) -> tuple[str, str]:
    """Say in a word and a sentence what came of the run."""
    result = run.result
    if result is None:
        last = f" The last mode was {run.spells[-1].mode}." if run.spells else ""
        word = "ended" if run.problem is None else "incomplete"
        return word, f"The log holds no result.{last}"
    error_mm, near_mm = result.get("placed_error_mm"), result.get("min_clearance_mm")
    force_n = result.get("peak_force_n")
    if result.get("ok"):
        force = "no force measured" if force_n is None else f"peak force {force_n:.1f} N"
        return "done", (
            f"Parts within {error_mm:.1f} mm of their place, nothing nearer than {near_mm:.1f} mm, "
            f"{force}, {result['duration_s']:.1f} s."
        )
    why = []
    if error_mm is not None and error_mm > 1e3 * PLACED_M:
        why.append(f"a part is {error_mm:.1f} mm from its place, {1e3 * PLACED_M:.0f} allowed")
    if near_mm is not None and near_mm <= 0.0:
        why.append("something was touched that must not be")
    broken = [c for c in run.commits if not c.ended.endswith(playback.DONE)]
    if broken:
        why.append(f"the commit at {broken[-1].start_s:.2f} s ended in {broken[-1].ended}")
    elif run.refusals:
        why.append(f"the last that was refused: {run.refusals[-1].reason}")
    said = "; ".join(why) or str(result.get("reason") or "nobody said why")
    return "failed", said if said.endswith((".", "?", "!")) else f"{said}."


def result_table(run: Run, tick_s: float | None) -> str:
    """List the figures of the result with units and meanings."""
    result: Mapping[str, Any] = run.result or _so_far(run)
    look_mm = f"{1e3 * LOOK_M:.0f}"
    missed, late = MISSING, MISSING
    if tick_s is not None and len(run.t_s):
        due = round(float(run.t_s[-1] - run.t_s[0]) / tick_s) + 1
        missed = f"<b>{due - len(run.t_s)}</b> of {due} ticks"
    if len(run.pace):
        late = f"<b>{run.pace[-1, 2]:.0f}</b> of {run.pace[-1, 1]:.0f} ticks"
    rows = [
        (
            "Placed error",
            figure(result.get("placed_error_mm"), "mm"),
            f"≤ {1e3 * PLACED_M:.0f} mm",
            "largest distance of a part of the task from its place at the end",
        ),
        (
            "Least clearance",
            figure(result.get("min_clearance_mm"), "mm"),
            "> 0 mm",
            "of robots and held parts to all but the contacts that the task declares, by the "
            f"simulator's geometry; {look_mm} where nothing came nearer{_nearest(run)}",
        ),
        (
            "Peak force",
            figure(result.get("peak_force_n"), "N"),
            "",
            "largest norm of the tared wrist force",
        ),
        ("Duration", figure(result.get("duration_s"), "s"), "", "time of the run"),
        ("Missed", missed, "", "ticks that were skipped or failed, and are not in the log"),
        ("Late", late, "", "ticks that began over 0.5 ms after they were due"),
    ]
    return table(("", "Value", "Allowed", "Meaning"), rows, "", "result")


def _so_far(run: Run) -> dict[str, Any]:
    """Give what can be said of a run whose log holds no result."""
    force_n = np.concatenate([track.force_n for track in run.arms] or [np.zeros(0)])
    known_m, known_n = (a[np.isfinite(a)] for a in (run.truth.clearance_m, force_n))
    return {
        "min_clearance_mm": 1e3 * float(known_m.min()) if len(known_m) else None,
        "peak_force_n": float(known_n.max()) if len(known_n) else None,
        "duration_s": run.end_s,
    }


def _nearest(run: Run) -> str:
    known = [(c, i) for i, c in enumerate(run.truth.clearance_m.tolist()) if c == c]
    if not known:
        return ""
    _, i = min(known)
    return f". Nearest: {escape(run.truth.nearest[i])}, at {at(float(run.truth.t_s[i]))}"


# --------------------------------------------------------------------- rehearsals and commits


def verdict_table(run: Run) -> str:
    """List every rehearsal: its verdict, and what became of it."""
    rows = []
    for answer in run.rehearsed:
        if answer.rehearsal is None:
            rows.append((at(answer.t_s), "", escape(answer.problem), *[""] * 6))
            continue
        found = answer.rehearsal
        commits = [c for c in run.commits if c.digest == found.digest]
        rows.append(_verdict_row(run, answer, found, commits[0] if commits else None))
    head = ("Rehearsed", "Goal", "Verdict", "Clearance", "Length", "Digest", "Committed")
    return table((*head, "Departed at most", "Ended"), rows, "Nothing was rehearsed.")


def _verdict_row(
    run: Run, answer: Rehearsed, found: Rehearsal, commit: Commit | None
) -> tuple[str, ...]:
    verdict = found.verdict
    sentence = verdict.sentence().partition(": ")[2]
    committed, departed, ended = '<span class="missing">never</span>', "", ""
    if commit is not None:
        committed = f"{at(commit.start_s)} by {escape(commit.by)}"
        departed = _departed(run, commit)
        ended = f"{at(commit.end_s)} {_ended(commit)}"
    return (
        at(answer.t_s),
        escape(goal_text(found.goal)),
        f"{_tag(verdict.kind, f'verdict-{verdict.kind}')} {escape(sentence)}",
        figure(1e3 * verdict.clearance_m, "mm"),
        figure(found.duration_s, "s"),
        _code(found.digest),
        committed,
        departed,
        ended,
    )


def _departed(run: Run, commit: Commit) -> str:
    """Say how far a commit departed from its prediction, for what could be measured."""
    forces, openings = (
        any(np.any(np.isfinite(values)) for values in columns)
        for columns in ([a.force_n for a in run.arms], [a.opening_m for a in run.arms])
    )
    said = [f"joints {1e3 * commit.joint_rad:.2f} of {1e3 * playback.DEPART_RAD:.0f} mrad"]
    if forces:
        said.append(f"force {commit.force_n:.1f} of {playback.DEPART_FORCE_N:.0f} N")
    if openings:
        allowed_mm = 1e3 * playback.DEPART_OPENING_M
        said.append(f"fingers {1e3 * commit.opening_m:.2f} of {allowed_mm:.0f} mm")
    return "<br>".join(said)


def _ended(commit: Commit) -> str:
    mode, _, reason = commit.ended.partition(": ")
    if reason == playback.DONE:
        return f"{_tag('safe', 'verdict-safe', 'done')}"
    return f"{_mode(mode)} {escape(reason)}" if mode else "still running"


def goal_text(goal: Goal) -> str:
    """Say what was asked for."""
    kinds = {"task": f"task {goal.task}", "home": f"home of {goal.arm}"}
    return kinds.get(goal.kind, f"{goal.kind} of {goal.arm}")


def refusal_table(run: Run) -> str:
    """List what was asked for in vain; equal answers in a row are one line."""
    rows = []
    for (asked, reason), group in groupby(run.refusals, lambda r: (r.asked, r.reason)):
        times = [refusal.t_s for refusal in group]
        until = f" to {at(times[-1])}" if len(times) > 1 else ""
        rows.append((at(times[0]) + until, str(len(times)), escape(asked), escape(reason)))
    return table(("When", "Times", "Asked", "Refused because"), rows, "Nothing was refused.")


# ----------------------------------------------------------------------------- what happened


def mode_table(run: Run) -> str:
    """List the modes in their order, with the reason of each."""
    rows = [
        (at(s.start_s), f"{s.end_s - s.start_s:.2f} s", _mode(s.mode), escape(s.reason))
        for s in run.spells
    ]
    return table(("From", "For", "Mode", "Reason"), rows, "The log holds no tick.")


def gate_table(run: Run) -> str:
    """List what the gate did not simply allow."""
    return table(
        ("From", "Ticks", "Arm", "Answer", "Rule", "Value", "Limit"),
        [_gate_row(spell) for spell in run.answers],
        "The gate allowed everything.",
    )


def _gate_row(spell: GateSpell) -> tuple[str, ...]:
    ruled = [MISSING if v is None else f"{v:.4g}" for v in (spell.value, spell.limit)]
    if spell.rule.startswith("mode "):  # the mode alone decides: there is nothing to compare
        ruled = ["", ""]
    return (
        at(spell.start_s),
        str(spell.ticks),
        escape(spell.arm),
        _tag(spell.action, f"gate-{spell.action}"),
        escape(spell.rule),
        *ruled,
    )


def fault_list(run: Run) -> str:
    """List what went wrong in the program itself; nothing where nothing did."""
    rows = [
        (
            at(fault.t_s),
            escape(fault.error),
            f"<details><summary>where</summary><pre>{escape(fault.trace)}</pre></details>"
            if fault.trace
            else "",
        )
        for fault in run.faults
    ]
    return f"<h3>Faults</h3>{table(('When', 'Error', ''), rows, '')}" if rows else ""


# ------------------------------------------------------------------------- how it was made


def setup_tables(run: Run) -> str:
    """List what the run was of, under which conditions, and with which versions."""
    head, identity = run.head, ("driver", "task", "seed", "scene_digest")
    facts = {name: head[name] for name in identity if head.get(name) not in (None, "")}
    if run.result is not None and run.result.get("hash"):
        facts["hash of all ticks"] = run.result["hash"]
    parts: list[tuple[str, Mapping[str, Any], str]] = [
        ("Run", facts, "nothing is known of it"),
        ("Conditions", _conditions(head), "as the scene says: nothing was changed, no fault"),
        ("Versions", head.get("versions") or {}, "not written down"),
    ]
    return "".join(
        f"<div><h3>{title}</h3>{_facts(values, empty)}</div>" for title, values, empty in parts
    )


def _conditions(head: Mapping[str, Any]) -> dict[str, Any]:
    """Give what was made different from the scene: in the plant, its devices and the line."""
    conditions = head.get("conditions") or {}
    found: dict[str, Any] = {}
    for name, usual in (("change", asdict(PlantChange())), ("line", asdict(Faults()))):
        values = conditions.get(name) or {}
        found |= {key: value for key, value in values.items() if value != usual.get(key)}
    if conditions.get("faults"):
        found["faults"] = ", ".join(conditions["faults"])
    return found


def _facts(values: Mapping[str, Any], empty: str) -> str:
    if not values:
        return f'<p class="none">{escape(empty)}</p>'
    rows = "".join(
        f"<dt>{escape(str(key))}</dt><dd>{escape(_said(value))}</dd>"
        for key, value in values.items()
    )
    return f"<dl>{rows}</dl>"


def _said(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
