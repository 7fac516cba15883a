import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from brain import retarget
from brain.geometry import is_rotation, rotation_angle, rotvec_to_matrix, transform
from vr.hand import HAND_M_S, HAND_RAD_S, REST, STEP_MAX_S, Drag, hand_target, lead

SAMPLE_S = 0.01


def poses(reach: float = 0.8):
    span = st.floats(-reach, reach)
    turn = st.floats(-1.7, 1.7)
    return st.builds(
        lambda p, v: transform(p, rotvec_to_matrix(np.array(v))),
        st.tuples(span, span, span),
        st.tuples(turn, turn, turn),
    )


@given(base=poses(), tool=poses(), wanted=poses(), hand=poses())
@settings(max_examples=60, deadline=None)
def test_a_hand_led_to_a_drags_target_means_exactly_the_dragged_tool(base, tool, wanted, hand):
    R_base_seat = rotvec_to_matrix(np.array((0.3, -0.2, 2.5)))
    drag = Drag(T_world_from=base @ tool, T_world_to=base @ wanted)
    target = hand_target(hand, base[:3, :3] @ R_base_seat, drag)
    clutch = retarget.engage(retarget.first(0, hand), tool, scale=1.0)
    meant = retarget.wanted_tool(clutch, retarget.first(1, target), R_base_seat, 0)
    off_m = np.linalg.norm(meant[:3, 3] - wanted[:3, 3])
    off_rad = rotation_angle(meant, wanted)
    print(f"off by {off_m:.2e} m and {off_rad:.2e} rad, at most 1e-9")
    assert off_m < 1e-9
    assert off_rad < 1e-7


@given(target=poses(reach=5.0))
@settings(max_examples=60, deadline=None)
def test_no_drag_however_wild_makes_a_hand_faster_than_a_hand(target):
    hand = REST
    for _ in range(20):
        after = lead(hand, target, SAMPLE_S)
        step_m = float(np.linalg.norm(after[:3, 3] - hand[:3, 3]))
        step_rad = rotation_angle(hand, after)
        assert step_m <= HAND_M_S * SAMPLE_S + 1e-12, f"{step_m} m against {HAND_M_S * SAMPLE_S}"
        assert step_rad <= HAND_RAD_S * SAMPLE_S + 1e-9, f"{step_rad} rad"
        hand = after


def test_a_hand_that_was_not_looked_at_for_a_second_does_not_catch_up():
    target = transform((2.0, 0.0, 1.0))
    moved_m = float(np.linalg.norm(lead(REST, target, 1.0)[:3, 3] - REST[:3, 3]))
    print(f"moved {moved_m} m, at most {HAND_M_S * STEP_MAX_S} m")
    assert moved_m <= HAND_M_S * STEP_MAX_S + 1e-12
    assert moved_m < retarget.JUMP_M


def test_a_hand_comes_to_rest_on_its_target():
    target = transform((0.35, -0.1, 1.02), rotvec_to_matrix(np.array((0.4, -0.3, 0.2))))
    hand = REST
    for _ in range(200):
        hand = lead(hand, target, SAMPLE_S)
    off_m = float(np.linalg.norm(hand[:3, 3] - target[:3, 3]))
    print(f"{1e6 * off_m:.2f} um after 2 s, at most 100 um")
    assert off_m < 1e-4
    assert rotation_angle(hand, target) < 1e-3


def test_a_hand_stays_a_rotation_through_an_hour_of_samples():
    rng = np.random.default_rng(5)
    hand = REST
    for _ in range(3000):
        target = transform(hand[:3, 3], rotvec_to_matrix(rng.normal(size=3)) @ hand[:3, :3])
        hand = lead(hand, target, SAMPLE_S)
    assert is_rotation(hand[:3, :3], tolerance=1e-12)


def test_a_hand_on_its_target_stays_there_bit_by_bit():
    target = lead(REST, transform((0.31, 0.02, 1.0)), SAMPLE_S)
    again = lead(target, target, SAMPLE_S)
    assert np.array_equal(again[:3, 3], target[:3, 3])
