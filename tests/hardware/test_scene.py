"""Scenes are strict, a seed decides them once and for all, and what cannot work is refused."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import numpy as np
import pytest

from brain.body import place
from brain.distance import arm_clearance, obstacles
from brain.errors import ConfigError
from brain.world import BOX, PLANE
from hardware.layout import footprint, gap_m, stands
from hardware.resolve import START_MARGIN_M, resolve
from hardware.scene import (
    camera_specs,
    cell_model,
    object_pose,
    parse_resolved,
    resolved_from,
    scene_object,
    start_q_rad,
    tasks_of,
    world_of,
)
from hardware.scene_file import Scene, load_scene
from hardware.strict import check, data_folder, read_yaml

SCENES = ("bench_pick", "z1_bench", "two_arms", "moving_obstacle")
SEEDS = (1, 2, 3)


@pytest.fixture(scope="module")
def resolved():
    return {(name, seed): resolve(load_scene(name), seed) for name in SCENES for seed in SEEDS}


def changed(change, name="bench_pick"):
    file = read_yaml(data_folder("scenes") / f"{name}.yaml")
    change(file)
    return check(file, Scene, f"{name}.yaml")


def item(file, name, section="objects"):
    return next(entry for entry in file[section] if entry["name"] == name)


# ---------------------------------------------------------------- what a seed decides


@pytest.mark.parametrize("name", SCENES)
def test_equal_seeds_give_equal_texts_and_other_seeds_others(resolved, name):
    assert resolve(load_scene(name), 2).text == resolved[name, 2].text
    assert len({resolved[name, seed].digest for seed in SEEDS}) == len(SEEDS)


def test_another_process_with_another_hash_seed_gives_the_same_digest(resolved):
    code = (
        "from hardware.resolve import resolve; from hardware.scene import load_scene;"
        "print(resolve(load_scene('z1_bench'), 3).digest)"
    )
    environment = {**os.environ, "PYTHONHASHSEED": "77"}
    root = data_folder("scenes").parent
    answer = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=root, env=environment
    )
    assert answer.stdout.strip() == resolved["z1_bench", 3].digest, answer.stderr


@pytest.mark.parametrize("name", SCENES)
def test_the_text_alone_rebuilds_the_scene(resolved, name):
    again = parse_resolved(resolved[name, 1].text)
    assert again.digest == resolved[name, 1].digest
    assert again.scene == resolved[name, 1].scene
    assert cell_model(again).scene_digest == again.digest


def test_a_text_with_one_other_number_has_another_digest(resolved):
    data = json.loads(resolved["bench_pick", 1].text)
    data["scene"]["objects"][-1]["position_m"][0] += 1e-6
    text = json.dumps(data, sort_keys=True, separators=(",", ":"))
    assert parse_resolved(text).digest != resolved["bench_pick", 1].digest


def test_a_text_made_with_another_robot_file_is_refused(resolved):
    data = json.loads(resolved["bench_pick", 1].text)
    data["assets"]["ur5e.yaml"] = "0" * 64
    with pytest.raises(ConfigError, match="assets/ur5e.yaml is not the file it was made with"):
        parse_resolved(json.dumps(data, sort_keys=True, separators=(",", ":")))


@pytest.mark.parametrize("text", ["", "{}", "not json", '{"format":"forearm-scene-9"}'])
def test_a_foreign_text_is_refused(text):
    with pytest.raises(ConfigError, match="resolved scene"):
        parse_resolved(text)


def test_a_text_in_another_layout_is_refused(resolved):
    with pytest.raises(ConfigError, match="canonical"):
        parse_resolved(json.dumps(json.loads(resolved["bench_pick", 1].text), indent=1))


@pytest.mark.parametrize("name", SCENES)
def test_parts_stand_on_their_support_and_apart(resolved, name):
    for seed in SEEDS:
        scene = resolved[name, seed].scene
        parts = [o for o in scene.objects if o.role == "part"]
        least = load_scene(name).variation.part_gap_m
        for i, part in enumerate(parts):
            assert stands(scene_object(part), scene_object(scene.object(part.rests_on)))
            for other in parts[i + 1 :]:
                gap = gap_m(scene_object(other), scene_object(part))
                print(f"{name} {seed}: {part.name} {other.name} {gap:.3f} m, limit {least} m")
                assert gap >= least


@pytest.mark.parametrize("name", SCENES)
def test_a_seed_stays_within_the_variation_that_the_file_allows(resolved, name):
    written = load_scene(name)
    vary = written.variation
    for seed in SEEDS:
        scene = resolved[name, seed].scene
        for before, after in zip(written.objects, scene.objects, strict=True):
            moved = np.abs(np.subtract(after.position_m, before.position_m))
            if before.role == "part":
                assert np.all(moved <= (vary.part_position_m + 1e-6,) * 2 + (0,))
                assert abs(after.mass_kg / before.mass_kg - 1) <= vary.mass_share + 1e-4
            elif before.name in vary.boxes:
                assert np.all(moved <= (vary.box_position_m + 1e-6,) * 2 + (0,))
            else:
                assert np.all(moved == 0)
            assert abs(after.friction / before.friction - 1) <= vary.friction_share + 1e-4
        for arm in scene.arms:
            off = np.abs(np.subtract(arm.start_deg, arm.home_deg))
            assert 0 < off.max() <= vary.start_deg


@pytest.mark.parametrize("name", SCENES)
def test_every_arm_starts_clear_of_everything(resolved, name):
    for seed in SEEDS:
        scene = resolved[name, seed]
        cell, world, starts = cell_model(scene), world_of(scene), start_q_rad(scene.scene)
        bodies = [place(a.model, a.T_world_base, name=a.name) for a in cell.arms]
        for i, body in enumerate(bodies):
            others = [(b, starts[k]) for k, b in enumerate(bodies) if k != i]
            found = arm_clearance(body, obstacles(world, others), starts[i])
            print(f"{name} {seed}: {found.sentence()}, limit {START_MARGIN_M * 1e3:.0f} mm")
            assert found.distance_m >= START_MARGIN_M


def test_twenty_seeds_choose_every_part_and_twenty_starts():
    scene = load_scene("bench_pick")
    drawn = [resolve(scene, seed) for seed in range(1, 21)]
    assert len({d.digest for d in drawn}) == 20
    assert len({d.scene.arms[0].start_deg for d in drawn}) == 20
    parts = {d.scene.tasks["pick_place"].steps[0].parts for d in drawn}
    assert parts == {(p,) for p in scene.tasks["pick_place"].steps[0].parts}


def test_without_variation_a_seed_changes_nothing_but_its_number():
    scene = changed(lambda f: f.pop("variation"))
    one, two = resolve(scene, 1), resolve(scene, 2)
    assert one.scene == two.scene
    assert one.scene.arms[0].start_deg is None


# ---------------------------------------------------------------- what the brain gets


def test_full_lengths_in_the_file_are_half_lengths_in_the_brain(resolved):
    world = world_of(resolved["bench_pick", 1])
    bench = world.object("bench")
    assert bench.kinds == (BOX,)
    assert np.allclose(bench.size_m[0], (0.65, 0.80, 0.02))
    assert world.object("floor").kinds == (PLANE,)
    assert world.object("red_block").role == "part"


def test_the_cell_has_its_arms_ticks_and_workspace(resolved):
    cell = cell_model(resolved["two_arms", 1])
    assert [arm.name for arm in cell.arms] == ["ur5e", "z1"]
    assert (cell.tick_ns, [a.period_ns for a in cell.arms]) == (2_000_000, [2_000_000, 4_000_000])
    assert [arm.has_wrench for arm in cell.arms] == [True, False]
    assert np.allclose(cell.workspace_m[0], (-0.35, -0.75, 0.755))
    assert np.allclose(cell.arms[0].T_base_seat[:3, 0], (-1, 0, 0))  # the seat looks along world x
    assert cell_model(resolved["z1_bench", 1]).tick_ns == 4_000_000


def test_a_pick_is_taken_from_above_with_the_fingers_across(resolved):
    scene = resolved["bench_pick", 1]
    (step,) = tasks_of(scene)["pick_place"]
    part = scene.scene.object(step.name)
    for T in step.T_object_tool:
        assert np.allclose(T[:3, 2], (0, 0, -1))
    closing = {
        round(float(np.degrees(np.arctan2(*T[:2, 0][::-1])))) % 180 for T in step.T_object_tool
    }
    assert closing == {round(c) for c in part.grasp.closing_deg}
    bottom, _ = footprint(scene_object(part))
    for T in step.T_world_place:  # the underside ends on the floor of the bin
        below = T[2, 3] - (part.position_m[2] - bottom)
        assert below == pytest.approx(0.7705, abs=1e-9)


def test_a_moving_object_follows_its_schedule():
    trolley = load_scene("moving_obstacle").object("trolley")
    x = [object_pose(trolley, t)[0, 3] for t in (-1.0, 0.0, 4.0, 5.5, 7.0, 12.0, 17.5, 60.0)]
    print(x)
    assert np.allclose(x, (1.8, 1.8, 1.8, 1.15, 0.5, 0.5, 1.15, 1.8))


def test_cameras_come_with_their_intrinsics_and_mounts(resolved):
    wrist, overhead = camera_specs(resolved["bench_pick", 1])
    assert (wrist.mount, overhead.mount) == ("ur5e", "world")
    assert (wrist.width_px, wrist.height_px) == (640, 480)
    assert np.allclose(wrist.K_px, [[610, 0, 319.5], [0, 610, 239.5], [0, 0, 1]])
    assert np.allclose(overhead.T_mount_optical[:3, 2], (0, 0, -1))  # looks down


# ---------------------------------------------------------------- refusals by the file


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda f: f.update(tick_s=2), "tick_s: unknown key; did you mean 'tick_ms'"),
        (
            lambda f: item(f, "ur5e", "arms").update(home_rad=[0] * 6),
            "arms.0.home_rad: unknown key; did you mean 'home_deg'",
        ),
        (
            lambda f: item(f, "bench")["shapes"][0].update(size_mm=[1, 2, 3]),
            "size_mm: unknown key; did you mean 'size_m'",
        ),
        (
            lambda f: item(f, "bench")["shapes"][0].update(size_m=[1, "40 mm", 1]),
            'should be a valid number, got "40 mm"',
        ),
        (
            lambda f: item(f, "red_block").update(mass_kg=float("nan")),
            "objects.7.mass_kg: must be a finite number, got nan",
        ),
        (
            lambda f: item(f, "red_block").update(mass_kg=1e-300),
            "objects.7.mass_kg: should be greater than or equal to 0.0001, got 1e-300",
        ),
        (
            lambda f: item(f, "red_block").update(friction=-1),
            "should be greater than 0, got -1",
        ),
        (
            lambda f: item(f, "red_block").update(rests_on="table"),
            "unknown 'table'; allowed: bench",
        ),
        (lambda f: item(f, "red_block").pop("grasp"), "grasp: a part needs it"),
        (lambda f: item(f, "bench").update(mass_kg=3), "mass_kg: a part needs it, a support"),
        (lambda f: item(f, "bench").update(role="table"), "should be 'fixed', 'support', 'part'"),
        (lambda f: item(f, "bench")["shapes"][0].update(shape="cube"), "got"),
        (lambda f: item(f, "wrist", "cameras").update(mount="ur6e"), "unknown 'ur6e'"),
        (
            lambda f: item(f, "wrist", "cameras").update(name="bench"),
            "cannot both be called 'bench'",
        ),
        (lambda f: f.update(limits="slow"), "limits: no profile 'slow'; allowed: default"),
        (lambda f: f["workspace"].update(min_m=[2, 0, 0]), "must be below max_m"),
        (lambda f: f["variation"]["boxes"].append("red_block"), "variation.boxes: unknown"),
        (lambda f: f["variation"].update(part_yaw_deg=400), "less than or equal to 180"),
        (
            lambda f: f["tasks"]["pick_place"]["steps"][0].update(arm="z1"),
            "tasks.pick_place.steps.0.arm: unknown 'z1'; allowed: ur5e",
        ),
        (
            lambda f: f["tasks"]["pick_place"]["steps"][0].update(parts=["bin"]),
            "tasks.pick_place.steps.0.parts: unknown 'bin'",
        ),
        (lambda f: f.pop("arms"), "arms: is missing"),
        (lambda f: f.update(arms=[]), "arms: "),
    ],
)
def test_a_wrong_scene_file_is_refused_with_key_and_value(change, words):
    with pytest.raises(ConfigError) as error:
        changed(change)
    print(error.value)
    assert str(error.value).startswith("bench_pick.yaml: ")
    assert words in str(error.value)


@pytest.mark.parametrize(
    ("schedule", "words"),
    [
        ([], "schedule: a moving object needs it"),
        (
            [{"t_s": 2, "position_m": [0, 0, 0]}, {"t_s": 1, "position_m": [0, 0, 0]}],
            "times must rise",
        ),
    ],
)
def test_a_wrong_schedule_is_refused(schedule, words):
    with pytest.raises(ConfigError, match=words):
        changed(lambda f: item(f, "trolley").update(schedule=schedule), "moving_obstacle")


def test_a_scene_that_is_not_there_is_refused_with_those_that_are(tmp_path):
    with pytest.raises(ConfigError, match="no scene 'bench_pik'.*bench_pick"):
        load_scene("bench_pik")
    with pytest.raises(ConfigError, match="no such file"):
        load_scene(tmp_path / "x.yaml")


# ---------------------------------------------------------------- refusals by what cannot work


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            lambda f: item(f, "ur5e", "arms").update(home_deg=[0, -20, 60, -90, -90, 0]),
            "arms.ur5e: starts in collision or too near to one: ",
        ),
        (
            lambda f: item(f, "red_block").update(position_m=[0.93, -0.7, 0.775]),
            "red_block at (0.930, -0.700, 0.775) m is out of reach of ur5e",
        ),
        (
            lambda f: f["tasks"]["pick_place"]["steps"][0].update(place_m=[0.98, 0.7, 0.76]),
            "place_m: ur5e cannot put red_block down there",
        ),
        (
            lambda f: item(f, "red_block").update(position_m=[0.34, -0.26, 0.79]),
            "objects.red_block: does not stand on bench",
        ),
        (
            lambda f: item(f, "red_block").update(position_m=[0.36, 0.05, 0.775]),
            "objects.red_block: overlaps box_a",
        ),
        (
            lambda f: item(f, "red_block")["grasp"].update(width_m=0.06),
            "width_m: 0.06 m is wider than hand_e opens (0.05 m)",
        ),
        (
            lambda f: item(f, "ur5e", "arms").update(tools=["ft_sensor"]),
            "steps.0.arm: ur5e has no gripper",
        ),
        (
            lambda f: item(f, "ur5e", "arms").update(home_deg=[0, -90, 90]),
            "arms.ur5e.home_deg: ur5e has 6 joints, got 3 values",
        ),
        (
            lambda f: item(f, "ur5e", "arms").update(home_deg=[400, -90, 90, -90, -90, 0]),
            "arms.ur5e.home_deg: shoulder_pan at 400.0 is outside [-360.0, 360.0]",
        ),
        (lambda f: item(f, "ur5e", "arms").update(robot="ur6e"), "no description assets/ur6e.yaml"),
        (
            lambda f: item(f, "ur5e", "arms").update(calibration="nobody"),
            "no description assets/calibration/nobody.yaml",
        ),
        (lambda f: f.update(tick_ms=4), "tick_ms: must be the smallest arm period, got 4"),
    ],
)
def test_a_scene_that_cannot_work_is_refused(change, words):
    with pytest.raises(ConfigError) as error:
        resolve(changed(change), 1)
    print(error.value)
    assert words in str(error.value)


def test_arm_periods_that_are_no_multiple_of_the_tick_are_refused():
    scene = changed(lambda f: item(f, "z1", "arms").update(period_ms=5), "two_arms")
    with pytest.raises(ConfigError, match="every arm period must be a multiple of 2 ms.*z1 5 ms"):
        resolve(scene, 1)


def test_a_layout_with_no_room_is_given_up_after_a_bounded_number_of_tries():
    scene = changed(lambda f: f["variation"].update(part_gap_m=0.5))
    with pytest.raises(
        ConfigError, match="no arrangement fits in 10 tries; the last: no place for"
    ):
        resolve(scene, 1)


def test_a_calibrated_arm_may_stand_in_a_scene():
    scene = changed(lambda f: item(f, "ur5e", "arms").update(calibration="ur5e_example"))
    cell = cell_model(resolved_from(scene, 0))
    arm = cell.arms[0].model
    assert not np.array_equal(arm.chain.T_link_joint, arm.nominal.T_link_joint)


def test_the_straight_carry_is_in_the_way_of_the_boxes(resolved):
    # The part's way from where it is lifted to above its place, straight, meets an obstacle.
    for seed in SEEDS:
        scene = resolved["bench_pick", seed]
        (step,) = tasks_of(scene)["pick_place"]
        world = world_of(scene)
        start = world.object(step.name).T_world_object[:3, 3] + (0, 0, step.clear_m)
        end = step.T_world_place[0][:3, 3] + (0, 0, step.clear_m)
        solids = [world.object(name) for name in ("box_a", "box_b", "shelf")]
        part = world.object(step.name)
        nearest = np.inf
        for share in np.linspace(0, 1, 60):
            T = part.T_world_object.copy()
            T[:3, 3] = start + share * (end - start)
            there = scene_object(
                scene.scene.object(step.name).model_copy(
                    update={"position_m": tuple(float(v) for v in T[:3, 3])}
                )
            )
            nearest = min(nearest, *(gap_m(there, o) for o in solids))
        print(f"seed {seed}: straight carry comes to {nearest * 1e3:.0f} mm, limit 60 mm")
        assert nearest < 0.06  # closer than the hand around the part is wide
