"""How pictures are drawn: said to MuJoCo and Mesa before either is loaded."""

from __future__ import annotations

import os
import sys
from collections.abc import MutableMapping

BACKENDS = ("egl", "glfw", "osmesa")
"""What MuJoCo knows on Linux; with any other name it does not load."""


def choose_drawing(environment: MutableMapping[str, str] = os.environ) -> None:
    """Draw without a screen and with no threads of Mesa's own, unless the user said otherwise.

    Raises:
        SystemExit: `MUJOCO_GL` names nothing that MuJoCo knows: it would end its own import.
    """
    environment.setdefault("LP_NUM_THREADS", "0")
    backend = environment.setdefault("MUJOCO_GL", "egl")
    if backend.lower() not in BACKENDS:
        sys.stderr.write(f"error: MUJOCO_GL: {backend!r}, allowed are {', '.join(BACKENDS)}\n")
        raise SystemExit(2)
