"""The cell's cameras as pictures to look at: colour as it is, depth as brightness."""

from __future__ import annotations

from collections.abc import Sequence

import cv2
import numpy as np
import numpy.typing as npt

from hardware.api import Camera
from vr.pictures import Pictures

NEAR_M, FAR_M = 0.3, 2.0
"""Depths between these are told apart; nearer is brightest."""
WIDTH_PX = 320


def camera_pictures(cameras: Sequence[Camera]) -> Pictures:
    """Read the newest frame of each camera; two pictures each, None while it has given none."""
    pictures: dict[str, npt.NDArray[np.uint8] | None] = {}
    for camera in cameras:
        frame = camera.read()
        name = camera.spec.name
        pictures[name] = None if frame is None else small(frame.colour)
        pictures[f"{name} depth"] = None if frame is None else small(depth_colours(frame.depth_m))
    return pictures


def depth_colours(depth_m: npt.NDArray[np.float32]) -> npt.NDArray[np.uint8]:
    """Colour a depth picture (h, w) by cividis, near bright; pixels without a reading are black."""
    share = np.clip((FAR_M - depth_m) / (FAR_M - NEAR_M), 0.0, 1.0)
    known = np.isfinite(share)
    level = np.where(known, 255.0 * share, 0.0).astype(np.uint8)
    colours = np.asarray(cv2.applyColorMap(level, cv2.COLORMAP_CIVIDIS))[..., ::-1]
    return np.ascontiguousarray(np.where(known[..., None], colours, 0).astype(np.uint8))


def small(picture: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    """Shrink a picture to the size that a panel shows."""
    height = round(picture.shape[0] * WIDTH_PX / picture.shape[1])
    made = cv2.resize(picture, (WIDTH_PX, height), interpolation=cv2.INTER_AREA)
    return np.asarray(made, dtype=np.uint8)
