"""What deliberate acts lead to, one call of `heed` at a time; commits are in test_commit."""

import numpy as np
import pytest

from brain.geometry import frozen
from brain.intents import KEPT, PATIENCE_NS, heed
from brain.limits import DEFAULT
from brain.mode import ModeState
from brain.motion import at_rest, step_to
from brain.rehearsal import EXPIRES_AFTER_NS, Finished, Refused, Request
from brain.state import BrainState, TickInputs, initial
from brain.types import NS_PER_S, ArmState, Goal, GripperState, Intent, Mode, OperatorInput
from brain.world import make_world
from tests.brain.cells import GRIPPER, HOME, cell, sphered
from tests.brain.streams import SPUN, rehearsal, stream, timed
from tests.values import replace

T = 1000 * NS_PER_S
ONE = cell(model=sphered())
MADE = rehearsal(ONE, stream(timed(ONE.arms[0].model, HOME, SPUN)), made_ns=T)
HOME_GOAL = Goal(kind="home", arm="ur0")


def at(mode: Mode, **over) -> BrainState:
    state = initial(make_world(()), 1, T)
    mode_state = ModeState(mode=mode, reason="test", since_ns=T, released=False)
    return replace(state, mode=mode_state, **over)


def seen(*intents: Intent, **over) -> TickInputs:
    arm = ArmState(
        t_ns=T, seq=0, q_rad=frozen(HOME), dq_rad_s=np.zeros(6), tau_nm=None, stopped=False
    )
    made = TickInputs(
        t_ns=T,
        states=(arm,),
        grippers=(None,),
        wrenches=(None,),
        objects=(),
        operator=None,
        intents=intents,
        stop=False,
        finished=None,
        memories=(at_rest(HOME),),
        answers=(),
        clearance_m=(None,),
    )
    return replace(made, **over)


def say(kind: str, **over) -> Intent:
    made = Intent(t_ns=T, seq=0, kind=kind, source="script")
    return replace(made, **over)


def rehearse(goal: Goal | None = HOME_GOAL) -> Intent:
    return say("rehearse", goal=goal)


def ask(state: BrainState, inputs: TickInputs, place=ONE, script_may_commit: bool = True):
    return heed(place, DEFAULT, script_may_commit, state, inputs)


# ------------------------------------------------------------------------------ rehearsing


def test_a_rehearsal_is_asked_for_from_where_the_arm_is_held():
    state, refused, request = ask(at(Mode.HOLD, requests=4), seen(rehearse()))
    assert refused is None
    assert state.mode.mode is Mode.REHEARSING
    assert state.mode.reason == "planning and rehearsing"
    assert request is not None
    assert state.pending is request
    assert (request.number, request.t_ns, request.goal) == (5, T, HOME_GOAL)
    assert request.world is state.world
    assert np.array_equal(request.q_rad[0], HOME)
    assert np.array_equal(request.measured_rad[0], HOME)
    assert request.opening_m == (0.0,)


@pytest.mark.parametrize(
    ("commanded_m", "measured_m", "starts_m"), [(0.03, 0.01, 0.03), (None, 0.01, 0.01)]
)
def test_fingers_start_as_commanded_or_as_they_are_before_the_first_command(
    commanded_m, measured_m, starts_m
):
    place = cell(model=sphered(gripper=True))
    fingers = GripperState(t_ns=T, seq=0, opening_m=measured_m, holding=None, force_n=None)
    state = at(Mode.HOLD, opening_m=(commanded_m,))
    _, _, request = ask(state, seen(rehearse(), grippers=(fingers,)), place)
    assert request.opening_m == (starts_m,)
    assert GRIPPER.opening_max_m > starts_m


@pytest.mark.parametrize("measured_m", [None, np.nan, np.inf])
def test_nothing_is_rehearsed_while_nobody_knows_how_far_the_fingers_are_open(measured_m):
    place = cell(model=sphered(gripper=True))
    fingers = None
    if measured_m is not None:
        fingers = GripperState(t_ns=T, seq=0, opening_m=measured_m, holding=None, force_n=None)
    _, refused, request = ask(at(Mode.HOLD), seen(rehearse(), grippers=(fingers,)), place)
    assert refused == "ur0: its gripper does not say how far it is open"
    assert request is None
    told = at(Mode.HOLD, opening_m=(0.02,))
    assert ask(told, seen(rehearse(), grippers=(fingers,)), place)[2].opening_m == (0.02,)


