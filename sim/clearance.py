"""True clearance, read from the simulator: robots and held parts against all they must not touch.

This is the measure of outcomes and verdicts, and shares nothing with the brain's distances:
MuJoCo's own geoms and `mj_geomDistance`; bounding spheres and boxes leave out what is far apart.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import mujoco
import numpy as np
import numpy.typing as npt

from brain.geometry import Array
from brain.jit import inline_kernel, kernel
from sim.scene import SceneModel

LOOK_M = 0.3
"""Pairs farther apart than this are not measured."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Nearest:
    """The smallest distance found: of which geom's body, against which owner."""

    distance_m: float
    arm: str
    link: str
    against: str


FAR = Nearest(distance_m=LOOK_M, arm="", link="", against="")


Ids = npt.NDArray[np.int64]


@kernel
def _gaps(
    a: Ids, b: Ids, data: tuple[Array, Array], model: tuple[Array, Array], out: Array
) -> None:
    """Write a distance that each pair is at least apart.

    `data`: where geoms are and how they are turned; `model`: their bounding spheres and boxes. Of
    each pair one geom counts as its sphere and the other as its box, then the other way round. A
    plane has neither, and is always measured.
    """
    xpos, xmat = data
    rbound, aabb = model
    for i in range(a.shape[0]):
        p, q = a[i], b[i]
        out[i] = -math.inf
        if rbound[p] > 0.0 and rbound[q] > 0.0:
            out[i] = max(
                _to_box(xpos[p], xpos[q], xmat[q], aabb[q]) - rbound[p],
                _to_box(xpos[q], xpos[p], xmat[p], aabb[p]) - rbound[q],
            )
            if out[i] <= 0.0:  # within each other, to a depth that boxes do not bound
                out[i] = _between(xpos[p], xpos[q]) - rbound[p] - rbound[q]


@inline_kernel
def _between(p: Array, q: Array) -> float:
    """Distance of two points (3,)."""
    return math.sqrt((p[0] - q[0]) ** 2 + (p[1] - q[1]) ** 2 + (p[2] - q[2]) ** 2)


@inline_kernel
def _to_box(point: Array, xpos: Array, xmat: Array, aabb: Array) -> float:
    """Distance of a point (3,) to a geom's box: centre and half sizes, in the geom's frame."""
    total = 0.0
    for k in range(3):
        along = -aabb[k]
        for j in range(3):
            along += xmat[3 * j + k] * (point[j] - xpos[j])
        over = max(abs(along) - aabb[3 + k], 0.0)
        total += over * over
    return math.sqrt(total)


class ClearanceMeter:
    """Measures one scene; which contacts are declared depends on what is held at the moment."""

    def __init__(self, scene: SceneModel, contacts: frozenset[tuple[str, str]]) -> None:
        """`contacts` are the (group, object) pairs that may touch, as in `brain.world`."""
        self._scene = scene
        self._contacts = contacts
        self._pairs: dict[tuple[tuple[str, str], ...], tuple[Ids, Ids]] = {}

    def measure(
        self, data: mujoco.MjData, held: dict[str, str], below_m: float = LOOK_M
    ) -> Nearest | None:
        """Find the smallest distance below `below_m`; `held` names the part each arm holds."""
        a, b = self._pairs_for(tuple(sorted(held.items())))
        model = self._scene.model
        gaps_m = np.empty(len(a))
        where, bounds = (data.geom_xpos, data.geom_xmat), (model.geom_rbound, model.geom_aabb)
        _gaps(a, b, where, bounds, gaps_m)
        near = np.flatnonzero(gaps_m < below_m)
        near = near[np.argsort(gaps_m[near], kind="stable")]
        best: tuple[int, int] | None = None
        for gap_m, p, q in zip(*(x[near].tolist() for x in (gaps_m, a, b)), strict=True):
            if gap_m >= below_m:
                break
            distance_m = mujoco.mj_geomDistance(model, data, p, q, below_m, None)
            if distance_m < below_m:
                below_m, best = distance_m, (p, q)
        return None if best is None else self._name(*best, below_m, held)

    def _name(self, a: int, b: int, distance_m: float, held: dict[str, str]) -> Nearest:
        owner = self._scene.geom_owner[a]
        holder = {part: arm for arm, part in held.items()}
        body = self._scene.model.body(self._scene.model.geom_bodyid[a]).name
        return Nearest(
            distance_m=distance_m,
            arm=holder.get(owner, owner),
            link=body.partition("/")[2] or owner,
            against=self._scene.geom_owner[b],
        )

    def _pairs_for(self, held: tuple[tuple[str, str], ...]) -> tuple[Ids, Ids]:
        if held not in self._pairs:
            rows = [
                (a, b)
                for a in range(self._scene.model.ngeom)
                for b in range(self._scene.model.ngeom)
                if self._counts(a, b, dict(held))
            ]
            pairs = np.array(rows, dtype=np.int64).reshape(-1, 2)
            self._pairs[held] = (pairs[:, 0].copy(), pairs[:, 1].copy())
        return self._pairs[held]

    def _counts(self, a: int, b: int, held: dict[str, str]) -> bool:
        """Whether geom a is a robot's or a held part's, and b something that it must not touch."""
        owners, groups = self._scene.geom_owner, self._scene.geom_group
        holder = {part: arm for arm, part in held.items()}
        arm_a = holder.get(owners[a], owners[a])
        arm_b = holder.get(owners[b], owners[b])
        moving = groups[a] in ("arm", "fingers") or owners[a] in holder
        if not moving or not owners[b] or arm_a == arm_b:
            return False
        if groups[b] in ("base", "arm", "fingers") or owners[b] in holder:
            return a < b or groups[b] == "base"  # two arms: each pair once
        kind = "held part" if owners[a] in holder else groups[a]
        return (kind, owners[b]) not in self._contacts
