"""Descriptions give known kinematics, spheres that enclose, and clear refusals."""

from __future__ import annotations

import math

import numpy as np
import pytest
import yaml

from brain.errors import ConfigError
from brain.geometry import invert, rpy_to_matrix, transform
from brain.kinematics import flange_pose, links, tool_pose
from brain.robot import GROUP_FINGER
from brain.world import BOX, CAPSULE, CYLINDER
from hardware.arm_model import arm_model, assemble, load_arm
from hardware.chain import Calibration, calibrated_chain
from hardware.description import Arm, Gripper, load_arm_description, load_camera, load_tool
from hardware.fingers import finger_frames, grip_distance_m
from hardware.shapes import Box, Cylinder, Sphere, solid
from hardware.strict import check, data_folder, load, read_yaml
from tests.brain.arms import UR_ALPHA_RAD, UR_DH, dh_transform

WRIST_CAMERA = [("wrist", "d435i", transform((-0.0325, -0.1, 0.012)))]
STACKS = {
    "ur3e": ["ft_sensor", "robotiq_2f85"],
    "ur5e": ["ft_sensor", "hand_e"],
    "ur10e": ["ft_sensor", "robotiq_2f85"],
    "z1": ["z1_gripper"],
}
HOMES_DEG = {
    "ur3e": (0, -90, 90, -90, -90, 0),
    "ur5e": (0, -90, 90, -90, -90, 0),
    "ur10e": (0, -90, 90, -90, -90, 0),
    "z1": (0, 100, -70, 60, 0, 0),
}


def dressed(robot: str):
    return assemble(robot, STACKS[robot], cameras=[] if robot == "z1" else WRIST_CAMERA)


# ---------------------------------------------------------------- kinematics


def test_the_ur5e_flange_at_zero_is_where_the_dh_table_puts_it():
    at = flange_pose(load_arm("ur5e"), np.zeros(6))[:3, 3]
    expected = (-0.425 - 0.3922, -0.1333 - 0.0996, 0.1625 - 0.0997)  # a2 + a3, -d4 - d6, d1 - d5
    print("flange", at, "expected", expected)
    assert np.allclose(at, expected, atol=1e-12)


@pytest.mark.parametrize("robot", ["ur3e", "ur5e", "ur10e"])
def test_a_ur_chain_is_the_product_of_its_dh_matrices(robot):
    rng, model, worst = np.random.default_rng(1), load_arm(robot), 0.0
    a_m, d_m = UR_DH[robot]
    for _ in range(50):
        q = rng.uniform(-math.pi, math.pi, 6)
        T = np.eye(4)
        for i in range(6):
            T = T @ dh_transform(q[i], d_m[i], a_m[i], UR_ALPHA_RAD[i])
        worst = max(worst, float(np.abs(T - flange_pose(model, q)).max()))
    print("worst", worst, "limit 1e-12")
    assert worst < 1e-12


@pytest.mark.parametrize(
    ("q_rad", "expected_m", "pitch_rad"),
    [
        ((0, 0, 0, 0, 0, 0), (0.0872, 0.0, 0.1605), 0.0),
        ((0, 1.5, -1, -0.54, 0, 0), (0.412907, 0.0, 0.406896), -0.04),
    ],
)
def test_the_z1_agrees_with_unitrees_library(q_rad, expected_m, pitch_rad):
    # Source: figures of Unitree's closed library for its gripper frame, 49 mm before the flange.
    T = flange_pose(load_arm("z1"), np.array(q_rad, dtype=float)) @ transform((0, 0, 0.049))
    print("at", T[:3, 3], "expected", expected_m)
    assert np.allclose(T[:3, 3], expected_m, atol=1e-6)
    assert -math.asin(T[2, 2]) == pytest.approx(pitch_rad, abs=1e-9)  # z is what the URDF calls x


