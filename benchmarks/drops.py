"""A box dropped into the path of a moving arm, as a depth camera sees it.

The camera looks at the scenes of `plan_scenes`: the scene's boxes are rendered once, the arm's
spheres and the dropped box are put in front of them in every frame, with noise.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from benchmarks.depth_scenes import FAR_M, Boxes, depth_of, intrinsics, looking
from benchmarks.plan_scenes import ARMS, SCENES, Case, case
from brain.body import pose, work
from brain.certify import path_at
from brain.distance import Obstacles, arm_clearance, obstacles
from brain.geometry import Array, frozen, transform
from brain.jit import kernel
from brain.occupied import occupied
from brain.voxels import DepthImage, VoxelMap
from brain.world import BOX, SceneObject, make_world

EDGE_M, NOISE_M = 0.015, 0.002
EXPLAINED_M = 2.0 * EDGE_M
BODY_MARGIN_M = 0.03
"""Points this near to the arm's spheres are its own: more than a voxel and the noise."""
EYE_M, AT_M = (1.55, -1.05, 1.25), (0.35, 0.0, 0.25)
WINDOW_M = ((-1.2, -1.2, -0.3), (1.2, 1.2, 1.5))
HALF_M = (0.03, 0.08)
ROOM_M = 0.025
"""A box is dropped where the arm, as it stands, and a goal keep this far from it."""
PROGRESS, AHEAD = (0.0, 0.4), (0.2, 0.8)
"""How far the arm is along its path, and where the box falls in what is left of it."""
DRAWS = 60
FRAME_NS = 33_000_000


@kernel
def _put(
    depth: npt.NDArray[np.float64],
    K: Array,
    T_optical: Array,
    spheres: Array,
    low: Array,
    high: Array,
) -> None:
    """Put spheres (n, 4) and a box, both in the world, in front of a depth image."""
    h, w = depth.shape
    for i in range(spheres.shape[0] + 1):
        ball = i < spheres.shape[0]
        if ball:
            x, r = spheres[i, :3], spheres[i, 3]
        else:
            x = 0.5 * (low + high)
            r = 0.5 * math.sqrt(((high - low) ** 2).sum())
        c = np.zeros(3)
        for k in range(3):
            for j in range(3):
                c[k] += T_optical[j, k] * (x[j] - T_optical[j, 3])
        if not r >= 0.0 or c[2] < r + 0.05:
            continue
        reach = K[0, 0] * r / (c[2] - r) + 2.0
        u, v = K[0, 0] * c[0] / c[2] + K[0, 2], K[1, 1] * c[1] / c[2] + K[1, 2]
        for row in range(max(0, int(v - reach)), min(h, int(v + reach) + 1)):
            for col in range(max(0, int(u - reach)), min(w, int(u + reach) + 1)):
                a, b = (col - K[0, 2]) / K[0, 0], (row - K[1, 2]) / K[1, 1]
                if ball:
                    size, along = a * a + b * b + 1.0, a * c[0] + b * c[1] + c[2]
                    inside = along * along - size * ((c * c).sum() - r * r)
                    if inside < 0.0:
                        continue
                    z = (along - math.sqrt(inside)) / size
                else:
                    enters, leaves = 0.0, math.inf
                    for k in range(3):
                        way = T_optical[k, 0] * a + T_optical[k, 1] * b + T_optical[k, 2]
                        eye = T_optical[k, 3]
                        if way == 0.0:
                            continue
                        one, other = (low[k] - eye) / way, (high[k] - eye) / way
                        enters = max(enters, min(one, other))
                        leaves = min(leaves, max(one, other))
                    if not enters < leaves:
                        continue
                    z = enters
                if 0.0 < z < depth[row, col]:
                    depth[row, col] = z


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Drop:
    """A box (centre, half) that falls when the arm is at q (n,); `missed` draws before it."""

    q_rad: Array
    rest_rad: Array
    centre_m: Array
    half_m: Array
    missed: int


