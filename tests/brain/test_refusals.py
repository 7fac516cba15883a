"""Every commit that must not start, through tick, gate and ideal arms."""

import itertools

import numpy as np
import pytest

from brain.geometry import frozen
from brain.kinematics import tool_pose
from brain.rehearsal import EXPIRES_AFTER_NS
from brain.types import Mode
from brain.world import make_world
from tests.brain.cells import HOME
from tests.brain.committing import (
    MADE,
    ONE,
    ROWS,
    beside_the_way,
    committed,
    tool_at,
)
from tests.brain.streams import rehearsal
from tests.ideal import TICK_NS, Bench, box
from tests.values import replace

# ------------------------------------------------------------------------------ refusals


def refused(b: Bench, **over) -> str:
    """Say a commit that must be refused; returns why."""
    mode, at = b.mode, b.joints().copy()
    b.say("commit", **{"digest": MADE.digest, "nonce": "n", **over})
    record = b.tick()
    assert b.mode is mode
    assert record.wanted.refused is not None
    b.run(20)
    assert np.array_equal(b.joints(), at)
    return record.wanted.refused


def shown(**over) -> Bench:
    b = Bench(ONE, **over)
    b.preview(MADE)
    return b


def test_an_unknown_digest_is_refused():
    assert "no rehearsal with digest 'ffffffffffff'" in refused(shown(), digest="f" * 64)


def test_a_used_digest_is_refused():
    b = committed(ticks=len(ROWS) + 5)
    assert "committed before" in refused(b, nonce="another")


def test_a_rehearsal_cannot_be_committed_twice_even_when_it_is_shown_again():
    b = committed(ticks=len(ROWS) + 5)
    b.arms[0].motion = replace(b.arms[0].motion, q_rad=frozen(HOME))
    b.say("disarm")
    b.run(12)
    b.preview(MADE)
    assert "committed before" in refused(b, nonce="another")


@pytest.mark.parametrize(("late_ns", "ok"), [(-TICK_NS, True), (0, False)])
def test_a_rehearsal_expires(late_ns, ok):
    b = shown()
    b.t_ns = EXPIRES_AFTER_NS + late_ns - TICK_NS
    b.say("commit", digest=MADE.digest, nonce="n")
    record = b.tick(replace(b.sample(), t_ns=b.t_ns))
    assert (b.mode is Mode.COMMIT) == ok
    assert ok or "older than 120 s" in record.wanted.refused


@pytest.mark.parametrize("bit", [0, 17, 52, 62, 63])
def test_one_flipped_bit_in_a_stored_stream_is_refused(bit):
    b = shown()
    stored = b.spine.state.store[-1].rehearsal
    q = stored.stream.q_rad.copy()
    q.view(np.uint64)[700, 1] ^= np.uint64(1) << np.uint64(bit)
    changed = replace(stored, stream=replace(stored.stream, q_rad=frozen(q)))
    b.spine.state = replace(
        b.spine.state, store=(replace(b.spine.state.store[-1], rehearsal=changed),)
    )
    assert "altered" in refused(b)


def six_millimetres() -> np.ndarray:
    """Joints, each within 0.01 rad, that move the tool by 6 mm."""
    model, start = ONE.arms[0].model, tool_pose(ONE.arms[0].model, HOME)[:3, 3]
    corners = 0.0099 * np.array(list(itertools.product((-1.0, 1.0), repeat=6)))
    moved = [float(np.linalg.norm(tool_pose(model, HOME + c)[:3, 3] - start)) for c in corners]
    return corners[np.argmax(moved)] * 0.006 / max(moved)


OTHER_BRANCH = np.array([0.0, 0.0, 0.0, np.pi, 3.14, np.pi])


