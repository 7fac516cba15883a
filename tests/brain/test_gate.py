"""Every rule of the gate at both sides of its edge, and what comes out when it refuses."""

import math

import numpy as np
import pytest

from brain.gate import COMMAND_TICKS, GateView, Passed, gate
from brain.geometry import frozen
from brain.kinematics import tool_pose
from brain.limits import DEFAULT
from brain.motion import Motion, at_rest
from brain.types import Action, ArmState, Mode
from tests.brain.cells import HOME, cell
from tests.values import replace

T = 10_000_000_000
DT = 0.002
ONE = cell()
ARM = ONE.arms[0].model
MS = 1_000_000


def state(q=HOME, age_ns=0, stopped=False) -> ArmState:
    return ArmState(
        t_ns=T - age_ns,
        seq=1,
        q_rad=frozen(q),
        dq_rad_s=frozen(np.zeros(6)),
        tau_nm=None,
        stopped=stopped,
    )


def far(i, q):
    return 1.0


def view(wish=None, mode=Mode.TELEOP, clearance=far, around=far, **over) -> GateView:
    asked = clearance if callable(clearance) else lambda i, q: clearance
    made = GateView(
        t_ns=T,
        mode=mode,
        wishes=(wish,),
        states=(state(),),
        force_n=(0.0,),
        engaged=True,
        operator_age_ns=0,
        near=lambda i, q: (asked(i, q), around(i, q)),
    )
    return replace(made, **over)


def ask(seen: GateView, memory: Motion | None = None, limits=DEFAULT) -> Passed:
    (passed,) = gate(ONE, limits, (at_rest(HOME) if memory is None else memory,), seen)
    return passed


def moving(joint=0, speed=0.5, acceleration=0.0, q=HOME) -> Motion:
    dq, ddq = np.zeros(6), np.zeros(6)
    dq[joint], ddq[joint] = speed, acceleration
    return Motion(q_rad=frozen(q), dq_rad_s=dq, ddq_rad_s2=ddq)


def stepped(memory: Motion, joint=0, speed=None, acceleration=0.0) -> np.ndarray:
    """Joints one tick on, with that joint's speed changed by acceleration."""
    dq = memory.dq_rad_s.copy()
    dq[joint] = (dq[joint] if speed is None else speed) + acceleration * DT
    return memory.q_rad + dq * DT


def steady(joint=5, speed=0.9) -> tuple[Motion, np.ndarray]:
    """Joint 6 turns the tool in place: joint speed without tool speed."""
    memory = moving(joint, speed)
    return memory, stepped(memory, joint)


# ------------------------------------------------------------------------------ what stops


def test_a_command_lives_for_five_ticks():
    assert COMMAND_TICKS == 5


def assert_stopped(passed: Passed, rule: str) -> None:
    assert passed.answer.action is Action.STOP
    assert passed.answer.rule == rule
    assert passed.answer.arm == "ur0"
    assert passed.command.stop
    assert passed.command.q_rad is None
    assert passed.clearance_m is None
    assert passed.command.t_ns == T
    assert passed.command.expires_ns == T + COMMAND_TICKS * ONE.tick_ns
    assert passed.command.seq == T // ONE.tick_ns


@pytest.mark.parametrize("mode", [Mode.DISARMED, Mode.STOPPED, Mode.FAULT])
def test_in_a_limp_mode_the_arm_is_told_to_stop_whatever_is_wished(mode):
    passed = ask(view(stepped(moving()), mode=mode), moving())
    assert_stopped(passed, f"mode {mode}")
    assert passed.answer.value == 0.0
    assert passed.answer.limit == 0.0


def test_after_a_stop_the_arm_will_be_held_where_it_was_measured():
    measured = HOME + 0.3
    passed = ask(view(mode=Mode.STOPPED, states=(state(measured),)), moving())
    assert np.array_equal(passed.memory.q_rad, measured)
    assert not np.any(passed.memory.dq_rad_s)
    assert not np.any(passed.memory.ddq_rad_s2)


