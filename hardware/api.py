"""The contract of every device, simulated, virtual, replayed or real; one test suite checks it.

A device never waits, never solves kinematics, never chooses a speed. `read` returns the newest
sample or None when there is none yet; it never returns a sample that the device did not report.
`write` takes one command; a target that is expired, or anything not newer than the last (`seq`), is
ignored (a stop never expires), and after `watchdog_ns` without a valid write an arm brakes and
holds by itself (`ArmState.stopped`) until a stop is cleared by `start`. A command that is not
finite, or of the wrong shape, moves nothing: `write` raises `DeviceFault`. Before `start` and after
`stop` commands do nothing. Starting or stopping twice is the same as once. Samples are read-only;
their `t_ns` and `seq` never go back. Every method but `stop` may raise `DeviceError`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from brain.geometry import Array
from brain.types import (
    ArmCommand,
    ArmState,
    CameraFrame,
    GripperCommand,
    GripperState,
    ObjectPose,
    Wrench,
)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ArmSpec:
    """An arm's type, joints and cycle, and how long it goes on without a command."""

    name: str
    robot: str
    joint_names: tuple[str, ...]
    period_ns: int
    watchdog_ns: int
    simulated: bool


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class GripperSpec:
    """What a gripper can do."""

    name: str
    model: str
    opening_min_m: float
    opening_max_m: float
    force_max_n: float
    speed_max_m_s: float
    simulated: bool


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ForceTorqueSpec:
    """Range of a wrist sensor and the frame it reports in (`T_flange_sensor`, (4, 4))."""

    name: str
    force_max_n: float
    torque_max_nm: float
    T_flange_sensor: Array
    simulated: bool


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CameraSpec:
    """Image size, rate, and where the optical frame sits: `mount` is "world" or an arm."""

    name: str
    model: str
    width_px: int
    height_px: int
    period_ns: int
    K_px: Array
    mount: str
    T_mount_optical: Array
    simulated: bool


@runtime_checkable
class Clock(Protocol):
    """Time in integer ns, and waiting; only `hardware/clock.py` sleeps."""

    def now_ns(self) -> int:
        """Return the time now."""
        ...

    def wait_until_ns(self, t_ns: int) -> None:
        """Return at t_ns, or at once when it has passed."""
        ...


@runtime_checkable
class Arm(Protocol):
    """A robot arm that follows streamed joint targets."""

    @property
    def spec(self) -> ArmSpec:
        """What it is."""
        ...

    def start(self) -> None:
        """Open, and clear a stop; the arm holds where it is, or comes to rest if it moves."""
        ...

    def stop(self) -> None:
        """Brake, hold, close. Never raises."""
        ...

    def read(self) -> ArmState | None:
        """Return the newest state, None before the first."""
        ...

    def write(self, command: ArmCommand) -> None:
        """Take one command."""
        ...


@runtime_checkable
class Gripper(Protocol):
    """A two-finger gripper."""

    @property
    def spec(self) -> GripperSpec:
        """What it is."""
        ...

    def start(self) -> None:
        """Open and activate; what is held stays held."""
        ...

    def stop(self) -> None:
        """Freeze the fingers (a held part stays held), close. Never raises."""
        ...

    def read(self) -> GripperState | None:
        """Return the newest state, None before the first."""
        ...

    def write(self, command: GripperCommand) -> None:
        """Take one command, as far as the gripper can follow it."""
        ...


@runtime_checkable
class ForceTorque(Protocol):
    """A wrist force and torque sensor; taring is the brain's business."""

    @property
    def spec(self) -> ForceTorqueSpec:
        """What it is."""
        ...

    def start(self) -> None:
        """Open."""
        ...

    def stop(self) -> None:
        """Close. Never raises."""
        ...

    def read(self) -> Wrench | None:
        """Return the newest sample, None before the first."""
        ...


@runtime_checkable
class Camera(Protocol):
    """A colour and depth camera."""

    @property
    def spec(self) -> CameraSpec:
        """What it is."""
        ...

    def start(self) -> None:
        """Open."""
        ...

    def stop(self) -> None:
        """Close. Never raises."""
        ...

    def read(self) -> CameraFrame | None:
        """Return the newest frame, None before the first."""
        ...


@runtime_checkable
class Tracker(Protocol):
    """Something that reports where moving objects of the scene are."""

    def start(self) -> None:
        """Open."""
        ...

    def stop(self) -> None:
        """Close. Never raises."""
        ...

    def read(self) -> tuple[ObjectPose, ...]:
        """Return the newest pose of each object it sees."""
        ...
