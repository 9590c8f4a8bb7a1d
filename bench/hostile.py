"""What one hostile peer costs an innocent client: how long that waits, and the broker's memory.

Each case is played at a broker of its own, beside a client that sends 64 B every 5 ms over its own
connection. The aim: it waits less than 50 ms in 99 of 100 sends, and the broker grows by less than
200 MiB. What needs more than a connection is not here: filters in Python, full disks.
"""

from __future__ import annotations

import contextlib
import json
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from bench import hostile_doors as doors
from bench import hostile_floods as floods
from bench.brokers import Node, create_topic, sprocket_node
from bench.figures import P50, P99, Figure, Report, Sample, cpu_seconds, resident_mib
from bench.innocent import TOPIC as INNOCENT
from bench.load import FIRST_OPAQUE, drive, frame, pull_fields, send_fields

HELD = Figure("attacks taken", "/s", True)
LONGEST = Figure("longest wait", "ms", False)
BROKER_CPU = Figure("broker CPU", "s", False)
GROWTH = Figure("memory growth, most", "MiB", False)

WIDE = "BenchWide"
_PREFIX = struct.Struct(">ii")
#: The broker is at rest when it used less CPU than this in a second; the longest wait for that, s.
_REST_CPU, _REST_SECONDS = 0.15, 60.0


class Attacker:
    """Raw connections to one broker; they stay open until the case ends."""

    def __init__(self, node: Node) -> None:
        self.node = node
        self.lines: list[socket.socket] = []

    def connect(self, port: int | None = None) -> socket.socket:
        """A new connection that gives up a blocked write after a second."""
        line = socket.create_connection(("127.0.0.1", port or self.node.broker_port))
        line.settimeout(1.0)
        self.lines.append(line)
        return line

    def write(self, data: bytes, line: socket.socket | None = None) -> None:
        """Writes as much as the broker takes; a broker that reads no more, or closes, is right."""
        with contextlib.suppress(OSError):
            (line or self.connect()).sendall(data)

    def close(self) -> None:
        """Hangs up everywhere at once."""
        for line in self.lines:
            line.close()
        self.lines = []


@dataclass(frozen=True, slots=True)
class Case:
    """One attack: what is there before, and what is done.

    Attributes:
        play: attacks; gives what the broker took a second, if that is known.
        options: of the node.
        is_closed: whether the innocent client must sign its requests.
    """

    name: str
    play: Callable[[Attacker], float | None]
    prepare: Callable[[Node], None] = lambda node: None
    options: Callable[[Path], Sequence[str]] = lambda folder: ()
    is_closed: bool = False


def asked(code: int, fields: dict[str, str], body: bytes = b"", number: int = 0) -> bytes:
    """A whole request."""
    head, tail = frame(code, fields, body)
    return b"%b%d%b" % (head, FIRST_OPAQUE + number, tail)


def raw(header: bytes, serialization: int = 0) -> bytes:
    """A frame with a header that is written already, and no body."""
    return _PREFIX.pack(4 + len(header), serialization << 24 | len(header)) + header


# What is there before.


def wide_topic(node: Node) -> None:
    """A topic with as many queues as are allowed."""
    create_topic(node, WIDE, 16_384)


def many_topics(node: Node) -> None:
    """6,000 topics."""
    fields = {
        "defaultTopic": "TBW102", "readQueueNums": "1", "writeQueueNums": "1", "perm": "6",
        "topicFilterType": "SINGLE_TAG", "topicSysFlag": "0", "order": "false",
    }  # fmt: skip
    requests = [frame(17, {**fields, "topic": f"BenchOne{number}"}) for number in range(6_000)]
    drive(node.broker_port, requests, total=6_000, in_flight=256)


# The attacks.


def topic_stats(attacker: Attacker) -> None:
    """64 times the figures of 16,384 queues, in one write."""
    attacker.write(asked(202, {"topic": WIDE}) * 64)


