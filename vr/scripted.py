"""The seat with nobody in it.

A script says what the hand does, through the very link a person would use.

A script is a generator that is resumed once per sample; it looks at the newest status, moves the
hand, presses the dead-man, acts, and returns whether it did what it wanted. So it takes exactly the
ways that a person has.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import TypeAlias

from brain.geometry import Array, frozen, transform
from brain.playback import DONE
from brain.types import NS_PER_MS, Goal, Intent, IntentKind, Mode, OperatorInput, Source
from hardware.api import Clock
from hardware.seat_link import SeatLink
from hardware.status import Preview, Status

PERIOD_NS = 10 * NS_PER_MS
"""A script's hand is sampled 100 times a second."""
EXPIRES_NS = 100 * NS_PER_MS
REST: Array = frozen(transform((0.3, 0.0, 1.0)))
"""Where the hand is while it does nothing; only its motion counts."""

Script: TypeAlias = Generator[None, None, bool]


class ScriptedSeat:
    """A hand, a dead-man and a voice, moved by a script.

    `done` is None until the script has returned, then what it returned; `why` is the reason of its
    success, or of the first thing that went wrong.
    """

    def __init__(self, link: SeatLink, clock: Clock, arm: str, source: Source = "script") -> None:
        """Sit down at the seat's end of a link."""
        self.link = link
        self.arm = arm
        self.T_seat_hand = REST
        self.engaged = False
        self.grip: float | None = None
        self.status: Status | None = None
        self.preview: Preview | None = None
        self.done: bool | None = None
        self.why = ""
        self._clock = clock
        self._source: Source = source
        self._script: Script | None = None
        self._samples = 0
        self._acts = 0
        self._due_ns = 0

    def play(self, script: Callable[[ScriptedSeat], Script]) -> None:
        """Start a script; `done` is None until it has returned."""
        self.done = None
        self._script = script(self)

    def step(self) -> None:
        """Do what is due now: hear, go on with the script, send a sample."""
        now_ns = self._clock.now_ns()
        if now_ns < self._due_ns:
            return
        self._due_ns = now_ns + PERIOD_NS
        news = self.link.poll(now_ns)
        self.status = news.status or self.status
        self.preview = news.preview or self.preview
        if self._script is not None:
            try:
                next(self._script)
            except StopIteration as end:
                self.done = bool(end.value)
                self._script = None
        self._samples += 1
        self.link.send(
            OperatorInput(
                t_ns=now_ns,
                seq=self._samples,
                expires_ns=now_ns + EXPIRES_NS,
                source=self._source,
                tracked=True,
                T_seat_hand=self.T_seat_hand,
                engaged=self.engaged,
                grip=self.grip,
                arm=self.arm,
            )
        )

    # ----------------------------------------------------------------------- what scripts use

    def is_in(self, *modes: Mode) -> bool:
        """Whether the newest status is in one of these modes."""
        return self.status is not None and self.status.mode in modes

    @property
    def reason(self) -> str:
        """Why that mode was entered."""
        return "" if self.status is None else self.status.reason

    @property
    def digest(self) -> str | None:
        """The rehearsal that is shown."""
        return None if self.status is None else self.status.digest

    def act(self, kind: IntentKind, goal: Goal | None = None, digest: str | None = None) -> None:
        """Rehearse a goal, commit a digest, cancel, acknowledge or disarm."""
        self._acts += 1
        self.link.act(
            Intent(
                t_ns=self._clock.now_ns(),
                seq=self._acts,
                kind=kind,
                source=self._source,
                goal=goal,
                digest=digest,
                nonce=f"{self._source}-{self._acts}" if kind == "commit" else None,
            )
        )

    def stop(self) -> None:
        """Press stop."""
        self.link.stop(self._clock.now_ns())

    def wait(self, seconds: float) -> Generator[None, None, None]:
        """Go on for so long."""
        until_ns = self._clock.now_ns() + round(seconds * 1e9)
        while self._clock.now_ns() < until_ns:
            yield

    def until(
        self, condition: Callable[[Status], bool], seconds: float
    ) -> Generator[None, None, bool]:
        """Go on until a status is as wanted; false when it took too long."""
        until_ns = self._clock.now_ns() + round(seconds * 1e9)
        while self._clock.now_ns() < until_ns:
            if self.status is not None and condition(self.status):
                return True
            yield
        return False


