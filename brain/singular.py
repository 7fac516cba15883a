"""Where an arm is near a singular pose: a table of its smallest singular value.

Neither the first joint of a chain nor the last changes it, so the table goes over the others, round
the full turn. It is made from the chain alone, calibrated or not.
"""

from __future__ import annotations

import functools
import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from brain.damped import Workspace, workspace
from brain.errors import ConfigError
from brain.geometry import Array
from brain.jit import kernel, lean_kernel
from brain.kinematics import tool_jacobian
from brain.robot import ArmArrays, ArmModel
from brain.search import draw

STEPS = 32
"""Of 11.25 degrees: zero and quarter turns, where most singular poses lie, are nodes."""
MIDDLE = 4
NEAR = 0.05
"""Below this the tool at 0.1 m/s can ask for over 2 rad/s of a joint."""
PASSING = 8
"""Of so many samples near a singular pose one is let pass: there may be no way around."""


LEAST = 1e-4
"""Singular values are told apart down to this, a tenth of the table's unit."""
SQUARINGS = 4


class SingularTable(NamedTuple):
    """Smallest singular values of the flange's Jacobian, m and rad per rad taken as one unit.

    `level` (32^4,) in units of `unit` (1,), joints 2 to 5 from 0 in steps of 11.25
    degrees, the last one fastest. Nodes are never above the exact value, and at most 5.5 % and a
    unit below.
    """

    level: npt.NDArray[np.uint8]
    unit: Array


def singular_table(model: ArmModel) -> SingularTable:
    """Return the table of an arm of six joints, about 1 MB, made once for a chain.

    Raises:
        ConfigError: the arm has another number of joints.
    """
    if model.dof != MIDDLE + 2:
        raise ConfigError(f"{model.name}: {model.dof} joints; a singularity table is made for 6")
    chain = model.chain
    parts = (chain.T_link_joint, chain.axis, chain.T_link_flange)
    return _table(*(np.asarray(part, dtype=np.float64).tobytes() for part in parts))


@functools.lru_cache(maxsize=32)
def _table(T_link_joint: bytes, axis: bytes, T_link_flange: bytes) -> SingularTable:
    """Make the table; chains are told apart by their bytes, so equal ones share it."""
    n, none = MIDDLE + 2, np.zeros(0, dtype=np.int64)
    bare = ArmArrays(
        T_link_joint=np.frombuffer(T_link_joint).reshape(n, 4, 4).copy(),
        axis=np.frombuffer(axis).reshape(n, 3).copy(),
        T_link_flange=np.frombuffer(T_link_flange).reshape(4, 4).copy(),
        T_flange_tool=np.eye(4),
        sphere_link=none,
        sphere_centre_m=np.zeros((0, 3)),
        sphere_radius_m=np.zeros(0),
        sphere_group=none,
        self_pairs=none.reshape(0, 2),
    )
    sigma = np.empty((STEPS,) * MIDDLE, dtype=np.float32)
    _fill(bare, workspace(n), np.zeros(n), sigma)
    unit = float(sigma.max()) / 255.0
    return SingularTable(
        level=np.floor(sigma / unit).astype(np.uint8).ravel(), unit=np.array([unit])
    )


@kernel
def _fill(arm: ArmArrays, work: Workspace, q_rad: Array, sigma: npt.NDArray[np.float32]) -> None:
    step = 2.0 * math.pi / STEPS
    inverse, power = np.empty((6, 6)), np.empty((6, 6))
    for a in range(STEPS):
        q_rad[1] = a * step
        for b in range(STEPS):
            q_rad[2] = b * step
            for c in range(STEPS):
                q_rad[3] = c * step
                for d in range(STEPS):
                    q_rad[4] = d * step
                    tool_jacobian(arm, q_rad, work.J, work.T_links, work.T_base_tool)
                    sigma[a, b, c, d] = lowest(work.J, inverse, power)


