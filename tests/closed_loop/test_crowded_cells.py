"""Cells in which something else moves: a trolley on its schedule, a second arm.

The scenes' own tasks take long; short motions with the same events run each time.
"""

from __future__ import annotations

from functools import cache
from itertools import product

import mujoco
import numpy as np
import pytest

from brain.limits import DEFAULT
from brain.playback import DONE
from brain.types import Mode
from hardware.scene_file import Object, Waypoint
from hardware.shapes import Box
from hardware.spine import TickRecord
from sim.build import SimCell
from tests.closed_loop.rig import Run, alone, moved, play
from tests.operator.hands import CHEAP, drive, glide, with_object
from vr.scripted import Script, ScriptedSeat, demo, do_goal

LOOK_TICKS = 10
FAR_M = 0.5

# ------------------------------------------------------------------- something in the way


ASIDE_M, IN_THE_WAY_M = (0.60, -0.60, 0.98), (0.106, -0.235, 0.98)
COMES_S, LEAVES_S = 2.7, 6.0


@cache
def crossing() -> Run:
    """A box comes into the way of a running commit, waits there, and leaves again."""
    box = Object(
        name="cart",
        role="moving",
        shapes=(Box(shape="box", size_m=(0.04, 0.04, 0.04)),),
        schedule=(
            Waypoint(t_s=0, position_m=ASIDE_M),
            Waypoint(t_s=COMES_S, position_m=ASIDE_M),
            Waypoint(t_s=COMES_S + 0.1, position_m=IN_THE_WAY_M),
            Waypoint(t_s=LEAVES_S, position_m=IN_THE_WAY_M),
            Waypoint(t_s=LEAVES_S + 0.5, position_m=ASIDE_M),
        ),
    )

    def script(seat: ScriptedSeat, cell: SimCell) -> Script:
        return (yield from do_goal(seat, moved(cell, -0.6)))

    return play(with_object(CHEAP, box), script)


@cache
def trolley() -> Run:
    """The scene's own task, with its own trolley."""
    return play("moving_obstacle", alone(demo("pick_place")))


RUNS = {"cart": crossing, "trolley": trolley}
CROSSED = [
    "cart",
    pytest.param("trolley", marks=pytest.mark.long),
]


@pytest.mark.parametrize("name", CROSSED)
def test_a_running_commit_is_held_when_something_comes_into_its_way(name):
    run = RUNS[name]()
    print(run.story())
    modes = [(mode, why) for _, mode, why in run.changes()]
    at = next(k for k, (mode, why) in enumerate(modes) if why.startswith(f"{name} is in the way"))
    assert modes[at][0] is Mode.HOLD
    assert modes[at - 1][0] is Mode.COMMIT


@pytest.mark.parametrize("name", CROSSED)
def test_after_that_a_new_rehearsal_is_made_committed_and_done(name):
    run = RUNS[name]()
    print(run.story())
    later = [mode for _, mode, why in run.changes()]
    later = later[next(k for k, c in enumerate(run.changes()) if "in the way" in c[2]) :]
    later = [mode for mode in later if mode is not Mode.DISARMED]
    assert later[-4:] == [Mode.REHEARSING, Mode.PREVIEW, Mode.COMMIT, Mode.HOLD]
    assert run.reasons(Mode.HOLD)[-1] == DONE


@pytest.mark.parametrize("name", CROSSED)
def test_the_rehearsal_that_was_held_and_the_one_that_was_done_are_two(name):
    run = RUNS[name]()
    digests = {r.state.playback.digest for r in run.during(Mode.COMMIT) if r.state.playback}
    print(f"{len(digests)} rehearsals were committed, at least 2")
    assert len(digests) >= 2


@pytest.mark.parametrize("name", CROSSED)
def test_nothing_comes_nearer_to_the_arm_than_the_gate_allows(name):
    run = RUNS[name]()
    limit = 1000.0 * DEFAULT.clearance_stop_m
    print(f"{name}: nothing nearer than {run.outcome.min_clearance_mm} mm, limit {limit}")
    assert run.outcome.min_clearance_mm >= limit


@pytest.mark.long
def test_with_the_trolley_the_part_is_placed():
    print(trolley().outcome.sentence())
    assert trolley().outcome.ok


# ------------------------------------------------------------------------------- two arms


class Between:
    """True distance between two arms, tools included, a few times in each tenth of a second."""

    def __init__(self) -> None:
        self.least_m = FAR_M
        self._ticks = 0
        self._pairs: list[tuple[int, int]] | None = None

    def __call__(self, cell: SimCell, record: TickRecord) -> None:
        self._ticks += 1
        if self._ticks % LOOK_TICKS:
            return
        model, data = cell.scene.model, cell.plant.world.data
        if self._pairs is None:
            a, b = (
                [g for g in range(model.ngeom) if cell.scene.geom_owner[g] == arm.name]
                for arm in cell.scene.arms
            )
            self._pairs = list(product(a, b))
        for i, k in self._pairs:
            apart = np.linalg.norm(data.geom_xpos[i] - data.geom_xpos[k])
            if apart < self.least_m + model.geom_rbound[i] + model.geom_rbound[k]:
                found = mujoco.mj_geomDistance(model, data, i, k, self.least_m, None)
                self.least_m = min(self.least_m, found)


@cache
def led() -> tuple[Run, float]:
    """One arm is led by hand straight at the other."""
    between = Between()

    def script(seat: ScriptedSeat, cell: SimCell) -> Script:
        arm = cell.brief.cell.arms[0]
        if not (yield from drive(seat)):
            return False
        tools = [s.T_world_tool[:3, 3] for s in seat.status.arms]
        towards = tools[1] - tools[0]
        seat_m = arm.T_base_seat[:3, :3].T @ arm.T_world_base[:3, :3].T @ towards
        yield from glide(seat, seat_m, float(np.linalg.norm(seat_m)) / 0.2)
        yield from seat.wait(6.0)
        return True

    return play("two_arms", script, each=between), between.least_m


@cache
def both() -> tuple[Run, float]:
    """The scene's own task: each arm puts a part into the same tray."""
    between = Between()
    return play("two_arms", alone(demo("pick_place")), each=between), between.least_m


TWO = {"led": led, "both": both}
APART = [
    "led",
    pytest.param("both", marks=pytest.mark.long),
]


@pytest.mark.parametrize("name", APART)
def test_two_arms_never_come_nearer_to_each_other_than_the_gate_allows(name):
    run, least_m = TWO[name]()
    print(f"{name}: {1000 * least_m:.1f} mm, limit {1000 * DEFAULT.clearance_stop_m}")
    print(run.story())
    assert least_m >= DEFAULT.clearance_stop_m


def test_an_arm_that_is_led_at_another_comes_near_and_stops_before_it():
    run, least_m = led()
    print(f"{1000 * least_m:.1f} mm from the other arm, limit 50; {run.records[-1].state.note}")
    assert least_m <= 0.05
    creeps_rad_s = float(np.max(np.abs(run.sent()[-1] - run.sent()[-51]))) / 0.1
    print(f"still slides at {creeps_rad_s:.1e} rad/s, limit 1e-3")
    assert creeps_rad_s <= 1e-3


@pytest.mark.long
def test_both_arms_place_their_part():
    run, _ = both()
    print(run.outcome.sentence())
    assert run.outcome.ok
    assert run.outcome.reason == "disarm"
