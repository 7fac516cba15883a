"""A world steps in whole steps, and goes on from a snapshot bit for bit."""

from __future__ import annotations

import numpy as np
import pytest

from sim.world import SimWorld
from tests.plants import MS, arm_scene, driver, grasp_scene, grip, plant


class Witness:
    """Notes when it was asked to act."""

    def __init__(self) -> None:
        self.times: list[int] = []

    def before_step(self, t_ns: int) -> None:
        self.times.append(t_ns)

    def snapshot(self) -> tuple[int, ...]:
        return tuple(self.times)

    def restore(self, state: tuple[int, ...]) -> None:
        self.times = list(state)


def test_a_world_steps_in_whole_steps_up_to_the_time():
    world = SimWorld(arm_scene("ur5e"), t_ns=100 * MS)
    world.step_to(105 * MS)
    assert world.t_ns == 106 * MS
    world.step_to(106 * MS)
    assert world.t_ns == 106 * MS


def test_actors_act_before_every_step_at_its_time():
    world, witness = SimWorld(arm_scene("ur5e")), Witness()
    world.actors.append(witness)
    world.step_to(6 * MS)
    assert witness.times == [0, 2 * MS, 4 * MS]


def test_a_world_starts_where_its_scene_says():
    model = arm_scene("z1")
    assert np.array_equal(SimWorld(model).data.qpos, model.qpos_start)


def gripping(robot, tools, seconds):
    """Drive an arm about while its fingers close on a part; everything that can be seen of it."""
    made = plant(grasp_scene(robot, tools))
    drive, gripper, world = driver(made), made.devices.grippers[0], made.world
    drive.arm.start()
    gripper.start()
    q = drive.arm.read().q_rad
    gripper.write(grip(0, 0.0))

    def go(seconds: float) -> list[np.ndarray]:
        seen = []
        for _ in range(round(seconds / 0.004)):
            t_s = world.t_ns * 1e-9
            drive.send(q + 0.03 * np.sin(3.0 * t_s), seq=1 + world.t_ns // MS)
            world.step_to(world.t_ns + 4 * MS)
            state, fingers = drive.arm.read(), gripper.read()
            seen.append(
                np.concatenate(
                    [
                        world.data.qpos,
                        world.data.qvel,
                        state.tau_nm,
                        [fingers.opening_m, fingers.holding],
                    ]
                )
            )
        return seen

    go(seconds)
    return made, go


# Before, while and after the fingers meet the part: their force depends on what was last measured.
@pytest.mark.parametrize("seconds", [0.1, 0.184, 0.3, 0.6])
@pytest.mark.parametrize(
    ("robot", "tools"), [("ur5e", ("ft_sensor", "hand_e")), ("z1", ("z1_gripper",))]
)
def test_from_a_snapshot_a_world_goes_on_and_reads_bit_for_bit(robot, tools, seconds):
    made, go = gripping(robot, tools, seconds)
    before = made.world.snapshot()
    reading = made.devices.arms[0].read(), made.devices.grippers[0].read()
    once = go(0.2)
    made.world.restore(before)
    again = made.devices.arms[0].read(), made.devices.grippers[0].read()
    assert np.array_equal(reading[0].tau_nm, again[0].tau_nm)
    assert reading[1].opening_m == again[1].opening_m
    twice = go(0.2)
    first = next((k for k in range(50) if not np.array_equal(once[k], twice[k])), None)
    assert first is None, f"differs from step {first} after the snapshot on"


def test_a_snapshot_is_not_changed_by_what_happens_afterwards():
    made, go = gripping("ur5e", ("ft_sensor", "hand_e"), 0.1)
    before = made.world.snapshot()
    qpos = before.data.qpos.copy()
    go(0.1)
    assert np.array_equal(before.data.qpos, qpos)
