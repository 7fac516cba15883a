"""A hand that pushes the tool into things: the tool goes along them and keeps its distance."""

import numpy as np
import pytest
from scipy.optimize import minimize

from brain import local
from brain.body import place, pose, work
from brain.distance import arm_clearance, obstacles
from brain.geometry import transform
from brain.kinematics import tool_pose
from brain.limits import DEFAULT, soft_range
from brain.types import Action, Mode
from brain.world import make_world
from tests.brain import plain
from tests.brain.cells import HOME, cell, sphered
from tests.ideal import Bench, box

SOLID = cell(model=sphered())
MODEL = SOLID.arms[0].model
BODY = place(MODEL, SOLID.arms[0].T_world_base)
X, Y, Z = tool_pose(MODEL, HOME)[:3, 3]
SPEED_M_S, DT_S = 0.25, 0.002
START = np.array([0.3, 0.2, 1.1])


def bench(*things) -> Bench:
    made = Bench(SOLID, world=make_world(things))
    made.arm_and_drive()
    assert made.mode is Mode.TELEOP, made.reason
    return made


def table(gap_m: float = 0.06):
    """A slab whose top is so far below the lowest sphere of the hand."""
    at = work(BODY)
    assert pose(BODY.arrays, HOME, at)
    hand = BODY.spheres.link == 6
    low_m = float((at.centre_m[hand, 2] - BODY.spheres.radius_m[hand]).min())
    return box("table", (0.5, 1.2, 0.1), (X - 0.05, Y, low_m - gap_m - 0.05))


def wall():
    """A box beside the arm, on the side to which y grows."""
    there = box("wall", (0.6, 0.1, 0.8), (X, Y + 0.6, Z))
    gap_m = arm_clearance(BODY, obstacles(make_world((there,))), HOME).distance_m
    return box("wall", (0.6, 0.1, 0.8), (X, Y + 0.66 - gap_m, Z))


def push(b: Bench, way, seconds: float) -> np.ndarray:
    """Lead the hand at 0.25 m/s along a way (3,); return the commanded joints (k, n)."""
    way, first = np.array(way) / np.linalg.norm(way), len(b.records)
    at = b.hand[:3, 3].copy()
    for k in range(round(seconds / DT_S)):
        b.hand = transform(at + way * SPEED_M_S * DT_S * k)
        b.tick()
    return np.array([r.passed[0].memory.q_rad for r in b.records[first:]])


def smallest_m(b: Bench) -> float:
    return min(r.passed[0].clearance_m for r in b.records if r.passed[0].clearance_m is not None)


def never_held(b: Bench) -> None:
    assert b.mode is Mode.TELEOP, b.reason
    driven = [r for r in b.records if r.passed[0].answer.action is Action.HOLD]
    assert not driven, driven[0].passed[0].answer.sentence()


# ---------------------------------------------------------------- sliding


