"""A hand that leads the tool through singular poses, and what the arm makes of it.

The whole cycle of a cell with one ideal arm: teleoperation, gate, an arm that does what it is told.
A sweep goes evenly along a line or about an axis through a singular pose, waits, goes back, waits.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from benchmarks.ik import eaik_solver, error_of
from brain.cell import CellArm, CellModel
from brain.geometry import Array, frozen, invert, rotation_angle, rotvec_to_matrix, transform
from brain.ik import nearest, solve
from brain.kinematics import tool_jacobian, tool_pose
from brain.limits import DEFAULT, joint_speed
from brain.motion import Motion, at_rest, brake, step_to
from brain.robot import ArmModel, arm_arrays
from brain.types import ArmCommand, ArmState, Mode, OperatorInput
from brain.world import make_world
from hardware.api import ArmSpec
from hardware.arm_model import load_arm
from hardware.receive import Heard
from hardware.spine import CellDevices, Spine

Kind = Literal["wrist", "elbow", "shoulder"]
KINDS: tuple[Kind, ...] = ("wrist", "elbow", "shoulder")
TICK_NS = 2_000_000
SAMPLE_TICKS = 5
REACH_M, REACH_RAD = 0.15, math.radians(40.0)
"""To either side of the singular pose."""
SPEEDS_M_S, TURN_RAD_S = (0.05, 0.1, 0.2), 0.5
PLACES = 41
WAIT_S = 2.0
REST_RAD_S = 0.01
HAND_M = np.array((0.5, 0.5, 0.5))
THERE_M, THERE_RAD = 0.005, math.radians(2.0)
BRANCH_RAD = 1.5
"""A sweep starts on a branch that is no farther than this from its singular pose."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Sweep:
    """A line (3,) or a rotation vector (3,) of length 1, how far to either side, how fast.

    `q_rad` (6,) is where the arm starts, `T_base_tool` (4, 4) the singular pose in the middle.
    """

    q_rad: Array
    T_base_tool: Array
    line: Array
    turn: Array
    reach: float
    speed: float

    def hand(self, along: float) -> Array:
        """Where the hand is, -1 at the start, 0 in the singular pose, 1 at the far end."""
        way = (along + 1.0) * self.reach
        return transform(HAND_M + way * self.line, rotvec_to_matrix(way * self.turn))

    def tool(self, along: float) -> Array:
        """Where the tool should be then."""
        T = self.T_base_tool.copy()
        T[:3, :3] = rotvec_to_matrix(along * self.reach * self.turn) @ T[:3, :3]
        T[:3, 3] += along * self.reach * self.line
        return T


@dataclass(slots=True)
class Outcome:
    """What came of the sweeps of one kind."""

    sweeps: int = 0
    stuck: int = 0
    held: Counter[str] = field(default_factory=Counter)
    beyond_reach: int = 0
    left_behind: int = 0
    restless: int = 0
    joint_share: float = 0.0
    tool_m_s: float = 0.0
    error_m_s: list[float] = field(default_factory=list)


class IdealArm:
    """Follows every command one tick later, and brakes by itself when told to stop."""

    def __init__(self, name: str, model: ArmModel, q_rad: Array) -> None:
        """Stand still at q (6,)."""
        self.motion: Motion = at_rest(q_rad)
        self.t_ns, self._seq, self._stopped = 0, 0, True
        self.spec = ArmSpec(
            name=name,
            robot=model.name,
            joint_names=model.chain.joint_names,
            period_ns=TICK_NS,
            watchdog_ns=25 * TICK_NS,
            simulated=True,
        )

    def start(self) -> None:
        """Release the brake."""
        self._stopped = False

    def stop(self) -> None:
        """Brake."""
        self._stopped = True

    def read(self) -> ArmState:
        """Return where the arm is."""
        self._seq += 1
        return ArmState(
            t_ns=self.t_ns,
            seq=self._seq,
            q_rad=self.motion.q_rad,
            dq_rad_s=self.motion.dq_rad_s,
            tau_nm=None,
            stopped=self._stopped,
        )

    def write(self, command: ArmCommand) -> None:
        """Go where the command says."""
        self._stopped |= command.stop
        if self._stopped:
            self.motion = brake(self.motion, DEFAULT.stop_deceleration_rad_s2, TICK_NS * 1e-9)
        elif command.q_rad is not None:
            self.motion = step_to(self.motion, command.q_rad, TICK_NS * 1e-9)


