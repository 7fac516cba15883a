"""From a way in joint space to rows at the tick: within every limit, at rest at both ends.

A way becomes a smooth curve: a polyline with its corners rounded, or a spline through close rows.
The curve is cut into zones, each with one limit for speed, acceleration and jerk along it; the
speeds between zones are what the zones before and after can reach and leave again; ruckig then
fills each zone. The rows are measured at the end, and the whole is slowed if any is over a limit.

q(s) and s(t) give q' v, q'' v^2 + q' a and q''' v^3 + 3 q'' v a + q' j for the joints' speed,
acceleration and jerk, v, a and j being those of s.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from ruckig import InputParameter, Result, Ruckig
from ruckig import Trajectory as Profile

from brain.body import Body, work
from brain.curve import Curve, distinct, rounded, smooth
from brain.distance import Obstacles, path_surroundings
from brain.geometry import Array, frozen
from brain.jit import lean_kernel
from brain.kinematics import links, tool
from brain.limits import LimitProfile, joint_speed
from brain.robot import ArmArrays

CELL_RAD = 0.02
"""Limits along a curve are looked at in cells of at most this length, at five places each."""
ZONE_RATIO = 1.2
"""Cells share a zone, and its speed, while their speed limits differ by less than this."""
# Of a joint's limit, what curvature may take; the rest is left for speeding up and slowing down.
BEND_ACCELERATION, BEND_JERK, CHANGE_JERK = 0.5, 0.35, 0.35
ROUNDING = 1.0 + 1e-9
SLOWINGS = 50


@lean_kernel
def _tool_positions(arm: ArmArrays, q_rad: Array, T_links: Array, T: Array, out: Array) -> None:
    for i in range(q_rad.shape[0]):
        links(arm, q_rad[i], T_links)
        tool(arm, T_links, T)
        for a in range(3):
            out[i, a] = T[a, 3]


def tool_positions(body: Body, q_rad: Array) -> Array:
    """Positions (rows, 3) in m of the tool in the world at q (rows, n)."""
    out = np.empty((len(q_rad), 3))
    q = np.ascontiguousarray(q_rad)
    _tool_positions(body.arrays.arm, q, work(body).T_links, np.empty((4, 4)), out)
    return out


@dataclass(frozen=True, slots=True, kw_only=True)
class Zone:
    """A stretch of a curve in rad, with limits for speed, acceleration and jerk along it."""

    length: float
    speed: float
    acceleration: float
    jerk: float


def _shares(limits: LimitProfile, clearance_m: Array) -> Array:
    return np.array([limits.speed_share(float(c)) for c in clearance_m])


def zones(
    curve: Curve,
    body: Body,
    limits: LimitProfile,
    near: Obstacles | None,
) -> list[Zone]:
    """Cut a curve into zones of nearly equal speed limit.

    Speed falls with the clearance to `near` as the profile says, acceleration with it.
    """
    edges, group = [np.zeros(1)], []
    for a, b, g in zip(curve.start[:-1], curve.start[1:], curve.group, strict=True):
        count = max(1, math.ceil((b - a) / CELL_RAD))
        edges.append(a + (b - a) * np.arange(1, count + 1) / count)
        group += [g] * count
    edge = np.concatenate(edges)
    inner = np.nextafter(edge[1:], 0.0)  # the end of a cell belongs to the cell, also at a joint
    places = np.linspace(edge[:-1], inner, 5, axis=1)
    bend = [np.abs(curve.at(places, d)).max(axis=1) for d in (1, 2, 3)]
    q = curve.at(places).reshape(-1, curve.coefficient.shape[2])
    steps = np.linalg.norm(np.diff(tool_positions(body, q).reshape(-1, 5, 3), axis=1), axis=2)
    tool_rate = steps.max(axis=1) / np.maximum(0.25 * np.diff(edge), 1e-12)
    share = np.ones(len(group))
    if near is not None:
        found = path_surroundings(body, near, q, limits.slow_from_m).reshape(-1, 5)
        share = _shares(limits, found.min(axis=1))
    top = joint_speed(limits, body.model.limits)
    with np.errstate(divide="ignore", over="ignore"):
        speed = np.min(
            np.concatenate(
                [
                    top / bend[0],
                    np.sqrt(BEND_ACCELERATION * limits.joint_acceleration_rad_s2 / bend[1]),
                    np.cbrt(BEND_JERK * limits.joint_jerk_rad_s3 / bend[2]),
                    (limits.tool_speed_m_s * share / tool_rate)[:, None],
                ],
                axis=1,
            ),
            axis=1,
        )
    out, first = [], 0
    for i in range(1, len(group) + 1):
        run = speed[first : i + 1]
        if i < len(group) and group[i] == group[first] and run.max() < ZONE_RATIO * run.min():
            continue
        cells = slice(first, i)
        peak = [b[cells].max(axis=0) for b in bend]
        length = float(edge[i] - edge[first])
        out.append(
            _zone(length, float(speed[cells].min()), float(share[cells].min()), peak, limits)
        )
        first = i
    return out


def _zone(
    length: float, speed: float, share: float, bend: list[Array], limits: LimitProfile
) -> Zone:
    """Share each joint's limits between the bend of the curve and changes of speed along it."""
    top_a, top_j = limits.joint_acceleration_rad_s2, limits.joint_jerk_rad_s3
    with np.errstate(divide="ignore", over="ignore"):
        left_a = (top_a - bend[1] * speed**2) / bend[0]
        twist = CHANGE_JERK * top_j / (3.0 * bend[1] * speed)
    acceleration = share * float(np.min(np.minimum(left_a, twist)))
    with np.errstate(divide="ignore", over="ignore"):
        left_j = (top_j - bend[2] * speed**3 - 3.0 * bend[1] * speed * acceleration) / bend[0]
    return Zone(length=length, speed=speed, acceleration=acceleration, jerk=float(left_j.min()))


