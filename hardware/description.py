"""Robots, grippers, sensors and cameras as data: the schema of `assets/*.yaml`.

One description gives the physics and the picture (`sim/robots.py`) and the brain's model
(`hardware/arm_model.py`). Frames: an arm's base is its maker's controller base; link i turns with
joint i and has its origin on the joint's axis; the flange has z out of the arm. Tools are stacked
on the flange along z; a gripper's fingers close along x. Lengths are full lengths, angles degrees.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal, Self

import numpy as np
from pydantic import Field, model_validator

from brain.errors import ConfigError
from brain.geometry import Array, transform
from hardware.parts import Body, Material
from hardware.shapes import pose_deg, rotation_deg
from hardware.strict import (
    Name,
    NotNegative,
    Positive,
    Strict,
    Vec3,
    check,
    data_folder,
    load,
    read_yaml,
)

# ---------------------------------------------------------------- arms


class Dh(Strict):
    """One row of a Denavit-Hartenberg table (distal convention, as UR publishes it)."""

    d_m: float
    a_m: float
    alpha_deg: float

    def after_joint(self) -> Array:
        """Transform (4, 4) from the turned joint axis to the DH frame, without d."""
        return transform((self.a_m, 0.0, 0.0), rotation_deg((self.alpha_deg, 0.0, 0.0)))


class Origin(Strict):
    """A joint as a URDF has it: its place in the link before, and its axis there."""

    position_m: Vec3
    axis: Vec3

    @model_validator(mode="after")
    def _is_unit(self) -> Self:
        if abs(float(np.linalg.norm(self.axis)) - 1.0) > 1e-9:
            raise ValueError(f"axis must be a unit vector, got {list(self.axis)}")
        return self


class Servo(Strict):
    """Position servo torque = kp (ctrl - q) - kd dq, and what resists motion in the joint."""

    kp_nm_rad: Positive
    kd_nm_s_rad: Positive
    armature_kg_m2: NotNegative
    damping_nm_s_rad: NotNegative
    friction_nm: NotNegative


class Joint(Strict):
    """One revolute joint with the link that it moves."""

    name: Name
    dh: Dh | None = None
    origin: Origin | None = None
    q_min_deg: float
    q_max_deg: float
    dq_max_deg_s: Positive
    tau_max_nm: Positive
    servo: Servo
    link: Body

    @model_validator(mode="after")
    def _one_geometry(self) -> Self:
        if (self.dh is None) == (self.origin is None):
            raise ValueError("needs either dh or origin")
        if not self.q_min_deg < self.q_max_deg:
            raise ValueError(f"q_min_deg {self.q_min_deg} is not below q_max_deg {self.q_max_deg}")
        return self


class Flange(Strict):
    """The flange in the last link, z out of the arm."""

    position_m: Vec3 = (0.0, 0.0, 0.0)
    rpy_deg: Vec3 = (0.0, 0.0, 0.0)


class Menagerie(Strict):
    """Where this arm is in a mujoco_menagerie checkout: its file and each body's name there.

    `T_theirs_ours` per body is worked out from the two chains at zero; see `sim/menagerie.py`.
    """

    file: str
    bodies: dict[Name, str]
    base_yaw_deg: float


class Arm(Strict):
    """A robot arm; `self_collision`: the bodies that can touch, "tool" is all on the flange."""

    kind: Literal["arm"]
    name: Name
    maker: str
    source: tuple[str, ...]
    ik: Literal["ur", "z1"]
    period_ms: Annotated[int, Field(ge=1, le=100)]
    watchdog_ms: Annotated[int, Field(ge=1, le=5000)]
    reach_m: Positive
    payload_kg: Positive
    materials: dict[Name, Material]
    base: Body
    joints: Annotated[tuple[Joint, ...], Field(min_length=1)]
    flange: Flange = Flange()
    self_collision: tuple[tuple[Name, Name], ...]
    menagerie: Menagerie | None = None

    @model_validator(mode="after")
    def _is_whole(self) -> Self:
        names = [self.base.name, *(joint.link.name for joint in self.joints), "tool"]
        if len(set(names)) < len(names):
            raise ValueError(f"bodies need different names, got {', '.join(names)}")
        for pair in self.self_collision:
            for name in pair:
                if name not in names:
                    raise ValueError(f"self_collision: no body {name!r}, only {', '.join(names)}")
        if any((j.dh is None) != (self.joints[0].dh is None) for j in self.joints):
            raise ValueError("either all joints have dh or all have origin")
        return self


# ---------------------------------------------------------------- what is bolted to the flange


class Sliding(Strict):
    """A finger joint that slides along an axis, from closed to open."""

    axis: Vec3
    closed_m: float
    open_m: float
    armature_kg: NotNegative
    damping_n_s_m: NotNegative


class Hinge(Strict):
    """A finger joint that turns about an axis, from closed to open."""

    axis: Vec3
    closed_deg: float
    open_deg: float
    armature_kg_m2: NotNegative
    damping_nm_s_rad: NotNegative


class Finger(Strict):
    """A moving body of a gripper. All finger joints move together, linearly from closed to open."""

    parent: Name
    position_m: Vec3
    slide: Sliding | None = None
    hinge: Hinge | None = None
    body: Body

    @model_validator(mode="after")
    def _one_joint(self) -> Self:
        if (self.slide is None) == (self.hinge is None):
            raise ValueError("needs either slide or hinge")
        return self


class GripPoint(Strict):
    """A point fixed to a body of the gripper."""

    body: Name
    point_m: Vec3


class GripServo(Strict):
    """Position servo on the opening: force = kp (ctrl - opening) - kd d(opening)/dt."""

    kp_n_m: Positive
    kd_n_s_m: Positive


class Gripper(Strict):
    """A two-finger gripper. Its opening is how much farther than closed two points are apart."""

    kind: Literal["gripper"]
    name: Name
    maker: str
    source: tuple[str, ...]
    opening_max_m: Positive
    force_min_n: NotNegative
    force_max_n: Positive
    speed_min_m_s: NotNegative
    speed_max_m_s: Positive
    tool_m: Vec3
    servo: GripServo
    pad_friction: Positive
    materials: dict[Name, Material]
    body: Body
    fingers: Annotated[tuple[Finger, ...], Field(min_length=1)]
    grip_points: tuple[GripPoint, GripPoint]

    @model_validator(mode="after")
    def _is_whole(self) -> Self:
        known = [self.body.name]
        for finger in self.fingers:
            if finger.parent not in known:
                raise ValueError(f"finger {finger.body.name}: no body {finger.parent!r} before it")
            known.append(finger.body.name)
        for point in self.grip_points:
            if point.body not in known:
                raise ValueError(f"grip_points: no body {point.body!r}, only {', '.join(known)}")
        return self


class Sensor(Strict):
    """A force and torque sensor in the tool stack; it weighs what is mounted beyond its height."""

    kind: Literal["sensor"]
    name: Name
    maker: str
    source: tuple[str, ...]
    height_m: Positive
    force_max_n: Positive
    torque_max_nm: Positive
    force_noise_n: NotNegative
    torque_noise_nm: NotNegative
    materials: dict[Name, Material]
    body: Body


class Camera(Strict):
    """A colour and depth camera; `optical_m` and `optical_rpy_deg` place its optical frame.

    The depth image is given aligned to colour, so one focal length serves both; the noise of depth
    comes from the stereo pair behind it (`baseline_m`, `depth_focal_px`, `subpixel_px`).
    """

    kind: Literal["camera"]
    name: Name
    maker: str
    source: tuple[str, ...]
    width_px: Annotated[int, Field(ge=16, le=4096)]
    height_px: Annotated[int, Field(ge=16, le=4096)]
    rate_hz: Positive
    focal_px: Positive
    baseline_m: Positive
    depth_focal_px: Positive
    subpixel_px: NotNegative
    range_min_m: Positive
    range_max_m: Positive
    optical_m: Vec3
    optical_rpy_deg: Vec3
    materials: dict[Name, Material]
    body: Body

    def T_body_optical(self) -> Array:
        """Optical frame (x right, y down, z forward) in the body, (4, 4)."""
        return pose_deg(self.optical_m, self.optical_rpy_deg)

    def K_px(self) -> Array:
        """Intrinsic matrix (3, 3); the principal point is the image's middle."""
        cx, cy = 0.5 * (self.width_px - 1), 0.5 * (self.height_px - 1)
        return np.array([[self.focal_px, 0.0, cx], [0.0, self.focal_px, cy], [0.0, 0.0, 1.0]])


