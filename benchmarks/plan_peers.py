"""Peers for planning: OMPL and, where it is installed, VAMP.

OMPL plans in the same joint range, with the same spheres and shapes, no margin. Its motion
validator is one Python call per edge that runs in our kernel `free` at 32 configurations per
radian: an edge so checked may still touch between samples, which ours may not. So OMPL pays for
Python once per edge, not once per configuration.

The calls to VAMP follow its documentation; its build needs a network that our machines lack, so
they have not been run here.
"""

from __future__ import annotations

import math
import time
from importlib.util import find_spec
from typing import Any

import numpy as np

from brain.body import Body, BodyArrays, Work, work
from brain.distance import ObstacleArrays, Obstacles, free
from brain.geometry import Array
from brain.jit import lean_kernel

PER_RAD = 32.0


@lean_kernel
def edge_free(
    body: BodyArrays, near: ObstacleArrays, at: Work, a: Array, b: Array, q: Array, per_rad: float
) -> bool:
    """Whether samples along an edge keep out of everything, its end first."""
    length = 0.0
    for k in range(q.shape[0]):
        length += (b[k] - a[k]) ** 2
    steps = max(1, int(math.ceil(math.sqrt(length) * per_rad)))
    for i in range(steps, -1, -1):
        for k in range(q.shape[0]):
            q[k] = a[k] + (b[k] - a[k]) * i / steps
        if not free(body, near, q, at, 0.0, 0.0):
            return False
    return True


class Ompl:
    """OMPL's planners on one arm among some obstacles."""

    def __init__(self, body: Body, near: Obstacles, q_range_rad: tuple[Array, Array]) -> None:
        """Set the space up; not timed."""
        from ompl import base, util

        util.setLogLevel(util.LogLevel.LOG_NONE)
        n = body.model.dof
        space = base.RealVectorStateSpace(n)
        bounds = base.RealVectorBounds(n)
        for k in range(n):
            bounds.setLow(k, float(q_range_rad[0][k]))
            bounds.setHigh(k, float(q_range_rad[1][k]))
        space.setBounds(bounds)
        at, (a, b, q) = work(body), np.zeros((3, n))

        class Motions(base.MotionValidator):  # type: ignore[misc]
            def checkMotion(self, one: Any, other: Any) -> bool:
                for k in range(n):
                    a[k], b[k] = one[k], other[k]
                return edge_free(body.arrays, near.arrays, at, a, b, q, PER_RAD)

        def valid(state: Any) -> bool:
            for k in range(n):
                q[k] = state[k]
            return free(body.arrays, near.arrays, q, at, 0.0, 0.0)

        self._base, self._space, self._n = base, space, n
        self._info = base.SpaceInformation(space)
        self._motions = Motions(self._info)
        self._info.setMotionValidator(self._motions)
        self._info.setStateValidityChecker(valid)
        self._info.setup()

    def _state(self, q_rad: Array) -> Any:
        state = self._space.allocState()
        for k in range(self._n):
            state[k] = float(q_rad[k])
        return state

    def solve(
        self, planner: str, start_rad: Array, goal_rad: Array, most_s: float
    ) -> tuple[float, Array | None]:
        """Answer how long `solve` took in s, and the path (k, n), None if there is none."""
        from ompl import geometric

        definition = self._base.ProblemDefinition(self._info)
        definition.setStartAndGoalStates(self._state(start_rad), self._state(goal_rad))
        if planner == "AORRTC":
            objective = self._base.PathLengthOptimizationObjective(self._info)
            definition.setOptimizationObjective(objective)
        chosen = getattr(geometric, planner)(self._info)
        chosen.setProblemDefinition(definition)
        chosen.setup()
        begin = time.perf_counter()
        status = chosen.solve(most_s)
        took_s = time.perf_counter() - begin
        if str(status) != "Exact solution":
            return took_s, None
        found = definition.getSolutionPath()
        path = np.array(
            [[found.getState(i)[k] for k in range(self._n)] for i in range(found.getStateCount())]
        )
        # OMPL 2.0.1's AORRTC has returned [goal, goal] as exact.
        if not (np.allclose(path[0], start_rad) and np.allclose(path[-1], goal_rad)):
            return took_s, None
        return took_s, path


def has_ompl() -> bool:
    """Whether OMPL is installed."""
    return find_spec("ompl") is not None


def vamp_seconds(boxes: list[tuple[Array, Array, Array]], a: Array, b: Array) -> float | None:
    """Time in s of VAMP's RRTConnect by its own clock on upright boxes; None without it.

    `boxes`: centre, Euler angles x y z and half lengths of each.
    """
    if find_spec("vamp") is None:
        return None
    import vamp

    module, planner, settings, _ = vamp.configure_robot_and_planner_with_kwargs("ur5", "rrtc")
    around = vamp.Environment()
    for centre, euler, half in boxes:
        around.add_cuboid(vamp.Cuboid(list(centre), list(euler), list(half)))
    found = planner(list(a), list(b), around, settings, module.halton())
    return found.nanoseconds / 1e9 if found.solved else None