class DropCell:
    """One scene with one arm: what is known of it, what its camera sees, and the map of that."""

    def __init__(self, the: Case) -> None:
        self.the = the
        shapes = the.near.arrays.shapes
        assert (shapes.kind == BOX).all()
        self.world = make_world(
            tuple(
                _solid(f"box {i}", T, size)
                for i, (T, size) in enumerate(zip(shapes.T_world_shape, shapes.size_m, strict=True))
            )
        )
        middle = shapes.T_world_shape[:, :3, 3]
        self._T = looking(EYE_M, AT_M)
        boxes = Boxes(middle - shapes.size_m, middle + shapes.size_m)
        empty = depth_of(boxes, intrinsics(), self._T)
        self._empty = np.where(empty > 0.0, empty, np.inf).astype(np.float64)
        self.map = VoxelMap(EDGE_M)
        self._at, self._t_ns = work(the.body), 0

    def spheres(self, q_rad: Array) -> Array:
        """The arm's spheres (n, 4) in the world."""
        assert pose(self.the.body.arrays, q_rad, self._at)
        return np.column_stack([self._at.centre_m, self.the.body.spheres.radius_m])

    def image(self, q_rad: Array, drop: Drop | None, rng: np.random.Generator) -> DepthImage:
        """What the camera sees next of the arm at q, and of a box."""
        self._t_ns += FRAME_NS
        depth = self._empty.copy()
        low, high = np.full(3, np.nan), np.full(3, np.nan)
        if drop is not None:
            low, high = drop.centre_m - drop.half_m, drop.centre_m + drop.half_m
        _put(depth, np.array(intrinsics()), np.array(self._T), self.spheres(q_rad), low, high)
        noisy = depth + rng.normal(0.0, NOISE_M, depth.shape)
        return DepthImage(
            camera="bench",
            t_ns=self._t_ns,
            depth_m=np.where(depth <= FAR_M, noisy, 0.0).astype(np.float32),
            K_px=intrinsics(),
            T_world_optical=self._T,
        )

    def see(self, image: DepthImage, q_rad: Array) -> None:
        """Take a frame into the map, without the arm."""
        own = self.spheres(q_rad)
        own[:, 3] += BODY_MARGIN_M
        seen = self.map.see(image, image.t_ns, own)
        if isinstance(seen, str):
            raise SystemExit(seen)

    def forget(self) -> None:
        """Empty the map: what the arm hid from the camera stays in it otherwise."""
        low, high = np.array(WINDOW_M)
        self.map.clear_box(np.array(transform(0.5 * (low + high))), high - low)

    def around(self) -> Obstacles:
        """What the arm must keep clear of: what is known, and what the map has beside it."""
        found = occupied(self.map, self.world, np.array(WINDOW_M), EXPLAINED_M)
        return obstacles(self.world, seen=found.arrays)

    def with_box(self, drop: Drop) -> Obstacles:
        """The truth: what is known and the box."""
        box = _solid("dropped", transform(drop.centre_m), drop.half_m)
        return obstacles(make_world((*self.world.objects, box)))

    def drop(self, path: Array, rng: np.random.Generator) -> Drop | None:
        """Draw where the arm is and a box around one of its spheres farther along the path.

        None where every draw falls onto the arm or onto all goals.
        """
        body = self.the.body
        moving = np.flatnonzero(body.spheres.link >= 3)
        for missed in range(DRAWS):
            last = len(path) - 1.0
            u = rng.uniform(*PROGRESS) * last
            q = path_at(path, u)
            ahead = path_at(path, u + rng.uniform(*AHEAD) * (last - u))
            centre = self.spheres(ahead)[rng.choice(moving), :3].copy()
            half = rng.uniform(*HALF_M, 3)
            rest = np.concatenate([q[None], path[int(u) + 1 :]])
            drop = Drop(q_rad=q, rest_rad=rest, centre_m=centre, half_m=half, missed=missed)
            alone = obstacles(make_world((_solid("dropped", transform(centre), half),)))
            ends = (q, *self.the.goals_rad)
            gaps = [arm_clearance(body, alone, e, self_extra_m=math.inf).distance_m for e in ends]
            if gaps[0] > ROOM_M and max(gaps[1:]) > ROOM_M:
                return drop
        return None


def _solid(name: str, T_world: Array, half_m: Array) -> SceneObject:
    return SceneObject(
        name=name,
        role="fixed",
        kinds=(BOX,),
        size_m=frozen(half_m[None]),
        T_object_shape=frozen(np.eye(4)[None]),
        T_world_object=frozen(T_world),
    )


def drop_cells() -> Iterator[DropCell]:
    """All scenes for all arms."""
    for arm in ARMS:
        for scene in SCENES:
            yield DropCell(case(arm, scene))
