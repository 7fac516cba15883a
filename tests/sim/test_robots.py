"""Robots in physics: they hold, they follow, their fingers grip, their sensor weighs the tool."""

from __future__ import annotations

import itertools
import math

import mujoco
import numpy as np
import pytest

from brain.kinematics import flange_pose, tool_pose
from hardware.arm_model import arm_model
from sim.robots import open_fingers
from tests.sim.rigs import WRIST_CAMERA, Fingers, above, in_tool, rig

TOOLS = {
    "ur3e": ["ft_sensor", "hand_e"],
    "ur5e": ["ft_sensor", "hand_e"],
    "ur10e": ["ft_sensor", "hand_e"],
    "z1": ["z1_gripper"],
}
HOME = {
    "ur3e": np.radians((0.0, -90.0, 90.0, -90.0, -90.0, 0.0)),
    "ur5e": np.radians((0.0, -90.0, 90.0, -90.0, -90.0, 0.0)),
    "ur10e": np.radians((0.0, -90.0, 90.0, -90.0, -90.0, 0.0)),
    "z1": np.radians((0.0, 60.0, -60.0, 0.0, 0.0, 0.0)),
}
# Which way each joint goes, and how far compared with the others, in the motion of the tests.
WAY = {"z1": np.array((1.0, 0.6, -0.6, 0.6, 1.0, 1.0))}
UR_WAY = np.array((1.0, 1.0, -1.0, 1.0, 1.0, 1.0))


def there_and_back(t: float, far=0.8, v=1.0, a=5.0, rest=0.3) -> tuple[float, float]:
    """Position and speed of a trapezoid of 1 rad/s and 5 rad/s^2, out, rest, and back."""
    ramp = v / a
    total = far / v + ramp
    if t > total + rest:
        p, s = there_and_back(t - total - rest, far, v, a, math.inf)
        return far - p, -s
    if t < ramp:
        return 0.5 * a * t * t, a * t
    if t < total - ramp:
        return 0.5 * a * ramp * ramp + v * (t - ramp), v
    left = max(total - t, 0.0)
    return far - 0.5 * a * left * left, a * left


def worst_error(arm, q0, way, seconds=2.6):
    """Largest error (6,) of the motion against its own command, sampled every 2 ms."""
    arm.put(q0)
    worst = np.zeros(6)
    for k in range(round(seconds / 0.002)):
        p, v = there_and_back(k * 0.002)
        arm.step(q0 + way * p, way * v, 0.002)
        wanted = q0 + way * there_and_back((k + 1) * 0.002)[0]
        worst = np.maximum(worst, np.abs(arm.q_rad - wanted))
    return worst


# ---------------------------------------------------------------- the same arm as the brain's


@pytest.mark.parametrize("robot", list(TOOLS))
def test_physics_and_brain_put_flange_and_tool_at_the_same_place(robot):
    arm, rng, worst = rig(robot, TOOLS[robot]), np.random.default_rng(1), 0.0
    brain = arm_model(arm.assembly)
    for _ in range(20):
        q = rng.uniform(-1.0, 1.0, 6)
        arm.data.qpos[arm.qpos] = q
        mujoco.mj_kinematics(arm.model, arm.data)
        for site, T in (("flange", flange_pose(brain, q)), ("tool", tool_pose(brain, q))):
            here = arm.data.site(f"arm/{site}")
            worst = max(worst, float(np.abs(here.xpos - T[:3, 3]).max()))
            worst = max(worst, float(np.abs(here.xmat.reshape(3, 3) - T[:3, :3]).max()))
    print(f"worst {worst:.1e}, limit 1e-9")
    assert worst < 1e-9


def test_the_ur5e_weighs_what_its_description_says():
    arm = rig("ur5e", TOOLS["ur5e"], cameras=WRIST_CAMERA)
    expected = 4.0 + 17.7 + 0.3 + 0.98287 + 2 * 0.03804 + 0.072
    assert float(arm.model.body_mass.sum()) == pytest.approx(expected, abs=1e-9)


