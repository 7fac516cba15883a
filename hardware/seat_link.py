"""The operator's end of the line: sends the hand and the acts, repeats what is not answered."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from enum import StrEnum
from typing import NamedTuple

from brain.types import NS_PER_MS, NS_PER_S, Intent, OperatorInput
from hardware.link import Pipe
from hardware.messages import pack_intent, unpack_preview, unpack_scene, unpack_status
from hardware.status import Echo, Preview, SceneText, Status
from hardware.trace import StopPress, TraceEvent
from hardware.wire import Kind, Message, Pong, pack, pack_pong, pack_pose, unpack

INTENT_LIFE_NS = NS_PER_S  # an act of the operator is not wanted any more after this
SILENT_NS = NS_PER_S // 2  # the cell pings ten times and reports fifty times a second
_STOP_AGAIN_NS = 10 * NS_PER_MS
_STOP_COPIES = 3  # at once, so that one late or lost packet costs no time
_INTENT_AGAIN_NS = 50 * NS_PER_MS
_WANT_AGAIN_NS = 300 * NS_PER_MS
_CELLS_KEPT = 64


class Connection(StrEnum):
    """What the seat knows of the line."""

    CONNECTING = "connecting"
    CONNECTED = "connected"
    LOST = "lost"


class News(NamedTuple):
    """What a poll found; `unanswered`: intents that the cell did not confirm in time."""

    connection: Connection
    changed: bool
    status: Status | None
    preview: Preview | None
    scene: SceneText | None
    unanswered: tuple[Intent, ...]


class SeatLink:
    """The operator's end. Times are the seat's own clock; `session` as for the cell.

    With `want_scene` it asks for the scene until it has it (a remote seat). A seat that loses the
    cell to another one takes the next session and waits for its turn. `tap` hears all that the
    operator says, once and whether or not it arrives.
    """

    def __init__(self, pipe: Pipe, session: int, want_scene: bool = False) -> None:
        self.tap: Callable[[TraceEvent], None] | None = None
        self._pipe = pipe
        self._session = session
        self._want_scene = want_scene
        self._connection = Connection.CONNECTING
        self._heard_ns: int | None = None
        self._cells: deque[int] = deque(maxlen=_CELLS_KEPT)  # sessions of the cell, newest last
        self._status_seq = -1
        self._echo = Echo()
        self._preview_wanted: str | None = None
        self._preview_had: str | None = None
        self._stop_seq = self._pongs = self._wants = 0
        self._stop_until_ns = self._stop_due_ns = 0
        self._intents: deque[Intent] = deque()
        self._intent_due_ns = self._want_due_ns = 0
        self._round_trip_ns: int | None = None

    @property
    def connection(self) -> Connection:
        """State of the line as of the last poll."""
        return self._connection

    @property
    def holds_cell(self) -> bool:
        """Whether the cell listens to this seat, as of the newest status."""
        return self._echo.session == self._session

    @property
    def round_trip_ns(self) -> int | None:
        """From a pose sent to a status that echoes it, as of the newest such status."""
        return self._round_trip_ns

    def send(self, sample: OperatorInput) -> None:
        """Send a sample of the hand; `seq` must rise by one each time, so that loss shows.

        Raises:
            LinkError: the sample is not valid.
        """
        self._pipe.put("pose", pack_pose(sample, self._session))
        self._overheard(sample)

    def act(self, intent: Intent) -> None:
        """Send an intent until it is answered or a second old; `seq` must rise.

        Raises:
            LinkError: the intent is not valid.
        """
        pack_intent(intent, session=self._session, expires_ns=intent.t_ns + INTENT_LIFE_NS)
        self._intents.append(intent)
        if len(self._intents) == 1:
            self._send_intent(intent.t_ns)
        self._overheard(intent)

    def stop(self, now_ns: int) -> None:
        """Send a stop now, and again with each poll until it is answered or a second has passed."""
        self._stop_seq += 1
        self._stop_until_ns = now_ns + NS_PER_S
        for _ in range(_STOP_COPIES):
            self._send_stop(now_ns)
        self._overheard(StopPress(t_ns=now_ns))

    def poll(self, now_ns: int) -> News:
        """Hear all that has arrived, repeat what is not answered, and return what is new."""
        self._answer_pings(now_ns)
        status = self._newest_status(now_ns)
        if status is not None:
            self._take_echo(status.echo, now_ns)
            self._preview_wanted = status.digest
        preview, scene = self._bulk()
        unanswered = self._repeat(now_ns)
        silent = self._heard_ns is not None and now_ns - self._heard_ns > SILENT_NS
        before = self._connection
        if self._heard_ns is not None:
            self._connection = Connection.LOST if silent else Connection.CONNECTED
        return News(
            self._connection, self._connection is not before, status, preview, scene, unanswered
        )

    def close(self) -> None:
        """Let go of the pipe."""
        self._pipe.close()

    def _overheard(self, event: TraceEvent) -> None:
        if self.tap is not None:
            self.tap(event)

    def _answer_pings(self, now_ns: int) -> None:
        for data in self._pipe.take("ping"):
            message = unpack(data)
            if isinstance(message, Message) and message.kind is Kind.PING:
                self._heard_ns = now_ns
                self._pongs += 1
                pong = Pong(message.session, message.t_ns, now_ns)
                self._pipe.put(
                    "pong", pack_pong(pong, session=self._session, seq=self._pongs, t_ns=now_ns)
                )

    def _newest_status(self, now_ns: int) -> Status | None:
        """Return the newest of the arrived statuses if it is newer than any before."""
        newest: Status | None = None
        for data in self._pipe.take("status"):
            message = unpack(data)
            if not isinstance(message, Message) or message.kind is not Kind.STATUS:
                continue
            if message.session not in self._cells:  # a cell that was started anew
                self._cells.append(message.session)
                self._status_seq = -1
            if message.session != self._cells[-1] or message.seq <= self._status_seq:
                continue
            status = unpack_status(message)
            if isinstance(status, Status):
                newest, self._status_seq, self._heard_ns = status, message.seq, now_ns
        return newest

    def _take_echo(self, echo: Echo, now_ns: int) -> None:
        held, self._echo = self.holds_cell, echo
        if not self.holds_cell:
            if held:
                self._session = (self._session + 1) % 2**32
            return
        if echo.pose_t_ns is not None:
            self._round_trip_ns = now_ns - echo.pose_t_ns
        if echo.stop_seq is not None and echo.stop_seq >= self._stop_seq:
            self._stop_until_ns = now_ns
        if echo.intent_seq is not None:
            while self._intents and echo.intent_seq >= self._intents[0].seq:
                self._intents.popleft()
                self._intent_due_ns = now_ns

    def _bulk(self) -> tuple[Preview | None, SceneText | None]:
        found_preview, found_scene = None, None
        for data in self._pipe.take("bulk"):
            message = unpack(data)
            if not isinstance(message, Message):
                continue
            if message.kind is Kind.PREVIEW:
                preview = unpack_preview(message)
                if isinstance(preview, Preview) and preview.digest == self._preview_wanted:
                    found_preview, self._preview_had = preview, preview.digest
            elif message.kind is Kind.SCENE and self._want_scene:
                scene = unpack_scene(message)
                if isinstance(scene, SceneText):
                    found_scene, self._want_scene = scene, False
        return found_preview, found_scene

    def _repeat(self, now_ns: int) -> tuple[Intent, ...]:
        """Send again what is due; return the intents that were given up."""
        if self._stop_until_ns > now_ns >= self._stop_due_ns:
            self._send_stop(now_ns)
        unanswered = []
        while self._intents and now_ns >= self._intents[0].t_ns + INTENT_LIFE_NS:
            unanswered.append(self._intents.popleft())
            self._intent_due_ns = now_ns
        if self._intents and now_ns >= self._intent_due_ns:
            self._send_intent(now_ns)
        lacking = self._preview_wanted is not None and self._preview_wanted != self._preview_had
        if (lacking or self._want_scene) and now_ns >= self._want_due_ns:
            self._want_due_ns = now_ns + _WANT_AGAIN_NS
            if self._want_scene:
                self._want("", now_ns)
            if lacking:
                self._want(self._preview_wanted or "", now_ns)
        return tuple(unanswered)

    def _send_stop(self, now_ns: int) -> None:
        self._stop_due_ns = now_ns + _STOP_AGAIN_NS
        self._pipe.put("stop", self._bare(Kind.STOP, self._stop_seq, now_ns))

    def _send_intent(self, now_ns: int) -> None:
        intent = self._intents[0]
        self._intent_due_ns = now_ns + _INTENT_AGAIN_NS
        data = pack_intent(intent, session=self._session, expires_ns=intent.t_ns + INTENT_LIFE_NS)
        self._pipe.put("intent", data)

    def _want(self, want: str, now_ns: int) -> None:
        self._wants += 1
        self._pipe.put("want", self._bare(Kind.WANT, self._wants, now_ns, want.encode()))

    def _bare(self, kind: Kind, seq: int, now_ns: int, payload: bytes = b"") -> bytes:
        return pack(kind, payload, session=self._session, seq=seq, t_ns=now_ns, expires_ns=now_ns)
