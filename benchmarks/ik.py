"""Inverse kinematics: are all branches found, how exactly, how fast beside peers.

    python -m benchmarks.ik [--json] [--n 10000] [--seed 1]

Arms: the nominal UR5e, a UR5e with the example calibration, the Z1; without tools. Poses: forward
kinematics of joints drawn uniformly inside the limits.

`*_found_pct`: poses, in %, where the branches returned hold the joints that made the pose and every
branch that an independent solver knows (EAIK for the nominal UR5e; ssik for the Z1, and its solver
for general chains for the calibrated UR5e), equal within 1e-4 rad. Branches of the independent
solver whose own error is over 1e-6 are left out; what it misses and we have counts as found and is
reported as `*_extra`. `*_max_err`: the largest error over all poses and branches, in m and rad
alike, of forward kinematics against the pose. `*_p50_us`: one Python call per pose, ours and peers
taking turns pose by pose, in an order that rotates. A peer that is not installed gives null.

On its first run for an arm ssik derives the general solver for some minutes and keeps it on disk;
`--general N` has it check only the first N calibrated poses.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Annotated, Any

import numpy as np
import tyro
from rich.console import Console
from rich.progress import track
from rich.table import Table

from benchmarks.report import last_line, machine, percentiles
from brain.geometry import Array
from brain.ik import solve
from brain.kinematics import pose_error, tool_pose
from brain.robot import ArmModel, Chain
from hardware.arm_model import load_arm
from hardware.strict import data_folder

SAME_RAD = 1e-4
PEER_ERROR = 1e-6

Solver = Callable[[Array], Any]
Branches = Callable[[Array], Array]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Check:
    """How complete and exact the answers for an arm were."""

    found_pct: float
    max_err: float
    branches: int
    extra: int
    checked: int
    singular: int


def axes(chain: Chain) -> tuple[Array, Array, Array]:
    """Joint axes (6, 3), points on them (6, 3) and flange pose (4, 4) in the base, at zero."""
    T = np.eye(4)
    axis, point = np.empty((6, 3)), np.empty((6, 3))
    for k in range(6):
        T = T @ chain.T_link_joint[k]
        axis[k], point[k] = T[:3, :3] @ chain.axis[k], T[:3, 3]
    return axis, point, T @ chain.T_link_flange


def foot_on_last_axis(axis: Array, point: Array) -> Array:
    """Point of axis 6 that is nearest to axis 5.

    ssik 8.2.0 loses the tool's offset from it along axis 6 for general chains, so the pose of a
    frame there is asked for.
    """
    pair = np.stack((axis[4], -axis[5]), axis=1)
    along = np.linalg.lstsq(pair, point[5] - point[4], rcond=None)[0]
    return np.asarray(point[5] + along[1] * axis[5])


def eaik_solver(model: ArmModel) -> tuple[Solver, Branches] | None:
    """EAIK on the arm's axes: the call to time, and a function that gives its branches."""
    if find_spec("eaik") is None:
        return None
    from eaik.IK_HP import HPRobot

    axis, point, T_zero = axes(model.nominal)
    steps = np.diff(np.vstack((np.zeros(3), point, T_zero[:3, 3])), axis=0)
    robot = HPRobot(axis, steps)
    unturned = np.eye(4)
    unturned[:3, :3] = T_zero[:3, :3].T
    return robot.IK, lambda T: np.array(robot.IK(T @ unturned).Q).reshape(-1, 6)


def ssik_solver(chain: Chain) -> Branches | None:
    """Solver of ssik for any chain of six joints."""
    if find_spec("ssik") is None:
        return None
    import ssik

    axis, point, T_zero = axes(chain)
    foot = foot_on_last_axis(axis, point)
    arm = ssik.Manipulator.from_axes(axis, np.diff(np.vstack((np.zeros(3), point, foot)), axis=0))
    T_flange_foot = np.linalg.inv(T_zero)
    T_flange_foot[:3, 3] = T_zero[:3, :3].T @ (foot - T_zero[:3, 3])

    def branches(T: Array) -> Array:
        found = arm.solve(
            T @ T_flange_foot, respect_limits=False, enumerate_windings=False, allow_rescue=False
        )
        return np.array([s.q for s in found]).reshape(-1, 6)

    return branches


def peers(model: ArmModel) -> dict[str, Solver]:
    """Calls to time beside ours, by name; each takes a flange pose."""
    calls: dict[str, Solver] = {}
    eaik = eaik_solver(model)
    if eaik is not None:
        calls["eaik"] = eaik[0]
    if model.name == "ur5e" and find_spec("ur_analytic_ik") is not None:
        from ur_analytic_ik import ur5e

        calls["ur_analytic_ik"] = ur5e.inverse_kinematics
    if model.name == "z1" and find_spec("ssik") is not None:
        from ssik.prebuilt.unitree import z1_ik

        calls["ssik"] = lambda T: z1_ik.solve(T, respect_limits=False)
    return calls


def nearest_rad(q_rad: Array, rows: Array) -> float:
    """Largest joint difference of q (6,) to the nearest of the rows (k, 6), full turns aside."""
    apart = np.abs((rows - q_rad + np.pi) % (2 * np.pi) - np.pi)
    return float(apart.max(axis=1).min(initial=np.inf))


