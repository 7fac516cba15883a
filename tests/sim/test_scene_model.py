"""Scenes as MuJoCo models: at rest at the start, all with an owner, official looks on request."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

from brain.errors import ConfigError
from brain.geometry import pose_transform
from hardware.resolve import resolve
from hardware.scene import camera_specs, load_scene, resolved_from, world_of
from hardware.scene_file import Scene
from hardware.strict import check, data_folder, read_yaml
from sim.scene import build_model

SCENES = ("bench_pick", "z1_bench", "two_arms", "moving_obstacle")


@pytest.fixture(scope="module")
def built():
    return {name: build_model(resolve(load_scene(name), 1)) for name in SCENES}


def started(scene):
    data = mujoco.MjData(scene.model)
    data.qpos[:] = scene.qpos_start
    for arm in scene.arms:
        data.ctrl[arm.actuator] = data.qpos[arm.qpos]
        if arm.grip_actuator is not None:
            data.ctrl[arm.grip_actuator] = arm.assembly.gripper.tool.opening_max_m
    mujoco.mj_forward(scene.model, data)
    return data


@pytest.mark.parametrize("name", SCENES)
def test_no_arm_touches_anything_at_the_start(built, name):
    scene = built[name]
    data, arms = started(scene), {arm.name for arm in scene.arms}
    touching = [
        (scene.geom_owner[c.geom1], scene.geom_owner[c.geom2])
        for c in data.contact
        if {scene.geom_owner[c.geom1], scene.geom_owner[c.geom2]} & arms
    ]
    assert touching == []


@pytest.mark.parametrize("name", SCENES)
def test_arms_and_parts_stay_where_they_start(built, name):
    scene = built[name]
    data = started(scene)
    for _ in range(round(1.0 / scene.model.opt.timestep)):
        mujoco.mj_step(scene.model, data)
    for arm in scene.arms:
        error = float(np.abs(data.qpos[arm.qpos] - scene.qpos_start[arm.qpos]).max())
        print(f"{arm.name}: {error * 1e3:.4f} mrad, limit 0.2 mrad")
        assert error < 2e-4
    for part, at in scene.part_qpos.items():
        moved = np.linalg.norm(data.qpos[at : at + 3] - scene.qpos_start[at : at + 3])
        print(f"{part}: {moved * 1e3:.3f} mm, limit 0.5 mm")
        assert moved < 5e-4


@pytest.mark.parametrize("name", SCENES)
def test_physics_has_every_object_where_the_brain_has_it(built, name):
    scene = built[name]
    data = started(scene)
    for item in world_of(scene.resolved).objects:
        body = data.body(item.name)
        T = pose_transform(body.xpos, body.xquat)
        assert np.allclose(T, item.T_world_object, atol=1e-9)
        geoms = [i for i, owner in enumerate(scene.geom_owner) if owner == item.name]
        assert len(geoms) == len(item.kinds)
        assert all(scene.geom_group[i] == item.role for i in geoms)


def test_every_geom_that_collides_has_an_owner_and_those_only_seen_have_none(built):
    scene = built["two_arms"]
    for i in range(scene.model.ngeom):
        collides = bool(scene.model.geom_contype[i])
        assert bool(scene.geom_owner[i]) == collides
        assert bool(scene.geom_group[i]) == collides
    ur5e = [i for i, owner in enumerate(scene.geom_owner) if owner == "ur5e"]
    names = {scene.model.body(scene.model.geom_bodyid[i]).name for i in ur5e}
    assert {"ur5e/base", "ur5e/wrist_3", "ur5e/ft_sensor", "wrist/d435i"} <= names
    group = {scene.model.body(scene.model.geom_bodyid[i]).name: scene.geom_group[i] for i in ur5e}
    assert group["ur5e/base"] == "base"
    assert group["ur5e/forearm"] == group["wrist/d435i"] == "arm"
    assert group["ur5e/left_finger"] == "fingers"
    fixed_jaw = [i for i in range(scene.model.ngeom) if "/pad/" in scene.model.geom(i).name]
    assert {scene.geom_group[i] for i in fixed_jaw} == {"fingers"}


def test_parts_have_the_mass_and_friction_of_the_resolved_scene(built):
    scene = built["bench_pick"]
    for name, body in scene.part_body.items():
        item = scene.resolved.scene.object(name)
        assert scene.model.body_mass[body] == pytest.approx(item.mass_kg, rel=1e-9)
        geom = scene.model.body_geomadr[body]
        assert scene.model.geom_friction[geom, 0] == pytest.approx(item.friction, rel=1e-9)


def test_a_moving_object_is_driven_and_starts_on_its_schedule(built):
    scene = built["moving_obstacle"]
    mocap = scene.moving_mocap["trolley"]
    assert np.allclose(started(scene).mocap_pos[mocap], (1.8, 0.285, 0.0))


@pytest.mark.parametrize("name", SCENES)
def test_a_camera_sees_as_its_intrinsics_say(built, name):
    scene = built[name]
    data = started(scene)
    for spec in camera_specs(scene.resolved):
        camera = scene.camera_id[spec.name]
        focal = 0.5 * spec.height_px / np.tan(0.5 * np.radians(scene.model.cam_fovy[camera]))
        assert focal == pytest.approx(spec.K_px[1, 1], rel=1e-9)
        if spec.mount == "world":
            looks = -data.cam_xmat[camera].reshape(3, 3)[:, 2]
            assert np.allclose(looks, spec.T_mount_optical[:3, 2], atol=1e-9)
            assert np.allclose(data.cam_xpos[camera], spec.T_mount_optical[:3, 3], atol=1e-9)
        else:
            (arm,) = [a for a in scene.arms if a.name == spec.mount]
            R = data.site_xmat[arm.flange_site].reshape(3, 3)
            at = data.site_xpos[arm.flange_site] + R @ spec.T_mount_optical[:3, 3]
            assert np.allclose(data.cam_xpos[camera], at, atol=1e-9)


def test_equal_texts_give_equal_physics(built):
    again = build_model(resolve(load_scene("z1_bench"), 1))
    assert again.resolved.digest == built["z1_bench"].resolved.digest
    one, two = started(built["z1_bench"]), started(again)
    for _ in range(200):
        mujoco.mj_step(built["z1_bench"].model, one)
        mujoco.mj_step(again.model, two)
    assert np.array_equal(one.qpos, two.qpos)


def test_the_arm_ids_lead_to_its_joints_and_sensors(built):
    scene = built["bench_pick"]
    (arm,) = scene.arms
    for k, joint in enumerate(arm.assembly.arm.joints):
        found = scene.model.joint(f"ur5e/{joint.name}")
        assert (arm.qpos[k], arm.dof[k]) == (found.qposadr[0], found.dofadr[0])
        assert scene.model.actuator_trnid[arm.actuator[k], 0] == found.id
    assert scene.model.site(arm.sensor_site).name == "ur5e/ft"
    assert arm.torque_adr - arm.force_adr == 3
    assert built["z1_bench"].arms[0].sensor_site is None


def test_a_tick_that_is_no_whole_number_of_steps_is_refused():
    file = read_yaml(data_folder("scenes") / "z1_bench.yaml")
    file["tick_ms"] = 5
    file["arms"][0]["period_ms"] = 5
    scene = check(file, Scene, "z1_bench.yaml")
    with pytest.raises(ConfigError, match="physics steps 2 ms at a time, got 5"):
        build_model(resolved_from(scene, 0))


# ---------------------------------------------------------------- official looks


def test_official_models_are_never_fetched_but_asked_for(monkeypatch, tmp_path, built):
    resolved = built["z1_bench"].resolved
    monkeypatch.delenv("MENAGERIE_ROOT", raising=False)
    with pytest.raises(ConfigError, match="needs MENAGERIE_ROOT set.*nothing is downloaded"):
        build_model(resolved, models="menagerie")
    monkeypatch.setenv("MENAGERIE_ROOT", str(tmp_path))
    with pytest.raises(ConfigError, match="has no unitree_z1/z1_gripper.xml"):
        build_model(resolved, models="menagerie")
    with pytest.raises(ConfigError, match="must be forearm or menagerie, got 'nice'"):
        build_model(resolved, models="nice")


TETRAHEDRON = "v 0 0 0\nv 0.1 0 0\nv 0 0.1 0\nv 0 0 0.1\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n"


def test_official_meshes_replace_the_look_and_nothing_else(monkeypatch, tmp_path, built):
    # A checkout with the UR5e's bodies at their places in that file, and one mesh for all.
    folder = tmp_path / "universal_robots_ur5e"
    (folder / "assets").mkdir(parents=True)
    (folder / "assets" / "bit.obj").write_text(TETRAHEDRON)
    links = [
        ("shoulder_link", "0 0 0.163", "1 0 0 0", "0 0 1"),
        ("upper_arm_link", "0 0.138 0", "1 0 1 0", "0 1 0"),
        ("forearm_link", "0 -0.131 0.425", "1 0 0 0", "0 1 0"),
        ("wrist_1_link", "0 0 0.392", "1 0 1 0", "0 1 0"),
        ("wrist_2_link", "0 0.127 0", "1 0 0 0", "0 0 1"),
        ("wrist_3_link", "0 0 0.1", "1 0 0 0", "0 1 0"),
    ]
    seen = '<geom class="visual" mesh="bit" material="grey"/>'
    bodies = "".join(
        f'<body name="{n}" pos="{p}" quat="{q}"><joint axis="{a}"/>{seen}'
        '<geom size="0.01" group="3"/>'
        for n, p, q, a in links
    )
    (folder / "ur5e.xml").write_text(
        '<mujoco><compiler meshdir="assets"/><default><default class="visual">'
        '<geom type="mesh" contype="0" conaffinity="0" group="2"/></default></default>'
        '<asset><material name="grey" rgba="0.8 0.8 0.8 1"/><mesh file="bit.obj"/></asset>'
        f'<worldbody><body name="base" quat="1 0 0 1">{seen}{bodies}'
        + "</body>" * 7
        + "</worldbody></mujoco>"
    )
    monkeypatch.setenv("MENAGERIE_ROOT", str(tmp_path))
    ours = built["bench_pick"]
    theirs = build_model(ours.resolved, models="menagerie")
    assert theirs.model.nq == ours.model.nq
    assert np.array_equal(theirs.model.body_mass, ours.model.body_mass)
    assert np.array_equal(theirs.model.body_pos, ours.model.body_pos)
    official = [
        i for i in range(theirs.model.nmesh) if theirs.model.mesh(i).name.endswith("menagerie/bit")
    ]
    assert len(official) == 1
    used = [i for i in range(theirs.model.ngeom) if theirs.model.geom_dataid[i] == official[0]]
    assert len(used) == 7
    # Their wrist 3 at zero joints is within the rounding of their lengths of ours, whose origin is
    # on the flange instead of the joint before it.
    data = mujoco.MjData(theirs.model)
    mujoco.mj_kinematics(theirs.model, data)
    R_geom, R_mesh = data.geom_xmat[used[-1]].reshape(3, 3), np.zeros(9)
    mujoco.mju_quat2Mat(R_mesh, theirs.model.mesh_quat[official[0]])
    recentred = R_mesh.reshape(3, 3).T @ theirs.model.mesh_pos[official[0]]
    their_origin = data.geom_xpos[used[-1]] - R_geom @ recentred
    wrist_3 = data.body("ur5e/wrist_3")
    ours_there = wrist_3.xpos - 0.0996 * wrist_3.xmat.reshape(3, 3)[:, 2]
    off = float(np.linalg.norm(their_origin - ours_there))
    print(f"their wrist 3 is {off * 1e3:.1f} mm from ours, limit 2 mm")
    assert off < 2e-3