class Sweeps:
    """Draws sweeps for an arm and drives them."""

    def __init__(self) -> None:
        """Prepare for a UR5e with its hand, alone in the world; it does not mind touching itself.

        Raises:
            ValueError: EAIK, which says what is in reach, is not installed.
        """
        arm = load_arm("ur5e", ["hand_e"])
        pairs = np.zeros((0, 2), dtype=np.int64)
        arrays = arm_arrays(arm.chain, arm.T_flange_tool, arm.spheres, pairs)
        self.model = replace(arm, self_pairs=pairs, arrays=arrays)
        solver = eaik_solver(self.model)
        if solver is None:
            raise ValueError("the sweeps need EAIK, which says what is in reach")
        self._branches = solver[1]

    def draw(self, kind: Kind, rng: np.random.Generator) -> Sweep:
        """Draw a sweep through a singular pose of that kind."""
        while True:
            q = self._singular(kind, rng)
            if q is None:
                continue
            T, way = tool_pose(self.model, q), rng.normal(size=3)
            way /= np.linalg.norm(way)
            turns = rng.uniform() < 0.3
            sweep = Sweep(
                q_rad=q,
                T_base_tool=T,
                line=np.zeros(3) if turns else way,
                turn=way if turns else np.zeros(3),
                reach=REACH_RAD if turns else REACH_M,
                speed=TURN_RAD_S if turns else float(rng.choice(SPEEDS_M_S)),
            )
            start = nearest(solve(self.model, sweep.tool(-1.0), q), q)
            if start is not None and np.max(np.abs(start - q)) < BRANCH_RAD:
                return replace(sweep, q_rad=start)

    def drive(self, sweep: Sweep, outcome: Outcome) -> None:
        """Drive one sweep there and back; add what came of it."""
        bench = _Bench(self.model, sweep)
        dt_s, span_s = TICK_NS * 1e-9, 2.0 * sweep.reach / sweep.speed
        outcome.sweeps += 1
        far = self._reaches(sweep.tool(1.0))
        whole = far and all(self._reaches(sweep.tool(a)) for a in np.linspace(-1.0, 1.0, PLACES))
        for a, b in ((-1.0, 1.0), (1.0, -1.0)):
            for k in range(round(span_s / dt_s)):
                bench.tick(sweep.hand(a + (b - a) * k * dt_s / span_s))
                if whole:
                    wanted_m_s = sweep.line * sweep.speed * (b - a) / 2.0
                    outcome.error_m_s.append(bench.error_m_s(wanted_m_s))
                self._note(bench, outcome)
            for _ in range(round(WAIT_S / dt_s)):
                bench.tick(sweep.hand(b))
                self._note(bench, outcome)
            outcome.restless += bool(np.max(np.abs(bench.arm.motion.dq_rad_s)) > REST_RAD_S)
            if bench.mode is not Mode.TELEOP:
                outcome.held[bench.reason] += 1
                outcome.stuck += 1
                return
            there = _is_there(bench.tool, sweep.tool(b))
            if b > 0.0 and not there:
                outcome.left_behind += far
                outcome.beyond_reach += not far
            elif b < 0.0 and not there:
                outcome.stuck += 1

    def _note(self, bench: _Bench, outcome: Outcome) -> None:
        dq = np.abs(bench.arm.motion.dq_rad_s)
        share = float(np.max(dq / joint_speed(DEFAULT, self.model.limits)))
        outcome.joint_share = max(outcome.joint_share, share)
        outcome.tool_m_s = max(outcome.tool_m_s, float(np.linalg.norm(bench.tool_m_s)))

    def _singular(self, kind: Kind, rng: np.random.Generator) -> Array | None:
        """Joints (6,) where exactly one kind of singular pose is met."""
        q = np.array(rng.uniform(-math.pi, math.pi, 6))
        q[1] = rng.uniform(-2.6, -0.5)
        q[2] = 0.0 if kind == "elbow" else rng.choice((-1.0, 1.0)) * rng.uniform(0.5, 2.4)
        q[4] = 0.0 if kind == "wrist" else rng.choice((-1.0, 1.0)) * rng.uniform(0.5, 2.4)
        if kind != "shoulder":
            return q
        # The determinant is a product with one factor per kind: it changes sign with this one's.
        places = np.linspace(-2.8, -0.3, 26)
        values = [self._determinant(q, a) for a in places]
        for a, b, u, v in zip(places[:-1], places[1:], values[:-1], values[1:], strict=True):
            if u * v < 0.0:
                for _ in range(60):
                    middle = 0.5 * (a + b)
                    a, b = (middle, b) if self._determinant(q, middle) * u > 0.0 else (a, middle)
                q[1] = 0.5 * (a + b)
                return q
        return None

    def _determinant(self, q_rad: Array, shoulder_rad: float) -> float:
        q, J = q_rad.copy(), np.empty((6, 6))
        q[1] = shoulder_rad
        tool_jacobian(self.model.arrays, q, J, np.empty((7, 4, 4)), np.empty((4, 4)))
        return float(np.linalg.det(J))

    def _reaches(self, T_base_tool: Array) -> bool:
        T_flange = T_base_tool @ invert(self.model.T_flange_tool)
        return any(error_of(self.model, q, T_base_tool) < 1e-5 for q in self._branches(T_flange))


