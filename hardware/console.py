"""What a person at a terminal sees while something takes its time, and how seeds are written."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from types import FrameType, TracebackType
from typing import Self

from rich.console import Console
from rich.live import Live
from rich.text import Text

from brain.errors import ConfigError
from brain.types import NS_PER_S
from hardware.spine import TickRecord

SEED_MOST = 10**18 - 1
SEEDS_MOST = 10_000


def has_display() -> bool:
    """Whether there is a screen that a window can be opened on."""
    if not (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")):
        return False
    probe = "import glfw, sys; sys.exit(not glfw.init())"  # apart: a broken screen can end it
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", probe], capture_output=True)
    return done.returncode == 0


class Progress:
    """A line on standard error with the simulated time, the mode and its reason.

    Nothing is shown where standard error is no terminal. Ctrl-C is heeded after a tick, so that its
    log is whole; pressed again, at once.
    """

    def __init__(self, title: str) -> None:
        """Name what is running."""
        console = Console(file=sys.stderr)
        self._title = title
        self._live = Live(console=console, refresh_per_second=8, transient=True)
        self._shown = console.is_terminal
        self._next_ns = 0
        self._interrupted = False
        self._on_interrupt = signal.getsignal(signal.SIGINT)

    def __enter__(self) -> Self:
        """Start to show."""
        signal.signal(signal.SIGINT, self._interrupt)
        if self._shown:
            self._live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Take the line away."""
        signal.signal(signal.SIGINT, self._on_interrupt)
        if self._shown:
            self._live.stop()

    def __call__(self, record: TickRecord) -> None:
        """Show a tick, now and then.

        Raises:
            KeyboardInterrupt: Ctrl-C was pressed.
        """
        if self._interrupted:
            raise KeyboardInterrupt
        t_ns = record.seen.t_ns
        if not self._shown or t_ns < self._next_ns:
            return
        self._next_ns = t_ns + NS_PER_S // 4
        state = record.state
        play = state.playback
        done = "" if play is None else f" {100 * play.phase / play.stream.rows:3.0f} %"
        mode = f"{state.mode.mode}{done}: {state.mode.reason}"
        self._live.update(Text(f"{self._title}  {t_ns * 1e-9:6.2f} s  {mode}"))

    def _interrupt(self, number: int, frame: FrameType | None) -> None:
        if self._interrupted:
            raise KeyboardInterrupt
        self._interrupted = True


def seeds_of(text: str) -> list[int]:
    """Read seeds such as 3, 1-20 or 1,4,9-12.

    Raises:
        ConfigError: not written like that, or too many.
    """
    seeds: list[int] = []
    for part in text.split(","):
        found = re.fullmatch(r"\s*(\d{1,18})(?:-(\d{1,18}))?\s*", part)
        if found is None:
            raise ConfigError(f"seeds: {text!r} is not written like 3, 1-20 or 1,4,9-12")
        first, last = int(found[1]), int(found[2] or found[1])
        if last < first or last - first + len(seeds) >= SEEDS_MOST:
            raise ConfigError(f"seeds: {part!r} must rise and be at most {SEEDS_MOST} in all")
        seeds += range(first, last + 1)
    return seeds
