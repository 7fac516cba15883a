"""The line over Zenoh on loopback, each test on a port of its own."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from brain.errors import ConfigError, LinkError
from brain.types import NS_PER_MS, NS_PER_S
from hardware.clock import WallClock, wait_for
from hardware.link import CellLink
from hardware.receive import Heard
from hardware.seat_link import Connection, News, SeatLink
from hardware.status import SceneText
from hardware.zenoh_link import Tls, loopback_endpoint, open_cell, open_seat
from tests.hardware import samples

CLOCK = WallClock()
TIMEOUT_NS = 10 * NS_PER_S


class Line:
    """Both ends in one process, looked at every ms until something has happened."""

    def __init__(self, endpoint: str, cell_tls: Tls | None = None, seat_tls: Tls | None = None):
        self.endpoint, self.cell_tls = endpoint, cell_tls
        self.cell: CellLink = open_cell("bench", endpoint, cell_tls)
        self.seat: SeatLink = open_seat("bench", endpoint, seat_tls, want_scene=True)
        self.seq = 0
        self.heard: list[Heard] = []
        self.news: list[News] = []

    def look(self) -> None:
        now_ns = CLOCK.now_ns()
        self.seat.send(samples.hand(self.seq, now_ns))
        self.cell.send_status(samples.status(self.seq, now_ns))
        self.seq += 1
        self.news.append(self.seat.poll(now_ns))
        self.heard.append(self.cell.hear(now_ns))

    def until(self, condition: Callable[[], bool], timeout_ns: int = TIMEOUT_NS) -> bool:
        def look() -> bool:
            self.look()
            return condition()

        return wait_for(CLOCK, look, timeout_ns)

    def connect(self) -> None:
        assert self.until(lambda: self.heard[-1].operator is not None), "no pose within 10 s"

    def close(self) -> None:
        self.seat.close()
        self.cell.close()


@pytest.fixture
def line() -> Iterator[Line]:
    line = Line(loopback_endpoint())
    line.connect()
    yield line
    line.close()


def test_a_hand_sample_crosses_bit_for_bit(line: Line):
    heard = line.heard[-1].operator
    assert heard.T_seat_hand.tobytes() == samples.POSE.tobytes()


def test_an_intent_crosses_once_and_is_answered(line: Line):
    before = len(line.heard)
    line.seat.act(samples.commit(0, CLOCK.now_ns()))
    line.until(
        lambda: line.news[-1].status is not None and line.news[-1].status.echo.intent_seq == 0
    )
    line.until(lambda: False, 100 * NS_PER_MS)
    assert [i.seq for h in line.heard[before:] for i in h.intents] == [0]


def test_a_press_of_stop_crosses_once(line: Line):
    before = len(line.heard)
    line.seat.stop(CLOCK.now_ns())
    line.until(lambda: line.heard[-1].stop)
    line.until(lambda: False, 100 * NS_PER_MS)
    assert sum(h.stop for h in line.heard[before:]) == 1


def test_a_scene_crosses_to_a_seat_that_wants_it(line: Line):
    line.cell.offer(SceneText(digest=samples.DIGEST, text="table: 1"), CLOCK.now_ns())
    assert line.until(lambda: line.news[-1].scene is not None)
    assert line.news[-1].scene.text == "table: 1"


def test_a_preview_of_a_megabyte_crosses(line: Line):
    line.cell.offer(samples.preview(20_000), CLOCK.now_ns())
    assert line.until(lambda: line.news[-1].preview is not None)
    found = line.news[-1].preview.arms[0].q_rad
    assert np.array_equal(found, samples.preview(20_000).arms[0].q_rad)


def test_next_to_nothing_is_lost_on_loopback(line: Line):
    line.until(lambda: False, 300 * NS_PER_MS)
    share = line.cell.counts.lost / line.seq  # a starved machine may drop, and counts it
    assert share <= 0.05, f"{share} lost, limit 0.05"


def test_a_seat_notices_that_the_cell_is_gone_and_connects_to_the_next(line: Line):
    line.cell.close()
    gone = wait_for(
        CLOCK, lambda: line.seat.poll(CLOCK.now_ns()).connection is Connection.LOST, TIMEOUT_NS
    )
    line.cell = open_cell("bench", line.endpoint)
    again = line.until(lambda: line.news[-1].connection is Connection.CONNECTED)
    taken = line.until(lambda: line.heard[-1].operator is not None)
    assert (gone, again, taken) == (True, True, True)


def test_a_seat_may_be_opened_before_there_is_a_cell():
    endpoint = loopback_endpoint()
    seat = open_seat("bench", endpoint)
    seat.send(samples.hand(0, CLOCK.now_ns()))
    assert seat.poll(CLOCK.now_ns()).connection is Connection.CONNECTING
    seat.close()


def test_a_cell_of_another_name_is_not_heard():
    endpoint = loopback_endpoint()
    line = Line(endpoint)
    line.seat.close()
    line.seat = open_seat("other", endpoint)
    assert not line.until(lambda: line.heard[-1].operator is not None, 300 * NS_PER_MS)
    line.close()


def test_an_endpoint_in_use_is_a_link_error():
    endpoint = loopback_endpoint()
    cell = open_cell("bench", endpoint)
    with pytest.raises(LinkError, match="in use"):
        open_cell("bench", endpoint)
    cell.close()


def sockets() -> set[tuple[str, str]]:
    """Return protocol and local address of the listening and datagram sockets of this process."""
    inodes = set()
    for fd in os.listdir("/proc/self/fd"):
        try:
            inodes.add(os.readlink(f"/proc/self/fd/{fd}"))
        except OSError:  # closed since
            continue
    found = set()
    for table in ("tcp", "tcp6", "udp", "udp6"):
        for row in Path(f"/proc/self/net/{table}").read_text().splitlines()[1:]:
            words = row.split()
            listens = table.startswith("udp") or words[3] == "0A"
            if listens and f"socket:[{words[9]}]" in inodes:
                found.add((table, words[1]))
    return found


def test_nothing_listens_but_the_cell_on_its_loopback_port():
    before = sockets()
    line = Line(loopback_endpoint())
    line.connect()
    port = int(line.endpoint.rsplit(":", 1)[1])
    opened = sockets() - before
    line.close()
    assert opened == {("tcp", f"0100007F:{port:04X}")}


FILES = Tls(authority=Path(__file__), certificate=Path(__file__), key=Path(__file__))


@pytest.mark.parametrize(
    ("endpoint", "tls"),
    [
        ("tcp/0.0.0.0:7447", None),
        ("tcp/192.168.1.5:7447", None),
        ("tcp/example.org:7447", None),
        ("tcp/[::]:7447", None),
        ("tls/127.0.0.1:7447", None),
        ("quic/10.0.0.1:7447", None),
        ("tcp/10.0.0.1:7447", FILES),
        ("tcp/127.0.0.1:0", None),
        ("tcp/127.0.0.1:70000", None),
        ("tcp/127.0.0.1:7447#iface=eth0", None),
        ("udp/127.0.0.1:7447", None),
        ("", None),
    ],
)
def test_an_endpoint_that_is_not_safe_or_not_one_is_refused(endpoint: str, tls: Tls | None):
    with pytest.raises(ConfigError, match="endpoint"):
        open_cell("bench", endpoint, tls)


def test_a_missing_certificate_is_refused_by_name():
    tls = Tls(authority=Path(__file__), certificate=Path("/no/such.pem"), key=Path(__file__))
    with pytest.raises(ConfigError, match=r"tls.certificate: /no/such.pem"):
        open_seat("bench", "tls/127.0.0.1:7447", tls)


@pytest.mark.parametrize("name", ["", "a/b", "**", "a b"])
def test_a_cell_name_that_is_no_key_is_refused(name: str):
    with pytest.raises(ConfigError, match="cell"):
        open_seat(name, loopback_endpoint())


def authority(folder: Path) -> dict[str, Tls]:
    """Make an authority and certificates of a cell and a seat on this machine."""
    key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]

    def openssl(*words: str) -> None:
        subprocess.run(["openssl", *words], cwd=folder, check=True, capture_output=True)

    folder.mkdir()
    (folder / "names").write_text("subjectAltName=DNS:localhost,IP:127.0.0.1\n")
    openssl("req", "-x509", *key, "-keyout", "ca.key", "-out", "ca.pem", "-subj", "/CN=test")
    made = {}
    for name in ("cell", "seat"):
        openssl(
            "req", *key, "-keyout", f"{name}.key", "-out", f"{name}.csr", "-subj", f"/CN={name}"
        )
        ca = ["-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-extfile", "names"]
        openssl("x509", "-req", "-in", f"{name}.csr", *ca, "-out", f"{name}.pem")
        made[name] = Tls(
            authority=folder / "ca.pem",
            certificate=folder / f"{name}.pem",
            key=folder / f"{name}.key",
        )
    return made


needs_openssl = pytest.mark.skipif(shutil.which("openssl") is None, reason="no openssl here")


@needs_openssl
@pytest.mark.parametrize("protocol", ["tls", "quic"])
def test_seat_and_cell_meet_with_certificates_of_one_authority(protocol: str, tmp_path: Path):
    ours = authority(tmp_path / "ours")
    endpoint = loopback_endpoint().replace("tcp/127.0.0.1", f"{protocol}/localhost")
    line = Line(endpoint, ours["cell"], ours["seat"])
    line.connect()
    line.close()


@needs_openssl
def test_a_seat_with_a_certificate_of_another_authority_stays_outside(tmp_path: Path):
    ours, theirs = authority(tmp_path / "ours"), authority(tmp_path / "theirs")["seat"]
    forged = Tls(authority=ours["seat"].authority, certificate=theirs.certificate, key=theirs.key)
    endpoint = loopback_endpoint().replace("tcp/127.0.0.1", "tls/localhost")
    line = Line(endpoint, ours["cell"], forged)
    assert not line.until(lambda: line.heard[-1].operator is not None, NS_PER_S)
    line.close()
