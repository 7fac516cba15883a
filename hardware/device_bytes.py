"""What devices report and are told, as bytes of fixed layout for our own processes.

Little-endian; arrays behind their heads, in multiples of 8 bytes, so that a reader can look at them
where they are. Floats come back bit for bit.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

import numpy as np

from brain.errors import DeviceLost
from brain.geometry import frozen
from brain.types import (
    ArmCommand,
    ArmState,
    CameraFrame,
    GripperCommand,
    GripperState,
    ObjectPose,
    Wrench,
)

_ARM = struct.Struct("<qq??6x")  # t_ns, seq, stopped, whether torques follow; q, dq, tau behind it
_GRIPPER = struct.Struct("<qqddb?6x")  # t_ns, seq, opening, force, holding (-1 unknown), has force
_WRENCH = struct.Struct("<qq6d")
_POSE = struct.Struct("<qqq")  # t_ns, seq, index of the name; (4, 4) behind it
_POSE_BYTES = _POSE.size + 16 * 8
_FRAME = struct.Struct("<qqII9d")  # t_ns, seq, width, height, K; colour and depth behind it
_COMMAND = struct.Struct("<qqq?B6x")  # t_ns, seq, expires_ns, stop, number of values behind it

SAMPLE, TROUBLE = b"\0" * 8, b"\1" + b"\0" * 7
"""What stands before a sample, and before the sentence of a device that cannot give one."""
_SENTENCE_BYTES = 512
GRIPPER_BYTES = WRENCH_BYTES = len(SAMPLE) + _SENTENCE_BYTES


def arm_state_bytes(dof: int) -> int:
    """Most bytes of an arm's state, or of a sentence."""
    return len(SAMPLE) + max(_ARM.size + 3 * 8 * dof, _SENTENCE_BYTES)


def poses_bytes(objects: int) -> int:
    """Most bytes of what a tracker sees, or of a sentence."""
    return len(SAMPLE) + max(_POSE_BYTES * objects, _SENTENCE_BYTES)


def pack_trouble(sentence: str) -> bytes:
    """Return the bytes of what a device says instead of a sample; a long sentence is cut."""
    return TROUBLE + sentence.encode()[:_SENTENCE_BYTES]


def sample_in(data: bytes) -> bytes:
    """Return the bytes of the sample.

    Raises:
        DeviceLost: there is a sentence instead.
    """
    if data.startswith(TROUBLE):
        raise DeviceLost(data[len(TROUBLE) :].decode(errors="ignore"))
    return data[len(SAMPLE) :]


def frame_bytes(width_px: int, height_px: int) -> int:
    """Bytes of a camera's frame."""
    return _FRAME.size + 7 * width_px * height_px


def command_bytes(values: int) -> int:
    """Most bytes of a command with so many values: joints, or the 3 of a gripper."""
    return _COMMAND.size + 8 * values


# ------------------------------------------------------------------------------------- reported


def pack_arm_state(state: ArmState) -> bytes:
    """Return the bytes of an arm's state."""
    head = _ARM.pack(state.t_ns, state.seq, state.stopped, state.tau_nm is not None)
    tau = b"" if state.tau_nm is None else state.tau_nm.tobytes()
    return head + state.q_rad.tobytes() + state.dq_rad_s.tobytes() + tau


def unpack_arm_state(data: bytes) -> ArmState:
    """Read an arm's state."""
    t_ns, seq, stopped, has_tau = _ARM.unpack_from(data)
    rows = np.frombuffer(data, "<f8", offset=_ARM.size).reshape(3 if has_tau else 2, -1)
    return ArmState(
        t_ns=t_ns,
        seq=seq,
        q_rad=rows[0],
        dq_rad_s=rows[1],
        tau_nm=rows[2] if has_tau else None,
        stopped=stopped,
    )


def pack_gripper_state(state: GripperState) -> bytes:
    """Return the bytes of a gripper's state."""
    holding = -1 if state.holding is None else int(state.holding)
    force_n = 0.0 if state.force_n is None else state.force_n
    has_force = state.force_n is not None
    return _GRIPPER.pack(state.t_ns, state.seq, state.opening_m, force_n, holding, has_force)


def unpack_gripper_state(data: bytes) -> GripperState:
    """Read a gripper's state."""
    t_ns, seq, opening_m, force_n, holding, has_force = _GRIPPER.unpack(data)
    return GripperState(
        t_ns=t_ns,
        seq=seq,
        opening_m=opening_m,
        holding=None if holding < 0 else bool(holding),
        force_n=force_n if has_force else None,
    )


