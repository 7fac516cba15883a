"""Load a scene, plan, rehearse, inspect, commit, read the outcome."""

from sim.api import open_cell

cell = open_cell("bench_pick", seed=3)
rehearsal = cell.rehearse("pick_place")
print(rehearsal.verdict.sentence())
print(f"{rehearsal.duration_s:.1f} s, at most {rehearsal.prediction.force_n.max():.1f} N")
outcome = cell.commit(rehearsal)
print(f"placed within {outcome.placed_error_mm:.1f} mm, ok: {outcome.ok}")
cell.close()