ARM_S, REHEARSE_S, COMMIT_S = 3.0, 60.0, 180.0
LOOK_S, AGAIN_S = 0.3, 1.0
"""How long a scripted operator looks at a preview, and waits before trying again."""
PLANS, COMMITS = 60, 6
"""How often it asks for a plan, and commits, before it gives up."""


def arm_up(seat: ScriptedSeat) -> Script:
    """Acknowledge if need be, let the dead-man up, press it: the arms hold under power."""
    if not (yield from seat.until(lambda s: True, ARM_S)):
        return False
    if seat.is_in(Mode.STOPPED, Mode.FAULT):
        seat.act("acknowledge")
    seat.engaged = False
    yield from seat.wait(0.1)
    seat.engaged = True
    return (yield from seat.until(lambda s: s.mode is Mode.HOLD, ARM_S))


def do_goal(seat: ScriptedSeat, goal: Goal) -> Script:
    """Rehearse, look, commit; begin again where the cell held. True when it was done."""
    if not (yield from arm_up(seat)):
        seat.why = seat.why or f"the arms did not come up: {seat.reason or 'no word of the cell'}"
        return False
    commits = 0
    for _ in range(PLANS):
        seat.act("rehearse", goal=goal)
        if not (yield from seat.until(lambda s: s.mode is Mode.REHEARSING, ARM_S)):
            seat.why = seat.why or ("" if seat.status is None else seat.status.note)
            return False
        yield from seat.until(lambda s: s.mode is not Mode.REHEARSING, REHEARSE_S)
        if seat.is_in(Mode.PREVIEW):
            yield from seat.wait(LOOK_S)
            if (yield from _commit(seat)):
                return True
            commits += 1
            if commits == COMMITS or not seat.is_in(Mode.HOLD):
                return False
        else:
            seat.why = seat.why or seat.reason
            if not seat.is_in(Mode.HOLD):
                return False
        yield from seat.wait(AGAIN_S)  # perhaps what was in the way goes away
    return False


def _commit(seat: ScriptedSeat) -> Script:
    """Commit what is shown and see it through; true when it went to its end."""
    seat.act("commit", digest=seat.digest)
    if not (yield from seat.until(lambda s: s.mode is Mode.COMMIT, ARM_S)):
        seat.why = seat.why or ("" if seat.status is None else seat.status.note)
        seat.act("cancel")
        yield from seat.until(lambda s: s.mode is Mode.HOLD, ARM_S)
        return False
    yield from seat.until(lambda s: s.mode is not Mode.COMMIT, COMMIT_S)
    done = seat.is_in(Mode.HOLD) and seat.reason == DONE
    seat.why = seat.reason if done else seat.why or seat.reason
    return done


def demo(task: str) -> Callable[[ScriptedSeat], Script]:
    """Make the script of a whole demonstration: do a task, then disarm."""

    def script(seat: ScriptedSeat) -> Script:
        done = yield from do_goal(seat, Goal(kind="task", task=task))
        yield from seat.wait(0.5)
        seat.engaged = False
        if seat.is_in(Mode.HOLD, Mode.PREVIEW, Mode.REHEARSING):
            seat.act("disarm")
            yield from seat.until(lambda s: s.mode is Mode.DISARMED, ARM_S)
        return done

    return script


def demo_seat(task: str, link: SeatLink, clock: Clock, arm: str) -> ScriptedSeat:
    """Sit down at a link and start to demonstrate a task."""
    seat = ScriptedSeat(link, clock, arm)
    seat.play(demo(task))
    return seat
