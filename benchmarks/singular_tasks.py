"""Random pick tasks: drawn, judged by what shares nothing with the planner, and checked row by row.

A part is held out somewhere round the arm, as from a hook, boxes stand about, and it is to be taken
from a given side. Reach is judged by EAIK, touch by MuJoCo's own geoms and distances.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace

import mujoco
import numpy as np

from benchmarks.ik import Branches, eaik_solver
from brain.body import place
from brain.cartesian import NotStraight, cartesian_path
from brain.distance import arm_clearance, obstacles
from brain.geometry import Array, frozen, invert, quat_from_matrix, rotation_angle, transform
from brain.limits import LimitProfile, joint_speed, soft_range
from brain.rehearsal import Refused, Request, Stream
from brain.singular import singular_table
from brain.task import CLOSE_MARGIN_M, PickPlace, plan_goal
from brain.types import Goal
from brain.world import World, allowing, move_object
from hardware.scene import resolved_from
from hardware.scene_file import Scene
from hardware.shapes import rotation_deg
from hardware.strict import check
from sim.build import Brief, brief_of
from sim.clearance import LOOK_M, ClearanceMeter
from sim.scene import SceneModel, build_model

ARM, PART, BENCH, BOXES = "arm", "part", "bench", ("box_a", "box_b")
PART_M, BOX_M = (0.034, 0.016, 0.03), (0.16, 0.12, 0.8)
CLEAR_M = 0.10
GRIP_UP_M = 0.008
TILT_MOST_DEG = 45.0
ROOM_M = 0.02
"""Hand and arm have at least this much room at the part and above it, else the task counts as one
in collision."""
START_M = 0.03
WAY_STEPS = 20
STRETCH_M = 0.005
SPARE = 0.9
EXACT = 1e-5
OUT_OF_REACH, IN_COLLISION = "out of reach", "in collision"
NOT_STRAIGHT = "no branch leads straight there with joints that are fast enough"
TOO_SLOW = "a joint is too slow for the straight way"
RAISE = np.outer((0.0, 0.0, CLEAR_M, 0.0), (0.0, 0.0, 0.0, 1.0))
REASONS = (OUT_OF_REACH, IN_COLLISION, NOT_STRAIGHT)
HINGE = mujoco.mjtJoint.mjJNT_HINGE
SPEED_M_S = 0.05
"""How fast the tool shall be able to go on the straight ways."""
LINE_M, TURN_RAD = 1e-3, 5e-3
LOOK_ROWS = 10
TOUCH = frozenset({("fingers", PART)})


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Pick:
    """One task: the world with the part, the joints (6,) to start from, how to take it."""

    world: World
    start_rad: Array
    step: PickPlace

    @property
    def T_world_tool(self) -> Array:
        """Poses (g, 4, 4) at which the part may be gripped."""
        T_world_part = self.world.object(PART).T_world_object
        return np.array([T_world_part @ T for T in self.step.T_object_tool])


def _cell() -> Scene:
    def box(name: str, size_m: tuple[float, float, float], **more: object) -> dict[str, object]:
        shape = {"shape": "box", "size_m": list(size_m)}
        return {"name": name, "role": "fixed", "shapes": [shape], **more}

    grasp = {"closing_deg": [0.0], "width_m": PART_M[0]}
    part = {"role": "part", "mass_kg": 0.1, "rests_on": BENCH, "grasp": grasp}
    data = {
        "cell": "random_picks",
        "tick_ms": 2,
        "workspace": {"min_m": [-1.5, -1.5, -0.5], "max_m": [1.5, 1.5, 2.0]},
        "view": {"look_at_m": [0, 0, 0.4], "distance_m": 2, "azimuth_deg": 90, "elevation_deg": 0},
        "arms": [
            {
                "name": ARM,
                "robot": "ur5e",
                "tools": ["hand_e"],
                "position_m": [0, 0, 0],
                "home_deg": [0, -90, 90, -90, -90, 0],
            }
        ],
        "objects": [
            box(BENCH, (2.4, 2.4, 0.04), role="support", position_m=[0, 0, -0.02]),
            *(box(name, BOX_M) for name in BOXES),
            box(PART, PART_M, **part),
        ],
    }
    return check(data, Scene, "random picks")


class Picks:
    """A cell in which picks are drawn, judged, planned and checked."""

    def __init__(self) -> None:
        """Build the cell.

        Raises:
            ValueError: EAIK, which says what is in reach, is not installed.
        """
        resolved = resolved_from(_cell(), 0)
        self.brief: Brief = brief_of(resolved)
        self._scene = build_model(resolved)
        self._scene.model.opt.enableflags = 0  # nothing sleeps: poses are set by hand
        self._data = mujoco.MjData(self._scene.model)
        self._meter = ClearanceMeter(self._scene, TOUCH)
        self._own_pairs = _own_pairs(self._scene)
        self._arm = self.brief.cell.arms[0]
        self._body = place(self._arm.model, self._arm.T_world_base, name=ARM)
        singular_table(self._arm.model)  # made here, not in the first plan
        solver = eaik_solver(self._arm.model)
        if solver is None:
            raise ValueError("the pick tasks need EAIK, which says what is in reach")
        self._branches: Branches = solver[1]

    # ------------------------------------------------------------------------------- drawing

    def draw(self, rng: np.random.Generator) -> Pick:
        """Draw a task, feasible or not."""
        angle, radius_m = rng.uniform(-math.pi, math.pi), rng.uniform(0.25, 0.85)
        x, y = radius_m * math.cos(angle), radius_m * math.sin(angle)
        height_m = rng.uniform(0.08, 0.6)
        yaw_deg, tilt_deg = rng.uniform(-180.0, 180.0), rng.uniform(-TILT_MOST_DEG, TILT_MOST_DEG)
        turn = rotation_deg((0.0, 0.0, yaw_deg))
        world = self.brief.world
        places = {PART: (x, y, height_m)}
        for name in BOXES:
            a, r = rng.uniform(-math.pi, math.pi), rng.uniform(0.35, 0.9)
            places[name] = (r * math.cos(a), r * math.sin(a), rng.uniform(0.1, 0.4))
        for name, (u, v, top_m) in places.items():
            down_m = 0.0 if name == PART else BOX_M[2] / 2
            world = move_object(world, name, transform((u, v, top_m - down_m), turn))
        tilted = rotation_deg((180.0 + tilt_deg, 0.0, 0.0))
        grasps = [
            transform((0.0, 0.0, GRIP_UP_M), tilted @ rotation_deg(flip))
            for flip in ((0.0, 0.0, 0.0), (0.0, 0.0, 180.0))
        ]
        step = PickPlace(
            arm=ARM,
            name=PART,
            support=BENCH,
            T_object_tool=frozen(grasps),
            T_world_place=frozen(np.zeros((0, 4, 4))),
            grip_opening_m=PART_M[0] - 0.006,
            grip_force_n=60.0,
            clear_m=CLEAR_M,
        )
        pick = Pick(world=world, start_rad=np.zeros(6), step=step)
        return replace(pick, start_rad=self._draw_start(pick, rng))

    def _draw_start(self, pick: Pick, rng: np.random.Generator) -> Array:
        """Joints (6,) within half a turn that keep clear of everything, the arm itself too."""
        self._show(pick)
        near = obstacles(pick.world)
        while True:
            q = rng.uniform(-math.pi, math.pi, 6)
            if self._room_m(q) < START_M:
                continue
            if arm_clearance(self._body, near, q).distance_m >= START_M:
                return q

    def infeasible(self, pick: Pick) -> str | None:
        """Say why nobody could do a task, without asking the planner or its kernels."""
        self._show(pick)
        why = [self._undoable(T_world_tool) for T_world_tool in pick.T_world_tool]
        return None if None in why else max(filter(None, why), key=REASONS.index)

    def _undoable(self, T_world_tool: Array) -> str | None:
        """Follow every branch of EAIK from above the part down to it, in steps of 5 mm."""
        steps = []
        for along in np.linspace(CLEAR_M, 0.0, WAY_STEPS + 1):
            T_tool = T_world_tool.copy()
            T_tool[2, 3] += along
            T = invert(self._arm.T_world_base) @ T_tool @ invert(self._arm.model.T_flange_tool)
            steps.append([q for q in self._branches(T) if self._off(q, T_tool) < EXACT])
            if not steps[-1]:
                return OUT_OF_REACH
        speed_rad_s = SPARE * self.brief.limits.joint_speed_rad_s
        slowest = speed_rad_s * CLEAR_M / WAY_STEPS / SPEED_M_S
        best = IN_COLLISION
        for first in steps[0]:
            way = [first]
            for branches in steps[1:]:
                way.append(min(branches, key=lambda q: turned(q, way[-1])))
            if min(self._room_m(q) for q in way) < ROOM_M:
                continue
            best = NOT_STRAIGHT
            if all(turned(a, b) <= slowest for a, b in zip(way[:-1], way[1:], strict=True)):
                return None
        return best

    # ------------------------------------------------------------------------------- planning

    def plan(self, pick: Pick, seed: int, near_singular: float) -> Stream | Refused:
        """Plan a task as the cell does, from closed fingers."""
        return self._plan(pick, Goal(kind="task", task="pick"), seed, near_singular)

    def reach(self, pick: Pick, seed: int, near_singular: float) -> str:
        """Plan only to the pose above the part; say why the tool cannot go straight from there."""
        self._show(pick)
        T_world_tool = next(T for T in pick.T_world_tool if self._undoable(T) is None)
        T_base_tool = invert(self._arm.T_world_base) @ (T_world_tool + RAISE)
        goal = Goal(kind="pose", arm=ARM, T_base_tool=frozen(T_base_tool))
        stream = self._plan(pick, goal, seed, near_singular)
        if isinstance(stream, Refused):
            return "not planned: " + re.sub(r"[-\d.]+", "#", stream.reason)
        near = obstacles(allowing(pick.world, ("fingers", PART)))
        allowed = soft_range(self.brief.limits.planning(), self._arm.model.limits)
        q = stream.q_rad[-1]
        way = cartesian_path(self._body, near, q, T_world_tool, allowed, CLOSE_MARGIN_M)
        if isinstance(way, NotStraight):
            return f"no straight way from there: {way.reason}"
        T_rows = np.array([self._tool(row) for row in way.rows_rad])
        needed_rad_s = SPEED_M_S * steepest(way.rows_rad, T_rows)
        return "" if needed_rad_s <= self.brief.limits.joint_speed_rad_s else TOO_SLOW

    def _plan(self, pick: Pick, goal: Goal, seed: int, near_singular: float) -> Stream | Refused:
        request = Request(
            number=0,
            t_ns=0,
            goal=goal,
            world=pick.world,
            q_rad=(pick.start_rad,),
            measured_rad=(pick.start_rad,),
            opening_m=(0.0,),
        )
        brief, tasks = self.brief, {"pick": (pick.step,)}
        return plan_goal(brief.cell, brief.limits, tasks, request, seed, near_singular)

    def verdict(self, pick: Pick, stream: Stream | Refused) -> tuple[str, float]:
        """Say what is wrong with an answer, "" if nothing; and how fast a joint has to be.

        Rad/s at most, for the tool at `SPEED_M_S` on the straight ways; NaN without them.
        """
        if isinstance(stream, Refused):
            return "not planned: " + re.sub(r"[-\d.]+", "#", stream.reason), math.nan
        if not np.array_equal(stream.q_rad[0], pick.start_rad):
            return "starts elsewhere", math.nan
        over = self._over_limits(stream.q_rad, self.brief.limits)
        if over is not None:
            return over, math.nan
        if len(stream.events) != 1 or stream.events[0].T_tool_object is None:
            return "the part is not gripped once", math.nan
        self._show(pick)
        event = stream.events[0]
        T_rows = np.array([self._tool(q) for q in stream.q_rad])
        touched = self._touches(stream, event.row, event.T_tool_object)
        if touched is not None:
            return touched, math.nan
        off = [self._off(stream.q_rad[event.row], T) for T in pick.T_world_tool]
        if min(off) > LINE_M:
            return "does not grip where it should", math.nan
        wanted = pick.T_world_tool[int(np.argmin(off))]
        down = self._straight(T_rows[: event.row + 1][::-1], wanted)
        up = self._straight(T_rows[event.row :], wanted)
        if down is None or up is None:
            return "not straight down and up again", math.nan
        if self._off(stream.q_rad[-1], wanted + RAISE) > LINE_M:
            return "does not end where it should", math.nan
        ways = stream.q_rad[event.row - down : event.row + 1], stream.q_rad[event.row :]
        tools = T_rows[event.row - down : event.row + 1], T_rows[event.row :]
        rate = max(steepest(q, T) for q, T in zip(ways, tools, strict=True))
        needed = SPEED_M_S * rate
        if needed > self.brief.limits.joint_speed_rad_s:
            return TOO_SLOW, needed
        return "", needed

    def _over_limits(self, rows: Array, limits: LimitProfile) -> str | None:
        joints, tick_s = self._arm.model.limits, self.brief.cell.tick_ns * 1e-9
        if not np.isfinite(rows).all():
            return "not finite"
        if (rows < joints.q_min_rad).any() or (rows > joints.q_max_rad).any():
            return "a joint leaves its range"
        speed = np.abs(np.diff(rows, axis=0)) / tick_s
        return None if (speed <= joint_speed(limits, joints)).all() else "a joint is too fast"

    def _straight(self, T_rows: Array, T_from: Array) -> int | None:
        """Rows until the tool is all the way up, None if it leaves the line or turns before."""
        for i, T in enumerate(T_rows):
            way = T[:3, 3] - T_from[:3, 3]
            if np.linalg.norm(way[:2]) > LINE_M or turn_of(T, T_from) > TURN_RAD:
                return None
            if way[2] >= CLEAR_M - 1e-4:
                return i
        return None

    def _touches(self, stream: Stream, gripped: int, T_tool_part: Array) -> str | None:
        rows = {*range(0, stream.rows, LOOK_ROWS), gripped, stream.rows - 1}
        for row in sorted(rows):
            held = {}
            self._set(stream.q_rad[row])
            if row > gripped:
                held = {ARM: PART}
                self._put(self._tool_pose() @ T_tool_part)
                self._set(stream.q_rad[row])
            found = self._meter.measure(self._data, held, 0.0)
            if found is not None:
                return f"{found.link} touches {found.against}"
        return None

    # ------------------------------------------------------------------------------- MuJoCo

    def _show(self, pick: Pick) -> None:
        """Put boxes and part of MuJoCo's model where the task has them."""
        model = self._scene.model
        for name in BOXES:
            T, body = pick.world.object(name).T_world_object, model.body(name).id
            model.body_pos[body], model.body_quat[body] = T[:3, 3], quat_from_matrix(T[:3, :3])
        self._data.qpos[:] = self._scene.qpos_start
        self._put(pick.world.object(PART).T_world_object)

    def _put(self, T_world_part: Array) -> None:
        at = self._scene.part_qpos[PART]
        self._data.qpos[at : at + 3] = T_world_part[:3, 3]
        self._data.qpos[at + 3 : at + 7] = quat_from_matrix(T_world_part[:3, :3])

    def _set(self, q_rad: Array) -> None:
        self._data.qpos[self._scene.arms[0].qpos] = q_rad
        mujoco.mj_kinematics(self._scene.model, self._data)

    def _tool_pose(self) -> Array:
        site = self._scene.arms[0].tool_site
        return transform(self._data.site_xpos[site], self._data.site_xmat[site].reshape(3, 3))

    def _tool(self, q_rad: Array) -> Array:
        self._set(q_rad)
        return self._tool_pose()

    def _off(self, q_rad: Array, T_world_tool: Array) -> float:
        """How far the tool is from a pose at q (6,), the larger of m and rad."""
        T = self._tool(q_rad)
        way_m = float(np.linalg.norm(T[:3, 3] - T_world_tool[:3, 3]))
        return max(way_m, turn_of(T, T_world_tool))

    def _room_m(self, q_rad: Array) -> float:
        """Distance in m of hand and arm to everything, the arm itself too, at most `LOOK_M`."""
        self._set(q_rad)
        model, data, room_m = self._scene.model, self._data, LOOK_M
        found = self._meter.measure(data, {}, room_m)
        room_m = room_m if found is None else found.distance_m
        for a, b in self._own_pairs:
            room_m = min(room_m, mujoco.mj_geomDistance(model, data, a, b, room_m, None))
        return room_m


