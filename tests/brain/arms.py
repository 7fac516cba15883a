"""Arm models made from published figures, without spheres, for the tests of the brain."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
import numpy.typing as npt

from brain.geometry import Array, frozen, rotvec_to_matrix, transform
from brain.robot import ArmModel, Chain, JointLimits, Spheres, arm_arrays

# Source: Universal Robots, "DH parameters for calculations of kinematics and dynamics"
# (universal-robots.com/articles/ur/application-installation); m.
UR_DH = {
    "ur3e": (
        (0.0, -0.24355, -0.2132, 0.0, 0.0, 0.0),
        (0.15185, 0.0, 0.0, 0.13105, 0.08535, 0.0921),
    ),
    "ur5e": ((0.0, -0.425, -0.3922, 0.0, 0.0, 0.0), (0.1625, 0.0, 0.0, 0.1333, 0.0997, 0.0996)),
    "ur10e": (
        (0.0, -0.6127, -0.57155, 0.0, 0.0, 0.0),
        (0.1807, 0.0, 0.0, 0.17415, 0.11985, 0.11655),
    ),
}
UR_ALPHA_RAD = (math.pi / 2, 0.0, 0.0, math.pi / 2, -math.pi / 2, 0.0)

# Source: unitreerobotics/unitree_ros@d6f13aa robots/z1_description (joint origins, axes, limits);
# joint 2 and 3 limits are the narrower ones of that file and Unitree's library.
Z1_ORIGIN_M = (
    (0.0, 0.0, 0.0585),
    (0.0, 0.0, 0.045),
    (-0.35, 0.0, 0.0),
    (0.218, 0.0, 0.057),
    (0.07, 0.0, 0.0),
    (0.0492, 0.0, 0.0),
)
Z1_AXIS = "zyyyzx"
Z1_FLANGE_X_M = 0.051
Z1_MIN_RAD = (-2.61799, 0.0, -2.87979, -1.51844, -1.3439, -2.79253)
Z1_MAX_RAD = (2.61799, 2.879793, 0.0, 1.51844, 1.3439, 2.79253)

NO_SPHERES = Spheres(
    link=np.zeros(0, dtype=np.int64),
    centre_m=np.zeros((0, 3)),
    radius_m=np.zeros(0),
    group=np.zeros(0, dtype=np.int64),
    name=(),
)


def arm(
    name: str,
    ik: Literal["ur", "z1"],
    nominal: Chain,
    limits: JointLimits,
    chain: Chain | None = None,
    T_flange_tool: Array | None = None,
) -> ArmModel:
    """An arm without spheres, gripper or load."""
    chain = nominal if chain is None else chain
    T_flange_tool = np.eye(4) if T_flange_tool is None else T_flange_tool
    no_pairs = np.zeros((0, 2), dtype=np.int64)
    return ArmModel(
        name=name,
        chain=chain,
        nominal=nominal,
        ik=ik,
        limits=limits,
        spheres=NO_SPHERES,
        self_pairs=no_pairs,
        T_flange_tool=frozen(T_flange_tool),
        tool_mass_kg=0.0,
        sensed_mass_kg=0.0,
        tool_com_m=frozen((0.0, 0.0, 0.0)),
        gripper=None,
        arrays=arm_arrays(chain, T_flange_tool, NO_SPHERES, no_pairs),
    )


def dh_transform(theta_rad: float, d_m: float, a_m: float, alpha_rad: float) -> Array:
    """Denavit and Hartenberg's link transform (distal convention)."""
    ct, st, ca, sa = (f(v) for v in (theta_rad, alpha_rad) for f in (math.cos, math.sin))
    return np.array(
        [
            [ct, -st * ca, st * sa, a_m * ct],
            [st, ct * ca, -ct * sa, a_m * st],
            [0.0, sa, ca, d_m],
            [0.0, 0.0, 0.0, 1.0],
        ]
    )


def ur_chain(model: str) -> Chain:
    """A UR chain from its DH table: every joint turns about z."""
    a_m, d_m = UR_DH[model]
    steps = [
        np.eye(4),
        *(dh_transform(0.0, d, a, al) for a, d, al in zip(a_m, d_m, UR_ALPHA_RAD, strict=True)),
    ]
    return Chain(
        joint_names=tuple(f"joint_{i}" for i in range(1, 7)),
        T_link_joint=frozen(steps[:6]),
        axis=frozen(np.tile((0.0, 0.0, 1.0), (6, 1))),
        T_link_flange=frozen(steps[6]),
    )


def ur_limits() -> JointLimits:
    """UR5e limits: a turn either way, 180 deg/s."""
    return JointLimits(
        q_min_rad=frozen(np.full(6, -2 * math.pi)),
        q_max_rad=frozen(np.full(6, 2 * math.pi)),
        dq_max_rad_s=frozen(np.full(6, math.pi)),
        tau_max_nm=frozen((150.0, 150.0, 150.0, 28.0, 28.0, 28.0)),
    )


def ur5e(T_flange_tool: Array | None = None, model: str = "ur5e") -> ArmModel:
    """The nominal UR5e, or another of the family."""
    return arm(model, "ur", ur_chain(model), ur_limits(), T_flange_tool=T_flange_tool)


def deviated(chain: Chain, seed: int, position_m: float, angle_rad: float) -> Chain:
    """The chain with every fixed transform moved by normal deviates of that size per axis."""
    rng = np.random.default_rng(seed)

    def move(t: Array) -> Array:
        turn = rotvec_to_matrix(rng.normal(0.0, angle_rad, 3))
        return t @ transform(rng.normal(0.0, position_m, 3), turn)

    return Chain(
        joint_names=chain.joint_names,
        T_link_joint=frozen([move(t) for t in chain.T_link_joint]),
        axis=chain.axis,
        T_link_flange=frozen(move(chain.T_link_flange)),
    )


def ur5e_calibrated(
    seed: int = 1,
    position_m: float = 1e-3,
    angle_rad: float = 2e-3,
    T_flange_tool: Array | None = None,
) -> ArmModel:
    """A UR5e as it leaves the factory: no axis quite where the table says."""
    nominal = ur_chain("ur5e")
    chain = deviated(nominal, seed, position_m, angle_rad)
    return arm("ur5e", "ur", nominal, ur_limits(), chain, T_flange_tool)


def z1(T_flange_tool: Array | None = None) -> ArmModel:
    """The Unitree Z1; its flange is where the gripper's stator sits."""
    axis = np.array([[float(c == a) for c in "xyz"] for a in Z1_AXIS])
    nominal = Chain(
        joint_names=tuple(f"joint{i}" for i in range(1, 7)),
        T_link_joint=frozen([transform(p) for p in Z1_ORIGIN_M]),
        axis=frozen(axis),
        T_link_flange=frozen(transform((Z1_FLANGE_X_M, 0.0, 0.0))),
    )
    limits = JointLimits(
        q_min_rad=frozen(Z1_MIN_RAD),
        q_max_rad=frozen(Z1_MAX_RAD),
        dq_max_rad_s=frozen(np.full(6, 3.1415)),
        tau_max_nm=frozen((30.0, 60.0, 30.0, 30.0, 30.0, 30.0)),
    )
    return arm("z1", "z1", nominal, limits, T_flange_tool=T_flange_tool)


def random_q(model: ArmModel, rng: np.random.Generator, n: int) -> npt.NDArray[np.float64]:
    """Uniform joints (n, dof) inside the limits, wrapped into (-pi, pi]."""
    q = rng.uniform(model.limits.q_min_rad, model.limits.q_max_rad, (n, model.dof))
    return -((-q + math.pi) % (2 * math.pi) - math.pi)
