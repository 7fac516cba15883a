"""Rotations and rigid transforms; quaternions are w x y z inside, the edges convert.

A transform is a (4, 4) array named `T_a_b`: it takes coordinates in b to coordinates in a.
"""

from __future__ import annotations

import math
from typing import cast

import numpy as np
import numpy.typing as npt

from brain.jit import kernel

Array = npt.NDArray[np.float64]


def frozen(values: npt.ArrayLike) -> Array:
    """Return a read-only float64 copy."""
    array = np.array(values, dtype=np.float64)
    array.flags.writeable = False
    return array


@kernel
def largest(values: Array) -> float:
    """Largest absolute value of (n,), 0 of none; NaN if one is NaN."""
    most = 0.0
    for i in range(values.shape[0]):
        size = abs(values[i])
        if size != size:
            return float(size)
        most = max(most, size)
    return most


@kernel
def quat_multiply(a: Array, b: Array) -> Array:
    """Hamilton product of two quaternions, w x y z."""
    return np.array(
        (
            a[0] * b[0] - a[1] * b[1] - a[2] * b[2] - a[3] * b[3],
            a[0] * b[1] + a[1] * b[0] + a[2] * b[3] - a[3] * b[2],
            a[0] * b[2] - a[1] * b[3] + a[2] * b[0] + a[3] * b[1],
            a[0] * b[3] + a[1] * b[2] - a[2] * b[1] + a[3] * b[0],
        )
    )


@kernel
def quat_conjugate(q: Array) -> Array:
    """Inverse of a unit quaternion, w x y z."""
    return np.array((q[0], -q[1], -q[2], -q[3]))


@kernel
def quat_to_matrix(q: Array) -> Array:
    """Rotation matrix (3, 3) of a unit quaternion, w x y z."""
    w, x, y, z = q[0], q[1], q[2], q[3]
    return np.array(
        (
            (1.0 - 2.0 * (y * y + z * z), 2.0 * (x * y - w * z), 2.0 * (x * z + w * y)),
            (2.0 * (x * y + w * z), 1.0 - 2.0 * (x * x + z * z), 2.0 * (y * z - w * x)),
            (2.0 * (x * z - w * y), 2.0 * (y * z + w * x), 1.0 - 2.0 * (x * x + y * y)),
        )
    )


@kernel
def quat_from_matrix(r: Array) -> Array:
    """Unit quaternion, w x y z with w >= 0, of a rotation matrix (3, 3).

    Source: S. W. Shepperd, "Quaternion from rotation matrix", J. Guidance and Control 1(3), 1978.
    """
    q = np.empty(4)
    trace = r[0, 0] + r[1, 1] + r[2, 2]
    if trace >= r[0, 0] and trace >= r[1, 1] and trace >= r[2, 2]:
        q[0] = 1.0 + trace
        q[1] = r[2, 1] - r[1, 2]
        q[2] = r[0, 2] - r[2, 0]
        q[3] = r[1, 0] - r[0, 1]
    else:
        i = 0
        if r[1, 1] > r[0, 0]:
            i = 1
        if r[2, 2] > r[i, i]:
            i = 2
        j = (i + 1) % 3
        k = (i + 2) % 3
        q[0] = r[k, j] - r[j, k]
        q[1 + i] = 1.0 + r[i, i] - r[j, j] - r[k, k]
        q[1 + j] = r[j, i] + r[i, j]
        q[1 + k] = r[k, i] + r[i, k]
    q /= math.sqrt(q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3])
    if q[0] < 0.0:
        q = -q
    return q


@kernel
def rotvec_to_matrix(v: Array) -> Array:
    """Rotation matrix (3, 3) of a rotation vector in rad (Rodrigues)."""
    angle = math.sqrt(v[0] * v[0] + v[1] * v[1] + v[2] * v[2])
    if angle < 1e-8:  # series: the closed form loses its digits here
        a, b = 1.0 - angle * angle / 6.0, 0.5 - angle * angle / 24.0
    else:
        a, b = math.sin(angle) / angle, (1.0 - math.cos(angle)) / (angle * angle)
    x, y, z = v[0], v[1], v[2]
    return np.array(
        (
            (1.0 - b * (y * y + z * z), b * x * y - a * z, b * x * z + a * y),
            (b * x * y + a * z, 1.0 - b * (x * x + z * z), b * y * z - a * x),
            (b * x * z - a * y, b * y * z + a * x, 1.0 - b * (x * x + y * y)),
        )
    )


@kernel
def matrix_to_rotvec(r: Array) -> Array:
    """Rotation vector in rad, of length at most pi, of a rotation matrix (3, 3)."""
    q = quat_from_matrix(r)
    s = math.sqrt(q[1] * q[1] + q[2] * q[2] + q[3] * q[3])
    scale = 2.0 if s < 1e-12 else 2.0 * math.atan2(s, q[0]) / s
    return np.array((q[1] * scale, q[2] * scale, q[3] * scale))


