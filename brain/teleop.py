"""Driving one arm by hand.

Clutch, led reference pose, joints by damped least squares, kept clear of everything, jerk-limited
following.

The reference pose is led from the tool toward the hand no faster than the tool may go, so a far
target is approached, never jumped to. What cannot be reached is answered by the nearest pose and a
note that says why.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from brain import local, retarget
from brain.body import Body, Work, place, work
from brain.cell import CellArm, CellModel
from brain.distance import Obstacles
from brain.geometry import Array, largest, matrix_to_rotvec, product, rotvec_to_matrix
from brain.jit import kernel
from brain.kinematics import tool_pose, tool_travel
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
Placed = Callable[[int], tuple[Body, Obstacles]]
"""arm -> where it stands, and what it must keep clear of."""

TURN_RAD_S = 1.0
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
SLIDE_M = 0.002
"""How much earlier than the drive stops the tool goes along an obstacle instead."""
SAID = {
    local.NARROWED: "an obstacle is in the way: the tool goes along it",
    local.NOT_FINITE: "joints or distances are not finite: no motion",
    local.CROWDED: "too much is near: no motion",
}
GRIP_SHARE = 0.3
"""Share of the gripper's force range that a hand uses."""


class Driver:
    """The kernels' scratch and the follower of one arm; it remembers nothing between ticks."""

    def __init__(
        self,
        arm: CellArm,
        limits: LimitProfile,
        dt_s: float,
    ) -> None:
        """Prepare for one arm; `limits` is the profile for planning."""
        self.arm = arm
        self.limits = limits
        self.dt_s = dt_s
        self.low_rad, self.high_rad = soft_range(limits, arm.model.limits)
        self.speed_rad_s = joint_speed(limits, arm.model.limits)
        self.step_max_rad = self.speed_rad_s * dt_s
        self.work = workspace(arm.model.dof)
        self.steering = local.scratch(arm.model.dof)
        self._body = place(arm.model, arm.T_world_base)
        self._at = work(self._body)

    def at(self, body: Body) -> Work:
        """Return the scratch for distances of a body; made anew when that changes."""
        if body is not self._body:
            self._body, self._at = body, work(body)
        return self._at

    def reach(self, q_rad: Array) -> tuple[Array, Array]:
        """Return the lowest and highest joints (n,), (n,) of the next tick.

        No faster into the end of the range than half of the acceleration can brake before it.
        """
        ease = self.limits.joint_acceleration_rad_s2 * self.dt_s * self.dt_s
        return _eased(q_rad, self.low_rad, self.high_rad, ease)


@kernel
def _eased(q_rad: Array, low_rad: Array, high_rad: Array, ease: float) -> tuple[Array, Array]:
    low, high = np.empty(q_rad.shape[0]), np.empty(q_rad.shape[0])
    for i in range(q_rad.shape[0]):
        down = math.sqrt(ease * max(q_rad[i] - low_rad[i], 0.0))
        up = math.sqrt(ease * max(high_rad[i] - q_rad[i], 0.0))
        low[i], high[i] = max(low_rad[i], q_rad[i] - down), min(high_rad[i], q_rad[i] + up)
    return low, high


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
    placed: Placed,
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
    lag_rad = largest(drive.q_goal_rad - memory.q_rad)
    waiting = max(1.0 - lag_rad / LAG_RAD, 0.0)  # the joints have to catch up first
    drive = replace(drive, hand=hand, seq=operator.seq)
    weights = local.MANNERS[operator.manner]
    led = _lead(drive, wanted, hand, arm.T_base_seat[:3, :3], driver, weights, share * waiting)
    q_goal, note = _joints(arm, driver, drive.q_goal_rad, led.T_base_reference)
    q_goal, led, beside = _beside(driver, placed(drive.arm), drive, q_goal, led, weights.distance)
    fastest_m_s = driver.limits.tool_speed_m_s * share
    q_rad, blocked = _follow(driver, clearance, drive, memory, q_goal, near_m, fastest_m_s)
    if blocked is None:
        drive = replace(led, q_goal_rad=q_goal)
    else:  # reference and goal wait where they are
        drive = replace(drive, reference_m_s=np.zeros(3), reference_rad_s=np.zeros(3))
    state = _grip(arm, drive.arm, state, operator)
    return replace(state, teleop=drive, note=blocked or beside or outside or note), q_rad


def _inside(
    cell: CellModel, arm: CellArm, T_base_tool: Array, T_base_reference: Array
) -> tuple[Array, str]:
    """Return the nearest pose inside the workspace, and what to tell the operator.

    A reference that is outside already stays there until the hand leads it in.
    """
    shift_m = _back_in(cell.workspace_m, arm.T_world_base, T_base_tool, T_base_reference)
    beyond_m = float(np.linalg.norm(shift_m))
    if beyond_m == 0.0:
        return T_base_tool, ""
    out = T_base_tool.copy()
    out[:3, 3] += arm.T_world_base[:3, :3].T @ shift_m
    return out, f"the hand is {100 * beyond_m:.0f} cm outside the workspace: nearest pose kept"


