"""One cycle, whoever waits: read devices, operator and worker; tick; gate; write; record.

The drivers decide when `cycle` is called and with what time: lockstep, wall-paced, replay. It never
waits. An exception inside it, of whatever kind, stops every arm and is shown as mode FAULT; the
loop goes on.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Protocol

from brain.cell import CellModel
from brain.gate import COMMAND_TICKS, GateView, Passed, gate
from brain.limits import LimitProfile
from brain.mode import LIMP, Event, apply
from brain.motion import Motion
from brain.record import Record, replace
from brain.rehearsal import Finished, Request
from brain.state import BrainState, TickInputs, TickOutputs, initial
from brain.tick import Brain, tick
from brain.types import Answer, ArmCommand, GripperCommand, Mode
from brain.world import World
from hardware.api import Arm, ForceTorque, Gripper, Tracker
from hardware.receive import Heard


@dataclass(frozen=True, slots=True, kw_only=True)
class CellDevices:
    """The devices of a cell, one entry per arm; what an arm does not have is None."""

    arms: tuple[Arm, ...]
    grippers: tuple[Gripper | None, ...]
    wrenches: tuple[ForceTorque | None, ...]
    tracker: Tracker | None


class Worker(Protocol):
    """Plans and rehearses beside the cycle, inline or in another process."""

    def observe(self, commands: Commands) -> None:
        """Take note of what the devices are told in this tick, so that the twin can follow."""
        ...

    def submit(self, request: Request) -> None:
        """Start on a request; never wait."""
        ...

    def finished(self, t_ns: int) -> Finished | None:
        """Return a finished request, once."""
        ...


class Commands(Record):
    """What all devices are told in one tick; `start` names the arms that are started before."""

    t_ns: int
    arms: tuple[ArmCommand, ...]
    grippers: tuple[GripperCommand | None, ...]
    start: bool


class TickRecord(Record):
    """All that happened in one tick: what was seen, decided, let through and sent."""

    seen: TickInputs
    state: BrainState
    wanted: TickOutputs
    passed: tuple[Passed, ...]
    commands: Commands


class Spine:
    """The cell's cycle and what it remembers: the brain's state and the gate's."""

    def __init__(
        self,
        cell: CellModel,
        limits: LimitProfile,
        world: World,
        devices: CellDevices,
        worker: Worker | None,
        t_ns: int,
    ) -> None:
        """Prepare for a cell; nothing is started."""
        self.cell = cell
        self.limits = limits
        self.devices = devices
        self.worker = worker
        simulated = all(arm.spec.simulated for arm in devices.arms)
        self.brain = Brain(cell, limits, script_may_commit=simulated)
        self.state = initial(world, len(cell.arms), t_ns)
        self.memories: tuple[Motion | None, ...] = (None,) * len(cell.arms)
        self.answers: tuple[Answer, ...] = ()
        self.clearance_m: tuple[float | None, ...] = (None,) * len(cell.arms)
        self.fault: Exception | None = None
        self._first_ns = t_ns

    def start(self, t_ns: int) -> None:
        """Open every device and tell every arm to stop.

        Nothing moves before the operator engages.
        """
        for device in self._all_devices():
            device.start()
        for i, arm in enumerate(self.devices.arms):
            arm.write(self._stop_commands(t_ns)[i])

    def stop(self, t_ns: int) -> None:
        """Tell every arm to stop and close every device."""
        self._stop_all(t_ns)
        for device in self._all_devices():
            device.stop()

    def cycle(self, t_ns: int, heard: Heard) -> TickRecord | None:
        """Do one tick at t_ns; None when it failed, and every arm was stopped instead."""
        try:
            return self._cycle(t_ns, heard)
        except Exception as error:  # whatever it is, the arms stop and the loop goes on
            self._stop_all(t_ns)
            self.fault = error
            reason = f"{type(error).__name__}: {error}"
            mode = apply(self.state.mode, Event.FAULT, reason, t_ns)
            self.state = replace(self.state, mode=mode, playback=None, teleop=None, pending=None)
            return None

    def _cycle(self, t_ns: int, heard: Heard) -> TickRecord:
        seen = self._see(t_ns, heard)
        was_limp = self.state.mode.mode in LIMP
        state, wanted = tick(self.brain, self.state, seen)
        proximity = self.brain.proximity
        operator = state.operator
        view = GateView(
            t_ns=t_ns,
            mode=state.mode.mode,
            wishes=wanted.wishes,
            states=seen.states,
            force_n=wanted.force_n,
            engaged=operator is not None and operator.engaged,
            operator_age_ns=None if operator is None else t_ns - operator.t_ns,
            near=partial(proximity.both, seen.states, t_ns, state.world),
        )
        passed = gate(self.cell, self.limits, self.memories, view)
        commands = Commands(
            t_ns=t_ns,
            arms=tuple(p.command for p in passed),
            grippers=self._gripper_commands(t_ns, state.mode.mode, wanted),
            start=was_limp and state.mode.mode not in LIMP,
        )
        if state.playback is not None and self.state.playback is None:
            self._first_ns = t_ns  # each arm gets the same rows of a motion as in its rehearsal
        self._write(commands)
        self.state = state
        self.memories = tuple(p.memory for p in passed)
        self.answers = tuple(p.answer for p in passed)
        self.clearance_m = tuple(p.clearance_m for p in passed)
        if self.worker is not None:
            self.worker.observe(commands)
            if wanted.request is not None:
                self.worker.submit(wanted.request)
        return TickRecord(seen=seen, state=state, wanted=wanted, passed=passed, commands=commands)

    def _see(self, t_ns: int, heard: Heard) -> TickInputs:
        devices = self.devices
        return TickInputs(
            t_ns=t_ns,
            states=tuple(arm.read() for arm in devices.arms),
            grippers=tuple(None if g is None else g.read() for g in devices.grippers),
            wrenches=tuple(None if w is None else w.read() for w in devices.wrenches),
            objects=() if devices.tracker is None else devices.tracker.read(),
            operator=heard.operator,
            intents=heard.intents,
            stop=heard.stop,
            finished=None if self.worker is None else self.worker.finished(t_ns),
            memories=self.memories,
            answers=self.answers,
            clearance_m=self.clearance_m,
        )

    def _gripper_commands(
        self, t_ns: int, mode: Mode, wanted: TickOutputs
    ) -> tuple[GripperCommand | None, ...]:
        """Fingers follow what is wanted; where the arms are limp they are left as they are."""
        out: list[GripperCommand | None] = []
        for i, arm in enumerate(self.cell.arms):
            gripper, opening = arm.model.gripper, wanted.opening_m[i]
            if gripper is None or opening is None or mode in LIMP:
                out.append(None)
                continue
            out.append(
                GripperCommand(
                    t_ns=t_ns,
                    seq=t_ns // self.cell.tick_ns,
                    expires_ns=t_ns + COMMAND_TICKS * self.cell.tick_ns,
                    opening_m=min(max(opening, gripper.opening_min_m), gripper.opening_max_m),
                    force_n=min(
                        max(wanted.grip_force_n[i], gripper.force_min_n), gripper.force_max_n
                    ),
                    speed_m_s=gripper.speed_max_m_s,
                )
            )
        return tuple(out)

    def _write(self, commands: Commands) -> None:
        for i, (arm, command) in enumerate(zip(self.devices.arms, commands.arms, strict=True)):
            if commands.start:
                arm.start()
            ticks_apart = self.cell.arms[i].period_ns // self.cell.tick_ns
            due = (commands.t_ns - self._first_ns) // self.cell.tick_ns % ticks_apart == 0
            if due or command.stop:  # a slower arm gets every second or third target
                arm.write(command)
        for gripper, wanted in zip(self.devices.grippers, commands.grippers, strict=True):
            if gripper is not None and wanted is not None:
                gripper.write(wanted)

    def _stop_all(self, t_ns: int) -> None:
        for arm, command in zip(self.devices.arms, self._stop_commands(t_ns), strict=True):
            try:
                arm.write(command)
            except Exception:  # a broken arm must not keep the others from their stop
                arm.stop()

    def _stop_commands(self, t_ns: int) -> tuple[ArmCommand, ...]:
        return tuple(
            ArmCommand(
                t_ns=t_ns,
                seq=t_ns // self.cell.tick_ns,
                expires_ns=t_ns + COMMAND_TICKS * self.cell.tick_ns,
                q_rad=None,
                stop=True,
            )
            for _ in self.cell.arms
        )

    def _all_devices(self) -> list[Arm | Gripper | ForceTorque | Tracker]:
        devices = self.devices
        every = [*devices.arms, *devices.grippers, *devices.wrenches, devices.tracker]
        return [d for d in every if d is not None]