@kernel
def axis_angle_to_matrix(axis: Array, angle_rad: float) -> Array:
    """Rotation matrix (3, 3) about a unit axis."""
    c, s = math.cos(angle_rad), math.sin(angle_rad)
    x, y, z, d = axis[0], axis[1], axis[2], 1.0 - c
    return np.array(
        (
            (c + d * x * x, d * x * y - s * z, d * x * z + s * y),
            (d * x * y + s * z, c + d * y * y, d * y * z - s * x),
            (d * x * z - s * y, d * y * z + s * x, c + d * z * z),
        )
    )


def rpy_to_matrix(rpy_rad: npt.ArrayLike) -> Array:
    """Rotation matrix (3, 3) of roll, pitch, yaw about fixed x, y, z (URDF's order: Rz Ry Rx)."""
    roll, pitch, yaw = (
        float(a) for a in cast("list[float]", np.asarray(rpy_rad, dtype=np.float64))
    )
    cr, sr, cp, sp = math.cos(roll), math.sin(roll), math.cos(pitch), math.sin(pitch)
    cy, sy = math.cos(yaw), math.sin(yaw)
    return np.array(
        [
            [cy * cp, cy * sp * sr - sy * cr, cy * sp * cr + sy * sr],
            [sy * cp, sy * sp * sr + cy * cr, sy * sp * cr - cy * sr],
            [-sp, cp * sr, cp * cr],
        ]
    )


def transform(
    position_m: npt.ArrayLike = (0.0, 0.0, 0.0), rotation: npt.ArrayLike | None = None
) -> Array:
    """Build a transform (4, 4) from a position in m and a rotation matrix (3, 3)."""
    t = np.eye(4)
    t[:3, 3] = position_m
    if rotation is not None:
        t[:3, :3] = rotation
    return t


def pose_transform(position_m: npt.ArrayLike, quat_wxyz: npt.ArrayLike) -> Array:
    """Build a transform (4, 4) from a position in m and a unit quaternion, w x y z."""
    return transform(position_m, quat_to_matrix(np.asarray(quat_wxyz, dtype=np.float64)))


@kernel
def invert(t: Array) -> Array:
    """Inverse of a rigid transform (4, 4)."""
    out = np.eye(4)
    for i in range(3):
        for j in range(3):
            out[i, j] = t[j, i]
        out[i, 3] = -(t[0, i] * t[0, 3] + t[1, i] * t[1, 3] + t[2, i] * t[2, 3])
    return out


@kernel
def product(a: Array, b: Array) -> Array:
    """Product (3, 3) of two rotations; of a transform (4, 4) its rotation counts."""
    out = np.zeros((3, 3))
    for i in range(3):
        for j in range(3):
            for k in range(3):
                out[i, j] += a[i, k] * b[k, j]
    return out


@kernel
def outside_box(box: Array, T_box_frame: Array, T_frame_point: Array) -> float:
    """How far in m the origin of a frame is outside a box (low, high), (2, 3); negative inside."""
    most = -math.inf
    for i in range(3):
        at = T_box_frame[i, 3]
        for k in range(3):
            at += T_box_frame[i, k] * T_frame_point[k, 3]
        most = max(most, max(box[0, i] - at, at - box[1, i]))
    return most


@kernel
def rotation_angle(a: Array, b: Array) -> float:
    """Angle in rad of the rotation that takes a to b; both (3, 3) or (4, 4)."""
    x = y = z = trace = 0.0
    for i in range(3):
        trace += a[i, 0] * b[i, 0] + a[i, 1] * b[i, 1] + a[i, 2] * b[i, 2]
        x += a[i, 2] * b[i, 1] - a[i, 1] * b[i, 2]
        y += a[i, 0] * b[i, 2] - a[i, 2] * b[i, 0]
        z += a[i, 1] * b[i, 0] - a[i, 0] * b[i, 1]
    return math.atan2(math.sqrt(x * x + y * y + z * z), trace - 1.0)


def is_rotation(r: Array, tolerance: float = 1e-6) -> bool:
    """Whether r (3, 3), or that part of a (4, 4), is a proper rotation, false for NaN."""
    return _is_rotation(r, tolerance)


@kernel
def _is_rotation(r: Array, tolerance: float) -> bool:
    for i in range(3):
        for j in range(3):
            dot = r[i, 0] * r[j, 0] + r[i, 1] * r[j, 1] + r[i, 2] * r[j, 2]
            if not abs(dot - (1.0 if i == j else 0.0)) <= tolerance:
                return False
    x = r[0, 0] * (r[1, 1] * r[2, 2] - r[1, 2] * r[2, 1])
    y = r[0, 1] * (r[1, 2] * r[2, 0] - r[1, 0] * r[2, 2])
    z = r[0, 2] * (r[1, 0] * r[2, 1] - r[1, 1] * r[2, 0])
    return bool(x + y + z > 0.0)
