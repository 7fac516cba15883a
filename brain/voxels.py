"""Where depth cameras see something: voxels in bricks of 8 x 8 x 8, found by a hash of exact keys.

A voxel that a frame hits comes to 0.8 + 0.2 of what it was; one that the frame sees through keeps
0.2 of it. Over 0.5 it is occupied: one frame makes it so, one frame undoes it. No array is made for
a frame. When the memory is full, bricks in which nothing is left are given up; if that does not
help, new places are refused and counted, and nothing that is known is lost: whoever asks must then
treat the map as incomplete (`VoxelMap.refused`).

Source of the update: K. M. Wurm et al., "OctoMap", ICRA 2010 (a clamped update of occupancy); M.
Niessner et al., "Real-time 3D Reconstruction at Scale using Voxel Hashing", SIGGRAPH Asia 2013
(bricks in a hash).
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from brain.geometry import Array, frozen, is_rotation
from brain.types import NS_PER_S
from brain.voxel_kernels import (
    OCCUPIED,
    Ints,
    MapArrays,
    clear_box,
    clear_cylinder,
    compact,
    farthest,
    is_at,
    list_occupied,
    mark_body,
    normal_at,
    resample,
    see_hits,
    see_through,
)

EDGES_M = (0.005, 0.010, 0.015, 0.020, 0.025)
FAR_MAX_M = 20.0
"""A depth beyond this is no reading of a camera that watches a cell: perhaps in mm."""
FROM_ORIGIN_MAX_M = 1000.0
_SLOTS_MIN = 64


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DepthImage:
    """A depth image (h, w) float32 in m, NaN or 0 where there is none, from an optical frame.

    `K_px` (3, 3) has pixel (u, v) centred at the integers u, v. `t_ns` is when it was taken.
    """

    camera: str
    t_ns: int
    depth_m: npt.NDArray[np.float32]
    K_px: Array
    T_world_optical: Array


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What came of a frame: points used, points on the robot, voxels hit and freed, refusals.

    `refused` points lie where the map had no memory left.
    """

    points: int
    on_body: int
    hit: int
    freed: int
    refused: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MapSnapshot:
    """The occupied voxels at one version: indices (n, 3) in order, their edge, and a SHA-256."""

    version: int
    edge_m: float
    voxels: Ints
    digest: str


class Limits(NamedTuple):
    """What of a frame counts: depths in m, and how far behind a voxel it must see to free it."""

    near_m: float = 0.1
    far_m: float = 4.0
    age_max_ns: int = NS_PER_S // 2
    behind_edges: float = 1.5


