"""The cell as a picture: MuJoCo's classic renderer into a buffer of its own, then to the window.

A picture in which nothing changed is shown again without being drawn. Where a processor draws it
(Mesa's llvmpipe), shadows are left out while things move and come back when they rest.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping

import mujoco
import numpy as np
import numpy.typing as npt
from OpenGL import GL

from brain.cell import CellModel
from brain.errors import ConfigError
from brain.geometry import Array
from hardware.status import Status
from vr.belief import believe, joints_of
from vr.camera_view import OrbitView
from vr.style import Rgb

GEOMS_MAX = 3000
GHOST_ALPHA = 0.38
FINER = 2
GHOST_GROUP, HIDDEN_GROUP = 0, 5
SEEN_GROUPS = 3
"""MuJoCo shows the groups 0 to 2 unless told otherwise."""
NEAR_M, FAR_M = 0.02, 30.0


class CellPicture:
    """Draws the twin of a cell; needs a current OpenGL context from its making to its end."""

    def __init__(
        self, model: mujoco.MjModel, cell: CellModel, qpos_start: Array, software: bool
    ) -> None:
        """Prepare; `software`: a processor draws, so keep it cheap.

        Raises:
            ConfigError: the model is not of this cell, or this display cannot draw it.
        """
        self._model = copy.copy(model)
        quality = self._model.vis.quality
        quality.shadowsize = 1024 if software else 4096
        quality.offsamples = 0 if software else 4
        self._model.vis.global_.offwidth, self._model.vis.global_.offheight = 64, 64
        self._model.vis.map.znear = NEAR_M / model.stat.extent
        self._model.vis.map.zfar = FAR_M / model.stat.extent
        self.fovy_deg = float(model.vis.global_.fovy)
        self._software = software
        self._data = mujoco.MjData(self._model)
        self._data.qpos[:] = qpos_start
        mujoco.mj_forward(self._model, self._data)
        self._joints = joints_of(self._model, cell, qpos_start)
        self._ghost_model, self._ghost_geoms = ghost_model(self._model, cell)
        self._ghost = mujoco.MjData(self._ghost_model)
        self._ghost_shown = False
        self._option = mujoco.MjvOption()
        self._option.geomgroup[HIDDEN_GROUP] = 0
        self._perturb = mujoco.MjvPerturb()
        self._camera = mujoco.MjvCamera()
        self._scene = mujoco.MjvScene(self._model, maxgeom=GEOMS_MAX)
        self._scene.flags[mujoco.mjtRndFlag.mjRND_REFLECTION] = 0
        try:
            self._context = mujoco.MjrContext(self._model, mujoco.mjtFontScale.mjFONTSCALE_100)
        except mujoco.FatalError as error:
            raise ConfigError(
                f"this display cannot draw the cell ({error}); run with --seat none"
            ) from None
        self._size = self._buffer = (0, 0)
        self._kept = Kept()
        self._is_kept = False

    def free(self) -> None:
        """Give the context's buffers back."""
        self._kept.free()
        self._context.free()

    # ------------------------------------------------------------- what is shown

    def measured(self, status: Status) -> None:
        """Show the cell as a status says it is."""
        believe(self._model, self._data, self._joints, status)

    def measured_rad(self, arm: str) -> Array:
        """Return the joints (n,) that are shown for an arm."""
        return self._joints[arm].get(self._data.qpos)

    def state(self) -> bytes:
        """Return what is measured, rounded to what can be seen, to tell whether it has changed."""
        return bytes(self._data.qpos.round(4).tobytes() + self._data.mocap_pos.round(4).tobytes())

    def ghost(self, poses: Mapping[str, tuple[Array, float | None]] | None, tint: Rgb) -> None:
        """Show arms at other joints and openings as translucent ghosts, or none."""
        self._ghost_shown = bool(poses)
        if not poses:
            return
        self._ghost.qpos[:] = self._data.qpos
        self._ghost_model.geom_group[:] = HIDDEN_GROUP
        self._ghost_model.geom_rgba[:, :3] = tint
        for name, (q_rad, opening_m) in poses.items():
            self._joints[name].put(self._ghost.qpos, q_rad, opening_m)
            self._ghost_model.geom_group[self._ghost_geoms[name]] = GHOST_GROUP
        mujoco.mj_kinematics(self._ghost_model, self._ghost)

    def draw(
        self,
        view: OrbitView,
        width: int,
        height: int,
        draft: bool,
        extras: Callable[[mujoco.MjvScene], None],
    ) -> None:
        """Draw into the picture's own buffer, to be shown at that size in pixels.

        Where a processor draws, a `draft` has no shadows and what is no draft is drawn twice as
        large, which smooths its edges when it is shown.
        """
        self._size = (width, height)
        finer = FINER if self._software and not draft else 1
        buffer = (finer * width, finer * height)
        if self._buffer != buffer:
            self._buffer = buffer
            mujoco.mjr_resizeOffscreen(*buffer, self._context)
        self._update(view)
        if self._ghost_shown:
            mujoco.mjv_addGeoms(
                self._ghost_model,
                self._ghost,
                self._option,
                self._perturb,
                mujoco.mjtCatBit.mjCAT_DYNAMIC,
                self._scene,
            )
        extras(self._scene)
        shadows = not (draft and self._software)
        self._scene.flags[mujoco.mjtRndFlag.mjRND_SHADOW] = shadows
        mujoco.mjr_setBuffer(mujoco.mjtFramebuffer.mjFB_OFFSCREEN, self._context)
        mujoco.mjr_render(mujoco.MjrRect(0, 0, *buffer), self._scene, self._context)
        self._is_kept = False

    def show(self, left: int, bottom: int) -> None:
        """Copy the picture to the window, its lower left corner at that pixel."""
        width, height = self._size
        if not self._is_kept:
            mujoco.mjr_setBuffer(mujoco.mjtFramebuffer.mjFB_OFFSCREEN, self._context)
            whole = mujoco.MjrRect(0, 0, *self._buffer)
            part = mujoco.MjrRect(left, bottom, width, height)
            mujoco.mjr_blitBuffer(whole, part, 1, 0, self._context)
            mujoco.mjr_setBuffer(mujoco.mjtFramebuffer.mjFB_WINDOW, self._context)
            self._kept.keep(left, bottom, width, height)
            self._is_kept = True
            return
        self._kept.show(left, bottom)

    def pick(self, view: OrbitView, aspect: float, x: float, y: float) -> Array | None:
        """Return the point (3,) seen at x, y (0 to 1 from the lower left), None for the sky."""
        self._update(view)
        point, ids = np.zeros(3), [np.zeros(1, dtype=np.int32) for _ in range(3)]
        found = mujoco.mjv_select(
            self._model, self._data, self._option, aspect, x, y, self._scene, point, *ids
        )
        return point if found >= 0 else None

    def _update(self, view: OrbitView) -> None:
        self._camera.lookat[:] = view.look_at_m
        self._camera.distance = view.distance_m
        self._camera.azimuth, self._camera.elevation = view.azimuth_deg, view.elevation_deg
        mujoco.mjv_updateScene(
            self._model,
            self._data,
            self._option,
            self._perturb,
            self._camera,
            mujoco.mjtCatBit.mjCAT_ALL,
            self._scene,
        )


