"""Which branch a goal is planned to: away from singular poses where there is a choice."""

import math

import numpy as np
import pytest

from brain.ik import solve
from brain.kinematics import tool_pose
from brain.limits import DEFAULT
from brain.rehearsal import Request, Stream
from brain.singular import NEAR, is_away, mask_of, sigma_at
from brain.task import plan_goal
from brain.types import Goal
from brain.world import make_world
from tests.brain.cells import cell, sphered

CELL = cell(model=sphered())
ARM = CELL.arms[0].model
MASK = mask_of(ARM, NEAR)


def plan(start, pose, near_singular, seed=1):
    request = Request(
        number=0,
        t_ns=0,
        goal=Goal(kind="pose", arm="ur0", T_base_tool=pose),
        world=make_world(()),
        q_rad=(start,),
        measured_rad=(start,),
        opening_m=(0.0,),
    )
    return plan_goal(CELL, DEFAULT, {}, request, seed, near_singular)


def mixed_poses(n):
    """Joints near a singular pose whose tool pose has branches away from it too."""
    rng, found = np.random.default_rng(4), []
    while len(found) < n:
        q = rng.uniform(-math.pi, math.pi, 6) * (1.0, 0.3, 0.9, 1.0, 1.0, 1.0)
        q[1] -= 1.5
        if sigma_at(MASK.table, q) > 0.03:
            continue
        branches = solve(ARM, tool_pose(ARM, q)).q_rad
        away = sum(sigma_at(MASK.table, b) > 0.1 for b in branches)
        inside = tool_pose(ARM, q)[2, 3] > 0.2
        if away and inside:
            found.append(q)
    return found


def test_a_branch_away_from_singular_poses_is_taken_though_another_is_nearer():
    taken = {0.0: 0, NEAR: 0}
    poses = mixed_poses(8)
    for q in poses:
        start = q + 0.05
        for near_singular in taken:
            stream = plan(start, tool_pose(ARM, q), near_singular)
            assert isinstance(stream, Stream), stream.reason
            np.testing.assert_allclose(
                tool_pose(ARM, stream.q_rad[-1]), tool_pose(ARM, q), atol=1e-6
            )
            taken[near_singular] += is_away(MASK, stream.q_rad[-1:])
    print(f"ends away from singular poses, of {len(poses)}: {taken}")
    assert taken[NEAR] == len(poses)
    assert taken[0.0] == 0


@pytest.mark.parametrize("near_singular", [0.0, 10.0], ids=["no mask", "all is singular"])
def test_where_every_branch_is_singular_the_quickest_is_taken(near_singular):
    q = mixed_poses(1)[0]
    stream = plan(q + 0.05, tool_pose(ARM, q), near_singular)
    assert isinstance(stream, Stream)
    assert np.max(np.abs(stream.q_rad[-1] - q)) < 1e-6


def test_equal_requests_give_equal_streams_with_the_mask():
    q = mixed_poses(1)[0]
    one, two = (plan(q + 0.05, tool_pose(ARM, q), NEAR) for _ in range(2))
    assert one.q_rad.tobytes() == two.q_rad.tobytes()
