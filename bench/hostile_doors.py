"""Attacks on the doors of a broker: who is let in, TLS, gRPC, the replication stream.

`hostile` plays them beside an innocent client, as the others. What is done at full rate is done for
some seconds by several connections that read and drop the replies; what the broker takes a second
is the load that it held.
"""

from __future__ import annotations

import contextlib
import select
import socket
import ssl
import struct
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import hpack

from bench.brokers import Node, free_port
from bench.load import FIRST_OPAQUE, frame, send_fields
from sprocket.protocol.signing import Signer
from sprocket.proxy.http2 import frames as wire
from tests.certificates import Authority

SECONDS = 5.0
TOPIC = "BenchInnocent"
ADMIN = Signer("bench-admin", "bench-secret-key")
#: Connections that attack at full rate.
_LINES = 8
_BLOCK_BYTES = 64 << 10


class Attack(Protocol):
    """What a case gets to attack with."""

    node: Node

    def connect(self, port: int | None = None) -> socket.socket: ...

    def write(self, data: bytes, line: socket.socket | None = None) -> None: ...


def asked(code: int, fields: dict[str, str], body: bytes = b"") -> bytes:
    """A whole request."""
    head, tail = frame(code, fields, body)
    return b"%b%d%b" % (head, FIRST_OPAQUE, tail)