# ---------------------------------------------------------------- time along a curve


def _reachable(speed: float, zone: Zone) -> float:
    """Highest speed at the end of a zone when it is entered at `speed`, both without acceleration.

    A change by d takes d/a + a/j, or 2 sqrt(d/j) if the acceleration is not reached, at the mean of
    the two speeds.
    """
    low, high = 0.0, max(zone.speed - speed, 0.0)
    for _ in range(60):
        d = 0.5 * (low + high)
        a, j = zone.acceleration, zone.jerk
        time = d / a + a / j if d * j > a * a else 2.0 * math.sqrt(d / j)
        if (speed + 0.5 * d) * time <= zone.length * (1.0 - 1e-6):
            low = d
        else:
            high = d
    return speed + low


def _crossings(cut: list[Zone]) -> list[float]:
    """Speeds at the ends of all zones that can be reached from rest, and left to rest."""
    speed = [0.0]
    for zone, after in zip(cut, [*cut[1:], cut[-1]], strict=True):
        speed.append(min(_reachable(speed[-1], zone), zone.speed, after.speed))
    speed[-1] = 0.0
    for i in range(len(cut) - 1, -1, -1):
        speed[i] = min(speed[i], _reachable(speed[i + 1], cut[i]))
    return speed


def _profiles(cut: list[Zone]) -> list[Profile]:
    """Fill each zone with its fastest motion between the crossing speeds."""
    speed = _crossings(cut)
    for _ in range(20):
        profiles = [
            _fill(zone, a, b) for zone, a, b in zip(cut, speed[:-1], speed[1:], strict=True)
        ]
        if all(p is not None for p in profiles):
            return [p for p in profiles if p is not None]
        speed = [0.9 * v for v in speed]
    raise ArithmeticError("ruckig found no way through the zones of a path")


def _fill(zone: Zone, enter: float, leave: float) -> Profile | None:
    """Find the fastest motion through a zone; None if it would leave the zone or turn back."""
    wanted = InputParameter(1)
    wanted.current_velocity, wanted.target_velocity = [enter], [leave]
    wanted.target_position = [zone.length]
    wanted.max_velocity = [zone.speed]
    wanted.max_acceleration, wanted.max_jerk = [zone.acceleration], [zone.jerk]
    profile = Profile(1)
    result = Ruckig(1).calculate(wanted, profile)
    if result not in (Result.Working, Result.Finished):
        return None
    extent = profile.position_extrema[0]
    slack = 1e-9 * max(zone.length, 1.0)
    return profile if extent.min >= -slack and extent.max <= zone.length + slack else None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Trajectory:
    """Joints (rows, n), one row per tick, at rest in the first and the last.

    `clearance_m` (rows,) up to where it no longer slows the arm; None if nothing was around.
    """

    q_rad: Array
    tick_s: float
    clearance_m: Array | None

    @property
    def duration_s(self) -> float:
        """Time from the first row to the last."""
        return (len(self.q_rad) - 1) * self.tick_s


