"""The twin.

A second world that is told everything the devices are told, and in which rehearsals happen.

It follows by being told commands, not by looking at the plant: a plant that behaves as the scene
says is equal to it bit for bit, and one that does not shows as a departure. Before a rehearsal its
joints are put where the arms were measured and moving objects where they were last seen; what is
corrected is kept for the log.
"""

from __future__ import annotations

from dataclasses import dataclass

import mujoco
import numpy as np

from brain.geometry import Array, quat_from_matrix
from brain.world import World
from hardware.spine import CellDevices, Commands
from sim.plant import connect
from sim.scene import SceneModel
from sim.world import SimWorld

SAME_RAD = 1e-6
"""Measured joints that differ by less are left alone, so that an equal twin stays equal."""
CATCH_UP_TICKS = 30_000
"""Commands kept to follow later; beyond this the twin follows at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Correction:
    """How far the twin's joints were from the measured ones when they were corrected."""

    joint_rad: float


class Twin:
    """A world with devices that follows the cell's commands."""

    def __init__(self, scene: SceneModel, seed: int, tick_ns: int, t_ns: int = 0) -> None:
        """Start where the scene starts, as the plant does."""
        self.world = SimWorld(scene, t_ns)
        self.devices: CellDevices = connect(self.world, seed)
        self._tick_ns = tick_ns
        self._pending: list[Commands] = []
        for device in (*self.devices.arms, *self.devices.grippers):
            if device is not None:
                device.start()
        for arm in self.devices.arms:
            arm.stop()

    def observe(self, commands: Commands) -> None:
        """Take note of what the devices are told in a tick."""
        self._pending.append(commands)
        if len(self._pending) >= CATCH_UP_TICKS:
            self.catch_up()

    def catch_up(self) -> None:
        """Do all that was noted."""
        for commands in self._pending:
            self.world.step_to(commands.t_ns)  # a live cell skips ticks and may start late
            self.tell(commands)
            self.world.step_to(commands.t_ns + self._tick_ns)
        self._pending.clear()

    def tell(self, commands: Commands) -> None:
        """Give one tick's commands to the devices, as the cell does."""
        for arm, command in zip(self.devices.arms, commands.arms, strict=True):
            if commands.start:
                arm.start()
            if commands.t_ns % arm.spec.period_ns == 0 or command.stop:
                arm.write(command)
        for gripper, wanted in zip(self.devices.grippers, commands.grippers, strict=True):
            if gripper is not None and wanted is not None:
                gripper.write(wanted)

    def correct(self, world: World, q_rad: tuple[Array, ...]) -> Correction:
        """Put joints where they were measured and moving objects where they are believed to be."""
        scene, data = self.world.scene, self.world.data
        worst = 0.0
        for ids, q in zip(scene.arms, q_rad, strict=True):
            off = float(np.max(np.abs(data.qpos[ids.qpos] - q)))
            worst = max(worst, off)
            if off > SAME_RAD:
                data.qpos[ids.qpos] = q
                data.qvel[ids.dof] = 0.0
        for name, i in scene.moving_mocap.items():
            T = world.object(name).T_world_object
            data.mocap_pos[i] = T[:3, 3]
            data.mocap_quat[i] = quat_from_matrix(np.ascontiguousarray(T[:3, :3]))
        if worst > SAME_RAD:
            mujoco.mj_forward(self.world.model, data)
        return Correction(joint_rad=worst)
