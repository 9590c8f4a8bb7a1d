"""A load generator that costs little: prepared frames, raw sockets, one process.

It speaks to any RocketMQ broker and knows nothing of Sprocket, so both sides of a comparison get
the same bytes. A request is a template whose eight-digit opaque is the only thing that changes.
"""

from __future__ import annotations

import asyncio
import json
import struct
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import cast

#: First opaque of a run: eight digits from beginning to end, so that frames keep their length.
FIRST_OPAQUE = 10_000_000
_OPAQUE = b'"opaque":'
_CODE = b'"code":'


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
    whole = struct.pack(">ii", 4 + len(header) + len(body), len(header)) + header + body
    at = whole.index(_OPAQUE) + len(_OPAQUE)
    return whole[:at], whole[at + 8 :]


def send_fields(topic: str, queue: int) -> dict[str, str]:
    """Header fields of a send in the short form (310)."""
    return {
        "a": "bench_producer",
        "b": topic,
        "c": "TBW102",
        "d": "8",
        "e": str(queue),
        "f": "0",
        "g": str(int(time.time() * 1000)),
        "h": "0",
        "i": "UNIQ_KEY\x017F00000100002A9F0000000000000001\x02WAIT\x01true\x02TAGS\x01paid\x02",
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


@dataclass(slots=True)
class Outcome:
    """What one run saw."""

    answered: int = 0
    refused: int = 0
    body_bytes: int = 0
    seconds: float = 0.0
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


class _Line(asyncio.Protocol):
    """One connection that keeps a fixed number of requests in flight until its share is done."""

    def __init__(
        self, request: Callable[[int], tuple[bytes, bytes]], total: int, window: int, seen: Outcome
    ) -> None:
        self._request = request
        self._total = total
        self._window = window
        self._seen = seen
        self._sent = 0
        self._answered = 0
        self._started: dict[int, float] = {}
        self._rest = b""
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def begin(self) -> None:
        self._write(min(self._window, self._total))

    def _write(self, count: int) -> None:
        now = time.perf_counter()
        out = []
        for number in range(self._sent, self._sent + count):
            head, tail = self._request(number)
            out.append(b"%b%d%b" % (head, FIRST_OPAQUE + number, tail))
            self._started[FIRST_OPAQUE + number] = now
        self._sent += count
        self._transport.write(b"".join(out))

    def data_received(self, data: bytes) -> None:
        data = self._rest + data if self._rest else data
        at, size, now, answers = 0, len(data), time.perf_counter(), 0
        while size - at >= 8:
            length, header = struct.unpack_from(">ii", data, at)
            if size - at < 4 + length:
                break
            self._take(data, at + 8, at + 8 + (header & 0xFFFFFF), now)
            self._seen.body_bytes += length - 4 - (header & 0xFFFFFF)
            at += 4 + length
            answers += 1
        self._rest = data[at:]
        self._answered += answers
        if self._answered >= self._total:
            if not self.done.done():
                self.done.set_result(None)
        elif self._sent < self._total and answers:
            self._write(min(answers, self._total - self._sent))

    def _take(self, data: bytes, start: int, end: int, now: float) -> None:
        at = data.index(_OPAQUE, start, end) + len(_OPAQUE)
        stop = at
        while 48 <= data[stop] <= 57:
            stop += 1
        self._seen.latencies.append(now - self._started.pop(int(data[at:stop])))
        code = data.index(_CODE, start, end) + len(_CODE)
        if data[code : code + 2] in (b"0,", b"0}"):
            self._seen.answered += 1
        else:
            self._seen.refused += 1
            self._seen.first_refusal = self._seen.first_refusal or data[start:end]

    def connection_lost(self, error: Exception | None) -> None:
        if not self.done.done():
            self.done.set_exception(error or ConnectionResetError("the broker closed"))


async def drive(
    port: int,
    request: Callable[[int], tuple[bytes, bytes]],
    *,
    total: int,
    connections: int,
    in_flight: int,
) -> Outcome:
    """Sends `total` requests over `connections`, `in_flight` of them outstanding in all."""
    seen = Outcome()
    loop = asyncio.get_running_loop()
    lines = []
    for _ in range(connections):
        _, line = await loop.create_connection(
            lambda: _Line(request, total // connections, max(1, in_flight // connections), seen),
            "127.0.0.1",
            port,
        )
        lines.append(line)
    start = time.perf_counter()
    for line in lines:
        line.begin()
    await asyncio.gather(*(line.done for line in lines))
    seen.seconds = time.perf_counter() - start
    for line in lines:
        line._transport.close()
    return seen


def run(outcome: Callable[[], object]) -> object:
    """Runs a coroutine function on the quickest loop there is."""
    try:
        import uvloop
    except ImportError:
        return asyncio.run(outcome())  # type: ignore[arg-type]
    return uvloop.run(outcome())  # type: ignore[arg-type]
