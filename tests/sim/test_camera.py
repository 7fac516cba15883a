"""Simulated cameras: where things appear, how far they are said to be, when, and at what price."""

from __future__ import annotations

import os
import subprocess
import sys
from ctypes.util import find_library

import mujoco
import numpy as np
import pytest

from brain.errors import DeviceUnavailable
from brain.geometry import invert
from hardware.shapes import pose_deg
from sim.camera import TRANSFER_NS, Darkroom, stereo_depth
from sim.picture import Pictures
from tests import plants
from tests.plants import MS

W, H, FOCAL_PX = 640, 480, 610.0
OVERHEAD = ((0.0, 0.0, 1.5), (180.0, 0.0, -90.0))
TILTED = ((-0.4, 0.3, 1.3), (-150.0, 20.0, -80.0))
TARGETS = [(x, y, z) for x in (-0.3, -0.05, 0.25) for y in (-0.4, 0.1, 0.45) for z in (0.2, 0.6)]


def project(points, camera) -> np.ndarray:
    """Pixels (n, 2) of world points in a pinhole of the D435i with middle (size - 1) / 2."""
    T_optical_world = invert(pose_deg(*camera))
    p = np.asarray(points) @ T_optical_world[:3, :3].T + T_optical_world[:3, 3]
    middle = np.array((0.5 * (W - 1), 0.5 * (H - 1)))
    return middle + FOCAL_PX * p[:, :2] / p[:, 2:]


def picture_of(at, camera, shape: str, radius_m: float):
    """Draw one red target over a floor; a disc lies flat, a ball does not."""
    along = {"from_m": [0, 0, -0.001], "to_m": [0, 0, 0.001]} if shape == "cylinder" else {}
    target = {
        "name": "target",
        "role": "fixed",
        "position_m": list(at),
        "shapes": [{"shape": shape, "radius_m": radius_m, **along}],
        "colour": [1, 0, 0, 1],
    }
    view = plants.camera("cam", "world", *camera)
    model = plants.scene("ur3e", objects=[target], cameras=[view]).model
    data = mujoco.MjData(model)
    data.qpos[:6] = (np.pi, 0.0, 0.0, 0.0, 0.0, 0.0)  # the arm out of the way
    mujoco.mj_kinematics(model, data)
    mujoco.mj_camlight(model, data)
    pictures = Pictures(model, W, H, plain=True)
    colour = pictures.colour(data, "cam").astype(int)
    pictures.close()
    return colour


def centre_of_red(colour) -> np.ndarray:
    v, u = np.nonzero((colour[..., 0] > 60) & (colour[..., 1] < 0.3 * colour[..., 0]))
    assert len(u) > 20, "the target is not in the picture"
    return np.array((u.mean(), v.mean()))


@pytest.mark.parametrize("at", TARGETS[::3])
def test_a_disc_appears_where_the_intrinsics_say(at):
    seen = centre_of_red(picture_of(at, OVERHEAD, "cylinder", 0.012))
    off = np.abs(seen - project([at], OVERHEAD)[0])
    print(f"{at}: seen at {seen}, off by {off} px, limit 0.2")
    assert off.max() < 0.2


@pytest.mark.parametrize("at", [(0.1, 0.3, 0.3), (-0.1, 0.5, 0.1), (0.3, 0.2, 0.1)])
def test_a_ball_appears_where_the_intrinsics_say_from_a_tilted_camera(at):
    seen = centre_of_red(picture_of(at, TILTED, "sphere", 0.012))
    off = np.abs(seen - project([at], TILTED)[0])
    print(f"{at}: seen at {seen}, off by {off} px, limit 0.5")
    assert off.max() < 0.5


def floor_depth(camera) -> np.ndarray:
    """Depth (h, w) in m along the optical axis at which every pixel's ray meets the floor."""
    T = pose_deg(*camera)
    u, v = np.meshgrid(np.arange(W), np.arange(H))
    rays = np.stack(
        [(u - 0.5 * (W - 1)) / FOCAL_PX, (v - 0.5 * (H - 1)) / FOCAL_PX, np.ones((H, W))], axis=-1
    )
    return -T[2, 3] / (rays @ T[2, :3])


