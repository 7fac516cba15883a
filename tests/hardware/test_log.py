from __future__ import annotations

import signal
import struct
import subprocess
import sys
import tracemalloc
import zlib
from pathlib import Path

import numpy as np
import orjson
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st
from mcap.reader import make_reader
from mcap.writer import Writer

from brain.errors import LogError
from brain.types import NS_PER_S
from hardware.log import LogReader, LogWriter, _schema

HEAD = {"seed": 3, "settings": {"rate_hz": 500.0}, "scene": "table: 1\n", "versions": {"a": "1"}}
TICK_NS = 2_000_000


def tick(k: int) -> dict:
    rng = np.random.default_rng(k)
    return {
        "t_ns": k * TICK_NS,
        "tick": k,
        "mode": "hold",
        "q_rad": rng.standard_normal(6),
        "T_world_tool": rng.standard_normal((4, 4)),
        "force_n": None,
    }


def write(path: Path, ticks: int = 1200, close: bool = True) -> Path:
    log = LogWriter(path, HEAD)
    for k in range(ticks):
        log.tick(tick(k))
        if k == 700:
            log.event("/event", k * TICK_NS, {"what": "stop", "by": "operator"})
    if close:
        log.close()
    return path


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return write(tmp_path_factory.mktemp("log") / "good.mcap").read_bytes()


def stored(tmp_path: Path, data: bytes) -> Path:
    path = tmp_path / "log.mcap"
    path.write_bytes(data)
    return path


# ---------------------------------------------------------------- what is written is read


def test_the_head_comes_back(tmp_path: Path):
    assert LogReader(write(tmp_path / "a.mcap", 0)).head == HEAD


def test_every_tick_comes_back_in_order_and_bit_for_bit(tmp_path: Path, good: bytes):
    ticks = list(LogReader(stored(tmp_path, good)).ticks())
    assert len(ticks) == 1200
    for k, found in enumerate(ticks):
        for name, value in tick(k).items():
            expected = value.tolist() if isinstance(value, np.ndarray) else value
            assert found[name] == expected, f"tick {k}, {name}"


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), max_size=20))
@settings(max_examples=50)
def test_any_finite_float_comes_back_bit_for_bit(tmp_path_factory, numbers: list[float]):
    path = tmp_path_factory.mktemp("log") / "a.mcap"
    log = LogWriter(path, {})
    log.tick({"t_ns": 0, "x": np.array(numbers), "y": numbers})
    log.close()
    (found,) = LogReader(path).ticks()
    raw = np.array(numbers).tobytes()
    assert np.array(found["x"]).tobytes() == np.array(found["y"]).tobytes() == raw


def test_numbers_that_are_not_finite_come_back_as_unknown(tmp_path: Path):
    log = LogWriter(tmp_path / "a.mcap", {})
    log.tick({"t_ns": 0, "q_rad": np.array([np.nan, 1.0]), "x": float("inf")})
    log.close()
    (found,) = LogReader(tmp_path / "a.mcap").ticks()
    assert (found["q_rad"], found["x"]) == ([None, 1.0], None)


def test_an_event_comes_back_on_its_channel_with_its_time(tmp_path: Path, good: bytes):
    events = list(LogReader(stored(tmp_path, good)).events("/event"))
    assert events == [("/event", 700 * TICK_NS, {"what": "stop", "by": "operator"})]


def test_records_come_back_in_the_order_they_were_written(tmp_path: Path, good: bytes):
    records = list(LogReader(stored(tmp_path, good)).records())
    assert [r.channel for r in records[699:703]] == ["/tick", "/tick", "/event", "/tick"]


def test_another_mcap_reader_reads_it_and_finds_its_index_and_schemas(tmp_path: Path, good: bytes):
    with stored(tmp_path, good).open("rb") as file:
        reader = make_reader(file, validate_crcs=True)
        summary = reader.get_summary()
        messages = list(reader.iter_messages("/event"))
    assert summary.statistics.message_count == 1201
    assert sorted(c.topic for c in summary.channels.values()) == ["/event", "/tick"]
    assert {(s.encoding, c.message_encoding) for s, c, _ in messages} == {("jsonschema", "json")}
    assert len(summary.chunk_indexes) == 3  # 2.4 s of log time, a chunk each second


