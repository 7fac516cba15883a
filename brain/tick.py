"""One tick of the brain: listen, believe, decide the mode, and say what each arm should do next.

`tick` is pure: the same state and inputs give the same answer. It may be clever; `gate` looks at
all it wants.
"""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from brain import intents, playback, teleop, wrench
from brain.cell import CellModel
from brain.gate import ROUNDING
from brain.geometry import Array, largest, rotation_angle
from brain.kinematics import tool_travel
from brain.limits import LimitProfile
from brain.mode import LIMP, MOVING, Event, apply, dead_man
from brain.proximity import Proximity
from brain.record import replace
from brain.rehearsal import GripEvent
from brain.sight import lost_sight
from brain.state import BrainState, Playback, TickInputs, TickOutputs
from brain.swept import blocked
from brain.types import Action, Mode
from brain.world import Held, World, grasp, move_object, release

MOVED_M = 0.001
MOVED_RAD = 0.01
"""A tracked object that moved less than this is where it was: the world keeps its version."""
RESTING_RAD_S = 0.05
"""An arm slower than this stands still; well above the noise of measured speeds."""


class Brain:
    """What a tick needs beyond state and inputs: the cell, its limits and one follower per arm."""

    def __init__(self, cell: CellModel, limits: LimitProfile, *, script_may_commit: bool) -> None:
        """Prepare for a cell; scripts may commit only where every arm is simulated or virtual."""
        self.cell = cell
        self.limits = limits
        self.script_may_commit = script_may_commit
        self.proximity = Proximity(cell)
        self.drivers = tuple(
            teleop.Driver(arm, limits.planning(), cell.tick_ns * 1e-9) for arm in cell.arms
        )


def tick(brain: Brain, state: BrainState, seen: TickInputs) -> tuple[BrainState, TickOutputs]:
    """Return the next state and what is wanted of every arm."""
    force_n, state = _forces(brain, state, seen)
    state = _heed_gate(state, seen)
    state = _believe(brain, state, seen)
    state, refused, request = intents.heed(
        brain.cell, brain.limits, brain.script_may_commit, state, seen
    )
    state = _heed_operator(brain, state, seen)
    wishes: list[Array | None] = [None] * len(brain.cell.arms)
    if state.playback is not None:
        state, wishes = _play(brain, state, seen, force_n)
    elif state.mode.mode is Mode.TELEOP and state.teleop is not None:
        state, wishes = _drive(brain, state, seen)
    return state, TickOutputs(
        wishes=tuple(wishes),
        opening_m=state.opening_m,
        grip_force_n=state.grip_force_n,
        force_n=force_n,
        request=request,
        refused=refused,
    )


# ----------------------------------------------------------- what it hears and believes


def _forces(
    brain: Brain, state: BrainState, seen: TickInputs
) -> tuple[tuple[float | None, ...], BrainState]:
    """Tared force of each wrist, NaN where its sensor is silent, None where there is none.

    A sensor is zeroed while the cell is disarmed, and when it was never zeroed.
    """
    norms: list[float | None] = []
    bias = list(state.bias_n)
    for i, arm in enumerate(brain.cell.arms):
        sample, arm_state = seen.wrenches[i], seen.states[i]
        if not arm.has_wrench:
            norms.append(None)
            continue
        if sample is None or arm_state is None or _old(brain, seen.t_ns - sample.t_ns):
            norms.append(math.nan)
            continue
        bias_n = bias[i]
        if bias_n is None or state.mode.mode is Mode.DISARMED:
            bias_n = bias[i] = wrench.tared(arm, arm_state.q_rad, sample, None)
        norms.append(wrench.touch(arm, arm_state.q_rad, sample, bias_n))
    if all(a is b for a, b in zip(bias, state.bias_n, strict=True)):
        return tuple(norms), state
    return tuple(norms), replace(state, bias_n=tuple(bias))


def _old(brain: Brain, age_ns: int) -> bool:
    return not 0 <= age_ns <= brain.limits.state_age_ns


