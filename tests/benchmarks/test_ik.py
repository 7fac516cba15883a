import json

from benchmarks.ik import main

ARMS = ("ur5e", "ur5e_cal", "z1")
KEYS = (
    "ur5e_found_pct",
    "ur5e_max_err",
    "ur5e_cal_found_pct",
    "ur5e_cal_max_err",
    "ur5e_p50_us",
    "z1_found_pct",
    "z1_max_err",
    "z1_p50_us",
    "peer_eaik_p50_us",
    "peer_ur_analytic_ik_p50_us",
)


def test_a_short_run_ends_with_the_promised_keys_and_finds_every_branch(capsys):
    main(json=True, n=30, general=0)
    result = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert [key for key in KEYS if key not in result] == []
    assert [result[f"{arm}_found_pct"] for arm in ARMS] == [100.0, 100.0, 100.0]
    assert max(result[f"{arm}_max_err"] for arm in ARMS) < 1e-9
