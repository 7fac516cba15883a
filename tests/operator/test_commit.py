"""Committing through the whole stack: what ends a commit, and what never starts one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
import pytest

from brain.geometry import Array, frozen, largest
from brain.kinematics import tool_pose
from brain.limits import DEFAULT
from brain.playback import DONE
from brain.rehearsal import EXPIRES_AFTER_NS, JOINT_START_RAD, Stored, sealed
from brain.types import NS_PER_MS, Mode
from hardware.scene_file import Object, Waypoint
from hardware.shapes import Box
from sim.build import SimCell
from tests.brain.streams import off_the_way
from tests.closed_loop.rig import Run, ScriptIn, play
from tests.operator.hands import CHEAP, OddLink, commit, preview, with_object
from tests.values import replace
from vr.scripted import ARM_S, Script, ScriptedSeat

ON_THE_WAY_RAD = 1e-9


# ------------------------------------------------------------------- what ends it on its way


def let_go(seat: ScriptedSeat, cell: SimCell) -> Script:
    """Commit, and let the dead-man go on the way."""
    yield from commit(seat, cell)
    yield from seat.wait(0.3)
    seat.engaged = False
    yield from seat.wait(0.6)
    return True


def fall_silent(seat: ScriptedSeat, cell: SimCell) -> Script:
    """Commit, and send no sample of the hand any more; the line itself is alive."""
    yield from commit(seat, cell)
    yield from seat.wait(0.2)
    seat.link = OddLink(seat.link, lambda sample: None)
    yield from seat.wait(0.9)
    return True


ENDS: dict[str, ScriptIn] = {"let go": let_go, "silent": fall_silent}


@cache
def ended(how: str) -> Run:
    run = play(CHEAP, ENDS[how])
    assert run.during(Mode.COMMIT), run.story()
    return run


def test_letting_the_dead_man_go_holds_the_commit_and_says_so():
    assert ended("let go").reasons(Mode.HOLD)[-1] == "dead-man released", ended("let go").story()


def test_a_seat_that_falls_silent_holds_the_commit_after_200_ms_and_says_so():
    run = ended("silent")
    last = next(r for r in run.records if r.state.mode.reason.startswith("the seat is silent"))
    silent_ms = (last.seen.t_ns - last.state.operator.t_ns) / NS_PER_MS
    tick_ms = run.cell.brief.cell.tick_ns / NS_PER_MS
    least_ms = DEFAULT.seat_silent_ns / NS_PER_MS
    print(f"held after {silent_ms} ms, limits {least_ms} and {least_ms + tick_ms}")
    assert last.state.mode.mode is Mode.HOLD
    assert least_ms < silent_ms <= least_ms + tick_ms


@pytest.mark.parametrize("how", ENDS)
def test_an_ended_commit_slows_down_on_its_own_way(how):
    run = ended(how)
    rows = run.cell.spine.state.store[-1].rehearsal.stream.q_rad
    first = next(k for k, r in enumerate(run.records) if r.state.mode.mode is Mode.COMMIT)
    off = off_the_way(run.sent()[first:], rows)
    print(f"{how}: {off:.1e} rad off the rehearsed way, limit {ON_THE_WAY_RAD}")
    assert off <= ON_THE_WAY_RAD


@pytest.mark.parametrize("how", ENDS)
def test_an_ended_commit_comes_to_rest_before_its_end(how):
    run = ended(how)
    end = run.cell.spine.state.store[-1].rehearsal.stream.q_rad[-1]
    short = largest(run.sent()[-1] - end)
    resting = np.array_equal(run.sent()[-1], run.sent()[-50])
    print(f"{how}: at rest {resting}, {short:.3f} rad short of the end, at least 0.05")
    assert resting
    assert short >= 0.05


# ----------------------------------------------------------------------- what never starts it


@dataclass(frozen=True, kw_only=True, eq=False)
class Refusal:
    """What was said to a commit, and how far commands moved meanwhile in rad."""

    note: str
    mode_before: Mode
    mode_after: Mode
    moved_rad: float


@dataclass(frozen=True, kw_only=True, eq=False)
class Asked:
    """A run with what became of each commit that was tried in it."""

    run: Run
    refusals: dict[str, Refusal]


def ask(
    seat: ScriptedSeat, cell: SimCell, name: str, digest: str | None, found: dict[str, Refusal]
) -> Script:
    """Commit a digest, and see what is said within a quarter of a second."""
    before, q = cell.spine.state.mode.mode, held(cell)
    seat.act("commit", digest=digest)
    yield from seat.wait(0.25)
    mode, note = cell.spine.state.mode.mode, seat.status.note
    found[name] = Refusal(
        note=note, mode_before=before, mode_after=mode, moved_rad=largest(held(cell) - q)
    )
    return True


def held(cell: SimCell) -> Array:
    return cell.spine.memories[0].q_rad


def stored(cell: SimCell, change: Callable[[Stored], Stored]) -> Stored:
    """Change the newest rehearsal in the cell's store; returns what it was."""
    state = cell.spine.state
    was = state.store[-1]
    cell.spine.state = replace(state, store=(*state.store[:-1], change(was)))
    return was


