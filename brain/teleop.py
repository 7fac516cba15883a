"""Driving one arm by hand.

Clutch, led reference pose, joints by damped least squares, jerk-limited following.

The reference pose is led from the tool toward the hand no faster than the tool may go, so a far
target is approached, never jumped to. What cannot be reached is answered by the nearest pose and a
note that says why.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from brain import retarget
from brain.cell import CellArm, CellModel
from brain.geometry import Array, matrix_to_rotvec, rotvec_to_matrix
from brain.kinematics import tool_pose
from brain.limits import LimitProfile, follow, joint_speed, soft_range
from brain.mode import Event, apply
from brain.motion import Motion
from brain.record import replace
from brain.retarget import Hand
from brain.servo import track, workspace
from brain.state import BrainState, Teleop, TickInputs
from brain.types import NS_PER_S, OperatorInput

Clearance = Callable[[int, Array], float]
"""(arm, its joints) -> signed distance in m, NaN if not finite."""

TURN_RAD_S = 1.0
PULL_1_S = 40.0
"""Natural frequency of the pull from reference to hand.

Settles in about 0.1 s, follows a steady hand without lag.
"""
SPEED_UP_S = 0.15
"""The reference takes this long to its full speed."""
LAG_RAD = 0.15
"""A reference that is this far ahead of the joints waits for them."""
USUAL_INTERVAL_NS = NS_PER_S // 60
"""Seats send at least 60 samples a second; what is older than that is a gap."""
FAR_M = 0.01
FAR_RAD = np.deg2rad(5.0)
SINGULAR = 0.02
INSIDE_M = 0.01
"""The hand's target stays this far inside the workspace, so that the tool does not swing out."""
KEEP_M = 0.002
"""How much earlier than the gate the drive stops short of an obstacle."""
GRIP_SHARE = 0.3
"""Share of the gripper's force range that a hand uses."""


class Driver:
    """The kernels' scratch and the follower of one arm; it remembers nothing between ticks."""

    def __init__(self, arm: CellArm, limits: LimitProfile, dt_s: float) -> None:
        """Prepare for one arm; `limits` is the profile for planning."""
        self.arm = arm
        self.limits = limits
        self.dt_s = dt_s
        self.low_rad, self.high_rad = soft_range(limits, arm.model.limits)
        self.speed_rad_s = joint_speed(limits, arm.model.limits)
        self.step_max_rad = self.speed_rad_s * dt_s
        self.work = workspace(arm.model.dof)

    def reach(self, q_rad: Array) -> tuple[Array, Array]:
        """Return the lowest and highest joints (n,), (n,) of the next tick.

        No faster into the end of the range than half of the acceleration can brake before it.
        """
        ease = self.limits.joint_acceleration_rad_s2 * self.dt_s * self.dt_s
        down = np.sqrt(ease * np.maximum(q_rad - self.low_rad, 0.0))
        up = np.sqrt(ease * np.maximum(self.high_rad - q_rad, 0.0))
        return np.maximum(self.low_rad, q_rad - down), np.minimum(self.high_rad, q_rad + up)


def engage(
    cell: CellModel, state: BrainState, operator: OperatorInput, seen: TickInputs
) -> BrainState:
    """Take the arm by the hand, or hold and say why not."""
    reason = retarget.refuse(operator, None)
    known = [a.name for a in cell.arms]
    if operator.arm not in known:
        reason = f"no arm {operator.arm!r} here; there is {', '.join(known)}"
    if reason is not None or operator.T_seat_hand is None:
        mode = apply(state.mode, Event.HOLD, reason or "no hand", seen.t_ns)
        return replace(state, mode=mode, teleop=None)
    index = known.index(operator.arm)
    memory = seen.memories[index]
    if memory is None:
        mode = apply(state.mode, Event.HOLD, "the arm has not reported yet", seen.t_ns)
        return replace(state, mode=mode, teleop=None)
    hand = retarget.first(operator.t_ns, operator.T_seat_hand)
    T_base_tool = tool_pose(cell.arms[index].model, memory.q_rad)
    return replace(
        state,
        note="",
        teleop=Teleop(
            arm=index,
            clutch=retarget.engage(hand, T_base_tool, scale=1.0),
            hand=hand,
            seq=operator.seq,
            T_base_reference=T_base_tool,
            reference_m_s=np.zeros(3),
            reference_rad_s=np.zeros(3),
            q_goal_rad=memory.q_rad,
        ),
    )


