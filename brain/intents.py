"""What deliberate acts lead to; a refused act says why and changes nothing."""

from __future__ import annotations

import math

import numpy as np

from brain import playback
from brain.cell import CellModel
from brain.geometry import Array, is_rotation
from brain.limits import LimitProfile
from brain.mode import LIMP, Event, allows, apply
from brain.record import replace
from brain.rehearsal import Rehearsal, Request, Stored, find, start_mismatch
from brain.sight import lost_sight
from brain.state import BrainState, TickInputs
from brain.swept import Swept, blocked, swept
from brain.types import NS_PER_S, Goal, GripperState, Intent, Mode
from brain.world import moved_since

KEPT = 8
"""Rehearsals kept at the cell; the oldest go first."""
PATIENCE_NS = 60 * NS_PER_S
"""How long the worker may take before its request is given up."""


EVENTS = {
    "rehearse": Event.REHEARSE,
    "cancel": Event.CANCEL,
    "acknowledge": Event.ACKNOWLEDGE,
    "disarm": Event.DISARM,
}
"""What the acts lead to, apart from a commit."""


def heed(
    cell: CellModel,
    limits: LimitProfile,
    script_may_commit: bool,
    state: BrainState,
    seen: TickInputs,
) -> tuple[BrainState, str | None, Request | None]:
    """Return the state after all acts, why one was refused, and a request for the worker."""
    refused, request = None, None
    if seen.stop:
        state = _leave(state, Event.STOP, "stop pressed", seen.t_ns)
    state = _heed_worker(state, seen)
    for intent in seen.intents:
        state, reason, asked = _act(cell, limits, script_may_commit, state, seen, intent)
        refused, request = reason or refused, asked or request
        if reason is not None:
            state = replace(state, note=f"{intent.kind} refused: {reason}")
    return _expire(state, seen.t_ns), refused, request


def _leave(state: BrainState, event: Event, reason: str, t_ns: int) -> BrainState:
    after = apply(state.mode, event, reason, t_ns)
    if after.mode in LIMP:
        return replace(state, mode=after, playback=None, teleop=None, pending=None)
    return replace(state, mode=after)


def _heed_worker(state: BrainState, seen: TickInputs) -> BrainState:
    finished = seen.finished
    if finished is None or state.pending is None or finished.number != state.pending.number:
        return state
    asked = state.pending
    state = replace(state, pending=None)
    if isinstance(finished.result, Rehearsal):
        stored = Stored(
            rehearsal=finished.result, world=asked.world, used=False, swept=finished.swept
        )
        mode = apply(state.mode, Event.REHEARSED, finished.result.verdict.sentence(), seen.t_ns)
        return replace(state, mode=mode, store=(*state.store, stored)[-KEPT:])
    return replace(state, mode=apply(state.mode, Event.NO_PLAN, finished.result.reason, seen.t_ns))


def _expire(state: BrainState, t_ns: int) -> BrainState:
    waited_ns = t_ns - state.mode.since_ns
    if state.mode.mode is Mode.REHEARSING and waited_ns > PATIENCE_NS:
        reason = f"no rehearsal after {PATIENCE_NS // NS_PER_S} s"
        return replace(state, pending=None, mode=apply(state.mode, Event.NO_PLAN, reason, t_ns))
    if state.mode.mode is Mode.PREVIEW and t_ns >= state.store[-1].rehearsal.expires_ns:
        return replace(state, mode=apply(state.mode, Event.HOLD, "the rehearsal expired", t_ns))
    return state


BIAS_MAX_N = 10.0
"""Ours: more than this at a wrist at rest is no drift of its sensor, but an undeclared payload."""

Acted = tuple[BrainState, str | None, Request | None]


