"""A resolved scene as a MuJoCo model, with the names and places that the rest of `sim` needs.

Every geom that collides belongs to an owner (an arm or an object) and a group, so that clearance
can be measured between them; geoms that are only seen belong to nobody. Objects are bodies of their
own name; parts move freely, moving objects are mocap bodies.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import mujoco
import numpy as np
import numpy.typing as npt

from brain.errors import ConfigError
from brain.geometry import Array, frozen, quat_from_matrix
from brain.world import PLANE
from hardware.arm_model import Assembly
from hardware.description import Gripper, load_camera
from hardware.scene import ResolvedScene, assembly_of, object_pose, start_q_rad
from hardware.scene_file import Object, Scene
from hardware.shapes import pose_deg, solid
from hardware.strict import Colour
from sim.menagerie import add_menagerie_look
from sim.robots import (
    PAD,
    PAD_SOLIMP,
    PAD_SOLREF,
    ROLLING_M,
    TORSION_M,
    add_arm,
    add_camera,
    add_solid,
    open_fingers,
)

TIMESTEP_MS = 2
"""One step per UR cycle; a whole number of them fits every tick."""
IMPRATIO = 10.0
"""Friction is ten times as stiff as normal contact, so that held parts do not creep."""
OFFSCREEN_PX = (1280, 960)
SHADOW_PX = 2048
"""Software rendering slows down with the shadow map: 75 ms a picture against 178 ms at 4096."""
Models = Literal["forearm", "menagerie"]
Group = Literal["", "base", "arm", "fingers", "fixed", "support", "part", "moving"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ArmIds:
    """Where one arm is in model and data; empty or None where it has no such thing."""

    name: str
    assembly: Assembly
    qpos: npt.NDArray[np.int64]
    dof: npt.NDArray[np.int64]
    actuator: npt.NDArray[np.int64]
    tool_site: int
    flange_site: int
    sensor_site: int | None
    force_adr: int | None
    torque_adr: int | None
    grip_actuator: int | None
    grip_tendon: int | None
    finger_qpos: npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SceneModel:
    """The compiled model of a resolved scene, and what is where in it.

    `qpos_start`: arms at their start joints, fingers open, parts where the scene puts them.
    `part_body` and `moving_mocap` by object name, `camera_id` by camera name. Per geom
    `geom_owner` is an arm, an object or "" (only seen), and `geom_group` what part of it.
    """

    resolved: ResolvedScene
    model: mujoco.MjModel
    arms: tuple[ArmIds, ...]
    qpos_start: Array
    part_body: Mapping[str, int]
    part_qpos: Mapping[str, int]
    moving_mocap: Mapping[str, int]
    camera_id: Mapping[str, int]
    geom_owner: tuple[str, ...]
    geom_group: tuple[Group, ...]


def build_model(resolved: ResolvedScene, *, models: Models = "forearm") -> SceneModel:
    """Build and compile a scene; `models` chooses the look of the arms.

    Raises:
        ConfigError: a description is wrong, the tick is no whole number of steps, or official
            models are asked for and not there.
    """
    scene = resolved.scene
    if scene.tick_ms % TIMESTEP_MS:
        raise ConfigError(
            f"{scene.cell}: tick_ms: physics steps {TIMESTEP_MS} ms at a time, got {scene.tick_ms}"
        )
    if models not in ("forearm", "menagerie"):
        raise ConfigError(f"models: must be forearm or menagerie, got {models!r}")
    assemblies = {arm.name: assembly_of(scene, arm) for arm in scene.arms}
    spec = _stage(scene)
    for item in scene.objects:
        _add_object(spec, item)
    for arm in scene.arms:
        assembly = assemblies[arm.name]
        T_world_base = pose_deg(arm.position_m, arm.rpy_deg)
        add_arm(spec, arm.name, assembly, T_world_base, look=models == "forearm")
        if models == "menagerie":
            add_menagerie_look(spec, arm.name, assembly)
    for camera in scene.cameras:
        if camera.mount == "world":
            description = load_camera(camera.model)
            T_world_optical = pose_deg(camera.position_m, camera.rpy_deg)
            T = T_world_optical @ np.linalg.inv(description.T_body_optical())
            add_camera(spec, spec.worldbody, camera.name, description, T)
    return _scene_model(resolved, spec.compile(), assemblies)


# ---------------------------------------------------------------- the stage


def _stage(scene: Scene) -> mujoco.MjSpec:
    """Make an empty lit cell with the physics options of every scene."""
    spec = mujoco.MjSpec()
    spec.modelname = scene.cell
    spec.compiler.degree = False
    spec.option.timestep = TIMESTEP_MS * 1e-3
    spec.option.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    spec.option.cone = mujoco.mjtCone.mjCONE_ELLIPTIC
    spec.option.impratio = IMPRATIO
    spec.option.enableflags |= mujoco.mjtEnableBit.mjENBL_SLEEP  # parts at rest cost nothing
    look_at = np.array(scene.view.look_at_m)
    spec.stat.center, spec.stat.extent = look_at, 1.0
    visual = spec.visual
    visual.global_.offwidth, visual.global_.offheight = OFFSCREEN_PX
    visual.global_.azimuth = scene.view.azimuth_deg
    visual.global_.elevation = scene.view.elevation_deg
    visual.quality.shadowsize = SHADOW_PX
    visual.map.znear, visual.map.zfar = 0.02, 30.0
    visual.map.shadowclip = 3.0
    visual.headlight.ambient = (0.34, 0.34, 0.36)
    visual.headlight.diffuse = (0.16, 0.16, 0.16)
    visual.headlight.specular = (0.05, 0.05, 0.05)
    visual.rgba.haze = (0.86, 0.89, 0.93, 1.0)
    spec.add_texture(
        name="sky",
        type=mujoco.mjtTexture.mjTEXTURE_SKYBOX,
        builtin=mujoco.mjtBuiltin.mjBUILTIN_GRADIENT,
        rgb1=(0.93, 0.95, 0.97),
        rgb2=(0.58, 0.65, 0.73),
        width=128,
        height=768,
    )
    spec.add_texture(
        name="floor",
        type=mujoco.mjtTexture.mjTEXTURE_2D,
        builtin=mujoco.mjtBuiltin.mjBUILTIN_FLAT,
        mark=mujoco.mjtMark.mjMARK_EDGE,
        rgb1=(1.0, 1.0, 1.0),
        rgb2=(1.0, 1.0, 1.0),
        markrgb=(0.82, 0.83, 0.85),
        width=256,
        height=256,
    )
    directional = mujoco.mjtLightType.mjLIGHT_DIRECTIONAL
    spec.worldbody.add_light(
        name="key",
        type=directional,
        pos=look_at + (1.2, -1.4, 2.4),
        dir=(-0.42, 0.45, -0.95),
        diffuse=(0.52, 0.51, 0.49),
        specular=(0.25, 0.25, 0.25),
        castshadow=True,
    )
    spec.worldbody.add_light(
        name="fill",
        type=directional,
        pos=look_at + (-1.5, 1.8, 1.6),
        dir=(0.55, -0.62, -0.55),
        diffuse=(0.24, 0.25, 0.28),
        specular=(0.08, 0.08, 0.08),
        castshadow=False,
    )
    return spec


def _add_object(spec: mujoco.MjSpec, item: Object) -> None:
    """Add an object as a body of its name."""
    T = object_pose(item)
    body = spec.worldbody.add_body(
        name=item.name,
        pos=T[:3, 3],
        quat=quat_from_matrix(T[:3, :3]),
        mocap=item.role == "moving",
    )
    if item.role == "part":
        body.add_freejoint(name=item.name)
    material = _add_material(spec, item.name, item.colour, "floor" if _is_floor(item) else None)
    solids = [solid(shape) for shape in item.shapes]
    volume = sum(_volume(s.kind, s.size_m) for s in solids)
    for s in solids:
        geom = add_solid(body, s, material=material)
        geom.friction = (item.friction, TORSION_M, ROLLING_M)
        geom.solref, geom.solimp[:] = PAD_SOLREF, PAD_SOLIMP
        if s.kind == PLANE:
            geom.size = (0.0, 0.0, 0.5)
        if item.mass_kg is not None:
            geom.mass = item.mass_kg * _volume(s.kind, s.size_m) / volume
    if item.decor:
        material = _add_material(spec, f"{item.name}/decor", item.decor_colour, None)
        for shape in item.decor:
            add_solid(body, solid(shape), material=material, contype=0, conaffinity=0, mass=0.0)


def _is_floor(item: Object) -> bool:
    return any(shape.shape == "plane" for shape in item.shapes)


def _add_material(spec: mujoco.MjSpec, name: str, colour: Colour, texture: str | None) -> str:
    material = spec.add_material(name=name, rgba=colour, specular=0.25, shininess=0.35)
    if texture is not None:
        material.textures[mujoco.mjtTextureRole.mjTEXROLE_RGB] = texture
        material.texrepeat, material.texuniform = (2.0, 2.0), True
        material.specular = 0.05
    return name


def _volume(kind: int, size_m: Array) -> float:
    """Volume in m^3 of a shape in MuJoCo's form; 1 for a plane, which has none."""
    r, h = float(size_m[0]), float(size_m[1])
    ball = 4.0 / 3.0 * np.pi * r**3
    tube = 2.0 * np.pi * r**2 * h
    return {0: ball, 1: ball + tube, 2: tube, 3: 8.0 * float(np.prod(size_m)), 4: 1.0}[kind]


