"""The vocabulary that crosses package borders: samples, commands, operator input, intents, answers.

Every sample says when it was measured (`t_ns`) and which one it is (`seq`); every command says when
it dies (`expires_ns`). What a device cannot tell is None, never zero. Arrays are read-only float64
(see `geometry.frozen`). Joint angles in rad, lengths in m, forces in N, time in integer ns. Frames
as in docs/conventions.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

import numpy as np
import numpy.typing as npt

from brain.geometry import Array
from brain.record import Record

NS_PER_S = 1_000_000_000
NS_PER_MS = 1_000_000


class Mode(StrEnum):
    """What the cell is doing; transitions are in `brain/mode.py`."""

    DISARMED = "disarmed"
    HOLD = "hold"
    TELEOP = "teleop"
    REHEARSING = "rehearsing"
    PREVIEW = "preview"
    COMMIT = "commit"
    STOPPED = "stopped"
    FAULT = "fault"


# ---------------------------------------------------------------- what devices report


class ArmState(Record):
    """Measured joints of one arm; `tau_nm` None where the arm cannot tell.

    `stopped` is true while the device holds by itself (a stop command or its watchdog) and ignores
    positions.
    """

    t_ns: int
    seq: int
    q_rad: Array
    dq_rad_s: Array
    tau_nm: Array | None
    stopped: bool


class GripperState(Record):
    """Measured opening between the fingers; None where the gripper cannot tell."""

    t_ns: int
    seq: int
    opening_m: float
    holding: bool | None
    force_n: float | None


class Wrench(Record):
    """Raw force (3,) and torque (3,) of environment and tool weight, in the sensor frame."""

    t_ns: int
    seq: int
    force_n: Array
    torque_nm: Array


class CameraFrame(Record):
    """Colour (h, w, 3) uint8, depth (h, w) float32 in m along the optical axis, NaN unknown.

    `t_ns` is the capture time, not the arrival. `K_px` (3, 3) belongs to both images (depth aligned
    to colour).
    """

    t_ns: int
    seq: int
    colour: npt.NDArray[np.uint8]
    depth_m: npt.NDArray[np.float32]
    K_px: Array


class ObjectPose(Record):
    """Where a tracker last saw a named object of the scene."""

    t_ns: int
    seq: int
    name: str
    T_world_object: Array


# ---------------------------------------------------------------- what devices are told


class ArmCommand(Record):
    """Joint target for one tick, or a stop (`q_rad` None): the device brakes by itself."""

    t_ns: int
    seq: int
    expires_ns: int
    q_rad: Array | None
    stop: bool = False


class GripperCommand(Record):
    """Wanted opening between the fingers, with the force and speed to use."""

    t_ns: int
    seq: int
    expires_ns: int
    opening_m: float
    force_n: float
    speed_m_s: float


# ---------------------------------------------------------------- what the operator says

Source = Literal["script", "trace", "window", "headset"]
Manner = Literal["normal", "gently", "quickly"]
"""How an arm follows the hand: gently keeps farther away and starts softer, quickly harder."""


class OperatorInput(Record):
    """One sample of the operator's hand, the same from every seat.

    `T_seat_hand` (4, 4) is None unless tracked. `engaged` is clutch and dead-man in one: squeeze,
    key or button held. `grip` is 0 (open) to 1 (closed), None when the seat does not say. `arm` is
    the arm being driven.
    """

    t_ns: int
    seq: int
    expires_ns: int
    source: Source
    tracked: bool
    T_seat_hand: Array | None
    engaged: bool
    grip: float | None
    arm: str
    manner: Manner = "normal"


GoalKind = Literal["task", "pose", "joints", "home"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Goal:
    """What to plan for: a task of the scene by name, a tool pose, joints, or an arm's home."""

    kind: GoalKind
    task: str | None = None
    arm: str | None = None
    T_base_tool: Array | None = None
    q_rad: Array | None = None


IntentKind = Literal["rehearse", "commit", "cancel", "acknowledge", "arm", "disarm"]


class Intent(Record):
    """A deliberate act of the operator; a commit carries only a digest and a nonce."""

    t_ns: int
    seq: int
    kind: IntentKind
    source: Source
    goal: Goal | None = None
    digest: str | None = None
    nonce: str | None = None


# ---------------------------------------------------------------- what the gate answers


class Action(StrEnum):
    """The gate's answers, from mild to hard."""

    ALLOW = "allow"
    LIMIT = "limit"
    HOLD = "hold"
    STOP = "stop"


class Answer(Record, eq=True):
    """The gate's verdict on one arm: the rule that decided, the value it saw, its limit."""

    action: Action
    rule: str
    value: float
    limit: float
    arm: str

    def sentence(self) -> str:
        """Say it to the operator."""
        if self.action is Action.ALLOW:
            return f"{self.arm}: allowed"
        return (
            f"{self.arm}: {self.action} by {self.rule}, {self.value:.4g} against {self.limit:.4g}"
        )