class Kept:
    """A copy of a part of the window, to be shown again without scaling it again."""

    def __init__(self) -> None:
        self._frame = int(GL.glGenFramebuffers(1))
        self._pixels = int(GL.glGenRenderbuffers(1))
        self._size = (0, 0)

    def keep(self, left: int, bottom: int, width: int, height: int) -> None:
        """Copy that part from the window."""
        if self._size != (width, height):
            self._size = (width, height)
            GL.glBindRenderbuffer(GL.GL_RENDERBUFFER, self._pixels)
            GL.glRenderbufferStorage(GL.GL_RENDERBUFFER, GL.GL_RGBA8, width, height)
            GL.glBindFramebuffer(GL.GL_DRAW_FRAMEBUFFER, self._frame)
            GL.glFramebufferRenderbuffer(
                GL.GL_DRAW_FRAMEBUFFER, GL.GL_COLOR_ATTACHMENT0, GL.GL_RENDERBUFFER, self._pixels
            )
        self._copy(0, self._frame, (left, bottom), (0, 0))

    def show(self, left: int, bottom: int) -> None:
        """Copy it back to the window, its lower left corner at that pixel."""
        self._copy(self._frame, 0, (0, 0), (left, bottom))

    def free(self) -> None:
        """Give the buffers back."""
        GL.glDeleteFramebuffers(1, [self._frame])
        GL.glDeleteRenderbuffers(1, [self._pixels])

    def _copy(self, source: int, to: int, a: tuple[int, int], b: tuple[int, int]) -> None:
        width, height = self._size
        GL.glBindFramebuffer(GL.GL_READ_FRAMEBUFFER, source)
        GL.glBindFramebuffer(GL.GL_DRAW_FRAMEBUFFER, to)
        GL.glBlitFramebuffer(
            *a,
            a[0] + width,
            a[1] + height,
            *b,
            b[0] + width,
            b[1] + height,
            GL.GL_COLOR_BUFFER_BIT,
            GL.GL_NEAREST,
        )
        GL.glBindFramebuffer(GL.GL_FRAMEBUFFER, 0)


def ghost_model(
    model: mujoco.MjModel, cell: CellModel
) -> tuple[mujoco.MjModel, dict[str, npt.NDArray[np.int64]]]:
    """Return the model in one translucent tint, and by arm the geoms that a ghost shows.

    The first link turns on the spot: its ghost would only flicker on it.
    """
    ghost = copy.copy(model)
    ghost.geom_matid[:] = -1
    ghost.geom_rgba[:, 3] = GHOST_ALPHA
    moving: dict[str, npt.NDArray[np.int64]] = {}
    body = model.geom_bodyid
    for arm in cell.arms:
        first = model.joint(f"{arm.name}/{arm.model.chain.joint_names[0]}").bodyid[0]
        own = model.body_rootid[body] == model.body_rootid[first]
        goes = (model.body_weldid[body] != 0) & (body != first)
        moving[arm.name] = np.flatnonzero(own & goes & (model.geom_group < SEEN_GROUPS))
    return ghost, moving
