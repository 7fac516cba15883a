"""Depth images of boxes, worked out ray by ray: scenes whose truth is known exactly."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from brain.geometry import Array, frozen

WIDTH, HEIGHT = 640, 480
FAR_M = 3.5


@dataclass(frozen=True)
class Boxes:
    """Axis-aligned boxes: `low_m`, `high_m` (n, 3) in the world."""

    low_m: Array
    high_m: Array

    def moved(self, box: int, by_m: tuple[float, float, float]) -> Boxes:
        """Return the same with one box moved."""
        shift = np.zeros_like(self.low_m)
        shift[box] = by_m
        return Boxes(self.low_m + shift, self.high_m + shift)


def cell_boxes(rng: np.random.Generator, n: int = 12) -> Boxes:
    """A table with boxes of random sizes on it, and a wall behind."""
    size = rng.uniform(0.05, 0.35, (n, 3))
    middle = np.column_stack([rng.uniform(-0.7, 0.7, (n, 2)), 0.5 * size[:, 2]])
    low = np.vstack([[[-1.0, -1.0, -0.05], [-1.2, 1.0, -0.05]], middle - 0.5 * size])
    high = np.vstack([[[1.0, 1.0, 0.0], [1.2, 1.1, 1.5]], middle + 0.5 * size])
    return Boxes(low, high)


def looking(eye_m: tuple[float, float, float], at_m: tuple[float, float, float]) -> Array:
    """Pose of an optical frame that looks from one place to another, its x level."""
    z = np.subtract(at_m, eye_m) / np.linalg.norm(np.subtract(at_m, eye_m))
    x = np.cross(z, [0.0, 0.0, 1.0])
    x /= np.linalg.norm(x)
    pose = np.eye(4)
    pose[:3, :3] = np.column_stack([x, np.cross(z, x), z])
    pose[:3, 3] = eye_m
    return frozen(pose)


def intrinsics(width: int = WIDTH, height: int = HEIGHT) -> Array:
    """Those of a depth camera with 56 degrees from left to right, without distortion."""
    f = 600.0 * width / WIDTH
    return frozen([[f, 0.0, 0.5 * (width - 1)], [0.0, f, 0.5 * (height - 1)], [0.0, 0.0, 1.0]])


def depth_of(
    boxes: Boxes, K_px: Array, T_world_optical: Array, shape: tuple[int, int] = (HEIGHT, WIDTH)
) -> npt.NDArray[np.float32]:
    """Depth (h, w) in m along the optical axis; 0 where nothing is within `FAR_M`."""
    v, u = np.indices(shape)
    ray = np.stack(
        [(u - K_px[0, 2]) / K_px[0, 0], (v - K_px[1, 2]) / K_px[1, 1], np.ones(shape)], axis=-1
    )
    way = ray @ T_world_optical[:3, :3].T
    eye = T_world_optical[:3, 3]
    depth = np.full(shape, np.inf)
    for low, high in zip(boxes.low_m, boxes.high_m, strict=True):
        with np.errstate(divide="ignore", invalid="ignore"):
            one, other = (low - eye) / way, (high - eye) / way
        enters = np.minimum(one, other).max(axis=-1)
        leaves = np.maximum(one, other).min(axis=-1)
        depth = np.where((enters < leaves) & (enters > 0.0), np.minimum(depth, enters), depth)
    return np.where(depth <= FAR_M, depth, 0.0).astype(np.float32)