class VoxelMap:
    """A map in world coordinates, fed by any number of cameras."""

    def __init__(
        self, edge_m: float = 0.015, slots: int = 16384, limits: Limits | None = None
    ) -> None:
        """Make an empty map; seven of eight `slots` (a power of 2) can hold a brick.

        Raises:
            ValueError: an edge that is not one of `EDGES_M`, or slots that are no power of 2.
        """
        if edge_m not in EDGES_M:
            raise ValueError(f"edge_m: {edge_m}, allowed are {', '.join(map(str, EDGES_M))}")
        if slots < _SLOTS_MIN or slots & (slots - 1):
            raise ValueError(f"slots: {slots}, must be a power of 2, at least {_SLOTS_MIN}")
        self.edge_m = edge_m
        self.version = 0
        self.refused = 0
        self.limits = limits or Limits()
        self.arrays = MapArrays.empty(slots)
        self._frame = 0
        self._newest_ns: dict[str, int] = {}
        self._mask = np.zeros((0, 0), dtype=np.uint8)
        self._compact_at = self._almost(0)

    @property
    def bricks(self) -> int:
        """How many bricks are in use."""
        return int(self.arrays.used[0])

    @property
    def fill(self) -> float:
        """Share of the hash's slots in use, at most 7/8."""
        return self.bricks / len(self.arrays.key)

    def see(self, image: DepthImage, now_ns: int, body: Array | None = None) -> Seen | str:
        """Take a frame; a sentence when it cannot be one, and then nothing is changed.

        `body` are spheres x, y, z, radius (n, 4) in the world that enclose the robot and what it
        holds, at the time of the frame, margin included: points in them are the robot's own.
        """
        problem = self._problem(image, now_ns, body)
        if problem is not None:
            return problem
        self._newest_ns[image.camera] = image.t_ns
        if self.bricks >= self._compact_at:
            self._compact()
        depth_m, limits = image.depth_m, self.limits
        if self._mask.shape != depth_m.shape:
            self._mask = np.zeros(depth_m.shape, dtype=np.uint8)
        self._mask[:] = 0
        reach = (limits.near_m, limits.far_m)
        pose, K = np.ascontiguousarray(image.T_world_optical), np.ascontiguousarray(image.K_px)
        if body is not None:
            mark_body(depth_m, K, pose, reach, np.ascontiguousarray(body), self._mask)
        self._frame += 1
        stamp = (self._frame, image.t_ns)
        points, on_body, hit, refused = see_hits(
            self.arrays, self.edge_m, depth_m, K, pose, reach, self._mask, stamp
        )
        behind_m = limits.behind_edges * self.edge_m
        freed = see_through(self.arrays, self.edge_m, depth_m, K, pose, reach, behind_m, stamp)
        self.version += 1
        self.refused = refused
        return Seen(points=points, on_body=on_body, hit=hit, freed=freed, refused=refused)

    def clear_box(self, T_world_box: Array, size_m: Array) -> int:
        """Free all voxels whose centres are in a box of full size (3,); return how many were."""
        self.version += 1
        return clear_box(self.arrays, self.edge_m, np.ascontiguousarray(T_world_box), size_m)

    def clear_cylinder(self, T_world_cylinder: Array, radius_m: float, length_m: float) -> int:
        """Free all voxels whose centres are in a cylinder about z; return how many were."""
        self.version += 1
        pose = np.ascontiguousarray(T_world_cylinder)
        return clear_cylinder(self.arrays, self.edge_m, pose, radius_m, length_m)

    def forget(self, before_ns: int) -> int:
        """Give up bricks that no camera has looked into since; return how many.

        What was there is unknown from now on, not free: that is the caller's to know.
        """
        old = self.arrays.looked_ns[: self.bricks] < before_ns
        self.arrays.top[: self.bricks][old] = 0.0
        self.arrays.occupancy[: self.bricks][old] = 0.0
        self._compact()
        self.version += 1
        return int(np.count_nonzero(old))

    def with_edge(self, edge_m: float) -> VoxelMap:
        """Return a map of another edge that holds at least all of the space that this one does."""
        other = VoxelMap(edge_m, len(self.arrays.key), self.limits)
        other.refused = resample(self.arrays, self.edge_m, other.arrays, edge_m)
        other.version, other._frame = self.version + 1, self._frame
        other._newest_ns = dict(self._newest_ns)
        return other

    def occupied(self) -> Array:
        """Centres (n, 3) in m of all occupied voxels."""
        return np.asarray((self._indices() + 0.5) * self.edge_m, dtype=np.float64)

    def is_occupied(self, points_m: Array) -> npt.NDArray[np.bool_]:
        """Whether points (n, 3) lie in occupied voxels."""
        out = np.zeros(len(points_m), dtype=np.bool_)
        is_at(self.arrays, self.edge_m, np.ascontiguousarray(points_m, dtype=np.float64), out)
        return out

    def normal(self, point_m: Array, toward_m: Array) -> Array | None:
        """Unit normal (3,) of the surface at a point, to the side of `toward_m` (3,).

        None where too few occupied voxels are around to tell.
        """
        out = np.zeros(3)
        found = normal_at(self.arrays, self.edge_m, point_m, toward_m, out)
        return frozen(out) if found else None

    def snapshot(self) -> MapSnapshot:
        """Return all occupied voxels, with a digest that depends on nothing else but the edge."""
        voxels = self._indices()
        voxels = voxels[np.lexsort(voxels.T[::-1])]
        voxels.setflags(write=False)
        sha = hashlib.sha256(np.float64(self.edge_m).tobytes() + voxels.astype("<i8").tobytes())
        return MapSnapshot(
            version=self.version, edge_m=self.edge_m, voxels=voxels, digest=sha.hexdigest()
        )

    def _compact(self) -> None:
        compact(self.arrays)
        self._compact_at = self._almost(self.bricks)

    def _almost(self, bricks: int) -> int:
        """How many bricks are nearly all, or 1 % more than there are: the next time to clean up."""
        room = len(self.arrays.brick)
        return min(max(room * 49 // 50, bricks + room // 100), room)

    def _indices(self) -> Ints:
        count = int(np.count_nonzero(self.arrays.occupancy[: self.bricks] >= OCCUPIED))
        out = np.empty((count, 3), dtype=np.int64)
        list_occupied(self.arrays, out)
        return out

    def _problem(self, image: DepthImage, now_ns: int, body: Array | None) -> str | None:
        """Say why a frame cannot be one of this map, None if it can."""
        name, depth, pose = image.camera, image.depth_m, image.T_world_optical
        if depth.ndim != 2 or depth.dtype != np.float32 or not depth.flags.c_contiguous:
            return f"{name}: depth must be (h, w) float32 in m, is {depth.dtype} {depth.shape}"
        if image.K_px.shape != (3, 3) or not np.isfinite(image.K_px).all():
            return f"{name}: K_px must be (3, 3) and finite"
        if not (image.K_px[0, 0] > 0.0 and image.K_px[1, 1] > 0.0):
            return f"{name}: K_px: focal lengths must be over 0"
        if pose.shape != (4, 4) or not np.isfinite(pose).all() or not is_rotation(pose):
            return f"{name}: T_world_optical is not rigid"
        if (from_m := float(np.linalg.norm(pose[:3, 3]))) > FROM_ORIGIN_MAX_M:
            limit = f"at most {FROM_ORIGIN_MAX_M:g}"
            return f"{name}: {from_m:g} m from the world's origin, {limit}"
        if body is not None and not (body.ndim == 2 and body.shape[1] == 4):
            return f"{name}: body must be spheres (n, 4), is {body.shape}"
        if body is not None and not np.isfinite(body).all():
            return f"{name}: where the robot was at the time of the frame is not known"
        if image.t_ns > now_ns:
            return f"{name}: taken {image.t_ns - now_ns} ns in the future"
        if now_ns - image.t_ns > self.limits.age_max_ns:
            age_ms = (now_ns - image.t_ns) // 1_000_000
            return f"{name}: {age_ms} ms old, at most {self.limits.age_max_ns // 1_000_000}"
        if image.t_ns <= self._newest_ns.get(name, -1):
            return f"{name}: not newer than the frame before"
        most_m = farthest(depth)
        if most_m > FAR_MAX_M:
            return f"{name}: depth of {most_m:g} m, at most {FAR_MAX_M:g}: is it in mm?"
        return None
