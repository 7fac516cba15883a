"""The log of a live run, written by a process of its own: the disk never delays a tick.

The control process sends bytes and goes on. What it has sent is the kernel's: also the ticks just
before it is killed reach the log.
"""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import orjson

from brain.rehearsal import Finished, Rehearsal
from hardware.log import LogWriter, json_bytes
from hardware.process import Station
from hardware.record import RunHash, rehearsal_json, tick_json
from hardware.replay import REFUSED, REHEARSAL
from hardware.spine import TickRecord
from hardware.streams import Inbox, Message, Outbox

WRITE_S = 0.05
"""The logger looks so often at what has arrived; whoever sends to it does not wake it."""
_TICK, _EVENT, _ANSWER = 1, 2, 3


class StreamJournal:
    """Sends every tick to the logger's process; the hash of the run is made here."""

    def __init__(self, outbox: Outbox) -> None:
        """Send to a stream."""
        self._outbox = outbox
        self._hash = RunHash()

    def tick(self, record: TickRecord) -> None:
        """Keep a tick, and what the worker answered in it."""
        t_ns, answer = record.seen.t_ns, record.seen.finished
        if answer is not None:
            self._outbox.send(_ANSWER, pickle.dumps((t_ns, answer), protocol=5))
        self._outbox.send(_TICK, json_bytes("tick", tick_json(record, self._hash.add(record))))

    def event(self, channel: str, t_ns: int, data: Mapping[str, Any]) -> None:
        """Keep anything else."""
        self._outbox.send(_EVENT, json_bytes(channel, [channel, t_ns, data]))


def log_main(
    station: Station, path: Path, head: Mapping[str, Any], streams: tuple[Connection, ...]
) -> None:
    """Be the logger's process: write down what comes over the streams until all have ended."""
    writer = LogWriter(path, head)
    left = [Inbox(reader) for reader in streams]
    station.ready()
    while left:
        busy = False
        for inbox in left:
            for message in inbox.take():
                _write(writer, message)
                busy = True
        left = [inbox for inbox in left if not inbox.ended]
        if left and not busy and station.pause(WRITE_S):
            left[0].wait(WRITE_S)
    writer.close()


def _write(writer: LogWriter, message: Message) -> None:
    if message.kind == _TICK:
        writer.tick(orjson.loads(message.data))
    elif message.kind == _EVENT:
        channel, t_ns, data = orjson.loads(message.data)
        writer.event(channel, t_ns, data)
    else:
        t_ns, answer = pickle.loads(message.data)
        _write_answer(writer, t_ns, answer)


def _write_answer(writer: LogWriter, t_ns: int, answer: Finished) -> None:
    """Write what a worker answered."""
    result = answer.result
    if isinstance(result, Rehearsal):
        data = {"number": answer.number, "rehearsal": rehearsal_json(result)}
        writer.event(REHEARSAL, t_ns, data)
    else:
        writer.event(REFUSED, t_ns, {"number": answer.number, "reason": result.reason})
