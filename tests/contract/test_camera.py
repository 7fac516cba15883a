"""What every camera promises (`hardware/api.py`, `brain.types.CameraFrame`)."""

from __future__ import annotations

import numpy as np
import pytest

from tests.contract.implementations import CAMERAS, camera


@pytest.fixture(params=CAMERAS)
def bench(request):
    made = camera(request.param)
    made.device.start()
    return made


def first_frame(bench):
    for _ in range(100):
        bench.wait(bench.step_ns)
        frame = bench.device.read()
        if frame is not None:
            return frame
    raise AssertionError(f"no frame in {100 * bench.step_ns * 1e-9} s")


def test_there_is_no_frame_before_the_first(bench):
    assert bench.device.read() is None


@pytest.mark.parametrize("name", CAMERAS)
def test_there_is_no_frame_before_the_start(name):
    made = camera(name)
    assert all(frame is None for frame in made.watch(0.2))


def test_a_frame_is_as_its_spec_says(bench):
    spec, frame = bench.device.spec, first_frame(bench)
    assert frame.colour.shape == (spec.height_px, spec.width_px, 3)
    assert frame.colour.dtype == np.uint8
    assert frame.depth_m.shape == (spec.height_px, spec.width_px)
    assert frame.depth_m.dtype == np.float32
    assert np.array_equal(frame.K_px, spec.K_px)


def test_a_frame_cannot_be_written_to(bench):
    frame = first_frame(bench)
    assert not frame.colour.flags.writeable
    assert not frame.depth_m.flags.writeable


def test_depth_is_positive_or_not_a_number_and_mostly_there(bench):
    depth_m = first_frame(bench).depth_m
    known = depth_m[~np.isnan(depth_m)]
    print(f"{known.size / depth_m.size:.3f} of all pixels, from {known.min()} to {known.max()} m")
    assert known.min() > 0.0
    assert np.all(np.isfinite(known))
    assert known.size > 0.5 * depth_m.size


def test_captures_follow_the_frame_rate_and_their_times_and_numbers_rise(bench):
    frames = {f.seq: f for f in bench.watch(0.5) if f is not None}
    times = np.array([frames[seq].t_ns for seq in sorted(frames)])
    period_ns = bench.device.spec.period_ns
    print(f"{len(times)} frames, periods from {np.diff(times).min()} to {np.diff(times).max()} ns")
    assert len(times) >= 10
    assert np.all(np.diff(times) > 0)
    assert abs(np.diff(times).mean() - period_ns) < 0.05 * period_ns


def test_a_frame_was_captured_before_it_can_be_read(bench):
    frame = first_frame(bench)
    age_ms = (bench.now_ns - frame.t_ns) * 1e-6
    print(f"{age_ms:.1f} ms old, more than 0 and less than 200")
    assert 0.0 < age_ms < 200.0


def test_reading_twice_gives_the_same_frame(bench):
    assert first_frame(bench) is bench.device.read()


def test_starting_and_stopping_twice_is_the_same_as_once(bench):
    frame = first_frame(bench)
    bench.device.start()
    assert bench.device.read() is frame
    bench.device.stop()
    bench.device.stop()
    seen = bench.watch(0.2)
    assert all(f is frame for f in seen), "frames go on after the stop"