# ---------------------------------------------------------------- what is where


def _scene_model(
    resolved: ResolvedScene, model: mujoco.MjModel, assemblies: Mapping[str, Assembly]
) -> SceneModel:
    """Look up what the rest of `sim` needs in the compiled model."""
    arms = tuple(_arm_ids(model, name, assembly) for name, assembly in assemblies.items())
    objects = resolved.scene.objects
    qpos = np.array(model.qpos0)
    for arm, q in zip(arms, start_q_rad(resolved.scene), strict=True):
        qpos[arm.qpos] = q
        gripper = arm.assembly.gripper
        if gripper is not None and isinstance(gripper.tool, Gripper):
            qpos[arm.finger_qpos] = list(open_fingers(gripper.tool, 1.0).values())
    owner, group = _owners(model, resolved.scene, assemblies)
    parts = [item.name for item in objects if item.role == "part"]
    moving = [item.name for item in objects if item.role == "moving"]
    return SceneModel(
        resolved=resolved,
        model=model,
        arms=arms,
        qpos_start=frozen(qpos),
        part_body={name: int(model.body(name).id) for name in parts},
        part_qpos={name: int(model.joint(name).qposadr[0]) for name in parts},
        moving_mocap={name: int(model.body(name).mocapid[0]) for name in moving},
        camera_id={c.name: int(model.camera(c.name).id) for c in resolved.scene.cameras},
        geom_owner=owner,
        geom_group=group,
    )