def test_the_schema_names_what_foxglove_can_plot_and_nothing_that_it_refuses():
    example = {"n": 1, "s": "x", "b": True, "q": [0.5], "none": None, "T": [[1.0]], "o": {"x": 1}}
    assert _schema(example)["properties"] == {
        "n": {"type": "number"},
        "s": {"type": "string"},
        "b": {"type": "boolean"},
        "q": {"type": "array", "items": {"type": "number"}},
        "o": {"type": "object", "properties": {"x": {"type": "number"}}},
    }


# ---------------------------------------------------------------- a run that was killed

RUN = """
import os, signal, sys
from pathlib import Path
sys.path.insert(0, os.getcwd())
from tests.hardware.test_log import write
write(Path(sys.argv[1]), 1999, close=False)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_killed_run_leaves_a_log_that_can_be_read_to_its_last_second(tmp_path: Path):
    path, root = tmp_path / "killed.mcap", Path(__file__).parents[2]
    done = subprocess.run([sys.executable, "-c", RUN, str(path)], cwd=root, check=False)
    assert done.returncode == -signal.SIGKILL
    reader = LogReader(path, allow_truncated=True)
    last_ns = [t["t_ns"] for t in reader.ticks()][-1]
    missing_s = (1998 * TICK_NS - last_ns) / NS_PER_S
    assert reader.truncated
    assert missing_s <= 1.0, f"the last {missing_s} s are missing, limit 1 s"


def test_a_log_that_was_cut_off_is_refused_with_its_last_good_tick(tmp_path: Path):
    write(tmp_path / "a.mcap", 1200, close=False)
    with pytest.raises(LogError, match="cut off after 1001 good ticks, the last at 2000000000 ns"):
        LogReader(tmp_path / "a.mcap")


@given(st.data())
@settings(max_examples=60)
def test_a_log_cut_anywhere_is_read_to_the_cut_or_refused(
    tmp_path_factory, good: bytes, data: st.DataObject
):
    size = data.draw(st.integers(0, len(good) - 1))
    path = stored(tmp_path_factory.mktemp("log"), good[:size])
    with pytest.raises(LogError):
        LogReader(path)
    try:
        ticks = [t["tick"] for t in LogReader(path, allow_truncated=True).ticks()]
    except LogError:
        return
    assert ticks == list(range(len(ticks)))


# ---------------------------------------------------------------- damage


def read_all(path: Path) -> list:
    reader = LogReader(path)
    return [reader.head, *reader.records()]


@given(st.data())
@settings(max_examples=150)
def test_one_flipped_bit_is_found_or_changes_nothing(
    tmp_path_factory, good: bytes, data: st.DataObject
):
    bad = bytearray(good)
    bit = data.draw(st.integers(0, 8 * len(good) - 1))
    bad[bit // 8] ^= 1 << bit % 8
    folder = tmp_path_factory.mktemp("log")
    try:
        found = read_all(stored(folder, bytes(bad)))
    except LogError:
        return
    assert orjson.dumps(found) == orjson.dumps(read_all(stored(folder, good)))


def test_one_flipped_bit_behind_the_data_is_found(tmp_path: Path, good: bytes):
    behind = good.rindex(b"forearm/tick")  # in the index that repeats the schemas
    for place in range(behind, len(good) - 8, 7):
        bad = bytearray(good)
        bad[place] ^= 1
        with pytest.raises(LogError, match="index"):
            read_all(stored(tmp_path, bytes(bad)))


def test_damage_is_reported_with_the_last_good_tick(tmp_path: Path, good: bytes):
    bad = bytearray(good)
    bad[len(good) * 2 // 3] ^= 1  # in the second chunk of three
    with pytest.raises(LogError, match="damaged after 501 good ticks, the last at 1000000000 ns"):
        read_all(stored(tmp_path, bytes(bad)))


@pytest.mark.parametrize(
    ("data", "what"),
    [
        (b"", "empty"),
        (b"hello, this is no log", "not an MCAP file"),
        (b"\x89MCAP0\r\n", "no head"),
    ],
)
def test_a_foreign_file_is_refused_with_the_reason(tmp_path: Path, data: bytes, what: str):
    with pytest.raises(LogError, match=what):
        LogReader(stored(tmp_path, data))


def test_an_mcap_file_of_another_program_is_refused(tmp_path: Path):
    with (tmp_path / "other.mcap").open("wb") as file:
        writer = Writer(file)
        writer.start()
        writer.finish()
    with pytest.raises(LogError, match="no head of this program"):
        LogReader(tmp_path / "other.mcap")


def test_a_missing_log_is_refused(tmp_path: Path):
    with pytest.raises(LogError, match="No such file"):
        LogReader(tmp_path / "none.mcap")


def test_a_log_of_another_format_is_refused_with_its_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("hardware.log.FORMAT_VERSION", 2)
    path = write(tmp_path / "a.mcap", 1)
    monkeypatch.undo()
    with pytest.raises(LogError, match="format version 2, can read 1"):
        LogReader(path)


def test_a_file_that_exists_is_not_written_over(tmp_path: Path):
    path = stored(tmp_path, b"precious")
    with pytest.raises(LogError, match="File exists"):
        LogWriter(path, {})
    assert path.read_bytes() == b"precious"


def test_a_value_without_json_is_refused_by_the_name_of_its_channel(tmp_path: Path):
    log = LogWriter(tmp_path / "a.mcap", {})
    with pytest.raises(LogError, match="/tick: .*object"):
        log.tick({"t_ns": 0, "x": object()})
    log.close()


# ---------------------------------------------------------------- hostile files


def record(opcode: int, body: bytes, length: int | None = None) -> bytes:
    return struct.pack("<BQ", opcode, len(body) if length is None else length) + body


def chunk(packed: bytes, size: int, crc: int, data_length: int | None = None) -> bytes:
    length = len(packed) if data_length is None else data_length
    body = struct.pack("<QQQI", 0, 0, size, crc) + struct.pack("<I", 4) + b"zstd"
    return record(6, body + struct.pack("<Q", length) + packed)


def bomb(size: int) -> bytes:
    """Return zeros packed small, without ever holding them."""
    packer = zstandard.ZstdCompressor().compressobj(size=size)
    block = bytes(2**20)
    return b"".join(packer.compress(block) for _ in range(size // len(block))) + packer.flush()


BOMB = bomb(2**29)
TINY = struct.pack("<BQ", 99, 2**64 - 1)


@pytest.mark.parametrize(
    "hostile",
    [
        record(6, b"", 2**63),
        record(5, b"", 2**40),
        chunk(BOMB, 2**29, 1),
        chunk(BOMB, 100, 1),
        chunk(b"\x28\xb5\x2f\xfd", 100, 1, 2**60),
        chunk(zstandard.compress(TINY), len(TINY), zlib.crc32(TINY)),
        record(12, struct.pack("<I", 2**32 - 1)),
    ],
    ids=["record", "message", "bomb", "lying bomb", "chunk", "inner record", "text"],
)
def test_absurd_lengths_are_refused_and_take_no_memory(tmp_path: Path, good: bytes, hostile: bytes):
    data = good[: _end_of_head(good)] + hostile + good[-8:]
    tracemalloc.start()
    with pytest.raises(LogError):
        read_all(stored(tmp_path, data))
    taken_mib = tracemalloc.get_traced_memory()[1] / 2**20
    tracemalloc.stop()
    assert taken_mib < 50, f"took {taken_mib} MiB, limit 50 MiB"


def _end_of_head(data: bytes) -> int:
    """Return where the metadata record with the head ends."""
    at = 8
    while True:
        opcode, length = struct.unpack_from("<BQ", data, at)
        at += 9 + length
        if opcode == 12:
            return at
