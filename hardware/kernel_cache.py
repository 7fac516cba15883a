"""Where compiled kernels are kept: in a folder of their own for each state of their sources.

numba looks only at the file that a kernel stands in, and would serve a stale one after a change in
a module that it uses. The packages `hardware`, `sim` and `vr` call `use_kernel_cache` when they are
imported; a kernel compiled before that is not kept at all (see `brain.jit`).
"""

from __future__ import annotations

import hashlib
import os
import re
import sys
from functools import cache
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent.parent

_IMPORT = re.compile(r"^from (brain|sim)\.(\w+) import", re.MULTILINE)


def kernel_sources(package: Path) -> list[Path]:
    """Files with kernels in them, and all of ours that those import, directly or not."""
    texts = {
        path: path.read_text(encoding="utf-8")
        for folder in ("brain", "sim")
        for path in (package / folder).glob("*.py")
    }
    waiting = [path for path, text in texts.items() if "from brain.jit import" in text]
    found: set[Path] = set()
    while waiting:
        path = waiting.pop()
        if path in found or path not in texts:
            continue
        found.add(path)
        waiting += [package / a / f"{b}.py" for a, b in _IMPORT.findall(texts[path])]
    return sorted(found)


@cache
def kernel_key() -> str:
    """What the folder of the kernels' present sources is called."""
    digest = hashlib.sha256()
    for path in kernel_sources(PACKAGE):
        digest.update(path.name.encode())
        digest.update(path.read_bytes())
    return f"forearm-kernels-{digest.hexdigest()[:16]}"


def use_kernel_cache() -> None:
    """Set NUMBA_CACHE_DIR to such a folder; in the one that someone has set, if any."""
    base = PACKAGE / ".numba_cache"
    if not os.access(PACKAGE, os.W_OK):
        base = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "forearm"
    place = Path(os.environ.get("NUMBA_CACHE_DIR") or base)
    if place.name != kernel_key():  # a child process inherits the folder itself
        place /= kernel_key()
        os.environ["NUMBA_CACHE_DIR"] = str(place)
        if "numba" in sys.modules:  # has read the environment already
            sys.modules["numba"].config.CACHE_DIR = str(place)
