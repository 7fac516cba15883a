from __future__ import annotations

import hashlib
import multiprocessing
import os
import signal
import subprocess
import sys
from multiprocessing import shared_memory
from pathlib import Path

import pytest

from brain.errors import ConfigError, LinkError
from brain.types import NS_PER_S
from hardware.bus import Slot
from hardware.clock import WallClock, wait_for

CLOCK = WallClock()
TIMEOUT_NS = 20 * NS_PER_S
SIZE = 4000
SPAWN = multiprocessing.get_context("spawn")


def value(seq: int, size: int = SIZE) -> bytes:
    """Return bytes that hold together: a number and its hash over and over."""
    word = hashlib.sha256(str(seq).encode()).digest()
    return seq.to_bytes(8, "little") + word * ((size - 8) // len(word))


def is_whole(data: bytes) -> bool:
    return data == value(int.from_bytes(data[:8], "little"), len(data))


def write_many(name: str, count: int) -> None:
    slot = Slot.attach(name)
    for seq in range(1, count + 1):
        slot.write(value(seq, SIZE if seq % 2 else SIZE // 2), seq)
    slot.close()


@pytest.fixture
def slot():
    slot = Slot.create("test", SIZE)
    yield slot
    slot.close()


def test_before_the_first_write_there_is_nothing(slot: Slot):
    assert Slot.attach(slot.name).read() is None


def test_a_reader_gets_the_newest_value_with_its_time_and_number(slot: Slot):
    for seq in range(1, 6):
        slot.write(value(seq), 10 * seq)
    assert Slot.attach(slot.name).read() == (value(5), 50, 5)


def test_a_reader_that_has_the_newest_gets_nothing(slot: Slot):
    slot.write(b"x", 1)
    assert slot.read(after_seq=1) is None


def test_an_empty_value_is_a_value(slot: Slot):
    slot.write(b"", 7)
    assert slot.read() == (b"", 7, 1)


def test_a_writer_that_starts_again_goes_on_counting(slot: Slot):
    slot.write(b"x", 1)
    Slot.attach(slot.name).write(b"y", 2)
    assert slot.read() == (b"y", 2, 2)


def test_a_value_over_the_capacity_is_refused_and_the_old_one_stays(slot: Slot):
    slot.write(b"x", 1)
    with pytest.raises(LinkError, match="4001 bytes, holds 4000"):
        slot.write(bytes(SIZE + 1), 2)
    assert slot.read() == (b"x", 1, 1)


@pytest.mark.parametrize("at", range(0, 32 + SIZE, 61))
def test_one_flipped_bit_in_the_newest_copy_is_never_returned(slot: Slot, at: int):
    slot.write(value(1), 1)
    place = slot._place(1) + at
    slot._memory[place] ^= 4
    found = slot.read()
    assert found is None or found == (value(1), 1, 1)  # padding may change


def test_no_reader_sees_half_a_value_while_another_process_writes_fast(slot: Slot):
    writer = SPAWN.Process(target=write_many, args=(slot.name, 10**9))
    writer.start()
    end_ns = CLOCK.now_ns() + TIMEOUT_NS
    reads, broken, last = 0, 0, 0
    while (reads < 2000 or last < 20_000) and CLOCK.now_ns() < end_ns:
        found = slot.read(after_seq=last)
        if found is not None:
            reads += 1
            broken += not is_whole(found.data) or found.t_ns != found.seq or found.seq <= last
            last = found.seq
    writer.kill()
    writer.join()
    assert (reads >= 2000, last >= 20_000) == (True, True), f"{reads} reads of {last} writes"
    assert broken == 0, f"{broken} of {reads} values torn or old, limit 0"


@pytest.mark.parametrize("trial", range(3))
def test_a_writer_killed_half_way_leaves_a_whole_value(slot: Slot, trial: int):
    writer = SPAWN.Process(target=write_many, args=(slot.name, 10**9))
    writer.start()
    wait_for(CLOCK, lambda: (found := slot.read()) is not None and found.seq > 100, TIMEOUT_NS)
    os.kill(writer.pid, signal.SIGKILL)
    writer.join()
    found = slot.read()
    assert found is not None
    assert is_whole(found.data)


def test_a_writer_that_dies_between_any_two_of_its_steps_leaves_the_value_before(slot: Slot):
    slot.write(value(1), 1)
    slot.write(value(2), 2)
    place = slot._place(3)
    slot._memory[place : place + 1000] = b"\xff" * 1000  # the third write began and never ended
    assert slot.read() == (value(2), 2, 2)


SCRIPT = """
import sys
from hardware.bus import Slot
slot = Slot.attach(sys.argv[1])
slot.write(b"from afar", 3)
print(slot.read().data.decode())
"""


def test_a_process_of_another_family_neither_complains_nor_takes_the_memory_along(slot: Slot):
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, slot.name], cwd=root, capture_output=True, text=True
    )
    assert (done.stdout, done.stderr) == ("from afar\n", "")
    assert Slot.attach(slot.name).read() == (b"from afar", 3, 1)


CREATOR = """
import os, signal
from hardware.bus import Slot
slot = Slot.create("victim", 100)
print(slot.name, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_the_memory_of_a_creator_that_was_killed_is_removed():
    root = Path(__file__).parents[2]
    done = subprocess.run([sys.executable, "-c", CREATOR], cwd=root, capture_output=True, text=True)
    memory = Path("/dev/shm") / done.stdout.strip()
    assert memory.name.startswith("forearm-victim-")
    assert wait_for(CLOCK, lambda: not memory.exists(), TIMEOUT_NS)


def test_a_closed_slot_is_gone():
    slot = Slot.create("test", 10)
    slot.close()
    with pytest.raises(LinkError, match="No such file"):
        Slot.attach(slot.name)


def test_two_slots_of_one_label_do_not_collide():
    a, b = Slot.create("test", 10), Slot.create("test", 10)
    a.write(b"a", 1)
    assert b.read() is None
    a.close()
    b.close()


def test_memory_of_something_else_is_refused():
    other = shared_memory.SharedMemory(create=True, size=256)
    with pytest.raises(LinkError, match="not a slot"):
        Slot.attach(other.name)
    other.close()
    other.unlink()


@pytest.mark.parametrize("capacity", [0, -1, 2**40])
def test_a_capacity_out_of_range_is_refused(capacity: int):
    with pytest.raises(ConfigError, match="capacity of test"):
        Slot.create("test", capacity)