@pytest.mark.parametrize(
    ("goal", "reason"),
    [
        (None, "no goal was given"),
        (Goal(kind="task"), "goal: no task was named"),
        (Goal(kind="home", arm="nobody"), "goal: no arm 'nobody' here"),
        (Goal(kind="home"), "goal: no arm None here"),
        (Goal(kind="pose", arm="ur0"), "goal: the pose is missing"),
        (Goal(kind="pose", arm="ur0", T_base_tool=np.eye(3)), "of another shape than (4, 4)"),
        (Goal(kind="pose", arm="ur0", T_base_tool=np.full((4, 4), np.nan)), "not finite"),
        (Goal(kind="joints", arm="ur0"), "goal: the joints is missing"),
        (Goal(kind="joints", arm="ur0", q_rad=np.zeros(7)), "of another shape than (6,)"),
        (Goal(kind="joints", arm="ur0", q_rad=np.full(6, np.inf)), "not finite"),
    ],
)
def test_a_goal_that_is_none_is_refused_with_its_field(goal, reason):
    state, refused, request = ask(at(Mode.HOLD), seen(rehearse(goal)))
    assert request is None
    assert reason in refused
    assert state.mode.mode is Mode.HOLD
    assert state.note == f"rehearse refused: {refused}"


@pytest.mark.parametrize(
    "goal",
    [
        Goal(kind="task", task="pick"),
        Goal(kind="pose", arm="ur0", T_base_tool=np.eye(4)),
        Goal(kind="joints", arm="ur0", q_rad=np.zeros(6)),
    ],
)
def test_every_kind_of_goal_is_passed_on(goal):
    _, refused, request = ask(at(Mode.HOLD), seen(rehearse(goal)))
    assert refused is None
    assert request.goal is goal


def test_while_an_arm_moves_nothing_is_rehearsed():
    moving = step_to(at_rest(HOME), HOME + 1e-6, 0.002)
    state, refused, _ = ask(at(Mode.HOLD), seen(rehearse(), memories=(moving,)))
    assert (state.mode.mode, refused) == (Mode.HOLD, "an arm has not come to rest")


@pytest.mark.parametrize("silent", [{"states": (None,)}, {"memories": (None,)}])
def test_while_an_arm_is_silent_nothing_is_rehearsed(silent):
    state, refused, _ = ask(at(Mode.HOLD), seen(rehearse(), **silent))
    assert (state.mode.mode, refused) == (Mode.HOLD, "an arm is silent")


@pytest.mark.parametrize(
    ("kind", "modes"),
    [
        ("rehearse", {Mode.HOLD, Mode.PREVIEW}),
        ("cancel", {Mode.REHEARSING, Mode.PREVIEW, Mode.COMMIT}),
        ("acknowledge", {Mode.STOPPED, Mode.FAULT}),
        ("disarm", {Mode.HOLD, Mode.TELEOP, Mode.REHEARSING, Mode.PREVIEW, Mode.COMMIT}),
    ],
)
@pytest.mark.parametrize("mode", list(Mode))
def test_an_act_is_possible_in_its_modes_and_refused_in_all_others(kind, modes, mode):
    stored = at(mode).store
    state = at(mode, store=(*stored, kept(MADE)))
    after, refused, _ = ask(state, seen(say(kind, goal=HOME_GOAL)))
    if mode in modes:
        assert refused is None
        assert after.mode.mode is not mode
    else:
        assert refused == f"not possible in mode {mode}"
        assert after.mode == state.mode


def test_arming_is_left_to_the_dead_man():
    state, refused, _ = ask(at(Mode.DISARMED), seen(say("arm")))
    assert state.mode.mode is Mode.DISARMED
    assert refused == "arming is done with the dead-man: let go, then press"


# --------------------------------------------------------------------------- the worker's answer


def request(number: int = 3) -> Request:
    return Request(
        number=number,
        t_ns=T,
        goal=HOME_GOAL,
        world=make_world(()),
        q_rad=(HOME,),
        measured_rad=(HOME,),
        opening_m=(0.0,),
    )


