"""Joints that follow a tool pose: bounded damped steps that stay on their branch.

For hand control, where a new pose comes each tick. What the operator did not ask to change does not
change: a rotation that the arm cannot make does not move the tool, a reach that it does not have
does not tilt it. Far moves and choices of branch are `brain/ik.py` and the planner.
"""

from __future__ import annotations

import math

from brain.damped import (
    SIGMA_DAMPED,
    Workspace,
    damped_inverse,
    dls_step,
    first_row,
    gain,
    smallest_singular_value,
    solve_level,
    workspace,
)
from brain.geometry import Array
from brain.jit import lean_kernel
from brain.kinematics import pose_error, tool_jacobian
from brain.robot import ArmArrays

# Where a step that presses against the edge of the reach ends: for a UR5e an elbow 1.5 degrees
# from straight, 0.1 mm short of its reach.
SIGMA_FOLD = 0.005
FOLD_SLOPE = 0.01
SUB_STEPS = 5
SUB_STEP_RAD = 0.1
# Size of the way out of an exactly singular pose, and the errors from which it is taken.
NUDGE_RAD = 1e-3
NUDGE_FROM_M = 1e-3
NUDGE_FROM_RAD = 5e-3
AT_TARGET_M = 1e-9
AT_TARGET_RAD = 1e-9

__all__ = ["Workspace", "track", "workspace"]


@lean_kernel
def _slope(arrays: ArmArrays, along: Array, level: int, i: int, work: Workspace) -> float:
    """Rate at which singular value i of a level changes when the joints move along `along`."""
    n, size = along.shape[0], 0.0
    for k in range(n):
        size = max(size, abs(along[k]))
    if not size > 0.0:
        return 0.0
    h = 1e-4 / size
    for k in range(n):
        work.q_near_rad[k] = work.q_rad[k] + h * along[k]
    tool_jacobian(arrays, work.q_near_rad, work.J_near, work.T_links, work.T_base_tool)
    # How the twist along the direction changes, less what the first level would take back.
    change, back, row = work.level_error[2], work.dq_rad[2], work.level_rows[level, i]
    top = first_row(work.error)
    for part in range(level + 1):
        first = top if part == 0 else 3 - top
        for r in range(3):
            change[r] = 0.0
            for k in range(n):
                change[r] += (work.J_near[first + r, k] - work.J[first + r, k]) * row[k]
                if part == 1:
                    change[r] -= work.J[first + r, k] * back[k]
        if part < level:
            solve_level(0, change, back, work)
    slope = 0.0
    for r in range(3):
        slope += work.level_turn[level, i, r] * change[r]
    return float(slope / (work.level_sigma[level, i] * h))


@lean_kernel
def keep_branch(arrays: ArmArrays, work: Workspace) -> None:
    """Change the step that `dls_step` wrote so that it does not press over a fold.

    Where a singular value falls along its own direction, the arm runs up to the edge of what it
    can reach (a straight elbow); past the edge lies another branch. A step that presses that way
    ends where the value is SIGMA_FOLD.
    """
    n, dq = work.q_rad.shape[0], work.dq_rad
    for level in range(2):
        for i in range(3):
            sigma = work.level_sigma[level, i]
            share = gain(level, i, work.level_error[level], work)
            if not 1e-9 < sigma < SIGMA_DAMPED or share == 0.0:
                continue
            row = work.level_rows[level, i]
            own = _slope(arrays, row, level, i, work)
            if not share * own < 0.0 or abs(own) < FOLD_SLOPE * sigma:
                continue
            for k in range(n):
                work.total_rad[k] = dq[0, k] + dq[1, k]
            after = sigma + _slope(arrays, work.total_rad, level, i, work)
            least = min(sigma, SIGMA_FOLD)
            if after < least:
                for k in range(n):
                    dq[level, k] += (least - after) / own * row[k]


