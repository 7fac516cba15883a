import mujoco
import numpy as np
import pytest

from brain.errors import ConfigError
from brain.geometry import rotvec_to_matrix, transform
from brain.kinematics import tool_pose
from hardware.status import ObjectStatus, Status
from tests.values import replace
from tests.vr.cells import arm_status, cell, model, status
from vr.belief import Joints, believe, joints_of


def shown(name: str, said: Status):
    scene = model(name)
    data = mujoco.MjData(scene.model)
    data.qpos[:] = scene.qpos_start
    joints = joints_of(scene.model, cell(name), scene.qpos_start)
    believe(scene.model, data, joints, said)
    return scene, data


@pytest.mark.parametrize("name", ["bench_pick", "z1_bench"])
def test_the_pictures_tool_is_where_the_brains_kinematics_say(name):
    arm = cell(name).arms[0]
    q = np.array(arm.home_q_rad) + 0.1
    scene, data = shown(name, status(arms=(arm_status(arm.name, q, None),)))
    tool = data.site(f"{arm.name}/tool").xpos
    wanted = (arm.T_world_base @ tool_pose(arm.model, q))[:3, 3]
    print(f"{1e6 * np.linalg.norm(tool - wanted):.3f} um apart, at most 1 um")
    assert np.allclose(tool, wanted, atol=1e-6)


@pytest.mark.parametrize("name", ["bench_pick", "z1_bench"])
@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_the_pictures_fingers_are_as_far_apart_as_the_gripper_says(name, share):
    arm = cell(name).arms[0]
    gripper = arm.model.gripper
    opening = gripper.opening_min_m + share * (gripper.opening_max_m - gripper.opening_min_m)
    scene, data = shown(name, status(arms=(arm_status(arm.name, arm.home_q_rad, opening),)))
    mujoco.mj_fwdPosition(scene.model, data)
    tendon = scene.arms[0].grip_tendon
    closed = shown(name, status(arms=(arm_status(arm.name, arm.home_q_rad, 0.0),)))[1]
    mujoco.mj_fwdPosition(scene.model, closed)
    apart = float(data.ten_length[tendon] - closed.ten_length[tendon])
    print(f"fingers {1000 * apart:.2f} mm apart, said {1000 * opening:.2f} mm, within 10 %")
    assert apart == pytest.approx(opening, rel=0.1, abs=1e-4)


def test_a_part_is_where_the_cell_believes_it():
    T = transform((0.1, 0.2, 1.3), rotvec_to_matrix(np.array((0.1, 0.2, 0.3))))
    said = status(objects=(ObjectStatus(name="red_block", T_world_object=T),))
    _, data = shown("bench_pick", said)
    body = data.body("red_block")
    assert np.allclose(body.xpos, T[:3, 3], atol=1e-9)
    assert np.allclose(body.xmat.reshape(3, 3), T[:3, :3], atol=1e-9)


def test_a_moving_object_is_where_the_cell_believes_it():
    scene = model("moving_obstacle")
    name = next(iter(scene.moving_mocap))
    T = transform((0.4, 0.5, 0.6))
    _, data = shown("moving_obstacle", status(objects=(ObjectStatus(name=name, T_world_object=T),)))
    assert np.allclose(data.body(name).xpos, T[:3, 3], atol=1e-9)


def test_an_arm_that_says_nothing_stays_as_it_was():
    arm = cell().arms[0]
    scene, data = shown("bench_pick", status(arms=(arm_status(arm.name, None, None),)))
    assert np.array_equal(data.qpos, scene.qpos_start)


def test_an_object_that_the_picture_does_not_know_is_left_out():
    said = status(objects=(ObjectStatus(name="elephant", T_world_object=np.eye(4)),))
    scene, data = shown("bench_pick", said)
    assert np.array_equal(data.qpos, scene.qpos_start)


def test_a_model_of_another_cell_is_refused_by_name_of_the_joint():
    other = replace(cell().arms[0], name="kuka")
    with pytest.raises(ConfigError, match="kuka/"):
        Joints(model().model, other, model().qpos_start)
