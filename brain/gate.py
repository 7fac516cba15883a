"""The last look before an arm moves.

Dull on purpose: it may allow, scale down, hold or stop, never invent motion.

It trusts nothing that the tick says: it keeps its own memory of what it let through, has its own
limits and asks for clearance itself. HOLD brakes the last motion to rest along its own direction;
STOP hands the arm to its own brake. Rules are looked at in the order in which they stand here; the
first that refuses is the answer.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from brain.cell import CellArm, CellModel
from brain.geometry import Array, largest, outside_box
from brain.kinematics import tool_pose, tool_travel
from brain.limits import LimitProfile, joint_speed
from brain.mode import LIMP, MOVING
from brain.motion import Motion, at_rest, brake, farther_out, fastest, step_to
from brain.record import Record
from brain.types import Action, Answer, ArmCommand, ArmState, Mode

ROUNDING = 1.0 + 1e-6
"""Finite differences of a motion exactly at a limit come out above it by rounding."""

COMMAND_TICKS = 5
"""A command that reaches the device more ticks than this after it was made is not executed."""

Near = tuple[float, float]
"""Signed distance in m of an arm to all it must not touch, and to what is around without itself."""


class GateView(Record):
    """All that the gate looks at in one tick, apart from its memory; tuples hold one entry per arm.

    `wishes` are joints (n,), or None to come to rest and stay. `force_n` is the norm of the tared
    wrist force, None without a sensor, NaN from a silent one. `operator_age_ns` is the age of the
    newest valid sample of the hand, None before the first. `near` answers for an arm at joints
    (n,), with NaN if those are not finite.
    """

    t_ns: int
    mode: Mode
    wishes: tuple[Array | None, ...]
    states: tuple[ArmState | None, ...]
    force_n: tuple[float | None, ...]
    engaged: bool
    operator_age_ns: int | None
    near: Callable[[int, Array], Near]


class Passed(Record):
    """The gate's result for one arm, with its distances as in `GateView` where it was sent."""

    answer: Answer
    memory: Motion | None
    command: ArmCommand
    clearance_m: float | None
    around_m: float | None


def gate(
    cell: CellModel, limits: LimitProfile, memories: tuple[Motion | None, ...], view: GateView
) -> tuple[Passed, ...]:
    """Answer for every arm of the cell in one tick."""
    return tuple(_arm(cell, limits, i, memories[i], view) for i in range(len(cell.arms)))


def _arm(
    cell: CellModel, limits: LimitProfile, index: int, memory: Motion | None, view: GateView
) -> Passed:
    arm = cell.arms[index]
    state = _sound_state(arm, limits, memory, index, view)
    if isinstance(state, Answer):
        return _stopped(cell, index, state, view)
    memory = memory or at_rest(state.q_rad)
    wish = view.wishes[index]
    answer = _may_move(arm, limits, wish, view)
    if wish is not None and answer is None:
        return _motion(cell, limits, index, memory, wish, view)
    answer = answer or _answer(arm, Action.ALLOW, "rest", 0.0, 0.0)
    step = brake(memory, limits.stop_deceleration_rad_s2, cell.tick_ns * 1e-9)
    return _let(cell, index, answer, step, view.near(index, step.q_rad), view)


# -------------------------------------------------------------------- what stops an arm


def _sound_state(
    arm: CellArm, limits: LimitProfile, memory: Motion | None, index: int, view: GateView
) -> ArmState | Answer:
    """Return the arm's state if it may be moved on, the answer that stops it otherwise."""
    state, force_n = view.states[index], view.force_n[index]
    if view.mode in LIMP:
        return _answer(arm, Action.STOP, f"mode {view.mode}", 0.0, 0.0)
    if state is None:
        return _answer(arm, Action.STOP, "no state", 0.0, 0.0)
    age_ns = view.t_ns - state.t_ns
    if not 0 <= age_ns <= limits.state_age_ns:
        return _answer(arm, Action.STOP, "state age ms", age_ns * 1e-6, limits.state_age_ns * 1e-6)
    if not _sane(arm, state):
        return _answer(arm, Action.STOP, "state not finite", float("nan"), 0.0)
    if state.stopped and view.mode in MOVING:
        return _answer(arm, Action.STOP, "arm stopped by itself", 1.0, 0.0)
    if force_n is not None and not force_n <= limits.force_n:
        return _answer(arm, Action.STOP, "force N", force_n, limits.force_n)
    if memory is not None:
        error_rad = largest(state.q_rad - memory.q_rad)
        if error_rad > limits.tracking_rad:
            return _answer(arm, Action.STOP, "tracking error rad", error_rad, limits.tracking_rad)
    return state


