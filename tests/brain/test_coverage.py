"""Every branch of the safety core is taken by its own unit tests, without compiled kernels."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TESTED_BY = {
    "brain/gate.py": "tests/brain/test_gate.py",
    "brain/limits.py": "tests/brain/test_limits.py",
    "brain/mode.py": "tests/brain/test_mode.py",
    "brain/motion.py": "tests/brain/test_motion.py",
}


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> dict:
    """What coverage says of each module when its tests alone are run."""
    folder = tmp_path_factory.mktemp("coverage")
    report = folder / "report.json"
    env = {k: v for k, v in os.environ.items() if not k.startswith(("PYTEST_", "COVERAGE_"))}
    env |= {"NUMBA_DISABLE_JIT": "1", "COVERAGE_FILE": str(folder / "data")}

    def run(*arguments: str) -> None:
        done = subprocess.run(
            [sys.executable, "-m", *arguments],
            cwd=ROOT,
            env=env,
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert done.returncode == 0, done.stdout + done.stderr

    tests = sorted(set(TESTED_BY.values()))
    run(
        *("coverage", "run", "--branch", f"--include={','.join(TESTED_BY)}"),
        *("-m", "pytest", "-q", "-p", "no:cacheprovider", "--hypothesis-seed=0", *tests),
    )
    run("coverage", "json", "-q", "-o", str(report))
    return json.loads(report.read_text())["files"]


@pytest.mark.parametrize("module", TESTED_BY)
def test_every_line_and_branch_of_the_safety_core_is_tested(measured, module):
    summary = measured[module]["summary"]
    missing = measured[module]["missing_lines"], measured[module]["missing_branches"]
    assert summary["num_statements"] > 10
    covered = summary["percent_covered"]
    assert covered == 100.0, f"{covered} % covered, limit 100; missing: {missing}"
