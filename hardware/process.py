"""Child processes: spawned, ready together, stopped in order, and gone when their parent is gone.

A child (`Station`) and its parent (`Child`) hold the two ends of a pipe. The parent's death, of
whatever kind, ends the pipe, which to the child is the word to stop; the child's death ends it for
the parent.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import pickle
import select
import signal
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from multiprocessing.connection import Connection, wait
from types import ModuleType
from typing import Any

from brain.errors import DeviceLost, DeviceUnavailable, ForearmError

SPAWN = multiprocessing.get_context("spawn")
READY_S = 600.0
"""A child that compiles every kernel anew on a busy machine takes minutes."""
STOP_S = 10.0
KILL_S = 2.0

Main = Callable[..., Any]


class Station:
    """The child's end: says that it is ready, hears the word to begin and to stop."""

    def __init__(self, connection: Connection) -> None:
        """Take the child's end of the pipe."""
        self._connection = connection
        self._poll = select.poll()
        self._poll.register(connection.fileno(), select.POLLIN)
        self._stopping = False

    def ready(self, info: Any = None) -> Any | None:
        """Tell the parent, and wait for what it begins with; None: it says stop instead."""
        self.tell("ready", info)
        with contextlib.suppress(EOFError, OSError):
            word, payload = pickle.loads(self._connection.recv_bytes())
            if word == "begin":
                return payload
        self._stopping = True
        return None

    def stopping(self) -> bool:
        """Whether the parent has said stop or is gone; never waits."""
        return self.pause(0.0)

    def pause(self, seconds: float) -> bool:
        """Wait; return at once, and true, when the parent says stop or is gone."""
        if not self._stopping:
            self._stopping = bool(self._poll.poll(1000.0 * seconds))
        return self._stopping

    def tell(self, word: str, payload: Any) -> None:
        """Send to the parent; a parent that is gone hears nothing."""
        with contextlib.suppress(OSError):
            self._connection.send_bytes(pickle.dumps((word, payload), protocol=5))


class Child:
    """The parent's end of a child process; `report` is what its main function returned."""

    def __init__(
        self,
        name: str,
        main: Main,
        *args: Any,
        nice: int = 0,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        """Spawn a process that runs `main(station, *args)`, a function of an importable module.

        It has the caller's environment, changed by `environment`; `nice` is as for the shell's
        command. Connections among the arguments
        are handed over; the caller closes its own copies.
        """
        self.name = name
        self.report: Any = None
        self.info: Any = None
        self.ready = False
        self._told: Any = None
        self._failure: ForearmError | None = None
        self._done = False
        self._connection, theirs = SPAWN.Pipe()
        self._process = SPAWN.Process(
            target=_run, args=(main, theirs, nice, args), name=f"forearm-{name}"
        )
        with _spawning(environment or {}):
            self._process.start()
        theirs.close()

    @property
    def pid(self) -> int:
        """Its process number."""
        return self._process.pid or 0

    @property
    def problem(self) -> ForearmError | None:
        """Why it ended, if it has and was not meant to."""
        self._hear(0.0)
        return self._failure

    @property
    def told(self) -> Any:
        """What it said last with `Station.tell("meanwhile", ...)`, None before."""
        self._hear(0.0)
        return self._told

    def wait_ready(self, timeout_s: float = READY_S) -> None:
        """Wait until it is ready. Raises as the function of the same name."""
        wait_ready([self], timeout_s)

    def begin(self, payload: Any) -> None:
        """Let a child that is ready begin."""
        self._send("begin", payload)

    def ask_stop(self) -> None:
        """Say stop; return at once."""
        self._send("stop", None)

    def join(self, timeout_s: float = STOP_S) -> None:
        """Wait for its end, and end it by force if it takes longer."""
        self._hear(timeout_s)
        self._process.join(KILL_S if self._done else 0.0)
        for end in (self._process.terminate, self._process.kill):
            if self._process.is_alive():
                self._failure = DeviceLost(f"the {self.name} process did not end when told")
                end()
                self._process.join(KILL_S)
        self._done = True
        self._connection.close()

    def _send(self, word: str, payload: Any) -> None:
        with contextlib.suppress(OSError):
            self._connection.send_bytes(pickle.dumps((word, payload), protocol=5))

    def _hear(self, timeout_s: float) -> None:
        """Take what it has said; with a time, go on until it says no more."""
        while not self._done and self._connection.poll(timeout_s):
            try:
                word, payload = pickle.loads(self._connection.recv_bytes())
            except (EOFError, OSError):
                self._process.join(KILL_S)
                word, payload = (
                    "failed",
                    DeviceLost(
                        f"the {self.name} process ended unexpectedly "
                        f"(status {self._process.exitcode})"
                    ),
                )
            if word == "ready":
                self.ready, self.info = True, payload
            elif word == "meanwhile":
                self._told = payload
            else:
                self._done = True
                self.report = payload if word == "report" else None
                self._failure = payload if word == "failed" else None


def wait_ready(children: Sequence[Child], timeout_s: float = READY_S) -> None:
    """Wait until all are ready; `info` is what they said with it.

    Raises:
        ForearmError: what one of them failed with.
        DeviceUnavailable: one takes longer than `timeout_s`, or ends before it is ready.
    """
    left = list(children)
    while left:
        if not wait([child._connection for child in left], timeout_s):
            raise DeviceUnavailable(
                f"the {left[0].name} process is not ready after {timeout_s:.0f} s"
            )
        for child in left:
            if child.problem is not None:
                raise child.problem
            if child._done and not child.ready:
                raise DeviceUnavailable(f"the {child.name} process ended before it was ready")
        left = [child for child in left if not child.ready]


@contextlib.contextmanager
def _spawning(environment: Mapping[str, str]) -> Iterator[None]:
    """Change the environment, and hide the caller's script, for as long as it takes to spawn.

    Ctrl-C is blocked meanwhile, and so in the child for good, from its first instruction on: it
    reaches the parent, which stops all.
    Python would run the script again in every child, with all that it imports, to have what it
    defines; our children need only what modules define.
    """
    before, script = dict(os.environ), sys.modules["__main__"]
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    os.environ.update(environment)
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        sys.modules["__main__"] = script
        for name in environment:
            if name in before:
                os.environ[name] = before[name]
            else:
                del os.environ[name]


def _run(main: Main, connection: Connection, nice: int, args: tuple[Any, ...]) -> None:
    """Be the child: run `main`, and tell the parent how it ended."""
    if nice:
        os.nice(nice)
    station = Station(connection)
    try:
        station.tell("report", main(station, *args))
    except ForearmError as error:
        station.tell("failed", error)
        sys.exit(1)
