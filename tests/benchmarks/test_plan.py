import io
import json
import tarfile

import numpy as np
import pytest

from benchmarks import plan_problems
from benchmarks.plan import dense, main

KEYS = (
    "scenes_solved_pct",
    "mbm_problems",
    "mbm_solved",
    "mbm_p50_us",
    "mbm_p99_us",
    "ompl_median_ratio",
    "vamp_p50_ratio",
    "vamp_p99_ratio",
    "cost_ratio_25ms_vs_aorrtc",
    "dense_check_failures",
    "calls",
    "calls_over_25ms",
)


def test_a_short_run_without_a_network_ends_with_the_promised_keys(capsys):
    main(json=True, runs=2, problems=0, calls=20, costs=False)
    result = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert [key for key in KEYS if key not in result] == []
    assert result["scenes_solved_pct"] == 100.0
    assert result["dense_check_failures"] == 0
    assert result["mbm_problems"] is None


def test_the_dense_check_keeps_both_ends_and_steps_of_a_320th_rad():
    rows = dense(np.array([[0.0, 0.0], [1.0, 0.0], [1.0, 0.5]]))
    assert len(rows) == 1 + 320 + 160
    np.testing.assert_array_equal(rows[[0, 320, -1]], [[0, 0], [1, 0], [1, 0.5]])


def test_another_archive_than_the_known_one_is_refused(tmp_path):
    (tmp_path / "vamp-planner-0.6.4.tar.gz").write_bytes(b"something else")
    with pytest.raises(ValueError, match="digest .*, must be d3150c6b"):
        plan_problems.archive(tmp_path)


def test_a_file_in_the_archive_that_is_too_large_is_refused(monkeypatch):
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w:gz") as tar:
        info = tarfile.TarInfo("vamp_planner-0.6.4/resources/ur5/ur5.srdf")
        info.size = 100
        tar.addfile(info, io.BytesIO(bytes(100)))
    monkeypatch.setattr(plan_problems, "MEMBER_MOST", 10)
    with pytest.raises(ValueError, match="100 bytes, allowed 10"):
        plan_problems.load(data.getvalue())


def test_entities_in_a_robot_description_are_refused():
    with pytest.raises(ValueError, match="entities"):
        plan_problems.ur5(b'<!DOCTYPE x [<!ENTITY a "b">]><robot/>', b"<robot/>")