def test_no_command_before_the_first_state():
    passed = ask(view(HOME, states=(None,)))
    assert_stopped(passed, "no state")
    assert passed.memory is None
    assert (passed.answer.value, passed.answer.limit) == (0.0, 0.0)


@pytest.mark.parametrize(
    ("age_ms", "ok"), [(0, True), (40, True), (40.001, False), (-1e-6, False), (1000, False)]
)
def test_an_old_or_future_state_stops(age_ms, ok):
    passed = ask(view(states=(state(age_ns=round(age_ms * MS)),)))
    assert (passed.answer.action is Action.ALLOW) == ok
    if not ok:
        assert_stopped(passed, "state age ms")
        assert passed.answer.value == pytest.approx(age_ms)
        assert passed.answer.limit == pytest.approx(40)


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_a_state_that_is_not_finite_stops_and_is_not_remembered(bad):
    q = HOME.copy()
    q[3] = bad
    passed = ask(view(states=(state(q),)))
    assert_stopped(passed, "state not finite")
    assert passed.memory is None
    assert math.isnan(passed.answer.value)
    assert passed.answer.limit == 0.0


def test_a_state_of_another_arm_stops():
    assert_stopped(ask(view(states=(state(np.zeros(7)),))), "state not finite")


@pytest.mark.parametrize("mode", [Mode.TELEOP, Mode.COMMIT])
def test_an_arm_that_stopped_by_itself_stops_a_motion(mode):
    passed = ask(view(HOME, mode=mode, states=(state(stopped=True),)))
    assert_stopped(passed, "arm stopped by itself")
    assert (passed.answer.value, passed.answer.limit) == (1.0, 0.0)


def test_an_arm_that_is_just_being_started_may_still_say_stopped_in_hold():
    passed = ask(view(mode=Mode.HOLD, states=(state(stopped=True),)))
    assert passed.answer.action is Action.ALLOW


@pytest.mark.parametrize(
    ("force", "ok"), [(None, True), (30.0, True), (30.001, False), (math.nan, False)]
)
def test_too_much_force_stops(force, ok):
    passed = ask(view(force_n=(force,)))
    assert (passed.answer.action is Action.ALLOW) == ok
    if not ok:
        assert_stopped(passed, "force N")
        assert passed.answer.value is force
        assert passed.answer.limit == 30.0


@pytest.mark.parametrize(("off", "ok"), [(0.05, True), (0.0501, False), (-0.0501, False)])
def test_an_arm_far_from_its_command_stops(off, ok):
    q = HOME.copy()
    q[0] += off  # from 0, so that the edge itself is met
    passed = ask(view(states=(state(q),)))
    assert (passed.answer.action is Action.ALLOW) == ok
    if not ok:
        assert_stopped(passed, "tracking error rad")
        assert passed.answer.value == pytest.approx(abs(off))
        assert passed.answer.limit == 0.05


def test_an_arm_seen_for_the_first_time_is_held_where_it_is():
    (passed,) = gate(ONE, DEFAULT, (None,), view(mode=Mode.HOLD, states=(state(HOME + 1.0),)))
    assert passed.answer.action is Action.ALLOW
    assert np.array_equal(passed.command.q_rad, HOME + 1.0)


# ------------------------------------------------------------------------- whether it may move


@pytest.mark.parametrize(
    ("mode", "age_ms", "ok"),
    [
        (Mode.TELEOP, 0, True),
        (Mode.TELEOP, 100, True),
        (Mode.TELEOP, 100.001, False),
        (Mode.TELEOP, -1e-6, False),
        (Mode.COMMIT, 200, True),
        (Mode.COMMIT, 200.001, False),
        (Mode.HOLD, 5000, True),
        (Mode.PREVIEW, 5000, True),
    ],
)
def test_old_or_future_input_holds_where_an_arm_may_move(mode, age_ms, ok):
    passed = ask(view(mode=mode, operator_age_ns=round(age_ms * MS)))
    assert passed.answer.action is (Action.ALLOW if ok else Action.HOLD)
    if not ok:
        assert passed.answer.rule == "input age ms"
        assert passed.answer.value == pytest.approx(age_ms)
        assert passed.answer.limit == pytest.approx(100 if mode is Mode.TELEOP else 200)


