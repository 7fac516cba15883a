"""A resolved scene: everything decided, as canonical text with a digest, and the brain's view.

`resolve` (in `hardware/resolve.py`) draws what a seed varies. The text of a `ResolvedScene` is all
that a remote seat needs (`parse_resolved`), and two of equal digest are the same cell down to the
robots' description files. `cell_model`, `world_of`, `tasks_of` and `camera_specs` are for the
brain.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import Literal

import numpy as np

from brain.cell import CellArm, CellModel
from brain.errors import ConfigError
from brain.geometry import Array, frozen, transform
from brain.task import PickPlace
from brain.world import SceneObject, World, make_world
from hardware.api import CameraSpec
from hardware.arm_model import Assembly, arm_model, assemble
from hardware.description import load_camera
from hardware.layout import footprint
from hardware.scene_file import Object, Scene, SceneArm, Step, load_scene
from hardware.shapes import pose_deg, rotation_deg, solid
from hardware.strict import Strict, check_json, data_folder

__all__ = [
    "ResolvedScene",
    "assembly_of",
    "camera_specs",
    "cell_model",
    "load_scene",
    "object_pose",
    "parse_resolved",
    "resolved_from",
    "start_q_rad",
    "tasks_of",
    "world_at_start",
    "world_of",
]

PLACE_YAWS_DEG = np.arange(0.0, 360.0, 45.0)
"""Where a step leaves the yaw of a placed part open, these are tried."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ResolvedScene:
    """A scene in which nothing is left to chance: its canonical text, that text's SHA-256."""

    text: str
    digest: str
    seed: int
    scene: Scene


class _ResolvedFile(Strict):
    """The canonical text as a schema; `assets` holds the SHA-256 of every file it builds on."""

    format: Literal["forearm-scene-1"]
    seed: int
    assets: dict[str, str]
    scene: Scene


def resolved_from(scene: Scene, seed: int) -> ResolvedScene:
    """Make the canonical text of a scene in which everything is decided.

    The text is JSON with sorted keys, no spaces, and numbers as Python's shortest repr.
    """
    data = {
        "format": "forearm-scene-1",
        "seed": seed,
        "assets": _asset_digests(scene),
        "scene": scene.model_dump(mode="json", exclude_defaults=True),
    }
    text = json.dumps(data, sort_keys=True, separators=(",", ":"), allow_nan=False)
    digest = hashlib.sha256(text.encode()).hexdigest()
    return ResolvedScene(text=text, digest=digest, seed=seed, scene=scene)


def parse_resolved(text: str) -> ResolvedScene:
    """Rebuild a resolved scene from its text, with the same digest.

    Raises:
        ConfigError: the text is foreign or altered, or this installation's robot descriptions
            are not those it was made with.
    """
    file = check_json(text, _ResolvedFile, "resolved scene")
    here = _asset_digests(file.scene)
    for name in sorted({*here, *file.assets}):
        if here.get(name) != file.assets.get(name):
            raise ConfigError(f"resolved scene: assets/{name} is not the file it was made with")
    resolved = resolved_from(file.scene, file.seed)
    if resolved.text != text:
        raise ConfigError("resolved scene: the text is not in canonical form")
    return resolved


def _asset_digests(scene: Scene) -> dict[str, str]:
    """SHA-256 of every description file that a scene builds on."""
    names = {f"{arm.robot}.yaml" for arm in scene.arms}
    names |= {f"{tool}.yaml" for arm in scene.arms for tool in arm.tools}
    names |= {f"{camera.model}.yaml" for camera in scene.cameras}
    names |= {f"calibration/{a.calibration}.yaml" for a in scene.arms if a.calibration is not None}
    folder = data_folder("assets")
    digests = {}
    for name in sorted(names):
        path = folder / name
        if not path.is_file():
            known = ", ".join(sorted(p.stem for p in path.parent.glob("*.yaml")))
            raise ConfigError(f"{scene.cell}: no description assets/{name}; there are {known}")
        digests[name] = hashlib.sha256(path.read_bytes()).hexdigest()
    return digests


# ---------------------------------------------------------------- arms and cameras


def assembly_of(scene: Scene, arm: SceneArm) -> Assembly:
    """Put together one arm of a scene with its tools, calibration and wrist cameras.

    Raises:
        ConfigError: a file is missing or wrong, or home does not fit the robot.
    """
    path = None
    if arm.calibration is not None:
        path = data_folder("assets") / "calibration" / f"{arm.calibration}.yaml"
    cameras = [
        (camera.name, camera.model, pose_deg(camera.position_m, camera.rpy_deg))
        for camera in scene.cameras
        if camera.mount == arm.name
    ]
    assembly = assemble(arm.robot, arm.tools, path, cameras)
    joints = assembly.arm.joints
    for key, values in (("home_deg", arm.home_deg), ("start_deg", arm.start_deg)):
        if values is None:
            continue
        if len(values) != len(joints):
            raise ConfigError(
                f"{scene.cell}: arms.{arm.name}.{key}: {arm.robot} has {len(joints)} joints, "
                f"got {len(values)} values"
            )
        for joint, value in zip(joints, values, strict=True):
            if not joint.q_min_deg <= value <= joint.q_max_deg:
                raise ConfigError(
                    f"{scene.cell}: arms.{arm.name}.{key}: {joint.name} at {value} is outside "
                    f"[{joint.q_min_deg}, {joint.q_max_deg}]"
                )
    return assembly


