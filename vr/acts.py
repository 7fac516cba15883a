"""What the person may do now, and why not: the rules behind every button and key.

`why_not` says what stands in the way of an act, in words for a tooltip; empty when nothing does.
The cell decides for itself again; these rules only spare a person acts that would be refused.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from brain.mode import TABLE, Event
from brain.types import NS_PER_MS, NS_PER_S, Mode
from hardware.seat_link import Connection


class Act(StrEnum):
    """The acts, by the words on their buttons.

    To rehearse is to plan and to try in physics on the twin; what comes of it is shown as a
    preview, and may be committed.
    """

    CLUTCH = "Dead-man (hold)"
    GRIPPER = "Gripper"
    REHEARSE_TASK = "Rehearse task"
    REHEARSE_HERE = "Rehearse here"
    REHEARSE_HOME = "Rehearse home"
    COMMIT = "Commit"
    CANCEL = "Cancel"
    ACKNOWLEDGE = "Acknowledge"
    DISARM = "Disarm"
    STOP = "STOP"


KEYS: dict[Act, str] = {
    Act.CLUTCH: "SPACE",
    Act.GRIPPER: "G",
    Act.REHEARSE_TASK: "R",
    Act.REHEARSE_HERE: "V",
    Act.REHEARSE_HOME: "H",
    Act.COMMIT: "C",
    Act.CANCEL: "ESC",
    Act.ACKNOWLEDGE: "K",
    Act.DISARM: "D",
    Act.STOP: "X",
}
ENTER = "ENTER"
"""Held after `Act.COMMIT`, it commits."""

DOES: dict[Mode, str] = {
    Mode.DISARMED: "arms are braked",
    Mode.HOLD: "arms hold still under power",
    Mode.TELEOP: "an arm is driven by hand",
    Mode.REHEARSING: "planning, and rehearsing on the twin",
    Mode.PREVIEW: "a rehearsal to look at; nothing moves",
    Mode.COMMIT: "the arm does what was rehearsed",
    Mode.STOPPED: "stopped; arms are braked",
    Mode.FAULT: "something broke; arms are braked",
}
"""What the cell does in a mode, whoever drives."""

_DEAD_MAN, _AGAIN = KEYS[Act.CLUTCH], f"acknowledge ({KEYS[Act.ACKNOWLEDGE]}), then arm again"
NEXT: dict[Mode, str] = {
    Mode.DISARMED: f"press {_DEAD_MAN} to arm",
    Mode.HOLD: f"rehearse, or hold {_DEAD_MAN} to drive",
    Mode.TELEOP: f"drag the gizmo; let go of {_DEAD_MAN} and it holds",
    Mode.REHEARSING: f"{KEYS[Act.CANCEL]} cancels",
    Mode.PREVIEW: f"to commit: hold {_DEAD_MAN}, press {KEYS[Act.COMMIT]}, hold {ENTER}",
    Mode.COMMIT: f"let go of {_DEAD_MAN} and it holds",
    Mode.STOPPED: _AGAIN,
    Mode.FAULT: _AGAIN,
}
"""What the person who drives may do then."""


def meaning(mode: Mode, onlooking: bool) -> str:
    """Say what a mode is, and what the person may do in it; an onlooker may only stop."""
    then = NEXT[mode]
    if onlooking and mode in (Mode.STOPPED, Mode.FAULT):
        then = "you drive when the script has ended"
    elif onlooking:
        then = f"a script drives, {KEYS[Act.STOP]} stops it"
    return f"{DOES[mode]}; {then}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """All that decides what is possible.

    `mode` is None before the first status; `pressed` is the dead-man; `onlooking`: somebody else
    drives the cell; `heard`: the cell listens to this seat; `dragged`: the gizmo is not at the
    tool; `verdict` is the kind of the shown rehearsal's.
    """

    connection: Connection
    mode: Mode | None
    onlooking: bool = False
    heard: bool = True
    pressed: bool = False
    has_gripper: bool = True
    dragged: bool = False
    in_reach: bool = True
    task: str | None = None
    verdict: str | None = None


def why_not(act: Act, now: Situation) -> str:
    """Say why an act is not possible now; empty when it is."""
    if act is Act.STOP:
        return ""
    if now.onlooking:
        return "a script drives this cell; you can look, and stop"
    if now.connection is not Connection.CONNECTED or now.mode is None:
        return "no connection to the cell"
    if not now.heard:
        return "the cell listens to another seat"
    if act is Act.CLUTCH:
        return "acknowledge first" if now.mode in (Mode.STOPPED, Mode.FAULT) else ""
    if act is Act.GRIPPER:
        if not now.has_gripper:
            return "this arm has no gripper"
        return "" if now.mode is Mode.TELEOP else "only while the arm is driven by hand"
    if act is Act.COMMIT:
        return _commit(now)
    event = {
        Act.CANCEL: Event.CANCEL,
        Act.ACKNOWLEDGE: Event.ACKNOWLEDGE,
        Act.DISARM: Event.DISARM,
    }.get(act, Event.REHEARSE)
    if act is Act.CANCEL and now.mode is Mode.HOLD and now.dragged:
        return ""  # the gizmo goes back to the tool
    if event not in TABLE[now.mode]:
        return _wrong_mode(event, now.mode)
    if act is Act.REHEARSE_TASK and now.task is None:
        return "this scene has no task"
    if act is Act.REHEARSE_HERE and not now.dragged:
        return "drag the gizmo at the tool to where it should go"
    if act is Act.REHEARSE_HERE and not now.in_reach:
        return "the arm does not reach there"
    return ""


NEEDS_DEAD_MAN = f"hold the dead-man ({KEYS[Act.CLUTCH]}) while committing"


def _commit(now: Situation) -> str:
    if now.mode is not Mode.PREVIEW:
        return "rehearse something first"
    if now.verdict in ("contact", "unseen"):
        return f"the rehearsal's verdict is {now.verdict}"
    if not now.pressed:
        return NEEDS_DEAD_MAN
    return ""


def _wrong_mode(event: Event, mode: Mode) -> str:
    if event is Event.ACKNOWLEDGE:
        return "nothing to acknowledge"
    if event is Event.CANCEL:
        return "nothing to cancel"
    if mode in (Mode.STOPPED, Mode.FAULT):
        return "acknowledge first"
    if mode is Mode.DISARMED:
        return "already disarmed" if event is Event.DISARM else "arm first: hold SPACE"
    if mode is Mode.TELEOP:
        return "let go of the dead-man (SPACE) first"
    return f"not while {mode}"


# ---------------------------------------------------------------- the two steps of a commit

HOLD_NS = 700 * NS_PER_MS
PRIMED_NS = 10 * NS_PER_S
"""How long a commit stays primed without being held."""


class CommitHold:
    """A commit is pressed first, then let go, then held for `HOLD_NS`: no slip commits."""

    def __init__(self) -> None:
        self._primed_ns: int | None = None
        self._held_ns: int | None = None
        self._seen_up = False

    @property
    def primed(self) -> bool:
        """Whether the first step is done."""
        return self._primed_ns is not None

    def prime(self, now_ns: int) -> None:
        """Do the first step."""
        self._primed_ns, self._held_ns, self._seen_up = now_ns, None, False

    def drop(self) -> None:
        """Forget the first step."""
        self._primed_ns = self._held_ns = None

    def look(self, held: bool, possible: bool, now_ns: int) -> bool:
        """Look at the key or button once per frame; true in the one frame that commits."""
        if self._primed_ns is None:
            return False
        if not possible:
            self.drop()
            return False
        if not held:
            self._seen_up, self._held_ns = True, None
            if now_ns - self._primed_ns > PRIMED_NS:
                self.drop()
            return False
        if not self._seen_up:
            return False
        if self._held_ns is None:
            self._held_ns = now_ns
        if now_ns - self._held_ns < HOLD_NS:
            return False
        self.drop()
        return True

    def share(self, now_ns: int) -> float:
        """How much of the hold is done, 0 to 1."""
        if self._held_ns is None:
            return 0.0
        return min((now_ns - self._held_ns) / HOLD_NS, 1.0)
