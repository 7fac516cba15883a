"""Rehearsing on the twin.

The very cycle that drives the cell, over the twin's devices, with no worker and no seat.

A stream goes through tick and gate row by row, physics answers, and what the gate let through is
kept together with what the devices reported. What the gate would refuse, or physics touches, is
found here and not on the arm.
"""

from __future__ import annotations

import numpy as np

from brain import playback
from brain.cell import CellModel
from brain.geometry import frozen
from brain.kinematics import tool_pose
from brain.limits import LimitProfile
from brain.mode import ModeState
from brain.motion import at_rest
from brain.record import replace
from brain.rehearsal import (
    NEAR_M,
    Prediction,
    Refused,
    Rehearsal,
    Request,
    Stream,
    Verdict,
    VerdictKind,
    sealed,
)
from brain.types import Action, Mode, OperatorInput
from hardware.receive import Heard
from hardware.spine import Spine, TickRecord
from sim.clearance import FAR, ClearanceMeter, Nearest
from sim.twin import Twin

LOOK_TICKS = 10
"""True clearance is measured every so many ticks, 50 times a second at a tick of 2 ms."""


class TwinRehearser:
    """Rehearses streams on a twin."""

    def __init__(
        self,
        cell: CellModel,
        limits: LimitProfile,
        twin: Twin,
        contacts: frozenset[tuple[str, str]],
    ) -> None:
        """`contacts` are the (group, object) pairs that the task declares."""
        self._cell = cell
        self._limits = limits
        self._twin = twin
        self._meter = ClearanceMeter(twin.world.scene, contacts)

    def rehearse(self, stream: Stream, request: Request) -> Rehearsal | Refused:
        """Send a stream through tick, gate and physics; the twin is as before afterwards."""
        twin = self._twin
        twin.catch_up()
        before = twin.world.snapshot()
        try:
            twin.correct(request.world, request.measured_rad)
            return self._run(stream, request)
        finally:
            twin.world.restore(before)

    def _run(self, stream: Stream, request: Request) -> Rehearsal | Refused:
        spine, tick_ns = self._ready(stream, request), self._cell.tick_ns
        world = self._twin.world
        t_ns = world.t_ns
        rows = _Rows(self._cell, stream.rows)
        nearest, at_row = FAR, 0
        for row in range(stream.rows):
            record = spine.cycle(t_ns, Heard(operator=self._engaged(t_ns, row)))
            if record is None:
                return Refused(reason=f"the rehearsal failed: {spine.fault}")
            for passed in record.passed:
                if passed.answer.action is not Action.ALLOW:
                    return Refused(reason=self._refusal(record, row))
            rows.keep(row, record)
            if row % LOOK_TICKS == 0:
                held = {h.arm: h.name for h in record.state.world.held}
                found = self._meter.measure(world.data, held, nearest.distance_m)
                if found is not None:
                    nearest, at_row = found, row
            t_ns += tick_ns
            world.step_to(t_ns)
        verdict = self._verdict(stream, nearest, at_row)
        return sealed(self._rehearsal(stream, request, rows, verdict))

    def _ready(self, stream: Stream, request: Request) -> Spine:
        """Make a spine over the twin's devices that is about to play the stream."""
        spine = Spine(
            self._cell,
            self._limits,
            request.world,
            self._twin.devices,
            worker=None,
            t_ns=self._twin.world.t_ns,
        )
        held_q = np.concatenate(request.q_rad)
        spine.state = replace(
            spine.state,
            mode=ModeState(
                mode=Mode.COMMIT,
                reason="rehearsing",
                since_ns=self._twin.world.t_ns,
                released=False,
            ),
            playback=playback.begin("", stream, None, None, held_q),
            opening_m=request.opening_m,
            bias_n=tuple(np.zeros(3) for _ in request.q_rad),  # the twin's sensors have none
        )
        spine.memories = tuple(at_rest(q) for q in request.q_rad)
        return spine

    def _engaged(self, t_ns: int, row: int) -> OperatorInput:
        return OperatorInput(
            t_ns=t_ns,
            seq=row,
            expires_ns=t_ns + self._cell.tick_ns,
            source="script",
            tracked=False,
            T_seat_hand=None,
            engaged=True,
            grip=None,
            arm=self._cell.arms[0].name,
        )

    def _refusal(self, record: TickRecord, row: int) -> str:
        worst = next(p.answer for p in record.passed if p.answer.action is not Action.ALLOW)
        return f"{worst.sentence()}, {row * self._cell.tick_ns * 1e-9:.1f} s into the motion"

    def _verdict(self, stream: Stream, nearest: Nearest, row: int) -> Verdict:
        kind: VerdictKind = "safe"
        if nearest.distance_m <= 0.0:
            kind = "contact"
        elif nearest.distance_m < NEAR_M:
            kind = "near"
        arm = nearest.arm or self._cell.arms[0].name
        return Verdict(
            kind=kind,
            clearance_m=nearest.distance_m,
            along_m=self._travel(stream, arm, row),
            arm=arm,
            link=nearest.link or "everything",
            against=nearest.against or "anything",
        )

    def _travel(self, stream: Stream, name: str, row: int) -> float:
        """How far in m an arm's tool has gone up to a row."""
        column = 0
        for arm in self._cell.arms:
            if arm.name == name:
                break
            column += arm.model.dof
        model = self._cell.arms[self._cell.arm_index(name)].model
        rows = stream.q_rad[: row + 1 : LOOK_TICKS, column : column + model.dof]
        places = np.array([tool_pose(model, q)[:3, 3] for q in rows])
        return float(np.sum(np.linalg.norm(np.diff(places, axis=0), axis=1)))

    def _rehearsal(
        self, stream: Stream, request: Request, rows: _Rows, verdict: Verdict
    ) -> Rehearsal:
        """Keep what came out of the gate, and what the devices reported meanwhile."""
        return Rehearsal(
            cell=self._cell.name,
            scene_digest=self._cell.scene_digest,
            goal=request.goal,
            limits=self._limits.name,
            tick_ns=self._cell.tick_ns,
            made_ns=request.t_ns,
            world_version=request.world.version,
            held=request.world.held,
            tool_mass_kg=tuple(arm.model.tool_mass_kg for arm in self._cell.arms),
            stream=Stream(
                q_rad=frozen(rows.sent_rad),
                opening_m=stream.opening_m,
                grip_force_n=stream.grip_force_n,
                events=stream.events,
            ),
            prediction=Prediction(
                q_rad=frozen(rows.q_rad),
                opening_m=frozen(rows.opening_m),
                force_n=frozen(rows.force_n),
                clearance_m=frozen(rows.clearance_m),
            ),
            verdict=verdict,
            digest="",
        )


class _Rows:
    """What came out of the gate and what was reported, row by row.

    Whole records are not kept: with thousands of them Python's cycle collector takes a fifth of a
    rehearsal's time.
    """

    def __init__(self, cell: CellModel, rows: int) -> None:
        joints, arms = sum(arm.model.dof for arm in cell.arms), len(cell.arms)
        self.sent_rad = np.empty((rows, joints))
        self.q_rad = np.empty((rows, joints))
        self.opening_m = np.empty((rows, arms))
        self.force_n = np.empty((rows, arms))
        self.clearance_m = np.empty((rows, arms))

    def keep(self, row: int, record: TickRecord) -> None:
        seen = record.seen
        sent = [c.q_rad for c in record.commands.arms if c.q_rad is not None]
        np.concatenate(sent, out=self.sent_rad[row])
        np.concatenate([s.q_rad for s in seen.states if s is not None], out=self.q_rad[row])
        self.opening_m[row] = [0.0 if g is None else g.opening_m for g in seen.grippers]
        self.force_n[row] = [f or 0.0 for f in record.wanted.force_n]
        self.clearance_m[row] = [p.around_m or 0.0 for p in record.passed]