@lean_kernel
def _worth(arrays: ArmArrays, q_rad: Array, work: Workspace) -> float:
    """How much of the pose error could be worked off to first order at q, squared.

    -1 where q is outside the limits or the error is larger than `work.error`.
    """
    before = after = reachable = 0.0
    for k in range(q_rad.shape[0]):
        if not work.lower_rad[k] <= q_rad[k] <= work.upper_rad[k]:
            return -1.0
    tool_jacobian(arrays, q_rad, work.J_near, work.T_links, work.T_base_tool)
    pose_error(work.T_base_tool, work.T_base_target, work.error_near)
    for r in range(6):
        before += work.error[r] ** 2
        after += work.error_near[r] ** 2
    if after > before * (1.0 + 1e-9):
        return -1.0
    smallest_singular_value(work.J_near, work)
    for i in range(q_rad.shape[0]):
        if work.sigma[i] > 2.0 * SIGMA_FOLD:
            along = 0.0
            for r in range(6):
                along += work.columns[i, r] * work.error_near[r]
            reachable += (along / work.sigma[i]) ** 2
    return reachable


@lean_kernel
def _nudge(arrays: ArmArrays, work: Workspace) -> None:
    """Write a small way out of an exactly singular pose into dq, if one does not cost accuracy.

    First-order steps vanish where the error lies along a lost direction. A short move along the
    idle joints bends the arm (elbow) or turns the wrist, after which the usual steps work. Of the
    two sides the one where more of the error can be worked off is taken, and where they are alike
    the one with more room to the joint limits. Where nearly all can be worked off with both levels
    taken together, that is done.
    """
    q_rad, dq, idle = work.q_rad, work.dq_rad[1], work.total_rad
    n = q_rad.shape[0]
    size2 = 0.0
    for r in range(6):
        size2 += work.error[r] ** 2
    size = min(NUDGE_RAD, math.sqrt(size2))
    if _worth(arrays, q_rad, work) > 0.999 * size2:
        for i in range(n):
            along = 0.0
            for r in range(6):
                along += work.columns[i, r] * work.error[r]
            along *= damped_inverse(work.sigma[i])
            for k in range(n):
                dq[k] += along * work.right[i, k]
        return
    for i in range(n):
        smallest_singular_value(work.J, work)
        if work.sigma[i] > NUDGE_RAD:
            continue
        room = 0.0
        for k in range(n):
            idle[k] = work.right[i, k]
            room += (0.5 * (work.lower_rad[k] + work.upper_rad[k]) - q_rad[k]) * idle[k]
            work.q_near_rad[k] = q_rad[k] + size * idle[k]
        plus = _worth(arrays, work.q_near_rad, work)
        for k in range(n):
            work.q_near_rad[k] = q_rad[k] - size * idle[k]
        minus = _worth(arrays, work.q_near_rad, work)
        if max(plus, minus) < 0.0:
            continue
        step = size if plus > minus else -size
        if abs(plus - minus) < 1e-9 * size2:
            step = size if room >= 0.0 else -size
        for k in range(n):
            dq[k] = step * idle[k]
        return


@lean_kernel
def _noticeable(error: Array) -> bool:
    position2 = error[0] ** 2 + error[1] ** 2 + error[2] ** 2
    rotation2 = error[3] ** 2 + error[4] ** 2 + error[5] ** 2
    return bool(position2 > NUDGE_FROM_M**2 or rotation2 > NUDGE_FROM_RAD**2)


@lean_kernel
def _step_inside(arrays: ArmArrays, work: Workspace) -> None:
    """Write a step into dq; joints that press against a limit are left out of it."""
    q_rad, dq = work.q_rad, work.dq_rad
    n = q_rad.shape[0]
    held = False
    for _ in range(n + 1):
        dls_step(work)
        keep_branch(arrays, work)
        pressing = False
        for k in range(n):
            along = dq[0, k] + dq[1, k]
            up = along > 0.0 and q_rad[k] >= work.upper_rad[k]
            down = along < 0.0 and q_rad[k] <= work.lower_rad[k]
            if up or down:
                pressing = held = True
                for r in range(6):
                    work.J[r, k] = 0.0
        if not pressing:
            break
    if held or not _noticeable(work.error):
        return
    step2 = error2 = 0.0
    for k in range(n):
        step2 += (dq[0, k] + dq[1, k]) ** 2
    for r in range(6):
        error2 += work.error[r] ** 2
    if step2 < NUDGE_RAD**2 * error2:
        _nudge(arrays, work)


