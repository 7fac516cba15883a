"""Limit profiles as data, and the steps that keep motion inside them.

A profile is what the gate enforces. Whoever plans or steers uses `profile.planning()`, 90 % of it,
so that rounding and corrections never meet the gate's edge. Speeds in rad/s and m/s, and so on up
to jerk in rad/s^3.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from brain.errors import ConfigError
from brain.geometry import Array, largest
from brain.jit import kernel
from brain.motion import Motion, step_to
from brain.robot import JointLimits

PLANNING_SHARE = 0.9
GAIN_1_S = 10.0
SPEED_GAIN_1_S = 40.0
"""Gains of `follow`: 0.1 s to a resting goal; apart by four, so that it does not overshoot."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitProfile:
    """Everything that bounds motion, one figure each.

    Joints are bounded by the maker's speeds as well.

    `slow_from_m` and `slow_to`: above that clearance the tool may move at full speed, and at
    `clearance_stop_m` at `slow_to` of it, linearly between. `soft_margin_rad`: how far planning
    stays inside the maker's joint range.
    """

    name: str
    tool_speed_m_s: float
    joint_speed_rad_s: float
    joint_acceleration_rad_s2: float
    joint_jerk_rad_s3: float
    stop_deceleration_rad_s2: float
    soft_margin_rad: float
    tracking_rad: float
    force_n: float
    clearance_stop_m: float
    slow_from_m: float
    slow_to: float
    state_age_ns: int
    hand_age_ns: int
    seat_silent_ns: int

    def planning(self) -> LimitProfile:
        """Return the profile for whoever plans.

        90 % of the speeds, and a little further from everything.
        """
        return replace(
            self,
            name=f"{self.name} (planning)",
            tool_speed_m_s=PLANNING_SHARE * self.tool_speed_m_s,
            joint_speed_rad_s=PLANNING_SHARE * self.joint_speed_rad_s,
            joint_acceleration_rad_s2=PLANNING_SHARE * self.joint_acceleration_rad_s2,
            joint_jerk_rad_s3=PLANNING_SHARE * self.joint_jerk_rad_s3,
            slow_to=PLANNING_SHARE * self.slow_to,
            clearance_stop_m=self.clearance_stop_m / PLANNING_SHARE,
        )

    def speed_share(self, clearance_m: float) -> float:
        """Share of the tool speed that is allowed at a clearance; `slow_to` for NaN."""
        span_m = self.slow_from_m - self.clearance_stop_m
        near = (clearance_m - self.clearance_stop_m) / span_m
        if not near > 0.0:
            return self.slow_to
        return self.slow_to + (1.0 - self.slow_to) * min(near, 1.0)


# Ours, from docs/safety.md: 0.25 m/s is the reduced ("teach") speed of ISO 10218-1; 30 N stays well
# below the smallest quasi-static limit of ISO/TS 15066 table A.2 (face, 65 N).
DEFAULT = LimitProfile(
    name="default",
    tool_speed_m_s=0.25,
    joint_speed_rad_s=1.0,
    joint_acceleration_rad_s2=5.0,
    joint_jerk_rad_s3=100.0,
    stop_deceleration_rad_s2=10.0,
    soft_margin_rad=0.05,
    tracking_rad=0.05,
    force_n=30.0,
    clearance_stop_m=0.004,
    slow_from_m=0.10,
    slow_to=0.2,
    state_age_ns=40_000_000,
    hand_age_ns=100_000_000,
    seat_silent_ns=200_000_000,
)
FAST = replace(DEFAULT, name="fast", tool_speed_m_s=0.75, joint_speed_rad_s=2.0)
REAL_FIRST = replace(
    DEFAULT,
    name="real_first",
    tool_speed_m_s=0.10,
    joint_speed_rad_s=0.4,
    joint_acceleration_rad_s2=2.0,
    joint_jerk_rad_s3=40.0,
    force_n=20.0,
)
PROFILES = {p.name: p for p in (DEFAULT, FAST, REAL_FIRST)}


def profile(name: str) -> LimitProfile:
    """Return a profile by name.

    Raises:
        ConfigError: there is no such profile.
    """
    try:
        return PROFILES[name]
    except KeyError:
        known = ", ".join(PROFILES)
        raise ConfigError(f"limits: no profile {name!r}; allowed: {known}") from None


def joint_speed(limits: LimitProfile, joints: JointLimits) -> Array:
    """Speed limit of each joint (n,): the profile's, or the maker's where that is lower."""
    return np.minimum(limits.joint_speed_rad_s, joints.dq_max_rad_s)


def soft_range(limits: LimitProfile, joints: JointLimits) -> tuple[Array, Array]:
    """Joint range (n,), (n,) for planning: the maker's, drawn in by the soft margin."""
    return joints.q_min_rad + limits.soft_margin_rad, joints.q_max_rad - limits.soft_margin_rad


def follow(
    now: Motion,
    q_goal_rad: Array,
    dq_goal_rad_s: Array,
    limits: LimitProfile,
    speed_rad_s: Array,
    share: Callable[[Array], float],
    dt_s: float,
) -> Motion:
    """Return the motion one tick later on the way to a goal that itself moves with `dq_goal` (n,).

    A cascade from joint error to speed to acceleration, each scaled down as a whole vector, so that
    all joints stay on one way. Speed stays within `speed_rad_s` (n,) but for a slight overshoot,
    acceleration and jerk exactly. `share` says how much of a wanted joint speed the tool allows.
    """
    most_rad_s2 = limits.joint_acceleration_rad_s2
    dq = _wanted(now.q_rad, q_goal_rad, dq_goal_rad_s, speed_rad_s, most_rad_s2)
    change = limits.joint_jerk_rad_s3 * dt_s
    q_rad = _led(now.q_rad, now.dq_rad_s, now.ddq_rad_s2, share(dq) * dq, most_rad_s2, change, dt_s)
    return step_to(now, q_rad, dt_s)


@kernel
def _wanted(
    q_rad: Array, q_goal_rad: Array, dq_goal_rad_s: Array, speed_rad_s: Array, most_rad_s2: float
) -> Array:
    """Speed (n,) toward the goal, of which no joint is faster than it may be."""
    off = q_goal_rad - q_rad
    farthest, gain = largest(off), GAIN_1_S
    if farthest > 0.0:  # what can still be braked with half of the acceleration
        gain = min(gain, math.sqrt(most_rad_s2 / farthest))
    dq = dq_goal_rad_s + gain * off
    return dq / max(1.0, largest(dq / speed_rad_s))


@kernel
def _led(
    q_rad: Array,
    dq_rad_s: Array,
    ddq_rad_s2: Array,
    dq_wanted_rad_s: Array,
    most_rad_s2: float,
    change_rad_s2: float,
    dt_s: float,
) -> Array:
    """Joints (n,) one tick later, with acceleration and its change within their bounds."""
    ddq = _at_most(SPEED_GAIN_1_S * (dq_wanted_rad_s - dq_rad_s), most_rad_s2)
    change = _at_most(ddq - ddq_rad_s2, change_rad_s2)
    return q_rad + (dq_rad_s + (ddq_rad_s2 + change) * dt_s) * dt_s


@kernel
def _at_most(vector: Array, most: float) -> Array:
    found = largest(vector)
    return vector if found <= most else vector * (most / found)
