"""The line between seat and cell over Eclipse Zenoh: explicit endpoints, no scouting.

Without certificates both ends stay on loopback; beyond it TLS or QUIC is required, and both sides
must show a certificate signed by the installation's own authority.

Every `put` from the cycle drops when a queue is full and never waits; what must arrive is repeated
by the ends. Only big things wait, in a thread of their own. Received messages sit in Zenoh's rings,
filled without Python: 32 poses and not one, so that a cell that was busy can tell poses that it did
not fetch in time from poses that were lost; the receiver takes the newest all the same.
"""

from __future__ import annotations

import ipaddress
import json
import queue
import re
import secrets
import socket
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import zenoh

from brain.errors import ConfigError, LinkError
from hardware.link import CELL_TO_SEAT, SEAT_TO_CELL, CellLink, Channel
from hardware.seat_link import SeatLink
from hardware.wire import HEADER_SIZE, PAYLOAD_MAX

_ENDPOINT = re.compile(r"(tcp|tls|quic)/([A-Za-z0-9.-]+|\[[0-9A-Fa-f:]+\]):(\d{1,5})")
_CELL = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
_MESSAGE_MAX = HEADER_SIZE + max(PAYLOAD_MAX.values()) + 4096  # and Zenoh's own frame
_CLOSE_TIMEOUT_S = 1.0


_BUFFERS = 16  # the most that Zenoh allows
_QUEUES = ("real_time", "interactive_high", "interactive_low", "data_high", "data", "data_low")


class _Quality(NamedTuple):
    """How a channel travels: its priority, whether the transport repeats it, how many are kept."""

    priority: str
    reliable: bool
    ring: int