def flipped(item: Stored) -> Stored:
    """The rehearsal with the lowest bit of one number in its stream turned over."""
    made = item.rehearsal
    q = made.stream.q_rad.copy()
    q.view(np.uint64)[len(q) // 2, 1] ^= np.uint64(1)
    return replace(item, rehearsal=replace(made, stream=replace(made.stream, q_rad=frozen(q))))


def aged(item: Stored) -> Stored:
    """The rehearsal as if it had been made, and sealed, 120 s earlier."""
    made = item.rehearsal
    older = sealed(replace(made, made_ns=made.made_ns - EXPIRES_AFTER_NS + 100 * NS_PER_MS))
    return replace(item, rehearsal=older)


@pytest.fixture(scope="module")
def digests() -> Asked:
    """One preview; commits that name it wrongly, find it altered, do it, and do it again."""
    found: dict[str, Refusal] = {}

    def script(seat: ScriptedSeat, cell: SimCell) -> Script:
        yield from preview(seat, cell, -0.15)
        digest = seat.digest
        yield from ask(seat, cell, "unknown", "f" * 64, found)
        was = stored(cell, flipped)
        yield from ask(seat, cell, "flipped", digest, found)
        stored(cell, lambda item: was)
        seat.act("commit", digest=digest)
        yield from seat.until(lambda s: s.mode is Mode.COMMIT, ARM_S)
        yield from seat.until(lambda s: s.mode is Mode.HOLD, ARM_S)
        yield from ask(seat, cell, "used", digest, found)
        return True

    run = play(CHEAP, script)
    assert "used" in found, run.story()
    return Asked(run=run, refusals=found)


@pytest.fixture(scope="module")
def expired() -> Asked:
    """A commit of a rehearsal that has become too old while it was looked at."""
    found: dict[str, Refusal] = {}

    def script(seat: ScriptedSeat, cell: SimCell) -> Script:
        yield from preview(seat, cell, -0.15)
        stored(cell, aged)
        digest = cell.spine.state.store[-1].rehearsal.digest
        yield from seat.until(lambda s: s.mode is Mode.HOLD, ARM_S)
        yield from ask(seat, cell, "expired", digest, found)
        return True

    run = play(CHEAP, script)
    assert "expired" in found, run.story()
    return Asked(run=run, refusals=found)


def test_an_unknown_digest_is_refused(digests):
    assert "no rehearsal with digest 'ffffffffffff'" in digests.refusals["unknown"].note


def test_one_flipped_bit_in_the_stored_stream_is_refused(digests):
    assert "the stored rehearsal was altered" in digests.refusals["flipped"].note


def test_a_used_digest_is_refused(digests):
    assert "was committed before" in digests.refusals["used"].note


def test_an_expired_digest_is_refused(expired):
    assert "older than 120 s" in expired.refusals["expired"].note


def test_the_right_digest_was_committed_in_between_and_done(digests):
    assert DONE in digests.run.reasons(Mode.HOLD), digests.run.story()


def test_a_rehearsal_that_expires_while_it_is_shown_is_shown_no_longer(expired):
    assert "the rehearsal expired" in expired.run.reasons(Mode.HOLD), expired.run.story()


# ------------------------------------------------------------------------ an arm that was moved


PUSH_M = 0.0062
"""The servos take 0.2 mm of it back."""


class Push:
    """Something that leans on an arm: from its time on the joints are where it wants them."""

    def __init__(self, cell: SimCell, q_rad: Array) -> None:
        self._data = cell.plant.world.data
        self._ids = cell.scene.arms[0]
        self._q = q_rad

    def before_step(self, t_ns: int) -> None:
        self._data.qpos[self._ids.qpos] = self._q
        self._data.qvel[self._ids.dof] = 0.0

    def snapshot(self) -> None:
        return None

    def restore(self, state: None) -> None:
        return None


def by_six_millimetres(cell: SimCell) -> Array:
    """Joints, each nearer than a commit allows, with the tool 6 mm away."""
    model, q = cell.brief.cell.arms[0].model, held(cell)
    start = tool_pose(model, q)[:3, 3]
    way = np.array([1.0, 1.0, 1.0, 1.0, 0.0, 0.0])
    signs = np.array([way * s for s in np.array(np.meshgrid(*[[-1, 1]] * 6)).T.reshape(-1, 6)])
    far = [np.linalg.norm(tool_pose(model, q + 0.0095 * s)[:3, 3] - start) for s in signs]
    farthest = int(np.argmax(far))
    assert far[farthest] >= PUSH_M, f"0.0095 rad move the tool by only {far[farthest]} m"
    return q + 0.0095 * signs[farthest] * PUSH_M / far[farthest]


@pytest.fixture(scope="module")
def pushed() -> Asked:
    """While a rehearsal is shown something pushes the arm 6 mm away; then it is committed."""
    found: dict[str, Refusal] = {}

    def script(seat: ScriptedSeat, cell: SimCell) -> Script:
        yield from preview(seat, cell, -0.15)
        cell.plant.world.actors.append(Push(cell, by_six_millimetres(cell)))
        yield from seat.wait(0.2)
        yield from ask(seat, cell, "pushed", seat.digest, found)
        return True

    run = play(CHEAP, script)
    assert "pushed" in found, run.story()
    return Asked(run=run, refusals=found)


def test_an_arm_that_was_pushed_by_6_mm_is_refused(pushed):
    print(pushed.refusals["pushed"])
    assert "mm from the start, 5 allowed" in pushed.refusals["pushed"].note


def test_the_push_was_less_than_a_joint_is_allowed_to_differ(pushed):
    off = largest(pushed.run.measured()[-1] - pushed.run.sent()[-1])
    print(f"{off:.4f} rad, limit {JOINT_START_RAD}")
    assert off <= JOINT_START_RAD


# -------------------------------------------------------------------------- a box in the way

FAR_M, IN_THE_WAY_M = (1.5, 1.5, 0.2), (0.106, -0.235, 0.98)


@pytest.fixture(scope="module")
def boxed() -> Asked:
    """A box comes into the way of a rehearsal while it is shown; then it is committed."""
    found: dict[str, Refusal] = {}
    box = Object(
        name="cart",
        role="moving",
        shapes=(Box(shape="box", size_m=(0.04, 0.04, 0.04)),),
        schedule=(
            Waypoint(t_s=0, position_m=FAR_M),
            Waypoint(t_s=3, position_m=FAR_M),
            Waypoint(t_s=3.1, position_m=IN_THE_WAY_M),
        ),
    )

    def script(seat: ScriptedSeat, cell: SimCell) -> Script:
        yield from preview(seat, cell, -0.6)
        yield from seat.until(lambda s: s.t_ns > 3300 * NS_PER_MS, 5.0)
        yield from ask(seat, cell, "boxed", seat.digest, found)
        return True

    run = play(with_object(CHEAP, box), script)
    assert "boxed" in found, run.story()
    return Asked(run=run, refusals=found)


def test_a_box_put_into_the_way_between_preview_and_commit_is_refused(boxed):
    print(boxed.refusals["boxed"])
    assert "the way is no longer free: cart is in the way" in boxed.refusals["boxed"].note


# ---------------------------------------------------------------------------- of all of them


@pytest.mark.parametrize(
    ("asked", "name"),
    [
        ("digests", "unknown"),
        ("digests", "flipped"),
        ("digests", "used"),
        ("expired", "expired"),
        ("pushed", "pushed"),
        ("boxed", "boxed"),
    ],
)
def test_a_refused_commit_changes_neither_mode_nor_command(asked, name, request):
    found = request.getfixturevalue(asked).refusals[name]
    print(found)
    assert found.mode_after is found.mode_before
    assert found.moved_rad == 0.0