def step(
    cell: CellModel,
    driver: Driver,
    clearance: Clearance,
    around: Clearance,
    state: BrainState,
    seen: TickInputs,
) -> tuple[BrainState, Array | None]:
    """Return joints (n,) for this tick, None to hold; then the state's mode has the reason."""
    drive, operator = state.teleop, state.operator
    if drive is None or operator is None:
        return state, None
    arm, memory = cell.arms[drive.arm], seen.memories[drive.arm]
    hand, reason = drive.hand, None
    if operator.arm != arm.name:
        reason = f"the seat now drives {operator.arm}"
    elif operator.seq != drive.seq:
        reason = retarget.refuse(operator, hand)
    if reason is not None or memory is None or operator.T_seat_hand is None:
        mode = apply(state.mode, Event.HOLD, reason or "the arm is silent", seen.t_ns)
        return replace(state, mode=mode, teleop=None), None
    if operator.seq != drive.seq:
        hand = retarget.follow(hand, operator.t_ns, operator.T_seat_hand)
    gap_ns = seen.t_ns - hand.t_ns - USUAL_INTERVAL_NS
    wanted = retarget.wanted_tool(drive.clutch, hand, arm.T_base_seat[:3, :3], gap_ns)
    wanted, outside = _inside(cell, arm, wanted, drive.T_base_reference)
    near_m = seen.clearance_m[drive.arm]
    share = driver.limits.speed_share(around(drive.arm, memory.q_rad))
    lag_rad = float(np.max(np.abs(drive.q_goal_rad - memory.q_rad)))
    waiting = max(1.0 - lag_rad / LAG_RAD, 0.0)  # the joints have to catch up first
    drive = replace(drive, hand=hand, seq=operator.seq)
    led = _lead(drive, wanted, hand, arm.T_base_seat[:3, :3], driver, share * waiting)
    q_goal, note = _joints(arm, driver, drive.q_goal_rad, led.T_base_reference)
    fastest_m_s = driver.limits.tool_speed_m_s * share
    q_rad, blocked = _follow(driver, clearance, drive, memory, q_goal, near_m, fastest_m_s)
    if blocked is None:
        drive = replace(led, q_goal_rad=q_goal)
    else:  # reference and goal wait where they are
        drive = replace(drive, reference_m_s=np.zeros(3), reference_rad_s=np.zeros(3))
    state = _grip(arm, drive.arm, state, operator)
    return replace(state, teleop=drive, note=blocked or outside or note), q_rad


def _inside(
    cell: CellModel, arm: CellArm, T_base_tool: Array, T_base_reference: Array
) -> tuple[Array, str]:
    """Return the nearest pose inside the workspace, and what to tell the operator.

    A reference that is outside already stays there until the hand leads it in.
    """
    wanted_m = (arm.T_world_base @ T_base_tool)[:3, 3]
    at_m = (arm.T_world_base @ T_base_reference)[:3, 3]
    low_m = np.minimum(cell.workspace_m[0] + INSIDE_M, at_m)
    high_m = np.maximum(cell.workspace_m[1] - INSIDE_M, at_m)
    legal_m = np.clip(wanted_m, low_m, high_m)
    if np.array_equal(wanted_m, legal_m):
        return T_base_tool, ""
    out = T_base_tool.copy()
    out[:3, 3] += arm.T_world_base[:3, :3].T @ (legal_m - wanted_m)
    beyond_m = float(np.linalg.norm(wanted_m - legal_m))
    return out, f"the hand is {100 * beyond_m:.0f} cm outside the workspace: nearest pose kept"


def _lead(
    drive: Teleop, wanted: Array, hand: Hand, R_base_seat: Array, driver: Driver, share: float
) -> Teleop:
    """Lead the reference pose toward the wanted one, no faster than the tool may go."""
    speed, turn = driver.limits.tool_speed_m_s * share, TURN_RAD_S * share
    at = drive.T_base_reference
    linear = _attract(
        wanted[:3, 3] - at[:3, 3],
        drive.reference_m_s,
        drive.clutch.scale * (R_base_seat @ hand.speed_m_s),
        speed,
        driver.dt_s,
    )
    angular = _attract(
        matrix_to_rotvec(wanted[:3, :3] @ at[:3, :3].T),
        drive.reference_rad_s,
        R_base_seat @ hand.turn_rad_s,
        turn,
        driver.dt_s,
    )
    out = at.copy()
    out[:3, 3] += driver.dt_s * linear
    out[:3, :3] = rotvec_to_matrix(driver.dt_s * angular) @ at[:3, :3]
    return replace(drive, T_base_reference=out, reference_m_s=linear, reference_rad_s=angular)