def _act(
    cell: CellModel,
    limits: LimitProfile,
    script_may_commit: bool,
    state: BrainState,
    seen: TickInputs,
    intent: Intent,
) -> Acted:
    if intent.kind == "commit":  # judged in every mode, so that the answer is the true one
        return _commit(cell, limits, script_may_commit, state, seen, intent)
    event = EVENTS.get(intent.kind)
    if event is None:
        return state, "arming is done with the dead-man: let go, then press", None
    if not allows(state.mode, event):
        return state, f"not possible in mode {state.mode.mode}", None
    if intent.kind == "rehearse":
        return _rehearse(cell, state, seen, intent)
    if intent.kind == "cancel":
        state = replace(state, pending=None)
    return _leave(state, event, str(intent.kind), seen.t_ns), None, None


def _rehearse(cell: CellModel, state: BrainState, seen: TickInputs, intent: Intent) -> Acted:
    if any(s is None for s in seen.states) or any(m is None for m in seen.memories):
        return state, "an arm is silent", None
    if state.playback is not None or any(m and np.any(m.dq_rad_s) for m in seen.memories):
        return state, "an arm has not come to rest", None
    reason = _bias_problem(cell, state) or _goal_problem(cell, intent.goal)
    reason = reason or _fingers_problem(cell, state, seen) or lost_sight(state, seen.t_ns)
    if reason is not None or intent.goal is None:
        return state, reason or "no goal was given", None
    request = Request(
        number=state.requests + 1,
        t_ns=seen.t_ns,
        goal=intent.goal,
        world=state.world,
        q_rad=tuple(m.q_rad for m in seen.memories if m is not None),
        measured_rad=tuple(s.q_rad for s in seen.states if s is not None),
        opening_m=tuple(map(_opening, state.opening_m, seen.grippers)),
    )
    mode = apply(state.mode, Event.REHEARSE, "planning and rehearsing", seen.t_ns)
    state = replace(state, mode=mode, requests=request.number, pending=request, note="")
    return state, None, request


def _bias_problem(cell: CellModel, state: BrainState) -> str | None:
    """Say so if a wrist sensor was zeroed against more than it can drift."""
    for arm, bias_n in zip(cell.arms, state.bias_n, strict=True):
        if bias_n is not None and not (force_n := math.hypot(*bias_n)) <= BIAS_MAX_N:
            return (
                f"{arm.name}: its wrist shows {force_n:.1f} N at rest, {BIAS_MAX_N:.0f} allowed: "
                "declare the payload or zero the sensor"
            )
    return None


def _fingers_problem(cell: CellModel, state: BrainState, seen: TickInputs) -> str | None:
    """Say so if nobody knows how far the fingers of a gripper are open."""
    for arm, commanded_m, gripper in zip(cell.arms, state.opening_m, seen.grippers, strict=True):
        if arm.model.gripper is None or commanded_m is not None:
            continue
        if gripper is None or not math.isfinite(gripper.opening_m):
            return f"{arm.name}: its gripper does not say how far it is open"
    return None


def _opening(commanded_m: float | None, gripper: GripperState | None) -> float:
    """Opening to start from: as commanded, as measured before the first command, 0 without one."""
    if commanded_m is None:
        return 0.0 if gripper is None else gripper.opening_m
    return commanded_m


def _goal_problem(cell: CellModel, goal: Goal | None) -> str | None:
    if goal is None:
        return "no goal was given"
    if goal.kind == "task":
        return None if goal.task else "goal: no task was named"
    if goal.arm not in [a.name for a in cell.arms]:
        return f"goal: no arm {goal.arm!r} here"
    if goal.kind == "home":
        return None
    if goal.kind not in ("pose", "joints"):
        return f"goal: no kind {goal.kind!r}"
    dof = cell.arms[cell.arm_index(goal.arm)].model.dof
    pose = goal.kind == "pose"
    value, shape = (goal.T_base_tool, (4, 4)) if pose else (goal.q_rad, (dof,))
    is_array = isinstance(value, np.ndarray) and value.dtype == np.float64
    if value is None or not is_array or value.shape != shape or not np.isfinite(value).all():
        return f"goal: the {goal.kind} is missing, of another shape than {shape} or not finite"
    if pose and not (is_rotation(value) and value[3].tolist() == [0.0, 0.0, 0.0, 1.0]):
        return "goal: the pose is not rigid"
    return None


