"""A voxel map as one would first write it: a dictionary, and arrays of points for each frame."""

from __future__ import annotations

import numpy as np

from brain.voxels import DepthImage, Limits

Voxel = tuple[int, int, int]


class PlainMap:
    """What `VoxelMap` must agree with, voxel by voxel."""

    def __init__(self, edge_m: float) -> None:
        self.edge_m = edge_m
        self.value: dict[Voxel, float] = {}

    def see(self, image: DepthImage, body: np.ndarray | None = None) -> None:
        """Take a frame."""
        limits = Limits()
        depth = image.depth_m.astype(np.float64)
        v, u = np.nonzero((depth >= limits.near_m) & (depth <= limits.far_m))
        z = depth[v, u]
        K, T = image.K_px, image.T_world_optical
        optical = np.column_stack([(u - K[0, 2]) / K[0, 0] * z, (v - K[1, 2]) / K[1, 1] * z, z])
        world = optical @ T[:3, :3].T + T[:3, 3]
        if body is not None:
            for sphere in body:
                world = world[np.linalg.norm(world - sphere[:3], axis=1) > sphere[3]]
        hit = {tuple(row) for row in np.floor(world / self.edge_m).astype(int).tolist()}
        for voxel in hit:
            self.value[voxel] = 0.2 * self.value.get(voxel, 0.0) + 0.8
        self._see_through(image, hit, limits)

    def _see_through(self, image: DepthImage, hit: set[Voxel], limits: Limits) -> None:
        known = [voxel for voxel in self.value if voxel not in hit]
        if not known:
            return
        K, T = image.K_px, image.T_world_optical
        centre = (np.array(known) + 0.5) * self.edge_m
        x, y, z = _optical(centre, T)
        height, width = image.depth_m.shape
        for voxel, xc, yc, zc in zip(known, x, y, z, strict=True):
            if zc < limits.near_m:
                continue
            u = round_half_up(xc / zc * K[0, 0] + K[0, 2])
            v = round_half_up(yc / zc * K[1, 1] + K[1, 2])
            if not (0 <= u < width and 0 <= v < height):
                continue
            depth = float(image.depth_m[v, u])
            if depth <= limits.far_m and depth > zc + limits.behind_edges * self.edge_m:
                self.value[voxel] *= 0.2

    def occupied(self) -> set[Voxel]:
        """All voxels over one half."""
        return {voxel for voxel, value in self.value.items() if value >= 0.5}


def _optical(points: np.ndarray, T_world_optical: np.ndarray) -> np.ndarray:
    """Points (n, 3) of the world in an optical frame, as (3, n)."""
    return np.linalg.inv(T_world_optical)[:3] @ np.column_stack([points, np.ones(len(points))]).T


def round_half_up(value: float) -> int:
    """The pixel whose square a place lies in."""
    return int(np.floor(value + 0.5))