@lean_kernel
def lowest(J: Array, inverse: Array, power: Array) -> float:
    """Smallest singular value of J (6, 6), at most 5.5 % too low; the rest is scratch (6, 6).

    1 / sigma^2 is the largest eigenvalue of the inverse of J^T J. The trace of its 16th power is
    the 16th power of that, and at most six times as much. A third of the work of finding all.
    """
    for i in range(6):
        for j in range(i + 1):
            total = LEAST * LEAST if i == j else 0.0
            for r in range(6):
                total += J[r, i] * J[r, j]
            inverse[i, j] = inverse[j, i] = total
    for k in range(6):  # Gauss and Jordan; definite, so that no pivot is looked for
        pivot, inverse[k, k] = 1.0 / inverse[k, k], 1.0
        for j in range(6):
            inverse[k, j] *= pivot
        for i in range(6):
            if i != k:
                factor, inverse[i, k] = inverse[i, k], 0.0
                for j in range(6):
                    inverse[i, j] -= factor * inverse[k, j]
    trace = 0.0
    for i in range(6):
        trace += inverse[i, i]
    share = 1.0 / trace
    for i in range(6):
        for j in range(6):
            inverse[i, j] *= share
    after = 1.0
    for _ in range(SQUARINGS):
        after = 0.0
        for i in range(6):
            for j in range(i + 1):
                total = 0.0
                for k in range(6):
                    total += inverse[i, k] * inverse[j, k]
                power[i, j] = power[j, i] = total
            after += power[i, i]
        inverse, power = power, inverse
    largest = trace * after ** (1.0 / (1 << SQUARINGS))
    return math.sqrt(max(1.0 / largest - LEAST * LEAST, 0.0))


@lean_kernel
def sigma_at(table: SingularTable, q_rad: Array) -> float:
    """Smallest singular value at q (6,), linear between the nodes around; NaN unless finite."""
    total = 0.0
    for k in range(1, MIDDLE + 1):
        if not math.isfinite(q_rad[k]):
            return math.nan
    for corner in range(1 << MIDDLE):
        share, where = 1.0, 0
        for k in range(MIDDLE):
            turn = q_rad[k + 1] / (2.0 * math.pi)
            x = (turn - math.floor(turn)) * STEPS
            node = int(x)
            part = x - node
            if corner >> k & 1:
                share, node = share * part, node + 1
            else:
                share *= 1.0 - part
            where = where * STEPS + node % STEPS
        total += share * table.level[where]
    return float(total * table.unit[0])


@lean_kernel
def is_singular(table: SingularTable, q_rad: Array, below: float) -> bool:
    """Whether q (6,) is near a singular pose; true unless finite."""
    return not sigma_at(table, q_rad) >= below


class Mask(NamedTuple):
    """What a search keeps away from: where the table is under `below`; at 0 from nothing."""

    table: SingularTable
    below: float


NO_MASK = Mask(table=SingularTable(level=np.zeros(1, dtype=np.uint8), unit=np.zeros(1)), below=0.0)


def mask_of(model: ArmModel, below: float) -> Mask:
    """Return the mask of an arm; it masks nothing at 0, nor without a table for so many joints."""
    if not below > 0.0 or model.dof != MIDDLE + 2:
        return NO_MASK
    return Mask(table=singular_table(model), below=float(below))


def is_away(mask: Mask, rows_rad: Array) -> bool:
    """Whether all rows (k, n) are away from what a mask names."""
    if mask.below <= 0.0:
        return True
    return not any(is_singular(mask.table, q, mask.below) for q in rows_rad)


@lean_kernel
def is_masked(mask: Mask, q_rad: Array, random: npt.NDArray[np.uint64]) -> bool:
    """Whether a search passes over q (6,): near a singular pose, but for one time in `PASSING`."""
    if mask.below <= 0.0 or not is_singular(mask.table, q_rad, mask.below):
        return False
    return draw(random) * PASSING >= 1.0
