"""What every tracker promises (`hardware/api.py`)."""

from __future__ import annotations

import numpy as np
import pytest

from brain.geometry import is_rotation
from tests.contract.implementations import TRACKERS, tracker


@pytest.fixture(params=TRACKERS)
def bench(request):
    made = tracker(request.param)
    made.device.start()
    made.wait(made.step_ns)
    return made


def test_every_pose_is_rigid_and_cannot_be_written_to(bench):
    poses = bench.device.read()
    assert [pose.name for pose in poses] == ["cart"]
    for pose in poses:
        assert pose.T_world_object.shape == (4, 4)
        assert is_rotation(pose.T_world_object[:3, :3])
        assert not pose.T_world_object.flags.writeable


def test_times_and_numbers_of_poses_rise(bench):
    stamps = [(p[0].t_ns, p[0].seq) for p in bench.watch(0.05)]
    assert all(a[0] < b[0] and a[1] < b[1] for a, b in zip(stamps[:-1], stamps[1:], strict=True))


def test_a_pose_is_where_the_object_was_at_its_time(bench):
    for poses in bench.watch(0.4):
        wanted = 1.0 + 0.5 * poses[0].t_ns * 1e-9
        off = abs(poses[0].T_world_object[0, 3] - wanted)
        assert off < 1e-9, f"{off:.6f} m off at {poses[0].t_ns} ns"


def test_starting_and_stopping_twice_is_the_same_as_once(bench):
    bench.device.start()
    assert np.all(np.isfinite(bench.device.read()[0].T_world_object))
    bench.device.stop()
    bench.device.stop()
