"""The picture's part of the window: the cell as measured, ghosts, ways, and the mouse in it.

Decides what is to be seen and whether it looks different from before; `vr/render.py` draws it.
"""

from __future__ import annotations

import mujoco
import numpy as np
from imgui_bundle import imgui

from brain.cell import CellModel
from brain.geometry import Array
from brain.types import NS_PER_MS, Mode
from hardware.status import ArmStatus, Preview
from vr import camera_view as cv
from vr import style
from vr.camera_view import OrbitView, Rect
from vr.gizmo import Gizmo, joints_for, was_dragged
from vr.overlay import Way, draw_marker, draw_ways, ways
from vr.render import CellPicture
from vr.timeline import Timeline
from vr.window import Window

REST_NS = 300 * NS_PER_MS
"""A picture that has not changed for so long is drawn once more, in full quality."""
GHOST_RAD = 5e-3
"""A ghost nearer to the arm than this would only flicker on it."""
GIZMO_MODES = (Mode.HOLD, Mode.TELEOP)
MARKER_M = 0.02

Poses = dict[str, tuple[Array, float | None]]


class CellView:
    """What is seen of the cell, and from where."""

    def __init__(self, cell: CellModel, picture: CellPicture, home: OrbitView) -> None:
        """Look at a cell's picture."""
        self.picture = picture
        self.view = self.home = home
        self.gizmo = Gizmo()
        self.changed_ns = 0
        self._cell = cell
        self._preview: Preview | None = None
        self._ways: tuple[Way, ...] = ()
        self._drawn: tuple[object, ...] = ()
        self._moved_ns = 0
        self._in_full = False
        self._mouse: str | None = None
        self._reach: tuple[bytes, Array | None] = (b"", None)

    @property
    def has_ways(self) -> bool:
        """Whether a rehearsed way is drawn."""
        return bool(self._ways)

    def rehearsed(self, preview: Preview | None) -> None:
        """Show the ways of a rehearsal, or none."""
        if preview is not self._preview:
            self._preview = preview
            self._ways = () if preview is None else ways(self._cell, preview)

    def reaching(self, arm: str) -> Array | None:
        """Return joints (n,) for the gizmo's pose, None where the arm does not reach."""
        target = self.gizmo.T_world_target
        if target is None:
            return None
        q_now = self.picture.measured_rad(arm)
        key = arm.encode() + target.tobytes() + q_now.round(3).tobytes()
        if self._reach[0] != key:
            model = self._cell.arms[self._cell.arm_index(arm)]
            self._reach = (key, joints_for(model, target, q_now))
        return self._reach[1]

    def ghosts(self, mode: Mode | None, line: Timeline, arm: ArmStatus | None) -> Poses:
        """Return the arms to show as ghosts: the rehearsal's, else the gizmo's."""
        wanted: Poses = {}
        if mode is Mode.PREVIEW:
            wanted = line.poses()
        elif mode in GIZMO_MODES and arm is not None:
            q_rad = self.reaching(arm.name)
            if q_rad is not None and was_dragged(self.gizmo.T_world_target, arm.T_world_tool):
                wanted = {arm.name: (q_rad, arm.opening_m)}
        return {
            name: pose
            for name, pose in wanted.items()
            if np.max(np.abs(pose[0] - self.picture.measured_rad(name))) > GHOST_RAD
        }

    def draw(
        self,
        pixels: tuple[int, int],
        ghosts: Poses,
        out_of_reach: bool,
        may_take_long: bool,
        now_ns: int,
    ) -> None:
        """Draw if anything looks different, or once more in full when all has come to rest."""
        target = self.gizmo.T_world_target
        marker = target[:3, 3] if out_of_reach and target is not None else None
        state = (
            self.view,
            pixels,
            None if self._preview is None else self._preview.digest,
            tuple((name, q.round(4).tobytes(), opening) for name, (q, opening) in ghosts.items()),
            None if marker is None else marker.round(4).tobytes(),
            self.picture.state(),
        )
        if state != self._drawn:
            self._drawn, self._in_full = state, False
            self.changed_ns = self._moved_ns = now_ns
        elif self._in_full or not may_take_long or now_ns - self.changed_ns < REST_NS:
            return
        draft = now_ns - self._moved_ns < REST_NS
        self.picture.ghost(ghosts, style.ACCENT)

        def extras(scene: mujoco.MjvScene) -> None:
            draw_ways(scene, self._ways)
            if marker is not None:
                draw_marker(scene, marker, style.STOPPED, MARKER_M)

        self.picture.draw(self.view, *pixels, draft, extras)
        self._in_full = not draft

    def show(self, rect: Rect, window: Window) -> None:
        """Put the picture into its place in the window."""
        ratio = window.pixels_per_unit
        bottom = window.pixels[1] - round((rect.y + rect.height) * ratio)
        self.picture.show(round(rect.x * ratio), bottom)

    # ------------------------------------------------------------- mouse

    def preset(self, number: int, tool_m: Array) -> None:
        """Go to one of the views of the keys 1 to 4."""
        self.view = cv.presets(self.home, tool_m)[number - 1]

    def handle_mouse(self, rect: Rect, over_gizmo: bool) -> None:
        """Let the mouse turn, shift and zoom the view, and choose what to look at."""
        io = imgui.get_io()
        x, y = io.mouse_pos
        if self._mouse is None:
            free = not io.want_capture_mouse and not over_gizmo and not self.gizmo.dragging
            if not (rect.holds(x, y) and free):
                return
            if imgui.is_mouse_double_clicked(0):
                self._look_there(rect, x, y)
            elif imgui.is_mouse_clicked(0):
                self._mouse = "orbit"
            elif imgui.is_mouse_clicked(1):
                self._mouse = "pan"
            elif io.mouse_wheel:
                self.view = cv.zoom(self.view, io.mouse_wheel)
            return  # how the mouse came to where it was pressed turns nothing
        if not imgui.is_mouse_down(0 if self._mouse == "orbit" else 1):
            self._mouse = None
            return
        dx, dy = io.mouse_delta
        if self._mouse == "orbit":
            self.view = cv.orbit(self.view, dx, dy)
        else:
            size = cv.m_per_px(self.view, self.picture.fovy_deg, rect.height)
            self.view = cv.pan(self.view, dx, dy, size)

    def _look_there(self, rect: Rect, x: float, y: float) -> None:
        at = (x - rect.x) / rect.width, 1.0 - (y - rect.y) / rect.height
        point = self.picture.pick(self.view, rect.width / rect.height, *at)
        if point is not None:
            self.view = cv.look_at(self.view, point)


def default_view(model: mujoco.MjModel) -> OrbitView:
    """Look at the cell as its model says, from a little more than its extent away."""
    x, y, z = (float(v) for v in model.stat.center)
    return OrbitView(
        look_at_m=(x, y, z),
        distance_m=2.3 * float(model.stat.extent),
        azimuth_deg=float(model.vis.global_.azimuth),
        elevation_deg=float(model.vis.global_.elevation),
    )
