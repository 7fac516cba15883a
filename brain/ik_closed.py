"""Closed-form inverse kinematics of arms built like a UR or a Z1: all branches at once.

Both have axis 2 across axis 1 and meeting it, axes 2, 3, 4 parallel, axis 5 across axis 4, axis 6
across axis 5 and meeting it. `read` finds the lengths in any chain of that build, however its link
frames lie:

    a2, a3  from axis 2 to 3 and 3 to 4                     UR5e 0.425, 0.3922   Z1 0.35, 0.2253
    a4      from axis 4 to the wrist, across axis 5         UR5e 0               Z1 0.07
    d4      from axis 1 to the wrist, along axis 2          UR5e 0.1333          Z1 0
    d5      from axis 4 to the wrist, along axis 5          UR5e 0.0997          Z1 0

The wrist is where axes 5 and 6 meet. Base and tool may sit anywhere.

Source: K. P. Hawkins, "Analytic inverse kinematics for the Universal Robots UR-5/UR-10 arms",
Georgia Tech, 2013, for the order of solution (shoulder, wrist, elbow); derived anew for a4 and for
angles from both sine and cosine.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from brain.errors import ConfigError
from brain.geometry import Array, invert
from brain.jit import lean_kernel
from brain.robot import Chain

Column = tuple[float, float, float]

# What made a pose special.
SHOULDER, ELBOW, WRIST = 1, 2, 4
# A free joint is given this many representative angles.
FREE_ANGLES = 8
# A joint counts as free where the tool moves less than this (m, rad) with it; two branches as one
# where their joints are closer than the second figure (the tool then moves 1e-14).
MERGED = 1e-10
MERGED_RAD = 1e-7
# A pose this far (m, rad) out of reach counts as at its edge: near a free wrist rounding does more.
REACH_SLACK_M = 3e-10


class Shape(NamedTuple):
    """Lengths and offsets that the closed form works with.

    `length_m`: a2, a3, a4, d4, d5. `offset_rad` (6,): angle of the closed form minus joint angle.
    `T_own_base`, `T_tool_last`: base in the closed form's own, frame of joint 6 in the tool.
    `spread`: how far (m, rad) the true chain's poses may be from this one's.
    """

    length_m: Array
    offset_rad: Array
    T_own_base: Array
    T_tool_last: Array
    spread: Array


def _meet(p: Array, u: Array, q: Array, v: Array) -> tuple[Array, float]:
    """Point halfway between two lines through p along u and q along v, and their distance in m."""
    across = np.cross(u, v)
    a, b = np.linalg.lstsq(np.stack((u, -v), axis=1), q - p, rcond=None)[0]
    return 0.5 * (p + a * u + q + b * v), abs(float((q - p) @ across)) / float(
        np.linalg.norm(across)
    )


def read(chain: Chain, T_flange_tool: Array) -> Shape:
    """Find the closed form's lengths in a chain.

    Raises:
        ConfigError: the chain is not built that way (within 1e-9 m and rad).
    """
    T = np.eye(4)
    axis, point = np.zeros((6, 3)), np.zeros((6, 3))
    if len(chain.joint_names) != 6:
        raise ConfigError(f"chain: {len(chain.joint_names)} joints, inverse kinematics needs 6")
    for k in range(6):
        T = T @ chain.T_link_joint[k]
        axis[k], point[k] = T[:3, :3] @ chain.axis[k], T[:3, 3]
    T_base_tool = T @ chain.T_link_flange @ T_flange_tool
    z, n, last = axis[0], axis[1], axis[5]
    shoulder, gap_12 = _meet(point[0], z, point[1], n)
    wrist, gap_56 = _meet(point[4], axis[4], point[5], last)
    for what, value in {
        "axes 1 and 2 square": abs(z @ n),
        "axes 2 and 3 parallel": np.linalg.norm(axis[2] - n),
        "axes 3 and 4 parallel": np.linalg.norm(axis[3] - n),
        "axes 4 and 5 square": abs(n @ axis[4]),
        "axes 5 and 6 square": abs(axis[4] @ last),
        "axes 1 and 2 meeting": gap_12,
        "axes 5 and 6 meeting": gap_56,
    }.items():
        if not value < 1e-9:
            raise ConfigError(
                f"nominal chain: the closed form needs {what}; off by {value:.3g}, allowed 1e-9"
            )
    x = np.cross(z, n)
    T_base_own = np.eye(4)
    T_base_own[:3, :3] = np.stack((x, -n, z), axis=1)
    T_base_own[:3, 3] = shoulder

    def plane(p: Array) -> complex:
        """A point in the arm's plane at zero, x forward, z up."""
        return complex((p - shoulder) @ x, (p - shoulder) @ z)

    upper, fore = plane(point[2]), plane(point[3]) - plane(point[2])
    # The hand frame's x in the plane; axis 5 is its -y, as after Rx(pi / 2).
    hand = complex(-axis[4] @ z, axis[4] @ x)
    at_wrist = (plane(wrist) - plane(point[3])) / hand
    angles = [np.angle(v) for v in (upper, fore, hand)]
    x4 = hand.real * x + hand.imag * z
    theta_5 = math.atan2(-last @ x4, last @ n)
    T_base_last = np.eye(4)
    x5 = math.cos(theta_5) * x4 + math.sin(theta_5) * n
    T_base_last[:3, :3] = np.stack((x5, np.cross(last, x5), last), axis=1)
    T_base_last[:3, 3] = wrist
    return Shape(
        length_m=np.array(
            [abs(upper), abs(fore), at_wrist.real, (wrist - shoulder) @ n, -at_wrist.imag]
        ),
        offset_rad=np.array(
            [0.0, angles[0], angles[1] - angles[0], angles[2] - angles[1], theta_5, 0.0]
        ),
        T_own_base=invert(T_base_own),
        T_tool_last=invert(T_base_tool) @ T_base_last,
        spread=np.zeros(2),
    )