@pytest.mark.parametrize("camera", [OVERHEAD, TILTED])
def test_true_depth_is_along_the_optical_axis(camera):
    model = plants.scene("ur3e", cameras=[plants.camera("cam", "world", *camera)]).model
    data = mujoco.MjData(model)
    data.qpos[1] = -np.pi / 2
    mujoco.mj_kinematics(model, data)
    mujoco.mj_camlight(model, data)
    pictures = Pictures(model, W, H, plain=True)
    off = np.abs(pictures.depth(data, "cam") - floor_depth(camera))
    pictures.close()
    floor = off < 0.02  # the rest is the arm
    print(f"{floor.mean():.3f} of the picture is floor, off by {1000 * off[floor].max():.3f} mm")
    assert floor.mean() > 0.7
    assert off[floor].max() < 0.001


# ---------------------------------------------------------------- the noise of depth

DISPARITY_PX_M, ERROR_PX, STEP_PX, SHIFT_PX_M = 384.0 * 0.05, 0.1, 1.0 / 32.0, 610.0 * 0.065


def measured(true_m, counter=0, key=1, error_px=ERROR_PX):
    out = np.empty_like(true_m)
    stereo_depth(
        true_m,
        np.uint64(key),
        np.int64(counter),
        SHIFT_PX_M,
        DISPARITY_PX_M,
        error_px,
        STEP_PX,
        0.28,
        3.0,
        out,
    )
    return out


def wall(z_m: float):
    return np.full((200, 320), z_m, dtype=np.float32)


@pytest.mark.parametrize("z_m", [0.4, 0.7, 1.0, 2.0, 2.8])
def test_depth_errs_by_the_square_of_depth(z_m):
    off = measured(wall(z_m)).astype(np.float64) - z_m
    spread = np.nanstd(off)
    # A step of width w adds w^2 / 12 to the variance of what is rounded to it.
    wanted = z_m**2 / DISPARITY_PX_M * np.sqrt(ERROR_PX**2 + STEP_PX**2 / 12.0)
    print(f"at {z_m} m: {1000 * spread:.2f} mm, wanted {1000 * wanted:.2f} within 5 %")
    assert abs(spread - wanted) < 0.05 * wanted
    assert abs(np.nanmean(off)) < 0.2 * wanted


def test_depth_comes_in_steps_of_a_32nd_of_a_pixel_of_disparity():
    disparity = DISPARITY_PX_M / measured(wall(1.0)).astype(np.float64)
    off = np.abs(disparity * 32.0 - np.rint(disparity * 32.0)).max()
    print(f"{off:.1e} steps off, limit 1e-3")
    assert off < 1e-3


def test_near_things_throw_a_shadow_to_their_left_as_wide_as_the_imagers_see_it():
    true_m = wall(1.5)
    true_m[50:150, 160:260] = 0.6
    holes = np.isnan(measured(true_m))
    width = holes[100].sum()
    wanted = SHIFT_PX_M * (1 / 0.6 - 1 / 1.5)
    print(f"{width} px, wanted {wanted:.1f} within 1; the thing begins at 160")
    assert abs(width - wanted) <= 1.0
    assert holes[100, 159]
    assert not holes[100, 160:].any()
    assert not holes[20].any()


@pytest.mark.parametrize("z_m", [0.1, 0.27, 3.3, np.nan])
def test_what_is_out_of_range_is_not_there(z_m):
    assert np.isnan(measured(wall(z_m))).all()


def test_depth_noise_depends_on_seed_and_time_alone():
    a = measured(wall(1.0), counter=5)
    assert np.array_equal(a, measured(wall(1.0), counter=5))
    share = np.mean(a == measured(wall(1.0), counter=2_000_005))
    print(f"{share:.3f} of the pixels are equal in another frame, limit 0.2")
    assert share < 0.2  # steps are coarse: some are equal by chance
    assert np.mean(a == measured(wall(1.0), counter=5, key=2)) < 0.2