def _commit(
    cell: CellModel,
    limits: LimitProfile,
    script_may_commit: bool,
    state: BrainState,
    seen: TickInputs,
    intent: Intent,
) -> Acted:
    stored = find(state.store, intent.digest, seen.t_ns)
    if isinstance(stored, str):
        return state, stored, None
    if (lost := lost_sight(state, seen.t_ns)) is not None:
        return state, lost, None
    found = stored.rehearsal
    reason = _commit_problem(cell, limits, script_may_commit, state, seen, intent, found)
    if reason is None and stored is not state.store[-1]:
        reason = "a newer rehearsal is the one that is shown; rehearse this one again"
    if reason is not None or intent.nonce is None:
        return state, reason or "no nonce was given", None
    path = stored.swept or swept(cell, stored.world, found.stream, found.held)
    held_q = np.concatenate([m.q_rad for m in seen.memories if m is not None])
    play = playback.begin(found.digest, found.stream, found.prediction, path, held_q)
    changed = moved_since(state.world, stored.world)
    margin_m = limits.clearance_stop_m + _offset_reach(path, cell, play.offset_rad)
    reason = blocked(path, state.world, changed, 0, margin_m) if changed else None
    if reason is not None:
        return state, f"the way is no longer free: {reason}", None
    mode = apply(state.mode, Event.COMMIT, f"committed by {intent.source}", seen.t_ns)
    store = tuple(replace(s, used=True) if s is stored else s for s in state.store)
    nonces = state.nonces | {intent.nonce}
    return replace(state, mode=mode, playback=play, store=store, nonces=nonces, note=""), None, None


def _offset_reach(path: Swept, cell: CellModel, offset_rad: Array) -> float:
    """How far in m the fading offset can take any part of an arm from the rehearsed way."""
    farthest, column = 0.0, 0
    for arm in cell.arms:
        mine = np.abs(offset_rad[column : column + arm.model.dof])
        column += arm.model.dof
        for part in path.parts:
            if part.body.name == arm.name:
                reach_m = mine @ part.body.arrays.reach_m
                farthest = max(farthest, float(np.max(reach_m, initial=0.0)))
    return farthest


def _commit_problem(
    cell: CellModel,
    limits: LimitProfile,
    script_may_commit: bool,
    state: BrainState,
    seen: TickInputs,
    intent: Intent,
    found: Rehearsal,
) -> str | None:
    if not allows(state.mode, Event.COMMIT):
        return f"not possible in mode {state.mode.mode}"
    if intent.source in ("script", "trace") and not script_may_commit:
        return "a script may commit only where every arm is simulated"
    if intent.nonce in state.nonces:
        return "this commit was received before"
    operator = state.operator if seen.operator is None else seen.operator
    if operator is None or not operator.engaged:
        return "hold the dead-man while committing"
    if found.scene_digest != cell.scene_digest or found.limits != limits.name:
        return "it was rehearsed for another scene or other limits"
    if found.verdict.kind in ("contact", "unseen"):
        return found.verdict.sentence()
    states = [s for s in seen.states if s is not None]
    if len(states) < len(cell.arms) or any(m is None for m in seen.memories):
        return "an arm is silent"
    openings = tuple(None if g is None else g.opening_m for g in seen.grippers)
    measured = tuple(s.q_rad for s in states)
    commanded = tuple(m.q_rad for m in seen.memories if m is not None)
    return next(
        (
            reason
            for q_rad in (measured, commanded)
            if (reason := start_mismatch(cell, found, q_rad, openings, state.world.held))
        ),
        None,
    )
