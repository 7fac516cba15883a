"""Devices in another process, as the control process sees them: all goes through shared memory.

States are newest values: a reader gets the newest sample that is not later than its own time (a
tick that started late would otherwise see what comes after it). Commands are a newest value too,
but one that holds the last few calls: a device process that was held up for some ms makes up for it
in order, as if each call had come in its time, and what is older is gone. `hardware/serving.py` is
the other side.
"""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeVar

import numpy as np

from brain.cell import CellModel
from brain.errors import DeviceFault
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
from hardware.api import ArmSpec, CameraSpec, Clock, ForceTorqueSpec, GripperSpec
from hardware.bus import Slot
from hardware.device_bytes import (
    GRIPPER_BYTES,
    WRENCH_BYTES,
    Told,
    arm_state_bytes,
    command_bytes,
    pack_arm_command,
    pack_gripper_command,
    poses_bytes,
    sample_in,
    unpack_arm_state,
    unpack_command,
    unpack_frame,
    unpack_gripper_state,
    unpack_poses,
    unpack_wrench,
)
from hardware.spine import CellDevices

CALLS_KEPT = 8
"""Calls in a slot: at one a tick of 2 ms a device process may be held up for 16 ms."""
_CALL = struct.Struct("<QqI??2x")  # number, t_ns, starts and stops so far, running, has a command

T = TypeVar("T", ArmState, GripperState, Wrench)


class Call(NamedTuple):
    """One call of a device: start or stop when `power` differs from the call before."""

    number: int
    t_ns: int
    power: int
    running: bool
    told: Told | None


def read_calls(data: bytes) -> list[Call]:
    """Read the calls in a slot, oldest first."""
    out, at = [], 0
    while at < len(data):
        number, t_ns, power, running, commands = _CALL.unpack_from(data, at)
        at += _CALL.size
        told = None
        if commands:
            told, at = unpack_command(data, at)
        out.append(Call(number, t_ns, power, running, told))
    return out


class _Caller:
    """Writes calls to a slot, the last few each time."""

    def __init__(self, slot: Slot, clock: Clock) -> None:
        self._slot = slot
        self._clock = clock
        self._calls: deque[bytes] = deque(maxlen=CALLS_KEPT)
        self._number = self._power = 0
        self._running = False

    def switch(self, running: bool) -> None:
        self._power += 1
        self._running = running
        self.call(self._clock.now_ns(), b"")

    def call(self, t_ns: int, command: bytes) -> None:
        self._number += 1
        head = _CALL.pack(self._number, t_ns, self._power, self._running, bool(command))
        self._calls.append(head + command)
        self._slot.write(b"".join(self._calls), t_ns)


class _Reader(Generic[T]):
    """The newest sample of a slot that is not later than the clock.

    A device that says why it has none raises that once for each time it says it.
    """

    def __init__(self, slot: Slot, unpack: Callable[[bytes], T], clock: Clock) -> None:
        self._slot = slot
        self._unpack: Callable[[bytes], T] = unpack
        self._clock = clock
        self._seq = 0
        self._now: T | None = None
        self._next: T | None = None

    def read(self) -> T | None:
        t_ns = self._clock.now_ns()
        if self._next is not None and self._next.t_ns <= t_ns:
            self._now, self._next = self._next, None
        value = self._slot.read(self._seq)
        if value is not None:
            self._seq = value.seq
            sample = self._unpack(sample_in(value.data))
            if sample.t_ns <= t_ns:
                self._now, self._next = sample, None
            else:
                self._next = sample
        return self._now


class RemoteArm:
    """An arm whose device runs in another process."""

    def __init__(self, spec: ArmSpec, calls: Slot, state: Slot, clock: Clock) -> None:
        """Use its two slots; `clock` is the time of the cycle."""
        self.spec = spec
        self._caller = _Caller(calls, clock)
        self._reader = _Reader(state, unpack_arm_state, clock)

    def start(self) -> None:
        """Clear a stop."""
        self._caller.switch(running=True)

    def stop(self) -> None:
        """Brake and hold."""
        self._caller.switch(running=False)

    def read(self) -> ArmState | None:
        """Return the newest state, None before the first."""
        return self._reader.read()

    def write(self, command: ArmCommand) -> None:
        """Send one command.

        Raises:
            DeviceFault: it is not finite, or not a number for each joint.
        """
        if command.q_rad is not None:
            _demand_finite(self.spec.name, command.q_rad, len(self.spec.joint_names))
        self._caller.call(command.t_ns, pack_arm_command(command))


class RemoteGripper:
    """A gripper whose device runs in another process."""

    def __init__(self, spec: GripperSpec, calls: Slot, state: Slot, clock: Clock) -> None:
        """Use its two slots; `clock` is the time of the cycle."""
        self.spec = spec
        self._caller = _Caller(calls, clock)
        self._reader = _Reader(state, unpack_gripper_state, clock)

    def start(self) -> None:
        """Activate."""
        self._caller.switch(running=True)

    def stop(self) -> None:
        """Freeze the fingers."""
        self._caller.switch(running=False)

    def read(self) -> GripperState | None:
        """Return the newest state, None before the first."""
        return self._reader.read()

    def write(self, command: GripperCommand) -> None:
        """Send one command.

        Raises:
            DeviceFault: it is not finite.
        """
        wanted = np.array([command.opening_m, command.force_n, command.speed_m_s])
        _demand_finite(self.spec.name, wanted, 3)
        self._caller.call(command.t_ns, pack_gripper_command(command))


