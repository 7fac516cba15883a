"""The simulated world: MuJoCo's model and data, its time, and the only place that steps physics.

Actors (devices, scheduled objects) act before every step. A snapshot holds all of MuJoCo's data,
what was worked out from the state included, because devices measure that, and every actor's state:
restored, the world goes on, and reads, bit for bit as it would have.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import mujoco

from sim.scene import SceneModel


class Actor(Protocol):
    """Something that acts on the world before each physics step."""

    def before_step(self, t_ns: int) -> None:
        """Act; the step goes from t_ns on."""
        ...

    def snapshot(self) -> Any:
        """Return all that it remembers, as a value."""
        ...

    def restore(self, state: Any) -> None:
        """Go back to a snapshot."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Snapshot:
    """The world at one time."""

    t_ns: int
    data: mujoco.MjData
    actors: tuple[Any, ...]


class SimWorld:
    """Physics of one scene in simulated time."""

    def __init__(self, scene: SceneModel, t_ns: int = 0) -> None:
        """Start at the scene's initial state."""
        self.scene = scene
        self.model = scene.model
        self.data = mujoco.MjData(scene.model)
        self.data.qpos[:] = scene.qpos_start
        self.step_ns = round(scene.model.opt.timestep * 1e9)
        self.t_ns = t_ns
        self.actors: list[Actor] = []
        mujoco.mj_forward(self.model, self.data)

    def step_to(self, t_ns: int) -> None:
        """Step physics until t_ns; at least up to it, in whole steps."""
        while self.t_ns < t_ns:
            for actor in self.actors:
                actor.before_step(self.t_ns)
            mujoco.mj_step(self.model, self.data)
            self.t_ns += self.step_ns

    def snapshot(self) -> Snapshot:
        """Return the whole state."""
        data = mujoco.MjData(self.model)
        mujoco.mj_copyData(data, self.model, self.data)
        actors = tuple(actor.snapshot() for actor in self.actors)
        return Snapshot(t_ns=self.t_ns, data=data, actors=actors)

    def restore(self, snapshot: Snapshot) -> None:
        """Go back to a snapshot of a world with the same actors."""
        self.t_ns = snapshot.t_ns
        mujoco.mj_copyData(self.data, self.model, snapshot.data)
        for actor, state in zip(self.actors, snapshot.actors, strict=True):
            actor.restore(state)
