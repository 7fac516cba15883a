import math

import numpy as np
import pytest

from brain.body import held_spheres, place
from brain.cell import CellArm, CellModel
from brain.certify import path_at
from brain.distance import obstacles, path_clearances
from brain.geometry import frozen, transform
from brain.kinematics import tool_pose
from brain.rehearsal import GripEvent, Stream
from brain.swept import STEP_M, Swept, blocked, clearance_ahead, sweep, swept
from brain.world import Held, make_world, move_object
from tests.brain.plain_distance import box, random_world, ur5e_with_spheres
from tests.values import replace

ARM = ur5e_with_spheres()
BODY = place(ARM, np.eye(4), name="ur")
Q = np.array([0.0, -1.2, 1.6, -2.0, -1.57, 0.0])
PATH = np.stack([Q, Q + [1.2, 0.2, -0.3, 0.0, 0.4, 0.0], Q + [1.5, -0.4, 0.2, 0.3, 0.0, 1.0]])
ROWS = np.array([path_at(PATH, u) for u in np.linspace(0.0, 2.0, 1500)])
CELL = CellModel(
    name="one",
    scene_digest="",
    tick_ns=2_000_000,
    arms=(
        CellArm(
            name="ur",
            model=ARM,
            T_world_base=frozen(np.eye(4)),
            home_q_rad=frozen(Q),
            period_ns=2_000_000,
            has_wrench=False,
            T_base_seat=frozen(np.eye(4)),
        ),
    ),
    workspace_m=frozen([[-2.0, -2.0, -1.0], [2.0, 2.0, 2.0]]),
)


def stream(rows, events=()):
    return Stream(
        q_rad=frozen(rows),
        opening_m=frozen(np.zeros((len(rows), 1))),
        grip_force_n=frozen(np.zeros((len(rows), 1))),
        events=tuple(events),
    )


def exact(world, body=BODY, rows=ROWS):
    """Smallest distance of the rows to the world alone."""
    alone = replace(body, arrays=body.arrays._replace(pair=np.zeros((0, 2), dtype=np.int64)))
    return path_clearances(alone, obstacles(world), rows)


def test_clearance_ahead_is_never_above_that_of_any_row_and_little_below():
    rng = np.random.default_rng(1)
    path = Swept(parts=(sweep(BODY, ROWS),))
    above, below = -math.inf, 0.0
    for _ in range(20):
        world = random_world(rng, 3)
        found, plain = clearance_ahead(path, world), exact(world).min()
        above = max(above, found.clearance_m - plain)
        below = max(below, plain - found.clearance_m)
    print(f"above by {1000 * above:.3f} mm, limit 0; below by {1000 * below:.2f} mm, limit 5 mm")
    assert above <= 1e-9
    assert below <= STEP_M


def test_what_lies_behind_does_not_block():
    first, last = (tool_pose(ARM, ROWS[i])[:3, 3] for i in (0, -1))
    near_start = make_world((box("cart", tuple(first), (0.02, 0.02, 0.02)),))
    near_end = make_world((box("cart", tuple(last), (0.02, 0.02, 0.02)),))
    path = Swept(parts=(sweep(BODY, ROWS),))
    assert blocked(path, near_start, None, 0, 0.004) is not None
    assert blocked(path, near_start, None, 1200, 0.004) is None
    assert blocked(path, near_end, None, 1200, 0.004) is not None


def test_only_the_named_objects_are_looked_at():
    at = tuple(tool_pose(ARM, ROWS[700])[:3, 3])
    world = make_world(
        (box("in the way", at, (0.02, 0.02, 0.02)), box("far", (-0.9, -0.9, 0.9), (0.1, 0.1, 0.1)))
    )
    path = Swept(parts=(sweep(BODY, ROWS),))
    assert blocked(path, world, {"far"}, 0, 0.004) is None
    reason = blocked(path, world, {"far", "in the way"}, 0, 0.004)
    assert reason is not None
    assert reason.startswith("in the way is in the way of ur:")


def test_a_box_that_moves_into_the_way_is_reported_with_its_row():
    path = Swept(parts=(sweep(BODY, ROWS),))
    world = make_world((box("cart", (3.0, 0.0, 0.5), (0.02, 0.02, 0.02)),))
    assert clearance_ahead(path, world, {"cart"}, 0, 0.1).row == -1
    world = move_object(world, "cart", transform(tool_pose(ARM, ROWS[700])[:3, 3]))
    found = clearance_ahead(path, world, {"cart"})
    assert found.clearance_m < 0.0
    assert abs(found.row - 700) < 100


def test_a_stream_that_picks_up_a_part_sweeps_with_it_from_there_on():
    part = box("part", tuple(tool_pose(ARM, ROWS[500])[:3, 3]), (0.02, 0.02, 0.1), "part")
    T_tool_part = transform((0.0, 0.0, 0.05))
    events = [
        GripEvent(row=500, arm="ur", name="part", T_tool_object=T_tool_part, T_world_object=None),
        GripEvent(row=1000, arm="ur", name="part", T_tool_object=None, T_world_object=np.eye(4)),
    ]
    world = make_world((part,))
    path = swept(CELL, world, stream(ROWS, events), ())
    assert [(p.row[0], p.row[-1]) for p in path.parts] == [(0, 500), (500, 1000), (1000, 1499)]
    held = Held(arm="ur", name="part", T_tool_object=T_tool_part)
    loaded = place(ARM, np.eye(4), held_spheres(part, held, ARM))
    assert [len(p.body.spheres.name) for p in path.parts] == [
        len(BODY.spheres.name),
        len(loaded.spheres.name),
        len(BODY.spheres.name),
    ]
    tip = tool_pose(ARM, ROWS[750]) @ T_tool_part @ transform((0.0, 0.0, 0.09))
    cart = box("cart", tuple(tip[:3, 3]), (0.005, 0.005, 0.005))
    reason = blocked(path, make_world((part, cart)), {"cart"}, 0, 0.004)
    assert reason is not None
    assert reason.startswith("cart is in the way of ur:part")


def test_a_part_is_no_obstacle_to_the_stream_that_has_picked_it_up():
    elbow = tool_pose(ARM, ROWS[1400])[:3, 3]
    part = box("part", tuple(elbow), (0.05, 0.05, 0.05), "part")
    event = GripEvent(row=500, arm="ur", name="part", T_tool_object=np.eye(4), T_world_object=None)
    world = make_world((part,))
    assert blocked(swept(CELL, world, stream(ROWS), ()), world, None, 0, 0.004) is not None
    assert blocked(swept(CELL, world, stream(ROWS, [event]), ()), world, None, 600, 0.004) is None


def test_a_motion_that_is_not_finite_sweeps_nothing():
    rows = ROWS.copy()
    rows[3, 2] = math.nan
    with pytest.raises(ValueError, match="finite"):
        sweep(BODY, rows)


def test_an_arm_that_stands_still_sweeps_two_samples():
    part = sweep(BODY, np.tile(Q, (400, 1)), first_row=20)
    np.testing.assert_array_equal(part.row, [20, 419])
    assert not part.arrays.slack_m.any()