@pytest.mark.parametrize("down", [0.3, 0.6, 1.0], ids=["17 deg", "31 deg", "45 deg"])
@pytest.mark.parametrize("along", [(-1, 0), (0, 1), (0, -1)], ids=["-x", "+y", "-y"])
def test_a_tool_pushed_into_a_table_at_an_angle_goes_along_it(along, down):
    b = bench(table())
    way = np.array([*along, -down])
    q = push(b, way, 2.4)
    never_held(b)
    slid = tool_pose(MODEL, q[-1])[:2, 3] - tool_pose(MODEL, q[len(q) // 2])[:2, 3]
    speed = float(slid @ np.array(along)) / (DT_S * len(q) / 2)
    aside = abs(float(slid @ np.array([-along[1], along[0]])))
    share = DEFAULT.planning().speed_share(0.006)
    least = 0.8 * SPEED_M_S * share / np.hypot(1.0, down)
    print(f"slides at {speed:.3f} m/s, least {least:.3f}; {1e3 * smallest_m(b):.2f} mm near")
    assert speed > least
    assert aside < 0.005
    assert smallest_m(b) >= DEFAULT.clearance_stop_m
    tilt = np.abs(tool_pose(MODEL, q[-1])[:3, :3] - tool_pose(MODEL, HOME)[:3, :3]).max()
    assert tilt < 0.02, f"tilted by {tilt}, limit 0.02"
    assert smallest_m(b) < 0.012, "it never came to the table"


def test_a_tool_pushed_into_a_wall_at_an_angle_goes_along_it():
    b = bench(wall())
    q = push(b, (-0.5, 1.0, 0.3), 2.4)
    never_held(b)
    slid = tool_pose(MODEL, q[-1])[:3, 3] - tool_pose(MODEL, q[len(q) // 2])[:3, 3]
    assert slid[0] < -0.01
    assert "goes along it" in b.note
    assert smallest_m(b) >= DEFAULT.clearance_stop_m


def test_a_straight_push_rests_at_the_margin_without_chatter():
    b = bench(table())
    push(b, (0, 0, -1), 1.5)
    b.run(500)
    never_held(b)
    first = len(b.records)
    b.run(1000)
    motions = [r.passed[0].memory for r in b.records[first:]]
    fastest = max(float(np.abs(m.dq_rad_s).max()) for m in motions)
    wander = float(np.ptp([m.q_rad for m in motions], axis=0).max())
    near = b.records[-1].passed[0].clearance_m
    print(f"at rest {1e3 * near:.2f} mm away, joints {fastest:.1e} rad/s, wander {wander:.1e} rad")
    assert fastest < 0.01
    assert wander < 0.002
    assert DEFAULT.clearance_stop_m <= smallest_m(b)
    assert near < 0.012
    assert "goes along it" in b.note


def test_after_a_push_the_tool_comes_back_to_the_hand():
    b = bench(table())
    push(b, (0, 0, -1), 1.5)
    push(b, (0, 0, 1), 1.5)
    b.run(1000)
    never_held(b)
    off = float(np.linalg.norm(tool_pose(MODEL, b.joints())[:3, 3] - np.array([X, Y, Z])))
    asked = float(np.linalg.norm(b.hand[:3, 3] - START))
    print(f"{1e3 * off:.2f} mm from where it started, the hand {1e3 * asked:.2f}")
    assert abs(off - asked) < 0.002


def test_at_a_joint_limit_the_tool_goes_along_it():
    low, high = soft_range(DEFAULT.planning(), MODEL.limits)
    b = Bench(cell())
    q = HOME.copy()
    q[0] = high[0] - 0.1
    b.arms[0].motion = type(b.arms[0].motion)(q_rad=q, dq_rad_s=np.zeros(6), ddq_rad_s2=np.zeros(6))
    b.arm_and_drive()
    start = tool_pose(MODEL, b.joints())[:3, 3]
    out = plain.jacobian(MODEL, q)[:3, 0]  # where joint 1 leads the tool
    rows = push(b, out / np.linalg.norm(out) + np.array([0, 0, 0.5]), 1.6)
    never_held(b)
    assert (rows >= low).all()
    print(f"over the soft range by at most {(rows - high).max():.1e} rad")
    assert (rows <= high + 0.1 * DEFAULT.soft_margin_rad).all()  # following overshoots a little
    up = tool_pose(MODEL, rows[-1])[2, 3] - start[2]
    assert up > 0.08, f"went {up:.3f} m up, at least 0.08"


# ---------------------------------------------------------------- the program itself


def steered(q_rad, wanted, things, keep_m=0.01, horizon_s=0.2):
    s = local.scratch(6)
    s.dq_rad_s[:], s.lower_rad_s[:], s.upper_rad_s[:] = wanted, -1.0, 1.0
    near = obstacles(make_world(things)).arrays
    done = local.steer(BODY.arrays, near, np.array(q_rad), keep_m, horizon_s, work(BODY), s)
    return done, s


def test_far_from_everything_nothing_changes_by_a_bit():
    wanted = np.array([0.3, -0.2, 0.1, 0.4, -0.5, 0.6])
    done, s = steered(HOME, wanted, ())
    assert done == local.FREE
    assert np.array_equal(s.dq_rad_s, wanted)


def test_speeds_equal_the_optimum_of_an_independent_solver():
    rng, found = np.random.default_rng(1), 0
    for _ in range(60):
        wanted = rng.uniform(-1, 1, 6)
        done, s = steered(HOME, wanted, (table(0.02),))
        if done != local.NARROWED:
            continue
        found += 1
        J, used = plain.jacobian(MODEL, HOME), np.abs(s.row).max(axis=1) > 0
        A, room = s.row[used].copy(), s.room[used].copy()

        def cost(dq, J=J, wanted=wanted):
            off = dq - wanted
            return float(off @ (J.T @ J + local.SMOOTH**2 * np.eye(6)) @ off)

        best = minimize(
            cost,
            np.zeros(6),
            bounds=[(-1, 1)] * 6,
            constraints={"type": "ineq", "fun": lambda dq, A=A, room=room: A @ dq + room},
            options={"ftol": 1e-14, "maxiter": 500},
        )
        assert (A @ s.dq_rad_s >= -room - local.ROUNDING_M_S).all()
        assert cost(s.dq_rad_s) <= best.fun + 1e-5, (cost(s.dq_rad_s), best.fun)
    assert found > 10


def test_the_rows_are_the_gradients_of_the_distance():
    there = (table(0.02),)
    near = obstacles(make_world(there))
    _, s = steered(HOME, np.array([0.0, 0.2, 0.0, 0.0, 0.0, 0.0]), there)
    d = arm_clearance(BODY, near, HOME).distance_m
    r = int(np.argmin(np.where(np.abs(s.row).max(axis=1) > 0, s.room, np.inf)))
    for k in range(6):
        h = 1e-6 * np.eye(6)[k]
        slope = (arm_clearance(BODY, near, HOME + h).distance_m - d) / 1e-6
        assert s.row[r, k] == pytest.approx(slope, abs=1e-4)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_what_is_not_finite_moves_nothing(bad):
    broken = HOME.copy()
    broken[2] = bad
    wanted = np.full(6, 0.1)
    assert steered(broken, wanted, (table(),))[0] == local.NOT_FINITE
    wanted[3] = bad
    done, s = steered(HOME, wanted, (table(),))
    assert done == local.NOT_FINITE
    assert not s.dq_rad_s.any()


def test_the_same_question_gets_the_same_answer_bit_for_bit():
    wanted = np.array([0.1, 0.9, 0.3, -0.2, 0.1, 0.0])
    first, second = (steered(HOME, wanted, (table(0.015),)) for _ in range(2))
    assert first[0] == second[0] == local.NARROWED
    assert first[1].dq_rad_s.tobytes() == second[1].dq_rad_s.tobytes()


def test_gently_weighs_distance_2_3_times_and_starts_softer_quickly_harder():
    normal, gently, quickly = (local.MANNERS[m] for m in ("normal", "gently", "quickly"))
    assert gently.distance == 2.3 * normal.distance
    assert gently.speed_up_s > normal.speed_up_s > quickly.speed_up_s


def test_a_gentle_hand_keeps_2_3_times_as_far_from_the_table():
    near = {}
    for manner in ("normal", "gently"):
        b = bench(table())
        b.manner = manner
        push(b, (0, 0, -1), 1.5)
        b.run(500)
        never_held(b)
        near[manner] = b.records[-1].passed[0].clearance_m
    print(near)
    assert near["gently"] == pytest.approx(2.3 * near["normal"], rel=0.1)


def test_a_quick_hand_starts_sooner_than_a_gentle_one():
    way = {}
    for manner in ("gently", "normal", "quickly"):
        b = bench()
        b.manner = manner
        start = tool_pose(MODEL, b.joints())[:3, 3]
        push(b, (-1, 0, 0), 0.3)
        never_held(b)
        way[manner] = float(np.linalg.norm(tool_pose(MODEL, b.joints())[:3, 3] - start))
    print(way)
    assert way["gently"] < 0.8 * way["normal"]
    assert way["normal"] < way["quickly"]