def _demand_finite(name: str, values: Array, count: int) -> None:
    if values.shape != (count,) or not np.isfinite(values).all():
        raise DeviceFault(f"{name}: a command needs {count} finite numbers, got {values.tolist()}")


class RemoteForceTorque:
    """A wrist sensor whose device runs in another process."""

    def __init__(self, spec: ForceTorqueSpec, state: Slot, clock: Clock) -> None:
        """Use its slot; `clock` is the time of the cycle."""
        self.spec = spec
        self._reader = _Reader(state, unpack_wrench, clock)

    def start(self) -> None:
        """Nothing to open: the other process has it open."""

    def stop(self) -> None:
        """Nothing to close."""

    def read(self) -> Wrench | None:
        """Return the newest sample, None before the first."""
        return self._reader.read()


class RemoteTracker:
    """A tracker whose device runs in another process."""

    def __init__(self, names: tuple[str, ...], poses: Slot) -> None:
        """Use its slot; `names` are the objects it may report."""
        self._names = names
        self._slot = poses
        self._seq = 0
        self._poses: tuple[ObjectPose, ...] = ()

    def start(self) -> None:
        """Nothing to open: the other process has it open."""

    def stop(self) -> None:
        """Nothing to close."""

    def read(self) -> tuple[ObjectPose, ...]:
        """Return the newest pose of each object it sees."""
        value = self._slot.read(self._seq)
        if value is not None:
            self._seq = value.seq
            self._poses = unpack_poses(sample_in(value.data), self._names)
        return self._poses


class RemoteCamera:
    """A camera whose device runs in another process."""

    def __init__(self, spec: CameraSpec, frames: Slot) -> None:
        """Use its slot."""
        self.spec = spec
        self._slot = frames
        self._seq = 0
        self._newest: CameraFrame | None = None

    def start(self) -> None:
        """Nothing to open: the other process has it open."""

    def stop(self) -> None:
        """Nothing to close."""

    def read(self) -> CameraFrame | None:
        """Return the newest frame, None before the first."""
        value = self._slot.read(self._seq)
        if value is not None:
            self._seq = value.seq
            self._newest = unpack_frame(value.data)
        return self._newest


# ------------------------------------------------------------------------------- the whole cell


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotNames:
    """The slots of a cell's devices by name; per arm, None for what it does not have."""

    arm_calls: tuple[str, ...]
    arm_states: tuple[str, ...]
    gripper_calls: tuple[str | None, ...]
    gripper_states: tuple[str | None, ...]
    wrenches: tuple[str | None, ...]
    poses: str | None
    tracked: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DeviceSpecs:
    """What the devices of a cell say that they are."""

    arms: tuple[ArmSpec, ...]
    grippers: tuple[GripperSpec | None, ...]
    wrenches: tuple[ForceTorqueSpec | None, ...]


def create_slots(cell: CellModel, tracked: tuple[str, ...]) -> tuple[SlotNames, list[Slot]]:
    """Make the slots of a cell; `tracked` are the objects that its tracker may report."""
    slots: list[Slot] = []

    def slot(label: str, capacity: int) -> str:
        slots.append(Slot.create(label, capacity))
        return slots[-1].name

    def calls(values: int) -> int:
        return CALLS_KEPT * (_CALL.size + command_bytes(values))

    grips = [arm.model.gripper is not None for arm in cell.arms]
    names = SlotNames(
        arm_calls=tuple(slot("arm-calls", calls(arm.model.dof)) for arm in cell.arms),
        arm_states=tuple(slot("arm-state", arm_state_bytes(a.model.dof)) for a in cell.arms),
        gripper_calls=tuple(slot("grip-calls", calls(3)) if has else None for has in grips),
        gripper_states=tuple(slot("grip-state", GRIPPER_BYTES) if has else None for has in grips),
        wrenches=tuple(slot("wrench", WRENCH_BYTES) if a.has_wrench else None for a in cell.arms),
        poses=slot("poses", poses_bytes(len(tracked))) if tracked else None,
        tracked=tracked,
    )
    return names, slots


def remote_devices(names: SlotNames, specs: DeviceSpecs, clock: Clock) -> CellDevices:
    """Attach to a cell's slots on the control side; `clock` is the time of the cycle.

    Raises:
        LinkError: a slot is not there.
    """
    attach = Slot.attach
    arms: list[RemoteArm] = []
    grippers: list[RemoteGripper | None] = []
    wrenches: list[RemoteForceTorque | None] = []
    for i, arm_spec in enumerate(specs.arms):
        calls, state = attach(names.arm_calls[i]), attach(names.arm_states[i])
        arms.append(RemoteArm(arm_spec, calls, state, clock))
        grip_spec, grip_calls = specs.grippers[i], names.gripper_calls[i]
        grip_state = names.gripper_states[i]
        if grip_spec is None or grip_calls is None or grip_state is None:
            grippers.append(None)
        else:
            slots = attach(grip_calls), attach(grip_state)
            grippers.append(RemoteGripper(grip_spec, *slots, clock))
        wrench_spec, wrench = specs.wrenches[i], names.wrenches[i]
        if wrench_spec is None or wrench is None:
            wrenches.append(None)
        else:
            wrenches.append(RemoteForceTorque(wrench_spec, attach(wrench), clock))
    return CellDevices(
        arms=tuple(arms),
        grippers=tuple(grippers),
        wrenches=tuple(wrenches),
        tracker=None if names.poses is None else RemoteTracker(names.tracked, attach(names.poses)),
    )
