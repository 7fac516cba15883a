"""Simulated colour and depth cameras.

When the shutter opens a camera only notes where everything is; a picture is drawn when somebody
reads it, so that a camera nobody looks at costs nothing. Drawing uses a copy of its own, never the
plant's data. What a frame shows depends on what was noted, the seed and the capture time alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import mujoco
import numpy as np

from brain.errors import ConfigError, DeviceUnavailable
from brain.geometry import Array
from brain.jit import kernel
from brain.record import Record, replace
from brain.types import NS_PER_MS, CameraFrame
from hardware.api import CameraSpec
from hardware.description import load_camera
from hardware.scene import camera_specs
from sim.noise import quick_normal, stream
from sim.picture import Colours, Depths, Pictures
from sim.world import SimWorld

TRANSFER_NS = 60 * NS_PER_MS
"""From capture until a frame can be read.

Source: realsenseai/librealsense issue 1242, a maintainer: depth 60 to 70 ms; ours for both images.
"""
DISPARITY_STEP_PX = 1.0 / 32.0
"""Stereo matching answers in steps of 5 fractional bits.

Source: luxonis/depthai-core issue 357, for another maker's camera; Intel's figure was not found.
"""
COLOUR_LEFT_M = 0.015
"""The left imager stands this far to the right of the colour sensor, the right one a baseline more.

