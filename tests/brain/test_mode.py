import itertools

import pytest

from brain.mode import LIMP, MOVING, TABLE, Event, ModeState, allows, apply, dead_man, initial
from brain.types import Mode


def at(mode: Mode, released: bool = False) -> ModeState:
    return ModeState(mode=mode, reason="test", since_ns=0, released=released)


EXPECTED = {
    (Mode.DISARMED, Event.ENGAGE): Mode.HOLD,
    (Mode.HOLD, Event.ENGAGE): Mode.TELEOP,
    (Mode.HOLD, Event.REHEARSE): Mode.REHEARSING,
    (Mode.HOLD, Event.DISARM): Mode.DISARMED,
    (Mode.HOLD, Event.HOLD): Mode.HOLD,
    (Mode.TELEOP, Event.RELEASE): Mode.HOLD,
    (Mode.TELEOP, Event.HOLD): Mode.HOLD,
    (Mode.TELEOP, Event.DISARM): Mode.DISARMED,
    (Mode.REHEARSING, Event.REHEARSED): Mode.PREVIEW,
    (Mode.REHEARSING, Event.NO_PLAN): Mode.HOLD,
    (Mode.REHEARSING, Event.CANCEL): Mode.HOLD,
    (Mode.REHEARSING, Event.HOLD): Mode.HOLD,
    (Mode.REHEARSING, Event.DISARM): Mode.DISARMED,
    (Mode.PREVIEW, Event.COMMIT): Mode.COMMIT,
    (Mode.PREVIEW, Event.CANCEL): Mode.HOLD,
    (Mode.PREVIEW, Event.REHEARSE): Mode.REHEARSING,
    (Mode.PREVIEW, Event.HOLD): Mode.HOLD,
    (Mode.PREVIEW, Event.DISARM): Mode.DISARMED,
    (Mode.COMMIT, Event.DONE): Mode.HOLD,
    (Mode.COMMIT, Event.RELEASE): Mode.HOLD,
    (Mode.COMMIT, Event.CANCEL): Mode.HOLD,
    (Mode.COMMIT, Event.HOLD): Mode.HOLD,
    (Mode.COMMIT, Event.DISARM): Mode.DISARMED,
    (Mode.STOPPED, Event.ACKNOWLEDGE): Mode.DISARMED,
    (Mode.FAULT, Event.ACKNOWLEDGE): Mode.DISARMED,
    (Mode.FAULT, Event.STOP): Mode.FAULT,
}
EVERYWHERE = {Event.STOP: Mode.STOPPED, Event.FAULT: Mode.FAULT}


@pytest.mark.parametrize(("mode", "event"), list(itertools.product(Mode, Event)))
def test_every_event_in_every_mode_leads_where_the_table_of_the_docs_says(mode, event):
    after = apply(at(mode), event, "why", 7)
    following = EXPECTED.get((mode, event), EVERYWHERE.get(event))
    if following is None:
        assert after == at(mode)
        assert not allows(at(mode), event)
    else:
        assert after == ModeState(mode=following, reason="why", since_ns=7, released=False)
        assert allows(at(mode), event)


def test_the_table_names_every_mode():
    assert set(TABLE) == set(Mode)


def test_the_cell_starts_disarmed_and_a_button_stuck_down_arms_nothing():
    state = initial(5)
    assert state.mode is Mode.DISARMED
    assert state.since_ns == 5
    assert state.reason == "started"
    assert dead_man(state, True, 9) == state


def test_the_button_arms_only_after_it_was_seen_up():
    up = dead_man(initial(0), False, 1)
    assert up.mode is Mode.DISARMED
    assert up.released
    assert up.since_ns == 0
    assert up.reason == "started"
    armed = dead_man(up, True, 2)
    assert armed == ModeState(mode=Mode.HOLD, reason="engaged", since_ns=2, released=False)


def test_holding_the_button_after_arming_does_not_start_to_drive():
    assert dead_man(at(Mode.HOLD), True, 3).mode is Mode.HOLD


def test_a_second_press_in_hold_starts_to_drive():
    assert dead_man(at(Mode.HOLD, released=True), True, 3).mode is Mode.TELEOP


@pytest.mark.parametrize("mode", sorted(MOVING))
def test_letting_go_in_a_moving_mode_is_a_hold_with_its_reason(mode):
    after = dead_man(at(mode), False, 4)
    assert after == ModeState(
        mode=Mode.HOLD, reason="dead-man released", since_ns=4, released=False
    )


@pytest.mark.parametrize("mode", sorted(MOVING))
def test_a_held_button_keeps_a_moving_mode(mode):
    assert dead_man(at(mode), True, 4) == at(mode)


@pytest.mark.parametrize("mode", [Mode.STOPPED, Mode.FAULT, Mode.REHEARSING, Mode.PREVIEW])
def test_the_button_alone_never_leaves_these_modes(mode):
    assert dead_man(at(mode, released=True), True, 4) == at(mode, released=True)


@pytest.mark.parametrize("mode", [Mode.STOPPED, Mode.FAULT])
def test_rearming_takes_acknowledge_then_release_then_engage(mode):
    acknowledged = apply(at(mode, released=True), Event.ACKNOWLEDGE, "acknowledge", 1)
    assert acknowledged.mode is Mode.DISARMED
    assert dead_man(acknowledged, True, 2).mode is Mode.DISARMED
    released = dead_man(acknowledged, False, 3)
    assert dead_man(released, True, 4).mode is Mode.HOLD


def test_seeing_the_button_up_twice_changes_nothing():
    state = at(Mode.HOLD, released=True)
    assert dead_man(state, False, 8) is state


def test_limp_and_moving_modes_are_these():
    assert {Mode.DISARMED, Mode.STOPPED, Mode.FAULT} == LIMP
    assert {Mode.TELEOP, Mode.COMMIT} == MOVING


def test_every_event_is_called_what_its_name_says():
    assert {e.value for e in Event} == {e.name.lower().replace("_", " ") for e in Event}
