"""The makers' official meshes as the look of an arm, where they are on this machine already.

`MENAGERIE_ROOT` names a checkout of github.com/google-deepmind/mujoco_menagerie. Only the look is
taken: kinematics, masses and collision shapes stay ours, so a link's mesh is placed where its body
stands at zero joints. Nothing is ever downloaded.
"""

from __future__ import annotations

import os
from pathlib import Path

import mujoco
import numpy as np

from brain.errors import ConfigError
from brain.geometry import Array, invert, pose_transform, quat_from_matrix
from hardware.arm_model import Assembly
from hardware.shapes import pose_deg
from sim.look import GROUP_LOOK


def menagerie_file(assembly: Assembly) -> Path:
    """Return the model file of an arm in the local checkout.

    Raises:
        ConfigError: `MENAGERIE_ROOT` is not set, or the file is not there.
    """
    arm = assembly.arm
    if arm.menagerie is None:
        raise ConfigError(f"models: mujoco_menagerie has no {arm.name}; use --models forearm")
    root = os.environ.get("MENAGERIE_ROOT")
    if not root:
        raise ConfigError(
            "models: menagerie needs MENAGERIE_ROOT set to a local checkout of "
            "github.com/google-deepmind/mujoco_menagerie; nothing is downloaded"
        )
    path = Path(root) / arm.menagerie.file
    if not path.is_file():
        raise ConfigError(f"models: MENAGERIE_ROOT={root} has no {arm.menagerie.file}")
    return path


def add_menagerie_look(spec: mujoco.MjSpec, name: str, assembly: Assembly) -> None:
    """Give an arm of a scene its official meshes.

    Raises:
        ConfigError: the models are not there or not as expected.
    """
    path = menagerie_file(assembly)
    try:
        theirs = mujoco.MjSpec.from_file(str(path))
        model = theirs.compile()
    except ValueError as error:
        raise ConfigError(f"models: {path} does not load: {error}") from None
    at_zero = _body_poses(model)
    meshes = Path(theirs.modelfiledir or path.parent) / (theirs.meshdir or "")
    frames = _our_frames(assembly)
    assert assembly.arm.menagerie is not None
    for ours, other in assembly.arm.menagerie.bodies.items():
        source = theirs.body(other)
        if source is None:
            raise ConfigError(f"models: {path} has no body {other!r}")
        T_ours_theirs = invert(frames[ours]) @ _turned(assembly) @ at_zero[other]
        body = spec.body(f"{name}/{ours}")
        frame = body.add_frame(
            pos=T_ours_theirs[:3, 3], quat=quat_from_matrix(T_ours_theirs[:3, :3])
        )
        for geom in source.geoms:
            if geom.type != mujoco.mjtGeom.mjGEOM_MESH or geom.contype or geom.conaffinity:
                continue
            _copy_mesh(spec, theirs, geom, body, frame, f"{name}/menagerie", meshes)


def _copy_mesh(
    spec: mujoco.MjSpec,
    theirs: mujoco.MjSpec,
    geom: mujoco.MjsGeom,
    body: mujoco.MjsBody,
    frame: mujoco.MjsFrame,
    prefix: str,
    folder: Path,
) -> None:
    """Copy one visible geom with its mesh and material."""
    mesh = theirs.mesh(geom.meshname)
    name = f"{prefix}/{geom.meshname}"
    if spec.mesh(name) is None:
        spec.add_mesh(name=name, file=str((folder / mesh.file).resolve()), scale=mesh.scale)
    material = theirs.material(geom.material) if geom.material else None
    added = body.add_geom(
        type=mujoco.mjtGeom.mjGEOM_MESH,
        meshname=name,
        pos=geom.pos,
        quat=geom.quat,
        rgba=geom.rgba if material is None else material.rgba,
        contype=0,
        conaffinity=0,
        group=GROUP_LOOK,
        mass=0.0,
    )
    added.set_frame(frame)


def _body_poses(model: mujoco.MjModel) -> dict[str, Array]:
    """Pose (4, 4) of every body at zero joints, in the first body below the world."""
    data = mujoco.MjData(model)
    data.qpos[:] = 0.0
    mujoco.mj_kinematics(model, data)
    poses = {
        model.body(i).name: pose_transform(data.xpos[i], data.xquat[i]) for i in range(model.nbody)
    }
    T_root_world = invert(pose_transform(data.xpos[1], data.xquat[1]))
    return {name: T_root_world @ T for name, T in poses.items()}


def _turned(assembly: Assembly) -> Array:
    """Their base in our base (4, 4)."""
    assert assembly.arm.menagerie is not None
    return pose_deg((0.0, 0.0, 0.0), (0.0, 0.0, assembly.arm.menagerie.base_yaw_deg))


def _our_frames(assembly: Assembly) -> dict[str, Array]:
    """Pose (4, 4) of every link at zero joints, in the base."""
    frames, T = {assembly.arm.base.name: np.eye(4)}, np.eye(4)
    for joint, step in zip(assembly.arm.joints, assembly.nominal.T_link_joint, strict=True):
        T = T @ step
        frames[joint.link.name] = T
    return frames
