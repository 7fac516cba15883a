"""From a scene and a seed to a resolved scene: draw what varies, refuse what cannot work.

The draws are in the order of the file, from one PCG64 generator; what does not fit (overlaps, out
of reach, an arm that starts in contact) is drawn again, a bounded number of times. Equal seeds give
equal texts.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from brain.body import Body, held_spheres, place
from brain.cartesian import NotStraight, cartesian_path
from brain.cell import CellArm, CellModel
from brain.distance import arm_clearance, obstacles
from brain.errors import ConfigError
from brain.geometry import Array, invert
from brain.ik import solve, within_limits
from brain.limits import profile, soft_range
from brain.robot import GROUP_FINGER, GROUP_HELD, GROUPS
from brain.task import CLOSE_MARGIN_M, FREE_MARGIN_M, PickPlace
from brain.world import Held, SceneObject, World, allowing, make_world
from hardware.console import SEED_MOST
from hardware.layout import gap_m, stands
from hardware.scene import (
    ResolvedScene,
    cell_model,
    pick_place,
    resolved_from,
    scene_object,
    start_q_rad,
    world_at_start,
)
from hardware.scene_file import Object, Scene, Variation
from hardware.strict import Vec3

TRIES = 100
"""Draws for one object, given what stands already."""
ROUNDS = 10
"""Whole arrangements that are tried."""
START_MARGIN_M = FREE_MARGIN_M + 0.005
"""An arm starts at least this far from everything, so that it can plan from there."""
APART_M = 0.01
"""Objects keep this far apart."""
FINGERS, HELD = GROUPS[GROUP_FINGER], GROUPS[GROUP_HELD]
Arms = dict[str, tuple[CellArm, Body]]
"""By name; they stay the same whatever is drawn."""


def resolve(scene: Scene, seed: int) -> ResolvedScene:
    """Decide everything that a scene leaves to the seed.

    Raises:
        ConfigError: as written in the file an arm starts in contact, a part is out of reach or does
            not stand on its support; or no arrangement fits in a bounded number of tries.
    """
    if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed <= SEED_MOST:
        raise ConfigError(f"seed: {seed!r}, allowed are whole numbers from 0 to {SEED_MOST}")
    arms = _arms(cell_model(resolved_from(scene, seed)))
    trouble = _trouble(scene, arms)
    if trouble is not None:
        raise ConfigError(f"{scene.cell}: {trouble}")
    if scene.variation == Variation():
        return resolved_from(_chosen(scene, lambda n: 0), seed)
    rng = np.random.Generator(np.random.PCG64(seed))
    for _ in range(ROUNDS):
        drawn = _draw(scene, rng)
        if isinstance(drawn, str):
            trouble = drawn
            continue
        trouble = _trouble(drawn, arms)
        if trouble is None:
            started = _draw_start(drawn, scene.variation.start_deg, rng, arms)
            if started is not None:
                return resolved_from(started, seed)
            trouble = "no start near home keeps clear of everything"
    raise ConfigError(
        f"{scene.cell}: seed {seed}: no arrangement fits in {ROUNDS} tries; the last: {trouble}"
    )


def _arms(cell: CellModel) -> Arms:
    return {a.name: (a, place(a.model, a.T_world_base, name=a.name)) for a in cell.arms}


# ---------------------------------------------------------------- drawing


def _draw(scene: Scene, rng: np.random.Generator) -> Scene | str:
    """Draw one arrangement; text says what found no place."""
    vary, placed = scene.variation, list(scene.objects)
    for i, item in enumerate(placed):
        if item.name not in vary.boxes:
            continue
        others = [
            scene_object(o) for o in scene.objects if o.name != item.name and o.role != "part"
        ]
        touched = {o.name for o in others if gap_m(scene_object(item), o) < APART_M}
        near = [scene_object(o) for o in placed if o.name != item.name and o.role != "part"]
        near = [o for o in near if o.name not in touched]
        for _ in range(TRIES):
            moved = item.model_copy(update={"position_m": _shifted(item, vary.box_position_m, rng)})
            if all(gap_m(scene_object(moved), o) >= APART_M for o in near):
                placed[i] = moved
                break
        else:
            return f"no place for {item.name}"
    standing = [scene_object(o) for o in placed if o.role != "part"]
    for i, item in enumerate(placed):
        if item.role != "part":
            continue
        support = scene_object(next(o for o in placed if o.name == item.rests_on))
        for _ in range(TRIES):
            yaw = item.rpy_deg[2] + rng.uniform(-vary.part_yaw_deg, vary.part_yaw_deg)
            moved = item.model_copy(
                update={
                    "position_m": _shifted(item, vary.part_position_m, rng),
                    "rpy_deg": (item.rpy_deg[0], item.rpy_deg[1], _rounded(yaw, 4)),
                }
            )
            if stands(scene_object(moved), support) and _is_apart(moved, standing, vary.part_gap_m):
                placed[i] = moved
                standing.append(scene_object(moved))
                break
        else:
            return f"no place for {item.name}"
    for i, item in enumerate(placed):
        friction = item.friction * (1.0 + rng.uniform(-vary.friction_share, vary.friction_share))
        update: dict[str, object] = {"friction": _rounded(friction, 6)}
        if item.mass_kg is not None:
            mass = item.mass_kg * (1.0 + rng.uniform(-vary.mass_share, vary.mass_share))
            update["mass_kg"] = _rounded(mass, 6)
        placed[i] = item.model_copy(update=update)
    drawn = scene.model_copy(update={"objects": tuple(placed), "variation": Variation()})
    return _chosen(drawn, lambda n: int(rng.integers(n)))


def _draw_start(
    scene: Scene, spread_deg: float, rng: np.random.Generator, arms: Arms
) -> Scene | None:
    """Draw joints to start at, near home and clear of everything; None if that does not succeed."""
    world = world_at_start(scene)
    for _ in range(TRIES):
        drawn = []
        for arm in scene.arms:
            offset = rng.uniform(-spread_deg, spread_deg, len(arm.home_deg))
            start = tuple(_rounded(h + o, 4) for h, o in zip(arm.home_deg, offset, strict=True))
            drawn.append(arm.model_copy(update={"start_deg": start}))
        started = scene.model_copy(update={"arms": tuple(drawn)})
        if _start_trouble(arms, start_q_rad(started), world) is None:
            return started
    return None


def _chosen(scene: Scene, pick: Callable[[int], int]) -> Scene:
    """Choose one part for every step, never the same for two steps of a task."""
    tasks = {}
    for name, task in scene.tasks.items():
        taken: list[str] = []
        steps = []
        for step in task.steps:
            free = [part for part in step.parts if part not in taken] or list(step.parts)
            taken.append(free[pick(len(free))])
            steps.append(step.model_copy(update={"parts": (taken[-1],)}))
        tasks[name] = task.model_copy(update={"steps": tuple(steps)})
    return scene.model_copy(update={"tasks": tasks})


def _shifted(item: Object, by_m: float, rng: np.random.Generator) -> Vec3:
    x, y, z = item.position_m
    dx, dy = rng.uniform(-by_m, by_m, 2)
    return _rounded(x + dx, 6), _rounded(y + dy, 6), z


def _rounded(value: float, digits: int) -> float:
    return round(float(value), digits) + 0.0


def _is_apart(item: Object, others: list[SceneObject], part_gap_m: float) -> bool:
    """Whether a part keeps clear of everything but its support, and of parts by more."""
    mine = scene_object(item)
    return all(
        gap_m(mine, o) >= (part_gap_m if o.role == "part" else APART_M)
        for o in others
        if o.name != item.rests_on
    )


# ---------------------------------------------------------------- what cannot work


def _trouble(scene: Scene, arms: Arms) -> str | None:
    """Say what makes a scene unusable, None if nothing does."""
    world = world_at_start(scene)
    for item in scene.objects:
        if item.role != "part":
            continue
        if not stands(scene_object(item), scene_object(scene.object(str(item.rests_on)))):
            return f"objects.{item.name}: does not stand on {item.rests_on}"
        for other in world.objects:
            if other.name in (item.name, item.rests_on):
                continue
            apart = gap_m(scene_object(item), other)
            if apart < 0.0:
                return f"objects.{item.name}: overlaps {other.name}"
    near = _start_trouble(arms, start_q_rad(scene), world)
    if near is not None:
        return near
    for name, task in scene.tasks.items():
        for i, step in enumerate(task.steps):
            arm, body = arms[step.arm]
            if arm.model.gripper is None:
                return f"tasks.{name}.steps.{i}.arm: {step.arm} has no gripper"
            low_n, high_n = arm.model.gripper.force_min_n, arm.model.gripper.force_max_n
            if not low_n <= step.force_n <= high_n:
                return (
                    f"tasks.{name}.steps.{i}.force_n: {step.force_n:g} N, the gripper of "
                    f"{step.arm} allows {low_n:g} to {high_n:g} N"
                )
            for part in step.parts:
                one = pick_place(scene, step.model_copy(update={"parts": (part,)}))
                width = scene.object(part).grasp
                assert width is not None
                if width.width_m > arm.model.gripper.opening_max_m:
                    return (
                        f"objects.{part}.grasp.width_m: {width.width_m} m is wider than "
                        f"{arm.model.gripper.name} opens ({arm.model.gripper.opening_max_m} m)"
                    )
                why = _out_of_reach(scene, arm, body, world, one)
                if why is not None:
                    return f"tasks.{name}.steps.{i}: {why}"
    return None


def _start_trouble(arms: Arms, starts: tuple[Array, ...], world: World) -> str | None:
    """Say what is too near to an arm at the start joints."""
    bodies = [body for _, body in arms.values()]
    for i, body in enumerate(bodies):
        others = [(b, q) for k, (b, q) in enumerate(zip(bodies, starts, strict=True)) if k != i]
        found = arm_clearance(body, obstacles(world, others), starts[i])
        if not found.distance_m >= START_MARGIN_M:
            return (
                f"arms.{body.name}: starts in collision or too near to one: {found.sentence()}, "
                f"at least {1000 * START_MARGIN_M:.0f} mm are needed"
            )
    return None


def _out_of_reach(
    scene: Scene, arm: CellArm, body: Body, world: World, step: PickPlace
) -> str | None:
    """Say what an arm cannot reach of a step from above, None if it can do it all."""
    T_world_part = world.object(step.name).T_world_object
    for T_object_tool in step.T_object_tool:
        pose = T_world_part @ T_object_tool
        if not _straight_down(scene, arm, body, world, pose, step.clear_m, (FINGERS, step.name)):
            continue
        held = Held(arm=arm.name, name=step.name, T_tool_object=invert(T_object_tool))
        carrying = place(
            arm.model,
            arm.T_world_base,
            held_spheres(world.object(step.name), held, arm.model),
            arm.name,
        )
        rest = make_world(tuple(o for o in world.objects if o.name != step.name))
        for T_world_place in step.T_world_place:
            put = T_world_place @ T_object_tool
            contact = (HELD, step.support)
            if _straight_down(scene, arm, carrying, rest, put, step.clear_m, contact):
                return None
        return f"place_m: {arm.name} cannot put {step.name} down there from above"
    x, y, z = T_world_part[:3, 3]
    return (
        f"{step.name} at ({x:.3f}, {y:.3f}, {z:.3f}) m is out of reach of {arm.name}, or it cannot "
        f"be taken from above without touching something"
    )


def _straight_down(
    scene: Scene,
    arm: CellArm,
    body: Body,
    world: World,
    T_world_tool: Array,
    clear_m: float,
    contact: tuple[str, str],
) -> bool:
    """Whether an arm can come to a tool pose from straight above it."""
    low, high = soft_range(profile(scene.limits), arm.model.limits)
    near = obstacles(allowing(world, contact))
    above = T_world_tool.copy()
    above[2, 3] += clear_m
    found = within_limits(solve(arm.model, invert(arm.T_world_base) @ above), low, high)
    turns = np.abs(found.q_rad - arm.home_q_rad).max(axis=1)
    for k in np.argsort(turns, kind="stable"):
        if turns[k] > math.pi:
            break
        q = found.q_rad[k]
        if arm_clearance(body, near, q).distance_m < START_MARGIN_M:
            continue
        way = cartesian_path(body, near, q, T_world_tool, (low, high), CLOSE_MARGIN_M)
        if not isinstance(way, NotStraight):
            return True
    return False