def test_the_ur5e_shoulder_has_its_mass_where_the_maker_says():
    # DH frame 1 is link 1 turned by 90 degrees about x: (0, -0.02561, 0.00193) is 26 mm below.
    arm = rig("ur5e", [])
    body = arm.model.body("arm/shoulder")
    assert np.allclose(body.ipos, (0.0, -0.00193, -0.02561), atol=1e-12)


def test_the_ur5e_look_is_light_enough_for_software_rendering():
    arm = rig("ur5e", TOOLS["ur5e"], cameras=WRIST_CAMERA)
    print(f"{arm.model.nmeshface} faces, limit 40000")
    assert arm.model.nmeshface < 40_000


# ---------------------------------------------------------------- servos


@pytest.mark.parametrize("robot", list(TOOLS))
def test_an_arm_at_rest_does_not_sag(robot):
    arm = rig(robot, TOOLS[robot])
    arm.put(HOME[robot] + 0.02)
    arm.step(HOME[robot], np.zeros(6), 1.5)
    error = float(np.abs(arm.q_rad - HOME[robot]).max())
    print(f"{robot}: {error * 1e3:.4f} mrad, limit 1 mrad")
    assert error < 1e-3


@pytest.mark.parametrize("timestep_s", [0.001, 0.002])
@pytest.mark.parametrize("robot", list(TOOLS))
def test_an_arm_follows_1_rad_s_and_5_rad_s2_within_5_mrad(robot, timestep_s):
    arm = rig(robot, TOOLS[robot], timestep_s)
    worst = worst_error(arm, HOME[robot], WAY.get(robot, UR_WAY))
    print(f"{robot}: {np.round(worst * 1e3, 2)} mrad, limit 5 mrad")
    assert worst.max() < 5e-3


@pytest.mark.parametrize("timestep_s", [0.001, 0.002])
@pytest.mark.parametrize(
    ("robot", "most_kg"), [("ur3e", 1.5), ("ur5e", 3), ("ur10e", 3), ("z1", 3)]
)
def test_an_arm_with_an_undeclared_payload_follows_and_comes_to_rest(robot, most_kg, timestep_s):
    # A UR3e carries 3 kg with its gripper, so 1.5 kg beyond it.
    arm = rig(robot, TOOLS[robot], timestep_s, payload_kg=most_kg)
    worst = worst_error(arm, HOME[robot], WAY.get(robot, UR_WAY), seconds=3.5)
    speed = float(np.abs(arm.data.qvel[arm.dof]).max())
    print(f"{robot}: {worst.max() * 1e3:.2f} mrad, limit 10; speed {speed:.1e} rad/s, limit 1e-4")
    assert worst.max() < 10e-3
    assert speed < 1e-4


def test_a_joint_never_gives_more_than_the_maker_s_torque():
    arm = rig("ur5e", TOOLS["ur5e"])
    arm.put(HOME["ur5e"])
    arm.step(HOME["ur5e"] + 3.0, np.zeros(6), 0.01)
    share = np.abs(arm.data.qfrc_actuator[arm.dof]) / (150, 150, 150, 28, 28, 28)
    print(f"shares of the limit {np.round(share, 3)}")
    assert share.max() == pytest.approx(1.0, abs=1e-9)


# ---------------------------------------------------------------- collisions with itself


