"""Where compiled kernels are kept: in a folder of their own for each state of their sources.

numba looks only at the file that a kernel stands in, and would serve a stale one after a change in
a module that it uses. Call this before anything imports numba.
"""

from __future__ import annotations

import hashlib
import os
import re
from pathlib import Path

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


def use_kernel_cache() -> None:
    """Set NUMBA_CACHE_DIR, unless someone has."""
    package = Path(__file__).resolve().parent.parent
    digest = hashlib.sha256()
    for path in kernel_sources(package):
        digest.update(path.name.encode())
        digest.update(path.read_bytes())
    base = package / ".numba_cache"
    if not os.access(package, os.W_OK):
        base = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "forearm"
    os.environ.setdefault("NUMBA_CACHE_DIR", str(base / digest.hexdigest()[:16]))
