"""Wrappers that show the faults of `sim/faults.py` on any device.

A wrapper stands in front of any device and is itself one. What it does depends on the fault, a seed
and time alone, so that a faulty run can be repeated. Without a fault in force it adds nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Generic, TypeVar

import numpy as np

from brain.errors import DeviceFault, DeviceLost, DeviceUnavailable
from brain.geometry import Array, frozen, transform
from brain.record import Record, replace
from brain.types import (
    ArmCommand,
    ArmState,
    CameraFrame,
    GripperCommand,
    GripperState,
    ObjectPose,
    Wrench,
)
from hardware.api import (
    Arm,
    ArmSpec,
    Camera,
    CameraSpec,
    ForceTorque,
    ForceTorqueSpec,
    Gripper,
    GripperSpec,
    Tracker,
)
from sim.faults import Fault, Kind
from sim.noise import chance, noise, stream

Sample = TypeVar("Sample", ArmState, GripperState, Wrench, CameraFrame, ObjectPose)
Device = TypeVar("Device", Arm, Gripper, ForceTorque, Camera, Tracker)
Reading = tuple[Sample, ...]
"""What a device reports at one time: a sample, none yet, or one of each object."""


class _Memory(Record):
    """What a wrapper remembers: samples and commands on their way with when they arrive.

    `newest` has arrived last; `held` is what a frozen device repeats, None while it is not frozen.
    """

    newest: tuple[Any, ...] = ()
    last: tuple[int, int] = (-1, -1)
    samples: tuple[tuple[int, tuple[Any, ...]], ...] = ()
    commands: tuple[tuple[int, Any], ...] = ()
    held: tuple[Any, ...] | None = None


class _Faulty(Generic[Device, Sample]):
    """What all wrappers share; `now` tells the time."""

    def __init__(
        self,
        device: Device,
        faults: Sequence[Fault],
        now: Callable[[], int],
        seed: int,
        name: str,
    ) -> None:
        self._device: Device = device
        self._now = now
        self._name = name
        keys = [stream(seed, f"{name}/fault {i} {fault.kind}") for i, fault in enumerate(faults)]
        self._faults = tuple(zip(faults, keys, strict=True))
        self._memory = _Memory()

    def start(self) -> None:
        """Open.

        Raises:
            DeviceUnavailable: it refuses.
            DeviceLost: it has died.
        """
        self._check()
        if self._active(Kind.REFUSE):
            raise DeviceUnavailable(f"{self._name}: refuses to start")
        self._memory = _Memory()
        self._device.start()

    def stop(self) -> None:
        """Close; what has died is beyond reach."""
        if not self._active(Kind.DIE):
            self._device.stop()

    def before_step(self, t_ns: int) -> None:
        """Deliver the commands that have arrived."""
        self._deliver(t_ns)

    def snapshot(self) -> Any:
        """Return all that it remembers."""
        return self._memory

    def restore(self, state: Any) -> None:
        """Go back to a snapshot."""
        self._memory = state

    # ------------------------------------------------------------ the way to the device

    def _send(self, command: ArmCommand | GripperCommand) -> None:
        """Send a command over a wire that may lose or delay it."""
        self._check()
        now_ns = self._now()
        for fault, key in self._active(Kind.DROP):
            if chance(key, command.t_ns) < fault.share:
                return
        delay_ns = sum(fault.delay_ns for fault, _ in self._active(Kind.DELAY))
        if delay_ns == 0:
            self._hand_over(command)
            return
        coming = (*self._memory.commands, (now_ns + delay_ns, command))
        self._memory = replace(self._memory, commands=coming)

    def _deliver(self, t_ns: int) -> None:
        """Hand over what has arrived; that the device refuses it does not come back."""
        coming = self._memory.commands
        arrived = [command for due_ns, command in coming if due_ns <= t_ns]
        if arrived:
            rest = tuple((due_ns, c) for due_ns, c in coming if due_ns > t_ns)
            self._memory = replace(self._memory, commands=rest)
            if not self._active(Kind.DIE):
                for command in arrived:
                    with suppress(DeviceFault):
                        self._hand_over(command)

    def _hand_over(self, command: Any) -> None:
        """Give a command to the device; sensors get none."""

    # ------------------------------------------------------------ the way from the device

    def _report(self, reading: Reading[Sample]) -> Reading[Sample]:
        """Return what comes through of a reading, by way of everything that is wrong."""
        now_ns = self._now()
        self._deliver(now_ns)
        came = self._through_wire(reading, now_ns)
        return tuple(self._altered(s, now_ns) for s in self._frozen(came, reading))

    def _through_wire(self, reading: Reading[Sample], now_ns: int) -> Reading[Sample]:
        """Lose some readings and delay the rest."""
        drops, delays = self._active(Kind.DROP_SAMPLES), self._active(Kind.DELAY_SAMPLES)
        memory = self._memory
        if not drops and not delays and not memory.samples:
            self._memory = replace(memory, newest=reading)
            return reading
        samples = list(memory.samples)
        stamp = (reading[0].t_ns, reading[0].seq) if reading else memory.last
        if stamp != memory.last and all(chance(k, stamp[0]) >= f.share for f, k in drops):
            samples.append((now_ns + sum(f.delay_ns for f, _ in delays), reading))
        arrived = [came for due_ns, came in samples if due_ns <= now_ns]
        self._memory = replace(
            memory,
            last=stamp,
            samples=tuple(s for s in samples if s[0] > now_ns),
            newest=arrived[-1] if arrived else memory.newest,
        )
        return self._memory.newest

    def _frozen(self, came: Reading[Sample], reading: Reading[Sample]) -> Reading[Sample]:
        """Repeat the reading at which the device froze, with its own times or lying ones."""
        lying = bool(self._active(Kind.FREEZE_FRESH))
        if not lying and not self._active(Kind.FREEZE):
            if self._memory.held is not None:
                self._memory = replace(self._memory, held=None)
            return came
        held: Reading[Sample] | None = self._memory.held
        if held is None:
            held = came
            self._memory = replace(self._memory, held=held)
        if not lying:
            return held
        return tuple(
            replace(old, t_ns=new.t_ns, seq=new.seq)
            for old, new in zip(held, reading, strict=False)
        )

    def _altered(self, sample: Sample, now_ns: int) -> Sample:
        """Return a sample with errors and lies."""
        for fault, key in self._faults:
            if not fault.is_active(now_ns):
                continue
            if fault.kind is Kind.HOLDING and isinstance(sample, GripperState):
                sample = replace(sample, holding=True)
            values = _quantity(sample)
            if fault.kind is Kind.NOISE:
                values = values + fault.size_si * noise(key, sample.t_ns, values.size)
            elif fault.kind is Kind.OFFSET:
                values = values + fault.size_si
            elif fault.kind is Kind.SIGN:
                values = -values
            elif fault.kind is Kind.NAN:
                values = np.full(values.shape, np.nan)
            else:
                continue
            sample = _with_quantity(sample, values)
        return sample

    # ------------------------------------------------------------ faults in force

    def _active(self, kind: Kind) -> list[tuple[Fault, int]]:
        now_ns = self._now()
        return [(f, k) for f, k in self._faults if f.kind is kind and f.is_active(now_ns)]

    def _check(self) -> None:
        if self._active(Kind.DIE):
            raise DeviceLost(f"{self._name}: does not answer any more")


def _quantity(sample: ArmState | GripperState | Wrench | CameraFrame | ObjectPose) -> Array:
    """What noise and lies act on, flat: joints, opening, force, depth, position."""
    if isinstance(sample, ArmState):
        return sample.q_rad
    if isinstance(sample, GripperState):
        return np.array([sample.opening_m])
    if isinstance(sample, Wrench):
        return sample.force_n
    if isinstance(sample, CameraFrame):
        return sample.depth_m.astype(np.float64).ravel()
    return sample.T_world_object[:3, 3]


def _with_quantity(sample: Sample, values: Array) -> Sample:
    """Return a sample with another quantity."""
    if isinstance(sample, ArmState):
        return replace(sample, q_rad=frozen(values))
    if isinstance(sample, GripperState):
        return replace(sample, opening_m=float(values[0]))
    if isinstance(sample, Wrench):
        return replace(sample, force_n=frozen(values))
    if isinstance(sample, CameraFrame):
        depth_m = values.astype(np.float32).reshape(sample.depth_m.shape)
        depth_m.flags.writeable = False
        return replace(sample, depth_m=depth_m)
    pose = frozen(transform(values, sample.T_world_object[:3, :3]))
    return replace(sample, T_world_object=pose)


def _first(reading: Reading[Sample]) -> Sample | None:
    return reading[0] if reading else None


def _one(sample: Sample | None) -> Reading[Sample]:
    return () if sample is None else (sample,)


# ---------------------------------------------------------------- one wrapper per protocol


class FaultyArm(_Faulty[Arm, ArmState]):
    """An arm with faults."""

    @property
    def spec(self) -> ArmSpec:
        """What it is."""
        return self._device.spec

    def read(self) -> ArmState | None:
        """Return what comes through of the newest state."""
        self._check()
        return _first(self._report(_one(self._device.read())))

    def write(self, command: ArmCommand) -> None:
        """Send one command; a stop as well may be late or lost."""
        self._send(command)

    def _hand_over(self, command: Any) -> None:
        self._device.write(command)


class FaultyGripper(_Faulty[Gripper, GripperState]):
    """A gripper with faults."""

    @property
    def spec(self) -> GripperSpec:
        """What it is."""
        return self._device.spec

    def read(self) -> GripperState | None:
        """Return what comes through of the newest state."""
        self._check()
        return _first(self._report(_one(self._device.read())))

    def write(self, command: GripperCommand) -> None:
        """Send one command."""
        self._send(command)

    def _hand_over(self, command: Any) -> None:
        self._device.write(command)


class FaultyForceTorque(_Faulty[ForceTorque, Wrench]):
    """A wrist sensor with faults."""

    @property
    def spec(self) -> ForceTorqueSpec:
        """What it is."""
        return self._device.spec

    def read(self) -> Wrench | None:
        """Return what comes through of the newest sample."""
        self._check()
        return _first(self._report(_one(self._device.read())))


class FaultyCamera(_Faulty[Camera, CameraFrame]):
    """A camera with faults."""

    @property
    def spec(self) -> CameraSpec:
        """What it is."""
        return self._device.spec

    def read(self) -> CameraFrame | None:
        """Return what comes through of the newest frame."""
        self._check()
        return _first(self._report(_one(self._device.read())))


class FaultyTracker(_Faulty[Tracker, ObjectPose]):
    """A tracker with faults."""

    def read(self) -> tuple[ObjectPose, ...]:
        """Return what comes through of the newest poses."""
        self._check()
        return self._report(self._device.read())