@pytest.mark.parametrize("robot", ["ur3e", "ur5e", "ur10e", "z1"])
def test_bodies_that_the_description_does_not_pair_never_meet(robot):
    tools = ["z1_gripper"] if robot == "z1" else ["ft_sensor", "robotiq_2f85"]
    arm = rig(robot, tools, cameras=() if robot == "z1" else WRIST_CAMERA)
    model, data, joints = arm.model, arm.data, arm.assembly.arm.joints
    order = [arm.assembly.arm.base.name, *(joint.link.name for joint in joints), "tool"]
    geoms: dict[str, list[int]] = {name: [] for name in order}
    for g in range(model.ngeom):
        if model.geom_contype[g]:
            link = model.body(model.geom_bodyid[g]).name.removeprefix("arm/")
            geoms[link if link in order else "tool"].append(g)
    declared = {frozenset(pair) for pair in arm.assembly.arm.self_collision}
    # Neighbours share a joint; what is on the flange is bolted to the last link and turns before
    # the one before it.
    apart = [
        (a, b)
        for (i, a), (k, b) in itertools.combinations(enumerate(order), 2)
        if k - i > 1 and not (b == "tool" and i >= 5) and frozenset((a, b)) not in declared
    ]
    low = np.radians([joint.q_min_deg for joint in joints])
    high = np.radians([joint.q_max_deg for joint in joints])
    rng, worst = np.random.default_rng(4), math.inf
    for _ in range(1500):
        data.qpos[arm.qpos] = rng.uniform(low, high)
        mujoco.mj_kinematics(model, data)
        for a, b in apart:
            for g, h in itertools.product(geoms[a], geoms[b]):
                far = np.linalg.norm(data.geom_xpos[g] - data.geom_xpos[h])
                if far - model.geom_rbound[g] - model.geom_rbound[h] < 0.02:
                    worst = min(worst, mujoco.mj_geomDistance(model, data, g, h, 0.02, None))
    print(f"{robot}: pairs {apart}, nearest {worst * 1e3:.1f} mm, limit 0 mm")
    assert worst > 0.0


def test_an_arm_that_folds_onto_itself_makes_contact():
    arm = rig("ur5e", TOOLS["ur5e"])
    arm.put(np.radians((0.0, -90.0, 165.0, -90.0, -90.0, 0.0)))
    assert arm.data.ncon > 0
    arm.put(HOME["ur5e"])
    assert arm.data.ncon == 0


# ---------------------------------------------------------------- wrist sensor


def test_the_wrist_sensor_weighs_what_hangs_on_it_and_not_itself():
    arm = rig("ur5e", TOOLS["ur5e"])
    q = HOME["ur5e"]
    arm.put(q)
    arm.step(q, np.zeros(6), 1.0)
    force = arm.data.sensor("arm/force").data
    weight = (0.98287 + 2 * 0.03804) * 9.81
    print(f"force {force}, weight {weight:.3f} N")
    # The tool points down, so up is -z of the sensor; MuJoCo gives what carries the tool.
    assert np.allclose(force, (0.0, 0.0, -weight), atol=0.02)


# ---------------------------------------------------------------- grippers

REACH = {
    "hand_e": ("ur5e", ["ft_sensor", "hand_e"], (-0.45, -0.1, 0.10), (0, -90, 90, -90, -90, 0)),
    "robotiq_2f85": ("ur5e", ["robotiq_2f85"], (-0.45, -0.1, 0.10), (0, -90, 90, -90, -90, 0)),
    "z1_gripper": ("z1", ["z1_gripper"], (0.38, 0.0, -0.09), (0, 100, -70, 60, 0, 0)),
}


@pytest.mark.parametrize("name", list(REACH))
def test_fingers_open_and_close_together_over_their_whole_range(name):
    robot, tools, at_m, near = REACH[name]
    arm = rig(robot, tools)
    q = above(arm.assembly, at_m, near)
    arm.put(q)
    fingers, tool = Fingers(arm), arm.assembly.gripper.tool
    still = lambda t: (q, np.zeros(6))  # noqa: E731
    assert fingers.opening_m == pytest.approx(tool.opening_max_m, abs=1e-3)
    fingers.run(0.0, 50.0, 0.15, 1.2, still)
    print(f"closed to {fingers.opening_m * 1e3:.2f} mm, limit 0.5 mm")
    assert fingers.opening_m < 5e-4
    share = [
        (arm.data.joint(f"arm/{f}").qpos[0] - closed) / (opened - closed)
        for f, opened in open_fingers(tool, 1.0).items()
        for closed in [open_fingers(tool, 0.0)[f]]
    ]
    print(f"shares of the way {np.round(share, 3)}")
    assert np.ptp(share) < 0.02


