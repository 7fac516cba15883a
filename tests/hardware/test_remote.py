"""Devices in another process behave as if they were here, only that nobody waits for them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from brain.errors import DeviceFault, DeviceLost
from brain.geometry import frozen, transform
from brain.limits import DEFAULT
from brain.types import (
    ArmCommand,
    ArmState,
    CameraFrame,
    GripperCommand,
    GripperState,
    Mode,
    Wrench,
)
from brain.world import make_world
from hardware.api import Arm, Camera, CameraSpec, ForceTorque, Gripper, Tracker
from hardware.bus import Slot
from hardware.clock import SimClock
from hardware.device_bytes import (
    frame_bytes,
    pack_arm_state,
    pack_frame,
    pack_gripper_state,
    pack_wrench,
    unpack_arm_state,
    unpack_gripper_state,
    unpack_wrench,
)
from hardware.receive import Heard
from hardware.remote import CALLS_KEPT, RemoteCamera, create_slots, remote_devices
from hardware.serving import Serving
from hardware.spine import CellDevices, Spine
from tests.brain.cells import GRIPPER, HOME, cell, ur5e
from tests.hardware import samples
from tests.ideal import TICK_NS, IdealArm, IdealGripper, IdealTracker, IdealWrench
from tests.values import replace

NUMBER = st.floats(allow_nan=True, allow_infinity=True)
TIME = st.integers(0, 2**62)
MAYBE = st.none() | NUMBER
CELL = cell(model=replace(ur5e(), gripper=GRIPPER), has_wrench=True)


class Line:
    """A cell whose devices are here and whose control sees them through shared memory."""

    def __init__(self) -> None:
        self.arm, self.gripper = IdealArm("ur0", HOME), IdealGripper()
        self.wrench, self.tracker = IdealWrench(), IdealTracker()
        self.starts: list[str] = []
        self.arm.start = lambda: self.starts.append("start")
        self.arm.stop = lambda: self.starts.append("stop")
        devices = CellDevices(
            arms=(self.arm,),
            grippers=(self.gripper,),
            wrenches=(self.wrench,),
            tracker=self.tracker,
        )
        names, self.slots = create_slots(CELL, ("trolley",))
        self.serving = Serving(names, devices)
        self.clock = SimClock()
        self.remote = remote_devices(names, self.serving.specs, self.clock)

    def publish(self, t_ns: int) -> None:
        for device in (self.arm, self.gripper, self.wrench, self.tracker):
            device.t_ns = t_ns
        self.serving.publish(t_ns)


@pytest.fixture
def line():
    line = Line()
    yield line
    for slot in line.slots:
        slot.close()


def command(k: int, stop: bool = False) -> ArmCommand:
    return ArmCommand(
        t_ns=k * TICK_NS,
        seq=k,
        expires_ns=(k + 5) * TICK_NS,
        q_rad=None if stop else frozen(HOME + 0.001 * k),
        stop=stop,
    )


def same(a, b) -> bool:
    """Whether all fields are equal bit for bit."""
    for name in a.__struct_fields__:
        x, y = getattr(a, name), getattr(b, name)
        if isinstance(x, np.ndarray):
            if x.tobytes() != y.tobytes():
                return False
        elif isinstance(x, float):
            if np.float64(x).tobytes() != np.float64(y).tobytes():
                return False
        elif x != y:
            return False
    return True


# ------------------------------------------------------------------------------------- as bytes


@given(TIME, TIME, st.lists(NUMBER, min_size=1, max_size=8), st.booleans(), st.booleans())
def test_an_arm_s_state_comes_back_bit_for_bit(t_ns, seq, q, tau, stopped):
    q_rad = frozen(q)
    state = ArmState(
        t_ns=t_ns,
        seq=seq,
        q_rad=q_rad,
        dq_rad_s=frozen(-q_rad),
        tau_nm=frozen(q_rad[::-1]) if tau else None,
        stopped=stopped,
    )
    assert same(state, unpack_arm_state(pack_arm_state(state)))


@given(TIME, NUMBER, st.sampled_from([None, True, False]), MAYBE)
def test_a_gripper_s_state_comes_back_bit_for_bit(t_ns, opening_m, holding, force_n):
    state = GripperState(t_ns=t_ns, seq=1, opening_m=opening_m, holding=holding, force_n=force_n)
    assert same(state, unpack_gripper_state(pack_gripper_state(state)))


@given(TIME, st.lists(NUMBER, min_size=6, max_size=6))
def test_a_wrench_comes_back_bit_for_bit(t_ns, values):
    sample = Wrench(t_ns=t_ns, seq=3, force_n=frozen(values[:3]), torque_nm=frozen(values[3:]))
    assert same(sample, unpack_wrench(pack_wrench(sample)))


def test_arrays_that_come_back_are_read_only_as_those_of_any_device():
    state = unpack_arm_state(pack_arm_state(IdealArm("a", HOME).read()))
    assert not state.q_rad.flags.writeable
    assert state.q_rad.flags.aligned
    assert state.q_rad.flags.c_contiguous


# ------------------------------------------------------------------------------------ reporting


def test_remote_devices_are_devices(line: Line):
    assert isinstance(line.remote.arms[0], Arm)
    assert isinstance(line.remote.grippers[0], Gripper)
    assert isinstance(line.remote.wrenches[0], ForceTorque)
    assert isinstance(line.remote.tracker, Tracker)


def test_their_specs_are_those_of_the_true_devices(line: Line):
    assert line.remote.arms[0].spec == line.arm.spec
    assert line.remote.grippers[0].spec == line.gripper.spec
    assert line.remote.wrenches[0].spec == line.wrench.spec


def test_before_the_first_sample_there_is_none(line: Line):
    assert line.remote.arms[0].read() is None
    assert line.remote.grippers[0].read() is None
    assert line.remote.wrenches[0].read() is None
    assert line.remote.tracker.read() == ()


def test_what_a_device_reports_is_read_at_the_other_end(line: Line):
    line.wrench.force_n = np.array([1.0, 2.0, 3.0])
    line.tracker.poses["trolley"] = transform((1.0, 2.0, 3.0))
    line.publish(TICK_NS)
    line.clock.wait_until_ns(TICK_NS)
    assert line.remote.arms[0].read().q_rad.tolist() == HOME.tolist()
    assert line.remote.grippers[0].read().opening_m == line.gripper.opening_m
    assert line.remote.wrenches[0].read().force_n.tolist() == [1.0, 2.0, 3.0]
    (seen,) = line.remote.tracker.read()
    assert (seen.name, seen.T_world_object[0, 3]) == ("trolley", 1.0)


def test_a_sample_is_read_again_until_there_is_a_newer_one(line: Line):
    line.publish(TICK_NS)
    line.clock.wait_until_ns(5 * TICK_NS)
    times = [line.remote.arms[0].read().t_ns for _ in range(3)]
    assert times == [TICK_NS] * 3


def test_a_late_tick_does_not_see_what_came_after_its_time(line: Line):
    read = []
    for k, newest in ((1, 1), (2, 3), (3, 4), (4, 5), (5, 7)):
        line.publish(newest * TICK_NS)
        line.clock.wait_until_ns(k * TICK_NS)
        read.append(line.remote.arms[0].read().t_ns // TICK_NS)
    assert read == [1, 1, 3, 4, 5], "the newest at or before ticks 1 to 5"


def test_a_device_that_cannot_report_says_why_at_the_other_end(line: Line):
    line.publish(0)
    line.arm.read_error = DeviceFault("joint 3 is too hot")
    line.publish(TICK_NS)
    line.clock.wait_until_ns(TICK_NS)
    with pytest.raises(DeviceLost, match="joint 3 is too hot"):
        line.remote.arms[0].read()
    line.arm.read_error = None
    line.publish(2 * TICK_NS)
    line.clock.wait_until_ns(2 * TICK_NS)
    assert line.remote.arms[0].read().t_ns == 2 * TICK_NS


def test_a_device_that_cannot_do_as_told_says_why_at_the_other_end(line: Line):
    line.arm.write_error = DeviceFault("the brake is stuck")
    line.remote.arms[0].write(command(1))
    line.serving.call(TICK_NS)
    line.publish(TICK_NS)
    line.publish(2 * TICK_NS)  # this tick missed the first
    line.clock.wait_until_ns(2 * TICK_NS)
    with pytest.raises(DeviceLost, match="the brake is stuck"):
        line.remote.arms[0].read()
    for k in range(3, 12):
        line.publish(k * TICK_NS)
    line.clock.wait_until_ns(12 * TICK_NS)
    assert line.remote.arms[0].read().t_ns == 11 * TICK_NS


# -------------------------------------------------------------------------------------- telling


def test_commands_arrive_once_and_as_they_were(line: Line):
    arm = line.remote.arms[0]
    for k in range(1, 6):
        arm.write(command(k, stop=k == 5))
        line.serving.call(k * TICK_NS)
        line.serving.call(k * TICK_NS)
    assert all(same(a, command(k, k == 5)) for k, a in enumerate(line.arm.commands, 1))
    assert len(line.arm.commands) == 5


def test_a_gripper_s_command_arrives_as_it_was(line: Line):
    told = GripperCommand(
        t_ns=0, seq=0, expires_ns=TICK_NS, opening_m=0.02, force_n=60.0, speed_m_s=0.1
    )
    line.remote.grippers[0].write(told)
    line.serving.call(0)
    assert same(line.gripper.commands[0], told)


def test_a_device_process_that_was_held_up_gets_each_command_in_its_own_time(line: Line):
    arm = line.remote.arms[0]
    for k in range(1, CALLS_KEPT + 1):
        arm.write(command(k))
    got = []
    for k in range(1, CALLS_KEPT + 1):
        line.serving.call(k * TICK_NS)
        got.append(len(line.arm.commands))
    assert got == list(range(1, CALLS_KEPT + 1))


def test_what_is_older_than_the_last_calls_is_gone_and_not_done_late(line: Line):
    arm = line.remote.arms[0]
    for k in range(1, 101):
        arm.write(command(k))
    line.serving.call(100 * TICK_NS)
    assert [c.seq for c in line.arm.commands] == list(range(101 - CALLS_KEPT, 101))


def test_a_start_reaches_the_arm_though_the_call_itself_was_lost(line: Line):
    arm = line.remote.arms[0]
    arm.start()
    for k in range(1, 50):
        arm.write(command(k))
    line.serving.call(50 * TICK_NS)
    assert line.starts == ["start"]


def test_starts_and_stops_are_done_in_order_with_the_commands_between(line: Line):
    arm, done = line.remote.arms[0], line.starts
    line.arm.write = lambda c: done.append(c.seq)
    arm.start()
    arm.write(command(0))
    arm.stop()
    arm.start()
    arm.write(command(1))
    line.serving.call(TICK_NS)
    assert done == ["start", 0, "stop", "start", 1]


def test_a_device_process_that_falls_silent_is_a_stop_after_the_age_a_state_may_have(line: Line):
    spine = Spine(CELL, DEFAULT, make_world(()), line.remote, None, 0)
    modes, alive = [], 100

    def tick(k: int, engaged: bool) -> None:
        if k < alive:
            line.publish(k * TICK_NS)
        line.clock.wait_until_ns(k * TICK_NS)
        hand = samples.hand(k, k * TICK_NS, engaged=engaged, arm="ur0")
        assert spine.cycle(k * TICK_NS, Heard(operator=hand)) is not None
        modes.append(spine.state.mode.mode)

    for k in range(150):
        tick(k, engaged=k > 10)
    silent_ticks = modes.index(Mode.STOPPED) - (alive - 1)
    limit_ticks = DEFAULT.state_age_ns // TICK_NS + 2
    print(f"stopped {silent_ticks} ticks after the last state, limit {limit_ticks}")
    assert modes[alive - 1] is Mode.HOLD
    assert silent_ticks <= limit_ticks
    assert "state age" in spine.state.mode.reason


@pytest.mark.parametrize("q_rad", [HOME[:5], np.array([*HOME[:5], np.nan]), np.full(6, np.inf)])
def test_what_is_no_joints_is_refused_here_and_never_sent(line: Line, q_rad):
    with pytest.raises(DeviceFault, match="ur0: a command needs 6 finite numbers"):
        line.remote.arms[0].write(replace(command(1), q_rad=q_rad))
    line.serving.call(TICK_NS)
    assert line.arm.commands == []


def test_a_gripper_s_command_that_is_not_finite_is_refused_here_and_never_sent(line: Line):
    told = GripperCommand(
        t_ns=0, seq=0, expires_ns=TICK_NS, opening_m=np.nan, force_n=60.0, speed_m_s=0.1
    )
    with pytest.raises(DeviceFault, match="grip: a command needs 3 finite numbers"):
        line.remote.grippers[0].write(told)
    line.serving.call(0)
    assert line.gripper.commands == []


# -------------------------------------------------------------------------------------- cameras


def test_a_camera_s_frame_comes_through_whole():
    K_px = frozen([[600.0, 0.0, 3.5], [0.0, 600.0, 2.5], [0.0, 0.0, 1.0]])
    spec = CameraSpec(
        name="cam",
        model="test",
        width_px=8,
        height_px=6,
        period_ns=33_000_000,
        K_px=K_px,
        mount="world",
        T_mount_optical=frozen(np.eye(4)),
        simulated=True,
    )
    rng = np.random.default_rng(1)
    frame = CameraFrame(
        t_ns=5,
        seq=2,
        colour=rng.integers(0, 255, (6, 8, 3), dtype=np.uint8),
        depth_m=np.where(rng.random((6, 8)) < 0.2, np.nan, 1.5).astype(np.float32),
        K_px=K_px,
    )
    slot = Slot.create("frame", frame_bytes(8, 6))
    camera = RemoteCamera(spec, slot)
    assert isinstance(camera, Camera)
    assert camera.read() is None
    slot.write(pack_frame(frame), frame.t_ns)
    assert same(camera.read(), frame)
    slot.close()