def test_the_maker_s_limits_are_taken_as_published():
    ur, z1 = load_arm("ur5e").limits, load_arm("z1").limits
    assert np.allclose(ur.q_max_rad, 2 * math.pi)
    assert np.allclose(ur.tau_max_nm, (150, 150, 150, 28, 28, 28))
    assert np.allclose(z1.q_max_rad[:3], (2.61799, 2.879793, 0.0), atol=1e-5)
    assert np.allclose(z1.q_min_rad[:3], (-2.61799, 0.0, -2.87979), atol=1e-5)


@pytest.mark.parametrize(
    ("robot", "expected_kg"),
    [("ur3e", 8.7985), ("ur5e", 17.7), ("ur10e", 29.104), ("z1", 3.94624545)],
)
def test_the_moving_links_weigh_what_the_maker_says(robot, expected_kg):
    mass = sum(joint.link.mass_kg for joint in load_arm_description(robot).joints)
    assert mass == pytest.approx(expected_kg, abs=1e-9)


def test_the_tool_weighs_all_that_is_beyond_the_flange():
    model = load_arm("ur5e", ["ft_sensor", "hand_e"])
    assert model.tool_mass_kg == pytest.approx(0.3 + 0.98287 + 2 * 0.03804, abs=1e-9)
    assert model.T_flange_tool[2, 3] == pytest.approx(0.0375 + 0.1445)
    assert abs(model.tool_com_m[0]) < 1e-12


# ---------------------------------------------------------------- grippers


@pytest.mark.parametrize("name", ["hand_e", "robotiq_2f85", "z1_gripper"])
def test_a_gripper_opens_as_far_as_it_says(name):
    tool = load_tool(name)
    opened = grip_distance_m(tool, 1.0) - grip_distance_m(tool, 0.0)
    print(f"opens {opened * 1e3:.3f} mm, says {tool.opening_max_m * 1e3:.3f} mm, limit 0.6 mm")
    assert opened == pytest.approx(tool.opening_max_m, abs=6e-4)


def test_the_2f85_pads_follow_the_published_height_and_stay_parallel():
    # Source: PyPI robotiq2f 0.2.0.
    tool = load_tool("robotiq_2f85")
    for share in np.linspace(0, 1, 9):
        frames = finger_frames(tool, float(share))
        opening = grip_distance_m(tool, float(share)) - grip_distance_m(tool, 0.0)
        d_mm = opening * 500 + 7.8
        height_mm = 87.308 + 57.15 * math.sqrt(1 - (abs(12.7 - d_mm) / 57.15) ** 2)
        tip = frames["right_tip"]
        assert np.allclose(tip[:3, :3], np.eye(3), atol=1e-6)
        assert (tip[2, 3] + 0.0271) * 1e3 == pytest.approx(height_mm, abs=0.02)


# ---------------------------------------------------------------- spheres


def surface(item, rng, n):
    """Random points (n, 3) on a solid's surface, in its owner's frame."""
    direction = rng.normal(size=(n, 3))
    direction /= np.linalg.norm(direction, axis=1, keepdims=True)
    if item.kind == BOX:
        p = rng.uniform(-1, 1, (n, 3))
        side = rng.integers(0, 3, n)
        p[np.arange(n), side] = np.sign(p[np.arange(n), side])
        p *= item.size_m
    elif item.kind in (CYLINDER, CAPSULE):
        r, half = item.size_m[0], item.size_m[1]
        angle, z = rng.uniform(0, 2 * math.pi, n), rng.uniform(-half, half, n)
        p = np.column_stack([r * np.cos(angle), r * np.sin(angle), z])
        ends = rng.random(n) < 0.4
        if item.kind == CYLINDER:
            p[ends, :2] *= np.sqrt(rng.random(ends.sum()))[:, None]
            p[ends, 2] = half * np.sign(z[ends])
        else:
            p[ends] = r * direction[ends]
            p[ends, 2] += half * np.sign(direction[ends, 2])
    else:
        p = item.size_m[0] * direction
    return p @ item.T_owner_shape[:3, :3].T + item.T_owner_shape[:3, 3]


