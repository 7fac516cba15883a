"""Pictures without a screen, by MuJoCo's classic renderer.

OpenGL has one current context per thread, and a window may have its own in the caller's: each
`Pictures` draws in a thread of its own, and its callers wait for it. Rows run from the top, pixel
centres have whole coordinates, so that a camera's principal point is the middle, (size - 1) / 2.
"""

from __future__ import annotations

import ctypes.util
import importlib
import os
import weakref
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import mujoco
import numpy as np
import numpy.typing as npt

from brain.errors import ConfigError
from brain.jit import kernel

Colours = npt.NDArray[np.uint8]
Depths = npt.NDArray[np.float32]
CameraLike = Any
"""A camera's number or name, or an `mujoco.MjvCamera`."""

EXTRA_GEOMS = 1000
"""Room for what MuJoCo draws beside the model's geoms."""
LIBRARIES = {"egl": "EGL", "osmesa": "OSMesa"}
"""What `MUJOCO_GL` may name, and the library behind each; the first that is there is taken."""
FINE_SAMPLES, FINE_SHADOW_PX = 4, 4096


class Pictures:
    """Draws a model from its cameras, in one size.

    A plain picture has no shadows, reflections or smoothed edges: what a sensor needs, quickly.
    """

    def __init__(
        self, model: mujoco.MjModel, width: int, height: int, *, plain: bool = False
    ) -> None:
        """Open an OpenGL context and load the model into it.

        Raises:
            ConfigError: there is no OpenGL that draws without a screen.
        """
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="pictures")
        self._painter = self._thread.submit(_Painter, model, width, height, plain).result()
        self._end = weakref.finalize(self, _end, self._thread, self._painter)
        self._end.atexit = False  # threads have ended by then

    def colour(self, data: mujoco.MjData, camera: CameraLike = -1) -> Colours:
        """Return colours (height, width, 3); camera -1 is MuJoCo's free one."""
        return self.both(data, camera)[0]

    def depth(self, data: mujoco.MjData, camera: CameraLike = -1) -> Depths:
        """Return depth (height, width) in m along the optical axis, NaN where there is nothing."""
        return self.both(data, camera)[1]

    def both(self, data: mujoco.MjData, camera: CameraLike = -1) -> tuple[Colours, Depths]:
        """Return colours and depth of one drawing."""
        return self._thread.submit(self._painter.draw, data, camera).result()

    def close(self) -> None:
        """Free the OpenGL context; the object is of no use afterwards."""
        self._end()


def _end(thread: ThreadPoolExecutor, painter: _Painter) -> None:
    thread.submit(painter.free).result()
    thread.shutdown()


class _Painter:
    """What lives in the thread of a `Pictures`: the context, the scene, the buffers."""

    def __init__(self, model: mujoco.MjModel, width: int, height: int, plain: bool) -> None:
        """Open a context and load the model."""
        self._model = model
        self._size = width, height
        self._gl = open_context(width, height)
        self._context = _load(model, width, height, plain)
        mujoco.mjr_setBuffer(mujoco.mjtFramebuffer.mjFB_OFFSCREEN.value, self._context)
        self._context.readDepthMap = mujoco.mjtDepthMap.mjDEPTH_ZEROFAR
        self._rect = mujoco.MjrRect(0, 0, width, height)
        self._option = mujoco.MjvOption()
        self._scene = mujoco.MjvScene(model, model.ngeom + EXTRA_GEOMS)
        if plain:
            flag = mujoco.mjtRndFlag
            for off in (flag.mjRND_SHADOW, flag.mjRND_REFLECTION, flag.mjRND_FOG, flag.mjRND_HAZE):
                self._scene.flags[off] = 0

    def draw(self, data: mujoco.MjData, camera: CameraLike) -> tuple[Colours, Depths]:
        """Draw once, read colours and depth."""
        width, height = self._size
        mujoco.mjv_updateScene(
            self._model,
            data,
            self._option,
            None,
            self._view(camera),
            mujoco.mjtCatBit.mjCAT_ALL.value,
            self._scene,
        )
        mujoco.mjr_render(self._rect, self._scene, self._context)
        colours = np.empty((height, width, 3), dtype=np.uint8)
        raw = np.empty((height, width), dtype=np.float32)
        mujoco.mjr_readPixels(colours, raw, self._rect, self._context)
        depths = np.empty_like(raw)
        seen = self._scene.camera[0]
        metres(raw, float(seen.frustum_near), float(seen.frustum_far), depths)
        return np.ascontiguousarray(colours[::-1]), depths

    def free(self) -> None:
        """Free everything, in the thread where the context is current."""
        self._context.free()
        self._gl.free()

    def _view(self, camera: CameraLike) -> mujoco.MjvCamera:
        if isinstance(camera, mujoco.MjvCamera):
            return camera
        number = self._model.camera(camera).id if isinstance(camera, str) else camera
        view = mujoco.MjvCamera()
        if number < 0:
            mujoco.mjv_defaultFreeCamera(self._model, view)
        else:
            view.type, view.fixedcamid = mujoco.mjtCamera.mjCAMERA_FIXED, number
        return view


