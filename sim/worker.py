"""Planning and rehearsing on request.

At once inside the cycle's thread, to be answered after a declared time.
"""

from __future__ import annotations

from collections.abc import Mapping

from brain.cell import CellModel
from brain.limits import LimitProfile
from brain.rehearsal import Finished, Refused, Request
from brain.swept import swept
from brain.task import Task, plan_goal
from brain.types import NS_PER_MS
from hardware.scene import ResolvedScene
from hardware.spine import Commands
from sim.rehearser import TwinRehearser
from sim.twin import Twin

LATENCY_NS = 2000 * NS_PER_MS
"""What planning and rehearsing is declared to take in lockstep, where it takes no time."""


class Desk:
    """Plans a goal and rehearses what it planned, on one twin."""

    def __init__(
        self,
        cell: CellModel,
        limits: LimitProfile,
        tasks: Mapping[str, Task],
        twin: Twin,
        seed: int,
    ) -> None:
        """Prepare for a cell; `seed` is the planner's."""
        self._cell = cell
        self._limits = limits
        self._tasks = tasks
        self._seed = seed
        self.twin = twin
        contacts = declared_contacts(twin.world.scene.resolved)
        self._rehearser = TwinRehearser(cell, limits, twin, contacts)

    def work(self, request: Request) -> Finished:
        """Answer a request."""
        stream = plan_goal(self._cell, self._limits, self._tasks, request, self._seed)
        if isinstance(stream, Refused):
            return Finished(number=request.number, result=stream)
        result = self._rehearser.rehearse(stream, request)
        if isinstance(result, Refused):
            return Finished(number=request.number, result=result)
        space = swept(self._cell, request.world, result.stream, result.held)
        return Finished(number=request.number, result=result, swept=space)


def declared_contacts(resolved: ResolvedScene) -> frozenset[tuple[str, str]]:
    """The (group, object) pairs that a scene's tasks declare.

    Fingers and parts, parts and supports.
    """
    objects = resolved.scene.objects
    fingers = {("fingers", o.name) for o in objects if o.role == "part"}
    return frozenset(fingers | {("held part", o.name) for o in objects if o.role == "support"})


class InlineWorker:
    """A worker for lockstep: the answer is ready at once and given after `latency_ns`."""

    def __init__(self, desk: Desk, latency_ns: int = LATENCY_NS) -> None:
        """Put a desk inline."""
        self._desk = desk
        self._latency_ns = latency_ns
        self._ready: tuple[int, Finished] | None = None

    def observe(self, commands: Commands) -> None:
        """Let the twin follow."""
        self._desk.twin.observe(commands)

    def submit(self, request: Request) -> None:
        """Plan and rehearse now; a request still waiting is forgotten."""
        self._ready = (request.t_ns + self._latency_ns, self._desk.work(request))

    def finished(self, t_ns: int) -> Finished | None:
        """Return the answer once its time has come."""
        if self._ready is None or t_ns < self._ready[0]:
            return None
        answer, self._ready = self._ready[1], None
        return answer