@kernel
def _back_in(box_m: Array, T_world_base: Array, T_base_tool: Array, T_base_now: Array) -> Array:
    """Smallest shift (3,) in the world that brings a wanted tool back into the workspace."""
    shift = np.empty(3)
    for i in range(3):
        wanted = now = T_world_base[i, 3]
        for k in range(3):
            wanted += T_world_base[i, k] * T_base_tool[k, 3]
            now += T_world_base[i, k] * T_base_now[k, 3]
        low, high = min(box_m[0, i] + INSIDE_M, now), max(box_m[1, i] - INSIDE_M, now)
        shift[i] = min(max(wanted, low), high) - wanted
    return shift


def _lead(
    drive: Teleop,
    wanted: Array,
    hand: Hand,
    R_base_seat: Array,
    driver: Driver,
    weights: local.Weights,
    share: float,
) -> Teleop:
    """Lead the reference pose toward the wanted one, no faster than the tool may go."""
    speed, turn = driver.limits.tool_speed_m_s * share, TURN_RAD_S * share
    T_base_reference, linear, angular = _drawn(
        drive.T_base_reference,
        wanted,
        (drive.reference_m_s, drive.reference_rad_s),
        (drive.clutch.scale * (R_base_seat @ hand.speed_m_s), R_base_seat @ hand.turn_rad_s),
        (speed, turn),
        weights,
        driver.dt_s,
    )
    return replace(
        drive, T_base_reference=T_base_reference, reference_m_s=linear, reference_rad_s=angular
    )


@kernel
def _drawn(
    at: Array,
    wanted: Array,
    now: tuple[Array, Array],
    aim: tuple[Array, Array],
    fastest: tuple[float, float],
    weights: local.Weights,
    dt_s: float,
) -> tuple[Array, Array, Array]:
    """Pose (4, 4) one tick nearer to the wanted one, its speed and its turn (3,).

    `now`, `aim` and `fastest` are of speed and turn.
    """
    way = wanted[:3, 3] - at[:3, 3]
    linear = _attract(way, now[0], aim[0], fastest[0], weights, dt_s)
    around = matrix_to_rotvec(product(wanted, at.T))
    angular = _attract(around, now[1], aim[1], fastest[1], weights, dt_s)
    out = at.copy()
    out[:3, 3] += dt_s * linear
    out[:3, :3] = product(rotvec_to_matrix(dt_s * angular), at)
    return out, linear, angular


@kernel
def _attract(
    way: Array, speed: Array, aim_speed: Array, fastest: float, weights: local.Weights, dt_s: float
) -> Array:
    """Next speed (3,) of a critically damped pull along `way`, at most `fastest`.

    Exactly 0 at rest. The speed aimed at is limited before it is compared: else a hand deep in an
    obstacle takes the whole pull, and what is left to damp the motion along it lets it swing.
    """
    rate = weights.pull_1_s
    aim_speed = _at_most(aim_speed + 0.5 * rate * way, fastest)
    pull = _at_most(2.0 * rate * (aim_speed - speed), fastest / weights.speed_up_s)
    return _at_most(speed + dt_s * pull, fastest)


@kernel
def _at_most(vector: Array, longest: float) -> Array:
    length = math.sqrt(vector[0] ** 2 + vector[1] ** 2 + vector[2] ** 2)
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


def _beside(
    driver: Driver,
    placed: tuple[Body, Obstacles],
    drive: Teleop,
    q_goal: Array,
    led: Teleop,
    weight: float,
) -> tuple[Array, Teleop, str]:
    """Joints (n,) that keep clear, along obstacles where they are in the way; and what to say.

    Then the reference waits at the tool, so that it is not led into the obstacle.
    """
    if np.array_equal(q_goal, drive.q_goal_rad):
        return q_goal, led, ""
    (body, near), s, q_from = placed, driver.steering, drive.q_goal_rad
    low_rad, high_rad = driver.reach(q_from)
    s.dq_rad_s[:] = (q_goal - q_from) / driver.dt_s
    s.lower_rad_s[:] = np.maximum(-driver.speed_rad_s, (low_rad - q_from) / driver.dt_s)
    s.upper_rad_s[:] = np.minimum(driver.speed_rad_s, (high_rad - q_from) / driver.dt_s)
    keep_m = weight * (driver.limits.clearance_stop_m + KEEP_M + SLIDE_M)
    horizon_s = weight * local.HORIZON_S
    done = local.steer(body.arrays, near.arrays, q_from, keep_m, horizon_s, driver.at(body), s)
    if done == local.FREE:
        return q_goal, led, ""
    q_goal = q_from + driver.dt_s * s.dq_rad_s
    here = tool_pose(driver.arm.model, q_goal)
    before = tool_pose(driver.arm.model, q_from)
    moved_m = here[:3, 3] - before[:3, 3]
    turned_rad = matrix_to_rotvec(here[:3, :3] @ before[:3, :3].T)
    led = replace(
        led,
        T_base_reference=here,
        reference_m_s=moved_m / driver.dt_s,
        reference_rad_s=turned_rad / driver.dt_s,
    )
    return q_goal, led, SAID[done]


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
    moving = largest(now.dq_rad_s) != 0.0 or largest(now.ddq_rad_s2) != 0.0
    if not moving and np.array_equal(q_goal, now.q_rad):
        return now.q_rad, None

    def share(dq_rad_s: Array) -> float:
        q_next = now.q_rad + dq_rad_s * driver.dt_s
        tool_m_s = tool_travel(driver.arm.model, now.q_rad, q_next) / driver.dt_s
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
