"""Where the links are, how the tool moves with the joints, how far a pose is from another.

For the chain as it is given, calibrated or not. `T_links[i]` is link i in the base (link 0 is the
base); the tool and its Jacobian are in the base too. Kernels write into arrays that the caller
owns, so that they can run inside the control tick.
"""

from __future__ import annotations

import math

import numpy as np

from brain.geometry import Array
from brain.jit import kernel, lean_kernel
from brain.robot import ArmArrays, ArmModel


@lean_kernel
def links(arrays: ArmArrays, q_rad: Array, T_links: Array) -> None:
    """Write the frames of base and links, (n + 1, 4, 4), in the base."""
    T_links[0] = 0.0
    for i in range(4):
        T_links[0, i, i] = 1.0
    for k in range(q_rad.shape[0]):
        a, b, c = T_links[k], arrays.T_link_joint[k], T_links[k + 1]
        x, y, z = arrays.axis[k, 0], arrays.axis[k, 1], arrays.axis[k, 2]
        cos, sin = math.cos(q_rad[k]), math.sin(q_rad[k])
        d = 1.0 - cos
        for i in range(3):
            u = a[i, 0] * b[0, 0] + a[i, 1] * b[1, 0] + a[i, 2] * b[2, 0]
            v = a[i, 0] * b[0, 1] + a[i, 1] * b[1, 1] + a[i, 2] * b[2, 1]
            w = a[i, 0] * b[0, 2] + a[i, 1] * b[1, 2] + a[i, 2] * b[2, 2]
            # One row of [u v w] times Rodrigues' rotation about the axis.
            along = d * (u * x + v * y + w * z)
            c[i, 0] = cos * u + along * x + sin * (v * z - w * y)
            c[i, 1] = cos * v + along * y + sin * (w * x - u * z)
            c[i, 2] = cos * w + along * z + sin * (u * y - v * x)
            c[i, 3] = a[i, 0] * b[0, 3] + a[i, 1] * b[1, 3] + a[i, 2] * b[2, 3] + a[i, 3]
            c[3, i] = 0.0
        c[3, 3] = 1.0


@lean_kernel
def compose(a: Array, b: Array, out: Array) -> None:
    """Write the product of two rigid transforms (4, 4); `out` may be `b`, not `a`."""
    for j in range(4):
        u, v, w = b[0, j], b[1, j], b[2, j]
        for i in range(3):
            out[i, j] = a[i, 0] * u + a[i, 1] * v + a[i, 2] * w
        out[3, j] = 0.0
    for i in range(3):
        out[i, 3] += a[i, 3]
    out[3, 3] = 1.0


@lean_kernel
def flange(arrays: ArmArrays, T_links: Array, T_base_flange: Array) -> None:
    """Write the flange pose (4, 4) from link frames."""
    compose(T_links[arrays.axis.shape[0]], arrays.T_link_flange, T_base_flange)


@lean_kernel
def tool(arrays: ArmArrays, T_links: Array, T_base_tool: Array) -> None:
    """Write the tool pose (4, 4) from link frames."""
    compose(arrays.T_link_flange, arrays.T_flange_tool, T_base_tool)
    compose(T_links[arrays.axis.shape[0]], T_base_tool, T_base_tool)


@lean_kernel
def tool_jacobian(
    arrays: ArmArrays, q_rad: Array, J: Array, T_links: Array, T_base_tool: Array
) -> None:
    """Write the geometric Jacobian (6, n) of the tool, with link frames and tool pose on the way.

    Rows: linear in m/rad, then angular; both in the base frame, at the tool's origin.
    """
    links(arrays, q_rad, T_links)
    tool(arrays, T_links, T_base_tool)
    for k in range(q_rad.shape[0]):
        T, axis = T_links[k + 1], arrays.axis[k]
        x = T[0, 0] * axis[0] + T[0, 1] * axis[1] + T[0, 2] * axis[2]
        y = T[1, 0] * axis[0] + T[1, 1] * axis[1] + T[1, 2] * axis[2]
        z = T[2, 0] * axis[0] + T[2, 1] * axis[1] + T[2, 2] * axis[2]
        rx = T_base_tool[0, 3] - T[0, 3]
        ry = T_base_tool[1, 3] - T[1, 3]
        rz = T_base_tool[2, 3] - T[2, 3]
        J[0, k] = y * rz - z * ry
        J[1, k] = z * rx - x * rz
        J[2, k] = x * ry - y * rx
        J[3, k] = x
        J[4, k] = y
        J[5, k] = z


