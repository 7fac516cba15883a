import json

import pytest

from benchmarks.tick import main

KEYS = (
    "tick_mean_us",
    "tick_p50_us",
    "tick_p99_us",
    "live_ticks",
    "live_late_p50_us",
    "live_late_p99_us",
    "live_late_max_us",
    "live_late_pct",
    "live_skipped",
    "lockstep_rtf",
    "lockstep_rtf_cameras",
    "rehearse_10s_s",
)


@pytest.mark.long
def test_a_short_run_ends_with_the_promised_keys_and_counts_every_tick(capsys):
    main(json=True, seconds=5.0)
    result = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert [key for key in KEYS if key not in result] == []
    assert result["live_problems"] == []
    assert result["live_log_dropped"] == 0
    ticks = result["live_ticks"] + result["live_skipped"]
    assert abs(ticks - result["live_physics_steps"]) < 100, "ticks due and steps of 2 ms"
