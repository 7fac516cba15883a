"""An arm's chain: the maker's, and one robot's own from a calibration file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from brain.errors import ConfigError
from brain.geometry import frozen, rpy_to_matrix, transform
from brain.robot import Chain
from hardware.description import Arm
from hardware.shapes import pose_deg
from hardware.strict import Name, Strict, load


class CalibratedJoint(Strict):
    """A joint's frame in the link before, at zero; roll, pitch, yaw about fixed x, y, z."""

    x_m: float
    y_m: float
    z_m: float
    roll_rad: float
    pitch_rad: float
    yaw_rad: float


class Calibration(Strict):
    """One robot's own kinematics, by the name of the link that the joint moves.

    Source: the layout is that of `default_kinematics.yaml` in
    UniversalRobots/Universal_Robots_ROS2_Description@2221ec0, config/<model>.
    """

    kind: Literal["calibration"]
    robot: Name
    serial: Annotated[str, Field(min_length=1)]
    hash: Annotated[str, Field(min_length=1)]
    source: str
    joints: dict[Name, CalibratedJoint]


def nominal_chain(arm: Arm) -> Chain:
    """Return the maker's chain.

    Joint i turns about z after the DH frame before it, and d moves along that z, so it is taken
    before the turn: `T_link_joint[i] = Tx(a) Rx(alpha) Tz(d)` with a, alpha of row i - 1 and d of
    row i; link i then has its origin on its own axis, as in ur_description.
    """
    steps, axes, before = [], [], np.eye(4)
    for joint in arm.joints:
        if joint.dh is not None:
            steps.append(before @ transform((0.0, 0.0, joint.dh.d_m)))
            axes.append((0.0, 0.0, 1.0))
            before = joint.dh.after_joint()
        elif joint.origin is not None:
            steps.append(transform(joint.origin.position_m))
            axes.append(joint.origin.axis)
    return Chain(
        joint_names=tuple(joint.name for joint in arm.joints),
        T_link_joint=frozen(np.array(steps)),
        axis=frozen(np.array(axes)),
        T_link_flange=frozen(before @ pose_deg(arm.flange.position_m, arm.flange.rpy_deg)),
    )


def calibrated_chain(arm: Arm, nominal: Chain, path: Path) -> Chain:
    """Return the chain of one robot from its calibration file.

    Raises:
        ConfigError: not readable, for another robot, or not exactly this arm's links.
    """
    calibration = load(path, Calibration)
    if calibration.robot != arm.name:
        raise ConfigError(
            f"{path.name}: robot: is for {calibration.robot!r}, the scene's arm is {arm.name!r}"
        )
    links = [joint.link.name for joint in arm.joints]
    if sorted(calibration.joints) != sorted(links):
        raise ConfigError(
            f"{path.name}: joints: must be exactly {', '.join(links)}, "
            f"got {', '.join(calibration.joints)}"
        )
    rows = [calibration.joints[name] for name in links]
    steps = [
        transform((r.x_m, r.y_m, r.z_m), rpy_to_matrix((r.roll_rad, r.pitch_rad, r.yaw_rad)))
        for r in rows
    ]
    return Chain(
        joint_names=nominal.joint_names,
        T_link_joint=frozen(np.array(steps)),
        axis=nominal.axis,
        T_link_flange=nominal.T_link_flange,
    )