@lean_kernel
def pose_error(T: Array, T_target: Array, error: Array) -> None:
    """Write what takes T to T_target: position in m, then rotation vector in rad, (6,), base frame.

    Exactly zero when the two are equal bit by bit.
    """
    for i in range(3):
        error[i] = T_target[i, 3] - T[i, 3]
    # Antisymmetric and symmetric part of R_target R^T; the entries pair up so that equal poses
    # cancel exactly.
    x = y = z = trace = 0.0
    for k in range(3):
        x += T_target[2, k] * T[1, k] - T_target[1, k] * T[2, k]
        y += T_target[0, k] * T[2, k] - T_target[2, k] * T[0, k]
        z += T_target[1, k] * T[0, k] - T_target[0, k] * T[1, k]
        trace += T_target[0, k] * T[0, k] + T_target[1, k] * T[1, k] + T_target[2, k] * T[2, k]
    sin2 = math.sqrt(x * x + y * y + z * z)
    angle = math.atan2(sin2, trace - 1.0)
    if trace > -0.9:
        scale = 0.5 if sin2 < 1e-12 else angle / sin2
        error[3], error[4], error[5] = x * scale, y * scale, z * scale
        return
    # Near half a turn the antisymmetric part vanishes: the axis is the largest column of R + 1,
    # with the sign of what is left.
    best, norm2 = 0, -1.0
    for j in range(3):
        diagonal = 0.0
        for k in range(3):
            diagonal += T_target[j, k] * T[j, k]
        if diagonal > norm2:
            best, norm2 = j, diagonal
    total = 0.0
    for i in range(3):
        a = b = 0.0
        for k in range(3):
            a += T_target[i, k] * T[best, k]
            b += T_target[best, k] * T[i, k]
        error[3 + i] = 0.5 * (a + b) - (0.5 * (trace - 1.0) if i == best else 0.0)
        total += error[3 + i] * error[3 + i]
    sign = -1.0 if x * error[3] + y * error[4] + z * error[5] < 0.0 else 1.0
    for i in range(3):
        error[3 + i] *= sign * angle / math.sqrt(total)


@kernel
def _tool_pose(arrays: ArmArrays, q_rad: Array) -> Array:
    T_links, T_base_tool = np.empty((q_rad.shape[0] + 1, 4, 4)), np.empty((4, 4))
    links(arrays, q_rad, T_links)
    tool(arrays, T_links, T_base_tool)
    return T_base_tool


@kernel
def flange_at(arrays: ArmArrays, q_rad: Array) -> Array:
    """Return the flange pose (4, 4) in the base at the joints q (n,)."""
    T_links, T_base_flange = np.empty((q_rad.shape[0] + 1, 4, 4)), np.empty((4, 4))
    links(arrays, q_rad, T_links)
    flange(arrays, T_links, T_base_flange)
    return T_base_flange


def tool_pose(model: ArmModel, q_rad: Array) -> Array:
    """Return the tool pose (4, 4) in the base at the joints q (n,)."""
    return _tool_pose(model.arrays, np.asarray(q_rad, dtype=np.float64))


@kernel
def _tool_travel(arrays: ArmArrays, q_from: Array, q_to: Array) -> float:
    a, b = _tool_pose(arrays, q_from), _tool_pose(arrays, q_to)
    x, y, z = b[0, 3] - a[0, 3], b[1, 3] - a[1, 3], b[2, 3] - a[2, 3]
    return math.sqrt(x * x + y * y + z * z)


def tool_travel(model: ArmModel, q_from: Array, q_to: Array) -> float:
    """Distance in m between the tool's places at two joints (n,)."""
    return _tool_travel(model.arrays, q_from, q_to)


def flange_pose(model: ArmModel, q_rad: Array) -> Array:
    """Return the flange pose (4, 4) in the base at the joints q (n,)."""
    return flange_at(model.arrays, np.asarray(q_rad, dtype=np.float64))
