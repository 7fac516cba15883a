"""The wrist force that the environment exerts.

Raw reading less the tool's weight and the sensor's bias.
"""

from __future__ import annotations

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
    weight_n = GRAVITY_M_S2 * arm.model.sensed_mass_kg
    return _down(arm.T_world_base, arm.model.arrays, q_rad, weight_n)


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
