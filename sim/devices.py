"""Simulated devices: arms, grippers, wrist sensors and trackers on one `SimWorld`.

They behave as a controller box does: an arm follows the newest target with velocity feed-forward,
brakes by itself on a stop or when commands stay away, ignores what is expired or older than what it
has, and reports what it measures. Nothing here knows the scene beyond its own joints.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from brain.errors import DeviceFault, DeviceUnavailable
from brain.geometry import Array, frozen, largest, pose_transform, transform
from brain.jit import kernel
from brain.limits import DEFAULT
from brain.motion import Motion, at_rest, brake, step_to
from brain.record import Record, replace
from brain.types import ArmCommand, ArmState, GripperCommand, GripperState, ObjectPose, Wrench
from hardware.api import ArmSpec, ForceTorqueSpec, GripperSpec
from hardware.description import Gripper, Sensor
from sim.noise import normal, stream
from sim.scene import ArmIds
from sim.world import SimWorld

HOLD_M = 0.0015
"""Fingers that stop this far before their target are holding something."""
STILL_M_S = 0.002
LATE_PERIODS = 3
"""After this many periods without a target an arm slows down; its watchdog comes later.

Until then it carries on at its last speed: a target that comes one period late, or never, is no
jerk. Source: a UR extrapolates where a target is missing (Universal Robots ROS driver, "Quick
feature overview").
"""


class _ArmMemory(Record):
    """What a simulated arm remembers: where it is being led, and from when that is.

    `coasted_ns`: for how long the motion has been carried on without a target.
    """

    motion: Motion
    coasted_ns: int
    running: bool
    stopped: bool
    last_write_ns: int
    last_t_ns: int
    last_seq: int


class SimArm:
    """A position-controlled arm with its own watchdog and brake."""

    def __init__(self, world: SimWorld, ids: ArmIds) -> None:
        """Take hold of an arm in the world."""
        arm = ids.assembly.arm
        self._spec = ArmSpec(
            name=ids.name,
            robot=arm.name,
            joint_names=tuple(joint.name for joint in arm.joints),
            period_ns=arm.period_ms * 1_000_000,
            watchdog_ns=arm.watchdog_ms * 1_000_000,
            simulated=True,
        )
        self._q, self._dq, self._ctrl = ids.qpos, ids.dof, ids.actuator
        self._ahead_s = np.array([j.servo.kd_nm_s_rad / j.servo.kp_nm_rad for j in arm.joints])
        self._world = world
        self._memory = _ArmMemory(
            motion=at_rest(self._measured()),
            coasted_ns=0,
            running=False,
            stopped=True,
            last_write_ns=world.t_ns,
            last_t_ns=world.t_ns,
            last_seq=-1,
        )
        world.actors.append(self)

    @property
    def spec(self) -> ArmSpec:
        """What it is."""
        return self._spec

    def start(self) -> None:
        """Clear a stop; the arm holds where it is, or where it comes to rest if it still moves."""
        memory, now_ns, period_ns = self._memory, self._world.t_ns, self._spec.period_ns
        moving = bool(np.any(memory.motion.dq_rad_s))
        self._memory = _ArmMemory(
            motion=memory.motion if moving else at_rest(self._measured()),
            coasted_ns=0,
            running=True,
            stopped=False,
            last_write_ns=now_ns - LATE_PERIODS * period_ns,  # no target yet: brake on
            last_t_ns=now_ns - period_ns,
            last_seq=memory.last_seq,
        )

    def stop(self) -> None:
        """Brake and hold."""
        self._memory = replace(self._memory, running=False, stopped=True)

    def read(self) -> ArmState | None:
        """Return joints, speeds and actuator torques now."""
        data = self._world.data
        return ArmState(
            t_ns=self._world.t_ns,
            seq=self._world.t_ns // self._world.step_ns,
            q_rad=_taken(data.qpos, self._q),
            dq_rad_s=_taken(data.qvel, self._dq),
            tau_nm=_taken(data.qfrc_actuator, self._dq),
            stopped=self._memory.stopped,
        )

    def write(self, command: ArmCommand) -> None:
        """Take one command; a target that is expired or older than the last does nothing.

        Raises:
            DeviceFault: the joints are not finite or too many or few.
        """
        memory, now_ns = self._memory, self._world.t_ns
        if command.q_rad is not None:
            _demand_finite(self._spec.name, command.q_rad, len(self._spec.joint_names))
        is_stop = command.stop or command.q_rad is None
        is_late = command.expires_ns <= now_ns or command.seq <= memory.last_seq
        if is_late and not is_stop:
            return
        stopped = memory.stopped or is_stop
        motion, coasted_ns = memory.motion, memory.coasted_ns
        if not stopped and command.q_rad is not None:
            most_ns = coasted_ns + 2 * self._spec.period_ns
            apart_ns = min(max(command.t_ns - memory.last_t_ns, self._world.step_ns), most_ns)
            motion = step_to(_carried(motion, -coasted_ns), command.q_rad, apart_ns * 1e-9)
            coasted_ns = 0
        self._memory = _ArmMemory(
            motion=motion,
            coasted_ns=coasted_ns,
            running=memory.running,
            stopped=stopped,
            last_write_ns=now_ns,
            last_t_ns=command.t_ns,
            last_seq=max(command.seq, memory.last_seq),
        )

    def before_step(self, t_ns: int) -> None:
        """Look after the watchdog, brake if stopped, and set the servos."""
        memory = self._memory
        silent_ns = t_ns - memory.last_write_ns
        if memory.running and not memory.stopped and silent_ns > self._spec.watchdog_ns:
            memory = replace(memory, stopped=True)
        step_ns = self._world.step_ns
        if memory.stopped or silent_ns >= LATE_PERIODS * self._spec.period_ns:
            motion = brake(memory.motion, DEFAULT.stop_deceleration_rad_s2, step_ns * 1e-9)
            memory = replace(memory, motion=motion, coasted_ns=0)
        elif silent_ns >= self._spec.period_ns:
            motion = _carried(memory.motion, step_ns)
            memory = replace(memory, motion=motion, coasted_ns=memory.coasted_ns + step_ns)
        self._memory = memory
        motion = memory.motion
        self._world.data.ctrl[self._ctrl] = motion.q_rad + self._ahead_s * motion.dq_rad_s

    def snapshot(self) -> Any:
        """Return all that it remembers."""
        return self._memory

    def restore(self, state: Any) -> None:
        """Go back to a snapshot."""
        self._memory = state

    def _measured(self) -> Array:
        return np.array(self._world.data.qpos[self._q])


class _GripMemory(Record, eq=True):
    """Where the fingers are led and wanted, how hard and how fast."""

    running: bool
    led_m: float
    target_m: float
    force_n: float
    speed_m_s: float
    last_seq: int


class SimGripper:
    """A gripper that moves at the commanded speed and presses with the commanded force."""

    def __init__(self, world: SimWorld, ids: ArmIds) -> None:
        """Take hold of an arm's gripper in the world.

        Raises:
            DeviceUnavailable: the arm has none.
        """
        mounted = ids.assembly.gripper
        if mounted is None or not isinstance(mounted.tool, Gripper):
            raise DeviceUnavailable(f"{ids.name} has no gripper")
        gripper = mounted.tool
        self._spec = GripperSpec(
            name=ids.name,
            model=gripper.name,
            opening_min_m=0.0,
            opening_max_m=gripper.opening_max_m,
            force_max_n=gripper.force_max_n,
            speed_max_m_s=gripper.speed_max_m_s,
            simulated=True,
        )
        self._gripper = gripper
        self._world = world
        self._ctrl, self._tendon = ids.grip_actuator, ids.grip_tendon
        self._kp = gripper.servo.kp_n_m
        self._closed_m = world.model.actuator_biasprm[self._ctrl, 0] / self._kp
        self._memory = _GripMemory(
            running=False,
            led_m=self._opening(),
            target_m=self._opening(),
            force_n=gripper.force_min_n,
            speed_m_s=gripper.speed_min_m_s,
            last_seq=-1,
        )
        world.actors.append(self)

    @property
    def spec(self) -> GripperSpec:
        """What it is."""
        return self._spec

    def start(self) -> None:
        """Activate; the fingers stay where they are, and what is held stays held."""
        self._memory = replace(self._memory, running=True)

    def stop(self) -> None:
        """Lead the fingers no farther; what is held stays held."""
        self._memory = replace(self._memory, running=False, target_m=self._memory.led_m)

    def read(self) -> GripperState | None:
        """Return the opening, and whether something keeps the fingers from where they are led."""
        opening, rate = self._opening(), float(self._world.data.ten_velocity[self._tendon])
        kept_m = opening - self._memory.led_m
        return GripperState(
            t_ns=_measured_ns(self._world),
            seq=self._world.t_ns // self._world.step_ns,
            opening_m=opening,
            holding=bool(kept_m > HOLD_M and abs(rate) < STILL_M_S),
            force_n=None,
        )

    def write(self, command: GripperCommand) -> None:
        """Take one command as far as the gripper can follow it.

        An expired one, or one older than the last, does nothing.

        Raises:
            DeviceFault: a figure is not finite.
        """
        memory, tool = self._memory, self._gripper
        wanted = (command.opening_m, command.force_n, command.speed_m_s)
        if not all(map(math.isfinite, wanted)):
            raise DeviceFault(f"{self._spec.name}: a command needs finite numbers, got {wanted}")
        late = command.expires_ns <= self._world.t_ns or command.seq <= memory.last_seq
        if late or not memory.running:
            return
        self._memory = _GripMemory(
            running=True,
            led_m=memory.led_m,
            target_m=_within(command.opening_m, 0.0, tool.opening_max_m),
            force_n=_within(command.force_n, tool.force_min_n, tool.force_max_n),
            speed_m_s=_within(command.speed_m_s, tool.speed_min_m_s, tool.speed_max_m_s),
            last_seq=command.seq,
        )

    def before_step(self, t_ns: int) -> None:
        """Lead the opening on, pressing no harder than commanded."""
        memory = self._memory
        most_m = memory.speed_m_s * self._world.step_ns * 1e-9
        led_m = memory.led_m + _within(memory.target_m - memory.led_m, -most_m, most_m)
        if led_m != memory.led_m:
            self._memory = replace(memory, led_m=led_m)
        opening, give_m = self._opening(), memory.force_n / self._kp
        self._world.data.ctrl[self._ctrl] = _within(led_m, opening - give_m, opening + give_m)

    def snapshot(self) -> Any:
        """Return all that it remembers."""
        return self._memory

    def restore(self, state: Any) -> None:
        """Go back to a snapshot."""
        self._memory = state

    def _opening(self) -> float:
        return float(self._world.data.ten_length[self._tendon] - self._closed_m)


class SimForceTorque:
    """A wrist sensor with its noise."""

    def __init__(self, world: SimWorld, ids: ArmIds, seed: int) -> None:
        """Take hold of an arm's wrist sensor in the world.

        Raises:
            DeviceUnavailable: the arm has none.
        """
        mounted, name = ids.assembly.sensor, ids.name
        force, torque = ids.force_adr, ids.torque_adr
        if (
            mounted is None
            or not isinstance(mounted.tool, Sensor)
            or force is None
            or torque is None
        ):
            raise DeviceUnavailable(f"{name} has no force and torque sensor")
        sensor = mounted.tool
        self._spec = ForceTorqueSpec(
            name=name,
            force_max_n=sensor.force_max_n,
            torque_max_nm=sensor.torque_max_nm,
            T_flange_sensor=frozen(mounted.T_flange_mount @ transform((0.0, 0.0, sensor.height_m))),
            simulated=True,
        )
        self._world = world
        self._force, self._torque = force, torque
        self._scale = np.repeat((sensor.force_noise_n, sensor.torque_noise_nm), 3)
        self._noise = np.uint64(stream(seed, f"{name}/ft"))

    @property
    def spec(self) -> ForceTorqueSpec:
        """What it is."""
        return self._spec

    def start(self) -> None:
        """Nothing to open."""

    def stop(self) -> None:
        """Nothing to close."""

    def read(self) -> Wrench | None:
        """Return what the environment and the tool's weight exert.

        MuJoCo's sign is the opposite.
        """
        t_ns, wrench = self._world.t_ns, np.empty(6)
        places = (self._force, self._torque)
        _felt(self._noise, t_ns, self._scale, self._world.data.sensordata, places, wrench)
        wrench.setflags(write=False)
        return Wrench(
            t_ns=_measured_ns(self._world),
            seq=t_ns // self._world.step_ns,
            force_n=wrench[:3],
            torque_nm=wrench[3:],
        )


class SimTracker:
    """Reports where the moving objects of a scene are."""

    def __init__(self, world: SimWorld) -> None:
        """Watch all moving objects of a world."""
        self._world = world
        self._mocap = world.scene.moving_mocap

    def start(self) -> None:
        """Nothing to open."""

    def stop(self) -> None:
        """Nothing to close."""

    def read(self) -> tuple[ObjectPose, ...]:
        """Return the pose of each object now."""
        data = self._world.data
        return tuple(
            ObjectPose(
                t_ns=_measured_ns(self._world),
                seq=self._world.t_ns // self._world.step_ns,
                name=name,
                T_world_object=frozen(pose_transform(data.mocap_pos[i], data.mocap_quat[i])),
            )
            for name, i in self._mocap.items()
        )


def _carried(motion: Motion, for_ns: int) -> Motion:
    """Return a motion after so long at the same speed; before it, where that is negative."""
    if for_ns == 0:
        return motion
    q_rad = frozen(motion.q_rad + motion.dq_rad_s * (for_ns * 1e-9))
    return replace(motion, q_rad=q_rad)


@kernel
def _felt(
    key: np.uint64, t_ns: int, scale: Array, data: Array, places: tuple[int, int], out: Array
) -> None:
    """Write force and torque (6,): noise, less what MuJoCo has at the two places."""
    normal(key, np.int64(t_ns), out)
    for i in range(3):
        out[i] = scale[i] * out[i] - data[places[0] + i]
        out[3 + i] = scale[3 + i] * out[3 + i] - data[places[1] + i]


def _taken(values: Array, places: npt.NDArray[np.int64]) -> Array:
    """Read-only copy of the values in some places."""
    out = values[places]  # places are numbers, not a range: a copy
    out.setflags(write=False)
    return out


def _measured_ns(world: SimWorld) -> int:
    """Tendons, sensors and moving objects were last worked out at the start of the step before."""
    return int(max(0, world.t_ns - world.step_ns))


def _demand_finite(name: str, values: Array, count: int) -> None:
    if values.shape != (count,) or not math.isfinite(largest(values)):
        raise DeviceFault(f"{name}: a command needs {count} finite numbers, got {values.tolist()}")


def _within(value: float, low: float, high: float) -> float:
    return min(max(value, low), high)