def kept(made, used: bool = False):
    pending = replace(at(Mode.REHEARSING), pending=request())
    state, _, _ = ask(pending, seen(finished=Finished(number=3, result=made)))
    return replace(state.store[-1], used=used)


def test_a_rehearsal_is_kept_with_its_world_and_shown_with_its_verdict():
    asked = request()
    state, _, _ = ask(
        at(Mode.REHEARSING, pending=asked), seen(finished=Finished(number=3, result=MADE))
    )
    assert state.mode.mode is Mode.PREVIEW
    assert state.mode.reason == MADE.verdict.sentence()
    assert state.pending is None
    assert state.store[-1].rehearsal is MADE
    assert state.store[-1].world is asked.world
    assert not state.store[-1].used


def test_no_plan_is_a_hold_with_the_planners_reason():
    answer = Finished(number=3, result=Refused(reason="the shelf is in the way"))
    state, _, _ = ask(at(Mode.REHEARSING, pending=request()), seen(finished=answer))
    assert (state.mode.mode, state.mode.reason) == (Mode.HOLD, "the shelf is in the way")
    assert state.pending is None
    assert state.store == ()


@pytest.mark.parametrize("number", [2, 4])
def test_an_answer_to_another_request_is_ignored(number):
    before = at(Mode.REHEARSING, pending=request())
    state, _, _ = ask(before, seen(finished=Finished(number=number, result=MADE)))
    assert state is before


@pytest.mark.parametrize("act", ["cancel", "disarm", "stop"])
def test_an_answer_after_the_request_was_given_up_is_ignored(act):
    pending = at(Mode.REHEARSING, pending=request())
    inputs = seen(stop=True) if act == "stop" else seen(say(act))
    given_up, _, _ = ask(pending, inputs)
    state, _, _ = ask(given_up, seen(finished=Finished(number=3, result=MADE)))
    assert state.pending is None
    assert state.store == ()
    assert state.mode == given_up.mode


def test_a_stop_in_the_tick_of_the_answer_wins():
    inputs = seen(finished=Finished(number=3, result=MADE), stop=True)
    state, _, _ = ask(at(Mode.REHEARSING, pending=request()), inputs)
    assert state.mode.mode is Mode.STOPPED
    assert state.store == ()


def test_only_the_newest_rehearsals_are_kept():
    state = at(Mode.REHEARSING)
    for k in range(KEPT + 3):
        made = replace(MADE, digest=str(k))
        state = replace(at(Mode.REHEARSING, pending=request()), store=state.store)
        state, _, _ = ask(state, seen(finished=Finished(number=3, result=made)))
    assert [s.rehearsal.digest for s in state.store] == [str(k) for k in range(3, KEPT + 3)]


# ------------------------------------------------------------------------------ time runs out


@pytest.mark.parametrize(("late_ns", "given_up"), [(0, False), (1, True)])
def test_a_worker_that_does_not_answer_is_given_up(late_ns, given_up):
    state, _, _ = ask(at(Mode.REHEARSING, pending=request()), seen(t_ns=T + PATIENCE_NS + late_ns))
    assert (state.mode.mode is Mode.HOLD) == given_up
    assert (state.pending is None) == given_up
    assert not given_up or state.mode.reason == "no rehearsal after 60 s"


@pytest.mark.parametrize(("late_ns", "over"), [(-1, False), (0, True)])
def test_a_preview_ends_when_its_rehearsal_expires(late_ns, over):
    state = at(Mode.PREVIEW, store=(kept(MADE),))
    state, _, _ = ask(state, seen(t_ns=T + EXPIRES_AFTER_NS + late_ns))
    assert (state.mode.mode is Mode.HOLD) == over
    assert not over or state.mode.reason == "the rehearsal expired"


# ------------------------------------------------------------------------------ several acts


def operator(engaged: bool = True) -> OperatorInput:
    return OperatorInput(
        t_ns=T,
        seq=0,
        expires_ns=T + 1,
        source="window",
        tracked=False,
        T_seat_hand=None,
        engaged=engaged,
        grip=None,
        arm="ur0",
    )


def commit(**over) -> Intent:
    return say("commit", **{"digest": MADE.digest, "nonce": "n", **over})