def outside_m(points, spheres, rows):
    """How far the worst point is outside all of some spheres."""
    apart = np.linalg.norm(points[:, None] - spheres.centre_m[rows][None], axis=2)
    return float((apart - spheres.radius_m[rows][None]).min(axis=1).max())


@pytest.mark.parametrize("robot", list(STACKS))
def test_spheres_enclose_every_link(robot):
    rng, assembly = np.random.default_rng(2), dressed(robot)
    model = arm_model(assembly)
    bodies = [assembly.arm.base, *(joint.link for joint in assembly.arm.joints)]
    for link, body in enumerate(bodies):
        rows = np.array([i for i, name in enumerate(model.spheres.name) if name == body.name])
        assert np.all(model.spheres.link[rows] == link)
        for shape in body.collision:
            worst = outside_m(surface(solid(shape), rng, 400), model.spheres, rows)
            assert worst <= 1e-9, f"{body.name}: a point is {worst * 1e3:.3f} mm outside"


@pytest.mark.parametrize("robot", list(STACKS))
def test_spheres_enclose_tools_and_fingers_at_every_opening(robot):
    rng, assembly = np.random.default_rng(3), dressed(robot)
    model = arm_model(assembly)
    last = np.flatnonzero(model.spheres.link == 6)
    fingers = np.flatnonzero(model.spheres.group == GROUP_FINGER)
    T_link_flange = assembly.chain.T_link_flange
    for item in assembly.tools:
        T = T_link_flange @ item.T_flange_mount
        for shape in item.tool.body.collision:
            points = surface(solid(shape), rng, 300) @ T[:3, :3].T + T[:3, 3]
            assert outside_m(points, model.spheres, last) <= 1e-9
        if not isinstance(item.tool, Gripper):
            continue
        for share in rng.uniform(0, 1, 25):
            frames = finger_frames(item.tool, float(share))
            for body in (item.tool.body, *(f.body for f in item.tool.fingers)):
                moving = body is not item.tool.body
                for shape in (*body.pads, *(body.collision if moving else ())):
                    T_body = T @ frames[body.name]
                    points = surface(solid(shape), rng, 60) @ T_body[:3, :3].T + T_body[:3, 3]
                    worst = outside_m(points, model.spheres, fingers)
                    assert worst <= 1e-9, f"{body.name} at {share:.2f}: {worst * 1e3:.2f} mm"
    for mounted in assembly.cameras:
        T = T_link_flange @ mounted.T_flange_optical @ invert(mounted.camera.T_body_optical())
        for shape in mounted.camera.body.collision:
            points = surface(solid(shape), rng, 300) @ T[:3, :3].T + T[:3, 3]
            assert outside_m(points, model.spheres, last) <= 1e-9


@pytest.mark.parametrize(("robot", "most"), [("ur5e", 90), ("z1", 75)])
def test_an_arm_takes_few_spheres(robot, most):
    count = len(arm_model(dressed(robot)).spheres.name)
    print(f"{robot}: {count} spheres, limit {most}")
    assert count <= most


def test_spheres_along_a_tube_are_hardly_wider_than_the_tube():
    for robot in STACKS:
        arm = load_arm_description(robot)
        model = load_arm(robot)
        for joint in arm.joints:
            radii = [s.radius_m for s in joint.link.collision if not isinstance(s, Box)]
            rows = [i for i, name in enumerate(model.spheres.name) if name == joint.link.name]
            wide = max(model.spheres.radius_m[rows]) - max(radii)
            assert wide <= max(0.05 * max(radii), 0.003) + 1e-12


