"""A screen that nobody sees, a person with mouse and keys, a simulated cell behind a real link."""

import json
import mmap
import os
import struct
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
from PIL import Image

from brain.types import Mode
from hardware.clock import SimClock, WallClock
from hardware.link import CellLink
from hardware.receive import Heard
from hardware.resolve import resolve
from hardware.scene import load_scene
from hardware.zenoh_link import loopback_endpoint, open_cell
from sim.build import build_cell
from sim.lockstep import Lockstep

ROOT = Path(__file__).resolve().parents[2]
SCREEN = (1440, 900)
PATIENCE_S = 20.0
TIME, SCENE, PICTURES = "time", "scene.json", "pictures.npz"
ONE, TIMES = struct.Struct("<q"), struct.Struct("<2q")
TOLD, FRAMED = range(2)


def until(condition, what, seconds: float = PATIENCE_S):
    """Wait for something that must come true; fail with what it was."""
    end = time.monotonic() + seconds
    clock = WallClock()
    while time.monotonic() < end:
        found = condition()
        if found:
            return found
        clock.wait_until_ns(clock.now_ns() + 20_000_000)
    what = what() if callable(what) else what
    raise AssertionError(f"not within {seconds:.0f} s: {what}")


class Screen:
    """Xvfb on a display that is free; its pixels are read from its own memory."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        read, write = os.pipe()
        self._process = subprocess.Popen(
            [
                "Xvfb",
                "-displayfd",
                str(write),
                "-screen",
                "0",
                f"{SCREEN[0]}x{SCREEN[1]}x24",
                "-fbdir",
                str(folder),
                "-nolisten",
                "tcp",
            ],
            pass_fds=(write,),
            stderr=subprocess.DEVNULL,
        )
        os.close(write)
        with os.fdopen(read) as pipe:
            self.display = ":" + pipe.readline().strip()
        self.env = {**os.environ, "DISPLAY": self.display, "LP_NUM_THREADS": "0"}
        self.env.pop("MUJOCO_GL", None)
        self.env.pop("WAYLAND_DISPLAY", None)
        self.env["XDG_SESSION_TYPE"] = "x11"

    def close(self) -> None:
        self._process.terminate()
        self._process.wait()

    def do(self, *words: object) -> None:
        """Do something with mouse or keys, in xdotool's words."""
        subprocess.run(["xdotool", *map(str, words)], env=self.env, check=True)

    def press(self, key: str) -> None:
        self.do("key", key)

    def window(self) -> str:
        """Return the number of our window, as xdotool knows it."""
        return self._ask("search", "--name", "Forearm").split()[0]

    def root(self) -> str:
        """Return the number of the screen's own window, which listens to no keys."""
        return self._ask("search", "--maxdepth", "0", "").split()[0]

    def _ask(self, *words: str) -> str:
        done = subprocess.run(
            ["xdotool", *words], env=self.env, check=True, capture_output=True, text=True
        )
        return done.stdout

    def pixels(self) -> np.ndarray:
        """Return what the screen shows, (h, w, 3) uint8.

        Source: X11/XWDFile.h, the format of the file that Xvfb keeps in -fbdir.
        """
        data = (self.folder / "Xvfb_screen0").read_bytes()
        head = np.frombuffer(data, ">u4", count=25)
        size, width, height, line, colours = (int(head[i]) for i in (0, 4, 5, 12, 19))
        start = size + 12 * colours
        rows = np.frombuffer(data, np.uint8, count=line * height, offset=start)
        return rows.reshape(height, line // 4, 4)[:, :width, 2::-1].copy()

    def save(self, name: str) -> Path:
        """Keep a picture of the screen."""
        path = self.folder / name
        Image.fromarray(self.pixels()).save(path)
        return path


class ToldClock(SimClock):
    """The cell's time, told to the window's process, and never far ahead of what that has done.

    So a busy machine makes a test slower and changes nothing else.
    """

    def __init__(self, path: Path, ear: "Ear") -> None:
        super().__init__()
        path.write_bytes(TIMES.pack(0, 0))
        self._memory = Memory(path)
        self._ear = ear
        self.leashed = True

    def wait_until_ns(self, t_ns: int) -> None:
        super().wait_until_ns(t_ns)
        wall = WallClock()
        while self.leashed and self._is_ahead(t_ns):
            wall.wait_until_ns(wall.now_ns() + 500_000)
            self._ear.listen(t_ns)
        self._memory.put(TOLD, t_ns)

    def _is_ahead(self, t_ns: int) -> bool:
        framed, sampled = self._memory.get(FRAMED), self._ear.newest_ns
        if not framed or sampled is None:
            return False
        return t_ns - framed > 250_000_000 or t_ns - sampled > 40_000_000


class Ear:
    """The cell's end of the link, which may listen also while the cell waits."""

    def __init__(self, link: CellLink) -> None:
        self._link = link
        self._kept = Heard()
        self.newest_ns: int | None = None
        self.send_status, self.offer = link.send_status, link.offer

    def listen(self, now_ns: int) -> None:
        heard, kept = self._link.hear(now_ns), self._kept
        if heard.operator is not None:
            self.newest_ns = heard.operator.t_ns
        self._kept = Heard(
            operator=heard.operator or kept.operator,
            intents=kept.intents + heard.intents,
            stop=kept.stop or heard.stop,
        )

    def hear(self, now_ns: int) -> Heard:
        self.listen(now_ns)
        kept, self._kept = self._kept, Heard()
        return kept


class HeardClock(WallClock):
    """The cell's time as the window's process hears it."""

    def __init__(self, path: Path) -> None:
        self._memory = Memory(path)

    def now_ns(self) -> int:
        return self._memory.get(TOLD)

    def wait_until_ns(self, t_ns: int) -> None:
        wall = WallClock()
        while self.now_ns() < t_ns:
            wall.wait_until_ns(wall.now_ns() + 1_000_000)

    def framed(self) -> None:
        """Say that a frame was drawn."""
        self._memory.put(FRAMED, self.now_ns())


class Memory:
    """A few times in ns that two processes share."""

    def __init__(self, path: Path) -> None:
        with path.open("r+b") as file:
            self._bytes = mmap.mmap(file.fileno(), TIMES.size)

    def get(self, place: int) -> int:
        return TIMES.unpack(self._bytes[: TIMES.size])[place]

    def put(self, place: int, t_ns: int) -> None:
        ONE.pack_into(self._bytes, ONE.size * place, t_ns)


class CellThread:
    """A lockstep cell at the wall's pace behind a Zenoh link; notes every mode and command."""

    def __init__(self, folder: Path, scene: str = "bench_pick", seed: int = 3) -> None:
        self.resolved = resolve(load_scene(scene), seed)
        (folder / SCENE).write_text(self.resolved.text)
        self.cell = build_cell(self.resolved)
        self.endpoint = loopback_endpoint()
        self.link = open_cell(self.resolved.scene.cell, self.endpoint)
        self.modes: list[Mode] = []
        self.records = 0
        self.last = None
        self._done = threading.Event()
        ear = Ear(self.link)
        self.clock = ToldClock(folder / TIME, ear)
        self._lockstep = Lockstep(self.cell.plant, self.cell.spine, ear, self.clock, None)
        self._lockstep.observers.append(self._note)
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        self._lockstep.run(self._done.is_set, 10**15, wall=WallClock())

    def _note(self, record) -> None:
        mode = record.state.mode.mode
        if not self.modes or self.modes[-1] is not mode:
            self.modes.append(mode)
        self.records += 1
        self.last = record

    def words(self) -> str:
        """Say how the cell came to be as it is."""
        state = self.last.state
        return f"{[str(m) for m in self.modes[-6:]]}: {state.mode.reason}; {state.note}"

    @property
    def mode(self) -> Mode:
        return self.modes[-1] if self.modes else Mode.DISARMED

    def q_rad(self) -> np.ndarray:
        return np.array(self.last.seen.states[0].q_rad)

    def close(self) -> None:
        self.clock.leashed = False
        self._done.set()
        self._thread.join()
        self.link.close()


class Child:
    """The window's process and the newest of what it says."""

    def __init__(self, screen: Screen, endpoint: str, pictures: dict) -> None:
        np.savez(screen.folder / PICTURES, **pictures)
        self.facts: dict = {}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.vr.window_child", endpoint, str(screen.folder)],
            cwd=ROOT,
            env={**screen.env, "PYTHONPATH": str(ROOT)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        for line in self.process.stdout:
            self.facts = json.loads(line)

    @property
    def ended(self) -> bool:
        return self.process.poll() is not None

    def frames(self, count: int = 3) -> dict:
        """Wait for frames to be drawn; return what the last of them says."""
        first = self.facts.get("frame", 0)
        until(lambda: self.facts.get("frame", 0) >= first + count, f"{count} frames")
        return self.facts

    def place(self, name: str) -> tuple[int, int]:
        x, y, _ = self.facts["places"][name]
        return round(x), round(y)

    def close(self) -> int:
        if self.process.poll() is None:
            self.process.stdin.close()
        code = self.process.wait(timeout=15.0)
        self._thread.join(timeout=5.0)
        return code