def _heed_gate(state: BrainState, seen: TickInputs) -> BrainState:
    """What the gate stopped or held in the last tick is stopped or held, and played no further."""
    mode = state.mode
    for answer in seen.answers:
        if answer.action is Action.STOP and mode.mode not in LIMP:
            mode = apply(mode, Event.STOP, answer.sentence(), seen.t_ns)
            return replace(state, mode=mode, playback=None, teleop=None, pending=None)
    for answer in seen.answers:
        if answer.action is Action.HOLD and mode.mode not in LIMP:
            if mode.mode in MOVING:
                mode = apply(mode, Event.HOLD, answer.sentence(), seen.t_ns)
            return replace(state, mode=mode, playback=None, teleop=None)
    return state


def _believe(brain: Brain, state: BrainState, seen: TickInputs) -> BrainState:
    """Take over where tracked objects are; a change on the path ahead holds a commit."""
    world = state.world
    changed: set[str] = set()
    held = {h.name for h in world.held}
    sighted_ns = dict(state.sighted_ns)
    for item in seen.objects:
        if not np.isfinite(item.T_world_object).all():  # as if nobody had seen it
            continue
        sighted_ns[item.name] = item.t_ns
        if item.name in held:  # it is where the hand is
            continue
        known = world.object(item.name).T_world_object
        moved_m = float(np.linalg.norm(item.T_world_object[:3, 3] - known[:3, 3]))
        turned = rotation_angle(item.T_world_object, known)
        if moved_m > MOVED_M or turned > MOVED_RAD:
            world = move_object(world, item.name, item.T_world_object)
            changed.add(item.name)
    if seen.objects:
        state = replace(state, world=world, sighted_ns=sighted_ns)
    if state.mode.mode in MOVING and (lost := lost_sight(state, seen.t_ns)) is not None:
        return replace(state, mode=apply(state.mode, Event.HOLD, lost, seen.t_ns))
    if not changed:
        return state
    play = state.playback
    if play is not None and play.swept is not None and state.mode.mode is Mode.COMMIT:
        found = blocked(
            play.swept, world, changed, playback.row(play), brain.limits.clearance_stop_m
        )
        if found is not None:
            return replace(state, mode=apply(state.mode, Event.HOLD, found, seen.t_ns))
    return state


def _heed_operator(brain: Brain, state: BrainState, seen: TickInputs) -> BrainState:
    """Take the newest sample of the hand and look at the dead-man."""
    known = state.operator
    if seen.operator is not None and (known is None or seen.operator.t_ns >= known.t_ns):
        state = replace(state, operator=seen.operator)
    operator = state.operator
    silent_ns = 0 if operator is None else seen.t_ns - operator.t_ns
    before = state.mode
    if operator is None or silent_ns > brain.limits.seat_silent_ns:
        if before.mode in MOVING:  # nobody has seen the button up: what is silent lets nothing go
            reason = f"the seat is silent for {silent_ns // 1_000_000} ms"
            state = replace(state, mode=apply(before, Event.HOLD, reason, seen.t_ns))
    elif before.mode in MOVING or not operator.engaged or _resting(state, seen):
        mode = dead_man(before, operator.engaged, seen.t_ns)
        state = state if mode is before else replace(state, mode=mode)
        if state.mode.mode is Mode.TELEOP and before.mode is not Mode.TELEOP:
            return teleop.engage(brain.cell, state, operator, seen)
    if state.mode.mode is not Mode.TELEOP and state.teleop is not None:
        return replace(state, teleop=None)
    return state


def _resting(state: BrainState, seen: TickInputs) -> bool:
    """Whether every arm stands still, so that it can be armed or taken by the hand."""
    if state.playback is not None:
        return False
    led = [m for m in seen.memories if m and largest(m.dq_rad_s) + largest(m.ddq_rad_s2) > 0.0]
    return not led and all(s is None or largest(s.dq_rad_s) < RESTING_RAD_S for s in seen.states)


# ------------------------------------------------------------------- what it wants done