def test_no_operator_at_all_holds():
    passed = ask(view(operator_age_ns=None))
    assert (passed.answer.action, passed.answer.rule) == (Action.HOLD, "no operator")
    assert (passed.answer.value, passed.answer.limit) == (0.0, 0.0)


@pytest.mark.parametrize("mode", [Mode.TELEOP, Mode.COMMIT])
def test_a_released_dead_man_holds(mode):
    passed = ask(view(HOME, mode=mode, engaged=False))
    assert (passed.answer.action, passed.answer.rule) == (Action.HOLD, "dead-man")
    assert (passed.answer.value, passed.answer.limit) == (0.0, 1.0)


def test_at_rest_nothing_is_wrong_and_the_joints_stay_bit_for_bit():
    memory = at_rest(HOME)
    passed = ask(view(mode=Mode.HOLD, engaged=False, operator_age_ns=None), memory)
    assert (passed.answer.action, passed.answer.rule) == (Action.ALLOW, "rest")
    assert (passed.answer.value, passed.answer.limit) == (0.0, 0.0)
    assert passed.memory is memory
    assert np.array_equal(passed.command.q_rad, HOME)
    assert not passed.command.stop
    assert passed.clearance_m == 1.0


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_a_wish_that_is_not_finite_holds(bad):
    wish = HOME.copy()
    wish[0] = bad
    passed = ask(view(wish))
    assert (passed.answer.action, passed.answer.rule) == (Action.HOLD, "command not finite")
    assert math.isnan(passed.answer.value)
    assert passed.answer.limit == 0.0
    assert np.array_equal(passed.command.q_rad, HOME)


def test_a_wish_of_another_shape_holds():
    passed = ask(view(np.zeros(7)))
    assert (passed.answer.action, passed.answer.rule) == (Action.HOLD, "command not finite")


# -------------------------------------------------------------------------------------- speed


def test_a_motion_within_all_limits_passes_unchanged():
    memory, wish = steady()
    passed = ask(view(wish), memory)
    assert (passed.answer.action, passed.answer.rule) == (Action.ALLOW, "motion")
    assert (passed.answer.value, passed.answer.limit) == (0.0, 0.0)
    assert np.array_equal(passed.command.q_rad, wish)
    assert passed.memory.dq_rad_s[5] == pytest.approx(0.9)
    assert passed.memory.ddq_rad_s2[5] == pytest.approx(0.0, abs=1e-9)
    assert passed.clearance_m == 1.0


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_joint_that_is_too_fast_is_scaled_in_teleop(sign):
    memory = moving(5, sign * 0.999)
    wish = stepped(memory, 5, sign * 1.25)
    passed = ask(view(wish), memory, replace(DEFAULT, joint_jerk_rad_s3=1e6))
    assert (passed.answer.action, passed.answer.rule) == (Action.LIMIT, "joint 6 speed rad/s")
    assert passed.answer.value == pytest.approx(1.25)
    assert passed.answer.limit == 1.0
    assert passed.memory.dq_rad_s[5] == pytest.approx(sign * 1.0)


def test_a_joint_exactly_at_its_speed_passes():
    memory, wish = steady(speed=1.0)
    assert ask(view(wish), memory).answer.action is Action.ALLOW


@pytest.mark.parametrize(("over", "ok"), [(1.0 + 1e-6, True), (1.0 + 1.1e-6, False)])
def test_rounding_at_the_edge_of_a_limit_is_forgiven_and_no_more(over, ok):
    memory = moving(5, over)
    passed = ask(view(stepped(memory, 5)), memory)
    assert passed.answer.action is (Action.ALLOW if ok else Action.LIMIT)


