"""The mutation run itself (long), and that what it tries and forgives is what it says."""

import ast
import json

import pytest

from tests.mutation.operators import mutants
from tests.mutation.run import EQUIVALENT, KILLED_SHARE, TESTS, path_of, report, run

SAMPLE = '''
"""A docstring."""
from __future__ import annotations
LIMIT: float = 2.0

@decorated(frozen=True)
def speed(a: int | None, b: float) -> float:
    """Another one."""
    if not a < b:
        return -LIMIT
    return min(a, b) * f(a, b, far=1)
'''


def becomes(was: str) -> set[str]:
    return {m.becomes for m in mutants(SAMPLE) if m.was == was}


@pytest.mark.parametrize(
    ("was", "expected"),
    [
        ("LIMIT: float = 2.0", {"LIMIT: float = 4.0", "LIMIT: float = 1.0"}),
        ("if not a < b:", {"if not a <= b:", "if not a >= b:", "if a < b:", "if not not a < b:"}),
        ("return -LIMIT", {"return LIMIT", "return None", "pass"}),
        (
            "return min(a, b) * f(a, b, far=1)",
            {
                "return min(a, b) / f(a, b, far=1)",
                "return max(a, b) * f(a, b, far=1)",
                "return min(a, b) * f(b, a, far=1)",
                "return min(a, b) * f(a, b)",
                "return min(a, b) * f(a, b, far=2)",
                "return min(a, b) * f(a, b, far=0)",
                "return None",
            },
        ),
    ],
)
def test_a_line_has_these_mutants(was, expected):
    assert becomes(was) == expected


def test_what_has_no_behaviour_is_left_alone():
    changed = {m.was.split(" / ")[0] for m in mutants(SAMPLE)}
    assert changed == {
        "LIMIT: float = 2.0",
        "if not a < b:",
        "return -LIMIT",
        "return min(a, b) * f(a, b, far=1)",
    }


@pytest.mark.parametrize("module", TESTS)
def test_every_mutant_is_another_module_that_can_be_read(module):
    source = path_of(module).read_text()
    found = mutants(source)
    assert len({m.source for m in found}) == len(found)
    assert ast.unparse(ast.parse(source)) not in {m.source for m in found}
    assert mutants(source) == found


def test_every_mutant_that_is_forgiven_exists_and_has_its_reason():
    listed = json.loads(EQUIVALENT.read_text())
    exist = {
        (module, m.where, m.was, m.becomes)
        for module in TESTS
        for m in mutants(path_of(module).read_text())
    }
    key = ("module", "where", "was", "becomes")
    assert [e for e in listed if tuple(e[name] for name in key) not in exist] == []
    assert all(len(e["reason"]) > 20 for e in listed)
    assert len(listed) <= 20


@pytest.mark.long
@pytest.mark.parametrize("module", TESTS)
def test_the_tests_kill_over_95_percent_of_the_mutants(module):
    (outcome,) = run((module,))
    figures = report([outcome])
    assert outcome.share >= KILLED_SHARE, figures
    print(figures)