@lean_kernel
def wrapped(angle_rad: float) -> float:
    """The same angle in (-pi, pi]."""
    if not (math.isfinite(angle_rad) and abs(angle_rad) < 1e6):
        return math.nan
    out = angle_rad - 2.0 * math.pi * math.ceil((angle_rad - math.pi) / (2.0 * math.pi))
    if out <= -math.pi:
        return math.pi
    return min(out, math.pi)


@lean_kernel
def rigid(T: Array) -> bool:
    """Whether T (4, 4) is a rigid transform within 1e-6; false for NaN."""
    for i in range(3):
        if not math.isfinite(T[i, 3]) or T[3, i] != 0.0:
            return False
        j = (i + 1) % 3
        k = (i + 2) % 3
        norm2 = square = volume = 0.0
        for r in range(3):
            norm2 += T[r, i] * T[r, i]
            square += T[r, i] * T[r, j]
            s = (r + 1) % 3
            t = (r + 2) % 3
            volume += T[r, i] * (T[s, j] * T[t, k] - T[t, j] * T[s, k])
        if not (abs(norm2 - 1.0) < 1e-6 and abs(square) < 1e-6 and volume > 0.0):
            return False
    return bool(T[3, 3] == 1.0)


@lean_kernel
def _column(shape: Shape, T: Array, j: int) -> Column:
    """Column j of joint 6's frame in the closed form's own base."""
    a, b = shape.T_own_base, shape.T_tool_last
    x = T[0, 0] * b[0, j] + T[0, 1] * b[1, j] + T[0, 2] * b[2, j] + T[0, 3] * b[3, j]
    y = T[1, 0] * b[0, j] + T[1, 1] * b[1, j] + T[1, 2] * b[2, j] + T[1, 3] * b[3, j]
    z = T[2, 0] * b[0, j] + T[2, 1] * b[1, j] + T[2, 2] * b[2, j] + T[2, 3] * b[3, j]
    w = b[3, j]
    return (
        a[0, 0] * x + a[0, 1] * y + a[0, 2] * z + a[0, 3] * w,
        a[1, 0] * x + a[1, 1] * y + a[1, 2] * z + a[1, 3] * w,
        a[2, 0] * x + a[2, 1] * y + a[2, 2] * z + a[2, 3] * w,
    )