def test_the_kernel_does_what_the_plain_formula_says_without_noise():
    rng = np.random.default_rng(1)
    true_m = rng.uniform(0.2, 3.2, (6, 50)).astype(np.float32)
    got = measured(true_m, error_px=0.0)
    for v, u in np.ndindex(true_m.shape):
        z = float(true_m[v, u])
        seen_at = u - SHIFT_PX_M / z
        hidden = any(k - SHIFT_PX_M / float(true_m[v, k]) <= seen_at for k in range(u + 1, 50))
        steps = np.rint(DISPARITY_PX_M / z / STEP_PX)
        wanted = DISPARITY_PX_M / (steps * STEP_PX)
        if hidden or not 0.28 <= wanted <= 3.0:
            assert np.isnan(got[v, u])
        else:
            assert abs(got[v, u] - wanted) < 1e-6


# ---------------------------------------------------------------- as a device


def cell(seed=1):
    """An arm that swings below an overhead camera."""
    view = plants.camera("overhead", "world", (0.0, 0.0, 1.8), (180, 0, -90))
    wrist = plants.camera("wrist", "arm", (-0.0325, -0.1, 0.012), (-10, 0, 0))
    model = plants.scene("ur5e", ("ft_sensor", "hand_e"), cameras=[view, wrist])
    made = plants.plant(model, seed=seed)
    drive = plants.driver(made)
    drive.arm.start()
    return made, drive


def swing(drive, seconds: float):
    q = np.radians(plants.UR_HOME)
    start_s = drive.now() * 1e-9
    drive.stream(lambda t: q + 0.2 * (1.0 - np.cos(2.0 * (t + start_s))), seconds)


def test_a_frame_can_be_read_the_transfer_time_after_its_capture():
    made, _ = cell()
    camera = made.cameras[0]
    camera.start()
    made.world.step_to(TRANSFER_NS - 2 * MS)
    assert camera.read() is None
    made.world.step_to(TRANSFER_NS)
    assert camera.read().t_ns == 0


def test_a_frame_shows_the_world_at_its_capture_not_at_its_reading():
    made, drive = cell()
    camera = made.cameras[0]
    camera.start()
    swing(drive, 0.4)
    frame = camera.read()
    assert frame.t_ns < made.world.t_ns
    again, drive = cell()
    swing(drive, frame.t_ns * 1e-9)
    assert again.world.t_ns == frame.t_ns
    pictures = Pictures(again.world.model, W, H, plain=True)
    mujoco.mj_forward(again.world.model, again.world.data)
    assert np.array_equal(frame.colour, pictures.colour(again.world.data, "overhead"))
    now = pictures.colour(made.world.data, "overhead")
    pictures.close()
    assert not np.array_equal(frame.colour, now)


def test_equal_seeds_give_equal_frames_however_often_they_are_read():
    frames = []
    for often in (True, False):
        made, drive = cell()
        camera = made.cameras[1]
        camera.start()
        for _ in range(4):
            swing(drive, 0.1)
            if often:
                camera.read()
        frames.append(camera.read())
    assert frames[0].t_ns == frames[1].t_ns
    assert np.array_equal(frames[0].colour, frames[1].colour)
    assert np.array_equal(frames[0].depth_m, frames[1].depth_m, equal_nan=True)


def test_two_cameras_in_one_place_see_the_same_with_noise_of_their_own():
    views = [plants.camera(name, "world", (0, 0, 1.2), (180, 0, -90)) for name in ("one", "two")]
    made = plants.plant(plants.scene("ur3e", cameras=views))
    for camera in made.cameras:
        camera.start()
    made.world.step_to(100 * MS)
    one, two = (camera.read() for camera in made.cameras)
    assert np.array_equal(one.colour, two.colour)
    share = np.mean(one.depth_m == two.depth_m)
    print(f"{share:.3f} of the depths are equal, limit 0.3")
    assert share < 0.3


