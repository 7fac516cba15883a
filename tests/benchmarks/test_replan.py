import json

import numpy as np
import pytest

from benchmarks.replan import flatters, judge, main, verdicts
from benchmarks.strokes import StrokeCell, path_of


def test_a_short_run_ends_with_one_object_and_nothing_is_called_safe_that_touches(capsys):
    main(json=True, strokes=20)
    result = json.loads(capsys.readouterr().out.splitlines()[-1])
    print(result)
    assert (result["strokes"], result["false_safe"]) == (20, 0)
    assert result["verdict_p50_ms"] <= result["verdict_p99_ms"]


def test_physics_finds_what_touches_along_a_stroke():
    """The check of the check: a stroke into the bench touches it, and says so if called safe."""
    cell = StrokeCell("bench_pick", 1)
    rng = np.random.default_rng(3)
    kinds = set()
    for _ in range(25):
        stroke = cell.draw(rng)
        found, _, _ = judge(cell, stroke)
        touch = cell.touched(stroke.arm, path_of(cell.bodies[stroke.arm], stroke))
        kinds.add((found.kind, touch is not None))
        if touch is not None:
            assert found.kind in ("contact", "unreachable")
            lied = type(found)(
                kind="safe", certified_m=1.0, row=0.0, along_m=0.0, place=found.place
            )
            assert len(flatters(cell, stroke, lied)) == 1
    print(kinds)
    assert {("contact", True), ("safe", False)} <= kinds


@pytest.mark.long
def test_two_thousand_strokes_and_none_is_called_safe_that_touches():
    result, wrong = verdicts(2000, seed=2)
    print(result)
    assert wrong == []