def test_a_slow_joint_that_is_too_fast_is_found_behind_a_fast_one_that_is_not():
    dq_max = np.full(6, math.pi)
    dq_max[0] = 0.1
    model = replace(ARM, limits=replace(ARM.limits, dq_max_rad_s=frozen(dq_max)))
    slow = replace(ONE, arms=(replace(ONE.arms[0], model=model),))
    dq = np.array([0.12, 0.0, 0.0, 0.0, 0.0, 1.0])
    memory = Motion(q_rad=frozen(HOME), dq_rad_s=dq, ddq_rad_s2=np.zeros(6))
    limits = replace(DEFAULT, stop_deceleration_rad_s2=1e6)
    (passed,) = gate(slow, limits, (memory,), view(HOME + dq * DT))
    assert (passed.answer.action, passed.answer.rule) == (Action.LIMIT, "joint 1 speed rad/s")
    assert passed.answer.value == pytest.approx(0.12)
    assert passed.answer.limit == 0.1


def test_a_rehearsed_motion_that_would_have_to_be_scaled_is_held():
    memory = moving(5, 0.999)
    wish = stepped(memory, 5, 1.25)
    passed = ask(view(wish, mode=Mode.COMMIT), memory, replace(DEFAULT, joint_jerk_rad_s3=1e6))
    assert (passed.answer.action, passed.answer.rule) == (Action.HOLD, "joint 6 speed rad/s")
    assert passed.answer.value == pytest.approx(1.25)
    assert passed.answer.limit == 1.0
    assert passed.memory.dq_rad_s[5] == pytest.approx(0.999 - 10.0 * DT)


def tool_speed(memory: Motion, wish: np.ndarray) -> float:
    a, b = tool_pose(ARM, memory.q_rad), tool_pose(ARM, wish)
    return float(np.linalg.norm(b[:3, 3] - a[:3, 3])) / DT


def test_the_tool_is_scaled_to_its_speed_in_teleop():
    memory = moving(0, 0.9)
    wish = stepped(memory, 0)
    asked = tool_speed(memory, wish)
    assert asked > 0.25
    limits = replace(DEFAULT, joint_jerk_rad_s3=1e9, stop_deceleration_rad_s2=1e6)
    passed = ask(view(wish), memory, limits)
    assert (passed.answer.action, passed.answer.rule) == (Action.LIMIT, "tool speed m/s")
    assert passed.answer.value == pytest.approx(asked)
    assert passed.answer.limit == pytest.approx(0.25)
    got = tool_speed(memory, passed.command.q_rad)
    assert got == pytest.approx(0.25, rel=1e-3), f"{got} m/s, limit 0.25"


def test_the_worse_of_joint_and_tool_speed_decides():
    memory = moving(0, 1.1)
    wish = stepped(memory, 0)
    limits = replace(DEFAULT, joint_jerk_rad_s3=1e9, stop_deceleration_rad_s2=1e6)
    assert ask(view(wish), memory, limits).answer.rule == "tool speed m/s"
    generous = replace(limits, tool_speed_m_s=10.0)
    assert ask(view(wish), memory, generous).answer.rule == "joint 1 speed rad/s"


@pytest.mark.parametrize(
    ("clearance", "share"), [(0.1, 1.0), (1.0, 1.0), (0.052, 0.6), (0.004, 0.2), (-1.0, 0.2)]
)
def test_the_tool_slows_down_near_obstacles(clearance, share):
    memory = moving(0, 0.9)
    wish = stepped(memory, 0)
    limits = replace(
        DEFAULT, joint_jerk_rad_s3=1e9, stop_deceleration_rad_s2=1e6, clearance_stop_m=0.004
    )

    def around(i, q):
        assert i == 0
        return clearance if np.array_equal(q, wish) else 1.0

    passed = ask(view(wish, around=around), memory, limits)
    assert passed.answer.rule == "tool speed m/s"
    assert passed.answer.limit == pytest.approx(0.25 * share)


# ------------------------------------------------------------------------- acceleration and jerk


