"""Where an arm is near a singular pose: a table of its smallest singular value.

Neither the first joint of a chain nor the last changes it, so the table goes over the others, round
the full turn. It is made from the chain alone, calibrated or not.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from brain.damped import Workspace, smallest_singular_value, workspace
from brain.errors import ConfigError
from brain.geometry import Array
from brain.jit import kernel, lean_kernel
from brain.kinematics import tool_jacobian
from brain.robot import ArmArrays, ArmModel, arm_arrays

STEPS = 32
"""Of 11.25 degrees: zero and quarter turns, where most singular poses lie, are nodes."""
MIDDLE = 4
NEAR = 0.05
"""Below this the tool at 0.1 m/s can ask for over 2 rad/s of a joint."""


class SingularTable(NamedTuple):
    """Smallest singular values of the flange's Jacobian, m and rad per rad taken as one unit.

    `level` (32^4,) in units of `unit` (1,), joints 2 to 5 from 0 in steps of 11.25
    degrees, the last one fastest.
    """

    level: npt.NDArray[np.uint8]
    unit: Array


def singular_table(model: ArmModel) -> SingularTable:
    """Make the table of an arm of six joints, about 1 MB.

    Raises:
        ConfigError: the arm has another number of joints.
    """
    if model.dof != MIDDLE + 2:
        raise ConfigError(f"{model.name}: {model.dof} joints; a singularity table is made for 6")
    bare = arm_arrays(model.chain, np.eye(4), model.spheres, model.self_pairs)
    sigma = np.empty((STEPS,) * MIDDLE, dtype=np.float32)
    _fill(bare, workspace(model.dof), np.zeros(model.dof), sigma)
    unit = float(sigma.max()) / 255.0
    return SingularTable(
        level=np.floor(sigma / unit).astype(np.uint8).ravel(), unit=np.array([unit])
    )


@kernel
def _fill(arm: ArmArrays, work: Workspace, q_rad: Array, sigma: npt.NDArray[np.float32]) -> None:
    step = 2.0 * math.pi / STEPS
    for a in range(STEPS):
        q_rad[1] = a * step
        for b in range(STEPS):
            q_rad[2] = b * step
            for c in range(STEPS):
                q_rad[3] = c * step
                for d in range(STEPS):
                    q_rad[4] = d * step
                    tool_jacobian(arm, q_rad, work.J, work.T_links, work.T_base_tool)
                    sigma[a, b, c, d] = smallest_singular_value(work.J, work)


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
