"""Sample messages for the tests of wire, link, log and trace."""

from __future__ import annotations

import numpy as np

from brain.geometry import transform
from brain.types import NS_PER_MS, Action, Answer, Goal, Intent, Mode, OperatorInput
from hardware.status import ArmStatus, ObjectStatus, Preview, PreviewArm, Status
from tests.values import field_names

DIGEST = "ab" * 32
POSE = transform((0.125, -0.25, 0.5), [[0.6, -0.8, 0.0], [0.8, 0.6, 0.0], [0.0, 0.0, 1.0]])


def hand(seq: int, t_ns: int, life_ns: int = 150 * NS_PER_MS, **changes: object) -> OperatorInput:
    fields = {
        "source": "script",
        "tracked": True,
        "T_seat_hand": POSE,
        "engaged": True,
        "grip": 0.25,
        "arm": "left",
    }
    return OperatorInput(seq=seq, t_ns=t_ns, expires_ns=t_ns + life_ns, **(fields | changes))


def commit(seq: int, t_ns: int) -> Intent:
    return Intent(t_ns=t_ns, seq=seq, kind="commit", source="script", digest=DIGEST, nonce="n1")


def rehearse(seq: int, t_ns: int) -> Intent:
    goal = Goal(kind="pose", arm="left", T_base_tool=POSE)
    return Intent(t_ns=t_ns, seq=seq, kind="rehearse", source="window", goal=goal)


def status(seq: int, t_ns: int, **changes: object) -> Status:
    arm = ArmStatus(
        name="left",
        q_rad=np.array([0.1, -1.5, 2.0, 0.0, 1.0, -0.1]),
        dq_rad_s=np.zeros(6),
        T_world_tool=POSE,
        T_world_target=None,
        clearance_m=0.123,
        clearance_against="shelf",
        force_n=None,
        opening_m=0.05,
        holding=None,
        stopped=False,
    )
    fields = {
        "scene_digest": DIGEST,
        "mode": Mode.TELEOP,
        "reason": "engaged",
        "arms": (arm,),
        "answers": (Answer(action=Action.LIMIT, rule="speed", value=0.3, limit=0.25, arm="left"),),
        "objects": (ObjectStatus(name="part", T_world_object=POSE),),
        "ticks": 100,
        "late": 1,
        "skipped": 0,
        "lateness_ms": 0.02,
        "digest": DIGEST,
        "verdict": "safe",
        "progress": 0.5,
    }
    return Status(seq=seq, t_ns=t_ns, **(fields | changes))


def preview(n: int = 2, digest: str = DIGEST) -> Preview:
    arm = PreviewArm(
        name="left",
        q_rad=np.arange(3.0 * n).reshape(n, 3) / 8,
        opening_m=np.arange(n) / 64,
        clearance_m=np.arange(n) / 32,
        force_n=None,
    )
    return Preview(
        digest=digest,
        t_ns=np.arange(n) * 20 * NS_PER_MS,
        arms=(arm,),
        verdict={"kind": "safe", "clearance_m": 0.03, "along_m": None},
    )


def same(a: object, b: object) -> bool:
    """Compare dataclasses that hold arrays, bit for bit."""
    if (names := field_names(a)) is not None:
        return type(a) is type(b) and all(same(getattr(a, n), getattr(b, n)) for n in names)
    if isinstance(a, np.ndarray):
        return isinstance(b, np.ndarray) and a.shape == b.shape and a.tobytes() == b.tobytes()
    if isinstance(a, tuple) and isinstance(b, tuple):
        return len(a) == len(b) and all(same(x, y) for x, y in zip(a, b, strict=True))
    return type(a) is type(b) and a == b
