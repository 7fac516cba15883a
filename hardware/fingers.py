"""Where a gripper's fingers are at an opening, and the room that they sweep."""

from __future__ import annotations

import math

import numpy as np

from brain.geometry import Array, axis_angle_to_matrix, transform
from brain.world import BOX
from hardware.description import Gripper
from hardware.parts import Body
from hardware.shapes import cover_box, solid

OPENINGS = np.linspace(0.0, 1.0, 33)
"""Where the fingers are looked at to find the room that they sweep, from closed to open."""
SWEEP_SLACK_M = 0.0002
"""More than an arc of 0.1 m and 1.5 degrees leaves its chord by: r (1 - cos(a / 2)) = 9e-6 m."""


def finger_frames(gripper: Gripper, share: float) -> dict[str, Array]:
    """Frames (4, 4) in the gripper of its bodies, from closed (share 0) to open (share 1)."""
    frames = {gripper.body.name: np.eye(4)}
    for finger in gripper.fingers:
        T = frames[finger.parent] @ transform(finger.position_m)
        if finger.slide is not None:
            travel = finger.slide.closed_m + share * (finger.slide.open_m - finger.slide.closed_m)
            T = T @ transform(travel * np.array(finger.slide.axis))
        elif finger.hinge is not None:
            span = finger.hinge.open_deg - finger.hinge.closed_deg
            angle = math.radians(finger.hinge.closed_deg + share * span)
            T = T @ transform(rotation=axis_angle_to_matrix(np.array(finger.hinge.axis), angle))
        frames[finger.body.name] = T
    return frames


def grip_distance_m(gripper: Gripper, share: float) -> float:
    """Distance of the two grip points, from closed (share 0) to open (share 1)."""
    frames = finger_frames(gripper, share)
    a, b = (
        frames[p.body][:3, :3] @ np.array(p.point_m) + frames[p.body][:3, 3]
        for p in gripper.grip_points
    )
    return float(np.linalg.norm(a - b))


def swept(gripper: Gripper, body: Body) -> tuple[Array, Array]:
    """Spheres, in the gripper's frame, that enclose a finger's body at every opening."""
    shapes = [solid(shape) for shape in (*body.collision, *body.pads)]
    low, high = np.full(3, np.inf), np.full(3, -np.inf)
    for share in OPENINGS:
        T_gripper_body = finger_frames(gripper, float(share))[body.name]
        for item in shapes:
            T = T_gripper_body @ item.T_owner_shape
            half = np.abs(T[:3, :3]) @ _half_box(item.kind, item.size_m)
            low, high = np.minimum(low, T[:3, 3] - half), np.maximum(high, T[:3, 3] + half)
    centres, radius = cover_box(0.5 * (high - low) + SWEEP_SLACK_M)
    return centres + 0.5 * (high + low), np.full(len(centres), radius)


def _half_box(kind: int, size_m: Array) -> Array:
    """Half edges (3,) of the box round a shape, in the shape's frame."""
    if kind == BOX:
        return size_m
    r = float(size_m[0])
    return np.array((r, r, r + float(size_m[1])))
