"""What the brain knows of an arm: its chain, limits, tool and collision spheres, as arrays.

Made from the description files by `hardware/description.py`; the same description gives the physics
model. Link 0 is the base; link i moves with joint i (1-based); the flange and the tool are fixed to
the last link.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from brain.geometry import Array

IntArray = npt.NDArray[np.int64]

GROUP_ARM, GROUP_FINGER, GROUP_HELD = 0, 1, 2
GROUPS = ("arm", "fingers", "held part")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Chain:
    """Serial chain of n revolute joints.

    `T_link_joint` (n, 4, 4): frame of joint i+1 in the frame of link i at zero. Link i+1 is that
    frame turned by q about `axis` (n, 3), a unit vector. `T_link_flange` (4, 4): the flange in the
    last link.
    """

    joint_names: tuple[str, ...]
    T_link_joint: Array
    axis: Array
    T_link_flange: Array


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class JointLimits:
    """The maker's limits, each (n,)."""

    q_min_rad: Array
    q_max_rad: Array
    dq_max_rad_s: Array
    tau_max_nm: Array


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Spheres:
    """Collision spheres fixed to links; `centre_m` (m, 3) in the link frame, the rest (m,)."""

    link: IntArray
    centre_m: Array
    radius_m: Array
    group: IntArray
    name: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class GripperModel:
    """What the brain needs of a gripper: range of the opening, force and speed it may use."""

    name: str
    opening_min_m: float
    opening_max_m: float
    force_min_n: float
    force_max_n: float
    speed_max_m_s: float


class ArmArrays(NamedTuple):
    """An `ArmModel` as kernels take it."""

    T_link_joint: Array
    axis: Array
    T_link_flange: Array
    T_flange_tool: Array
    sphere_link: IntArray
    sphere_centre_m: Array
    sphere_radius_m: Array
    sphere_group: IntArray
    self_pairs: IntArray


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ArmModel:
    """One arm with what is bolted to its flange.

    `nominal` is the maker's chain, `chain` the calibrated one (the same object without a
    calibration). `ik` names the family of the closed-form solution of the nominal chain.
    `self_pairs` (k, 2): sphere pairs that can touch. `tool_mass_kg` and `tool_com_m` (3,) in the
    flange frame: everything beyond the flange; `sensed_mass_kg`: what the wrist sensor weighs.
    """

    name: str
    chain: Chain
    nominal: Chain
    ik: Literal["ur", "z1"]
    limits: JointLimits
    spheres: Spheres
    self_pairs: IntArray
    T_flange_tool: Array
    tool_mass_kg: float
    sensed_mass_kg: float
    tool_com_m: Array
    gripper: GripperModel | None
    arrays: ArmArrays

    @property
    def dof(self) -> int:
        """Number of joints."""
        return len(self.chain.joint_names)


def arm_arrays(
    chain: Chain, T_flange_tool: Array, spheres: Spheres, self_pairs: IntArray
) -> ArmArrays:
    """Pack what the kernels take: contiguous, writable copies, so that one signature compiles."""
    return ArmArrays(
        T_link_joint=np.array(chain.T_link_joint),
        axis=np.array(chain.axis),
        T_link_flange=np.array(chain.T_link_flange),
        T_flange_tool=np.array(T_flange_tool),
        sphere_link=np.array(spheres.link, dtype=np.int64),
        sphere_centre_m=np.array(spheres.centre_m),
        sphere_radius_m=np.array(spheres.radius_m),
        sphere_group=np.array(spheres.group, dtype=np.int64),
        self_pairs=np.array(self_pairs, dtype=np.int64).reshape(-1, 2),
    )
