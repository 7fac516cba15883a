"""What every benchmark prints: percentiles, the machine, and one JSON line at the end."""

from __future__ import annotations

import json
import os
import platform
from pathlib import Path

import numpy as np
import numpy.typing as npt


def percentiles(samples: npt.ArrayLike, *which: float) -> tuple[float, ...]:
    """Return the percentiles asked for, 50 and 99 unless told; each is one of the samples.

    Between two of them it is the larger, so that infinite ones (unsolved) do not make it NaN.
    """
    return tuple(float(v) for v in np.percentile(samples, which or (50.0, 99.0), method="higher"))


def machine() -> str:
    """Say in a line what this ran on, and how busy it was."""
    name = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        models = [s for s in cpuinfo.read_text().splitlines() if s.startswith("model name")]
        name = models[0].split(":", 1)[1].strip() if models else name
    load = ", ".join(f"{v:.1f}" for v in os.getloadavg())
    return f"{name}, {os.cpu_count()} cores, Python {platform.python_version()}, load {load}"


def last_line(result: dict[str, object]) -> None:
    """Print the result as one JSON object, the last line of standard output."""
    print(json.dumps(result), flush=True)