def test_cameras_do_not_touch_the_plant():
    runs = []
    for watched in (True, False):
        made, drive = cell()
        for camera in made.cameras if watched else ():
            camera.start()
        for _ in range(5):
            swing(drive, 0.06)
            if watched:
                assert made.cameras[1].read() is not None or made.world.t_ns < 100 * MS
                made.cameras[0].read()
        data = made.world.data
        runs.append(np.concatenate([data.qpos, data.qvel, data.qacc_warmstart, data.sensordata]))
    assert np.array_equal(runs[0], runs[1])


def test_a_camera_that_nobody_reads_draws_nothing(monkeypatch):
    drawn = []
    develop = Darkroom.develop

    def counted(self, *args):
        drawn.append(args)
        return develop(self, *args)

    monkeypatch.setattr(Darkroom, "develop", counted)
    made, drive = cell()
    for camera in made.cameras:
        camera.start()
    swing(drive, 0.4)
    assert drawn == []
    made.cameras[0].read()
    made.cameras[0].read()
    assert len(drawn) == 1, "only the newest frame is drawn, once"


def test_from_a_snapshot_a_camera_gives_the_same_frames():
    made, drive = cell()
    camera = made.cameras[0]
    camera.start()
    swing(drive, 0.21)
    before, seq = made.world.snapshot(), drive.seq
    swing(drive, 0.1)
    once = camera.read()
    made.world.restore(before)
    drive.seq = seq
    swing(drive, 0.1)
    twice = camera.read()
    assert once.t_ns == twice.t_ns
    assert np.array_equal(once.depth_m, twice.depth_m, equal_nan=True)
    assert np.array_equal(once.colour, twice.colour)


def test_a_moving_object_is_seen_where_it_is_at_the_capture():
    schedule = [{"t_s": 0, "position_m": [0, 0, 0.1]}, {"t_s": 2, "position_m": [4, 0, 0.1]}]
    cart = plants.box(
        "cart", (0, 0, 0), (0.1, 0.1, 0.002), role="moving", schedule=schedule, colour=[1, 0, 0, 1]
    )
    view = plants.camera("overhead", "world", (3.3, 0.0, 1.0), (180, 0, -90))
    made = plants.plant(plants.scene(objects=[cart], cameras=[view]))
    camera = made.cameras[0]
    camera.start()
    made.world.step_to(1700 * MS)
    frame = camera.read()
    seen = centre_of_red(frame.colour.astype(int))
    top = (2.0 * frame.t_ns * 1e-9, 0.0, 0.101)
    wanted = project([top], (view["position_m"], view["rpy_deg"]))[0]
    print(f"seen at {seen}, wanted {wanted} within 0.6 px; 2 ms are 2.7 px")
    assert np.abs(seen - wanted).max() < 0.6


def test_without_opengl_a_camera_says_what_is_missing(monkeypatch):
    monkeypatch.setenv("MUJOCO_GL", "off")
    made, _ = cell()
    with pytest.raises(DeviceUnavailable, match="overhead: pictures: no OpenGL .* apt-get install"):
        made.cameras[0].start()


@pytest.mark.skipif(find_library("OSMesa") is None, reason="no OSMesa here")
def test_pictures_are_drawn_with_osmesa_too():
    code = (
        "import mujoco, numpy as np\n"
        "from sim.picture import Pictures\n"
        'm = mujoco.MjModel.from_xml_string(\'<mujoco><worldbody><geom size=".1"/>'
        '<light pos="0 0 2"/><camera name="c" pos="0 0 1"/></worldbody></mujoco>\')\n'
        "d = mujoco.MjData(m)\n"
        "mujoco.mj_forward(m, d)\n"
        "p = Pictures(m, 64, 48, plain=True)\n"
        "print(float(np.nanmin(p.depth(d, 'c'))))\n"
        "p.close()\n"
    )
    env = {**os.environ, "MUJOCO_GL": "osmesa"}
    env.pop("PYOPENGL_PLATFORM", None)
    done = subprocess.run(
        [sys.executable, "-c", code], env=env, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert abs(float(done.stdout) - 0.9) < 0.003
