"""A load generator that costs little: one block of prepared frames, raw sockets, one process.

It speaks to any RocketMQ broker and knows nothing of Sprocket, so both sides of a comparison get
the same bytes. Each frame carries its place in the block as its opaque. A connection goes round
the block: what is to be sent is a slice of it, so a read with many replies costs one `send`. Every
reply is matched to its request and its code is looked at.
"""

from __future__ import annotations

import json
import select
import socket
import struct
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate

#: Opaque of a block's first frame: eight digits from beginning to end, so frames keep their length.
FIRST_OPAQUE = 10_000_000
_OPAQUE = b'"opaque":'
#: Begins the header of every reply that says yes, ours and Java's: keys are sorted.
_ACCEPTED = b'{"code":0,'
_PREFIX = struct.Struct(">ii")
_READ_BYTES = 1 << 20


def frame(code: int, fields: dict[str, str], body: bytes = b"") -> tuple[bytes, bytes]:
    """The two halves of a request frame, around its eight-digit opaque."""
    header = json.dumps(
        {
            "code": code,
            "extFields": fields,
            "flag": 0,
            "language": "JAVA",
            "opaque": FIRST_OPAQUE,
            "serializeTypeCurrentRPC": "JSON",
            "version": 479,
        },
        separators=(",", ":"),
    ).encode()
    whole = _PREFIX.pack(4 + len(header) + len(body), len(header)) + header + body
    at = whole.index(_OPAQUE) + len(_OPAQUE)
    return whole[:at], whole[at + 8 :]


def send_fields(topic: str, queue: int, number: int = 1) -> dict[str, str]:
    """Header fields of a send in the short form (310); the number makes its unique key."""
    key = f"7F00000100002A9F0000{number:012X}"
    return {
        "a": "bench_producer",
        "b": topic,
        "c": "TBW102",
        "d": "8",
        "e": str(queue),
        "f": "0",
        "g": str(int(time.time() * 1000)),
        "h": "0",
        "i": f"UNIQ_KEY\x01{key}\x02WAIT\x01true\x02TAGS\x01paid\x02",
        "j": "0",
        "k": "false",
        "m": "false",
        "n": "bench",
    }


def pull_fields(topic: str, queue: int, offset: int, count: int) -> dict[str, str]:
    """Header fields of a pull (11) that never waits."""
    return {
        "consumerGroup": "bench_consumer",
        "topic": topic,
        "queueId": str(queue),
        "queueOffset": str(offset),
        "maxMsgNums": str(count),
        "sysFlag": "4",
        "commitOffset": "0",
        "suspendTimeoutMillis": "0",
        "subscription": "*",
        "subVersion": "0",
        "expressionType": "TAG",
    }


class Block:
    """Frames one after the other. Number n is frame n modulo their count, with that as opaque."""

    def __init__(self, halves: Sequence[tuple[bytes, bytes]]) -> None:
        frames = [
            b"%b%d%b" % (head, FIRST_OPAQUE + place, tail)
            for place, (head, tail) in enumerate(halves)
        ]
        self.count = len(frames)
        self._bytes = memoryview(b"".join(frames))
        self._starts = list(accumulate(map(len, frames), initial=0))

    def slices(self, first: int, count: int) -> Iterator[memoryview]:
        """The frames from number `first` on, in one piece or, past the end of the block, more."""
        while count:
            place = first % self.count
            taken = min(count, self.count - place)
            yield self._bytes[self._starts[place] : self._starts[place + taken]]
            first += taken
            count -= taken


@dataclass(slots=True)
class Outcome:
    """What one run saw."""

    answered: int = 0
    refused: int = 0
    body_bytes: int = 0
    seconds: float = 0.0
    #: Processor time of the generator itself.
    cpu_seconds: float = 0.0
    #: Seconds from writing a request to reading its answer.
    latencies: list[float] = field(default_factory=list)
    first_refusal: bytes = b""

    @property
    def per_second(self) -> float:
        return self.answered / self.seconds if self.seconds else 0.0

    def quantile_ms(self, share: float) -> float:
        """The latency that `share` of the answers kept, in ms."""
        ordered = sorted(self.latencies)
        return ordered[min(len(ordered) - 1, int(len(ordered) * share))] * 1000 if ordered else 0.0


