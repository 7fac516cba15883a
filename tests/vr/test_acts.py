import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brain.mode import TABLE, Event
from brain.types import NS_PER_MS, Mode
from hardware.seat_link import Connection
from vr.acts import (
    ENTER,
    HOLD_NS,
    KEYS,
    NEXT,
    PRIMED_NS,
    Act,
    CommitHold,
    Situation,
    meaning,
    why_not,
)
from vr.legend import hint_words
from vr.panel import commit_words
from vr.timeline import how_to_rehearse

REHEARSALS = (Act.REHEARSE_TASK, Act.REHEARSE_HERE, Act.REHEARSE_HOME)
EVENTS = {Act.CANCEL: Event.CANCEL, Act.ACKNOWLEDGE: Event.ACKNOWLEDGE, Act.DISARM: Event.DISARM}
MS = NS_PER_MS


def ready(mode: Mode, **changes) -> Situation:
    facts = {
        "connection": Connection.CONNECTED,
        "mode": mode,
        "pressed": True,
        "dragged": True,
        "task": "pick_place",
        "verdict": "safe",
    }
    return Situation(**(facts | changes))


@pytest.mark.parametrize("mode", list(Mode))
@pytest.mark.parametrize("act", [*REHEARSALS, *EVENTS])
def test_an_act_is_offered_exactly_where_the_mode_table_has_it(act, mode):
    event = EVENTS.get(act, Event.REHEARSE)
    dragged = act is Act.REHEARSE_HERE
    assert (why_not(act, ready(mode, dragged=dragged)) == "") == (event in TABLE[mode])


def test_a_gizmo_that_was_dragged_can_be_put_back_while_the_arm_holds():
    assert why_not(Act.CANCEL, ready(Mode.HOLD, dragged=True)) == ""


@pytest.mark.parametrize("mode", list(Mode))
def test_a_commit_is_offered_in_a_preview_only(mode):
    assert (why_not(Act.COMMIT, ready(mode)) == "") == (mode is Mode.PREVIEW)


@given(
    st.builds(
        Situation,
        connection=st.sampled_from(Connection),
        mode=st.none() | st.sampled_from(Mode),
        onlooking=st.booleans(),
        heard=st.booleans(),
        pressed=st.booleans(),
        dragged=st.booleans(),
        in_reach=st.booleans(),
        task=st.none() | st.just("pick"),
        verdict=st.none() | st.sampled_from(("safe", "near", "contact", "unseen")),
    )
)
def test_stop_is_possible_whatever_the_situation(situation):
    assert why_not(Act.STOP, situation) == ""


@given(
    st.sampled_from([a for a in Act if a is not Act.STOP]),
    st.sampled_from(Mode),
    st.sampled_from(
        (
            {"connection": Connection.LOST},
            {"connection": Connection.CONNECTING},
            {"onlooking": True},
            {"heard": False},
        )
    ),
)
def test_nothing_but_stop_is_offered_to_a_seat_that_the_cell_does_not_hear(act, mode, change):
    assert why_not(act, ready(mode, **change)) != ""


@pytest.mark.parametrize(
    ("act", "mode", "change", "words"),
    [
        (Act.COMMIT, Mode.PREVIEW, {"pressed": False}, "dead-man"),
        (Act.COMMIT, Mode.PREVIEW, {"verdict": "contact"}, "contact"),
        (Act.REHEARSE_HERE, Mode.HOLD, {"dragged": False}, "drag the gizmo"),
        (Act.REHEARSE_HERE, Mode.HOLD, {"in_reach": False}, "not reach"),
        (Act.REHEARSE_TASK, Mode.HOLD, {"task": None}, "no task"),
        (Act.REHEARSE_HOME, Mode.TELEOP, {}, "let go"),
        (Act.REHEARSE_HOME, Mode.DISARMED, {}, "arm first"),
        (Act.CLUTCH, Mode.STOPPED, {}, "acknowledge"),
        (Act.GRIPPER, Mode.HOLD, {}, "driven by hand"),
        (Act.GRIPPER, Mode.TELEOP, {"has_gripper": False}, "no gripper"),
    ],
)
def test_what_is_grey_says_why(act, mode, change, words):
    assert words in why_not(act, ready(mode, **change))


# ---------------------------------------------------------------- while a script drives


def keys_in(words: str) -> set[str]:
    """Find keys by their names: those of one letter only where they stand as a key would."""
    plain = set(re.sub(r"[^A-Za-z0-9]", " ", words).split())
    return plain & (set(KEYS.values()) | {ENTER})


