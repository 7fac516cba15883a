import numpy as np
import pytest

from brain import retarget
from brain.geometry import transform
from brain.types import NS_PER_MS, Goal, OperatorInput
from hardware.clock import SimClock
from hardware.inline_link import inline_line
from tests.values import replace
from tests.vr.cells import cell, status
from vr.hand import Drag
from vr.operator import LOOK_NS, PERIOD_NS, Operator, Wish

TOOL = transform((0.4, 0.1, 1.1))
FAR = transform((0.9, 0.6, 1.3))


class Desk:
    """An operator in simulated time and the cell's end of its line."""

    def __init__(self, **options) -> None:
        self.clock = SimClock(10**9)
        line = inline_line(self.clock)
        self.far = line.cell
        self.operator = Operator(line.seat, self.clock, cell(), **options)
        self.heard: list[OperatorInput] = []
        self.intents, self.stopped, self.said = [], False, 0

    def wish(self, pressed: bool, drag: Drag | None = None, grip: float | None = None) -> None:
        self.operator.wish(
            Wish(
                seen_ns=self.clock.now_ns(),
                pressed=pressed,
                arm=cell().arms[0].name,
                grip=grip,
                drag=drag,
            )
        )

    def beat(self, count: int = 1) -> None:
        for _ in range(count):
            self.clock.wait_until_ns(self.clock.now_ns() + PERIOD_NS)
            self.listen()
            self.operator.beat(self.clock.now_ns())
            self.listen()

    def listen(self) -> None:
        heard = self.far.hear(self.clock.now_ns())
        if heard.operator is not None:
            self.heard.append(heard.operator)
        self.intents += heard.intents
        self.stopped = self.stopped or heard.stop
        self.said += 1
        self.far.send_status(replace(status(), t_ns=self.clock.now_ns(), seq=self.said))

    def engaged(self) -> bool:
        return self.heard[-1].engaged


@pytest.fixture
def desk() -> Desk:
    made = Desk()
    made.wish(False)
    made.beat(20)
    return made


def test_a_pressed_dead_man_is_sent_a_hundred_times_a_second(desk):
    before = len(desk.heard)
    for _ in range(50):
        desk.wish(True)
        desk.beat()
    sent = desk.heard[before:]
    apart_ns = np.diff([s.t_ns for s in sent])
    print(f"{len(sent)} samples in 0.5 s, at most {apart_ns.max() / NS_PER_MS} ms apart")
    assert len(sent) == 50
    assert apart_ns.max() <= 16 * NS_PER_MS
    assert all(s.engaged for s in sent[1:])


def test_a_window_that_no_longer_looks_lets_go_of_the_dead_man(desk):
    desk.wish(True)
    desk.beat()
    assert desk.engaged()
    desk.beat(LOOK_NS // PERIOD_NS + 1)
    assert not desk.engaged()


def test_a_dead_man_that_was_lost_has_to_be_seen_up_before_it_counts_again(desk):
    desk.wish(True)
    desk.beat(LOOK_NS // PERIOD_NS + 2)
    desk.wish(True)  # the window looks again and the key is still down
    desk.beat(3)
    assert not desk.engaged()
    desk.wish(False)
    desk.beat()
    desk.wish(True)
    desk.beat()
    assert desk.engaged()


def test_the_hand_rests_until_there_is_a_drag(desk):
    for _ in range(30):
        desk.wish(True)
        desk.beat()
    first, last = desk.heard[0], desk.heard[-1]
    assert np.array_equal(first.T_seat_hand, last.T_seat_hand)


def test_a_drag_across_the_room_in_one_frame_never_jumps_the_hand(desk):
    drag = Drag(T_world_from=TOOL, T_world_to=FAR)
    before = len(desk.heard)
    for _ in range(100):
        desk.wish(True, drag)
        desk.beat()
    at = np.array([s.T_seat_hand[:3, 3] for s in desk.heard[before:]])
    steps_m = np.linalg.norm(np.diff(at, axis=0), axis=1)
    print(f"largest step {1000 * steps_m.max():.2f} mm, limit {1000 * retarget.JUMP_M:.0f} mm")
    assert steps_m.max() < 0.05 * retarget.JUMP_M
    assert np.linalg.norm(at[-1] - at[0]) > 0.1


def test_every_accepted_sample_of_a_drag_is_one_that_the_brain_accepts(desk):
    drag = Drag(T_world_from=TOOL, T_world_to=FAR)
    hand = None
    for _ in range(60):
        desk.wish(True, drag)
        desk.beat()
        sample = desk.heard[-1]
        assert retarget.refuse(sample, hand) is None
        hand = (
            retarget.first(sample.t_ns, sample.T_seat_hand)
            if hand is None
            else retarget.follow(hand, sample.t_ns, sample.T_seat_hand)
        )


def test_a_second_drag_starts_from_where_the_hand_is(desk):
    for _ in range(40):
        desk.wish(True, Drag(T_world_from=TOOL, T_world_to=FAR))
        desk.beat()
    rested = desk.heard[-1].T_seat_hand
    desk.wish(False)
    desk.beat(5)
    desk.wish(True, Drag(T_world_from=FAR, T_world_to=FAR))
    desk.beat(10)
    assert np.allclose(desk.heard[-1].T_seat_hand, rested, atol=1e-9)


def test_an_onlooker_sends_no_sample():
    desk = Desk(watch=lambda: True)
    desk.wish(True)
    desk.beat(30)
    assert desk.heard == []


def test_an_onlooker_can_stop_the_cell():
    desk = Desk(watch=lambda: True)
    desk.beat(5)
    desk.operator.stop()
    desk.listen()
    assert desk.stopped


def test_an_onlooker_is_heard_once_nobody_else_drives():
    others = [True]
    desk = Desk(watch=lambda: bool(others))
    desk.wish(False)
    desk.beat(20)
    others.clear()
    desk.wish(False)
    desk.beat(2)
    assert desk.heard


def test_a_stop_is_sent_at_once_and_does_not_wait_for_the_next_sample(desk):
    desk.operator.stop()
    desk.listen()
    assert desk.stopped


def test_an_act_reaches_the_cell_once(desk):
    desk.operator.act("rehearse", Goal(kind="home", arm=cell().arms[0].name))
    desk.beat(10)
    assert [i.kind for i in desk.intents] == ["rehearse"]


def test_a_commit_says_that_a_window_made_it_and_carries_a_nonce(desk):
    desk.operator.act("commit", digest="a" * 64)
    desk.beat(10)
    intent = desk.intents[-1]
    assert intent.source == "window"
    assert intent.nonce


def test_two_commits_have_two_nonces(desk):
    for _ in range(2):
        desk.operator.act("commit", digest="a" * 64)
        desk.beat(10)
    assert desk.intents[0].nonce != desk.intents[1].nonce


def test_a_closing_window_says_that_the_dead_man_is_up(desk):
    desk.wish(True)
    desk.beat()
    assert desk.engaged()
    desk.operator.close()
    desk.listen()
    assert not desk.engaged()


def test_a_gripper_nobody_touched_is_not_spoken_for(desk):
    desk.wish(True)
    desk.beat()
    assert desk.heard[-1].grip is None