@pytest.mark.parametrize(
    ("off_rad", "reason"),
    [
        (six_millimetres(), "tool of ur0 is 6.0 mm from the start"),
        (np.array([0, 0, 0, 0, 0, 0.011]), "joint 6 of ur0 is 0.0110 rad"),
        (np.array([0, 0, 0, 0, 0, 2 * np.pi]), "joint 6 of ur0 is 6.2832 rad"),
        (OTHER_BRANCH, "joint 4 of ur0 is"),
    ],
)
def test_an_arm_that_is_not_where_the_rehearsal_starts_is_refused(off_rad, reason):
    b = Bench(ONE)
    b.arms[0].motion = replace(b.arms[0].motion, q_rad=frozen(HOME + off_rad))
    b.preview(MADE)
    assert reason in refused(b)


def test_an_arm_that_is_held_elsewhere_than_it_is_measured_is_refused():
    b = shown()
    memory = b.spine.memories[0]
    b.spine.memories = (replace(memory, q_rad=memory.q_rad + 0.02),)
    b.say("commit", digest=MADE.digest, nonce="n")
    assert "0.0200 rad from the start" in b.tick().wanted.refused


def test_a_box_put_into_the_way_before_the_commit_is_refused():
    far = box("cart", (0.04, 0.04, 0.04), (1.8, 1.8, 0.3), "moving")
    b = shown(world=make_world((far,)))
    b.tracker.poses["cart"] = tool_at(1300)
    b.tick()
    assert b.mode is Mode.PREVIEW
    assert "the way is no longer free: cart is in the way" in refused(b)


def test_the_offset_at_the_start_counts_as_nearness_to_what_has_moved():
    far = box("cart", (0.04, 0.04, 0.04), (1.8, 1.8, 0.3), "moving")
    answers = []
    for off_rad in (0.0, 0.006):
        b = Bench(ONE, world=make_world((far,)))
        b.arms[0].motion = replace(
            b.arms[0].motion, q_rad=frozen(HOME + np.array([off_rad, 0, 0, 0, 0, 0]))
        )
        b.preview(MADE)
        b.tracker.poses["cart"] = beside_the_way(0.006)
        b.say("commit", digest=MADE.digest, nonce="n")
        answers.append(b.tick().wanted.refused)
    assert answers[0] is None
    assert "the way is no longer free" in answers[1]


def test_a_script_may_not_commit_where_an_arm_is_real():
    assert "a script may commit only" in refused(shown(simulated=False))
    assert "a script may commit only" in refused(shown(simulated=False), source="trace")


@pytest.mark.parametrize("source", ["window", "headset"])
def test_a_seat_may_commit_where_an_arm_is_real_and_is_named(source):
    b = shown(simulated=False)
    b.say("commit", digest=MADE.digest, nonce="n", source=source)
    b.tick()
    assert (b.mode, b.reason) == (Mode.COMMIT, f"committed by {source}")


def test_a_commit_without_the_dead_man_is_refused():
    b = shown()
    b.engaged = False
    b.run(6)
    assert refused(b) == "hold the dead-man while committing"


def test_a_commit_heard_twice_is_one_commit():
    b = shown()
    for _ in range(2):
        b.say("commit", digest=MADE.digest, nonce="n")
    record = b.tick()
    assert b.mode is Mode.COMMIT
    assert "committed before" in record.wanted.refused


@pytest.mark.parametrize("kind", ["contact", "unseen"])
def test_what_would_touch_or_was_not_seen_cannot_be_committed(kind):
    made = rehearsal(ONE, MADE.stream, verdict=replace(MADE.verdict, kind=kind))
    b = Bench(ONE)
    b.preview(made)
    assert refused(b, digest=made.digest) == made.verdict.sentence()


@pytest.mark.parametrize("other", [{"scene_digest": "1" * 64}, {"limits": "fast"}])
def test_a_rehearsal_for_another_scene_or_other_limits_is_refused(other):
    made = rehearsal(ONE, MADE.stream, **other)
    b = Bench(ONE)
    b.preview(made)
    assert "another scene or other limits" in refused(b, digest=made.digest)
