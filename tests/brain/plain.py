"""Plain numpy versions of the kinematics kernels, written for reading."""

from __future__ import annotations

import numpy as np
from scipy.spatial.transform import Rotation

from brain.geometry import Array
from brain.robot import ArmModel


def links(model: ArmModel, q_rad: Array) -> Array:
    """Frames (n + 1, 4, 4) of base and links."""
    frames = [np.eye(4)]
    for k, q in enumerate(q_rad):
        turn = np.eye(4)
        turn[:3, :3] = Rotation.from_rotvec(q * model.chain.axis[k]).as_matrix()
        frames.append(frames[-1] @ model.chain.T_link_joint[k] @ turn)
    return np.array(frames)


def flange(model: ArmModel, q_rad: Array) -> Array:
    return links(model, q_rad)[-1] @ model.chain.T_link_flange


def tool(model: ArmModel, q_rad: Array) -> Array:
    return flange(model, q_rad) @ model.T_flange_tool


def error(T: Array, T_target: Array) -> Array:
    """Position, then rotation vector, of the way from T to T_target in the base."""
    turn = Rotation.from_matrix(T_target[:3, :3] @ T[:3, :3].T)
    return np.concatenate((T_target[:3, 3] - T[:3, 3], turn.as_rotvec()))


def jacobian(model: ArmModel, q_rad: Array, h: float = 1e-6) -> Array:
    """Tool Jacobian (6, n) by central differences."""
    columns = []
    for k in range(model.dof):
        step = np.eye(model.dof)[k] * h
        columns.append(error(tool(model, q_rad - step), tool(model, q_rad + step)) / (2 * h))
    return np.stack(columns, axis=1)


def damped(sigma: float) -> float:
    """The factor that stands in for 1 / sigma."""
    damping2 = 0.05**2 * (1 - (sigma / 0.1) ** 2) if sigma < 0.1 else 0.0
    return sigma / (sigma**2 + damping2)


def damped_inverse(J: Array) -> Array:
    u, s, vt = np.linalg.svd(J, full_matrices=False)
    return vt.T @ np.diag([damped(v) for v in s]) @ u.T


def two_level_step(J: Array, wanted: Array) -> Array:
    """Damped step (n,): the smaller error first (0.2 m against 1 rad), the other beside it."""
    position, rotation = np.linalg.norm(wanted[:3]), np.linalg.norm(wanted[3:])
    first, second = (slice(0, 3), slice(3, 6))
    if position > 0.2 * rotation:
        first, second = second, first
    dq = damped_inverse(J[first]) @ wanted[first]
    beside = np.eye(J.shape[1]) - np.linalg.pinv(J[first]) @ J[first]
    return dq + damped_inverse(J[second] @ beside) @ (wanted[second] - J[second] @ dq)


def turned(q_rad: Array) -> Array:
    """The same angles in [-pi, pi)."""
    return np.asarray((q_rad + np.pi) % (2 * np.pi) - np.pi)


def nearest_rad(q_rad: Array, rows: Array) -> float:
    """Largest joint difference to the nearest of the rows, full turns aside."""
    return float(np.abs(turned(rows - q_rad)).max(axis=1).min(initial=np.inf))