@lean_kernel
def _elbow(
    shape: Shape,
    p: Column,
    cs1: tuple[float, float],
    theta: tuple[float, float, float, float],
    near_m: float,
    q_rad: Array,
    count: int,
) -> tuple[int, int]:
    """Write the elbow's branches for given angles 1, 5, 6 and 2 + 3 + 4; returns count and flags.

    `near_m`: how close to the edge of the reach counts as such. Counts on past the rows of `q_rad`,
    without writing there.
    """
    a2, a3, a4, d5 = shape.length_m[0], shape.length_m[1], shape.length_m[2], shape.length_m[4]
    theta_1, theta_234, theta_5, theta_6 = theta
    cos, sin = math.cos(theta_234), math.sin(theta_234)
    x = p[0] * cs1[0] + p[1] * cs1[1] - (a4 * cos + d5 * sin)
    z = p[2] - (a4 * sin - d5 * cos)
    reach = math.hypot(x, z)
    flags = 0
    if abs(reach - (a2 + a3)) < near_m or abs(reach - abs(a2 - a3)) < near_m:
        flags = ELBOW
    c3 = (reach * reach - a2 * a2 - a3 * a3) / (2.0 * a2 * a3)
    if not abs(c3) <= 1.0 + REACH_SLACK_M * reach / (a2 * a3):
        return count, flags
    bend = math.atan2(math.sqrt(max(0.0, (1.0 - c3) * (1.0 + c3))), c3)
    sides = 2
    if min(bend, math.pi - bend) < MERGED_RAD:
        sides, flags = 1, ELBOW
    for side in range(sides):
        theta_3 = bend if side == 0 else -bend
        theta_2 = math.atan2(z, x) - math.atan2(a3 * math.sin(theta_3), a2 + a3 * math.cos(theta_3))
        if count < q_rad.shape[0]:
            offset, row = shape.offset_rad, q_rad[count]
            row[0] = wrapped(theta_1 - offset[0])
            row[1] = wrapped(theta_2 - offset[1])
            row[2] = wrapped(theta_3 - offset[2])
            row[3] = wrapped(theta_234 - theta_2 - theta_3 - offset[3])
            row[4] = wrapped(theta_5 - offset[4])
            row[5] = wrapped(theta_6 - offset[5])
        count += 1
    return count, flags


@lean_kernel
def _within_reach(shape: Shape, x_m: float, z_m: float, theta_234: float) -> float:
    """Angle 2 + 3 + 4 nearest to the given one that a wrist at (x, z) of the arm's plane can have.

    Axis 4 runs on a circle about the wrist; its distance from axis 2 grows with the angle `away`.
    """
    a2, a3, a4, d5 = shape.length_m[0], shape.length_m[1], shape.length_m[2], shape.length_m[4]
    hand, wrist = math.hypot(a4, d5), math.hypot(x_m, z_m)
    nearest = math.atan2(z_m, x_m) + math.atan2(d5, a4)
    away = wrapped(theta_234 - nearest)
    bound = 2.0 * max(hand * wrist, MERGED)
    square = wrist * wrist + hand * hand
    low = math.acos(min(max((square - (a2 - a3) ** 2) / bound, -1.0), 1.0))
    high = math.acos(min(max((square - (a2 + a3) ** 2) / bound, -1.0), 1.0))
    return nearest + math.copysign(min(max(abs(away), low), high), away)