def conditions(attacker: Attacker) -> None:
    """64 pulls, each with an SQL92 condition of 120 comparisons that the broker does not know."""
    for_all = {**pull_fields(INNOCENT, 0, 0, 1), "expressionType": "SQL92"}
    requests = []
    for number in range(64):
        condition = " OR ".join(f"a{at}={number}" for at in range(120))
        requests.append(asked(11, {**for_all, "subscription": condition}))
    attacker.write(b"".join(requests))


def batches(attacker: Attacker) -> None:
    """40 batches of 3,000 messages, in one write."""
    message = struct.pack(">iiiii", 31, 0, 0, 0, 9) + b"x" * 9 + struct.pack(">h", 0)[:2]
    message = struct.pack(">i", len(message)) + message[4:]
    fields = {**send_fields(INNOCENT, 0), "m": "true"}
    attacker.write(asked(320, fields, message * 3_000) * 40)


def lenient_heartbeats(attacker: Attacker) -> None:
    """300 heartbeats of 60 KiB in fastjson's dialect; those above 128 KiB are refused unread."""
    groups = ",".join(f"{{groupName:'BenchSame{at % 8}'}}" for at in range(2_400))
    body = f"{{clientID:'hostile',producerDataSet:[{groups}]}}".encode()
    attacker.write(asked(34, {}, body) * 300)


def lenient_headers(attacker: Attacker) -> None:
    """50 headers of 255 KiB in the same."""
    fields = ",".join(f"'field{at}':'{at}'" for at in range(11_500))
    attacker.write(raw(f"{{'code':105,'opaque':1,'extFields':{{{fields}}}}}".encode()) * 50)


