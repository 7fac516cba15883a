import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from brain.geometry import frozen, rotvec_to_matrix, transform
from brain.ik import solve
from brain.kinematics import tool_pose
from brain.rehearsal import (
    EXPIRES_AFTER_NS,
    GripEvent,
    Rehearsal,
    Stored,
    Verdict,
    digest_of,
    find,
    sealed,
    start_mismatch,
)
from brain.types import Goal
from brain.world import Held, make_world
from tests.brain.cells import HOME, cell
from tests.brain.streams import rehearsal, stream
from tests.values import field_names, replace

ONE = cell()
MODEL = ONE.arms[0].model
HELD = (Held(arm="ur0", name="part", T_tool_object=frozen(transform((0.0, 0.0, 0.02)))),)
EVENTS = (
    GripEvent(row=2, arm="ur0", name="part", T_tool_object=None, T_world_object=np.eye(4)),
    GripEvent(row=3, arm="ur0", name="part", T_tool_object=np.eye(4), T_world_object=None),
)
ROWS = HOME + 0.01 * np.arange(5)[:, None]
MADE = rehearsal(
    ONE,
    stream(ROWS, opening_m=np.full((5, 1), 0.02), events=EVENTS),
    made_ns=7,
    held=HELD,
    goal=Goal(kind="pose", arm="ur0", T_base_tool=np.eye(4), q_rad=np.zeros(6)),
    tool_mass_kg=(1.5,),
)
ARRAYS = (
    "goal.T_base_tool",
    "goal.q_rad",
    "held.0.T_tool_object",
    "stream.q_rad",
    "stream.opening_m",
    "stream.grip_force_n",
    "stream.events.0.T_world_object",
    "stream.events.1.T_tool_object",
    "prediction.q_rad",
    "prediction.opening_m",
    "prediction.force_n",
    "prediction.clearance_m",
)


def leaves(value: object, path: str = "") -> dict[str, object]:
    """Every plain value inside dataclasses and tuples, by its path."""
    if (names := field_names(value)) is not None:
        inner = {name: getattr(value, name) for name in names}
    elif isinstance(value, tuple):
        inner = {str(i): v for i, v in enumerate(value)}
    else:
        return {path: value}
    found = {}
    for name, item in inner.items():
        found |= leaves(item, f"{path}.{name}" if path else name)
    return found


def with_leaf(value, path: str, new: object):
    """The same value with one leaf replaced."""
    head, _, rest = path.partition(".")
    if isinstance(value, tuple):
        i = int(head)
        return (*value[:i], with_leaf(value[i], rest, new) if rest else new, *value[i + 1 :])
    return replace(value, **{head: with_leaf(getattr(value, head), rest, new) if rest else new})


def kept(made: Rehearsal, used: bool = False) -> Stored:
    return Stored(rehearsal=made, world=make_world(()), used=used)


# ------------------------------------------------------------------------------ the digest


def test_the_arrays_of_a_rehearsal_are_all_tested():
    assert {p for p, v in leaves(MADE).items() if isinstance(v, np.ndarray)} == set(ARRAYS)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.data())
@pytest.mark.parametrize("path", ARRAYS)
def test_one_flipped_bit_of_any_array_is_an_altered_rehearsal(path, data):
    values = np.array(leaves(MADE)[path])
    place = data.draw(st.integers(0, values.size - 1))
    bit = data.draw(st.integers(0, 63))
    values.reshape(-1).view(np.uint64)[place] ^= np.uint64(1) << np.uint64(bit)
    altered = with_leaf(MADE, path, frozen(values))
    answer = find((kept(altered),), MADE.digest, 8)
    if bit == 63 and values.reshape(-1)[place] == 0.0:  # -0 is 0
        assert isinstance(answer, Stored)
    else:
        assert answer == "the stored rehearsal was altered; it no longer matches its digest"


def other(value: object) -> object:
    if isinstance(value, str):
        return value + "x"
    if isinstance(value, (int, float)):
        return value + 1
    return "x"  # what was None


@pytest.mark.parametrize(
    "path", [p for p, v in leaves(MADE).items() if p not in ARRAYS and p != "digest"]
)
def test_any_other_value_changes_the_digest(path):
    changed = with_leaf(MADE, path, other(leaves(MADE)[path]))
    assert digest_of(changed) != MADE.digest