@pytest.mark.parametrize(("acceleration", "ok"), [(5.0, True), (5.01, False), (-5.01, False)])
def test_a_joint_that_accelerates_too_much_is_held(acceleration, ok):
    memory = moving(5, 0.5, acceleration)
    passed = ask(view(stepped(memory, 5, acceleration=acceleration)), memory)
    assert passed.answer.action is (Action.ALLOW if ok else Action.HOLD)
    if not ok:
        assert passed.answer.rule == "joint acceleration rad/s^2"
        assert passed.answer.value == pytest.approx(5.01)
        assert passed.answer.limit == 5.0
        assert passed.memory.dq_rad_s[5] == pytest.approx(0.5 - 10.0 * DT)


@pytest.mark.parametrize(("jerk", "ok"), [(100.0, True), (101.0, False), (-101.0, False)])
def test_a_joint_that_jerks_is_held(jerk, ok):
    memory = moving(5, 0.5, 1.0)
    passed = ask(view(stepped(memory, 5, acceleration=1.0 + jerk * DT)), memory)
    assert passed.answer.action is (Action.ALLOW if ok else Action.HOLD)
    if not ok:
        assert passed.answer.rule == "joint jerk rad/s^3"
        assert passed.answer.value == pytest.approx(101.0)
        assert passed.answer.limit == 100.0


def test_a_jump_of_the_wish_is_held_and_the_arm_brakes():
    memory = moving(5, 0.5)
    passed = ask(view(HOME + 1.0), memory)
    assert passed.answer.action is Action.HOLD
    assert passed.memory.dq_rad_s[5] == pytest.approx(0.5 - 10.0 * DT)
    assert not np.any(passed.memory.dq_rad_s[:5])


@pytest.mark.parametrize("mode", [Mode.HOLD, Mode.REHEARSING, Mode.PREVIEW])
def test_in_a_holding_mode_a_motion_may_only_slow_down(mode):
    memory = moving(5, 0.5)
    slower = ask(view(stepped(memory, 5, acceleration=-10.0), mode=mode), memory)
    assert slower.answer.action is Action.ALLOW
    same = ask(view(stepped(memory, 5), mode=mode), memory)
    assert same.answer.action is Action.ALLOW
    faster = ask(view(stepped(memory, 5, acceleration=0.01), mode=mode), memory)
    assert (faster.answer.action, faster.answer.rule) == (Action.HOLD, f"motion in mode {mode}")
    assert faster.answer.value == pytest.approx(0.50002)
    assert faster.answer.limit == 0.0


def test_slowing_down_in_hold_has_the_stops_deceleration_as_its_limit():
    memory = moving(5, 0.5)
    passed = ask(view(stepped(memory, 5, acceleration=-10.1), mode=Mode.HOLD), memory)
    assert (passed.answer.action, passed.answer.rule) == (
        Action.HOLD,
        "joint acceleration rad/s^2",
    )
    assert passed.answer.value == pytest.approx(10.1)
    assert passed.answer.limit == 10.0


def test_in_a_moving_mode_slowing_down_obeys_acceleration_and_jerk():
    memory = moving(5, 0.5)
    for mode in (Mode.TELEOP, Mode.COMMIT):
        hard = ask(view(stepped(memory, 5, acceleration=-6.0), mode=mode), memory)
        assert hard.answer.rule == "joint acceleration rad/s^2"
        sudden = ask(view(stepped(memory, 5, acceleration=-4.0), mode=mode), memory)
        assert sudden.answer.rule == "joint jerk rad/s^3"


def test_a_scaled_motion_that_slows_down_has_no_jerk_limit():
    memory = moving(5, 1.01)
    passed = ask(view(stepped(memory, 5)), memory)
    assert passed.answer.action is Action.LIMIT
    assert passed.memory.dq_rad_s[5] == pytest.approx(1.0)


