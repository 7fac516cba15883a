"""The measure of outcomes: what is left out as far apart is far apart."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

from hardware.resolve import resolve
from hardware.scene import load_scene
from sim.clearance import LOOK_M, ClearanceMeter
from sim.scene import build_model
from sim.worker import declared_contacts


@pytest.mark.parametrize("name", ["bench_pick", "two_arms"])
def test_the_nearest_is_the_nearest_of_all_pairs(name):
    resolved = resolve(load_scene(name), 2)
    scene = build_model(resolved)
    model, data = scene.model, mujoco.MjData(scene.model)
    meter = ClearanceMeter(scene, declared_contacts(resolved))
    a, b = meter._pairs_for(())
    rng, found = np.random.default_rng(1), []
    for _ in range(30):
        data.qpos[:] = scene.qpos_start
        for arm in scene.arms:
            data.qpos[arm.qpos] += rng.uniform(-1.0, 1.0, len(arm.qpos))
        mujoco.mj_forward(model, data)
        apart_m = [
            mujoco.mj_geomDistance(model, data, int(p), int(q), LOOK_M, None)
            for p, q in zip(a, b, strict=True)
        ]
        nearest = meter.measure(data, {})
        assert (LOOK_M if nearest is None else nearest.distance_m) == min(apart_m)
        found.append(min(apart_m))
    assert min(found) < 0.0 < max(found)
