"""What the cell tells the seat: its status many times a second, and a rehearsal to look at.

Unknown is None. NaN in a field that may be None (a device that lies) crosses the link as None. The
field types say what a receiver accepts, see `fields`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from brain.geometry import Array
from brain.robot import IntArray
from brain.types import Mode
from hardware.fields import (
    STRICT,
    AnswerField,
    Count,
    DigestHex,
    MaybeJoints,
    MaybePose,
    Name,
    Pose,
    Sentence,
    TimeNs,
)

Fact = str | int | float | bool | None
ARMS_MAX, OBJECTS_MAX = 8, 256


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkCounts:
    """What became of the messages of the seat that holds the cell, counted at the cell.

    `lost`: gaps in the poses' seq that nothing filled later. `reordered`: came behind a newer one,
    dropped. `expired`: poses and intents too old on arrival. `refused`: not readable or not valid.
    `foreign`: from another seat. `unsynced`: came before the clocks were compared. `latency_ms`:
    age of the newest pose on arrival; `clock_error_ms` bounds the error of the comparison.
    """

    received: Count = 0
    lost: Count = 0
    reordered: Count = 0
    duplicate: Count = 0
    expired: Count = 0
    refused: Count = 0
    foreign: Count = 0
    unsynced: Count = 0
    latency_ms: float | None = None
    clock_error_ms: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Echo:
    """The newest of the seat that holds the cell: its session, and what it was heard to say.

    `pose_t_ns` is the seat's own stamp: the seat's clock minus it is the round trip.
    """

    session: Count | None = None
    pose_seq: Count | None = None
    pose_t_ns: TimeNs | None = None
    intent_seq: Count | None = None
    stop_seq: Count | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ArmStatus:
    """One arm: measured joints (n,), tool pose and target (4, 4), and what is near or felt.

    `clearance_m` to `clearance_against`; `force_n` is the norm of the tared wrist force;
    `holding` is the gripper's own word.
    """

    name: Name
    q_rad: MaybeJoints
    dq_rad_s: MaybeJoints
    T_world_tool: MaybePose
    T_world_target: MaybePose
    clearance_m: float | None
    clearance_against: Sentence | None
    force_n: float | None
    opening_m: float | None
    holding: bool | None
    stopped: bool


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ObjectStatus:
    """Where the cell believes an object of the scene to be, `T_world_object` (4, 4)."""

    name: Name
    T_world_object: Pose


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Status:
    """The cell at `t_ns` of its own clock.

    `digest` names the rehearsal that may be looked at or committed, `verdict` is its sentence;
    `progress` is the share of a playback that is done, 0 to 1. `note` is what the operator should
    read besides the reason of the mode: why an act was refused, why the arm lags behind the hand.
    `lateness_ms` is the newest tick's start behind its due time; `late` and `skipped` count since
    the start. The link fills in `link` and `echo`.
    """

    __pydantic_config__ = STRICT  # holds for the types inside as well

    t_ns: TimeNs
    seq: Count
    scene_digest: DigestHex
    mode: Mode
    reason: Sentence
    arms: Annotated[tuple[ArmStatus, ...], Field(max_length=ARMS_MAX)]
    answers: Annotated[tuple[AnswerField, ...], Field(max_length=ARMS_MAX)]
    objects: Annotated[tuple[ObjectStatus, ...], Field(max_length=OBJECTS_MAX)]
    ticks: Count
    late: Count
    skipped: Count
    lateness_ms: float
    digest: DigestHex | None = None
    verdict: Sentence | None = None
    progress: Annotated[float, Field(ge=0, le=1)] | None = None
    note: Sentence = ""
    link: LinkCounts = LinkCounts()
    echo: Echo = Echo()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PreviewArm:
    """One arm along a rehearsal of n rows: joints (n, dof), the rest (n,) or None where unknown."""

    name: str
    q_rad: Array
    opening_m: Array | None
    clearance_m: Array | None
    force_n: Array | None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Preview:
    """A rehearsal as shown: rows at `t_ns` (n,) from its start, perhaps fewer than it has ticks.

    `verdict` holds the verdict's facts by name (sentence, smallest clearance and where ...).
    """

    digest: str
    t_ns: IntArray
    arms: tuple[PreviewArm, ...]
    verdict: Mapping[str, Fact]


@dataclass(frozen=True, slots=True, kw_only=True)
class SceneText:
    """The resolved scene, from which a seat builds its own model; `digest` must come out equal."""

    __pydantic_config__ = STRICT

    digest: DigestHex
    text: str
