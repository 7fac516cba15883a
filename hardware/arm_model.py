"""An arm with its tools and cameras, put together from descriptions, and the brain's model of it.

`assemble` reads the files and places everything; `arm_model` gives what the brain needs. The
physics is made from the same `Assembly` in `sim/robots.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from brain.errors import ConfigError
from brain.geometry import Array, frozen, invert, transform
from brain.robot import (
    GROUP_ARM,
    GROUP_FINGER,
    ArmModel,
    Chain,
    GripperModel,
    IntArray,
    JointLimits,
    Spheres,
    arm_arrays,
)
from hardware.chain import calibrated_chain, nominal_chain
from hardware.description import (
    Arm,
    Camera,
    Gripper,
    Sensor,
    load_arm_description,
    load_camera,
    load_tool,
)
from hardware.fingers import finger_frames, swept
from hardware.parts import Body
from hardware.shapes import cover, solid


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MountedTool:
    """A gripper or sensor and where its frame sits on the flange."""

    tool: Gripper | Sensor
    T_flange_mount: Array


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MountedCamera:
    """A camera of the scene and where its optical frame sits on the flange."""

    name: str
    camera: Camera
    T_flange_optical: Array


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Assembly:
    """An arm, its chains, and everything on its flange."""

    arm: Arm
    chain: Chain
    nominal: Chain
    tools: tuple[MountedTool, ...]
    cameras: tuple[MountedCamera, ...]
    T_flange_tool: Array

    @property
    def gripper(self) -> MountedTool | None:
        """The gripper, which is the last tool if there is one."""
        last = self.tools[-1] if self.tools else None
        return last if last is not None and isinstance(last.tool, Gripper) else None

    @property
    def sensor(self) -> MountedTool | None:
        """The wrist force and torque sensor."""
        found = [item for item in self.tools if isinstance(item.tool, Sensor)]
        return found[0] if found else None


# ---------------------------------------------------------------- putting it together


def assemble(
    robot: str,
    tools: Sequence[str] = (),
    calibration: Path | None = None,
    cameras: Sequence[tuple[str, str, Array]] = (),
) -> Assembly:
    """Read an arm, its tool stack from the flange outwards, and its cameras.

    `cameras` are (name in the scene, model, T_flange_optical (4, 4)).

    Raises:
        ConfigError: something is unknown, or a gripper is not the last tool.
    """
    arm = load_arm_description(robot)
    nominal = nominal_chain(arm)
    chain = nominal if calibration is None else calibrated_chain(arm, nominal, calibration)
    mounted, at = [], np.eye(4)
    for i, name in enumerate(tools):
        tool = load_tool(name)
        mounted.append(MountedTool(tool=tool, T_flange_mount=frozen(at)))
        if isinstance(tool, Sensor):
            at = at @ transform((0.0, 0.0, tool.height_m))
        elif i + 1 < len(tools):
            raise ConfigError(f"tools: a gripper ends the stack, but {tools[i + 1]} follows {name}")
        else:
            at = at @ transform(tool.tool_m)
    if len({m.tool.name for m in mounted}) < len(mounted):
        raise ConfigError(f"tools: each may stand once, got {', '.join(tools)}")
    return Assembly(
        arm=arm,
        chain=chain,
        nominal=nominal,
        tools=tuple(mounted),
        cameras=tuple(
            MountedCamera(name=n, camera=load_camera(model), T_flange_optical=frozen(T))
            for n, model, T in cameras
        ),
        T_flange_tool=frozen(at),
    )


def load_arm(
    robot: str,
    tools: Sequence[str] = (),
    calibration: Path | None = None,
    cameras: Sequence[tuple[str, str, Array]] = (),
) -> ArmModel:
    """Read an arm with its tools and give the brain's model; see `assemble`."""
    return arm_model(assemble(robot, tools, calibration, cameras))


def arm_model(assembly: Assembly) -> ArmModel:
    """Make the brain's model of an assembled arm."""
    arm, gripper = assembly.arm, assembly.gripper
    spheres, owner = _spheres(assembly)
    pairs = _self_pairs(arm, owner)
    mass, com = _load(assembly)
    return ArmModel(
        name=arm.name,
        chain=assembly.chain,
        nominal=assembly.nominal,
        ik=arm.ik,
        limits=JointLimits(
            q_min_rad=frozen(np.radians([j.q_min_deg for j in arm.joints])),
            q_max_rad=frozen(np.radians([j.q_max_deg for j in arm.joints])),
            dq_max_rad_s=frozen(np.radians([j.dq_max_deg_s for j in arm.joints])),
            tau_max_nm=frozen([j.tau_max_nm for j in arm.joints]),
        ),
        spheres=spheres,
        self_pairs=pairs,
        T_flange_tool=assembly.T_flange_tool,
        tool_mass_kg=mass,
        sensed_mass_kg=_sensed_kg(assembly),
        tool_com_m=frozen(com),
        gripper=None if gripper is None else gripper_model(gripper.tool),
        arrays=arm_arrays(assembly.chain, assembly.T_flange_tool, spheres, pairs),
    )


