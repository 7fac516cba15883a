"""The brain's state as one copyable value, and what goes into and comes out of one tick."""

from __future__ import annotations

from collections.abc import Mapping

from brain import mode
from brain.geometry import Array
from brain.mode import ModeState
from brain.motion import Motion
from brain.record import Record
from brain.rehearsal import Finished, Prediction, Request, Stored, Stream
from brain.retarget import Clutch, Hand
from brain.swept import Swept
from brain.types import (
    Answer,
    ArmState,
    GripperState,
    Intent,
    ObjectPose,
    OperatorInput,
    Wrench,
)
from brain.world import World


class Teleop(Record):
    """Driving one arm.

    The clutch, the filtered hand, where the tool is led to, and the joints for that.
    """

    arm: int
    clutch: Clutch
    hand: Hand
    seq: int
    T_base_reference: Array
    reference_m_s: Array
    reference_rad_s: Array
    q_goal_rad: Array


class Departure(Record, eq=True):
    """The largest differences so far between prediction and measurement in a commit."""

    joint_rad: float = 0.0
    force_n: float = 0.0
    opening_m: float = 0.0


class Playback(Record):
    """A stream being played: `phase` in rows, `rate` 1 or falling to 0, `offset_rad` fading out.

    `prediction` and `swept` are None while the twin rehearses: there is nothing yet to compare
    with.
    """

    digest: str
    stream: Stream
    prediction: Prediction | None
    swept: Swept | None
    phase: float
    rate: float
    offset_rad: Array
    force_off_ticks: int
    opening_off_ticks: int
    departure: Departure


class BrainState(Record):
    """Everything the brain remembers from tick to tick; tuples hold one entry per arm.

    `note` is what the operator should read besides the mode's reason. `pending` is the request that
    is being rehearsed. `nonces` are the ones that commits have used. `sighted_ns` says when each
    tracked object was last seen.
    """

    mode: ModeState
    world: World
    teleop: Teleop | None
    playback: Playback | None
    departure: Departure
    store: tuple[Stored, ...]
    nonces: frozenset[str]
    opening_m: tuple[float | None, ...]
    grip_force_n: tuple[float, ...]
    bias_n: tuple[Array | None, ...]
    requests: int
    pending: Request | None
    operator: OperatorInput | None
    note: str
    sighted_ns: Mapping[str, int]


def initial(world: World, arms: int, t_ns: int) -> BrainState:
    """Return the state at start: disarmed, knowing the world and nothing else."""
    return BrainState(
        mode=mode.initial(t_ns),
        world=world,
        teleop=None,
        playback=None,
        departure=Departure(),
        store=(),
        nonces=frozenset(),
        opening_m=(None,) * arms,
        grip_force_n=(0.0,) * arms,
        bias_n=(None,) * arms,
        requests=0,
        pending=None,
        operator=None,
        note="",
        sighted_ns={},
    )


class TickInputs(Record):
    """What one tick sees; tuples hold one entry per arm.

    `memories`, `answers` and `clearance_m` are the gate's of the tick before.
    """

    t_ns: int
    states: tuple[ArmState | None, ...]
    grippers: tuple[GripperState | None, ...]
    wrenches: tuple[Wrench | None, ...]
    objects: tuple[ObjectPose, ...]
    operator: OperatorInput | None
    intents: tuple[Intent, ...]
    stop: bool
    finished: Finished | None
    memories: tuple[Motion | None, ...]
    answers: tuple[Answer, ...]
    clearance_m: tuple[float | None, ...]


class TickOutputs(Record):
    """What one tick wants; tuples hold one entry per arm.

    `opening_m` None: leave the gripper alone. `force_n` is the norm of the tared wrist force, None
    without a sensor. `request` is for the worker. `refused` says why an intent of this tick was
    refused.
    """

    wishes: tuple[Array | None, ...]
    opening_m: tuple[float | None, ...]
    grip_force_n: tuple[float, ...]
    force_n: tuple[float | None, ...]
    request: Request | None
    refused: str | None
