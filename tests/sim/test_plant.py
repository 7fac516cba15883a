"""A plant behaves as an arm does, departs plausibly when changed, and can be repeated."""

from __future__ import annotations

import math

import numpy as np
import pytest

from brain.errors import ConfigError
from hardware.scene import load_scene, resolved_from
from sim.faults import parse_fault
from sim.plant import PlantChange
from sim.scene import build_model
from tests.plants import MS, arm_scene, driver, grasp_scene, grip, plant
from tests.sim.test_robots import there_and_back

TOOLS = {"ur3e": ("hand_e",), "ur5e": ("ft_sensor", "hand_e"), "ur10e": ("hand_e",), "z1": ()}
WAY = {
    "ur3e": (1, 1, -1, 1, 1, 1),
    "ur5e": (1, 1, -1, 1, 1, 1),
    "ur10e": (1, 1, -1, 1, 1, 1),
    "z1": (1, 0.6, -0.6, 0.6, 1, 1),
}
SECONDS = 2.6


def motion(made, robot: str):
    """Lead an arm there and back at 1 rad/s and 5 rad/s^2; commanded and measured joints (k, 6)."""
    drive, way = driver(made), np.array(WAY[robot], dtype=float)
    drive.arm.start()
    q0 = drive.arm.read().q_rad
    asked = []

    def q_of_t(t: float):
        asked.append(q0 + way * there_and_back(t)[0])
        return asked[-1]

    drive.stream(q_of_t, SECONDS)
    # A target is for one period ahead: what is measured after the period belongs to it.
    return np.array(asked), np.array([s.q_rad for s in drive.states])


@pytest.mark.parametrize("robot", WAY)
def test_at_rest_an_arm_stays_where_it_is_led_to(robot):
    made = plant(arm_scene(robot, TOOLS[robot]))
    drive = driver(made)
    q = made.world.data.qpos[made.world.scene.arms[0].qpos].copy()
    drive.arm.start()
    drive.stream(lambda t: q, 2.0)
    off = np.abs(drive.arm.read().q_rad - q).max()
    print(f"{robot}: {off:.2e} rad after 2 s, limit 1e-4")
    assert off < 1e-4


@pytest.mark.parametrize("robot", WAY)
def test_a_motion_of_1_rad_s_and_5_rad_s2_is_followed_within_10_mrad(robot):
    asked, measured = motion(plant(arm_scene(robot, TOOLS[robot])), robot)
    worst = 1000.0 * np.abs(asked - measured).max()
    print(f"{robot}: {worst:.2f} mrad at most, limit 10")
    assert worst < 10.0


def departure_mrad(change: PlantChange):
    """How far a changed UR5e is from the unchanged one along the same motion, at most (6,)."""
    model = arm_scene("ur5e", TOOLS["ur5e"])
    _, plain = motion(plant(model), "ur5e")
    _, changed = motion(plant(model, change=change), "ur5e")
    return 1000.0 * np.abs(changed - plain).max(axis=0)


def test_0_3_kg_more_bend_the_arm_by_less_than_1_mrad():
    off = departure_mrad(PlantChange(payload_kg=0.3))
    print(f"{np.round(off, 3)} mrad, from 0.02 to 1")
    assert 0.02 < off.max() < 1.0


def test_0_3_kg_more_show_in_the_wrist_force_as_their_weight():
    model = arm_scene("ur5e", TOOLS["ur5e"])
    forces = []
    for change in (None, PlantChange(payload_kg=0.3)):
        made = plant(model, change=change)
        made.world.step_to(1000 * MS)
        seen = []
        for _ in range(100):
            made.world.step_to(made.world.t_ns + 2 * MS)
            seen.append(made.devices.wrenches[0].read().force_n)
        forces.append(np.mean(seen, axis=0))
    off = float(np.linalg.norm(forces[1] - forces[0]))
    print(f"{off:.3f} N more, 0.3 kg weigh {0.3 * 9.81:.3f} N, within 0.05")
    assert abs(off - 0.3 * 9.81) < 0.05


def test_friction_half_as_large_again_holds_an_arm_back_by_less_than_3_mrad():
    off = departure_mrad(PlantChange(friction_scale=1.5))
    print(f"{np.round(off, 3)} mrad, from 0.05 to 3")
    assert 0.05 < off.max() < 3.0


def test_a_delay_of_8_ms_leaves_an_arm_8_mrad_behind_at_1_rad_s():
    off = departure_mrad(PlantChange(delay_ms=8))
    print(f"{np.round(off, 3)} mrad, from 7 to 10")
    assert np.all((off > 7.0) & (off < 10.0))


