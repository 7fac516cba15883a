"""`run_sim.py` as a user runs it, in this process: quicker than an interpreter for each call."""

from __future__ import annotations

import io
import json
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import run_sim

TICK_MS = 20
SCENE = "z1_bench"
ROBOTS = {"z1": "z1"}
EXAMPLES = Path(__file__).parents[2] / "scenes"


@dataclass(frozen=True)
class Said:
    """The exit status, and what stood on the terminal."""

    status: int
    out: str
    err: str

    def __str__(self) -> str:
        return f"exit {self.status}\nstdout: {self.out}\nstderr: {self.err}"

    def error(self) -> str:
        """The one line of an error; fails where there is more, or something on standard output."""
        lines = self.err.splitlines()
        assert len(lines) == 1, self
        assert lines[0].startswith("error: "), self
        assert "Traceback" not in self.err + self.out, self
        assert self.out == "", self
        return lines[0]

    def json(self) -> dict[str, Any]:
        """The last line of standard output."""
        found: dict[str, Any] = json.loads(self.out.splitlines()[-1])
        return found


def door(*args: str | Path) -> Said:
    """Call the door as the command line would."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        try:
            status = run_sim.main([str(arg) for arg in args])
        except SystemExit as end:
            status = int(end.code or 0)
    return Said(status, out.getvalue(), err.getvalue())


def run(out: Path, *args: str | Path) -> Said:
    """Run the cheapest scene headless without a report; `args` may say otherwise."""
    return door(
        "--seat", "none", "--scene", SCENE, "--seed", "3", "--no-report", "--out", out, *args
    )


def log_of(out: Path) -> Path:
    """The log of the only run in a folder."""
    (log,) = out.glob("*/run.mcap")
    return log


def brief_hand(samples: int = 40) -> list[dict[str, Any]]:
    """A trace of less than a second: the dead-man is pressed and nothing else happens."""
    lines: list[dict[str, Any]] = [{"forearm_trace": 1, "cell": SCENE, "robots": ROBOTS}]
    for i in range(samples):
        t_ns = i * TICK_MS * 1_000_000
        hand = {
            "t_ns": t_ns,
            "seq": i,
            "expires_ns": t_ns + 100_000_000,
            "tracked": True,
            "T_seat_hand": np.eye(4).tolist(),
            "engaged": i > 5,
            "grip": None,
            "arm": "z1",
        }
        lines.append({"hand": hand})
    return [*lines, {"end": True}]


def stored(path: Path, lines: list[dict[str, Any]]) -> Path:
    """Write a trace."""
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path