@pytest.mark.parametrize("robot", list(STACKS))
def test_no_self_pair_touches_at_home(robot):
    model = arm_model(dressed(robot))
    T = np.zeros((7, 4, 4))
    links(model.arrays, np.radians(np.array(HOMES_DEG[robot], dtype=float)), T)
    frames = T[model.spheres.link]
    centre = np.einsum("nij,nj->ni", frames[:, :3, :3], model.spheres.centre_m) + frames[:, :3, 3]
    i, j = model.self_pairs.T
    gap = np.linalg.norm(centre[i] - centre[j], axis=1)
    gap -= model.spheres.radius_m[i] + model.spheres.radius_m[j]
    k = int(np.argmin(gap))
    pair = f"{model.spheres.name[i[k]]} and {model.spheres.name[j[k]]}"
    print(f"{robot}: nearest {pair}, {gap[k] * 1e3:.1f} mm, limit 0 mm")
    assert gap[k] > 0.0


def test_the_tool_points_away_from_the_arm():
    for robot in STACKS:
        model = arm_model(dressed(robot))
        q = np.radians(np.array(HOMES_DEG[robot], dtype=float))
        T_flange, T_tool = flange_pose(model, q), tool_pose(model, q)
        assert T_flange[:3, 2] @ (T_tool[:3, 3] - T_flange[:3, 3]) > 0.1
        assert T_tool[2, 2] == pytest.approx(-1.0, abs=1e-9)  # straight down at these homes


# ---------------------------------------------------------------- calibration


def test_a_calibration_changes_the_chain_and_keeps_the_nominal_one():
    path = data_folder("assets") / "calibration" / "ur5e_example.yaml"
    model = load_arm("ur5e", calibration=path)
    q = np.radians((10.0, -80.0, 70.0, -60.0, -90.0, 20.0))
    moved = np.linalg.norm(flange_pose(model, q)[:3, 3] - flange_pose(load_arm("ur5e"), q)[:3, 3])
    print(f"flange moved by {moved * 1e3:.2f} mm")
    assert 1e-4 < moved < 5e-3
    assert np.array_equal(model.nominal.T_link_joint, load_arm("ur5e").nominal.T_link_joint)


def test_a_calibration_of_nominal_values_gives_the_nominal_chain(tmp_path):
    arm = load_arm_description("ur5e")
    nominal = load_arm("ur5e").nominal
    rows = {}
    for joint, T in zip(arm.joints, nominal.T_link_joint, strict=True):
        roll = math.atan2(T[2, 1], T[2, 2])
        assert np.allclose(rpy_to_matrix((roll, 0, 0)), T[:3, :3])
        x, y, z = (float(v) for v in T[:3, 3])
        rows[joint.link.name] = {
            "x_m": x,
            "y_m": y,
            "z_m": z,
            "roll_rad": roll,
            "pitch_rad": 0.0,
            "yaw_rad": 0.0,
        }
    file = {
        "kind": "calibration",
        "robot": "ur5e",
        "serial": "1",
        "hash": "h",
        "source": "test",
        "joints": rows,
    }
    path = tmp_path / "c.yaml"
    path.write_text(yaml.safe_dump(file))
    chain = calibrated_chain(arm, nominal, path)
    assert np.abs(chain.T_link_joint - nominal.T_link_joint).max() < 1e-12


def test_a_calibration_for_another_robot_is_refused():
    path = data_folder("assets") / "calibration" / "ur5e_example.yaml"
    with pytest.raises(ConfigError, match="is for 'ur5e', the scene's arm is 'ur3e'"):
        load_arm("ur3e", calibration=path)


def test_a_calibration_without_a_link_is_refused(tmp_path):
    file = read_yaml(data_folder("assets") / "calibration" / "ur5e_example.yaml")
    del file["joints"]["wrist_2"]
    path = tmp_path / "c.yaml"
    path.write_text(yaml.safe_dump(file))
    load(path, Calibration)
    with pytest.raises(ConfigError, match="must be exactly shoulder, upper_arm"):
        load_arm("ur5e", calibration=path)


# ---------------------------------------------------------------- refusals