@pytest.mark.parametrize("speed", [0.5, 0.985])
def test_a_scaled_motion_that_speeds_up_obeys_acceleration(speed):
    memory = moving(5, speed)
    passed = ask(view(stepped(memory, 5, 2.0)), memory)
    assert (passed.answer.action, passed.answer.rule) == (
        Action.HOLD,
        "joint acceleration rad/s^2",
    )
    assert passed.answer.value == pytest.approx((1.0 - speed) / DT)
    assert passed.answer.limit == 5.0


def test_a_scaled_motion_that_speeds_up_a_little_has_no_jerk_limit():
    memory = moving(5, 0.995)
    passed = ask(view(stepped(memory, 5, 2.0)), memory)
    assert passed.answer.action is Action.LIMIT
    assert passed.memory.ddq_rad_s2[5] == pytest.approx(2.5)


def test_a_hold_goes_on_from_where_the_arm_was_last_sent():
    for passed in (
        ask(view(mode=Mode.HOLD), moving(5, 0.5)),
        ask(view(HOME + 1.0), moving(5, 0.5)),
    ):
        assert passed.memory.dq_rad_s[5] == pytest.approx(0.5 - 10.0 * DT)
        assert passed.command.q_rad[5] == pytest.approx((0.5 - 10.0 * DT) * DT)
        assert np.array_equal(passed.command.q_rad[:5], HOME[:5])


@pytest.mark.parametrize(
    "asked", [{"mode": Mode.HOLD}, {"wishes": (HOME, HOME + 1.0)}, {"wishes": (HOME, HOME)}]
)
def test_clearance_is_asked_for_that_arm_at_the_joints_it_is_sent_to(asked):
    two = cell(arms=2)
    memories = (at_rest(HOME), moving(5, 0.01))
    seen = view(clearance=lambda i, q: 10.0 * i + q[5], **{"wishes": (None, None), **asked})
    seen = replace(seen, states=(state(), state()), force_n=(None, None))
    for i, passed in enumerate(gate(two, DEFAULT, memories, seen)):
        assert passed.clearance_m == 10.0 * i + passed.command.q_rad[5]


def test_a_scaled_motion_is_judged_where_it_is_scaled_to():
    memory = moving(5, 1.0)
    passed = ask(view(stepped(memory, 5, 1.25), clearance=lambda i, q: -q[5]), memory)
    assert passed.answer.rule == "clearance m"
    assert passed.answer.value == pytest.approx(-1.0 * DT)


# -------------------------------------------------------------------------------------- place


def near_limit(joint: int, beyond: float, speed: float) -> tuple[Motion, np.ndarray]:
    q = HOME.copy()
    q[joint] = ARM.limits.q_max_rad[joint] + beyond
    memory = moving(joint, speed, q=q)
    return memory, stepped(memory, joint)


@pytest.mark.parametrize(
    ("beyond", "speed", "ok"),
    [
        (-0.1, 0.1, True),
        (-1e-5, 0.1, False),
        (0.05, 0.1, False),
        (0.05, -0.1, True),
        (0.05, 0.0, True),
    ],
)
def test_a_joint_may_not_go_beyond_its_range_but_may_come_back(beyond, speed, ok):
    memory, wish = near_limit(5, beyond, speed)
    passed = ask(view(wish, states=(state(memory.q_rad),)), memory)
    assert passed.answer.action is (Action.ALLOW if ok else Action.HOLD)
    if not ok:
        assert passed.answer.rule == "joint 6 beyond its range rad"
        assert passed.answer.value == pytest.approx(beyond + speed * DT)
        assert passed.answer.limit == 0.0


def test_the_lower_end_of_the_range_counts_as_well():
    q = HOME.copy()
    q[5] = ARM.limits.q_min_rad[5] + 1e-5
    memory = moving(5, -0.1, q=q)
    passed = ask(view(stepped(memory, 5), states=(state(q),)), memory)
    assert passed.answer.rule == "joint 6 beyond its range rad"


