"""Planning and rehearsing in another process, so that the cycle never waits for it.

The commands of every tick, and then a request, go out in order over one stream; so the twin over
there is, at a request, where a twin in the cycle's own thread would be, and equal requests give
equal answers. An answer comes back in pieces, one a tick, and is decoded in the tick that has the
last piece: the arms are at rest then, for they wait for it.
"""

from __future__ import annotations

import pickle
import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from brain.rehearsal import Finished, Refused, Request
from brain.types import ArmCommand, GripperCommand
from hardware.device_bytes import pack_arm_command, pack_gripper_command, unpack_command
from hardware.process import Child, Main, Station
from hardware.spine import Commands
from hardware.streams import Inbox, Outbox, stream

COMMANDS, REQUEST, FINISHED = 1, 2, 3
RESTARTS = 2
"""So often a process that ends before it was ready is started anew."""
LOOK_S = 0.01
_NUMBER = struct.Struct("<q")
_TICK = struct.Struct("<q?B6x")  # t_ns, start, number of arms
_NO, _YES = b"\0" * 8, b"\1" + b"\0" * 7


def pack_commands(commands: Commands) -> bytes:
    """Return the bytes of what all devices are told in a tick."""
    parts = [_TICK.pack(commands.t_ns, commands.start, len(commands.arms))]
    parts += [pack_arm_command(command) for command in commands.arms]
    for command in commands.grippers:
        parts.append(_NO if command is None else _YES + pack_gripper_command(command))
    return b"".join(parts)


def unpack_commands(data: bytes | memoryview) -> Commands:
    """Read them back."""
    t_ns, start, n = _TICK.unpack_from(data)
    at = _TICK.size
    arms: list[ArmCommand] = []
    grippers: list[GripperCommand | None] = []
    for _ in range(n):
        told, at = unpack_command(data, at)
        arms.append(told.arm_command())
    for _ in range(n):
        at += len(_YES)
        if data[at - len(_YES) : at] == _NO:
            grippers.append(None)
        else:
            told, at = unpack_command(data, at)
            grippers.append(told.gripper_command())
    return Commands(t_ns=t_ns, arms=tuple(arms), grippers=tuple(grippers), start=start)


@dataclass(frozen=True, slots=True, kw_only=True)
class Follow:
    """The word to a planner's process to begin; one that is started later has missed commands."""

    from_the_start: bool


class ProcessWorker:
    """A worker whose desk is in another process; `main(station, inbox, outbox, *args)` is that.

    Live it answers when the answer is there. With `latency_ns` it answers exactly so long after the
    request, waiting for the process if it must: in lockstep that gives what an inline worker gives.
    A process that ends is started anew, and its request refused.
    """

    def __init__(
        self, main: Main, *args: Any, latency_ns: int | None = None, nice: int = 0
    ) -> None:
        """Start the process; `wait_ready` waits until it can work."""
        self._main, self._args, self._nice = main, args, nice
        self._latency_ns = latency_ns
        self._asked: Request | None = None
        self._early_ends = 0
        self._start()

    @property
    def pid(self) -> int:
        """Number of the process, for tests and for the curious."""
        return self._child.pid

    def wait_ready(self) -> None:
        """Wait until the process can work.

        Raises:
            ForearmError: what it failed with.
        """
        self._child.wait_ready()
        self._child.begin(Follow(from_the_start=True))

    def observe(self, commands: Commands) -> None:
        """Hand over what the devices are told."""
        self._out.send(COMMANDS, pack_commands(commands))

    def submit(self, request: Request) -> None:
        """Hand over a request; one before it is forgotten."""
        self._asked = request
        self._out.send(REQUEST, _NUMBER.pack(request.number) + pickle.dumps(request, protocol=5))

    def finished(self, t_ns: int) -> Finished | None:
        """Return the answer to the newest request, once."""
        if self._latency_ns is None:
            return self._look()
        if self._asked is None or t_ns < self._asked.t_ns + self._latency_ns:
            self._out.flush()
            return None
        while (found := self._look()) is None:
            self._inbox.wait(LOOK_S)
        return found

    def close(self) -> None:
        """End the process."""
        self._out.close()
        self._inbox.close()
        self._child.ask_stop()
        self._child.join(0.0)

    def _look(self) -> Finished | None:
        """Return what has come, or that nothing will come any more."""
        self._out.flush()
        for message in self._inbox.take():
            number = _NUMBER.unpack_from(message.data)[0]
            if self._asked is not None and number == self._asked.number:
                self._asked = None
                self._early_ends = 0
                finished: Finished = pickle.loads(message.data[_NUMBER.size :])
                return finished
        return self._bury() if self._inbox.ended else None

    def _bury(self) -> Finished | None:
        """Start a process that ended anew, and refuse what was asked of it."""
        asked, self._asked = self._asked, None
        reason = "the planner ended and cannot be started again"
        if self._early_ends < RESTARTS:
            self._child.join(0.0)
            reason = "the planner ended unexpectedly and is started again"
            self._early_ends += 1
            self._out.close()
            self._inbox.close()
            self._start()
            self._child.begin(Follow(from_the_start=False))
        return (
            None if asked is None else Finished(number=asked.number, result=Refused(reason=reason))
        )

    def _start(self) -> None:
        theirs_in, ours_out = stream()
        ours_in, theirs_out = stream()
        self._child = Child(
            "planner", self._main, theirs_in, theirs_out, *self._args, nice=self._nice
        )
        theirs_in.close()
        theirs_out.close()
        self._out, self._inbox = Outbox(ours_out), Inbox(ours_in)


def serve_requests(
    station: Station,
    inbox: Inbox,
    outbox: Outbox,
    observe: Callable[[Commands], None],
    catch_up: Callable[[], None],
    work: Callable[[Request], Finished],
) -> None:
    """Be the process: follow the commands, answer requests, until the other end is closed.

    Everything is done in the order in which it came, so that what a request finds does not depend
    on when it was read; only a request behind which there is another already is passed over.
    """
    while not inbox.ended:
        messages = inbox.take()
        newest = max((i for i, m in enumerate(messages) if m.kind == REQUEST), default=None)
        for i, message in enumerate(messages):
            if message.kind == COMMANDS:
                observe(unpack_commands(message.data))
            elif i == newest:
                number = bytes(message.data[: _NUMBER.size])
                request = pickle.loads(message.data[_NUMBER.size :])
                outbox.send(FINISHED, number + pickle.dumps(work(request), protocol=5))
        while not outbox.empty and not outbox.broken:
            outbox.drain()
        if not messages:
            catch_up()
            station.pause(LOOK_S)