def _is_there(T: Array, T_wanted: Array) -> bool:
    off_m = float(np.linalg.norm(T[:3, 3] - T_wanted[:3, 3]))
    return off_m < THERE_M and float(rotation_angle(T, T_wanted)) < THERE_RAD


class _Bench:
    """A cell whose one arm is driven."""

    def __init__(self, model: ArmModel, sweep: Sweep) -> None:
        """Arm the cell and take the arm by the hand."""
        arm = CellArm(
            name="arm",
            model=model,
            T_world_base=frozen(np.eye(4)),
            home_q_rad=frozen(sweep.q_rad),
            period_ns=TICK_NS,
            has_wrench=False,
            T_base_seat=frozen(np.eye(4)),
        )
        cell = CellModel(
            name="sweeps",
            scene_digest="0" * 64,
            tick_ns=TICK_NS,
            arms=(arm,),
            workspace_m=frozen([[-3.0] * 3, [3.0] * 3]),
        )
        self.arm = IdealArm("arm", model, sweep.q_rad)
        devices = CellDevices(arms=(self.arm,), grippers=(None,), wrenches=(None,), tracker=None)
        self._model, self._t_ns = model, 0
        self._spine = Spine(cell, DEFAULT, make_world(()), devices, None, 0)
        self._spine.start(0)
        self.tool = self._before = tool_pose(model, sweep.q_rad)
        for engaged in (False, True, False, True):
            for _ in range(12):
                self.tick(sweep.hand(-1.0), engaged)
        if self.mode is not Mode.TELEOP:
            raise ValueError(f"the sweep does not begin: {self._spine.state.mode.reason}")

    @property
    def mode(self) -> Mode:
        """The cell's mode."""
        return self._spine.state.mode.mode

    @property
    def reason(self) -> str:
        """Why the cell is in its mode."""
        return self._spine.state.mode.reason

    @property
    def tool_m_s(self) -> Array:
        """Velocity (3,) of the tool in the last tick."""
        return np.asarray((self.tool[:3, 3] - self._before[:3, 3]) / (TICK_NS * 1e-9))

    def error_m_s(self, wanted_m_s: Array) -> float:
        """How far the tool's velocity is from the hand's."""
        return float(np.linalg.norm(self.tool_m_s - wanted_m_s))

    def tick(self, hand: Array, engaged: bool = True) -> None:
        """One tick; a sample of the hand every fifth."""
        self._t_ns += TICK_NS
        self.arm.t_ns = self._t_ns
        sample = None
        if self._t_ns // TICK_NS % SAMPLE_TICKS == 0:
            sample = OperatorInput(
                t_ns=self._t_ns,
                seq=self._t_ns // TICK_NS,
                expires_ns=self._t_ns + 100_000_000,
                source="script",
                tracked=True,
                T_seat_hand=frozen(hand),
                engaged=engaged,
                grip=None,
                arm="arm",
            )
        if self._spine.cycle(self._t_ns, Heard(operator=sample, intents=())) is None:
            raise ValueError(f"the cycle failed: {self._spine.fault!r}")
        self._before, self.tool = self.tool, tool_pose(self._model, self.arm.motion.q_rad)
