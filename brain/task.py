"""From a goal to a stream.

Sub-tasks planned one after the other, each certified, timed and put together.

A pick and place is approach, grasp, lift, carry, place, retreat. What may be touched differs
between them: on the way nothing may, at the part the fingers may touch it, and a held part may
touch what it stands on. A goal that cannot be planned comes back as a sentence that says which
sub-task failed and why.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from brain.body import Body, held_spheres, place
from brain.cartesian import NotStraight, cartesian_path
from brain.cell import CellArm, CellModel
from brain.certify import certify
from brain.distance import Obstacles, arm_clearance, obstacles
from brain.geometry import Array, frozen, invert
from brain.ik import solve
from brain.kinematics import tool_pose
from brain.limits import LimitProfile, soft_range
from brain.planner import NoPlan, Plan, Planner, goal_wraps
from brain.rehearsal import GripEvent, Refused, Request, Stream
from brain.robot import GROUP_FINGER, GROUP_HELD, GROUPS
from brain.singular import NEAR, Mask, is_away, mask_of
from brain.trajectory import Trajectory, time_path, time_rows, tool_positions
from brain.world import Held, allowing, grasp, release

FREE_MARGIN_M = 0.010
"""Kept on the way through free space, at least; rounding corners may take half of it."""
FREE_MARGINS_M = (0.05, 0.025, FREE_MARGIN_M, FREE_MARGIN_M, FREE_MARGIN_M)
OWN_MARGINS_M = (FREE_MARGIN_M, FREE_MARGIN_M, FREE_MARGIN_M, 0.002, 0.002)
"""Kept from the arm itself then; at the end what it has at the start or the goal may do."""
ENOUGH_ATTEMPTS = 3
"""Margins that are tried, each with another seed; the last ones only while nothing was found."""
ROUNDING_M = 0.004
CLOSE_MARGIN_M = 0.0055
"""Kept on straight ways close to things."""
SLICE = 250
"""Iterations of the planner between two looks at whether it goes on."""
SLICES = 40
BETTER_SLICES = 4
"""Slices spent on a shorter way once there is one."""
PUT_ABOVE_M = 0.003
"""A part is let go this far above where it will stand: in a grip of rubber it may have crept."""
CLOSING_S = 0.35
"""Fingers are given this long beyond their travel to settle."""

FINGERS, HELD = GROUPS[GROUP_FINGER], GROUPS[GROUP_HELD]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PickPlace:
    """Move one object with one arm: `T_object_tool` are the grasps to choose from, (g, 4, 4).

    `T_world_place` are the poses to choose from, (p, 4, 4), where it is put down, on `support`;
    without any it is only picked up.
    `grip_opening_m` is what the fingers are closed to, less than the part is wide. `clear_m`:
    straight way up from both places.
    """

    arm: str
    name: str
    support: str
    T_object_tool: Array
    T_world_place: Array
    grip_opening_m: float
    grip_force_n: float
    clear_m: float


Task = tuple[PickPlace, ...]
"""Steps, one after the other."""


class _Failure(Exception):
    """A sub-task that cannot be planned; never leaves this module."""


def plan_goal(
    cell: CellModel,
    limits: LimitProfile,
    tasks: Mapping[str, Task],
    request: Request,
    seed: int,
    near_singular: float = NEAR,
) -> Stream | Refused:
    """Plan a goal from where the cell is; equal arguments give equal streams, bit for bit.

    Where there is a choice, arms keep their smallest singular value over `near_singular`.
    """
    goal = request.goal
    plan = _Plan(cell, limits, request, seed, near_singular)
    try:
        if goal.kind == "task":
            steps = tasks.get(str(goal.task))
            if steps is None:
                known = ", ".join(tasks) or "none"
                raise _Failure(f"no task {goal.task!r} in this scene; it has: {known}")
            for step in steps:
                plan.pick_place(step, go_home=step is not steps[-1])
        else:
            name = str(goal.arm)
            plan.go(name, plan.goals(name, goal.T_base_tool, goal.q_rad), f"move {name}")
        return plan.stream()
    except _Failure as failure:
        return Refused(reason=str(failure))


class _Plan:
    """A plan being made: where every arm would be by now, in which world, and the rows so far."""

    def __init__(
        self,
        cell: CellModel,
        limits: LimitProfile,
        request: Request,
        seed: int,
        near_singular: float,
    ) -> None:
        self._cell = cell
        self._near_singular = near_singular
        self._limits = limits.planning()
        self._seed = seed
        self._tick_s = cell.tick_ns * 1e-9
        self._world = request.world
        self._q = {arm.name: q for arm, q in zip(cell.arms, request.q_rad, strict=True)}
        self._opening = dict(zip((a.name for a in cell.arms), request.opening_m, strict=True))
        self._force = {arm.name: 0.0 for arm in cell.arms}
        self._rows: list[Array] = [self._joint_row()]
        self._openings: list[Array] = [self._per_arm(self._opening)]
        self._forces: list[Array] = [self._per_arm(self._force)]
        self._events: list[GripEvent] = []

    # ------------------------------------------------------------------------------ sub-tasks

    def pick_place(self, step: PickPlace, go_home: bool) -> None:
        """Pick an object up, unless the arm holds it already, and put it down."""
        held = self._world.held_by(step.arm)
        if held is not None and held.name != step.name:
            raise _Failure(f"{step.arm} holds {held.name}, not {step.name}")
        self._come_free(step.arm, step.clear_m)
        if held is None:
            self._pick(step)
        if len(step.T_world_place):
            self._put(step)
        if go_home:
            self.go(step.arm, self._arm(step.arm).home_q_rad[None], "go home")

    def _pick(self, step: PickPlace) -> None:
        arm = self._arm(step.arm)
        gripper = arm.model.gripper
        if gripper is None:
            raise _Failure(f"{step.arm} has no gripper")
        T_world_object = self._world.object(step.name).T_world_object
        self._grip(step.arm, gripper.opening_max_m, step.grip_force_n)
        grasps = [T_world_object @ T for T in step.T_object_tool]
        used = self._over(
            step.arm, grasps, step.clear_m, f"approach {step.name}", (FINGERS, step.name)
        )
        self._grip(step.arm, step.grip_opening_m, step.grip_force_n)
        held = Held(
            arm=step.arm, name=step.name, T_tool_object=frozen(invert(used) @ T_world_object)
        )
        self._hold(held)
        self._straight(
            step.arm,
            _raised(used, step.clear_m),
            f"lift {step.name}",
            *((HELD, o.name) for o in self._world.objects if o.role == "support"),
        )

    def _put(self, step: PickPlace) -> None:
        arm = self._arm(step.arm)
        held, gripper = self._world.held_by(step.arm), arm.model.gripper
        if held is None or gripper is None:
            raise _Failure(f"{step.arm} does not hold {step.name}")
        T_object_tool = invert(held.T_tool_object)
        places = [_raised(T, PUT_ABOVE_M) @ T_object_tool for T in step.T_world_place]
        used = self._over(
            step.arm, places, step.clear_m, f"place {step.name}", (HELD, step.support)
        )
        self._grip(step.arm, gripper.opening_max_m, step.grip_force_n)
        self._put_down(held, frozen(_raised(used @ held.T_tool_object, -PUT_ABOVE_M)))
        self._straight(
            step.arm, _raised(used, step.clear_m), f"retreat from {step.name}", (FINGERS, step.name)
        )

    def _over(
        self,
        name: str,
        poses: list[Array],
        clear_m: float,
        what: str,
        contact: tuple[str, str],
    ) -> Array:
        """Go above the best of some tool poses in the world, then straight down.

        Return the pose.
        """
        arm, body, near = self._arm(name), self._body(name), self._around(name, contact)
        above: list[Array] = []
        below: list[Array] = []
        ways: list[Array] = []
        why = "out of reach, or beyond the joint limits"
        for pose in poses:
            for q in self._branches(arm, _raised(pose, clear_m)):
                way = cartesian_path(body, near, q, pose, self._range(arm), CLOSE_MARGIN_M)
                if isinstance(way, NotStraight):
                    why = way.sentence
                else:
                    above.append(q)
                    below.append(pose)
                    ways.append(way.rows_rad)
        if not above:
            raise _Failure(f"{what}: {why}")
        pose = below[self.go(name, np.array(above), what, ways)]
        self._straight(name, pose, what, contact)
        return pose

    def goals(self, name: str, T_base_tool: Array | None, q_rad: Array | None) -> Array:
        """Joints (g, n) that an arm may go to for a goal; home when nothing else is given."""
        arm = self._arm(name)
        if q_rad is not None:
            return q_rad[None]
        if T_base_tool is None:
            return arm.home_q_rad[None]
        branches = self._branches(arm, arm.T_world_base @ T_base_tool)
        if len(branches) == 0:
            raise _Failure(f"the pose is out of reach of {name}, or beyond its joint limits")
        return branches

    def go(self, name: str, goals: Array, what: str, ways: Sequence[Array] = ()) -> int:
        """Move one arm through free space to the best of some joints (g, n); return which.

        `ways` are the rows (k, n) that follow from each. Joints that are away from singular poses,
        there and on what follows, are preferred to all others that can be reached.
        """
        mask, every = self._mask(name), list(range(len(goals)))
        away = [g for g in every if is_away(mask, ways[g] if ways else goals[g : g + 1])]
        best: tuple[Trajectory, int] | str = "there is no goal"
        for choice in (away, every) if 0 < len(away) < len(every) else (every,):
            best = self._best(name, goals[choice])
            if not isinstance(best, str):
                self._append(name, best[0])
                return choice[best[1]]
        raise _Failure(f"{what}: {best}")

    def _best(self, name: str, goals: Array) -> tuple[Trajectory, int] | str:
        """Return the way to some joints (g, n) that takes the least time, or why there is none.

        Several ways are tried, generous ones first: what keeps away from things may go faster.
        """
        body, near = self._body(name), self._around(name, *self._world.contacts)
        best: tuple[Trajectory, int] | None = None
        why = ""
        for attempt, margins_m in enumerate(zip(FREE_MARGINS_M, OWN_MARGINS_M, strict=True)):
            if best is not None and attempt >= ENOUGH_ATTEMPTS:
                break
            found = self._way(name, goals, margins_m, self._seed + attempt)
            if isinstance(found, NoPlan):
                why = found.sentence
                continue
            timed = time_path(found.path_rad, body, self._limits, self._tick_s, near, ROUNDING_M)
            trouble = self._trouble(name, timed)
            if trouble is not None:
                why = trouble
            elif best is None or timed.duration_s < best[0].duration_s:
                best = timed, found.goal
        return why if best is None else best

    def _way(
        self, name: str, goals: Array, margins_m: tuple[float, float], seed: int
    ) -> Plan | NoPlan:
        arm = self._arm(name)
        planner = Planner(
            self._body(name),
            self._around(name),
            self._q[name],
            goals,
            self._range(arm),
            seed=seed,
            margin_m=margins_m[0],
            self_margin_m=margins_m[1],
            mask=self._mask(name),
        )
        better = 0
        for _ in range(SLICES):
            done = planner.advance(SLICE)
            better += not isinstance(planner.result(), NoPlan)
            if done or better > BETTER_SLICES:
                break
        return planner.result()

    def _trouble(self, name: str, timed: Trajectory) -> str | None:
        """Say what is wrong with timed rows: rounded corners too close, or the tool outside."""
        arm, body = self._arm(name), self._body(name)
        found = certify(body, self._around(name), timed.q_rad, enough_m=CLOSE_MARGIN_M)
        if not found.certified_m >= CLOSE_MARGIN_M:
            return found.nearest.sentence()
        tool_m = tool_positions(body, timed.q_rad)
        low, high = self._cell.workspace_m
        outside_m = float(np.max(np.maximum(low - tool_m, tool_m - high)))
        if outside_m > 0.0:
            return f"the tool of {arm.name} would leave the workspace by {100 * outside_m:.1f} cm"
        return None

    def _straight(
        self, name: str, T_world_tool: Array, what: str, *contacts: tuple[str, str]
    ) -> None:
        arm, body = self._arm(name), self._body(name)
        near = self._around(name, *contacts)
        way = cartesian_path(
            body, near, self._q[name], T_world_tool, self._range(arm), CLOSE_MARGIN_M
        )
        if isinstance(way, NotStraight):
            raise _Failure(f"{what}: {way.sentence}")
        near = self._around(name, *self._world.contacts)
        self._append(name, time_rows(way.rows_rad, body, self._limits, self._tick_s, near))

    def _come_free(self, name: str, clear_m: float) -> None:
        """Leave a place that is too close for free motion, straight up."""
        found = arm_clearance(self._body(name), self._around(name), self._q[name])
        if found.distance_m >= FREE_MARGIN_M + 0.002:
            return
        up = _raised(self._tool(name), clear_m)
        self._straight(name, up, f"leave {found.against}", *self._world.contacts)

    # ------------------------------------------------------------------------------- gripping

    def _grip(self, name: str, opening_m: float, force_n: float) -> None:
        """Hold all arms still while the fingers go to an opening."""
        gripper = self._arm(name).model.gripper
        if gripper is None:
            raise _Failure(f"{name} has no gripper")
        travel_s = abs(opening_m - self._opening[name]) / gripper.speed_max_m_s
        if travel_s == 0.0:
            return
        self._opening[name], self._force[name] = opening_m, force_n
        rows = round((travel_s + CLOSING_S) / self._tick_s)
        self._rows += [self._rows[-1]] * rows
        self._openings += [self._per_arm(self._opening)] * rows
        self._forces += [self._per_arm(self._force)] * rows

    def _hold(self, held: Held) -> None:
        self._world = grasp(self._world, held)
        self._event(held, held.T_tool_object, None)

    def _put_down(self, held: Held, T_world_object: Array) -> None:
        self._world = release(self._world, held.arm, T_world_object)
        self._event(held, None, T_world_object)

    def _event(self, held: Held, T_tool_object: Array | None, T_world_object: Array | None) -> None:
        event = GripEvent(
            row=len(self._rows) - 1,
            arm=held.arm,
            name=held.name,
            T_tool_object=T_tool_object,
            T_world_object=T_world_object,
        )
        self._events.append(event)

    # ----------------------------------------------------------------------------------- rows

    def stream(self) -> Stream:
        """Return all rows so far."""
        return Stream(
            q_rad=frozen(self._rows),
            opening_m=frozen(self._openings),
            grip_force_n=frozen(self._forces),
            events=tuple(self._events),
        )

    def _append(self, name: str, timed: Trajectory) -> None:
        column = 0
        for arm in self._cell.arms:
            if arm.name == name:
                break
            column += arm.model.dof
        for q in timed.q_rad[1:]:
            row = self._rows[-1].copy()
            row[column : column + len(q)] = q
            self._rows.append(row)
        new = len(timed.q_rad) - 1
        self._openings += [self._openings[-1]] * new
        self._forces += [self._forces[-1]] * new
        self._q[name] = timed.q_rad[-1]

    def _joint_row(self) -> Array:
        return np.concatenate([self._q[arm.name] for arm in self._cell.arms])

    def _per_arm(self, values: Mapping[str, float]) -> Array:
        return np.array([values[arm.name] for arm in self._cell.arms])

    # ----------------------------------------------------------------------------- what is where

    def _arm(self, name: str) -> CellArm:
        return self._cell.arms[self._cell.arm_index(name)]

    def _mask(self, name: str) -> Mask:
        return mask_of(self._arm(name).model, self._near_singular)

    def _range(self, arm: CellArm) -> tuple[Array, Array]:
        return soft_range(self._limits, arm.model.limits)

    def _body(self, name: str) -> Body:
        arm, held = self._arm(name), self._world.held_by(name)
        spheres = None
        if held is not None:
            spheres = held_spheres(self._world.object(held.name), held, arm.model)
        return place(arm.model, arm.T_world_base, spheres, name)

    def _around(self, name: str, *contacts: tuple[str, str]) -> Obstacles:
        """What an arm must keep clear of when only these contacts are allowed."""
        others = [(self._body(a.name), self._q[a.name]) for a in self._cell.arms if a.name != name]
        return obstacles(allowing(self._world, *contacts), others)

    def _tool(self, name: str) -> Array:
        arm = self._arm(name)
        return arm.T_world_base @ tool_pose(arm.model, self._q[name])

    def _branches(self, arm: CellArm, T_world_tool: Array) -> Array:
        """All joints (g, n) for a tool pose, whole turns included, inside the soft range."""
        T_base_tool = invert(arm.T_world_base) @ T_world_tool
        found = solve(arm.model, T_base_tool, self._q[arm.name])
        return goal_wraps(found.q_rad, self._q[arm.name], self._range(arm))


def _raised(T_world_tool: Array, by_m: float) -> Array:
    out = T_world_tool.copy()
    out[2, 3] += by_m
    return out
