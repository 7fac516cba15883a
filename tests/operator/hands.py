"""Gestures of a scripted operator, for whole cells in lockstep (`tests.closed_loop.rig.play`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from brain.geometry import Array, rotvec_to_matrix, transform
from brain.types import Mode, OperatorInput
from hardware.scene import ResolvedScene, resolved_from
from hardware.scene_file import Object, Region, Scene, SceneArm, Variation
from hardware.seat_link import SeatLink
from sim.build import SimCell
from tests.closed_loop.rig import moved, resolved
from vr.scripted import ARM_S, REHEARSE_S, Script, ScriptedSeat, arm_up

CHEAP = "z1_bench"
"""The scene that takes the least time."""
STILL_S = 0.1


def press(seat: ScriptedSeat) -> Script:
    """Let the dead-man up and press it; true where that leads to driving."""
    seat.engaged = False
    yield from seat.wait(STILL_S)
    seat.engaged = True
    return (yield from seat.until(lambda s: s.mode is Mode.TELEOP, 0.5))


def drive(seat: ScriptedSeat) -> Script:
    """Arm, then take the arm by the hand."""
    if not (yield from arm_up(seat)):
        return False
    return (yield from press(seat))


def glide(seat: ScriptedSeat, by_m: Array, seconds: float, turn: Array | None = None) -> Script:
    """Move the hand evenly, and turn it about itself by a rotation vector; then hold it still."""
    start, turn = np.array(seat.T_seat_hand), np.zeros(3) if turn is None else turn
    steps = max(round(seconds / 0.01), 1)
    for k in range(1, steps + 1):
        share = k / steps
        rotation = rotvec_to_matrix(share * turn) @ start[:3, :3]
        seat.T_seat_hand = transform(start[:3, 3] + share * np.asarray(by_m), rotation)
        yield from seat.wait(0.01)
    return True


def preview(seat: ScriptedSeat, cell: SimCell, by_rad: float = -0.4) -> Script:
    """Arm, and have a motion of the first joint rehearsed."""
    if not (yield from arm_up(seat)):
        return False
    seat.act("rehearse", goal=moved(cell, by_rad))
    yield from seat.until(lambda s: s.mode is Mode.REHEARSING, ARM_S)
    yield from seat.until(lambda s: s.mode is not Mode.REHEARSING, REHEARSE_S)
    return seat.is_in(Mode.PREVIEW)


def commit(seat: ScriptedSeat, cell: SimCell, by_rad: float = -0.4) -> Script:
    """Have a motion of the first joint rehearsed, and commit it; true while it runs."""
    if not (yield from preview(seat, cell, by_rad)):
        return False
    seat.act("commit", digest=seat.digest)
    return (yield from seat.until(lambda s: s.mode is Mode.COMMIT, ARM_S))


class OddLink:
    """A seat's end of a line behind which the hand's samples are altered, dropped or doubled."""

    def __init__(self, link: SeatLink, alter: Callable[[OperatorInput], OperatorInput | None]):
        self._link = link
        self._alter = alter
        self._sent = 0

    def send(self, sample: OperatorInput) -> None:
        altered = self._alter(sample)
        if altered is not None:
            self._link.send(altered)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._link, name)


def started_at(
    scene: str, q_deg: tuple[float, ...], keep: tuple[str, ...], high_m: float | None = None
) -> ResolvedScene:
    """A scene whose first arm starts elsewhere, with nothing else in it than the objects named.

    `high_m`: top of the workspace, None to leave it.
    """
    known = resolved(scene, 3)
    space = known.scene.workspace
    x, y, z = space.max_m

    def arm(item: SceneArm) -> SceneArm:
        return item.model_copy(update={"home_deg": q_deg, "start_deg": q_deg})

    changed = known.scene.model_copy(
        update={
            "arms": (arm(known.scene.arms[0]), *known.scene.arms[1:]),
            "objects": tuple(o for o in known.scene.objects if o.name in keep),
            "workspace": Region(min_m=space.min_m, max_m=(x, y, z if high_m is None else high_m)),
            "tasks": {},
            "variation": Variation(),
        }
    )
    return resolved_from(Scene.model_validate(changed.model_dump()), known.seed)


def with_object(scene: str, item: Object) -> ResolvedScene:
    """A scene with one more object."""
    known = resolved(scene, 3)
    changed = known.scene.model_copy(update={"objects": (*known.scene.objects, item)})
    return resolved_from(Scene.model_validate(changed.model_dump()), known.seed)