def test_a_commit_uses_its_rehearsal_and_its_nonce_up():
    before = at(Mode.PREVIEW, store=(kept(MADE),))
    state, refused, _ = ask(before, seen(commit(), operator=operator()))
    assert refused is None
    assert state.mode.mode is Mode.COMMIT
    assert state.nonces == {"n"}
    assert [s.used for s in state.store] == [True]
    assert state.playback.digest == MADE.digest
    assert state.playback.phase == 0.0


def test_a_nonce_counts_once():
    before = at(Mode.PREVIEW, store=(kept(MADE),), nonces=frozenset({"n"}))
    _, refused, _ = ask(before, seen(commit(), operator=operator()))
    assert refused == "this commit was received before"


@pytest.mark.parametrize(
    ("over", "reason"),
    [({"nonce": None}, "no nonce was given"), ({"digest": None}, "no rehearsal with digest")],
)
def test_a_commit_without_nonce_or_digest_is_refused(over, reason):
    before = at(Mode.PREVIEW, store=(kept(MADE),))
    state, refused, _ = ask(before, seen(commit(**over), operator=operator()))
    assert reason in refused
    assert state.store == before.store
    assert state.nonces == frozenset()


@pytest.mark.parametrize("who", [None, operator(engaged=False)])
def test_a_commit_needs_the_dead_man_held(who):
    _, refused, _ = ask(at(Mode.PREVIEW, store=(kept(MADE),)), seen(commit(), operator=who))
    assert refused == "hold the dead-man while committing"


@pytest.mark.parametrize("mode", [m for m in Mode if m is not Mode.PREVIEW])
def test_a_commit_is_possible_in_preview_only(mode):
    _, refused, _ = ask(at(mode, store=(kept(MADE),)), seen(commit(), operator=operator()))
    assert refused == f"not possible in mode {mode}"


@pytest.mark.parametrize("silent", [{"states": (None,)}, {"memories": (None,)}])
def test_a_commit_with_a_silent_arm_is_refused(silent):
    before = at(Mode.PREVIEW, store=(kept(MADE),))
    _, refused, _ = ask(before, seen(commit(), operator=operator(), **silent))
    assert refused == "an arm is silent"


def test_a_used_rehearsal_is_named_as_such_in_every_mode():
    before = at(Mode.COMMIT, store=(kept(MADE, used=True),))
    _, refused, _ = ask(before, seen(commit(), operator=operator()))
    assert refused == "this rehearsal was committed before; rehearse again"


def test_only_the_rehearsal_that_is_shown_is_committed():
    newer = replace(MADE, digest="newer")
    before = at(Mode.PREVIEW, store=(kept(MADE), kept(newer)))
    state, refused, _ = ask(before, seen(commit(), operator=operator()))
    assert refused == "a newer rehearsal is the one that is shown; rehearse this one again"
    assert state.store == before.store
    assert state.playback is None


def test_acts_of_one_tick_are_heeded_in_their_order():
    state, refused, request = ask(at(Mode.HOLD), seen(rehearse(), say("cancel"), rehearse()))
    assert refused is None
    assert state.mode.mode is Mode.REHEARSING
    assert request.number == 2
    assert state.pending is request


def test_a_refusal_changes_nothing_but_the_note():
    before = at(Mode.HOLD)
    state, _, _ = ask(before, seen(say("acknowledge")))
    assert state.note == "acknowledge refused: not possible in mode hold"
    others = [name for name in BrainState.__struct_fields__ if name != "note"]
    assert all(getattr(state, name) is getattr(before, name) for name in others)


def test_cancelling_leaves_the_playback_to_slow_down_on_its_way():
    before = at(Mode.PREVIEW, store=(kept(MADE),))
    running, _, _ = ask(before, seen(commit(), operator=operator()))
    state, _, _ = ask(running, seen(say("cancel")))
    assert (state.mode.mode, state.mode.reason) == (Mode.HOLD, "cancel")
    assert state.playback is running.playback


@pytest.mark.parametrize("act", ["disarm", "stop"])
def test_disarm_and_stop_end_the_playback_at_once(act):
    before = at(Mode.PREVIEW, store=(kept(MADE),))
    running, _, _ = ask(before, seen(commit(), operator=operator()))
    state, _, _ = ask(running, seen(stop=True) if act == "stop" else seen(say(act)))
    assert state.playback is None
    assert state.mode.mode is (Mode.STOPPED if act == "stop" else Mode.DISARMED)