@pytest.mark.parametrize(
    "shorter",
    [
        {"held": ()},
        {"tool_mass_kg": ()},
        {"stream": replace(MADE.stream, events=EVENTS[:1])},
        {"stream": replace(MADE.stream, q_rad=frozen(ROWS[:4]))},
        {"stream": replace(MADE.stream, q_rad=frozen(ROWS.reshape(6, 5)))},
    ],
)
def test_what_is_left_out_or_reshaped_changes_the_digest(shorter):
    assert digest_of(replace(MADE, **shorter)) != MADE.digest


def test_the_digest_itself_is_not_in_the_digest():
    assert sealed(replace(MADE, digest="whatever")).digest == MADE.digest


def test_what_is_not_finite_cannot_be_sealed():
    q = ROWS.copy()
    q[2, 2] = math.nan
    with pytest.raises(ValueError, match=r"stream\.q_rad"):
        sealed(replace(MADE, stream=replace(MADE.stream, q_rad=frozen(q))))


# ------------------------------------------------------------------------------ find


def test_a_rehearsal_is_found_by_its_digest_among_others():
    another = rehearsal(ONE, stream(ROWS + 0.1), made_ns=7)
    wanted = kept(MADE)
    assert find((kept(another), wanted), MADE.digest, 8) is wanted


@pytest.mark.parametrize(("digest", "shown"), [("f" * 64, "'ffffffffffff'"), (None, "'None'")])
def test_an_unknown_digest_is_named(digest, shown):
    assert find((kept(MADE),), digest, 8) == f"no rehearsal with digest {shown} is kept here"
    assert find((), digest, 8) == f"no rehearsal with digest {shown} is kept here"


def test_a_used_rehearsal_is_refused():
    answer = find((kept(MADE, used=True),), MADE.digest, 8)
    assert answer == "this rehearsal was committed before; rehearse again"


@pytest.mark.parametrize(
    ("t_ns", "ok"), [(EXPIRES_AFTER_NS + 6, True), (EXPIRES_AFTER_NS + 7, False)]
)
def test_a_rehearsal_lives_for_120_s(t_ns, ok):
    answer = find((kept(MADE),), MADE.digest, t_ns)
    assert isinstance(answer, Stored) == ok
    assert ok or answer == "this rehearsal is older than 120 s; rehearse again"
    assert EXPIRES_AFTER_NS == 120_000_000_000


# ------------------------------------------------------------------------------ the start

START = rehearsal(ONE, stream(ROWS, opening_m=np.full((5, 1), 0.02)))
FROM = START.stream.q_rad[0]


def mismatch(q_rad=FROM, opening_m: float | None = 0.02, held=(), made=START) -> str | None:
    return start_mismatch(ONE, made, (np.asarray(q_rad),), (opening_m,), held)


def moved(by_m: float) -> np.ndarray:
    """Joints, each within 0.01 rad, at which the tool is that far from the start."""
    corners = 0.0099 * np.array(list(itertools.product((-1.0, 1.0), repeat=6)))
    start = tool_pose(MODEL, FROM)[:3, 3]
    far = [float(np.linalg.norm(tool_pose(MODEL, FROM + c)[:3, 3] - start)) for c in corners]
    way = corners[np.argmax(far)]
    low, high = 0.0, 1.0
    for _ in range(50):
        middle = (low + high) / 2
        off_m = np.linalg.norm(tool_pose(MODEL, FROM + middle * way)[:3, 3] - start)
        low, high = (middle, high) if off_m < by_m else (low, middle)
    return FROM + low * way


def test_the_start_itself_is_the_start():
    assert mismatch() is None


@pytest.mark.parametrize(("by_m", "ok"), [(0.0049, True), (0.006, False)])
def test_a_tool_that_was_moved_by_6_mm_is_named(by_m, ok):
    reason = mismatch(moved(by_m))
    assert (reason is None) == ok
    assert ok or reason == "tool of ur0 is 6.0 mm from the start, 5 allowed"


@pytest.mark.parametrize("joint", range(6))
@pytest.mark.parametrize(("off_rad", "ok"), [(0.0101, False), (-0.0101, False), (0.0, True)])
def test_a_joint_that_was_moved_is_named(joint, off_rad, ok):
    q = FROM.copy()
    q[joint] += off_rad
    reason = mismatch(q)
    assert (reason is None) == ok
    assert ok or reason == f"joint {joint + 1} of ur0 is 0.0101 rad from the start, 0.01 allowed"