def pack_wrench(sample: Wrench) -> bytes:
    """Return the bytes of a wrist sensor's sample."""
    return _WRENCH.pack(sample.t_ns, sample.seq, *sample.force_n, *sample.torque_nm)


def unpack_wrench(data: bytes) -> Wrench:
    """Read a wrist sensor's sample."""
    t_ns, seq = _POSE.unpack_from(data)[:2]
    values = np.frombuffer(data, "<f8", offset=16)
    return Wrench(t_ns=t_ns, seq=seq, force_n=values[:3], torque_nm=values[3:])


def pack_poses(poses: tuple[ObjectPose, ...], names: tuple[str, ...]) -> bytes:
    """Return the bytes of what a tracker sees."""
    return b"".join(
        _POSE.pack(p.t_ns, p.seq, names.index(p.name)) + p.T_world_object.tobytes() for p in poses
    )


def unpack_poses(data: bytes, names: tuple[str, ...]) -> tuple[ObjectPose, ...]:
    """Read what a tracker sees."""
    out = []
    for at in range(0, len(data), _POSE_BYTES):
        t_ns, seq, index = _POSE.unpack_from(data, at)
        values = np.frombuffer(data, "<f8", 16, at + _POSE.size)
        pose = values.reshape(4, 4)
        out.append(ObjectPose(t_ns=t_ns, seq=seq, name=names[index], T_world_object=pose))
    return tuple(out)


def pack_frame(frame: CameraFrame) -> bytes:
    """Return the bytes of a camera's frame."""
    height, width = frame.depth_m.shape
    head = _FRAME.pack(frame.t_ns, frame.seq, width, height, *frame.K_px.flat)
    return b"".join((head, frame.depth_m.tobytes(), frame.colour.tobytes()))


def unpack_frame(data: bytes) -> CameraFrame:
    """Read a camera's frame."""
    t_ns, seq, width, height, *K = _FRAME.unpack_from(data)
    pixels, at = width * height, _FRAME.size
    depth_m = np.frombuffer(data, np.float32, pixels, at).reshape(height, width)
    colour = np.frombuffer(data, np.uint8, 3 * pixels, at + 4 * pixels)
    return CameraFrame(
        t_ns=t_ns,
        seq=seq,
        colour=colour.reshape(height, width, 3),
        depth_m=depth_m,
        K_px=frozen(K).reshape(3, 3),
    )


# ----------------------------------------------------------------------------------------- told


def pack_arm_command(command: ArmCommand) -> bytes:
    """Return the bytes of a command; one without joints has no values."""
    values = b"" if command.q_rad is None else command.q_rad.tobytes()
    n = len(values) // 8
    return _COMMAND.pack(command.t_ns, command.seq, command.expires_ns, command.stop, n) + values


def pack_gripper_command(command: GripperCommand) -> bytes:
    """Return the bytes of a command."""
    head = _COMMAND.pack(command.t_ns, command.seq, command.expires_ns, False, 3)
    return head + struct.pack("<3d", command.opening_m, command.force_n, command.speed_m_s)


class Told(NamedTuple):
    """A command as it was sent, for an arm or a gripper."""

    t_ns: int
    seq: int
    expires_ns: int
    stop: bool
    values: tuple[float, ...]

    def arm_command(self) -> ArmCommand:
        """As an arm takes it."""
        return ArmCommand(
            t_ns=self.t_ns,
            seq=self.seq,
            expires_ns=self.expires_ns,
            q_rad=frozen(self.values) if self.values else None,
            stop=self.stop,
        )

    def gripper_command(self) -> GripperCommand:
        """As a gripper takes it."""
        opening_m, force_n, speed_m_s = self.values
        return GripperCommand(
            t_ns=self.t_ns,
            seq=self.seq,
            expires_ns=self.expires_ns,
            opening_m=opening_m,
            force_n=force_n,
            speed_m_s=speed_m_s,
        )


def unpack_command(data: bytes | memoryview, at: int) -> tuple[Told, int]:
    """Read a command that starts at a place; return it and where it ends."""
    t_ns, seq, expires_ns, stop, n = _COMMAND.unpack_from(data, at)
    at += _COMMAND.size
    values = struct.unpack_from(f"<{n}d", data, at)
    return Told(t_ns, seq, expires_ns, stop, values), at + 8 * n
