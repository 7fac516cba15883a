"""From what the cell says to the positions of the twin in the picture.

The picture's model is the cell's: joints are `<arm>/<joint>`, every other joint below an arm is a
finger, parts and moving objects are bodies of their own name.
"""

from __future__ import annotations

from collections.abc import Mapping

import mujoco
import numpy as np

from brain.cell import CellArm, CellModel
from brain.errors import ConfigError
from brain.geometry import Array, quat_from_matrix
from hardware.status import Status


class Joints:
    """Where one arm's joints and fingers are in `qpos`; fingers go from closed to open together."""

    def __init__(self, model: mujoco.MjModel, arm: CellArm, qpos_start: Array) -> None:
        """Look them up; at the start of a scene the fingers are open.

        Raises:
            ConfigError: the model is not of this cell.
        """
        self.name = arm.name
        self._gripper = arm.model.gripper
        wanted = [f"{arm.name}/{name}" for name in arm.model.chain.joint_names]
        named = {model.joint(i).name: i for i in range(model.njnt)}
        missing = [name for name in wanted if name not in named]
        if missing:
            raise ConfigError(f"the picture's model has no joint {missing[0]!r} of this cell")
        fingers = [
            i for name, i in named.items() if name.startswith(f"{arm.name}/") and name not in wanted
        ]
        self._qpos = np.array([model.jnt_qposadr[named[name]] for name in wanted])
        self._fingers = np.array([model.jnt_qposadr[i] for i in fingers], dtype=np.int64)
        self._open = np.array(qpos_start)[self._fingers]
        low, high = model.jnt_range[fingers].T if fingers else (np.empty(0), np.empty(0))
        self._closed = np.where(np.abs(self._open - low) > np.abs(self._open - high), low, high)

    def put(self, qpos: Array, q_rad: Array | None, opening_m: float | None) -> None:
        """Write joints (n,) and opening into `qpos`; what is unknown stays as it was."""
        if q_rad is not None:
            qpos[self._qpos] = q_rad
        gripper = self._gripper
        if gripper is not None and opening_m is not None:
            span = gripper.opening_max_m - gripper.opening_min_m
            share = min(max((opening_m - gripper.opening_min_m) / span, 0.0), 1.0)
            qpos[self._fingers] = self._closed + share * (self._open - self._closed)

    def get(self, qpos: Array) -> Array:
        """Read the joints (n,)."""
        return np.array(qpos[self._qpos])


def joints_of(model: mujoco.MjModel, cell: CellModel, qpos_start: Array) -> Mapping[str, Joints]:
    """Look up every arm of a cell."""
    return {arm.name: Joints(model, arm, qpos_start) for arm in cell.arms}


def believe(
    model: mujoco.MjModel, data: mujoco.MjData, joints: Mapping[str, Joints], status: Status
) -> None:
    """Put arms where they were measured, parts and moving objects where they are believed to be."""
    for arm in status.arms:
        if arm.name in joints:
            joints[arm.name].put(data.qpos, arm.q_rad, arm.opening_m)
    for item in status.objects:
        body = mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_BODY, item.name)
        if body < 0:
            continue
        T = np.ascontiguousarray(item.T_world_object)
        position, quat = T[:3, 3], quat_from_matrix(np.ascontiguousarray(T[:3, :3]))
        mocap = model.body_mocapid[body]
        if mocap >= 0:
            data.mocap_pos[mocap], data.mocap_quat[mocap] = position, quat
        elif model.body_dofnum[body] == 6:
            at = model.jnt_qposadr[model.body_jntadr[body]]
            data.qpos[at : at + 3], data.qpos[at + 3 : at + 7] = position, quat
    mujoco.mj_kinematics(model, data)