# ---------------------------------------------------------------- reading


def _path(name: str) -> Path:
    folder = data_folder("assets")
    known = sorted(path.stem for path in folder.glob("*.yaml"))
    if name not in known:
        raise ConfigError(f"no description {name!r} in {folder.name}/; it has {', '.join(known)}")
    return folder / f"{name}.yaml"


def load_arm_description(name: str) -> Arm:
    """Read an arm of `assets/`.

    Raises:
        ConfigError: unknown, not an arm, or not as the schema says.
    """
    return load(_path(name), Arm)


def load_tool(name: str) -> Gripper | Sensor:
    """Read a gripper or sensor of `assets/`.

    Raises:
        ConfigError: unknown, neither, or not as the schema says.
    """
    path = _path(name)
    data = read_yaml(path)
    kind = data.get("kind") if isinstance(data, dict) else None
    if kind == "gripper":
        return check(data, Gripper, path.name)
    if kind == "sensor":
        return check(data, Sensor, path.name)
    raise ConfigError(f"{path.name}: kind: a tool is a gripper or a sensor, got {kind!r}")


def load_camera(name: str) -> Camera:
    """Read a camera of `assets/`.

    Raises:
        ConfigError: unknown, not a camera, or not as the schema says.
    """
    return load(_path(name), Camera)
