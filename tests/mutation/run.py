"""Mutation run: which small wrong changes to the safety core would its tests let through?

`python -m tests.mutation.run [module ...]` prints every survivor and, as its last line, the figures
as JSON; it fails below 95 % killed. Mutants never touch a file: they are loaded in place of the
module in a process of their own, in a temporary copy of the tree.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from types import ModuleType

from tests.mutation.operators import Mutant, mutants

ROOT = Path(__file__).parents[2]
EQUIVALENT = Path(__file__).with_name("equivalent.json")
TESTS = {
    "brain.gate": ("tests/brain/test_gate.py",),
    "brain.limits": ("tests/brain/test_limits.py", "tests/brain/test_gate.py"),
    "brain.mode": ("tests/brain/test_mode.py",),
    "brain.motion": (
        "tests/brain/test_motion.py",
        "tests/brain/test_limits.py",
        "tests/brain/test_gate.py",
    ),
}
KILLED_SHARE = 0.95
WORKERS = 2
TIMES_SLOWER = 10
"""A mutant that takes this many times as long as no mutant has lost its way: killed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What became of the mutants of one module."""

    module: str
    mutants: int
    killed: int
    equivalent: int
    timed_out: int
    survivors: tuple[Mutant, ...]
    seconds: float

    @property
    def share(self) -> float:
        """Share killed of those that are not listed as equivalent."""
        return self.killed / max(self.mutants - self.equivalent, 1)


def path_of(module: str) -> Path:
    """File of a module."""
    return ROOT / (module.replace(".", "/") + ".py")


def equivalents(module: str) -> set[tuple[str, str, str]]:
    """Mutants that do no harm (where, was, becomes); the reasons are in the file."""
    listed = json.loads(EQUIVALENT.read_text())
    return {(e["where"], e["was"], e["becomes"]) for e in listed if e["module"] == module}


# ------------------------------------------------------------------------------ one mutant


def _prepare(copy: str) -> None:
    """Make a worker ready: in the copy, kernels as plain Python, slow imports done once."""
    os.chdir(copy)
    sys.path.insert(0, copy)
    import hypothesis
    import numba
    import numpy
    import pytest

    import brain.kinematics

    assert brain.kinematics.__file__.startswith(copy)
    assert numba.config.DISABLE_JIT
    assert all((numpy, pytest))  # are for the children
    phases = [hypothesis.Phase.explicit, hypothesis.Phase.generate]  # one counter-example will do
    hypothesis.settings.register_profile("mutation", phases=phases, database=None)
    hypothesis.settings.load_profile("mutation")
    assert not any(name in sys.modules for name in TESTS)


def _survives(module: str, source: str, tests: Sequence[str], limit_s: int) -> str:
    """Run tests on a changed module in a child; "survived", "killed" or "timed out"."""
    child = os.fork()
    if child == 0:
        signal.alarm(limit_s)  # its default action ends this process, whatever it is doing
        os._exit(_child(module, source, tests))
    status = os.waitpid(child, 0)[1]
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGALRM:
        return "timed out"
    return "survived" if status == 0 else "killed"


def _child(module: str, source: str, tests: Sequence[str]) -> int:
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    import pytest

    import brain

    changed = ModuleType(module)
    changed.__file__ = path_of(module).name
    sys.modules[module] = changed
    setattr(brain, module.rpartition(".")[2], changed)
    try:
        exec(compile(source, changed.__file__, "exec"), changed.__dict__)
    except Exception:
        return 1
    quiet = ("-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "--hypothesis-seed=0")
    return int(pytest.main([*quiet, *tests]))


# ------------------------------------------------------------------------------ all of them


def run(modules: Sequence[str] = tuple(TESTS)) -> list[Outcome]:
    """Try every mutant of some modules.

    Raises:
        RuntimeError: the tests fail without any change.
    """
    with tempfile.TemporaryDirectory() as copy:
        for name in ("brain", "tests", "pyproject.toml"):
            place = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
            place(ROOT / name, Path(copy) / name)
        variables = {"NUMBA_DISABLE_JIT": "1", "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
        before = {name: os.environ.get(name) for name in variables}
        os.environ |= variables
        try:
            with ProcessPoolExecutor(
                WORKERS, get_context("spawn"), initializer=_prepare, initargs=(copy,)
            ) as pool:
                return [_module(pool, module) for module in modules]
        finally:
            for name, value in before.items():
                os.environ.pop(name) if value is None else os.environ.__setitem__(name, value)


def _module(pool: ProcessPoolExecutor, module: str) -> Outcome:
    source, tests, start_s = path_of(module).read_text(), TESTS[module], time.monotonic()
    if pool.submit(_survives, module, source, tests, 300).result() != "survived":
        raise RuntimeError(f"{', '.join(tests)}: they fail without any change")
    limit_s = max(10, round(TIMES_SLOWER * (time.monotonic() - start_s)))
    harmless = equivalents(module)
    found = mutants(source)
    tried = [m for m in found if (m.where, m.was, m.becomes) not in harmless]
    jobs = [pool.submit(_survives, module, m.source, tests, limit_s) for m in tried]
    results = [job.result() for job in jobs]
    return Outcome(
        module=module,
        mutants=len(found),
        killed=sum(r != "survived" for r in results),
        equivalent=len(found) - len(tried),
        timed_out=results.count("timed out"),
        survivors=tuple(m for m, r in zip(tried, results, strict=True) if r == "survived"),
        seconds=time.monotonic() - start_s,
    )


def report(outcomes: Sequence[Outcome]) -> str:
    """Say which mutants survived, and the figures as JSON in the last line."""
    lines = []
    for o in outcomes:
        for m in o.survivors:
            lines.append(f"{path_of(o.module).relative_to(ROOT)}:{m.line}: {m.where}: {m.operator}")
            lines += [f"  - {m.was}", f"  + {m.becomes}"]
    figures = {
        o.module: {
            "mutants": o.mutants,
            "killed": o.killed,
            "equivalent": o.equivalent,
            "timed_out": o.timed_out,
            "survived": dict(Counter(m.operator for m in o.survivors)),
            "killed_pct": round(100.0 * o.share, 2),
            "seconds": round(o.seconds, 1),
        }
        for o in outcomes
    }
    return "\n".join([*lines, json.dumps(figures)])


def main() -> int:
    """Run from the command line."""
    outcomes = run(tuple(sys.argv[1:]) or tuple(TESTS))
    sys.stdout.write(report(outcomes) + "\n")
    return 0 if all(o.share >= KILLED_SHARE for o in outcomes) else 1


if __name__ == "__main__":
    sys.exit(main())