def _sane(arm: CellArm, state: ArmState) -> bool:
    n = arm.model.dof
    return state.q_rad.shape == (n,) and math.isfinite(largest(state.q_rad))


# ----------------------------------------------------------- whether it may move at all


def _may_move(
    arm: CellArm, limits: LimitProfile, wish: Array | None, view: GateView
) -> Answer | None:
    if view.mode in MOVING:
        oldest_ns = limits.hand_age_ns if view.mode is Mode.TELEOP else limits.seat_silent_ns
        age_ns = view.operator_age_ns
        if age_ns is None:
            return _answer(arm, Action.HOLD, "no operator", 0.0, 0.0)
        if not 0 <= age_ns <= oldest_ns:
            return _answer(arm, Action.HOLD, "input age ms", age_ns * 1e-6, oldest_ns * 1e-6)
        if not view.engaged:
            return _answer(arm, Action.HOLD, "dead-man", 0.0, 1.0)
    if wish is not None and not (wish.shape == (arm.model.dof,) and math.isfinite(largest(wish))):
        return _answer(arm, Action.HOLD, "command not finite", float("nan"), 0.0)
    return None


# --------------------------------------------------------------------------- the motion


def _motion(
    cell: CellModel,
    limits: LimitProfile,
    index: int,
    memory: Motion,
    wish: Array,
    view: GateView,
) -> Passed:
    arm, dt_s = cell.arms[index], cell.tick_ns * 1e-9
    near = view.near(index, wish)
    answer = _speed(arm, limits, memory, wish, near[1], dt_s)
    step = step_to(memory, wish, dt_s)
    if answer.action is Action.LIMIT and view.mode is Mode.TELEOP:
        share = answer.limit / answer.value
        step = step_to(memory, memory.q_rad + share * (wish - memory.q_rad), dt_s)
        near = view.near(index, step.q_rad)
    elif answer.action is Action.LIMIT and view.mode in MOVING:
        # Scaled here, a rehearsed motion would leave its path.
        answer = _answer(arm, Action.HOLD, answer.rule, answer.value, answer.limit)
    if answer.action is not Action.HOLD:
        answer = (
            _dynamics(arm, limits, memory, step, answer, view.mode, dt_s)
            or _place(cell, limits, index, memory, step, near[0], view)
            or answer
        )
    if answer.action is Action.HOLD:
        step = brake(memory, limits.stop_deceleration_rad_s2, dt_s)
        near = view.near(index, step.q_rad)
    return _let(cell, index, answer, step, near, view)


def _speed(
    arm: CellArm, limits: LimitProfile, memory: Motion, wish: Array, around_m: float, dt_s: float
) -> Answer:
    """Worst of joint speed and tool speed; the tool's limit falls with the clearance."""
    allowed = joint_speed(limits, arm.model.limits)
    worst, joint_over = fastest(memory.q_rad, wish, allowed, dt_s)
    tool_m_s = tool_travel(arm.model, memory.q_rad, wish) / dt_s
    tool_allowed = limits.tool_speed_m_s * limits.speed_share(around_m)
    tool_over = tool_m_s / tool_allowed
    if max(joint_over, tool_over) <= ROUNDING:
        return _answer(arm, Action.ALLOW, "motion", 0.0, 0.0)
    if tool_over > joint_over:
        return _answer(arm, Action.LIMIT, "tool speed m/s", tool_m_s, tool_allowed)
    rule = f"joint {worst + 1} speed rad/s"
    allowed_rad_s = float(allowed[worst])
    return _answer(arm, Action.LIMIT, rule, joint_over * allowed_rad_s, allowed_rad_s)


