"""The person at the window, as the cell hears them: 100 samples a second, acts, and stop.

Drawing a frame may take longer than the 16 ms that a cell wants between samples, so a thread of its
own holds the link. It invents nothing: the hand is a thing of this program, led at every sample, at
that sample's time, from where it is towards where the gizmo was last seen dragged; and what the
person presses counts only while the window keeps looking. A window that has not looked at mouse and
keys for `LOOK_NS` cannot know that the dead-man was let go, so it is; it then has to be seen up
before it counts again.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass

from brain.cell import CellModel
from brain.errors import LinkError
from brain.geometry import Array, frozen
from brain.types import NS_PER_MS, Goal, Intent, IntentKind, Manner, Mode, OperatorInput
from hardware.api import Clock
from hardware.seat_link import Connection, SeatLink
from hardware.status import Preview, Status
from vr.hand import REST, Drag, hand_target, lead

PERIOD_NS = 10 * NS_PER_MS
EXPIRES_NS = 100 * NS_PER_MS
LOOK_NS = 400 * NS_PER_MS
"""Five times a slow frame of software rendering; less than it takes to look up and let go."""
GOODBYES = 3
"""Samples with the dead-man up that a closing window sends: one lost packet does not matter."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Wish:
    """What the person was last seen doing, and when.

    `drag` is None while the arm is not driven: the hand then stays where it is.
    """

    seen_ns: int
    pressed: bool
    arm: str
    grip: float | None = None
    manner: Manner = "normal"
    drag: Drag | None = None


class Operator:
    """Holds the seat's end of the link; any thread may call it."""

    def __init__(
        self,
        link: SeatLink,
        clock: Clock,
        cell: CellModel,
        watch: Callable[[], bool] | None = None,
    ) -> None:
        """Sit down; while `watch` says that somebody else drives, only to look and to stop."""
        self.status: Status | None = None
        self.preview: Preview | None = None
        self.connection = Connection.CONNECTING
        self.trouble = ""
        self.samples = 0
        self._link = link
        self._clock = clock
        self._R_world_seat = {
            arm.name: arm.T_world_base[:3, :3] @ arm.T_base_seat[:3, :3] for arm in cell.arms
        }
        self._watch = watch
        self._wish = Wish(seen_ns=clock.now_ns(), pressed=False, arm=cell.arms[0].name)
        self._must_release = False
        self._hand: Array = REST
        self._hand_at_engage: Array = REST
        self._hand_ns = clock.now_ns()
        self._acts = 0
        self._closing = threading.Event()
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._run, name="operator", daemon=True)

    # ------------------------------------------------------------- what the window asks and says

    @property
    def onlooking(self) -> bool:
        """Whether somebody else drives the cell."""
        return self._watch is not None and self._watch()

    @property
    def round_trip_ns(self) -> int | None:
        """From a sample sent to a status that echoes it."""
        return self._link.round_trip_ns

    @property
    def holds_cell(self) -> bool:
        """Whether the cell listens to this window."""
        return self._link.holds_cell

    @property
    def engaged(self) -> bool:
        """Whether the dead-man counts as pressed."""
        return self._wish.pressed and not self._must_release

    def wish(self, wish: Wish) -> None:
        """Say what the person does now."""
        with self._lock:
            self._wish = wish
            if not wish.pressed:
                self._must_release = False

    def act(self, kind: IntentKind, goal: Goal | None = None, digest: str | None = None) -> None:
        """Rehearse a goal, commit a digest, cancel, acknowledge or disarm."""
        with self._lock:
            self._acts += 1
            now_ns = self._clock.now_ns()
            intent = Intent(
                t_ns=now_ns,
                seq=self._acts,
                kind=kind,
                source="window",
                goal=goal,
                digest=digest,
                nonce=f"window-{now_ns}-{self._acts}" if kind == "commit" else None,
            )
            try:
                self._link.act(intent)
            except LinkError as error:
                self.trouble = f"{kind} was not sent: {error}"

    def stop(self) -> None:
        """Press stop: sent at once, and again until it is answered; anybody may."""
        with self._lock:
            self._link.stop(self._clock.now_ns())

    # ------------------------------------------------------------- the samples

    def start(self) -> None:
        """Begin to send and to hear."""
        self._thread.start()

    def alive(self) -> bool:
        """Whether samples are being sent and heard."""
        return self._thread.is_alive()

    def close(self) -> None:
        """Let go of the dead-man, say so, and leave."""
        self._closing.set()
        if self._thread.ident is not None:
            self._thread.join()
        with self._lock:
            self._must_release = True
            for _ in range(GOODBYES):
                self._sample(self._clock.now_ns())
            self._link.close()

    def beat(self, now_ns: int) -> None:
        """Hear what has arrived, lead the hand, send one sample."""
        with self._lock:
            news = self._link.poll(now_ns)
            self.status = news.status or self.status
            self.preview = news.preview or self.preview
            self.connection = news.connection
            for intent in news.unanswered:
                self.trouble = f"{intent.kind} was not answered by the cell"
            self._sample(now_ns)

    def _run(self) -> None:
        due_ns = self._clock.now_ns()
        while not self._closing.is_set():
            self._clock.wait_until_ns(due_ns)
            now_ns = self._clock.now_ns()
            self.beat(now_ns)
            due_ns = max(due_ns + PERIOD_NS, now_ns)  # a late sample is late, none is made up

    def _sample(self, now_ns: int) -> None:
        wish = self._wish
        if wish.pressed and now_ns - wish.seen_ns > LOOK_NS:
            self._must_release = True
        self._lead(wish, now_ns)
        if self.onlooking:
            return
        self.samples += 1
        self._link.send(
            OperatorInput(
                t_ns=now_ns,
                seq=self.samples,
                expires_ns=now_ns + EXPIRES_NS,
                source="window",
                tracked=True,
                T_seat_hand=frozen(self._hand),
                engaged=self.engaged,
                grip=wish.grip,
                arm=wish.arm,
                manner=wish.manner,
            )
        )

    def _lead(self, wish: Wish, now_ns: int) -> None:
        """Move the hand on to now; while nothing is driven it stays, ready for the next engage."""
        dt_s, self._hand_ns = (now_ns - self._hand_ns) * 1e-9, now_ns
        if wish.drag is None or not self.engaged:
            self._hand_at_engage = self._hand
            return
        R_world_seat = self._R_world_seat[wish.arm]
        target = hand_target(self._hand_at_engage, R_world_seat, wish.drag)
        self._hand = lead(self._hand, target, dt_s)

    @property
    def mode(self) -> Mode | None:
        """The cell's mode as of the newest status."""
        return None if self.status is None else self.status.mode