def unasked_replies(attacker: Attacker) -> None:
    """32 MiB of replies that nobody waits for."""
    reply = raw(b'{"code":0,"flag":1,"opaque":1,"extFields":{"a":"b"}}')
    attacker.write(reply * ((32 << 20) // len(reply)))


def held_pulls(attacker: Attacker) -> None:
    """16,000 pulls are held and stay; 8,000 beside them hang up, three times."""
    fields = {**pull_fields(INNOCENT, 7, 0, 1), "sysFlag": "6", "suspendTimeoutMillis": "60000"}
    pull = asked(11, fields)
    attacker.write(pull * 16_000)
    for _ in range(3):
        line = attacker.connect()
        attacker.write(pull * 8_000, line)
        time.sleep(1.0)
        line.close()


def unread_listings(attacker: Attacker) -> None:
    """1,000 listings of all topics in one write; no reply is ever read."""
    attacker.write(asked(21, {}) * 1_000)


def unread_pulls(attacker: Attacker) -> None:
    """5 connections that pull all there is 2,000 times and read nothing."""
    drive_messages(attacker.node)
    for _ in range(5):
        attacker.write(asked(11, pull_fields("BenchLarge", 0, 0, 32)) * 2_000)


def drive_messages(node: Node) -> None:
    """Messages for `unread_pulls`."""
    requests = [frame(310, send_fields("BenchLarge", 0), b"x" * 32_000)]
    drive(node.broker_port, requests, total=64)


def many_fields(attacker: Attacker) -> None:
    """One binary header of 9 MB with a million fields."""
    field = struct.pack(">h", 1) + b"a" + struct.pack(">i", 2) + b"bc"
    fields = field * 1_000_000
    header = struct.pack(">hBhiii", 105, 0, 479, 1, 0, 0) + struct.pack(">i", len(fields)) + fields
    attacker.write(raw(header, 1))


def half_frames(attacker: Attacker) -> None:
    """40 connections that send 16 MB less 100 bytes, and then nothing."""
    part = _PREFIX.pack(16_000_000, 100) + bytes(16_000_000 - 100)
    for _ in range(40):
        attacker.write(part)


def commits(attacker: Attacker) -> None:
    """300,000 one-way commits to queues that do not exist, then listings of all offsets."""
    fields = {"consumerGroup": "BenchGone", "topic": INNOCENT, "commitOffset": "1"}
    line = attacker.connect()
    line.settimeout(20.0)
    for first in range(0, 300_000, 10_000):
        requests = (
            asked(15, {**fields, "queueId": str(2_000_000_000 - number)})
            for number in range(first, first + 10_000)
        )
        attacker.write(b"".join(requests).replace(b'"flag":0', b'"flag":2'), line)
    attacker.write(asked(43, {}) * 20, line)


def many_groups(attacker: Attacker) -> None:
    """20 heartbeats with 1,000 consumer groups each."""
    for number in range(20):
        groups = [
            {
                "groupName": f"BenchGroup{number}x{at}",
                "consumeType": "CONSUME_PASSIVELY",
                "messageModel": "CLUSTERING",
                "consumeFromWhere": "CONSUME_FROM_LAST_OFFSET",
                "subscriptionDataSet": [],
            }
            for at in range(1_000)
        ]
        body = {"clientID": f"hostile{number}", "consumerDataSet": groups, "producerDataSet": []}
        attacker.write(asked(34, {}, json.dumps(body).encode()))


def many_members(attacker: Attacker) -> None:
    """1,000 members of one group come, then all hang up."""
    group = {
        "groupName": "BenchCrowd",
        "consumeType": "CONSUME_PASSIVELY",
        "messageModel": "CLUSTERING",
        "consumeFromWhere": "CONSUME_FROM_LAST_OFFSET",
        "subscriptionDataSet": [],
    }
    for number in range(1_000):
        body = {"clientID": f"member{number}", "consumerDataSet": [group], "producerDataSet": []}
        attacker.write(asked(34, {}, json.dumps(body).encode()))
    time.sleep(2.0)
    attacker.close()


def long_requests(attacker: Attacker) -> None:
    """40 peers that ask for the figures of 16,384 queues again and again, each one at a time."""
    requests = [frame(202, {"topic": WIDE})]
    drive(attacker.node.broker_port, requests, total=120, connections=40, in_flight=40)


def new_topics(attacker: Attacker) -> None:
    """64 sends to 64 new topics, in one write."""
    sends = (asked(310, send_fields(f"BenchNew{at}", 0), b"x") for at in range(64))
    attacker.write(b"".join(sends))


CASES = (
    Case("nobody else", lambda attacker: time.sleep(2.0)),
    Case("64 topic stats of 16,384 queues", topic_stats, wide_topic),
    Case("64 pulls with new conditions", conditions),
    Case("40 batches of 3,000 messages", batches),
    Case("300 heartbeats of 60 KiB in fastjson's dialect", lenient_heartbeats),
    Case("50 headers of 255 KiB in fastjson's dialect", lenient_headers),
    Case("32 MiB of replies that nobody asked for", unasked_replies),
    Case("24,000 held pulls, 8,000 hang up, three times", held_pulls),
    Case("1,000 listings of 6,000 topics, unread", unread_listings, many_topics),
    Case("10,000 pulls of 1 MiB, unread", unread_pulls),
    Case("a header with a million fields", many_fields),
    Case("40 incomplete frames of 16 MB", half_frames),
    Case("300,000 commits to queues that are not there", commits),
    Case("20,000 groups in 20 heartbeats", many_groups),
    Case("1,000 members come and go", many_members),
    Case("64 new topics in one write", new_topics),
    Case("256 sends in flight on 4 connections", floods.sends(4, 256), floods.topic),
    Case("256 sends in flight on 1 connection", floods.sends(1, 256), floods.topic),
    Case("512 sends in flight on 64 connections", floods.sends(64, 512), floods.topic),
    Case("256 pulls in flight on 4 connections", floods.pulls, floods.topic),
    Case("256 pops in flight on 4 connections", floods.pops, floods.topic),
    Case("256 questions for a route in flight", floods.routes, floods.topic),
    Case("gRPC: whole calls at full rate", floods.grpc_calls, floods.topic, doors.GRPC),
    Case("40 peers with long requests", long_requests, wide_topic),
    Case("closed: nobody else", lambda attacker: time.sleep(2.0), options=doors.closed,
         is_closed=True),
    Case("closed: unsigned sends at full rate", doors.unsigned_sends, options=doors.closed,
         is_closed=True),
    Case("closed: wrong signatures at full rate", doors.wrong_signatures, options=doors.closed,
         is_closed=True),
    Case("closed: unknown users at full rate", doors.unknown_users, options=doors.closed,
         is_closed=True),
    Case("closed: user and policy requests of strangers", doors.user_requests,
         options=doors.closed, is_closed=True),
    Case("closed: a super user who makes users at full rate", doors.signed_user_requests,
         options=doors.closed, is_closed=True),
    Case("TLS: 4,000 half-open handshakes", doors.half_open, options=doors.with_tls),
    Case("TLS: greetings at full rate", doors.handshakes, options=doors.with_tls),
    Case("gRPC: 500 half frames", doors.half_grpc_frames, options=doors.GRPC),
    Case("gRPC: CONTINUATION frames at full rate", doors.continuations, options=doors.GRPC),
    Case("gRPC: calls that are reset at full rate", doors.rapid_resets, options=doors.GRPC),
    Case("gRPC: 100,000 calls with tiny windows", doors.tiny_windows, options=doors.GRPC),
    Case("gRPC: 500,000 calls without a message", doors.many_streams, options=doors.GRPC),
    Case("replication: 1,000 slaves that read nothing", doors.fake_slaves),
    Case("replication: false reports at full rate", doors.fake_reports),
)  # fmt: skip


def measure(case: Case, folder: Path) -> Sample:
    """Plays one case at a broker of its own."""
    folder.mkdir(parents=True, exist_ok=True)
    with sprocket_node(folder, *case.options(folder)) as node:
        signer = doors.ADMIN if case.is_closed else None
        create_topic(node, INNOCENT, 8, signer)
        case.prepare(node)
        time.sleep(1.0)
        command = [sys.executable, "-m", "bench.innocent", str(node.broker_port)]
        if signer is not None:
            command += [signer.access_key, signer.secret_key]
        before = resident_mib(node.pid)["anonymous"]
        with subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as innocent:
            assert innocent.stdout is not None
            innocent.stdout.readline()
            attacker, cpu = Attacker(node), cpu_seconds(node.pid)
            held = case.play(attacker)
            most = until_at_rest(node)
            spent = cpu_seconds(node.pid) - cpu
            written, _ = innocent.communicate("")
            attacker.close()
    waits = sorted(json.loads(written))
    return {
        **({} if held is None else {HELD: held}),
        P50: waits[len(waits) // 2] * 1e3,
        P99: waits[len(waits) * 99 // 100] * 1e3,
        LONGEST: waits[-1] * 1e3,
        BROKER_CPU: spent,
        GROWTH: most - before,
    }


def until_at_rest(node: Node) -> float:
    """Waits until the broker has little to do; the most memory that it had meanwhile, in MiB."""
    ends = time.monotonic() + _REST_SECONDS
    most = 0.0
    while time.monotonic() < ends:
        cpu = cpu_seconds(node.pid)
        for _ in range(10):
            most = max(most, resident_mib(node.pid)["anonymous"])
            time.sleep(0.1)
        if cpu_seconds(node.pid) - cpu < _REST_CPU:
            break
    return most


def main(
    console: Console, folder: Path, *, quick: bool, rounds: int, cases: Sequence[Case] = CASES
) -> None:
    """Prints the table of attacks."""
    report = Report("an innocent client beside a hostile peer", ["sprocket"])
    for case in cases:
        console.log(case.name)
        samples = [
            measure(case, folder / f"{case.name.replace(',', '')[:24]}-{at}")
            for at in range(1 if quick else rounds)
        ]
        report.add(case.name, {"sprocket": samples})
    report.show(console)
