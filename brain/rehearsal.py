"""What is rehearsed, shown and committed.

An immutable stream of gate outputs with what physics predicted.

A commit names a rehearsal by its digest. `find` says why one may not be committed now;
everything that could make the arm do anything else than what was shown is looked at there.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal, Protocol

import numpy as np

from brain.cell import CellModel
from brain.digest import Digest
from brain.geometry import Array, rotation_angle
from brain.kinematics import tool_pose
from brain.record import Record
from brain.swept import Swept
from brain.types import NS_PER_S, Goal
from brain.world import Held, World

EXPIRES_AFTER_NS = 120 * NS_PER_S
JOINT_START_RAD = 0.01
TOOL_START_M = 0.005
TOOL_START_RAD = np.deg2rad(2.0)
OPENING_START_M = 0.004

VerdictKind = Literal["safe", "near", "contact", "unseen"]
NEAR_M = 0.02
"""Below this clearance a motion is called near."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What a rehearsal found.

    The narrowest place, how far along the tool's path, which link, against what.
    """

    kind: VerdictKind
    clearance_m: float
    along_m: float
    arm: str
    link: str
    against: str

    def sentence(self) -> str:
        """Say it to the operator."""
        place = f"{self.link} of {self.arm} and {self.against}, {100 * self.along_m:.0f} cm along"
        if self.kind == "safe":
            return f"safe: nowhere nearer than {1000 * self.clearance_m:.0f} mm ({place})"
        if self.kind == "near":
            return f"near: {1000 * self.clearance_m:.0f} mm between {place}"
        if self.kind == "unseen":
            return f"unseen space: {place}"
        return f"touches: {place}"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class GripEvent:
    """From this row on an arm holds an object, or has put it down; one pose says which."""

    row: int
    arm: str
    name: str
    T_tool_object: Array | None
    T_world_object: Array | None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Stream:
    """One row per tick for the whole cell.

    Joints of all arms side by side (rows, joints), grippers (rows, arms).
    """

    q_rad: Array
    opening_m: Array
    grip_force_n: Array
    events: tuple[GripEvent, ...]

    @property
    def rows(self) -> int:
        """Number of ticks."""
        return int(self.q_rad.shape[0])


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Prediction:
    """What the twin's devices reported while each row was sent.

    Joints, openings, tared force, distance to what is around.
    """

    q_rad: Array
    opening_m: Array
    force_n: Array
    clearance_m: Array


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Rehearsal:
    """A motion as the gate let it through on the twin, to be shown and committed once."""

    cell: str
    scene_digest: str
    goal: Goal
    limits: str
    tick_ns: int
    made_ns: int
    world_version: int
    held: tuple[Held, ...]
    tool_mass_kg: tuple[float, ...]
    stream: Stream
    prediction: Prediction
    verdict: Verdict
    digest: str

    @property
    def expires_ns(self) -> int:
        """When it is too old to be committed."""
        return self.made_ns + EXPIRES_AFTER_NS

    @property
    def duration_s(self) -> float:
        """How long it takes at full rate."""
        return (self.stream.rows - 1) * self.tick_ns * 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """Why there is no rehearsal, for the operator."""

    reason: str


class Request(Record):
    """What the worker is asked for: plan to a goal from here and rehearse it.

    Per arm: joints as commanded and as measured (n,), opening to start from.
    """

    number: int
    t_ns: int
    goal: Goal
    world: World
    q_rad: tuple[Array, ...]
    measured_rad: tuple[Array, ...]
    opening_m: tuple[float, ...]


class Finished(Record):
    """The worker's answer to the request of that number.

    `swept` is the space that a rehearsal sweeps, worked out where there is time for it.
    """

    number: int
    result: Rehearsal | Refused
    swept: Swept | None = None


class Rehearser(Protocol):
    """Physics for a rehearsal; `sim` implements it, for the simulated and the real cell alike."""

    def rehearse(self, stream: Stream, request: Request) -> Rehearsal | Refused:
        """Send a planned stream through tick, gate and physics and keep what came out."""
        ...


def digest_of(rehearsal: Rehearsal) -> str:
    """SHA-256 over everything in a rehearsal but the digest itself."""
    d = Digest()
    for name in ("cell", "scene_digest", "limits", "tick_ns", "made_ns", "world_version"):
        d.add(name, getattr(rehearsal, name))
    goal = rehearsal.goal
    for name in ("kind", "task", "arm", "T_base_tool", "q_rad"):
        d.add(f"goal.{name}", getattr(goal, name))
    for held in rehearsal.held:
        d.add("held.arm", held.arm)
        d.add("held.name", held.name)
        d.add("held.T_tool_object", held.T_tool_object)
    d.add("tool_mass_kg", np.array(rehearsal.tool_mass_kg))
    stream, predicted = rehearsal.stream, rehearsal.prediction
    for name in ("q_rad", "opening_m", "grip_force_n"):
        d.add(f"stream.{name}", getattr(stream, name))
    for event in stream.events:
        for name in ("row", "arm", "name", "T_tool_object", "T_world_object"):
            d.add(f"event.{name}", getattr(event, name))
    for name in ("q_rad", "opening_m", "force_n", "clearance_m"):
        d.add(f"prediction.{name}", getattr(predicted, name))
    verdict = rehearsal.verdict
    for name in ("kind", "clearance_m", "along_m", "arm", "link", "against"):
        d.add(f"verdict.{name}", getattr(verdict, name))
    return d.hexdigest()


def sealed(rehearsal: Rehearsal) -> Rehearsal:
    """Return the rehearsal with its digest filled in."""
    return replace(rehearsal, digest=digest_of(rehearsal))


class Stored(Record):
    """A rehearsal kept at the cell, the world it was made for, and whether it was used.

    `swept` as in `Finished`; where it is None a commit works it out itself.
    """

    rehearsal: Rehearsal
    world: World
    used: bool
    swept: Swept | None = None


def start_mismatch(
    cell: CellModel,
    rehearsal: Rehearsal,
    q_rad: tuple[Array, ...],
    opening_m: tuple[float | None, ...],
    held: tuple[Held, ...],
) -> str | None:
    """Say how the cell differs from the start of a rehearsal, None when it does not.

    `q_rad` are the measured joints of each arm. Joints are compared as they are: the same pose in
    another branch or a whole turn away is another start.
    """
    column = 0
    for i, arm in enumerate(cell.arms):
        n = arm.model.dof
        start = rehearsal.stream.q_rad[0, column : column + n]
        column += n
        off = np.abs(q_rad[i] - start)
        worst = int(np.argmax(off))
        if not off[worst] <= JOINT_START_RAD:
            return (
                f"joint {worst + 1} of {arm.name} is {off[worst]:.4f} rad from the start, "
                f"{JOINT_START_RAD} allowed"
            )
        now, then = tool_pose(arm.model, q_rad[i]), tool_pose(arm.model, start)
        off_m = float(np.linalg.norm(now[:3, 3] - then[:3, 3]))
        if not off_m <= TOOL_START_M:
            return (
                f"tool of {arm.name} is {1000 * off_m:.1f} mm from the start, "
                f"{1000 * TOOL_START_M:.0f} allowed"
            )
        off_rad = rotation_angle(now, then)
        if not off_rad <= TOOL_START_RAD:
            return (
                f"tool of {arm.name} is turned {np.rad2deg(off_rad):.1f} deg from the start, "
                f"{np.rad2deg(TOOL_START_RAD):.0f} allowed"
            )
        opening = opening_m[i]
        predicted = float(rehearsal.prediction.opening_m[0, i])
        if opening is not None and not abs(opening - predicted) <= OPENING_START_M:
            return (
                f"gripper of {arm.name} is {1000 * (opening - predicted):+.1f} mm from the start, "
                f"{1000 * OPENING_START_M:.0f} allowed"
            )
    now_held = {(h.arm, h.name): h.T_tool_object for h in held}
    then_held = {(h.arm, h.name): h.T_tool_object for h in rehearsal.held}
    if now_held.keys() != then_held.keys():
        return f"held now: {_names(now_held)}; at the start: {_names(then_held)}"
    for key, at in now_held.items():
        off_m = float(np.linalg.norm(at[:3, 3] - then_held[key][:3, 3]))
        off_rad = rotation_angle(at, then_held[key])
        if not (off_m <= TOOL_START_M and off_rad <= TOOL_START_RAD):
            return (
                f"{_names([key])} sits {1000 * off_m:.1f} mm and {np.rad2deg(off_rad):.1f} deg "
                "from where it was in the hand"
            )
    return None


def _names(held: Iterable[tuple[str, str]]) -> str:
    return ", ".join(f"{name} by {arm}" for arm, name in sorted(held)) or "nothing"


def _altered(rehearsal: Rehearsal) -> bool:
    try:
        return digest_of(rehearsal) != rehearsal.digest
    except ValueError:  # a number that became NaN or infinite has no digest
        return True


def find(store: tuple[Stored, ...], digest: str | None, t_ns: int) -> Stored | str:
    """Find the rehearsal that a commit names, or say why not: unknown, used, expired or altered."""
    for stored in store:
        if stored.rehearsal.digest == digest:
            if stored.used:
                return "this rehearsal was committed before; rehearse again"
            if not t_ns < stored.rehearsal.expires_ns:
                return (
                    f"this rehearsal is older than {EXPIRES_AFTER_NS // NS_PER_S} s; rehearse again"
                )
            if _altered(stored.rehearsal):
                return "the stored rehearsal was altered; it no longer matches its digest"
            return stored
    return f"no rehearsal with digest {str(digest)[:12]!r} is kept here"