def flood(attack: Attack, requests: Sequence[bytes], port: int | None = None) -> float:
    """Writes requests at full rate and drops the replies. Returns how many were taken a second.

    A connection that the broker closes is made again.
    """
    block = b"".join(requests)
    times = max(1, _BLOCK_BYTES // len(block))
    block, count = block * times, len(requests) * times
    lines: dict[socket.socket, int] = {}
    ends, taken = time.monotonic() + SECONDS, 0.0
    while time.monotonic() < ends:
        while len(lines) < _LINES:
            with contextlib.suppress(OSError):
                line = attack.connect(port)
                line.setblocking(False)
                lines[line] = 0
        readable, writable, _ = select.select(lines, lines, [], 0.1)
        for line in {*readable, *writable}:
            try:
                if line in readable and not line.recv(1 << 20):
                    raise ConnectionResetError
                if line in writable:
                    written = line.send(block[lines[line] :])
                    taken += count * written / len(block)
                    lines[line] = (lines[line] + written) % len(block)
            except BlockingIOError:
                continue
            except OSError:
                lines.pop(line)
                line.close()
    return taken / SECONDS


# A closed broker.


def closed(folder: Path) -> list[str]:
    """A broker that checks who asks, and what they may do."""
    user = f'{{"username":"{ADMIN.access_key}","password":"{ADMIN.secret_key}"}}'
    settings = ("broker.authentication=true", "broker.authorization=true")
    return [f"--set={each}" for each in (*settings, f"broker.first_user={user}")]


def unsigned_sends(attack: Attack) -> float:
    """Sends without a signature, at full rate."""
    return flood(attack, [asked(310, send_fields(TOPIC, 0), b"x" * 64)])


def wrong_signatures(attack: Attack) -> float:
    """Sends with the signature of another key, by a user that there is, at full rate."""
    wrong = Signer(ADMIN.access_key, "another-key")
    body = b"x" * 64
    return flood(attack, [asked(310, wrong.signed(send_fields(TOPIC, 0), body), body)])


def unknown_users(attack: Attack) -> float:
    """Pulls, heartbeats and questions by users that there are not, at full rate."""
    requests = []
    for number in range(64):
        signer = Signer(f"nobody{number}", "key")
        for code, fields in ((11, {"topic": TOPIC}), (34, {}), (21, {}), (28, {})):
            requests.append(asked(code, signer.signed(fields)))
    return flood(attack, requests)


def user_requests(attack: Attack) -> float:
    """Requests about users and policies: unsigned, wrongly signed, and with broken bodies."""
    requests = []
    for code in range(3001, 3011):
        fields = {"username": "x", "subject": "User:x", "filter": "a" * 100, "resource": "Topic:*"}
        for body in (b"{}", b'{"username":"x","password":"y"}', b"[" * 500, b"{" * 20_000):
            requests.append(asked(code, fields, body))
            requests.append(asked(code, Signer("x", "y").signed(fields, body), body))
    return flood(attack, requests)


def signed_user_requests(attack: Attack) -> float:
    """A super user who makes users and policies, each with a new name, at full rate."""
    requests = []
    for number in range(500):
        body = b'{"username":"u%d","password":"secret%d","userType":"Normal"}' % (number, number)
        requests.append(asked(3001, ADMIN.signed({"username": f"u{number}"}, body), body))
        policy = (
            b'{"subject":"User:u%d","policies":[{"policyType":"Custom","entries":[{"resource":'
            b'"Topic:t%d","actions":["Pub"],"decision":"Allow"}]}]}' % (number, number)
        )
        fields = {"subject": f"User:u{number}"}
        requests.append(asked(3006, ADMIN.signed(fields, policy), policy))
    return flood(attack, requests)


# TLS.


def with_tls(folder: Path) -> list[str]:
    """A broker with a certificate."""
    issued = Authority(folder / "authority").issue("node")
    return [f"--set=tls.certificate={issued.certificate}", f"--set=tls.key={issued.key}"]


def client_hello() -> bytes:
    """The first flight of a client."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    with contextlib.suppress(ssl.SSLWantReadError):
        context.wrap_bio(incoming, outgoing, server_hostname="localhost").do_handshake()
    return outgoing.read()


def half_open(attack: Attack) -> float:
    """2,000 connections that send half of a greeting, and 2,000 that send it whole and stop."""
    hello, began = client_hello(), time.monotonic()
    for number in range(4_000):
        attack.write(hello[: len(hello) // 2] if number % 2 else hello)
    return 4_000 / (time.monotonic() - began)


def handshakes(attack: Attack) -> float:
    """Greetings at full rate, each over a connection of its own that is closed at once."""
    hello, ends, count = client_hello(), time.monotonic() + SECONDS, 0
    while time.monotonic() < ends:
        with contextlib.suppress(OSError):
            line = attack.connect()
            line.sendall(hello)
            line.close()
            count += 1
    return count / SECONDS


# The gRPC port.


class GrpcDoor:
    """A node whose proxy listens at a port that is known beforehand."""

    def __init__(self) -> None:
        self.port = 0

    def __call__(self, folder: Path) -> list[str]:
        """The options of the node."""
        self.port = free_port()
        return ["--grpc-port", str(self.port)]


GRPC = GrpcDoor()
HELLO = wire.PREFACE + wire.settings_frame({})


def headers(method: str = "QueryRoute", **more: str) -> bytes:
    """The header block of a call."""
    encoder = hpack.Encoder()
    encoder.header_table_size = 0
    path = f"/apache.rocketmq.v2.MessagingService/{method}"
    fields = [
        (":method", "POST"), (":scheme", "http"), (":path", path), (":authority", "here"),
        ("te", "trailers"), ("content-type", "application/grpc"), *more.items(),
    ]  # fmt: skip
    return bytes(encoder.encode(fields))


def message(content: bytes) -> bytes:
    """A message of a call."""
    return struct.pack(">BI", 0, len(content)) + content


def half_grpc_frames(attack: Attack) -> float:
    """500 connections that send the head of a large frame and most of it, and then nothing."""
    head = struct.pack(">HBBBI", 16_384 >> 8, 16_384 & 0xFF, wire.HEADERS, 0, 1)
    began = time.monotonic()
    for _ in range(500):
        attack.write(HELLO + head + bytes(16_000), attack.connect(GRPC.port))
    return 500 / (time.monotonic() - began)


def continuations(attack: Attack) -> float:
    """Header blocks that never end, in many small frames, at full rate."""
    begin = HELLO + wire.frame(wire.HEADERS, 0, 1, headers())
    endless = wire.frame(wire.CONTINUATION, 0, 1, b"") * 4_000
    return flood(attack, [begin + endless], GRPC.port) * 4_000


def rapid_resets(attack: Attack) -> float:
    """Calls that are reset at once, at full rate."""
    block, parts = headers(), [HELLO]
    for number in range(1, 8_000, 2):
        parts.append(wire.frame(wire.HEADERS, 4, number, block))
        parts.append(wire.frame(wire.RST_STREAM, 0, number, struct.pack(">I", 8)))
    return flood(attack, [b"".join(parts)], GRPC.port) * 4_000


def tiny_windows(attack: Attack) -> float:
    """200 connections of 500 calls whose windows take one byte, and nobody reads."""
    hello = wire.PREFACE + wire.settings_frame({4: 1})
    block, content = headers(), message(b"")
    began = time.monotonic()
    for _ in range(200):
        parts = [hello]
        for number in range(1, 1_000, 2):
            parts.append(wire.frame(wire.HEADERS, 4, number, block))
            parts.append(wire.frame(wire.DATA, 1, number, content))
        attack.write(b"".join(parts), attack.connect(GRPC.port))
    return 100_000 / (time.monotonic() - began)


def many_streams(attack: Attack) -> float:
    """100 connections that open 5,000 calls each and send no message."""
    block, began = headers("ReceiveMessage"), time.monotonic()
    streams = b"".join(wire.frame(wire.HEADERS, 4, number, block) for number in range(1, 10_000, 2))
    for _ in range(100):
        attack.write(HELLO + streams, attack.connect(GRPC.port))
    return 500_000 / (time.monotonic() - began)


# The replication stream.


def _slaves_port(attack: Attack) -> int:
    return attack.node.broker_port + 1


def fake_slaves(attack: Attack) -> float:
    """1,000 connections that ask for the log from its beginning, and read nothing."""
    began = time.monotonic()
    for _ in range(1_000):
        attack.write(struct.pack(">q", 0), attack.connect(_slaves_port(attack)))
    return 1_000 / (time.monotonic() - began)


def fake_reports(attack: Attack) -> float:
    """Reports of a log that there is not, at full rate: high ones, low ones, rising ones."""
    numbers = [(1 << 62) + at for at in range(1_000)] + list(range(0, 100_000, 100))
    reports = b"".join(struct.pack(">q", number) for number in numbers)
    return flood(attack, [reports], _slaves_port(attack)) * len(numbers)