def _arm_ids(model: mujoco.MjModel, name: str, assembly: Assembly) -> ArmIds:
    joints = [model.joint(f"{name}/{joint.name}") for joint in assembly.arm.joints]
    gripper, has_sensor = assembly.gripper, assembly.sensor is not None
    fingers = []
    if gripper is not None and isinstance(gripper.tool, Gripper):
        fingers = [model.joint(f"{name}/{f.body.name}").qposadr[0] for f in gripper.tool.fingers]
    return ArmIds(
        name=name,
        assembly=assembly,
        qpos=np.array([joint.qposadr[0] for joint in joints], dtype=np.int64),
        dof=np.array([joint.dofadr[0] for joint in joints], dtype=np.int64),
        actuator=np.array([model.actuator(j.name).id for j in joints], dtype=np.int64),
        tool_site=int(model.site(f"{name}/tool").id),
        flange_site=int(model.site(f"{name}/flange").id),
        sensor_site=int(model.site(f"{name}/ft").id) if has_sensor else None,
        force_adr=int(model.sensor(f"{name}/force").adr[0]) if has_sensor else None,
        torque_adr=int(model.sensor(f"{name}/torque").adr[0]) if has_sensor else None,
        grip_actuator=None if gripper is None else int(model.actuator(f"{name}/grip").id),
        grip_tendon=None if gripper is None else int(model.tendon(f"{name}/grip").id),
        finger_qpos=np.array(fingers, dtype=np.int64),
    )


def _owners(
    model: mujoco.MjModel, scene: Scene, assemblies: Mapping[str, Assembly]
) -> tuple[tuple[str, ...], tuple[Group, ...]]:
    """Owner and group of every geom; of those that are only seen both are empty."""
    roles: dict[str, tuple[str, Group]] = {o.name: (o.name, o.role) for o in scene.objects}
    for name, assembly in assemblies.items():
        fingers: set[str] = set()
        if assembly.gripper is not None and isinstance(assembly.gripper.tool, Gripper):
            fingers = {finger.body.name for finger in assembly.gripper.tool.fingers}
        cameras = {mounted.name for mounted in assembly.cameras}
        for i in range(model.nbody):
            prefix, _, link = model.body(i).name.partition("/")
            if prefix in cameras:
                roles[model.body(i).name] = (name, "arm")
            elif prefix == name:
                group: Group = "base" if link == assembly.arm.base.name else "arm"
                roles[model.body(i).name] = (name, "fingers" if link in fingers else group)
    owner: list[str] = []
    groups: list[Group] = []
    for i in range(model.ngeom):
        collides = bool(model.geom_contype[i] or model.geom_conaffinity[i])
        name = model.body(model.geom_bodyid[i]).name
        who, what = roles.get(name, (name, "fixed")) if collides else ("", "")
        if PAD in model.geom(i).name:
            what = "fingers"
        owner.append(who)
        groups.append(what)
    return tuple(owner), tuple(groups)