@pytest.mark.parametrize(("share", "ok"), [(0.75, True), (1.0, False)])
def test_a_turned_tool_is_named_though_nothing_has_moved_far(share, ok):
    folded = np.array([0.0, -1.57, 2.9, -2.0, 0.0, 0.0])  # the hand near the shoulder
    made = rehearsal(ONE, stream(np.tile(folded, (3, 1))))
    q = folded + share * np.array([-0.0099, 0.0099, 0.0099, 0.0099, 0.0099, 0.0099])
    reason = mismatch(q, opening_m=None, made=made)
    assert (reason is None) == ok
    assert ok or reason == "tool of ur0 is turned 2.5 deg from the start, 2 allowed"


def test_the_same_pose_in_another_branch_is_another_start():
    branches = solve(MODEL, tool_pose(MODEL, FROM), FROM).q_rad
    assert len(branches) >= 8
    for q in branches:
        same = np.max(np.abs(q - FROM)) < 1e-6
        assert (mismatch(q) is None) == same, q


@pytest.mark.parametrize("joint", range(6))
@pytest.mark.parametrize("turns", [-1, 1])
def test_a_joint_that_is_a_whole_turn_away_is_another_start(joint, turns):
    q = FROM.copy()
    q[joint] += 2.0 * math.pi * turns
    assert f"joint {joint + 1} of ur0 is 6.2832 rad" in mismatch(q)


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_joints_that_are_not_finite_are_never_the_start(bad):
    q = FROM.copy()
    q[4] = bad
    assert mismatch(q) is not None


@pytest.mark.parametrize(
    ("opening_m", "ok"),
    [
        (0.0239, True),
        (0.0161, True),
        (0.0241, False),
        (0.0159, False),
        (None, True),
        (math.nan, False),
    ],
)
def test_fingers_that_are_open_otherwise_are_named(opening_m, ok):
    reason = mismatch(opening_m=opening_m)
    assert (reason is None) == ok
    assert ok or reason.startswith("gripper of ur0 is ")
    if opening_m == 0.0241:
        assert reason == "gripper of ur0 is +4.1 mm from the start, 4 allowed"


def test_a_part_in_the_hand_that_was_not_there_is_named_and_the_other_way_round():
    holding = replace(START, held=HELD)
    assert mismatch(held=HELD) == "held now: part by ur0; at the start: nothing"
    assert mismatch(made=holding) == "held now: nothing; at the start: part by ur0"
    assert mismatch(held=HELD, made=holding) is None
    other_part = (replace(HELD[0], name="other"),)
    assert "held now: other by ur0" in mismatch(held=other_part, made=holding)


@pytest.mark.parametrize(
    ("T_tool_object", "ok"),
    [
        (transform((0.0, 0.0, 0.0249)), True),
        (transform((0.0, 0.0, 0.0251)), False),
        (transform((0.0, 0.0, 0.02), rotvec_to_matrix(np.array([0.0, 0.034, 0.0]))), True),
        (transform((0.0, 0.0, 0.02), rotvec_to_matrix(np.array([0.0, 0.036, 0.0]))), False),
        (transform((0.0, 0.0, math.nan)), False),
    ],
)
def test_a_part_that_sits_otherwise_in_the_hand_is_another_start(T_tool_object, ok):
    now = (replace(HELD[0], T_tool_object=T_tool_object),)
    reason = mismatch(held=now, made=replace(START, held=HELD))
    assert (reason is None) == ok
    assert ok or reason.startswith("part by ur0 sits ")


def test_the_second_arm_counts_as_well():
    two = cell(arms=2)
    both = rehearsal(two, stream(np.hstack([ROWS, ROWS]), arms=2))
    q = FROM.copy()
    q[5] += 0.02
    assert start_mismatch(two, both, (FROM, FROM), (None, None), ()) is None
    assert "joint 6 of ur1" in start_mismatch(two, both, (FROM, q), (None, None), ())


# ------------------------------------------------------------------------------ words


@pytest.mark.parametrize(
    ("kind", "sentence"),
    [
        ("safe", "safe: nowhere nearer than 34 mm (hand of ur0 and bin, 21 cm along)"),
        ("near", "near: 34 mm between hand of ur0 and bin, 21 cm along"),
        ("unseen", "unseen space: hand of ur0 and bin, 21 cm along"),
        ("contact", "touches: hand of ur0 and bin, 21 cm along"),
    ],
)
def test_a_verdict_says_what_is_near_what_and_where(kind, sentence):
    verdict = Verdict(
        kind=kind, clearance_m=0.0341, along_m=0.212, arm="ur0", link="hand", against="bin"
    )
    assert verdict.sentence() == sentence


def test_the_duration_is_that_of_the_steps_between_the_rows():
    assert MADE.duration_s == pytest.approx(4 * 0.002)
    assert MADE.stream.rows == 5