@pytest.mark.parametrize(("force_n", "speed_m_s"), [(20.0, 0.02), (60.0, 0.05), (110.0, 0.15)])
def test_the_hand_e_presses_with_the_force_and_moves_with_the_speed_that_it_is_told(
    force_n, speed_m_s
):
    part = {"size": (0.0175, 0.02, 0.025), "mass_kg": 0.2, "at_m": (-0.45, -0.1, 0.095)}
    robot, tools, at_m, near = REACH["hand_e"]
    arm = rig(robot, tools, part=part)
    q = above(arm.assembly, at_m, near)
    arm.put(q)
    fingers = Fingers(arm)
    still = lambda t: (q, np.zeros(6))  # noqa: E731
    before = fingers.opening_m
    fingers.run(0.029, force_n, speed_m_s, 0.08, still)
    speed = (before - fingers.opening_m) / 0.08
    fingers.run(0.029, force_n, speed_m_s, 1.5, still)
    print(f"{fingers.force_n:.1f} N of {-force_n}, {speed:.3f} m/s of {speed_m_s}")
    assert fingers.force_n == pytest.approx(-force_n, abs=1.0)
    assert speed == pytest.approx(speed_m_s, rel=0.15)


CYLINDER = mujoco.mjtGeom.mjGEOM_CYLINDER


@pytest.mark.parametrize(
    ("name", "part", "force_n", "width_m"),
    [
        ("hand_e", {"size": (0.0175, 0.02, 0.025), "mass_kg": 0.2}, 60.0, 0.035),
        ("hand_e", {"size": (0.0175, 0.02, 0.025), "mass_kg": 0.2}, 20.0, 0.035),
        ("hand_e", {"size": (0.019, 0.025, 0.025), "mass_kg": 0.2, "type": CYLINDER}, 60.0, 0.038),
        ("robotiq_2f85", {"size": (0.0175, 0.02, 0.025), "mass_kg": 0.2}, 60.0, 0.035),
        ("z1_gripper", {"size": (0.015, 0.02, 0.025), "mass_kg": 0.2}, 40.0, 0.030),
        (
            "z1_gripper",
            {"size": (0.015, 0.025, 0.025), "mass_kg": 0.1, "type": CYLINDER},
            30.0,
            0.03,
        ),
    ],
)
def test_a_gripped_part_is_lifted_100_mm_and_slips_less_than_1_mm(name, part, force_n, width_m):
    robot, tools, at_m, near = REACH[name]
    arm = rig(robot, tools, part={**part, "at_m": np.add(at_m, (0.0, 0.0, -0.005))})
    q0 = above(arm.assembly, at_m, near)
    q1 = above(arm.assembly, np.add(at_m, (0.0, 0.0, 0.1)), np.degrees(q0))
    arm.put(q0)
    fingers = Fingers(arm)
    fingers.run(width_m - 0.006, force_n, 0.1, 1.2, lambda t: (q0, np.zeros(6)))
    gripped, stood_m = in_tool(arm, "part"), float(arm.data.body("part").xpos[2])

    def lift(t):
        u = min(t / 1.5, 1.0)
        return q0 + (q1 - q0) * u * u * (3 - 2 * u), (q1 - q0) * 6 * u * (1 - u) / 1.5

    fingers.run(width_m - 0.006, force_n, 0.1, 3.0, lift)
    slip = np.linalg.norm(in_tool(arm, "part")[:3, 3] - gripped[:3, 3])
    lifted = float(arm.data.body("part").xpos[2]) - stood_m
    print(f"{name}: lifted {lifted * 1e3:.1f} mm, slipped {slip * 1e3:.3f} mm, limit 1 mm")
    assert lifted == pytest.approx(0.1, abs=2e-3)
    assert slip < 1e-3


def test_a_part_that_is_not_gripped_stays_where_it_is():
    robot, tools, at_m, near = REACH["hand_e"]
    part = {"size": (0.0175, 0.02, 0.025), "mass_kg": 0.2, "at_m": np.add(at_m, (0, 0, -0.005))}
    arm = rig(robot, tools, part=part)
    q0 = above(arm.assembly, at_m, near)
    q1 = above(arm.assembly, np.add(at_m, (0.0, 0.0, 0.1)), np.degrees(q0))
    arm.put(q0)
    fingers, stood_m = Fingers(arm), float(arm.data.body("part").xpos[2])
    fingers.run(0.05, 60.0, 0.1, 1.0, lambda t: (q0 + (q1 - q0) * t, q1 - q0))
    assert float(arm.data.body("part").xpos[2]) == pytest.approx(stood_m, abs=1e-3)