def gripper_model(tool: Gripper | Sensor) -> GripperModel | None:
    """Give what the brain needs of a gripper, None for a sensor."""
    if isinstance(tool, Sensor):
        return None
    return GripperModel(
        name=tool.name,
        opening_min_m=0.0,
        opening_max_m=tool.opening_max_m,
        force_min_n=tool.force_min_n,
        force_max_n=tool.force_max_n,
        speed_max_m_s=tool.speed_max_m_s,
    )


def parts_on_flange(assembly: Assembly) -> list[tuple[Body, Array]]:
    """List every body on the flange, fingers half open, with its pose there (4, 4)."""
    parts: list[tuple[Body, Array]] = []
    for item in assembly.tools:
        parts.append((item.tool.body, item.T_flange_mount))
        if isinstance(item.tool, Gripper):
            frames = finger_frames(item.tool, 0.5)
            for finger in item.tool.fingers:
                parts.append((finger.body, item.T_flange_mount @ frames[finger.body.name]))
    for mounted in assembly.cameras:
        T_flange_body = mounted.T_flange_optical @ invert(mounted.camera.T_body_optical())
        parts.append((mounted.camera.body, T_flange_body))
    return parts


def _load(assembly: Assembly) -> tuple[float, Array]:
    """Mass in kg and centre of mass (3,) in the flange frame of everything beyond the flange."""
    mass, moment = 0.0, np.zeros(3)
    for body, T in parts_on_flange(assembly):
        mass += body.mass_kg
        moment += body.mass_kg * (T[:3, :3] @ np.array(body.com_m) + T[:3, 3])
    return mass, moment / mass if mass > 0.0 else moment


def _sensed_kg(assembly: Assembly) -> float:
    """Mass in kg that the wrist sensor weighs: the tools beyond it; all of them without one."""
    kinds = [isinstance(item.tool, Sensor) for item in assembly.tools]
    beyond = assembly.tools[kinds.index(True) + 1 :] if any(kinds) else assembly.tools
    masses = [item.tool.body.mass_kg for item in beyond]
    for item in beyond:
        if isinstance(item.tool, Gripper):
            masses += [finger.body.mass_kg for finger in item.tool.fingers]
    return sum(masses)


# ---------------------------------------------------------------- spheres


def _spheres(assembly: Assembly) -> tuple[Spheres, list[str]]:
    """Enclose arm, tools, fingers and cameras in spheres; also whose body each one belongs to."""
    arm, last = assembly.arm, len(assembly.arm.joints)
    rows: list[tuple[int, Array, Array, int, str, str]] = []
    for i, body in enumerate([arm.base, *(joint.link for joint in arm.joints)]):
        for shape in body.collision:
            rows.append((i, *cover(solid(shape)), GROUP_ARM, body.name, body.name))
    on_flange: list[tuple[Array, Array, Array, int, str]] = []
    for item in assembly.tools:
        name, T = item.tool.name, item.T_flange_mount
        for shape in item.tool.body.collision:
            on_flange.append((T, *cover(solid(shape)), GROUP_ARM, name))
        if isinstance(item.tool, Gripper):
            for finger in item.tool.fingers:
                centres, radii = swept(item.tool, finger.body)
                on_flange.append((T, centres, radii, GROUP_FINGER, f"{name} fingers"))
            for shape in item.tool.body.pads:
                on_flange.append((T, *cover(solid(shape)), GROUP_FINGER, f"{name} fingers"))
    for mounted in assembly.cameras:
        T = mounted.T_flange_optical @ invert(mounted.camera.T_body_optical())
        for shape in mounted.camera.body.collision:
            on_flange.append((T, *cover(solid(shape)), GROUP_ARM, f"{mounted.name} camera"))
    for T_flange, centres, radii, group, name in on_flange:
        T = assembly.chain.T_link_flange @ T_flange
        rows.append((last, centres @ T[:3, :3].T + T[:3, 3], radii, group, name, "tool"))
    counts = [len(row[2]) for row in rows]
    spheres = Spheres(
        link=np.repeat(np.array([row[0] for row in rows], dtype=np.int64), counts),
        centre_m=frozen(np.concatenate([row[1] for row in rows])),
        radius_m=frozen(np.concatenate([row[2] for row in rows])),
        group=np.repeat(np.array([row[3] for row in rows], dtype=np.int64), counts),
        name=tuple(row[4] for row, n in zip(rows, counts, strict=True) for _ in range(n)),
    )
    owner = [row[5] for row, n in zip(rows, counts, strict=True) for _ in range(n)]
    return spheres, owner


def _self_pairs(arm: Arm, owner: list[str]) -> IntArray:
    """Sphere pairs (k, 2) of the bodies that the description says can touch."""
    members: dict[str, list[int]] = {}
    for i, name in enumerate(owner):
        members.setdefault(name, []).append(i)
    pairs = [
        (min(i, j), max(i, j))
        for a, b in arm.self_collision
        for i in members.get(a, [])
        for j in members.get(b, [])
    ]
    return np.array(sorted(set(pairs)), dtype=np.int64).reshape(-1, 2)