@lean_kernel
def _share(dq_rad: Array, work: Workspace) -> float:
    """How much of a step fits: all joints inside limits and bounds, none over SUB_STEP_RAD."""
    share = 1.0
    for k in range(dq_rad.shape[0]):
        q, ref, step = work.q_rad[k], work.q_ref_rad[k], work.step_max_rad[k]
        if dq_rad[k] > 0.0:
            room = min(work.upper_rad[k], ref + step) - q
        else:
            room = q - max(work.lower_rad[k], ref - step)
        room = min(max(room, 0.0), SUB_STEP_RAD)
        if abs(dq_rad[k]) > room:
            share = min(share, room / abs(dq_rad[k]))
    return share


@lean_kernel
def _track(arrays: ArmArrays, work: Workspace) -> tuple[float, float, float]:
    q_rad, error, dq, total = work.q_rad, work.error, work.dq_rad, work.total_rad
    n = q_rad.shape[0]
    sigma_min = position_m = rotation_rad = math.nan
    for k in range(n):
        q_rad[k] = work.q_ref_rad[k]
        work.lower_rad[k] = min(work.q_min_rad[k], q_rad[k])
        work.upper_rad[k] = max(work.q_max_rad[k], q_rad[k])
    done = False
    for i in range(SUB_STEPS + 1):
        tool_jacobian(arrays, q_rad, work.J, work.T_links, work.T_base_tool)
        pose_error(work.T_base_tool, work.T_base_target, error)
        position_m = math.sqrt(error[0] ** 2 + error[1] ** 2 + error[2] ** 2)
        rotation_rad = math.sqrt(error[3] ** 2 + error[4] ** 2 + error[5] ** 2)
        if i == 0:
            sigma_min = smallest_singular_value(work.J, work)
        close = position_m <= AT_TARGET_M and rotation_rad <= AT_TARGET_RAD
        if done or i == SUB_STEPS or close or not math.isfinite(position_m + rotation_rad):
            break
        _step_inside(arrays, work)
        # Each level is scaled to what fits, then their sum: neither starves the other.
        first, second = _share(dq[0], work), _share(dq[1], work)
        for k in range(n):
            total[k] = first * dq[0, k] + second * dq[1, k]
        both = _share(total, work)
        for k in range(n):
            q = q_rad[k] + both * total[k]
            q_rad[k] = min(max(q, work.lower_rad[k]), work.upper_rad[k])  # rounding
            step = abs(q_rad[k] - work.q_ref_rad[k])
            done = done or step >= work.step_max_rad[k] * (1.0 - 1e-9)
    return position_m, rotation_rad, sigma_min


def track(
    arrays: ArmArrays,
    q_min_rad: Array,
    q_max_rad: Array,
    q_ref_rad: Array,
    T_base_target: Array,
    step_max_rad: Array,
    q_rad: Array,
    work: Workspace,
) -> tuple[float, float, float]:
    """Write joints q (n,), a bounded way from q_ref toward a tool pose, on the same branch.

    A few sub-steps of damped least squares. No joint moves more than `step_max_rad` (n,) in the
    call (steps are scaled as a whole, so that their direction is kept), none leaves [q_min, q_max];
    a reference already outside may only come back. At the target the answer is q_ref bit for bit.
    Without a finite reference and target it is q_ref, with NaN errors.

    Returns the position error in m and rotation error in rad that remain, and the smallest
    singular value at q_ref.
    """
    work.q_min_rad[:] = q_min_rad
    work.q_max_rad[:] = q_max_rad
    work.q_ref_rad[:] = q_ref_rad
    work.step_max_rad[:] = step_max_rad
    work.T_base_target[:] = T_base_target
    left = _track(arrays, work)
    q_rad[:] = work.q_rad
    return left