@lean_kernel
def _wrist(
    shape: Shape,
    hand: tuple[Column, Column, Column, Column],
    theta_1: float,
    near_rad: float,
    q_ref_rad: Array,
    q_rad: Array,
    count: int,
) -> tuple[int, int]:
    """Write the branches of wrist and elbow for a given angle 1; returns count and flags."""
    x, y, z, p = hand
    cs1 = (math.cos(theta_1), math.sin(theta_1))
    # Axis 6 against the arm's normal n, and how it leans in the arm's plane.
    x_n = x[0] * cs1[1] - x[1] * cs1[0]
    y_n = y[0] * cs1[1] - y[1] * cs1[0]
    cos5 = z[0] * cs1[1] - z[1] * cs1[0]
    lean = math.hypot(z[0] * cs1[0] + z[1] * cs1[1], z[2])
    near_m = shape.spread[0]
    if near_rad > 0.0:
        lever = math.hypot(shape.length_m[2], shape.length_m[4])
        near_m += lever * min(2.0, near_rad / max(lean, MERGED))
    free, start = lean < MERGED, count
    flags = WRIST if lean < max(MERGED, near_rad) else 0
    for choice in range(FREE_ANGLES + 2 if free else 2):
        sign = 1.0 if choice == 0 else -1.0
        theta_5 = math.atan2(sign * lean, cos5)
        theta_6 = math.atan2(-sign * y_n, sign * x_n)
        if free:
            theta_5 = math.atan2(0.0, cos5)
            theta_6 = 2.0 * math.pi * choice / FREE_ANGLES
            if choice == 0:
                if math.isnan(q_ref_rad[5]):
                    continue
                theta_6 = q_ref_rad[5] + shape.offset_rad[5]
            elif not math.isnan(q_ref_rad[5]) and count > start:
                break
        # The hand's x before joints 5 and 6 turned it gives the angle 2 + 3 + 4.
        c5, s5, c6, s6 = math.cos(theta_5), math.sin(theta_5), math.cos(theta_6), math.sin(theta_6)
        u, v, w = c5 * c6, -c5 * s6, -s5
        x4_x, x4_y = u * x[0] + v * y[0] + w * z[0], u * x[1] + v * y[1] + w * z[1]
        x4_z = u * x[2] + v * y[2] + w * z[2]
        theta_234 = math.atan2(x4_z, x4_x * cs1[0] + x4_y * cs1[1])
        if lean < MERGED_RAD and (not free or choice == 1):
            # Joint 6 may turn against it by what the hand's error allows: rounding is of that size.
            ahead = p[0] * cs1[0] + p[1] * cs1[1]
            turn = wrapped(_within_reach(shape, ahead, p[2], theta_234) - theta_234)
            if free or abs(turn) * lean < REACH_SLACK_M:
                theta_234 += turn
                theta_6 -= math.copysign(turn, turn * cos5)
        theta = (theta_1, theta_234, theta_5, theta_6)
        count, met = _elbow(shape, p, cs1, theta, near_m, q_rad, count)
        flags |= met
    return count, flags


@lean_kernel
def closed_form(
    shape: Shape, T_base_tool: Array, q_ref_rad: Array, q_rad: Array
) -> tuple[int, int]:
    """Write all branches, rows of `q_rad` (m, 6) in (-pi, pi]; returns their count and flags.

    The count is -1 where the pose is not rigid, and may exceed m (then call with more rows). A free
    joint (flags SHOULDER or WRIST) takes its angle from `q_ref` (6,), or some angles all round
    where that is NaN or leads nowhere. Two branches that have met (flags SHOULDER or ELBOW) count
    as one. Flags are set within `shape.spread` of such a pose.
    """
    if not rigid(T_base_tool):
        return -1, 0
    hand = (
        _column(shape, T_base_tool, 0),
        _column(shape, T_base_tool, 1),
        _column(shape, T_base_tool, 2),
        _column(shape, T_base_tool, 3),
    )
    p, d4 = hand[3], shape.length_m[3]
    near_m, near_rad = shape.spread[0], shape.spread[1]
    # The wrist lies d4 beside the plane of the arm.
    rho = math.hypot(p[0], p[1])
    free = rho < MERGED and abs(d4) < MERGED
    turn = math.atan2(math.sqrt(max(0.0, (rho - d4) * (rho + d4))), d4)
    met = min(turn, math.pi - turn) < MERGED_RAD
    count = 0
    flags = SHOULDER if free or met or abs(rho - abs(d4)) < near_m else 0
    if rho < abs(d4) * (1.0 - 1e-12):
        return 0, flags
    # Near that edge angle 1, and with it the lean of the wrist, is uncertain.
    near_rad += min(1.0, near_m / max(rho * math.sin(turn), MERGED))
    for side in range(FREE_ANGLES + 1 if free else (1 if met else 2)):
        theta_1 = math.atan2(p[1], p[0]) + 0.5 * math.pi + (turn if side == 0 else -turn)
        if free:
            theta_1 = 2.0 * math.pi * side / FREE_ANGLES
            if not math.isnan(q_ref_rad[0]):
                if side == 0:
                    theta_1 = q_ref_rad[0] + shape.offset_rad[0]
                elif count > 0:
                    break
            elif side == 0:
                continue
        count, more = _wrist(shape, hand, theta_1, near_rad, q_ref_rad, q_rad, count)
        flags |= more
    return count, flags
