"""True clearance, read from the simulator: robots and held parts against all they must not touch.

This is the measure of outcomes and verdicts, and shares nothing with the brain's distances:
MuJoCo's own geoms and `mj_geomDistance`. Far pairs are left out by their bounding spheres.
"""

from __future__ import annotations

from dataclasses import dataclass

import mujoco
import numpy as np
import numpy.typing as npt

from brain.geometry import Array
from brain.jit import kernel
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


@kernel
def _gaps(
    a: npt.NDArray[np.int64], b: npt.NDArray[np.int64], xpos: Array, rbound: Array, out: Array
) -> None:
    """Write the distance between the bounding spheres of each pair.

    A plane has no bounding sphere: its distance counts as 0.
    """
    for i in range(a.shape[0]):
        p, q = a[i], b[i]
        out[i] = 0.0
        if rbound[p] > 0.0 and rbound[q] > 0.0:
            for k in range(3):
                out[i] += (xpos[p, k] - xpos[q, k]) ** 2
            out[i] = np.sqrt(out[i]) - rbound[p] - rbound[q]


class ClearanceMeter:
    """Measures one scene; which contacts are declared depends on what is held at the moment."""

    def __init__(self, scene: SceneModel, contacts: frozenset[tuple[str, str]]) -> None:
        """`contacts` are the (group, object) pairs that may touch, as in `brain.world`."""
        self._scene = scene
        self._contacts = contacts
        self._pairs: dict[
            tuple[tuple[str, str], ...], tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]
        ] = {}

    def measure(
        self, data: mujoco.MjData, held: dict[str, str], below_m: float = LOOK_M
    ) -> Nearest | None:
        """Find the smallest distance below `below_m`; `held` names the part each arm holds."""
        a, b = self._pairs_for(tuple(sorted(held.items())))
        model = self._scene.model
        gaps_m = np.empty(len(a))
        _gaps(a, b, data.geom_xpos, model.geom_rbound, gaps_m)
        best: Nearest | None = None
        for i in np.argsort(gaps_m, kind="stable"):
            if gaps_m[i] >= below_m:
                break
            distance_m = mujoco.mj_geomDistance(model, data, int(a[i]), int(b[i]), below_m, None)
            if distance_m < below_m:
                below_m = distance_m
                best = self._name(int(a[i]), int(b[i]), distance_m, held)
        return best

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

    def _pairs_for(
        self, held: tuple[tuple[str, str], ...]
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
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
