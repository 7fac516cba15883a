"""The devices of a cell, called and read for a control process that sees them as remote ones."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import partial
from typing import TypeVar

from brain.errors import DeviceError
from hardware.api import Arm, Gripper
from hardware.bus import Slot
from hardware.device_bytes import (
    SAMPLE,
    Told,
    pack_arm_state,
    pack_gripper_state,
    pack_poses,
    pack_trouble,
    pack_wrench,
)
from hardware.remote import Call, DeviceSpecs, SlotNames, read_calls
from hardware.spine import CellDevices

TOLD_TIMES = 6
"""A call that failed is reported in the next 5 reports."""

S = TypeVar("S")


class Serving:
    """Does what the slots say, and puts into them what the devices report."""

    def __init__(self, names: SlotNames, devices: CellDevices) -> None:
        """Attach to the slots.

        Raises:
            LinkError: a slot is not there.
        """
        attach = Slot.attach
        self.specs = DeviceSpecs(
            arms=tuple(arm.spec for arm in devices.arms),
            grippers=tuple(None if g is None else g.spec for g in devices.grippers),
            wrenches=tuple(None if w is None else w.spec for w in devices.wrenches),
        )
        self._served: list[_Served] = []
        self._reports: list[Callable[[int], None]] = []
        for arm, calls, state in zip(devices.arms, names.arm_calls, names.arm_states, strict=True):
            served = _Served(arm, _arm_writer(arm), attach(calls))
            self._served.append(served)
            self._reports.append(_reporter(attach(state), arm.read, pack_arm_state, served))
        for gripper, grip_calls, grip_state in zip(
            devices.grippers, names.gripper_calls, names.gripper_states, strict=True
        ):
            if gripper is not None and grip_calls is not None and grip_state is not None:
                served = _Served(gripper, _gripper_writer(gripper), attach(grip_calls))
                self._served.append(served)
                slot, read = attach(grip_state), gripper.read
                self._reports.append(_reporter(slot, read, pack_gripper_state, served))
        for sensor, wrench in zip(devices.wrenches, names.wrenches, strict=True):
            if sensor is not None and wrench is not None:
                self._reports.append(_reporter(attach(wrench), sensor.read, pack_wrench))
        if names.poses is not None and devices.tracker is not None:
            slot, read_poses = attach(names.poses), devices.tracker.read
            pack = partial(pack_poses, names=names.tracked)
            self._reports.append(_reporter(slot, read_poses, pack))

    def call(self, t_ns: int) -> None:
        """Do all that the devices were told up to t_ns, in order."""
        for served in self._served:
            served.call(t_ns)

    def publish(self, t_ns: int) -> None:
        """Put out what the devices report at t_ns, or why they do not."""
        for report in self._reports:
            report(t_ns)


class _Served:
    """A device that does what its slot of calls says: each call once, in order, in its time."""

    def __init__(self, device: Arm | Gripper, write: Callable[[Told], None], calls: Slot) -> None:
        self._device = device
        self._write = write
        self._slot = calls
        self._seq = self._number = self._power = 0
        self._waiting: deque[Call] = deque()
        self._trouble = ""
        self._untold = 0

    def call(self, t_ns: int) -> None:
        value = self._slot.read(self._seq)
        if value is not None:
            self._seq = value.seq
            self._waiting += [c for c in read_calls(value.data) if c.number > self._number]
            self._number = self._waiting[-1].number
        while self._waiting and self._waiting[0].t_ns <= t_ns:
            try:
                self._do(self._waiting.popleft())
            except DeviceError as error:
                self._trouble, self._untold = str(error), TOLD_TIMES

    def trouble(self) -> str | None:
        """Return why a call failed; some times over, for a reader that misses one."""
        self._untold -= self._untold > 0
        return self._trouble if self._untold else None

    def _do(self, call: Call) -> None:
        if call.power != self._power:  # also when the start or stop itself was lost
            self._power = call.power
            if call.running:
                self._device.start()
            else:
                self._device.stop()
        if call.told is not None:
            self._write(call.told)


def _arm_writer(arm: Arm) -> Callable[[Told], None]:
    return lambda told: arm.write(told.arm_command())


def _gripper_writer(gripper: Gripper) -> Callable[[Told], None]:
    return lambda told: gripper.write(told.gripper_command())


def _reporter(
    slot: Slot,
    read: Callable[[], S | None],
    pack: Callable[[S], bytes],
    served: _Served | None = None,
) -> Callable[[int], None]:
    def report(t_ns: int) -> None:
        trouble = None if served is None else served.trouble()
        if trouble is None:
            try:
                sample = read()
            except DeviceError as error:
                trouble = str(error)
        if trouble is not None:
            slot.write(pack_trouble(trouble), t_ns)
        elif sample is not None:
            slot.write(SAMPLE + pack(sample), t_ns)

    return report