def test_a_delay_only_delays():
    model = arm_scene("ur5e", TOOLS["ur5e"])
    _, plain = motion(plant(model), "ur5e")
    _, late = motion(plant(model, change=PlantChange(delay_ms=8)), "ur5e")
    off = np.abs(late[4:] - plain[:-4]).max()
    print(f"the same motion 8 ms later within {off:.1e} rad, limit 1e-8")
    assert off < 1e-8


def test_shifted_parts_lie_along_x_from_where_they_should():
    model = grasp_scene("ur5e", TOOLS["ur5e"])
    adr = model.part_qpos["part"]
    made = plant(model, change=PlantChange(part_shift_m=0.008))
    off = made.world.data.qpos[adr : adr + 3] - model.qpos_start[adr : adr + 3]
    assert np.allclose(off, (0.008, 0.0, 0.0), atol=1e-12)


def test_a_missing_part_is_gone_from_its_time_on():
    model = grasp_scene("ur5e", TOOLS["ur5e"])
    made = plant(model, change=PlantChange(missing="part", missing_at_s=0.1))
    made.world.step_to(100 * MS)
    assert abs(made.world.data.qpos[model.part_qpos["part"]]) < 1.0
    made.world.step_to(110 * MS)
    assert made.world.data.qpos[model.part_qpos["part"]] > 4.0


def test_a_part_that_is_not_there_cannot_be_missing():
    with pytest.raises(ConfigError, match="no part 'bolt'"):
        plant(arm_scene("ur5e"), change=PlantChange(missing="bolt"))


def test_a_change_leaves_the_unchanged_scene_as_it_was():
    model = arm_scene("ur5e", TOOLS["ur5e"])
    before = model.model.body_mass.copy(), model.model.dof_frictionloss.copy()
    plant(model, change=PlantChange(payload_kg=0.3, friction_scale=2.0))
    assert np.array_equal(model.model.body_mass, before[0])
    assert np.array_equal(model.model.dof_frictionloss, before[1])


FAULTS = (
    "arm.delay=6ms",
    "arm.drop=10%",
    "arm.noise=1mrad",
    "arm.delay_samples=4ms",
    "gripper.freeze@0.2s-0.5s",
    "ft.drop=20%",
    "ft.offset=1N",
    "tracker.delay=10ms",
    "tracker.freeze_fresh@0.3s",
)


class Everything:
    """A whole cell with every device at work and most of them faulty."""

    def __init__(self, faults=FAULTS) -> None:
        resolved = resolved_from(load_scene("moving_obstacle"), 3)
        faults = tuple(parse_fault(text) for text in faults)
        self.plant = plant(build_model(resolved), faults=faults, seed=3)
        self.drive = driver(self.plant)
        devices = self.plant.devices
        self.devices = [*devices.arms, *devices.grippers, *devices.wrenches, devices.tracker]
        for device in self.devices:
            device.start()
        self.q = np.array(self.plant.world.data.qpos[self.plant.world.scene.arms[0].qpos])

    def go(self, seconds: float) -> list[tuple[str, ...]]:
        """Go on; physics and all readings of every tick in full digits."""
        seen, world = [], self.plant.world
        for _ in range(round(seconds * 500)):
            t_ns = world.t_ns
            target = self.q + 0.05 * (1.0 - math.cos(4e-9 * t_ns))
            self.drive.send(target, seq=1 + t_ns // MS, expires_ns=t_ns + 10 * MS)
            self.plant.devices.grippers[0].write(grip(t_ns, 0.02))
            world.step_to(t_ns + 2 * MS)
            physics = world.data.qpos.tolist() + world.data.qvel.tolist()
            with np.printoptions(precision=17):
                seen.append((repr(physics), *(repr(device.read()) for device in self.devices)))
        return seen


def test_from_a_snapshot_a_whole_faulty_plant_goes_on_bit_for_bit():
    everything = Everything()
    everything.go(0.25)
    before = everything.plant.world.snapshot()
    once = everything.go(0.3)
    everything.plant.world.restore(before)
    twice = everything.go(0.3)
    first = next((k for k in range(len(once)) if once[k] != twice[k]), None)
    assert first is None, f"differs from tick {first} after the snapshot on"


def test_equal_seeds_and_faults_give_equal_plants():
    assert Everything().go(0.3) == Everything().go(0.3)


def test_a_fault_of_a_device_that_is_not_there_is_refused():
    with pytest.raises(ConfigError, match=r"fault tracker.freeze: .*arm:arm"):
        plant(arm_scene("ur5e"), faults=(parse_fault("tracker.freeze"),))
