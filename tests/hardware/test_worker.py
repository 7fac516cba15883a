"""A worker in another process: nobody waits for it, and order and answers are exact."""

from __future__ import annotations

import os
import signal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from brain.geometry import frozen
from brain.rehearsal import Finished, Refused, Request, digest_of
from brain.types import NS_PER_S, ArmCommand, Goal, GripperCommand
from brain.world import make_world
from hardware.clock import WallClock, wait_for
from hardware.process import Station
from hardware.spine import Commands
from hardware.streams import Inbox, Outbox
from hardware.worker import ProcessWorker, pack_commands, serve_requests, unpack_commands
from tests.brain.cells import HOME, cell
from tests.brain.streams import rehearsal, stream
from tests.ideal import TICK_NS

CLOCK = WallClock()
TIMEOUT_NS = 60 * NS_PER_S
ROWS = 12_000
NUMBER = st.floats(allow_nan=False)


def commands(k: int) -> Commands:
    arm = ArmCommand(
        t_ns=k * TICK_NS,
        seq=k,
        expires_ns=(k + 5) * TICK_NS,
        q_rad=frozen(HOME + 0.001 * k) if k % 2 else None,
        stop=k % 2 == 0,
    )
    return Commands(t_ns=k * TICK_NS, arms=(arm,), grippers=(None,), start=k % 3 == 0)


def request(number: int, k: int = 0) -> Request:
    return Request(
        number=number,
        t_ns=k * TICK_NS,
        goal=Goal(kind="home", arm="ur0"),
        world=make_world(()),
        q_rad=(frozen(HOME),),
        measured_rad=(frozen(HOME),),
        opening_m=(0.0,),
    )


def desk(station: Station, reader, writer) -> None:
    """Say how many commands came before a request; for an even number rehearse standing still."""
    seen: list[Commands] = []

    def work(asked: Request) -> Finished:
        if asked.number % 2:
            newest = seen[-1].t_ns // TICK_NS if seen else None
            reason = f"{len(seen)} commands, the last of tick {newest}"
            return Finished(number=asked.number, result=Refused(reason=reason))
        made = rehearsal(cell(), stream(np.tile(HOME, (ROWS, 1))))
        return Finished(number=asked.number, result=made)

    station.ready()
    serve_requests(station, Inbox(reader), Outbox(writer), seen.append, lambda: None, work)


def crash(station: Station, reader, writer) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def answer(worker: ProcessWorker, t_ns: int = 0) -> Finished:
    found: list[Finished] = []

    def look() -> bool:
        found.extend(f for f in [worker.finished(t_ns)] if f is not None)
        return bool(found)

    assert wait_for(CLOCK, look, TIMEOUT_NS), "no answer"
    return found[0]


@pytest.fixture(scope="module")
def live():
    worker = ProcessWorker(desk)
    worker.wait_ready()
    yield worker
    worker.close()


# ------------------------------------------------------------------------------------- as bytes


@given(
    st.lists(st.none() | st.lists(NUMBER, min_size=1, max_size=7), min_size=1, max_size=3),
    st.lists(st.none() | st.tuples(NUMBER, NUMBER, NUMBER), min_size=3, max_size=3),
    st.booleans(),
)
def test_the_commands_of_a_tick_come_back_bit_for_bit(joints, grips, start):
    t_ns = 7 * TICK_NS
    sent = Commands(
        t_ns=t_ns,
        arms=tuple(
            ArmCommand(
                t_ns=t_ns,
                seq=i,
                expires_ns=t_ns + i,
                q_rad=None if q is None else frozen(q),
                stop=q is None,
            )
            for i, q in enumerate(joints)
        ),
        grippers=tuple(
            None
            if g is None
            else GripperCommand(
                t_ns=t_ns, seq=1, expires_ns=9, opening_m=g[0], force_n=g[1], speed_m_s=g[2]
            )
            for g in grips[: len(joints)]
        ),
        start=start,
    )
    assert pack_commands(unpack_commands(pack_commands(sent))) == pack_commands(sent)
    got = unpack_commands(pack_commands(sent))
    assert [a.stop for a in got.arms] == [a.stop for a in sent.arms]
    assert [g is None for g in got.grippers] == [g is None for g in sent.grippers]
    assert (got.t_ns, got.start) == (t_ns, start)


# ----------------------------------------------------------------------------------------- live


def test_a_request_finds_exactly_the_commands_that_were_observed_before_it(live: ProcessWorker):
    for k in range(2000):
        live.observe(commands(k))
    live.submit(request(1))
    for k in range(2000, 3000):
        live.observe(commands(k))
    assert answer(live).result == Refused(reason="2000 commands, the last of tick 1999")


def test_a_rehearsal_of_24_s_comes_back_as_it_was_made(live: ProcessWorker):
    live.submit(request(2))
    result = answer(live).result
    assert result.stream.rows == ROWS
    assert digest_of(result) == result.digest
    assert not result.stream.q_rad.flags.writeable


def test_no_call_of_the_cycle_waits_for_a_large_answer(live: ProcessWorker):
    live.submit(request(4))
    looks = 0
    while live.finished(0) is None:
        looks += 1
        CLOCK.wait_until_ns(CLOCK.now_ns() + TICK_NS)
    assert looks > 5, f"{looks} calls of `finished` before the answer, more than 5 expected"


def test_only_the_newest_request_is_answered(live: ProcessWorker):
    live.submit(request(6))
    live.submit(request(7))
    assert answer(live).number == 7
    assert live.finished(0) is None


def test_a_process_that_is_killed_is_replaced_and_its_request_refused(live: ProcessWorker):
    first = live.pid
    os.kill(first, signal.SIGSTOP)
    live.submit(request(9))
    os.kill(first, signal.SIGKILL)
    refused = answer(live)
    reason = "the planner ended unexpectedly and is started again"
    assert (refused.number, refused.result.reason) == (9, reason)
    live.observe(commands(5))
    live.submit(request(11))
    assert answer(live).result.reason == "1 commands, the last of tick 5"
    assert live.pid != first


def test_a_process_that_never_starts_is_given_up():
    worker = ProcessWorker(crash)
    reasons = []
    for number in (1, 2, 3, 4, 5):
        worker.submit(request(number))
        reasons.append(answer(worker).result.reason)
    worker.close()
    assert reasons[-1] == "the planner ended and cannot be started again"


# ------------------------------------------------------------------------------------- lockstep


def test_with_a_declared_latency_the_answer_comes_at_its_time_and_not_before():
    worker = ProcessWorker(desk, latency_ns=10 * TICK_NS)
    worker.wait_ready()
    worker.observe(commands(0))
    worker.submit(request(1, k=3))
    answered = [k for k in range(3, 30) if worker.finished(k * TICK_NS) is not None]
    worker.close()
    assert answered == [13]