_QUALITY: dict[Channel, _Quality] = {
    "stop": _Quality("REAL_TIME", True, 32),
    "pose": _Quality("INTERACTIVE_HIGH", False, 32),
    "ping": _Quality("INTERACTIVE_HIGH", False, 8),
    "pong": _Quality("INTERACTIVE_HIGH", False, 8),
    "status": _Quality("INTERACTIVE_LOW", False, 1),
    "intent": _Quality("DATA_HIGH", True, 32),
    "want": _Quality("DATA", True, 8),
    "bulk": _Quality("DATA_LOW", True, 4),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Tls:
    """PEM files: the installation's authority, this side's certificate and its private key."""

    authority: Path
    certificate: Path
    key: Path


def open_cell(cell: str, endpoint: str, tls: Tls | None = None) -> CellLink:
    """Listen for seats at an endpoint such as `tcp/127.0.0.1:7447`.

    Raises:
        ConfigError: endpoint, cell name or certificates are not acceptable.
        LinkError: the endpoint cannot be listened on.
    """
    session = _open(_config(endpoint, tls, listen=True), endpoint)
    return CellLink(ZenohPipe(session, cell, CELL_TO_SEAT, SEAT_TO_CELL), secrets.randbits(32))


def open_seat(
    cell: str, endpoint: str, tls: Tls | None = None, want_scene: bool = False
) -> SeatLink:
    """Connect to a cell; returns at once and goes on trying, from every 0.1 s to every 2 s.

    Raises:
        ConfigError: endpoint, cell name or certificates are not acceptable.
    """
    session = _open(_config(endpoint, tls, listen=False), endpoint)
    pipe = ZenohPipe(session, cell, SEAT_TO_CELL, CELL_TO_SEAT)
    return SeatLink(pipe, secrets.randbits(32), want_scene)


def loopback_endpoint() -> str:
    """Return an endpoint on loopback with a port that is free now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"tcp/127.0.0.1:{probe.getsockname()[1]}"


class ZenohPipe:
    """One end of a line over a Zenoh session, which it owns."""

    def __init__(
        self,
        session: Any,
        cell: str,
        sends: tuple[Channel, ...],
        hears: tuple[Channel, ...],
    ) -> None:
        if _CELL.fullmatch(cell) is None:
            session.close()
            raise ConfigError(f"cell: {cell!r}, allowed are letters, digits, _ and -")
        self._session = session
        self._publishers = {
            channel: session.declare_publisher(
                f"forearm/{cell}/{channel}",
                priority=getattr(zenoh.Priority, _QUALITY[channel].priority),
                express=True,
                reliability=zenoh.Reliability.RELIABLE
                if _QUALITY[channel].reliable
                else zenoh.Reliability.BEST_EFFORT,
                congestion_control=zenoh.CongestionControl.BLOCK
                if channel == "bulk"
                else zenoh.CongestionControl.DROP,
            )
            for channel in sends
        }
        self._rings = {
            channel: session.declare_subscriber(
                f"forearm/{cell}/{channel}", zenoh.handlers.RingChannel(_QUALITY[channel].ring)
            )
            for channel in hears
        }
        self._bulk: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._bulk_thread: threading.Thread | None = None
        if "bulk" in self._publishers:
            self._bulk_thread = threading.Thread(target=self._send_bulk, daemon=True)
            self._bulk_thread.start()

    def put(self, channel: Channel, data: bytes) -> None:
        """Send, or drop."""
        if channel == "bulk":
            self._bulk.put(data)
        else:
            self._publishers[channel].put(data)

    def take(self, channel: Channel) -> list[bytes]:
        """Return what has arrived since the last call, at most a ring full."""
        out: list[bytes] = []
        ring = self._rings[channel]
        for _ in range(_QUALITY[channel].ring):
            sample = ring.try_recv()
            if sample is None:
                break
            out.append(sample.payload.to_bytes())
        return out

    def close(self) -> None:
        """Close the session; what waits to be sent is dropped."""
        if self._bulk_thread is not None:
            self._bulk.put(None)
            self._bulk_thread.join(_CLOSE_TIMEOUT_S)
            self._bulk_thread = None
        self._session.close()

    def _send_bulk(self) -> None:
        while (data := self._bulk.get()) is not None:
            self._publishers["bulk"].put(data)


def _open(config: dict[str, Any], endpoint: str) -> Any:
    try:
        return zenoh.open(zenoh.Config.from_json5(json.dumps(config)))
    except zenoh.ZError as error:
        raise LinkError(f"endpoint {endpoint}: {error}") from None


def _config(endpoint: str, tls: Tls | None, *, listen: bool) -> dict[str, Any]:
    """Return a Zenoh configuration that opens this endpoint and nothing else."""
    protocol = _check_endpoint(endpoint, tls)
    ends: dict[str, Any] = {
        "listen": {"endpoints": [endpoint] if listen else [], "exit_on_failure": True},
        "connect": {
            "endpoints": [] if listen else [endpoint],
            "timeout_ms": -1,  # for ever, in the background
            "exit_on_failure": False,
            "retry": {
                "period_init_ms": 100,
                "period_max_ms": 2000,
                "period_increase_factor": 2,
            },
        },
    }
    link: dict[str, Any] = {
        "protocols": [protocol],
        "rx": {"max_message_size": _MESSAGE_MAX},
        "tx": {
            "queue": {
                # An express message takes a buffer to itself; with the usual two, a third message
                # would be dropped before the sending thread wakes.
                "size": dict.fromkeys(_QUEUES, _BUFFERS),
                "congestion_control": {
                    "drop": {"wait_before_drop": 0, "max_wait_before_drop_fragments": 0}
                },
            }
        },
    }
    if tls is not None:
        link["tls"] = {
            "root_ca_certificate": str(tls.authority),
            "listen_certificate": str(tls.certificate),
            "listen_private_key": str(tls.key),
            "connect_certificate": str(tls.certificate),
            "connect_private_key": str(tls.key),
            "enable_mtls": True,
            "verify_name_on_connect": True,
        }
    return {
        "mode": "peer",
        **ends,
        "scouting": {"delay": 0, "multicast": {"enabled": False}, "gossip": {"enabled": False}},
        # Zenoh's shared memory would make a file in /dev/shm that a killed process leaves behind.
        "transport": {"link": link, "shared_memory": {"enabled": False}},
    }


def _check_endpoint(endpoint: str, tls: Tls | None) -> str:
    """Return the protocol of an endpoint that may be used."""
    match = _ENDPOINT.fullmatch(endpoint)
    if match is None or not 1 <= int(match[3]) <= 65535:
        raise ConfigError(f"endpoint: {endpoint!r}, must be like tcp/127.0.0.1:7447")
    protocol, host = match[1], match[2].strip("[]")
    if tls is None and protocol != "tcp":
        raise ConfigError(f"endpoint: {endpoint!r} needs certificates (tls)")
    if tls is None and not _is_loopback(host):
        raise ConfigError(
            f"endpoint: {endpoint!r} leaves this machine; use tls/ or quic/ with certificates"
        )
    if tls is not None and protocol == "tcp":
        raise ConfigError(f"endpoint: {endpoint!r} would not use the certificates given")
    if tls is not None:
        for name in ("authority", "certificate", "key"):
            path: Path = getattr(tls, name)
            if not path.is_file():
                raise ConfigError(f"tls.{name}: {path} is not a file")
    return protocol


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
