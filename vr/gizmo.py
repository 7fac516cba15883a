"""The 6-DoF gizmo on the tool: where the person wants it to be, and the ghost that goes there.

While the arm holds, the gizmo is dragged freely and only the ghost follows: a goal to preview.
While the arm is driven the same drag is what the hand does (see `vr/hand.py`).
"""

from __future__ import annotations

import numpy as np
from imgui_bundle import imgui
from imgui_bundle.imguizmo import im_guizmo

from brain.cell import CellArm
from brain.geometry import Array, invert, is_rotation, rotation_angle, transform
from brain.ik import nearest, solve, within_limits
from vr.camera_view import OrbitView, Rect, projection, view_matrix
from vr.render import FAR_M, NEAR_M

HANDLES = (
    (im_guizmo.OPERATION.translate, 0.19),
    (im_guizmo.OPERATION.rotate, 0.13),
)
"""Arrows and rings with their sizes in clip space: the arrows' tips stick out of the rings."""
MOVED_M, MOVED_RAD = 1e-3, 2e-3
"""A gizmo that is nearer to the tool than this has not been dragged."""


class Gizmo:
    """Where the gizmo is, and whether it is being dragged."""

    def __init__(self) -> None:
        self.T_world_target: Array | None = None
        self.dragging = False
        self.local = True

    def reset(self) -> None:
        """Go back to the tool."""
        self.T_world_target = None
        self.dragging = False

    def at(self, T_world_tool: Array) -> Array:
        """Return the gizmo's pose (4, 4): where it was dragged to, else the tool's."""
        return T_world_tool if self.T_world_target is None else self.T_world_target

    def draw(self, view: OrbitView, fovy_deg: float, rect: Rect, T_world_tool: Array) -> bool:
        """Draw it over the picture and let it be dragged; true while the mouse is over it."""
        _thin_lines()
        im_guizmo.set_drawlist(imgui.get_background_draw_list())
        im_guizmo.set_rect(rect.x, rect.y, rect.width, rect.height)
        im_guizmo.allow_axis_flip(False)
        matrix = _matrix(self.at(T_world_tool))
        looks = _matrix(view_matrix(view))
        through = _matrix(projection(fovy_deg, rect.width / rect.height, NEAR_M, FAR_M))
        frame = im_guizmo.MODE.local if self.local else im_guizmo.MODE.world
        moved = over = False
        for i, (operation, size) in enumerate(HANDLES):  # the binding takes no sum of operations
            im_guizmo.push_id(i)
            im_guizmo.set_gizmo_size_clip_space(size)
            moved = im_guizmo.manipulate(looks, through, operation, frame, matrix) or moved
            over = over or im_guizmo.is_over()
            im_guizmo.pop_id()
        self.dragging = im_guizmo.is_using_any()
        if moved:
            self.T_world_target = rigid(np.array(matrix.values).reshape(4, 4).T)
        return self.dragging or over


def _thin_lines() -> None:
    lines = im_guizmo.get_style()
    lines.translation_line_thickness, lines.translation_line_arrow_size = 4.0, 8.0
    lines.rotation_line_thickness, lines.rotation_outer_line_thickness = 2.5, 1.5
    lines.center_circle_size = 5.0


def _matrix(T: Array) -> im_guizmo.Matrix16:
    return im_guizmo.Matrix16([float(v) for v in T.T.ravel()])


def rigid(T: Array) -> Array | None:
    """Return the rigid transform (4, 4) nearest to one of single precision; None if there is none.

    Source: S. Umeyama, "Least-squares estimation of transformation parameters between two point
    patterns", IEEE PAMI 13(4), 1991: the nearest rotation from the singular value decomposition.
    """
    if not np.all(np.isfinite(T)):
        return None
    u, _, v = np.linalg.svd(T[:3, :3])
    rotation = u @ np.diag((1.0, 1.0, np.linalg.det(u @ v))) @ v
    return transform(T[:3, 3], rotation) if is_rotation(rotation) else None


def was_dragged(T_world_target: Array | None, T_world_tool: Array | None) -> bool:
    """Whether the gizmo stands somewhere else than the tool."""
    if T_world_target is None or T_world_tool is None:
        return False
    apart_m = float(np.linalg.norm(T_world_target[:3, 3] - T_world_tool[:3, 3]))
    return apart_m > MOVED_M or rotation_angle(T_world_target, T_world_tool) > MOVED_RAD


def joints_for(arm: CellArm, T_world_target: Array, q_now_rad: Array) -> Array | None:
    """Return joints (n,) that put the tool there, those nearest to now; None out of reach."""
    T_base_tool = invert(np.array(arm.T_world_base)) @ T_world_target
    found = solve(arm.model, T_base_tool, q_now_rad)
    limits = arm.model.limits
    return nearest(within_limits(found, limits.q_min_rad, limits.q_max_rad), q_now_rad)