def cell_model(resolved: ResolvedScene) -> CellModel:
    """Give the brain's static model of the cell.

    Raises:
        ConfigError: a description is wrong, or the arms' periods do not fit the tick.
    """
    scene = resolved.scene
    arms = []
    for arm in scene.arms:
        assembly = assembly_of(scene, arm)
        period_ms = arm.period_ms or assembly.arm.period_ms
        arms.append(
            CellArm(
                name=arm.name,
                model=arm_model(assembly),
                T_world_base=frozen(pose_deg(arm.position_m, arm.rpy_deg)),
                home_q_rad=frozen(np.radians(arm.home_deg)),
                period_ns=period_ms * 1_000_000,
                has_wrench=assembly.sensor is not None,
                T_base_seat=frozen(transform(rotation=rotation_deg(arm.seat_rpy_deg))),
            )
        )
    tick_ns = scene.tick_ms * 1_000_000
    periods = ", ".join(f"{arm.name} {arm.period_ns // 1_000_000} ms" for arm in arms)
    if tick_ns != min(arm.period_ns for arm in arms):
        raise ConfigError(
            f"{scene.cell}: tick_ms: must be the smallest arm period, got {scene.tick_ms}; "
            f"periods: {periods}"
        )
    if any(arm.period_ns % tick_ns for arm in arms):
        raise ConfigError(
            f"{scene.cell}: tick_ms: every arm period must be a multiple of {scene.tick_ms} ms, "
            f"got {periods}"
        )
    return CellModel(
        name=scene.cell,
        scene_digest=resolved.digest,
        tick_ns=tick_ns,
        arms=tuple(arms),
        workspace_m=frozen([scene.workspace.min_m, scene.workspace.max_m]),
    )


def start_q_rad(scene: Scene) -> tuple[Array, ...]:
    """Joints (n,) that each arm starts at."""
    return tuple(
        frozen(np.radians(arm.home_deg if arm.start_deg is None else arm.start_deg))
        for arm in scene.arms
    )


def camera_specs(resolved: ResolvedScene) -> tuple[CameraSpec, ...]:
    """Describe the scene's cameras; `simulated` is for whoever opens them to replace."""
    specs = []
    for item in resolved.scene.cameras:
        camera = load_camera(item.model)
        specs.append(
            CameraSpec(
                name=item.name,
                model=camera.name,
                width_px=camera.width_px,
                height_px=camera.height_px,
                period_ns=round(1e9 / camera.rate_hz),
                K_px=frozen(camera.K_px()),
                mount=item.mount,
                T_mount_optical=frozen(pose_deg(item.position_m, item.rpy_deg)),
                simulated=True,
            )
        )
    return tuple(specs)


# ---------------------------------------------------------------- objects and tasks


def object_pose(item: Object, t_s: float = 0.0) -> Array:
    """Where the scene puts an object at a time, (4, 4) in the world.

    A moving object goes evenly from one waypoint of its schedule to the next, and stays before the
    first and after the last.
    """
    if not item.schedule:
        return pose_deg(item.position_m, item.rpy_deg)
    times = [point.t_s for point in item.schedule]
    rows = [(*point.position_m, point.yaw_deg) for point in item.schedule]
    x, y, z, yaw = (float(np.interp(t_s, times, column)) for column in zip(*rows, strict=True))
    return pose_deg((x, y, z), (0.0, 0.0, yaw))


def scene_object(item: Object) -> SceneObject:
    """Give the brain's form of an object, where the scene puts it at time 0."""
    solids = [solid(shape) for shape in item.shapes]
    return SceneObject(
        name=item.name,
        role=item.role,
        kinds=tuple(s.kind for s in solids),
        size_m=frozen([s.size_m for s in solids]),
        T_object_shape=frozen([s.T_owner_shape for s in solids]),
        T_world_object=frozen(object_pose(item)),
    )


def world_at_start(scene: Scene) -> World:
    """Give the world as a scene declares it, moving objects at their places at time 0."""
    return make_world(tuple(scene_object(item) for item in scene.objects))


def world_of(resolved: ResolvedScene) -> World:
    """Give the world of a resolved scene; see `world_at_start`."""
    return world_at_start(resolved.scene)


def tasks_of(resolved: ResolvedScene) -> dict[str, tuple[PickPlace, ...]]:
    """Give the scene's tasks in the planner's form."""
    scene = resolved.scene
    return {
        name: tuple(pick_place(scene, step) for step in task.steps)
        for name, task in scene.tasks.items()
    }


def pick_place(scene: Scene, step: Step) -> PickPlace:
    """Give one step, for the first of its parts, in the planner's form."""
    part = scene.object(step.parts[0])
    assert part.grasp is not None  # every part has one
    yaws = step.place_yaw_deg or tuple(float(yaw) for yaw in PLACE_YAWS_DEG)
    x, y, z = step.place_m
    z += part.position_m[2] - footprint(scene_object(part))[0]
    return PickPlace(
        arm=step.arm,
        name=part.name,
        support=step.support,
        T_object_tool=frozen(grasps(part)),
        T_world_place=frozen([pose_deg((x, y, z), (0.0, 0.0, yaw)) for yaw in yaws]),
        grip_opening_m=max(part.grasp.width_m - step.squeeze_m, 0.0),
        grip_force_n=step.force_n,
        clear_m=step.clear_m,
    )


def grasps(part: Object) -> list[Array]:
    """Tool poses (4, 4) in a part that take it from above: z down, x along the closing fingers."""
    assert part.grasp is not None
    return [
        pose_deg(part.grasp.point_m, (180.0, 0.0, closing + turn))
        for closing in part.grasp.closing_deg
        for turn in (0.0, 180.0)
    ]
