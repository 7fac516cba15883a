"""What every wrist sensor promises (`hardware/api.py`, `brain.types.Wrench`)."""

from __future__ import annotations

import numpy as np
import pytest

from tests.contract.implementations import SENSORS, wrist

G_M_S2 = 9.81
POSES_DEG = (
    (0.0, -90.0, 90.0, -90.0, -90.0, 0.0),
    (0.0, -90.0, 90.0, -90.0, -90.0, 70.0),
    (0.0, -90.0, 90.0, 0.0, -90.0, 30.0),
    (0.0, -90.0, 60.0, -150.0, 60.0, -40.0),
)


@pytest.fixture(params=SENSORS)
def sensor(request):
    bench = wrist(request.param, POSES_DEG[0])
    bench.device.start()
    bench.wait(bench.step_ns)
    return bench


def mean(bench, what: str):
    """Mean of half a second after coming to rest, and its standard error (3,)."""
    bench.watch(0.2)
    values = np.array([getattr(w, what) for w in bench.watch(0.5)])
    return values.mean(axis=0), values.std(axis=0) / np.sqrt(len(values))


def test_a_sample_is_finite_of_three_and_three_and_cannot_be_written_to(sensor):
    sample = sensor.device.read()
    for values in (sample.force_n, sample.torque_nm):
        assert values.shape == (3,)
        assert np.all(np.isfinite(values))
        assert not values.flags.writeable


def test_times_and_numbers_of_samples_rise(sensor):
    stamps = [(s.t_ns, s.seq) for s in sensor.watch(0.05)]
    assert all(a[0] < b[0] and a[1] < b[1] for a, b in zip(stamps[:-1], stamps[1:], strict=True))


@pytest.mark.parametrize("pose_deg", POSES_DEG)
@pytest.mark.parametrize("name", SENSORS)
def test_at_rest_the_force_is_the_weight_of_what_hangs_on_it_pointing_down(name, pose_deg):
    bench = wrist(name, pose_deg)
    bench.device.start()
    force, error = mean(bench, "force_n")
    wanted = -bench.mass_kg * G_M_S2 * bench.up
    limit = 5.0 * error.max() + 0.02
    print(f"{force} N, wanted {wanted}, within {limit:.3f}")
    assert np.abs(force - wanted).max() < limit


@pytest.mark.parametrize("pose_deg", POSES_DEG)
@pytest.mark.parametrize("name", SENSORS)
def test_at_rest_the_torque_is_that_weight_at_its_centre_of_mass(name, pose_deg):
    bench = wrist(name, pose_deg)
    bench.device.start()
    torque, error = mean(bench, "torque_nm")
    wanted = np.cross(bench.com_m, -bench.mass_kg * G_M_S2 * bench.up)
    limit = 5.0 * error.max() + 0.003
    print(f"{torque} N m, wanted {wanted}, within {limit:.4f}")
    assert np.abs(torque - wanted).max() < limit


def test_its_noise_is_within_its_range(sensor):
    spec = sensor.device.spec
    assert all(np.abs(w.force_n).max() < spec.force_max_n for w in sensor.watch(0.2))


def test_starting_and_stopping_twice_is_the_same_as_once(sensor):
    sensor.device.start()
    assert sensor.device.read() is not None
    sensor.device.stop()
    sensor.device.stop()
