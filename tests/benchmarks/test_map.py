import json

from benchmarks.map import main


def test_the_last_line_is_one_object_and_nothing_in_the_map_is_wrong(capsys):
    main(json=True, frames=3, scenes=1)
    result = json.loads(capsys.readouterr().out.splitlines()[-1])
    print(result)
    assert (result["wrong_voxels"], result["missing_voxels"]) == (0, 0)
    assert (result["clear_frames"] <= 3, result["ghost_frames"] <= 5) == (True, True)
    assert result["insert_p50_ms"] <= result["insert_p99_ms"]
    assert "octomap_discretised_ratio" in result