def error_of(model: ArmModel, q_rad: Array, T: Array) -> float:
    """Error of forward kinematics against a pose: the larger of position (m) and rotation (rad)."""
    error = np.empty(6)
    pose_error(tool_pose(model, q_rad), T, error)
    return float(max(np.linalg.norm(error[:3]), np.linalg.norm(error[3:])))


def check(
    model: ArmModel, q_rad: Array, poses: Array, independent: Branches | None, n: int, title: str
) -> Check:
    """Compare our branches with what made the poses, and the first n with another solver's."""
    found = branches = extra = singular = 0
    worst = 0.0
    console = Console(stderr=True)
    for i in track(range(len(poses)), description=title, console=console, transient=True):
        T = poses[i]
        ours = solve(model, T)
        branches += len(ours.q_rad)
        singular += ours.singular != 0
        worst = max([worst, *(error_of(model, q, T) for q in ours.q_rad)])
        wanted = q_rad[i : i + 1]
        if independent is not None and i < n:
            theirs = independent(T)
            good = [q for q in theirs if error_of(model, q, T) < PEER_ERROR]
            wanted = np.vstack((wanted, *good))
            extra += sum(bool(nearest_rad(q, theirs) > SAME_RAD) for q in ours.q_rad)
        found += all(nearest_rad(q, ours.q_rad) < SAME_RAD for q in wanted)
    return Check(
        found_pct=100.0 * found / len(poses),
        max_err=worst,
        branches=branches,
        extra=extra,
        checked=min(n, len(poses)) if independent is not None else 0,
        singular=singular,
    )


def measure(calls: dict[str, Solver], poses: Array) -> dict[str, Array]:
    """Duration in us of each call on each pose, the calls taking turns."""
    names = list(calls)
    took = {name: np.empty(len(poses)) for name in names}
    for name in names:
        for T in poses[:50]:
            calls[name](T)
    for i, T in enumerate(poses):
        for j in range(len(names)):
            name = names[(i + j) % len(names)]
            begin = time.perf_counter_ns()
            calls[name](T)
            took[name][i] = (time.perf_counter_ns() - begin) / 1e3
    return took


def run(n: int, seed: int, general: int) -> tuple[dict[str, object], Table]:
    """Measure everything; returns the keys for JSON and a table for people."""
    example = data_folder("assets") / "calibration" / "ur5e_example.yaml"
    arms = {
        "ur5e": load_arm("ur5e"),
        "ur5e_cal": load_arm("ur5e", calibration=example),
        "z1": load_arm("z1"),
    }
    eaik = eaik_solver(arms["ur5e"])
    independent = {
        "ur5e": None if eaik is None else eaik[1],
        "ur5e_cal": ssik_solver(arms["ur5e_cal"].chain),
        "z1": ssik_solver(arms["z1"].chain),
    }
    rng = np.random.default_rng(seed)
    result: dict[str, object] = {}
    table = Table("arm", "call", "found %", "checked", "extra", "max err", "p50 us", "p99 us")
    for name, model in arms.items():
        low, high = model.limits.q_min_rad, model.limits.q_max_rad
        q_rad = rng.uniform(low, high, (n, 6))
        poses = np.array([tool_pose(model, q) for q in q_rad])
        limit = general if name == "ur5e_cal" else n
        seen = check(model, q_rad, poses, independent[name], limit, name)
        calls: dict[str, Solver] = {"ours": lambda T, m=model: solve(m, T)}
        took = measure(calls | ({} if name == "ur5e_cal" else peers(model)), poses)
        result |= {
            f"{name}_found_pct": seen.found_pct,
            f"{name}_max_err": seen.max_err,
            f"{name}_checked": seen.checked,
            f"{name}_extra": seen.extra,
        }
        for call, us in took.items():
            p50, p99 = percentiles(us)
            if call == "ours":
                result |= {f"{name}_p50_us": p50, f"{name}_p99_us": p99}
                cells = (f"{seen.found_pct:.2f}", f"{seen.checked}", f"{seen.extra}")
                table.add_row(name, call, *cells, f"{seen.max_err:.1e}", f"{p50:.1f}", f"{p99:.1f}")
            else:
                key = f"peer_{call}" if name == "ur5e" else f"peer_{call}_{name}"
                result |= {f"{key}_p50_us": p50, f"{key}_p99_us": p99}
                table.add_row(name, call, "", "", "", "", f"{p50:.1f}", f"{p99:.1f}")
    for peer in ("eaik", "ur_analytic_ik"):
        result.setdefault(f"peer_{peer}_p50_us", None)
    return result | {"n": n, "seed": seed}, table


def main(
    json: bool = False,
    n: Annotated[int, tyro.conf.arg(help="poses per arm")] = 10_000,
    seed: int = 1,
    general: Annotated[int, tyro.conf.arg(help="calibrated poses that ssik checks")] = 10_000,
) -> None:
    """Run the benchmark."""
    result, table = run(n, seed, general)
    console = Console(file=sys.stdout, width=100)
    console.print(table)
    console.print(machine(), highlight=False)
    if json:
        last_line(result)


if __name__ == "__main__":
    tyro.cli(main)