@pytest.mark.parametrize("other", [0.5, -0.5])
def test_a_joint_that_goes_out_is_found_behind_one_that_moves_faster_inside(other):
    q = HOME.copy()
    q[5] = ARM.limits.q_max_rad[5] + 0.01
    dq = np.zeros(6)
    dq[5], dq[4] = 0.01, other
    memory = Motion(q_rad=frozen(q), dq_rad_s=dq, ddq_rad_s2=np.zeros(6))
    passed = ask(view(q + dq * DT, states=(state(q),)), memory)
    assert passed.answer.rule == "joint 6 beyond its range rad"


def test_a_joint_that_goes_out_is_found_behind_one_that_stays_farther_out():
    q = HOME.copy()
    q[4:] = ARM.limits.q_max_rad[4:] + np.array([0.01, 0.05])
    memory = moving(4, 0.01, q=q)
    passed = ask(view(stepped(memory, 4), states=(state(q),)), memory)
    assert passed.answer.rule == "joint 5 beyond its range rad"


def test_a_joint_that_stays_out_does_not_hold_the_others():
    q = HOME.copy()
    q[0], q[5] = ARM.limits.q_max_rad[0] + 0.05, 0.5
    memory = moving(5, -0.1, q=q)
    passed = ask(view(stepped(memory, 5), states=(state(q),)), memory)
    assert passed.answer.action is Action.ALLOW


def workspace_from(low_z: float):
    return replace(ONE, workspace_m=frozen([[-2.0, -2.0, low_z], [2.0, 2.0, 2.0]]))


@pytest.mark.parametrize(("down", "ok"), [(True, False), (False, True)])
def test_outside_the_workspace_the_tool_may_only_come_back(down, ok):
    z = float(tool_pose(ARM, HOME)[2, 3])
    memory = moving(1, 0.1)
    lower = tool_pose(ARM, stepped(memory, 1))[2, 3] < z
    memory = moving(1, 0.1 if lower == down else -0.1)
    wish = stepped(memory, 1)
    place = workspace_from(z + 0.01)
    (passed,) = gate(place, DEFAULT, (memory,), view(wish))
    assert passed.answer.action is (Action.ALLOW if ok else Action.HOLD)
    if not ok:
        assert passed.answer.rule == "outside the workspace m"
        assert passed.answer.value == pytest.approx(z + 0.01 - float(tool_pose(ARM, wish)[2, 3]))
        assert passed.answer.limit == 0.0


def rising(low_z: float, wish: np.ndarray | None = None) -> Passed:
    """Answer for a tool that goes down 0.2 mm, or to a wish, above a floor at that height."""
    memory = moving(1, 0.1)
    if tool_pose(ARM, stepped(memory, 1))[2, 3] > tool_pose(ARM, HOME)[2, 3]:
        memory = moving(1, -0.1)
    if wish is not None:
        memory = at_rest(HOME)
    wish = stepped(memory, 1) if wish is None else wish
    floor = workspace_from(tool_pose(ARM, wish)[2, 3] if low_z == 0.0 else low_z)
    return gate(floor, DEFAULT, (memory,), view(wish))[0]


def test_the_tool_may_go_down_to_the_very_edge_of_the_workspace():
    assert rising(low_z=-2.0).answer.action is Action.ALLOW
    assert rising(low_z=0.0).answer.action is Action.ALLOW


def test_a_tool_outside_the_workspace_may_stay():
    assert rising(low_z=1.9, wish=HOME).answer.action is Action.ALLOW


def test_the_far_side_of_the_workspace_counts_as_well():
    z = float(tool_pose(ARM, HOME)[2, 3])
    memory = moving(1, 0.1)
    if tool_pose(ARM, stepped(memory, 1))[2, 3] < z:
        memory = moving(1, -0.1)
    place = replace(ONE, workspace_m=frozen([[-2.0, -2.0, 0.0], [2.0, 2.0, z - 0.01]]))
    (passed,) = gate(place, DEFAULT, (memory,), view(stepped(memory, 1)))
    assert passed.answer.rule == "outside the workspace m"