def _load(model: mujoco.MjModel, width: int, height: int, plain: bool) -> mujoco.MjrContext:
    """Load a model; buffer sizes and quality are read from it, so they are lent to it."""
    quality, whole = model.vis.quality, model.vis.global_
    before = quality.offsamples, quality.shadowsize, whole.offwidth, whole.offheight
    quality.offsamples = 0 if plain else FINE_SAMPLES
    quality.shadowsize = 0 if plain else FINE_SHADOW_PX
    whole.offwidth, whole.offheight = width, height
    try:
        return mujoco.MjrContext(model, mujoco.mjtFontScale.mjFONTSCALE_100.value)
    except mujoco.FatalError as error:
        raise ConfigError(f"pictures: OpenGL does not take the model: {error}") from None
    finally:
        quality.offsamples, quality.shadowsize, whole.offwidth, whole.offheight = before


def open_context(width: int, height: int) -> Any:
    """Make an OpenGL context without a screen current in this thread, and return it.

    Raises:
        ConfigError: there is none.
    """
    wish = os.environ.get("MUJOCO_GL", "").lower()
    kinds = [wish] if wish in LIBRARIES else [k for k, lib in LIBRARIES.items() if _is_there(lib)]
    if wish not in ("", "glfw", *LIBRARIES) or not kinds:
        raise ConfigError(
            f"pictures: no OpenGL that draws without a screen (MUJOCO_GL={wish!r}, may be "
            f"{' or '.join(LIBRARIES)}); on Debian: apt-get install libegl1 libegl-mesa0"
        )
    kind = kinds[0]
    try:
        maker = importlib.import_module(f"mujoco.{kind}").GLContext
        broken = importlib.import_module("OpenGL.error").Error  # only now: it chose its platform
    except (ImportError, AttributeError, OSError) as error:
        raise ConfigError(f"pictures: {kind} cannot be loaded: {error}") from None
    try:
        context = maker(width, height)
        context.make_current()
    except (broken, ImportError, RuntimeError) as error:
        raise ConfigError(
            f"pictures: {kind} does not work here ({error}); MUJOCO_GL may be "
            f"{' or '.join(LIBRARIES)}"
        ) from None
    return context


def _is_there(library: str) -> bool:
    return ctypes.util.find_library(library) is not None


@kernel
def metres(raw: Depths, near_m: float, far_m: float, out: Depths) -> None:
    """Turn a depth buffer, rows from the bottom, 1 near and 0 far, into metres from the top.

    Source: OpenGL 4.6 core specification, section 13.8: window depth is hyperbolic in distance;
    with the depth range reversed to (1, 0) it is near (far - z) / (z (far - near)).
    """
    height, width = raw.shape
    for v in range(height):
        for u in range(width):
            b = raw[height - 1 - v, u]
            if b > 0.0:
                out[v, u] = near_m * far_m / (near_m + b * (far_m - near_m))
            else:
                out[v, u] = np.nan