def time_curve(
    curve: Curve,
    body: Body,
    limits: LimitProfile,
    tick_s: float,
    near: Obstacles | None,
    ends_rad: tuple[Array, Array],
) -> Trajectory:
    """Move along a curve as fast as limits allow; the first and last row are `ends_rad` exactly.

    Measured as differences between rows, from rest to rest, no row is over a limit.
    """
    cut = zones(curve, body, limits, near)
    profiles = _profiles(cut)
    begin = np.append(0.0, np.cumsum([p.duration for p in profiles]))
    place = np.append(0.0, np.cumsum([zone.length for zone in cut]))
    stretch = 1.0
    for _ in range(SLOWINGS):
        steps = max(1, math.ceil(stretch * begin[-1] / tick_s - 1e-9))
        t = begin[-1] * np.arange(steps + 1) / steps
        index = np.clip(np.searchsorted(begin, t, side="right") - 1, 0, len(profiles) - 1)
        s = [
            place[i] + profiles[i].at_time(float(x))[0][0]
            for i, x in zip(index, t - begin[index], strict=True)
        ]
        q = curve.at(np.clip(s, 0.0, curve.length))
        q[0], q[-1] = ends_rad
        clearance = _clearances(q, body, limits, near)
        over = overshoot(q, body, limits, tick_s, clearance)
        if over <= ROUNDING:
            return Trajectory(
                q_rad=frozen(q),
                tick_s=tick_s,
                clearance_m=None if clearance is None else frozen(clearance),
            )
        stretch = max(stretch * over, (steps + 1) * tick_s / begin[-1])  # at least one row more
    raise ArithmeticError(f"a motion is over its limits however slow it is, by {over:.3f}")


def overshoot(
    q_rad: Array, body: Body, limits: LimitProfile, tick_s: float, clearance_m: Array | None
) -> float:
    """How much slower a motion (rows, n) would have to be to keep all limits; at most 1 if it does.

    Differences between rows are compared, with rest before and after.
    """
    q = np.concatenate([q_rad[:1], q_rad[:1], q_rad[:1], q_rad, q_rad[-1:], q_rad[-1:]])
    top = joint_speed(limits, body.model.limits)
    dq, ddq, dddq = (np.abs(np.diff(q, k, axis=0)) / tick_s**k for k in (1, 2, 3))
    tool = np.linalg.norm(np.diff(tool_positions(body, q_rad), axis=0), axis=1) / tick_s
    share = np.ones(len(q_rad)) if clearance_m is None else _shares(limits, clearance_m)
    return max(
        float(np.max(dq / top)),
        math.sqrt(float(np.max(ddq)) / limits.joint_acceleration_rad_s2),
        math.cbrt(float(np.max(dddq)) / limits.joint_jerk_rad_s3),
        float(np.max(tool / (limits.tool_speed_m_s * share[1:]), initial=0.0)),
    )


def time_path(
    path_rad: Array,
    body: Body,
    limits: LimitProfile,
    tick_s: float,
    near: Obstacles | None = None,
    tolerance_m: float = 0.005,
) -> Trajectory:
    """Time a polyline (k, n): corners rounded by at most `tolerance_m`, as fast as limits allow.

    The arm slows near `near` (see `distance.surroundings`). A path of no length gives one row.
    Certify the rows, not only the path.
    """
    if len(distinct(path_rad)) == 1:
        return _standing(path_rad, body, limits, tick_s, near)
    reach_m = np.max(body.arrays.reach_m, axis=1, initial=0.0)
    curve = rounded(path_rad, reach_m, tolerance_m)
    ends = (path_rad[0], path_rad[-1])
    return time_curve(curve, body, limits, tick_s, near, ends)


def time_rows(
    rows_rad: Array,
    body: Body,
    limits: LimitProfile,
    tick_s: float,
    near: Obstacles | None = None,
) -> Trajectory:
    """Time rows (k, n) that are close together, such as a straight way of the tool."""
    if len(distinct(rows_rad)) == 1:
        return _standing(rows_rad, body, limits, tick_s, near)
    ends = (rows_rad[0], rows_rad[-1])
    return time_curve(smooth(rows_rad), body, limits, tick_s, near, ends)


def _clearances(
    q_rad: Array, body: Body, limits: LimitProfile, near: Obstacles | None
) -> Array | None:
    if near is None:
        return None
    return path_surroundings(body, near, q_rad, limits.slow_from_m)


def _standing(
    path_rad: Array,
    body: Body,
    limits: LimitProfile,
    tick_s: float,
    near: Obstacles | None,
) -> Trajectory:
    """One row, or two where start and goal differ by less than counts."""
    rows = path_rad[[0, -1]] if np.any(path_rad[0] != path_rad[-1]) else path_rad[:1]
    clearance = _clearances(rows, body, limits, near)
    return Trajectory(
        q_rad=frozen(rows),
        tick_s=tick_s,
        clearance_m=None if clearance is None else frozen(clearance),
    )
