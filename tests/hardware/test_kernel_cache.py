"""No kernel is ever served from before a change of its sources, however the program is entered."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LOOK = """
import sys
{enter}
for name, module in sorted(sys.modules.items()):
    if name.startswith(("brain.", "sim.")):
        for kernel in vars(module).values():
            if hasattr(kernel, "overloads") and kernel.__module__ == name:
                print(getattr(kernel._cache, "cache_path", None))
"""


def places(enter: str, **environment: str) -> set[str]:
    """Where the kernels of a new process are kept after such an import; None is nowhere."""
    env = {k: v for k, v in os.environ.items() if k != "NUMBA_CACHE_DIR"} | environment
    done = subprocess.run(
        [sys.executable, "-c", LOOK.format(enter=enter)],
        cwd=ROOT,
        env=env,
        capture_output=True,
        text=True,
        check=True,
    )
    found = done.stdout.splitlines()
    assert len(found) > 20, done.stderr
    return set(found)


def key() -> str:
    """The folder that belongs to the sources as they are now."""
    code = "from hardware import kernel_cache; print(kernel_cache.kernel_key())"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    return done.stdout.strip()


@pytest.mark.parametrize(
    "enter", ["import sim.api", "import sim.live", "import vr.scripted", "import run_sim"]
)
def test_every_way_in_keeps_kernels_by_their_sources(enter):
    assert all(f"/{key()}/" in place for place in places(enter))


@pytest.mark.parametrize("folder", [{}, {"NUMBA_CACHE_DIR": "/tmp/kernels"}])
def test_the_brain_alone_keeps_no_kernels_rather_than_old_ones(folder):
    assert places("import brain.distance, brain.gate", **folder) == {"None"}


def test_who_has_imported_numba_already_gets_the_same_folder():
    assert all(f"/{key()}/" in place for place in places("import numba, sim.api"))


def test_a_brain_that_is_imported_first_keeps_no_old_ones_either():
    found = places("import brain.distance, sim.api")
    assert all(place == "None" or f"/{key()}/" in place for place in found)


def test_a_folder_of_the_user_is_used_by_sources_too(tmp_path):
    found = places("import sim.api", NUMBA_CACHE_DIR=str(tmp_path))
    assert all(place.startswith(f"{tmp_path}/{key()}/") for place in found)