def _own_pairs(scene: SceneModel) -> list[tuple[int, int]]:
    """Geoms of the arm with at least three joints between them."""
    model = scene.model
    joints = [0] * model.nbody
    for body in range(1, model.nbody):
        hinges = model.body_jntnum[body] and model.jnt_type[model.body_jntadr[body]] == HINGE
        joints[body] = joints[model.body_parentid[body]] + int(hinges)
    own = [i for i in range(model.ngeom) if scene.geom_owner[i] == ARM]
    level = {i: joints[model.geom_bodyid[i]] for i in own}
    return [(a, b) for a in own for b in own if level[b] >= level[a] + 3]


def turned(a: Array, b: Array) -> float:
    """Largest difference of a joint in rad, full turns aside."""
    return float(np.abs((a - b + math.pi) % (2.0 * math.pi) - math.pi).max())


def turn_of(a: Array, b: Array) -> float:
    """Angle in rad between two poses."""
    return float(rotation_angle(a, b))


def steepest(q_rad: Array, T_rows: Array) -> float:
    """Largest turn of a joint per metre of the tool, rad/m, over stretches of 5 mm."""
    most, last = 0.0, 0
    for i in range(1, len(q_rad)):
        way_m = float(np.linalg.norm(T_rows[i, :3, 3] - T_rows[last, :3, 3]))
        if way_m >= STRETCH_M:
            most = max(most, float(np.max(np.abs(q_rad[i] - q_rad[last]))) / way_m)
            last = i
    return most
