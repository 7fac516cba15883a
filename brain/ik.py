"""Inverse kinematics: every branch of joints that puts the tool at a pose, in one call.

The nominal chain is solved in closed form (`ik_closed`), a calibrated one is polished from there
(`ik_polish`). No solution is an empty answer, not an error. `track` in `brain/servo.py` is for
following a moving pose on one branch.
"""

from __future__ import annotations

import functools
import itertools
import math
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from brain.errors import ConfigError
from brain.geometry import Array
from brain.ik_closed import ELBOW, SHOULDER, WRIST, Shape, closed_form, read
from brain.ik_polish import BRANCHES_MAX, Deviation, deviation, polish
from brain.robot import ArmModel

__all__ = [
    "ELBOW",
    "SHOULDER",
    "WRIST",
    "Solutions",
    "nearest",
    "solve",
    "within_limits",
]

ROWS = 8
NO_REFERENCE = np.full(6, math.nan)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Solutions:
    """Branches `q_rad` (k, 6), each joint in (-pi, pi] until `within_limits` turned it further.

    `singular`: sum of SHOULDER and WRIST (a joint is free: a representative set is given) and ELBOW
    (two branches have met). For a calibrated arm they say that this is near, and `lost` counts
    branches that the nominal chain has beyond those found.
    """

    q_rad: Array
    singular: int
    lost: int


@functools.lru_cache(maxsize=32)
def shape_of(model: ArmModel) -> Shape | Deviation:
    """Return what the closed form needs of an arm, and for a calibrated one how far it is off.

    Raises:
        ConfigError: the nominal chain is not built like a UR or a Z1.
    """
    shape = read(model.nominal, model.T_flange_tool)
    if model.chain is model.nominal:
        return shape
    return deviation(shape, model.nominal, model.chain, model.T_flange_tool)


def solve(
    model: ArmModel, T_base_tool: npt.ArrayLike, q_ref_rad: npt.ArrayLike | None = None
) -> Solutions:
    """Return all branches for a tool pose (4, 4) in the base.

    `q_ref_rad` (6,) gives the angle of a joint that a singular pose leaves free.

    Raises:
        ConfigError: the pose is not a finite rigid transform, or the arm has no closed form.
    """
    shape = shape_of(model)
    pose = np.array(T_base_tool, dtype=np.float64)
    q_ref = NO_REFERENCE if q_ref_rad is None else np.array(q_ref_rad, dtype=np.float64)
    if pose.shape != (4, 4) or q_ref.shape != (6,):
        raise ConfigError(
            f"T_base_tool {pose.shape} and q_ref_rad {q_ref.shape}: shapes must be (4, 4) and (6,)"
        )
    lost = 0
    if isinstance(shape, Deviation):
        rows = np.empty((BRANCHES_MAX, 6))
        count, singular, lost = polish(model.arrays, shape, pose, q_ref, rows)
    else:
        rows = np.empty((ROWS, 6))
        count, singular = closed_form(shape, pose, q_ref, rows)
        if count > ROWS:
            rows = np.empty((count, 6))
            closed_form(shape, pose, q_ref, rows)
    if count < 0:
        raise ConfigError(
            f"T_base_tool: must be a finite rigid transform (within 1e-6), got {pose.tolist()}"
        )
    return Solutions(q_rad=rows[:count], singular=singular, lost=lost)


def within_limits(solutions: Solutions, q_min_rad: Array, q_max_rad: Array) -> Solutions:
    """Keep what fits the limits (6,), with every turn by 2 pi that fits as a solution of its own.

    A joint within 1e-9 rad of a limit counts as on it.
    """
    low, high = np.asarray(q_min_rad) - 1e-9, np.asarray(q_max_rad) + 1e-9
    turn = 2.0 * math.pi
    first = np.ceil((low - solutions.q_rad) / turn)
    last = np.floor((high - solutions.q_rad) / turn)
    rows = [
        q + turn * np.array(turns)
        for q, a, b in zip(solutions.q_rad, first, last, strict=True)
        for turns in itertools.product(
            *(np.arange(lo, hi + 1.0) for lo, hi in zip(a, b, strict=True))
        )
    ]
    q_rad = np.clip(np.array(rows).reshape(-1, low.size), q_min_rad, q_max_rad)
    return replace(solutions, q_rad=q_rad)


def nearest(solutions: Solutions, q_ref_rad: Array) -> Array | None:
    """Return the solution (6,) whose largest joint difference to q_ref is smallest, or None."""
    if solutions.q_rad.shape[0] == 0:
        return None
    apart = np.abs(solutions.q_rad - q_ref_rad).max(axis=1)
    return np.array(solutions.q_rad[int(np.argmin(apart))])