def _drive(
    brain: Brain, state: BrainState, seen: TickInputs
) -> tuple[BrainState, list[Array | None]]:
    """Lead one arm by the hand."""
    assert state.teleop is not None
    i = state.teleop.arm
    wishes: list[Array | None] = [None] * len(brain.cell.arms)
    where = (seen.states, seen.t_ns, state.world)
    near = partial(brain.proximity.distance, *where)
    around = partial(brain.proximity.around, *where)
    placed = partial(brain.proximity.placed, *where)
    state, q_rad = teleop.step(brain.cell, brain.drivers[i], near, around, placed, state, seen)
    if q_rad is not None:
        wishes[i] = q_rad
    return state, wishes


def _play(
    brain: Brain, state: BrainState, seen: TickInputs, force_n: tuple[float | None, ...]
) -> tuple[BrainState, list[Array | None]]:
    """Send the next row, or slow down on the path when the mode is no longer COMMIT."""
    play, dt_s = state.playback, brain.cell.tick_ns * 1e-9
    wishes: list[Array | None] = [None] * len(brain.cell.arms)
    assert play is not None
    if state.mode.mode is Mode.COMMIT:
        if playback.finished(play, dt_s):
            mode = apply(state.mode, Event.DONE, playback.DONE, seen.t_ns)
            return replace(state, mode=mode, playback=None, departure=play.departure), wishes
        measured = [s.q_rad for s in seen.states if s is not None]
        if len(measured) == len(seen.states):  # where one is silent the gate stops
            openings = tuple(None if g is None else g.opening_m for g in seen.grippers)
            play, departs = playback.compare(play, np.concatenate(measured), openings, force_n)
            departs = departs or _too_fast(brain, state, seen, play)
            if departs is not None:
                state = replace(state, mode=apply(state.mode, Event.HOLD, departs, seen.t_ns))
    if state.mode.mode is not Mode.COMMIT:
        play = playback.slow(play, brain.limits, dt_s)
        if play.rate == 0.0:
            return replace(state, playback=None, departure=play.departure), wishes
    world, k = state.world, playback.row(play)
    for event in play.stream.events:
        if playback.reaches(play, event.row):
            world = _believe_grip(world, event)
    state = replace(
        state,
        world=world,
        playback=playback.advance(play),
        departure=play.departure,
        opening_m=tuple(
            None if arm.model.gripper is None else float(play.stream.opening_m[k, i])
            for i, arm in enumerate(brain.cell.arms)
        ),
        grip_force_n=tuple(float(f) for f in play.stream.grip_force_n[k]),
    )
    return state, _split(brain.cell, playback.joints(play, dt_s))


def _too_fast(brain: Brain, state: BrainState, seen: TickInputs, play: Playback) -> str | None:
    """Say so if something that moves has come too near for the row that is due.

    The gate would hold the arm as well, but off its path.
    """
    if all(o.role != "moving" for o in state.world.objects):
        return None
    dt_s = brain.cell.tick_ns * 1e-9
    for i, q_rad in enumerate(_split(brain.cell, playback.joints(play, dt_s))):
        memory, arm = seen.memories[i], brain.cell.arms[i]
        if memory is None or q_rad is None:
            continue
        around_m = brain.proximity.around(seen.states, seen.t_ns, state.world, i, q_rad)
        allowed_m_s = brain.limits.tool_speed_m_s * brain.limits.speed_share(around_m)
        if tool_travel(arm.model, memory.q_rad, q_rad) > allowed_m_s * dt_s * ROUNDING:
            return f"something is {1000 * around_m:.0f} mm from {arm.name}, too near for its speed"
    return None


def _believe_grip(world: World, event: GripEvent) -> World:
    if event.T_tool_object is not None:
        return grasp(world, Held(arm=event.arm, name=event.name, T_tool_object=event.T_tool_object))
    if event.T_world_object is not None:
        return release(world, event.arm, event.T_world_object)
    return world


def _split(cell: CellModel, q_all: Array) -> list[Array | None]:
    wishes: list[Array | None] = []
    column = 0
    for arm in cell.arms:
        wishes.append(q_all[column : column + arm.model.dof])
        column += arm.model.dof
    return wishes