class _Line:
    """One connection that keeps a fixed number of requests in flight until its share is done."""

    def __init__(self, port: int, block: Block, total: int, window: int, seen: Outcome) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._block = block
        self._total = total
        self._window = min(window, total, block.count)
        self._seen = seen
        self._sent = 0
        self._answered = 0
        #: When the frame at each place of the block was sent; 0 while it is not in flight.
        self._started = [0.0] * block.count
        self._rest = b""
        #: What the socket did not take yet.
        self.unsent: list[memoryview] = []

    @property
    def is_done(self) -> bool:
        return self._answered >= self._total

    def send(self) -> None:
        """Has as many requests sent as the window has room for.

        A request whose place in the block is still in flight waits, and those behind it.
        """
        now, started, frames = time.perf_counter(), self._started, self._block.count
        first = number = self._sent
        end = min(self._answered + self._window, self._total)
        while number < end and not started[number % frames]:
            started[number % frames] = now
            number += 1
        self._sent = number
        self.unsent += self._block.slices(first, number - first)
        self.write()

    def write(self) -> None:
        """Gives the socket what it takes."""
        while self.unsent:
            piece = self.unsent[0]
            try:
                written = self.socket.send(piece, socket.MSG_DONTWAIT)
            except BlockingIOError:
                return
            if written < len(piece):
                self.unsent[0] = piece[written:]
            else:
                del self.unsent[0]

    def read(self) -> None:
        """Takes the replies that are there, and sends as many requests."""
        data = self.socket.recv(_READ_BYTES)
        if not data:
            raise ConnectionResetError("the broker closed the connection")
        self._answered += self._take(self._rest + data if self._rest else data)
        if self._sent < self._total:
            self.send()

    def _take(self, data: bytes) -> int:
        """Settles each whole reply; how many there were."""
        at, size, now, answers = 0, len(data), time.perf_counter(), 0
        seen, started, settle = self._seen, self._started, self._seen.latencies.append
        while size - at >= 8:
            length, header = _PREFIX.unpack_from(data, at)
            if size - at < 4 + length:
                break
            end = at + 8 + (header & 0xFFFFFF)
            opaque_at = data.index(_OPAQUE, at + 8, end) + len(_OPAQUE)
            place = int(data[opaque_at : opaque_at + 8]) - FIRST_OPAQUE
            if not started[place]:
                raise RuntimeError(f"a reply to nothing: {data[at + 8 : end]!r}")
            settle(now - started[place])
            started[place] = 0.0
            if not data.startswith(_ACCEPTED, at + 8):
                seen.refused += 1
                seen.first_refusal = seen.first_refusal or data[at + 8 : end]
            at += 4 + length
            seen.body_bytes += at - end
            answers += 1
        self._rest = data[at:]
        return answers


def drive(
    port: int,
    requests: Sequence[tuple[bytes, bytes]],
    *,
    total: int,
    connections: int = 1,
    in_flight: int = 1,
) -> Outcome:
    """Sends `total` requests over `connections`, `in_flight` of them outstanding in all.

    Each connection goes round `requests`, which are as `frame` gives them. A reply makes room for
    the next request of its connection, as it does with a client that waits for replies.
    """
    seen = Outcome()
    block = Block(requests)
    window = max(1, in_flight // connections)
    lines = [_Line(port, block, total // connections, window, seen) for _ in range(connections)]
    try:
        start, cpu = time.perf_counter(), time.process_time()
        for line in lines:
            line.send()
        _serve(lines)
        seen.seconds = time.perf_counter() - start
        seen.cpu_seconds = time.process_time() - cpu
    finally:
        for line in lines:
            line.socket.close()
    seen.answered = len(seen.latencies) - seen.refused
    return seen


def _serve(lines: Sequence[_Line]) -> None:
    """Reads and writes whatever is ready, until every connection is done."""
    if len(lines) == 1:  # nothing to choose from, so nothing is asked before each read
        while not lines[0].is_done and not lines[0].unsent:
            lines[0].read()
    poll = select.poll()
    by_number = {line.socket.fileno(): line for line in lines}
    for number in by_number:
        poll.register(number, select.POLLIN)
    missing = sum(not line.is_done for line in lines)
    while missing:
        for number, event in poll.poll():
            line = by_number[number]
            was_waiting = bool(line.unsent)
            if event & select.POLLOUT:
                line.write()
            if event & ~select.POLLOUT:
                line.read()
                missing -= line.is_done
            if bool(line.unsent) != was_waiting:
                wanted = select.POLLIN | (select.POLLOUT if line.unsent else 0)
                poll.modify(number, wanted)