def test_the_workspace_is_in_the_world_not_in_the_base():
    moved = replace(
        ONE,
        arms=(replace(ONE.arms[0], T_world_base=frozen(np.diag([1.0, 1.0, 1.0, 1.0]))),),
        workspace_m=frozen([[-2.0, -2.0, 0.0], [2.0, 2.0, 2.0]]),
    )
    high = np.eye(4)
    high[2, 3] = 5.0
    high_up = replace(moved, arms=(replace(moved.arms[0], T_world_base=frozen(high)),))
    memory = moving(1, 0.1)
    if tool_pose(ARM, stepped(memory, 1))[2, 3] < tool_pose(ARM, HOME)[2, 3]:
        memory = moving(1, -0.1)
    wish = stepped(memory, 1)
    assert gate(moved, DEFAULT, (memory,), view(wish))[0].answer.action is Action.ALLOW
    assert gate(high_up, DEFAULT, (memory,), view(wish))[0].answer.rule == "outside the workspace m"


@pytest.mark.parametrize(
    ("now", "then", "ok"),
    [
        (0.0041, 0.004, True),
        (0.0041, 0.0039, False),
        (0.002, 0.003, True),
        (0.002, 0.002, False),
        (0.003, 0.002, False),
        (-0.01, -0.009, True),
        (0.01, math.nan, False),
    ],
)
def test_too_near_an_obstacle_the_arm_may_only_go_away_from_it(now, then, ok):
    memory, wish = steady(speed=0.01)

    def distance(i, q):
        assert i == 0
        return then if np.array_equal(q, wish) else now

    passed = ask(view(wish, clearance=distance), memory)
    assert passed.answer.action is (Action.ALLOW if ok else Action.HOLD)
    if ok:
        assert passed.clearance_m == then
    else:
        assert passed.answer.rule == "clearance m"
        assert passed.answer.value is then
        assert passed.answer.limit == 0.004
        assert passed.clearance_m == now


# --------------------------------------------------------------------------------- whole motions


@pytest.mark.parametrize("start", [0.9, -0.37])
def test_a_hold_brakes_to_rest_along_its_own_direction(start):
    memory = Motion(
        q_rad=frozen(HOME),
        dq_rad_s=np.array([0, 0, 0, start / 2, 0, start]),
        ddq_rad_s2=np.zeros(6),
    )
    at = memory
    ticks = 0
    while np.any(at.dq_rad_s):
        q_before = at.q_rad
        at = ask(view(mode=Mode.HOLD, states=(state(at.q_rad),)), at).memory
        step = at.q_rad - q_before
        assert step[3] == pytest.approx(step[5] / 2, abs=1e-12)
        assert np.max(np.abs(at.ddq_rad_s2)) <= 10.0 * (1 + 1e-9)
        ticks += 1
        assert ticks < 100
    travel = abs(float(at.q_rad[5] - HOME[5]))
    assert travel <= start**2 / (2 * 10.0) + 1e-9, f"{travel} rad, limit {start**2 / 20}"
    again = ask(view(mode=Mode.HOLD, states=(state(at.q_rad),)), at).memory
    assert np.array_equal(again.q_rad, at.q_rad)
    assert not np.any(again.ddq_rad_s2)


def test_each_arm_of_a_cell_is_answered_for_itself():
    two = cell(arms=2)
    memory, wish = steady()
    seen = view(
        wish,
        wishes=(wish, np.full(6, math.nan)),
        states=(state(), state()),
        force_n=(0.0, None),
    )
    first, second = gate(two, DEFAULT, (memory, at_rest(HOME)), seen)
    assert (first.answer.arm, first.answer.action) == ("ur0", Action.ALLOW)
    assert (second.answer.arm, second.answer.action) == ("ur1", Action.HOLD)


def test_refusals_read_as_sentences():
    assert "ur0: stop by force N, 31 against 30" in ask(view(force_n=(31.0,))).answer.sentence()
    assert ask(view()).answer.sentence() == "ur0: allowed"
