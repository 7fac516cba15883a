"""What the cell is doing and how it may go on: one table, from which everything else is read.

The dead-man ("engaged") is one button in every seat. Rising in DISARMED it arms, rising in HOLD it
starts to drive; held it keeps TELEOP and COMMIT alive. After STOPPED or FAULT: acknowledge,
release, engage.
"""

from __future__ import annotations

from enum import StrEnum

from brain.record import Record
from brain.types import Mode


class Event(StrEnum):
    """What can change the mode."""

    ENGAGE = "engage"
    RELEASE = "release"
    DISARM = "disarm"
    REHEARSE = "rehearse"
    REHEARSED = "rehearsed"
    NO_PLAN = "no plan"
    CANCEL = "cancel"
    COMMIT = "commit"
    DONE = "done"
    HOLD = "hold"
    STOP = "stop"
    FAULT = "fault"
    ACKNOWLEDGE = "acknowledge"


_EVERYWHERE = {Event.STOP: Mode.STOPPED, Event.FAULT: Mode.FAULT}

TABLE: dict[Mode, dict[Event, Mode]] = {
    Mode.DISARMED: {Event.ENGAGE: Mode.HOLD},
    Mode.HOLD: {
        Event.ENGAGE: Mode.TELEOP,
        Event.REHEARSE: Mode.REHEARSING,
        Event.DISARM: Mode.DISARMED,
        Event.HOLD: Mode.HOLD,
    },
    Mode.TELEOP: {Event.RELEASE: Mode.HOLD, Event.HOLD: Mode.HOLD, Event.DISARM: Mode.DISARMED},
    Mode.REHEARSING: {
        Event.REHEARSED: Mode.PREVIEW,
        Event.NO_PLAN: Mode.HOLD,
        Event.CANCEL: Mode.HOLD,
        Event.HOLD: Mode.HOLD,
        Event.DISARM: Mode.DISARMED,
    },
    Mode.PREVIEW: {
        Event.COMMIT: Mode.COMMIT,
        Event.CANCEL: Mode.HOLD,
        Event.REHEARSE: Mode.REHEARSING,
        Event.HOLD: Mode.HOLD,
        Event.DISARM: Mode.DISARMED,
    },
    Mode.COMMIT: {
        Event.DONE: Mode.HOLD,
        Event.RELEASE: Mode.HOLD,
        Event.CANCEL: Mode.HOLD,
        Event.HOLD: Mode.HOLD,
        Event.DISARM: Mode.DISARMED,
    },
    Mode.STOPPED: {Event.ACKNOWLEDGE: Mode.DISARMED},
    Mode.FAULT: {Event.ACKNOWLEDGE: Mode.DISARMED, Event.STOP: Mode.FAULT},
}

MOVING = frozenset({Mode.TELEOP, Mode.COMMIT})
"""Modes in which an arm may start to move; each needs the dead-man held."""

LIMP = frozenset({Mode.DISARMED, Mode.STOPPED, Mode.FAULT})
"""Modes in which devices are told to stop and hold by themselves."""


class ModeState(Record, eq=True):
    """The mode, why it was entered, since when.

    `released` is whether the dead-man has been seen up since then.
    """

    mode: Mode
    reason: str
    since_ns: int
    released: bool


def initial(t_ns: int) -> ModeState:
    """Return the mode at start: disarmed, and a button that is stuck down arms nothing."""
    return ModeState(mode=Mode.DISARMED, reason="started", since_ns=t_ns, released=False)


def apply(state: ModeState, event: Event, reason: str, t_ns: int) -> ModeState:
    """Return the state after an event; an event that the table does not name changes nothing."""
    following = {**_EVERYWHERE, **TABLE[state.mode]}.get(event)
    if following is None:
        return state
    return ModeState(mode=following, reason=reason, since_ns=t_ns, released=False)


def allows(state: ModeState, event: Event) -> bool:
    """Whether the table names this event in this mode."""
    return event in TABLE[state.mode] or event in _EVERYWHERE


def dead_man(state: ModeState, engaged: bool, t_ns: int) -> ModeState:
    """Return the state after one look at the dead-man.

    An ENGAGE counts only after the button was seen up in this mode: whoever holds it down through a
    stop, a hold or the end of a commit does not start anything. In the moving modes letting go is a
    RELEASE.
    """
    if state.mode in MOVING:
        return state if engaged else apply(state, Event.RELEASE, "dead-man released", t_ns)
    if not engaged:
        if state.released:
            return state
        return ModeState(
            mode=state.mode, reason=state.reason, since_ns=state.since_ns, released=True
        )
    return apply(state, Event.ENGAGE, "engaged", t_ns) if state.released else state
