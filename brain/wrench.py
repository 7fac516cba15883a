"""The wrist force that the environment exerts.

Raw reading less the tool's weight and the sensor's bias.
"""

from __future__ import annotations

import math

import numpy as np

from brain.cell import CellArm
from brain.geometry import Array
from brain.jit import kernel
from brain.kinematics import flange_at
from brain.robot import ArmArrays
from brain.types import Wrench

GRAVITY_M_S2 = 9.81


def tool_weight(arm: CellArm, q_rad: Array) -> Array:
    """Force (3,) in N that the weight of everything beyond the sensor shows, in flange axes."""
    return _down(arm.T_world_base, arm.model.arrays, q_rad, _weight_n(arm))


def _weight_n(arm: CellArm) -> float:
    return GRAVITY_M_S2 * arm.model.sensed_mass_kg


@kernel
def _down(T_world_base: Array, arrays: ArmArrays, q_rad: Array, force_n: float) -> Array:
    """A force towards the floor in flange axes."""
    T_base_flange, out = flange_at(arrays, q_rad), np.zeros(3)
    for i in range(3):
        for k in range(3):
            out[i] -= force_n * T_world_base[2, k] * T_base_flange[k, i]
    return out


def tared(arm: CellArm, q_rad: Array, wrench: Wrench, bias_n: Array | None) -> Array:
    """Force (3,) of the environment on the tool in N; sensor axes are the flange's."""
    force = wrench.force_n - tool_weight(arm, q_rad)
    return force if bias_n is None else force - bias_n


def touch(arm: CellArm, q_rad: Array, wrench: Wrench, bias_n: Array) -> float:
    """Norm in N of the force as `tared` returns it."""
    arrays, weight_n = arm.model.arrays, _weight_n(arm)
    return _touch(arm.T_world_base, arrays, q_rad, weight_n, wrench.force_n, bias_n)


@kernel
def _touch(
    T_world_base: Array,
    arrays: ArmArrays,
    q_rad: Array,
    weight_n: float,
    force_n: Array,
    bias_n: Array,
) -> float:
    left = force_n - _down(T_world_base, arrays, q_rad, weight_n) - bias_n
    return math.sqrt(left[0] * left[0] + left[1] * left[1] + left[2] * left[2])
