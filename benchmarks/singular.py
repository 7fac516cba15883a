"""Singular poses: do picks succeed with and without the mask, is a hand ever stuck in one.

    python -m benchmarks.singular [--json] [--n 1000] [--sweeps 40] [--seed 1]

`success_pct`: random pick tasks (see `singular_tasks`) planned as a cell plans them, in which trees
rarely grow near singular poses and branches away from them are preferred; `success_unmasked_pct`:
the same tasks without. A task succeeds when it is planned, every row keeps the joints' range and
speed, nothing is touched by MuJoCo's own distances, the tool goes straight to where it grips and
straight up again, within 1 mm and 0.3 degrees of the line, ends where it should, and on the
straight ways no joint is too slow for the tool to go at 5 cm/s.

A cell looks at the straight ways of all branches before it goes. `reach_*`: the same tasks when
only the pose above the part is planned, and what follows is not known: how often the tool can then
go straight down, as above.

Tasks that nobody could do are drawn again and counted: EAIK finds no branch (out of reach), no
branch of EAIK has 20 mm of room by MuJoCo (in collision), or none of those leads straight down at
5 cm/s with a tenth to spare. The planner is not asked.

`stuck`: hands that lead the tool through wrist, elbow and shoulder singular poses and back (see
`singular_sweeps`), `--sweeps` of each kind: how often the tool does not come back with the hand to
where it started, or the cell holds. `left_behind`: how often it is not there at the far end though
that is in reach, if only on another branch: a hand does not change it. `restless`: how often a
joint still moves at over 0.01 rad/s when the hand has rested for 2 s, of two rests a sweep.
`joint_speed_share`: the fastest joint over its limit. `speed_error_*_m_s`: the tool's velocity
against the hand's, where all of the sweep is in reach.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from typing import Annotated

import numpy as np
import tyro
from rich.console import Console
from rich.progress import track
from rich.table import Table

from benchmarks.report import last_line, machine, percentiles
from benchmarks.singular_sweeps import KINDS, Outcome, Sweeps
from benchmarks.singular_tasks import Picks
from brain.singular import NEAR


class Tally:
    """What came of the tasks, planned one way."""

    def __init__(self) -> None:
        """Begin with none."""
        self.verdicts: Counter[str] = Counter()
        self.reached: Counter[str] = Counter()
        self.needed_rad_s: list[float] = []
        self.took_s: list[float] = []

    @property
    def success_pct(self) -> float:
        """Share of tasks with nothing wrong."""
        return 100.0 * self.verdicts[""] / self.verdicts.total()

    @property
    def reach_pct(self) -> float:
        """Share of tasks in which the tool can go straight from where it was sent."""
        return 100.0 * self.reached[""] / self.reached.total()


def picks(n: int, seed: int) -> tuple[dict[float, Tally], Counter[str]]:
    """Plan n feasible tasks without and with the mask; also what could not be done, and why."""
    cell, rng = Picks(), np.random.default_rng(seed)
    tallies, infeasible = {0.0: Tally(), NEAR: Tally()}, Counter[str]()
    for i in track(range(n), description="picks", console=Console(stderr=True)):
        pick = cell.draw(rng)
        while (why := cell.infeasible(pick)) is not None:
            infeasible[why] += 1
            pick = cell.draw(rng)
        for near_singular, tally in tallies.items():
            begin = time.perf_counter()
            stream = cell.plan(pick, i, near_singular)
            tally.took_s.append(time.perf_counter() - begin)
            verdict, needed_rad_s = cell.verdict(pick, stream)
            tally.verdicts[verdict] += 1
            tally.reached[cell.reach(pick, i, near_singular)] += 1
            if np.isfinite(needed_rad_s):
                tally.needed_rad_s.append(needed_rad_s)
    return tallies, infeasible


def sweeps(n: int, seed: int) -> dict[str, Outcome]:
    """Drive n sweeps of each kind."""
    arm, found = Sweeps(), {}
    for kind in KINDS:
        rng, found[kind] = np.random.default_rng(seed), Outcome()
        for _ in track(range(n), description=kind, console=Console(stderr=True)):
            arm.drive(arm.draw(kind, rng), found[kind])
    return found


def picks_table(tallies: dict[float, Tally], infeasible: Counter[str]) -> Table:
    """Make the lines for people."""
    table = Table("picks", "success %", "needed rad/s p50", "p99", "plan s p50", "p99")
    for near_singular, tally in tallies.items():
        p50, p99 = percentiles(tally.needed_rad_s or [np.nan])
        took = percentiles(tally.took_s)
        cells = [f"{v:.2f}" for v in (tally.success_pct, p50, p99, *took)]
        table.add_row("with mask" if near_singular else "without", *cells)
        for verdict, count in tally.verdicts.most_common():
            if verdict:
                table.add_row(f"  {verdict}", f"{count}")
        table.add_row("  reach only", f"{tally.reach_pct:.2f}")
        for verdict, count in tally.reached.most_common():
            if verdict:
                table.add_row(f"    {verdict}", f"{count}")
    for why, count in infeasible.most_common():
        table.add_row(f"drawn again: {why}", f"{count}")
    return table


def sweeps_table(found: dict[str, Outcome]) -> Table:
    """Make the lines for people."""
    table = Table(
        "sweeps", "n", "stuck", "beyond reach", "left", "restless", "joint", "tool m/s", "error"
    )
    for kind, o in found.items():
        counts = (o.sweeps, o.stuck, o.beyond_reach, o.left_behind, o.restless)
        error = "/".join(
            f"{v:.3f}" for v in percentiles(o.error_m_s or [np.nan], 50.0, 99.0, 100.0)
        )
        table.add_row(
            kind, *(f"{c}" for c in counts), f"{o.joint_share:.3f}", f"{o.tool_m_s:.3f}", error
        )
        for reason, count in o.held.most_common():
            table.add_row(f"  held: {reason}", f"{count}")
    return table


def main(
    json: bool = False,
    n: Annotated[int, tyro.conf.arg(help="pick tasks")] = 1000,
    sweeps_per_kind: Annotated[int, tyro.conf.arg(name="sweeps")] = 40,
    seed: int = 1,
) -> None:
    """Run the benchmark."""
    console = Console(file=sys.stdout, width=110)
    tallies, infeasible = picks(n, seed)
    console.print(picks_table(tallies, infeasible))
    found = sweeps(sweeps_per_kind, seed)
    console.print(sweeps_table(found))
    console.print("error: tool against hand, m/s, p50/p99/most; joint: fastest over its limit")
    console.print(machine(), highlight=False)
    errors = [v for o in found.values() for v in o.error_m_s]
    p50, p99, most = percentiles(errors, 50.0, 99.0, 100.0) if errors else (None,) * 3
    result: dict[str, object] = {
        "tasks": n,
        "success_pct": tallies[NEAR].success_pct,
        "success_unmasked_pct": tallies[0.0].success_pct,
        "stuck": sum(o.stuck for o in found.values()),
        "reach_success_pct": tallies[NEAR].reach_pct,
        "reach_success_unmasked_pct": tallies[0.0].reach_pct,
        "infeasible": dict(infeasible),
        "sweeps": sum(o.sweeps for o in found.values()),
        "left_behind": sum(o.left_behind for o in found.values()),
        "restless": sum(o.restless for o in found.values()),
        "joint_speed_share": max(o.joint_share for o in found.values()),
        "tool_speed_most_m_s": max(o.tool_m_s for o in found.values()),
        "speed_error_p50_m_s": p50,
        "speed_error_p99_m_s": p99,
        "speed_error_most_m_s": most,
        "seed": seed,
    }
    if json:
        last_line(result)


if __name__ == "__main__":
    tyro.cli(main)
