"""Faults: each shows what it says, in its time and not outside, the same every time."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from brain.errors import ConfigError, DeviceLost, DeviceUnavailable
from brain.geometry import frozen, transform
from brain.types import ArmCommand, CameraFrame
from sim.faults import SIZES, Fault, Kind, parse_fault
from sim.faulty import FaultyArm, FaultyCamera, FaultyForceTorque, FaultyGripper, FaultyTracker
from tests.ideal import IdealArm, IdealGripper, IdealTracker, IdealWrench
from tests.plants import MS, arm_scene, driver, plant
from tests.values import replace

WRAPPERS = {
    "arm": FaultyArm,
    "gripper": FaultyGripper,
    "ft": FaultyForceTorque,
    "camera": FaultyCamera,
    "tracker": FaultyTracker,
}


class IdealCamera:
    """A camera that has a new small frame whenever it is read at a new time."""

    def __init__(self) -> None:
        self.t_ns = 0
        self.closed = False

    def start(self) -> None:
        pass

    def stop(self) -> None:
        self.closed = True

    def read(self) -> CameraFrame:
        return CameraFrame(
            t_ns=self.t_ns,
            seq=self.t_ns // MS,
            colour=np.zeros((4, 5, 3), dtype=np.uint8),
            depth_m=np.full((4, 5), 1.0 + 1e-9 * self.t_ns, dtype=np.float32),
            K_px=np.eye(3),
        )


class Case:
    """An ideal device behind a wrapper, and a clock; what is measured is the time in s."""

    def __init__(self, device: str, *texts: str, seed: int = 1) -> None:
        faults = [parse_fault(text) for text in texts]
        self.inner = {
            "arm": lambda: IdealArm("arm", np.zeros(6)),
            "gripper": IdealGripper,
            "ft": IdealWrench,
            "camera": IdealCamera,
            "tracker": IdealTracker,
        }[device]()
        self.device = WRAPPERS[device](self.inner, faults, lambda: self.inner.t_ns, seed, device)
        self.kind = device
        self.measure(0)

    def measure(self, t_ns: int) -> None:
        self.inner.t_ns, value = t_ns, 1.0 + t_ns * 1e-9
        if self.kind == "arm":
            self.inner.motion = replace(self.inner.motion, q_rad=frozen(np.full(6, value)))
            self.inner.seq = t_ns // MS - 1  # it counts up when it is read
        elif self.kind == "gripper":
            self.inner.opening_m = value
        elif self.kind == "ft":
            self.inner.force_n = np.full(3, value)
        elif self.kind == "tracker":
            self.inner.poses = {"cart": transform((value, value, value))}

    def at(self, t_ms: int):
        """Let it be that time, and read; the sample of a tracker is its only pose."""
        self.measure(t_ms * MS)
        self.device.before_step(t_ms * MS)
        sample = self.device.read()
        return (sample[0] if sample else None) if self.kind == "tracker" else sample


def value(sample) -> float:
    """What a sample measured, less 1, in ms: the time at which it was measured."""
    for name in ("q_rad", "opening_m", "force_n", "depth_m"):
        if hasattr(sample, name):
            got = float(np.ravel(getattr(sample, name))[0])
            break
    else:
        got = float(sample.T_world_object[0, 3])
    return (got - 1.0) * 1000.0


def command(t_ns: int) -> ArmCommand:
    return ArmCommand(
        t_ns=t_ns, seq=t_ns // MS, expires_ns=t_ns + 100 * MS, q_rad=frozen(np.zeros(6))
    )


# ---------------------------------------------------------------- every kind, on every device


@pytest.mark.parametrize("device", SIZES)
def test_without_a_fault_in_force_samples_come_through_untouched(device):
    case = Case(device, f"{device}.nan@1s", f"{device}.die@1s", f"{device}.drop=100%@1s")
    for t_ms in (2, 4, 6):
        sample = case.at(t_ms)
        assert abs(value(sample) - t_ms) < 1e-3
        assert sample.t_ns == t_ms * MS


@pytest.mark.parametrize("device", SIZES)
def test_lost_samples_leave_the_one_before(device):
    kind = "drop_samples" if device in ("arm", "gripper") else "drop"
    case = Case(device, f"{device}.{kind}=50%")
    shown = [case.at(t) for t in range(1, 401)]
    fresh = [s is not None and s.t_ns == t * MS for t, s in zip(range(1, 401), shown, strict=True)]
    print(f"{sum(fresh) / 400:.3f} of the samples came through, 0.5 within 0.08")
    assert abs(sum(fresh) / 400 - 0.5) < 0.08
    stamps = [s.t_ns for s in shown if s is not None]
    assert stamps == sorted(stamps)


@pytest.mark.parametrize("device", SIZES)
def test_delayed_samples_are_that_much_older(device):
    kind = "delay_samples" if device in ("arm", "gripper") else "delay"
    case = Case(device, f"{device}.{kind}=8ms")
    shown = [case.at(t) for t in range(1, 31)]
    assert shown[7] is None
    for t, sample in zip(range(9, 31), shown[8:], strict=True):
        assert sample.t_ns == (t - 8) * MS
        assert abs(value(sample) - (t - 8)) < 1e-3


@pytest.mark.parametrize("device", SIZES)
def test_a_frozen_device_repeats_its_sample_with_the_old_time(device):
    case = Case(device, f"{device}.freeze@10ms-20ms")
    shown = {t: case.at(t) for t in range(1, 25)}
    assert all(s.t_ns == 10 * MS and abs(value(s) - 10) < 1e-3 for s in list(shown.values())[9:19])
    assert abs(value(shown[20]) - 20) < 1e-3


@pytest.mark.parametrize("device", SIZES)
def test_a_lying_frozen_device_repeats_its_sample_with_fresh_times(device):
    case = Case(device, f"{device}.freeze_fresh@10ms")
    shown = {t: case.at(t) for t in range(1, 25)}
    assert all(s.t_ns == t * MS for t, s in shown.items())
    assert all(abs(value(shown[t]) - 10) < 1e-3 for t in range(10, 25))


@pytest.mark.parametrize("device", SIZES)
def test_noise_has_its_deviation_and_is_the_same_every_time(device):
    unit = next(iter(SIZES[device]))
    runs = []
    for _ in range(2):
        case = Case(device, f"{device}.noise=0.01{unit}")
        runs.append([value(case.at(t)) - t for t in range(1, 301)])
    spread = float(np.std(runs[0])) / 1000.0
    print(f"{spread:.4f} {unit}, told 0.01, within 15 % (n = 300)")
    assert abs(spread - 0.01) < 0.0015
    assert runs[0] == runs[1]


@pytest.mark.parametrize("device", SIZES)
def test_lies_are_what_they_say(device):
    unit = next(iter(SIZES[device]))
    assert abs(value(Case(device, f"{device}.offset=0.5{unit}").at(4)) - 504.0) < 1e-3
    assert abs(value(Case(device, f"{device}.sign").at(4)) + 2004.0) < 1e-3
    assert np.isnan(value(Case(device, f"{device}.nan").at(4)))


ARRAYS = {"arm": "q_rad", "ft": "force_n", "camera": "depth_m", "tracker": "T_world_object"}


@pytest.mark.parametrize("device", ARRAYS)
def test_a_lie_leaves_the_sample_read_only(device):
    sample = Case(device, f"{device}.nan").at(4)
    assert not getattr(sample, ARRAYS[device]).flags.writeable


@pytest.mark.parametrize("device", SIZES)
def test_a_dead_device_is_lost_from_its_time_on_and_can_still_be_closed(device):
    case = Case(device, f"{device}.die@10ms")
    case.at(9)
    with pytest.raises(DeviceLost, match=device):
        case.at(10)
    with pytest.raises(DeviceLost):
        case.device.start()
    case.device.stop()


@pytest.mark.parametrize("device", SIZES)
def test_a_device_that_refuses_cannot_be_started(device):
    with pytest.raises(DeviceUnavailable, match=device):
        Case(device, f"{device}.refuse").device.start()


def test_a_stuck_gripper_says_that_it_holds():
    case = Case("gripper", "gripper.holding@10ms")
    assert case.at(9).holding is None
    assert case.at(10).holding is True


# ---------------------------------------------------------------- commands


def sent(*texts: str, times=range(1, 41), seed=1):
    """Times in ms at which an arm gets the command of each ms, in order."""
    case, got = Case("arm", *texts, seed=seed), []
    for t in times:
        case.at(t)
        case.device.write(command(t * MS))
        for late in case.inner.commands[len(got) :]:
            got.append((t, late.t_ns // MS))
    return got


def test_a_delay_hands_every_command_over_that_much_later():
    assert sent("arm.delay=8ms") == [(t + 8, t) for t in range(1, 33)]


def test_two_delays_add_up():
    assert sent("arm.delay=5ms", "arm.delay=3ms") == sent("arm.delay=8ms")


def test_lost_commands_never_arrive_and_are_the_same_ones_every_time():
    got = sent("arm.drop=30%", times=range(1, 501))
    print(f"{1 - len(got) / 500:.3f} lost, told 0.3 within 0.06")
    assert abs(1 - len(got) / 500 - 0.3) < 0.06
    assert got == sent("arm.drop=30%", times=range(1, 501))
    assert got != sent("arm.drop=30%", times=range(1, 501), seed=2)


def test_a_dead_arm_cannot_be_told_anything():
    case = Case("arm", "arm.die@10ms", "arm.delay=5ms")
    case.at(8)
    case.device.write(command(8 * MS))
    case.measure(20 * MS)
    case.device.before_step(20 * MS)
    with pytest.raises(DeviceLost):
        case.device.write(command(20 * MS))
    assert case.inner.commands == []


def test_what_an_arm_refuses_late_does_not_stop_time():
    made = plant(arm_scene("ur5e"), faults=(parse_fault("arm.delay=4ms"),))
    drive = driver(made)
    drive.arm.start()
    q = drive.arm.read().q_rad
    drive.send(np.full(6, np.nan))
    drive.pause(0.05)
    off = np.abs(drive.arm.read().q_rad - q).max()
    print(f"moved {off:.6f} rad, limit 0.001")
    assert off < 0.001


def test_a_start_forgets_commands_that_are_under_way():
    case = Case("arm", "arm.delay=5ms")
    case.at(1)
    case.device.write(command(MS))
    case.device.start()
    case.at(10)
    assert case.inner.commands == []


def test_an_arm_whose_wire_dies_stops_by_its_own_watchdog():
    made = plant(arm_scene("ur5e"), faults=(parse_fault("arm.die@0.3s"),))
    drive = driver(made)
    drive.arm.start()
    q = drive.arm.read().q_rad
    with pytest.raises(DeviceLost):
        drive.stream(lambda t: q + 0.3 * t, 0.5)
    made.world.step_to(made.world.t_ns + 150 * MS)
    still = np.abs(made.world.data.qvel[made.world.scene.arms[0].dof]).max()
    print(f"{still:.4f} rad/s 150 ms after its last command, limit 0.01")
    assert still < 0.01


# ---------------------------------------------------------------- as text

EXAMPLES = {
    "arm.delay=8ms": Fault(device="arm", kind=Kind.DELAY, delay_ns=8 * MS),
    "arm:z1.drop=5%@2s-3s": Fault(
        device="arm",
        name="z1",
        kind=Kind.DROP,
        share=0.05,
        from_ns=2000 * MS,
        until_ns=3000 * MS,
    ),
    "ft.noise=2N": Fault(device="ft", kind=Kind.NOISE, size_si=2.0),
    "ft.drop=0.1": Fault(device="ft", kind=Kind.DROP_SAMPLES, share=0.1),
    "gripper.offset=-1.5mm": Fault(device="gripper", kind=Kind.OFFSET, size_si=-0.0015),
    "camera:wrist.freeze@0.5s": Fault(
        device="camera", name="wrist", kind=Kind.FREEZE, from_ns=500 * MS
    ),
    "tracker.die@10s": Fault(device="tracker", kind=Kind.DIE, from_ns=10_000 * MS),
    "arm.refuse": Fault(device="arm", kind=Kind.REFUSE),
}


@pytest.mark.parametrize("text", EXAMPLES)
def test_a_fault_is_read_as_it_is_written(text):
    assert parse_fault(text) == EXAMPLES[text]


WRONG = {
    "": "must look like",
    "arm": "must look like",
    "leg.delay=8ms": "no device 'leg'; allowed: arm, gripper, ft, camera, tracker",
    "arm.sleep": "no kind of fault 'sleep'; allowed: drop",
    "arm.delay": "needs a time such as 5ns or 5us or 5ms or 5s, got None",
    "arm.delay=8": "needs a time such as",
    "arm.delay=8mm": "needs a time such as",
    "arm.delay=-8ms": "cannot be negative",
    "arm.delay=nanms": "needs a time such as",
    "arm.delay=9e999s": "needs a time such as",
    "arm.drop=120%": "a share is 0 to 1",
    "arm.noise=2N": "needs a size such as 5rad or 5mrad or 5deg, got '2N'",
    "arm.holding": "only a gripper can hold",
    "arm.freeze=1": "freeze takes no value",
    "arm.freeze@3s-2s": "2s is not after 3s",
    "arm.freeze@soon": "needs a time such as",
}


@pytest.mark.parametrize("text", WRONG)
def test_a_wrong_fault_is_refused_with_what_is_allowed(text):
    with pytest.raises(ConfigError) as error:
        parse_fault(text)
    assert WRONG[text] in str(error.value)


@settings(max_examples=300, deadline=None)
@given(
    st.one_of(
        st.text(max_size=30),
        st.from_regex(
            r"\A(arm|ft|camera)(:[a-z]+)?\.(drop|delay|noise|die|nan)(=[0-9.e%msN+-]{0,6})?(@[0-9ms.-]{0,8})?\Z"
        ),
    )
)
def test_any_text_is_a_fault_or_refused(text):
    try:
        fault = parse_fault(text)
    except ConfigError:
        return
    assert 0.0 <= fault.share <= 1.0
    assert fault.delay_ns >= 0
    assert fault.until_ns is None or fault.until_ns > fault.from_ns >= 0
