"""The rules of the house that no linter knows, read from the source itself."""

import ast
import importlib.metadata
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("brain", "hardware", "sim", "vr")
SOURCES = sorted(p for package in PACKAGES for p in (ROOT / package).rglob("*.py"))
DOORS = sorted(ROOT.glob("run_*.py"))


def calls(tree: ast.AST) -> Iterator[str]:
    """Dotted names of everything that is called."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            yield ast.unparse(node.func)


def imports(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            yield node.module


def users_of(*names: str) -> set[str]:
    """Files that call something of that name."""
    found = set()
    for path in SOURCES + DOORS:
        called = {name.rpartition(".")[2] for name in calls(ast.parse(path.read_text()))}
        if called & set(names):
            found.add(str(path.relative_to(ROOT)))
    return found


def test_physics_is_stepped_in_one_place():
    assert users_of("mj_step", "mj_step1", "mj_step2") == {"sim/world.py"}


def test_only_the_clock_sleeps():
    assert users_of("sleep") == {"hardware/clock.py"}


def test_every_exception_is_caught_in_one_place_the_cycle():
    found = set()
    for path in SOURCES + DOORS:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ExceptHandler):
                caught = "everything" if node.type is None else ast.unparse(node.type)
                if caught in ("everything", "Exception", "BaseException"):
                    found.add(str(path.relative_to(ROOT)))
    assert found == {"hardware/spine.py"}


def test_the_brain_reads_no_clock_and_has_no_random_state_of_its_own():
    for path in sorted((ROOT / "brain").glob("*.py")):
        tree = ast.parse(path.read_text())
        used = {name for name in calls(tree) if name.startswith(("np.random", "numpy.random"))}
        assert not used, f"{path.name} calls {used}"
        outside = {name.partition(".")[0] for name in imports(tree)}
        allowed = {
            "brain", "msgspec", "numpy", "numba", "scipy", "ruckig", "daqp", "eaik", "ssik",
            "__future__", "collections", "dataclasses", "enum", "functools", "hashlib",
            "itertools", "math", "struct", "types", "typing",
        }  # fmt: skip
        assert outside <= allowed, f"{path.name} imports {outside - allowed}"


def test_nothing_compiles_with_fastmath():
    for path in SOURCES:
        assert "fastmath=" not in path.read_text(), path


def test_no_kernel_has_default_arguments():
    kernels = 0
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text())):
            marks = node.decorator_list if isinstance(node, ast.FunctionDef) else []
            if any(ast.unparse(mark).endswith("kernel") for mark in marks):
                kernels += 1
                assert not node.args.defaults, f"{path}: {node.name}"
    assert kernels > 50


def test_only_the_doors_import_both_sim_and_vr():
    for path in SOURCES:
        tree = {name.partition(".")[0] for name in imports(ast.parse(path.read_text()))}
        assert not {"sim", "vr"} <= tree, path


def test_product_code_never_imports_tests_or_benchmarks():
    for path in SOURCES + DOORS:
        tree = {name.partition(".")[0] for name in imports(ast.parse(path.read_text()))}
        assert not tree & {"tests", "benchmarks", "examples"}, path


@pytest.mark.parametrize("door", [p.name for p in DOORS])
def test_the_doors_stay_short(door):
    lines = len((ROOT / door).read_text().splitlines())
    assert lines <= 120, f"{door} has {lines} lines, limit 120"


def test_the_gate_stays_dull():
    lines = len((ROOT / "brain/gate.py").read_text().splitlines())
    assert lines <= 300, f"gate.py has {lines} lines, limit 300"


def test_the_gate_calls_no_code_of_the_tick():
    tree = ast.parse((ROOT / "brain/gate.py").read_text())
    forbidden = {"brain.tick", "brain.teleop", "brain.intents", "brain.playback", "brain.retarget"}
    assert not forbidden & set(imports(tree))


def test_no_other_distribution_owns_our_package_names():
    owners = importlib.metadata.packages_distributions()
    for package in PACKAGES:
        assert set(owners.get(package, ["forearm"])) == {"forearm"}, f"{package}: {owners[package]}"


def test_every_package_says_that_it_is_typed():
    assert all((ROOT / package / "py.typed").is_file() for package in PACKAGES)


def test_no_file_names_a_package_index():
    hosts = ("pypi" + ".org", "pythonhosted" + ".org", "index-" + "url")
    for path in [ROOT / "Makefile", ROOT / "constraints.txt", ROOT / "pyproject.toml"]:
        assert not [h for h in hosts if h in path.read_text()], path
