"""A sample arm to copy: follows targets at once, keeps its own watchdog, brakes by itself."""

from __future__ import annotations

import numpy as np

from brain.errors import DeviceFault
from brain.geometry import frozen
from brain.motion import at_rest, brake, step_to
from brain.types import ArmCommand, ArmState
from hardware.api import ArmSpec, Clock

DECELERATION_RAD_S2 = 10.0


class SampleArm:
    """Implements `hardware.api.Arm`. A real one talks to its controller in `_advance`."""

    def __init__(self, name: str, joint_names: tuple[str, ...], clock: Clock) -> None:
        self._clock = clock
        self._spec = ArmSpec(
            name=name,
            robot="sample",
            joint_names=joint_names,
            period_ns=2_000_000,
            watchdog_ns=50_000_000,
            simulated=True,
        )
        self._motion = at_rest(np.zeros(len(joint_names)))
        self._target: np.ndarray | None = None  # none yet, or braking: come to rest and stay
        self._stopped, self._running = True, False
        self._seq, self._done_ns, self._heard_ns = -1, clock.now_ns(), clock.now_ns()

    @property
    def spec(self) -> ArmSpec:
        return self._spec

    def start(self) -> None:
        self._advance()
        self._target, self._heard_ns = None, self._clock.now_ns()
        self._stopped, self._running = False, True

    def stop(self) -> None:
        self._stopped, self._running, self._target = True, False, None

    def read(self) -> ArmState | None:
        self._advance()
        return ArmState(
            t_ns=self._done_ns,
            seq=self._done_ns // self._spec.period_ns,
            q_rad=self._motion.q_rad,
            dq_rad_s=frozen(self._motion.dq_rad_s),
            tau_nm=None,  # this arm cannot tell
            stopped=self._stopped,
        )

    def write(self, command: ArmCommand) -> None:
        q, now_ns = command.q_rad, self._clock.now_ns()
        if q is not None and not (q.shape == self._motion.q_rad.shape and np.isfinite(q).all()):
            raise DeviceFault(f"{self._spec.name}: not {self._motion.q_rad.size} finite joints")
        stop = command.stop or q is None
        if not stop and (command.expires_ns <= now_ns or command.seq <= self._seq):
            return  # too late, or older than what it has; a stop never is
        self._seq, self._heard_ns = max(command.seq, self._seq), now_ns
        self._stopped = self._stopped or stop
        self._target = None if self._stopped else q

    def _advance(self) -> None:
        """Do every cycle that has become due."""
        period_ns, now_ns = self._spec.period_ns, self._clock.now_ns()
        while self._done_ns + period_ns <= now_ns:
            self._done_ns += period_ns
            if self._running and self._done_ns - self._heard_ns > self._spec.watchdog_ns:
                self._stopped, self._target = True, None
            if self._target is None:
                self._motion = brake(self._motion, DECELERATION_RAD_S2, period_ns * 1e-9)
            else:
                self._motion = step_to(self._motion, self._target, period_ns * 1e-9)