Source: IntelRealSense/realsense-ros@1cbd81be, _d435.urdf.xacro.
"""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Exposure:
    """Where everything was when a shutter opened."""

    t_ns: int
    seq: int
    qpos: Array
    mocap_pos: Array
    mocap_quat: Array


class Darkroom:
    """Draws what the cameras of one model saw; OpenGL is opened with the first camera."""

    def __init__(self, model: mujoco.MjModel) -> None:
        """Prepare for a model."""
        self._model = model
        self._data = mujoco.MjData(model)
        self._pictures: dict[tuple[int, int], Pictures] = {}

    def open(self, width: int, height: int) -> Pictures:
        """Return the pictures of a size.

        Raises:
            ConfigError: there is no OpenGL that draws without a screen.
        """
        size = width, height
        if size not in self._pictures:
            self._pictures[size] = Pictures(self._model, width, height, plain=True)
        return self._pictures[size]

    def develop(
        self, exposure: Exposure, camera: int, width: int, height: int
    ) -> tuple[Colours, Depths]:
        """Draw colours (height, width, 3) and true depth (height, width) in m of an exposure."""
        data = self._data
        data.qpos[:] = exposure.qpos
        data.mocap_pos[:], data.mocap_quat[:] = exposure.mocap_pos, exposure.mocap_quat
        mujoco.mj_kinematics(self._model, data)
        mujoco.mj_camlight(self._model, data)
        return self.open(width, height).both(data, camera)


class _Memory(Record):
    """What a camera remembers: exposures on their way, the newest frame, the last frame period."""

    running: bool
    under_way: tuple[Exposure, ...]
    newest: CameraFrame | None
    last_seq: int


class SimCamera:
    """A colour and depth camera that captures on whole frame periods."""

    def __init__(
        self,
        world: SimWorld,
        spec: CameraSpec,
        darkroom: Darkroom,
        seed: int,
        transfer_ns: int = TRANSFER_NS,
    ) -> None:
        """Take hold of a camera in the world; a frame can be read `transfer_ns` after capture."""
        self._spec = spec
        self._lens = load_camera(spec.model)
        self._world = world
        self._camera = world.scene.camera_id[spec.name]
        self._darkroom = darkroom
        self._transfer_ns = transfer_ns
        self._noise = stream(seed, f"{spec.name}/depth")
        self._memory = _Memory(running=False, under_way=(), newest=None, last_seq=-1)
        world.actors.append(self)

    @property
    def spec(self) -> CameraSpec:
        """What it is."""
        return self._spec

    def start(self) -> None:
        """Open; the first frame is captured with the next frame period.

        Raises:
            DeviceUnavailable: there is no OpenGL to draw with.
        """
        try:
            self._darkroom.open(self._spec.width_px, self._spec.height_px)
        except ConfigError as error:
            raise DeviceUnavailable(f"{self._spec.name}: {error}") from None
        if not self._memory.running:
            last_seq = (self._world.t_ns - 1) // self._spec.period_ns
            self._memory = _Memory(running=True, under_way=(), newest=None, last_seq=last_seq)

    def stop(self) -> None:
        """Close; the last frame can still be read."""
        self._memory = replace(self._memory, running=False, under_way=())

    def read(self) -> CameraFrame | None:
        """Return the newest frame that has come through; it is drawn now if it is new."""
        memory = self._memory
        ready, coming = self._sorted(memory.under_way)
        if ready:
            frame = self._develop(ready[-1])
            memory = replace(memory, newest=frame, under_way=coming)
        self._memory = memory
        return memory.newest

    def before_step(self, t_ns: int) -> None:
        """Open the shutter if a frame is due: on the first step of each frame period."""
        memory, seq = self._memory, t_ns // self._spec.period_ns
        if not memory.running or seq <= memory.last_seq:
            return
        data = self._world.data
        exposure = Exposure(
            t_ns=t_ns,
            seq=seq,
            qpos=data.qpos.copy(),
            mocap_pos=data.mocap_pos.copy(),
            mocap_quat=data.mocap_quat.copy(),
        )
        ready, coming = self._sorted(memory.under_way)
        under_way = (*ready[-1:], *coming, exposure)
        self._memory = replace(memory, under_way=under_way, last_seq=seq)

    def snapshot(self) -> Any:
        """Return all that it remembers."""
        return self._memory

    def restore(self, state: Any) -> None:
        """Go back to a snapshot."""
        self._memory = state

    def _sorted(
        self, under_way: tuple[Exposure, ...]
    ) -> tuple[tuple[Exposure, ...], tuple[Exposure, ...]]:
        """Split exposures into those that have come through by now and the rest."""
        since_ns = self._world.t_ns - self._transfer_ns
        count = sum(exposure.t_ns <= since_ns for exposure in under_way)
        return under_way[:count], under_way[count:]

    def _develop(self, exposure: Exposure) -> CameraFrame:
        spec, lens = self._spec, self._lens
        colour, true_m = self._darkroom.develop(
            exposure, self._camera, spec.width_px, spec.height_px
        )
        depth_m = np.empty_like(true_m)
        stereo_depth(
            true_m,
            np.uint64(self._noise),
            np.int64(exposure.t_ns),
            lens.focal_px * (COLOUR_LEFT_M + lens.baseline_m),
            lens.depth_focal_px * lens.baseline_m,
            lens.subpixel_px,
            DISPARITY_STEP_PX,
            lens.range_min_m,
            lens.range_max_m,
            depth_m,
        )
        colour.flags.writeable = depth_m.flags.writeable = False
        return CameraFrame(
            t_ns=exposure.t_ns, seq=exposure.seq, colour=colour, depth_m=depth_m, K_px=spec.K_px
        )


def connect_cameras(world: SimWorld, seed: int) -> tuple[SimCamera, ...]:
    """Make the cameras of a world; they share one darkroom."""
    darkroom = Darkroom(world.model)
    specs = camera_specs(world.scene.resolved)
    return tuple(SimCamera(world, spec, darkroom, seed) for spec in specs)


@kernel
def stereo_depth(
    true_m: Depths,
    key: np.uint64,
    counter: np.int64,
    shift_px_m: float,
    disparity_px_m: float,
    error_px: float,
    step_px: float,
    min_m: float,
    max_m: float,
    out: Depths,
) -> None:
    """Turn true depth (h, w) in m into what a stereo camera reports, aligned to colour.

    Disparity = `disparity_px_m` / depth carries a normal error of `error_px` and comes in steps of
    `step_px`; so depth errs by depth^2 error_px / disparity_px_m. The imagers stand to the right of
    the colour sensor: seen from the right one, a point at depth z lies `shift_px_m` / z farther
    left. What something nearer hides from it is NaN, a band to the left of near things; so is what
    is out of range. Errors of neighbours are independent, which real ones are not.

    Source: ethz-asl/rotors_simulator@4eb0826e, depth_noise_model.cpp, after Intel's "Tuning depth
    cameras for best performance" (the error); the rest follows from the geometry of the imagers.
    """
    height, width = true_m.shape
    error = np.empty(width)
    for v in range(height):
        quick_normal(key, counter + v, error)  # steps are farther apart than a picture has rows
        leftmost = np.inf
        for k in range(width):
            u = width - 1 - k
            out[v, u] = np.nan
            z = float(true_m[v, u])
            if not z > 0.0:
                continue
            seen_at = u - shift_px_m / z
            if seen_at >= leftmost:
                continue
            leftmost = seen_at
            steps = np.rint((disparity_px_m / z + error_px * error[u]) / step_px)
            if steps > 0.0:
                measured_m = disparity_px_m / (steps * step_px)
                if min_m <= measured_m <= max_m:
                    out[v, u] = measured_m