def _dynamics(
    arm: CellArm,
    limits: LimitProfile,
    memory: Motion,
    step: Motion,
    speed: Answer,
    mode: Mode,
    dt_s: float,
) -> Answer | None:
    """Acceleration and jerk; what was scaled or comes to rest may jerk, the latter brake harder."""
    speed_rad_s = largest(step.dq_rad_s)
    slower = speed_rad_s <= largest(memory.dq_rad_s)
    if mode not in MOVING and not slower:
        return _answer(arm, Action.HOLD, f"motion in mode {mode}", speed_rad_s, 0.0)
    scaled = speed.action is Action.LIMIT
    slowing = slower and (mode not in MOVING or scaled)
    most = limits.stop_deceleration_rad_s2 if slowing else limits.joint_acceleration_rad_s2
    value = largest(step.ddq_rad_s2)
    if value > most * ROUNDING:
        return _answer(arm, Action.HOLD, "joint acceleration rad/s^2", value, most)
    value = largest(step.ddq_rad_s2 - memory.ddq_rad_s2) / dt_s
    if not slowing and not scaled and value > limits.joint_jerk_rad_s3 * ROUNDING:
        return _answer(arm, Action.HOLD, "joint jerk rad/s^3", value, limits.joint_jerk_rad_s3)
    return None


def _place(
    cell: CellModel,
    limits: LimitProfile,
    index: int,
    memory: Motion,
    step: Motion,
    clearance_m: float,
    view: GateView,
) -> Answer | None:
    """Joint range, workspace and clearance: outside is allowed only on the way back in."""
    arm = cell.arms[index]
    joints = arm.model.limits
    worst, over_rad = farther_out(memory.q_rad, step.q_rad, joints.q_min_rad, joints.q_max_rad)
    if over_rad > 0.0:
        rule = f"joint {worst + 1} beyond its range rad"
        return _answer(arm, Action.HOLD, rule, over_rad, 0.0)
    outside_m = _outside(cell, arm, step.q_rad)
    if outside_m > 0.0 and outside_m > _outside(cell, arm, memory.q_rad):
        return _answer(arm, Action.HOLD, "outside the workspace m", outside_m, 0.0)
    is_near = not clearance_m >= limits.clearance_stop_m
    if is_near and not clearance_m > view.near(index, memory.q_rad)[0]:
        return _answer(arm, Action.HOLD, "clearance m", clearance_m, limits.clearance_stop_m)
    return None


# ----------------------------------------------------------------------------- plumbing


def _outside(cell: CellModel, arm: CellArm, q_rad: Array) -> float:
    return outside_box(cell.workspace_m, arm.T_world_base, tool_pose(arm.model, q_rad))


def _answer(arm: CellArm, action: Action, rule: str, value: float, limit: float) -> Answer:
    return Answer(action=action, rule=rule, value=value, limit=limit, arm=arm.name)


def _let(
    cell: CellModel, index: int, answer: Answer, step: Motion, near: Near, view: GateView
) -> Passed:
    return Passed(
        answer=answer,
        memory=step,
        command=_command(cell, step.q_rad, view),
        clearance_m=near[0],
        around_m=near[1],
    )


def _stopped(cell: CellModel, index: int, answer: Answer, view: GateView) -> Passed:
    """Hand the arm to its own brake; what it will be held at afterwards is where it is then."""
    arm, state = cell.arms[index], view.states[index]
    resting = None if state is None or not _sane(arm, state) else at_rest(state.q_rad)
    command = _command(cell, None, view)
    return Passed(answer=answer, memory=resting, command=command, clearance_m=None, around_m=None)


def _command(cell: CellModel, q_rad: Array | None, view: GateView) -> ArmCommand:
    return ArmCommand(
        t_ns=view.t_ns,
        seq=view.t_ns // cell.tick_ns,
        expires_ns=view.t_ns + COMMAND_TICKS * cell.tick_ns,
        q_rad=q_rad,
        stop=q_rad is None,
    )