@pytest.mark.parametrize("mode", list(Mode))
def test_while_a_script_drives_no_text_offers_another_key_than_stop(mode):
    now = ready(mode, onlooking=True, pressed=False)
    title, _ = commit_words(why_not(Act.COMMIT, now), primed=False)
    texts = (meaning(mode, True), how_to_rehearse(True), hint_words(now), title)
    print(texts)
    assert set().union(*map(keys_in, texts)) <= {KEYS[Act.STOP]}


@pytest.mark.parametrize("mode", list(Mode))
def test_while_a_script_drives_the_text_of_every_mode_says_so(mode):
    assert "script" in meaning(mode, True)


@pytest.mark.parametrize("mode", list(Mode))
def test_once_the_script_has_ended_the_texts_are_those_of_the_person(mode):
    words = meaning(mode, False)
    assert "script" not in words
    assert words.endswith(NEXT[mode])


def test_a_commit_that_lacks_only_the_dead_man_says_so_on_its_button():
    now = ready(Mode.PREVIEW, pressed=False)
    assert "SPACE" in commit_words(why_not(Act.COMMIT, now), primed=False)[0]


@pytest.mark.parametrize("change", [{"verdict": "contact"}, {"onlooking": True}, {"heard": False}])
def test_a_commit_that_the_dead_man_would_not_help_does_not_ask_for_it(change):
    now = ready(Mode.PREVIEW, pressed=False, **change)
    assert "SPACE" not in commit_words(why_not(Act.COMMIT, now), primed=False)[0]


# ---------------------------------------------------------------- the words


def test_who_acts_rehearses_and_nobody_previews():
    words = " ".join([*Act, *NEXT.values(), how_to_rehearse(False), hint_words(ready(Mode.HOLD))])
    words += why_not(Act.COMMIT, ready(Mode.HOLD))
    print(words)
    assert "preview" not in words.lower()


# ---------------------------------------------------------------- the hold of a commit


def held_for(hold: CommitHold, start_ns: int, ms: int) -> bool:
    return any(hold.look(True, True, start_ns + k * 10 * MS) for k in range(ms // 10 + 1))


def test_a_primed_commit_that_is_held_long_enough_commits_once():
    hold = CommitHold()
    hold.prime(0)
    hold.look(False, True, 10 * MS)
    assert held_for(hold, 20 * MS, HOLD_NS // MS)
    assert not held_for(hold, 2000 * MS, 2 * HOLD_NS // MS)


def test_a_hold_that_is_too_short_commits_nothing():
    hold = CommitHold()
    hold.prime(0)
    hold.look(False, True, 10 * MS)
    assert not held_for(hold, 20 * MS, HOLD_NS // MS - 20)


def test_two_short_holds_do_not_add_up():
    hold = CommitHold()
    hold.prime(0)
    for start in (0, 1000):
        hold.look(False, True, start * MS)
        assert not held_for(hold, (start + 10) * MS, HOLD_NS // MS - 20)


def test_holding_without_pressing_commit_first_commits_nothing():
    assert not held_for(CommitHold(), 0, 5 * HOLD_NS // MS)


def test_a_key_that_was_down_before_commit_was_pressed_has_to_be_let_go_first():
    hold = CommitHold()
    hold.prime(0)
    assert not held_for(hold, 10 * MS, 3 * HOLD_NS // MS)


def test_a_commit_that_becomes_impossible_while_held_is_dropped():
    hold = CommitHold()
    hold.prime(0)
    hold.look(False, True, 10 * MS)
    held_for(hold, 20 * MS, 300)
    hold.look(True, False, 330 * MS)
    assert not hold.primed
    assert not held_for(hold, 340 * MS, 2 * HOLD_NS // MS)


def test_a_primed_commit_that_nobody_holds_is_forgotten():
    hold = CommitHold()
    hold.prime(0)
    hold.look(False, True, PRIMED_NS + 1)
    assert not hold.primed


def test_the_ring_closes_with_the_hold():
    hold = CommitHold()
    hold.prime(0)
    hold.look(False, True, 0)
    hold.look(True, True, 10 * MS)
    assert hold.share(10 * MS) == 0.0
    assert hold.share(10 * MS + HOLD_NS // 2) == pytest.approx(0.5)
    assert hold.share(10 * MS + 2 * HOLD_NS) == 1.0