def _attract(way: Array, speed: Array, aim_speed: Array, fastest: float, dt_s: float) -> Array:
    """Next speed (3,) of a critically damped pull along `way`, at most `fastest`.

    Exactly 0 at rest.
    """
    pull = PULL_1_S * PULL_1_S * way + 2.0 * PULL_1_S * (aim_speed - speed)
    pull = _at_most(pull, fastest / SPEED_UP_S)
    return _at_most(speed + dt_s * pull, fastest)


def _at_most(vector: Array, longest: float) -> Array:
    length = float(np.linalg.norm(vector))
    return vector if length <= longest else vector * (longest / length)


def _joints(arm: CellArm, driver: Driver, q_from_rad: Array, reference: Array) -> tuple[Array, str]:
    """Joints (n,) for the reference, near the last ones; and what to tell the operator."""
    q_goal = np.empty(arm.model.dof)
    low_rad, high_rad = driver.reach(q_from_rad)
    off_m, off_rad, sigma = track(
        arm.model.arrays,
        low_rad,
        high_rad,
        q_from_rad,
        reference,
        driver.step_max_rad,
        q_goal,
        driver.work,
    )
    if off_m > FAR_M or off_rad > FAR_RAD:
        edge = np.flatnonzero((q_goal <= low_rad) | (q_goal >= high_rad))
        why = f"joint {edge[0] + 1} is at its limit" if edge.size else "out of reach"
        return q_goal, f"{why}: nearest pose kept, {100 * off_m:.0f} cm away"
    if sigma < SINGULAR:
        return q_goal, "near a singular pose: motion is damped"
    return q_goal, ""


def _follow(
    driver: Driver,
    clearance: Clearance,
    drive: Teleop,
    now: Motion,
    q_goal: Array,
    near_m: float | None,
    fastest_m_s: float,
) -> tuple[Array, str | None]:
    """Joints for this tick; short of an obstacle the arm stays, and may only go away from it."""
    moving = bool(np.any(now.dq_rad_s)) or bool(np.any(now.ddq_rad_s2))
    if not moving and np.array_equal(q_goal, now.q_rad):
        return now.q_rad, None

    def share(dq_rad_s: Array) -> float:
        tool_m_s = _tool_speed(driver, now.q_rad, dq_rad_s)
        return 1.0 if tool_m_s <= fastest_m_s else fastest_m_s / tool_m_s

    dq_goal = (q_goal - drive.q_goal_rad) / driver.dt_s
    args = (driver.limits, driver.speed_rad_s, share, driver.dt_s)
    following = follow(now, q_goal, dq_goal, *args)
    keep_m = driver.limits.clearance_stop_m + KEEP_M
    if near_m is not None and near_m < 2.0 * keep_m:
        next_m = clearance(drive.arm, following.q_rad)
        if next_m < keep_m and next_m < near_m:
            staying = follow(now, now.q_rad, np.zeros_like(q_goal), *args)
            return staying.q_rad, f"an obstacle is {1000 * near_m:.0f} mm away: not nearer"
    return following.q_rad, None


def _tool_speed(driver: Driver, q_rad: Array, dq_rad_s: Array) -> float:
    model = driver.arm.model
    way_m = tool_pose(model, q_rad + dq_rad_s * driver.dt_s)[:3, 3] - tool_pose(model, q_rad)[:3, 3]
    return float(np.linalg.norm(way_m)) / driver.dt_s


def _grip(arm: CellArm, index: int, state: BrainState, operator: OperatorInput) -> BrainState:
    gripper = arm.model.gripper
    if gripper is None or operator.grip is None or not math.isfinite(operator.grip):
        return state
    closed = min(max(operator.grip, 0.0), 1.0)
    openings, forces = list(state.opening_m), list(state.grip_force_n)
    openings[index] = gripper.opening_max_m - closed * (
        gripper.opening_max_m - gripper.opening_min_m
    )
    forces[index] = gripper.force_min_n + GRIP_SHARE * (gripper.force_max_n - gripper.force_min_n)
    return replace(state, opening_m=tuple(openings), grip_force_n=tuple(forces))