def changed(name, change):
    file = read_yaml(data_folder("assets") / f"{name}.yaml")
    change(file)
    return file


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda f: f.update(reach_mm=850), "reach_mm: unknown key; did you mean 'reach_m'"),
        (
            lambda f: f["joints"][0].update(q_max_rad=6.28),
            "joints.0.q_max_rad: unknown key; did you mean 'q_max_deg'",
        ),
        (
            lambda f: f["joints"][1]["link"]["collision"][0].update(radius_mm=58),
            "radius_mm: unknown key; did you mean 'radius_m'",
        ),
        (lambda f: f.update(payload_kg=math.nan), "payload_kg: must be a finite number, got nan"),
        (
            lambda f: f["base"].update(com_m=[0, math.inf, 0]),
            "base.com_m.1: must be a finite number",
        ),
        (lambda f: f.update(payload_kg="5 kg"), 'payload_kg: should be a valid number, got "5 kg"'),
        (lambda f: f.update(payload_kg=-5), "payload_kg: should be greater than 0, got -5"),
        (lambda f: f.pop("reach_m"), "reach_m: is missing"),
        (lambda f: f["joints"][2].update(q_min_deg=400), "q_min_deg 400.0 is not below"),
        (lambda f: f["joints"][2].update(dh=None), "needs either dh or origin"),
        (
            lambda f: f["base"]["inertia_kg_m2"].update(zz=1.0),
            "no body has principal moments",
        ),
        (
            lambda f: f["self_collision"].append(["base", "elbow"]),
            "self_collision: no body 'elbow', only base, shoulder",
        ),
    ],
)
def test_a_wrong_description_is_refused_with_key_and_value(change, words):
    with pytest.raises(ConfigError) as error:
        check(changed("ur5e", change), Arm, "ur5e.yaml")
    print(error.value)
    assert str(error.value).startswith("ur5e.yaml: ")
    assert words in str(error.value)


def test_a_key_that_stands_twice_is_refused(tmp_path):
    path = tmp_path / "a.yaml"
    path.write_text("kind: arm\nname: a\nname: b\n")
    with pytest.raises(ConfigError, match="key 'name' stands twice"):
        load(path, Arm)


def test_what_is_not_yaml_or_not_there_is_refused(tmp_path):
    path = tmp_path / "a.yaml"
    path.write_text("kind: [arm\n")
    with pytest.raises(ConfigError, match="not YAML"):
        load(path, Arm)
    with pytest.raises(ConfigError, match="no such file"):
        load(tmp_path / "b.yaml", Arm)


def test_unknown_and_misplaced_descriptions_are_refused():
    with pytest.raises(ConfigError, match="no description 'ur6e'.*ur5e"):
        load_arm("ur6e")
    with pytest.raises(ConfigError, match="kind: should be 'arm'"):
        load_arm("hand_e")
    with pytest.raises(ConfigError, match="a tool is a gripper or a sensor, got 'camera'"):
        load_arm("ur5e", ["d435i"])
    with pytest.raises(ConfigError, match="a gripper ends the stack"):
        load_arm("ur5e", ["hand_e", "ft_sensor"])
    with pytest.raises(ConfigError, match="kind: should be 'camera'"):
        load_camera("ur5e")


def test_numbers_with_an_exponent_but_no_point_are_numbers(tmp_path):
    path = tmp_path / "a.yaml"
    path.write_text("a: 1e-3\nb: -2E+2\nc: 1e\n")
    assert read_yaml(path) == {"a": 1e-3, "b": -200.0, "c": "1e"}


def test_shapes_are_halved_once():
    box = solid(Box(shape="box", size_m=(0.2, 0.4, 0.6)))
    tube = solid(Cylinder(shape="cylinder", from_m=(1, 0, 0), to_m=(1, 0.4, 0), radius_m=0.1))
    ball = solid(Sphere(shape="sphere", centre_m=(1, 2, 3), radius_m=0.5))
    assert np.allclose(box.size_m, (0.1, 0.2, 0.3))
    assert np.allclose(tube.size_m, (0.1, 0.2, 0.0))
    assert np.allclose(tube.T_owner_shape[:3, 3], (1, 0.2, 0))
    assert np.allclose(tube.T_owner_shape[:3, 2], (0, 1, 0))
    assert np.allclose(ball.size_m, (0.5, 0, 0))
