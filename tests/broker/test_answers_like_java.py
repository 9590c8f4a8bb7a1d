"""Recorded requests to a Java broker, sent again: the same codes, and the fields that matter.

The requests, some 300 with bad, missing or odd fields, are sent byte for byte. Where this broker
answers otherwise on purpose, the table below says so and why.
"""

from __future__ import annotations

import asyncio
import gzip
import json
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from sprocket.protocol.codes import RequestCode
from sprocket.protocol.command import RESPONSE, Command
from sprocket.protocol.connection import Connection
from tests.broker.parts import STORE, Asker, play

PROBES = Path(__file__).resolve().parent.parent / "golden" / "frames" / "probe"


class Otherwise(NamedTuple):
    """An answer that differs on purpose: another code, or (None) only other fields."""

    code: int | None
    why: str


TOO_FAR = "what is too far ahead is refused; Java's sum overflows, and it delivers at once"
SQL_READ = "an expression that cannot be read whole is refused; Java gives everything, or a part"
UNKNOWN_KIND = "filters of an unknown kind are refused; Java gives everything"
OTHER_PLACE = "no half message lies at the log offset that it had in the recording"
KEYS_COMPARED = "the key is compared on the record; Java gives what has the same hash"
NO_NEGATIVE = "an offset below 0 is refused; Java stores it and reads it back as 0"
SOONER = "a message of delay level 1, sent some steps before, comes a moment sooner"
NO_QUEUE = "a queue that does not exist is refused; Java keeps the offset, for good"
EMPTY_BODY = "a message without body is illegal; Java says so with a null pointer"

#: By recording, and step or number of the request.
DEVIATIONS: dict[tuple[str, str | int], Otherwise] = {
    ("errors", "send V2, empty body"): Otherwise(13, EMPTY_BODY),
    ("errors", "batch, empty body"): Otherwise(13, EMPTY_BODY),
    ("errors", "send, TIMER_DELAY_MS=9223372036854775807"): Otherwise(13, TOO_FAR),
    ("errors", "send, TIMER_DELAY_SEC=9223372036854775807"): Otherwise(13, TOO_FAR),
    ("errors", "recall bad handle"): Otherwise(604, "recalls are on; Java's default is off"),
    ("errors", "pull SQL92 a >> 5 and"): Otherwise(23, SQL_READ),
    ("errors", "pull SQL92 a + 1 > 5"): Otherwise(23, SQL_READ),
    ("errors", "pull SQL92 a >"): Otherwise(23, SQL_READ),
    ("errors", "pull SQL92 a > null"): Otherwise(23, SQL_READ),
    ("errors", "pull SQL92 a LIKE 1"): Otherwise(23, SQL_READ),
    ("errors", "pull expression type XYZ"): Otherwise(1, UNKNOWN_KIND),
    ("errors", "update offset -5"): Otherwise(29, NO_NEGATIVE),
    ("errors", 285): Otherwise(None, NO_NEGATIVE),
    ("errors", "update offset queue 99"): Otherwise(29, NO_QUEUE),
    ("errors", "view message, bad offset"): Otherwise(
        1, "where no record begins there is no message; Java answers 0 without one"
    ),
    ("more", "F3 send: long unique key"): Otherwise(None, SOONER),
    ("more", "F3 send: non-ascii"): Otherwise(None, SOONER),
    ("more", "check client config (46) XYZ x"): Otherwise(1, UNKNOWN_KIND),
    ("more", "end: commit"): Otherwise(1, OTHER_PLACE),
    ("more", "end: commit again"): Otherwise(1, OTHER_PLACE),
    ("more", 260): Otherwise(1, OTHER_PLACE),
    ("more", "end: rollback after commit"): Otherwise(None, OTHER_PLACE),
    ("more", "query AaTopic key BB"): Otherwise(22, KEYS_COMPARED),
    ("more", "code 323 with nothing"): Otherwise(29, "that no message is named is said plainly"),
}
#: Fields that only one run can have.
OWN_FIELDS = {
    "msgId",
    "transactionId",
    "timestamp",
    "indexLastUpdateTimestamp",
    "indexLastUpdatePhyoffset",
}

#: After what stores a message there and not here, a plain one is sent, to keep offsets in step.
KEPT_IN_STEP = {
    "send, TIMER_DELAY_MS=9223372036854775807": "ProbeA",
    "send, TIMER_DELAY_SEC=9223372036854775807": "ProbeA",
    "end: commit": "MoreA",
    "end: commit again": "MoreA",
}


class Exchange(NamedTuple):
    """A recorded request and its answer."""

    number: int
    step: str
    ms: int
    request: bytes
    expected: Command


def exchanges(recording: str) -> list[Exchange]:
    with gzip.open(PROBES / f"{recording}.jsonl.gz", "rt") as lines:
        rows = [json.loads(line) for line in lines]
    rows = [row for row in rows if row["link"] == "broker"]
    found = []
    for at, row in enumerate(rows):
        if row["dir"] != "request" or row["way"] != "c2s":
            continue
        reply = next((r for r in rows[at + 1 :] if is_reply(r, row)), None)
        if reply is not None:
            expected = decoded(bytes.fromhex(reply["hex"]))
            raw = bytes.fromhex(row["hex"])
            found.append(Exchange(row["n"], row["step"], row["t"], raw, expected))
    return found


def is_reply(row: dict[str, Any], request: dict[str, Any]) -> bool:
    return all(
        (
            row["dir"] == "response",
            row.get("opaque") == request["opaque"],
            row["conn"] == request["conn"],
        )
    )


def decoded(raw: bytes) -> Command:
    return Connection().receive(raw)[0]


class Wire:
    """A plain connection over which recorded bytes go out again."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._incoming = Connection()
        self._replies: dict[int, Command] = {}

    async def ask(self, raw: bytes, opaque: int) -> Command:
        self._writer.write(raw)
        while opaque not in self._replies:
            data = await self._reader.read(1 << 20)
            assert data, "the broker closed the connection"
            for command in self._incoming.receive(data):
                if command.flag & RESPONSE:
                    self._replies[command.opaque] = command
        return self._replies.pop(opaque)

    def close(self) -> None:
        self._writer.close()


async def differences(asker: Asker, recording: str) -> list[str]:
    host, port = asker.broker.address.rsplit(":", 1)
    wire = Wire(*await asyncio.open_connection(host, int(port)))
    wrong = []
    last_ms = 0
    for number, step, ms, raw, expected in exchanges(recording):
        await asyncio.sleep((ms - last_ms) / 1000)
        last_ms = ms
        reply = await wire.ask(raw, expected.opaque)
        known = DEVIATIONS.get((recording, number)) or DEVIATIONS.get((recording, step))
        wrong += different(step, reply, expected, known)
        if step in KEPT_IN_STEP:
            await asker.send(KEPT_IN_STEP[step])
    wire.close()
    return wrong


def different(step: str, reply: Command, expected: Command, known: Otherwise | None) -> list[str]:
    code = expected.code if known is None or known.code is None else known.code
    if reply.code != code:
        if known is not None and known.code is None:
            return []
        return [f"{step}: code {reply.code}, not {code} ({reply.remark})"]
    if known is not None:
        return []
    return [
        f"{step}: {name}={reply.fields.get(name)}, not {value}"
        for name, value in expected.fields.items()
        if name not in OWN_FIELDS and reply.fields.get(name) != value
    ]


@pytest.mark.parametrize("recording", ["errors", "more"])
def test_recorded_requests_get_the_answers_of_a_java_broker(recording: str) -> None:
    wrong = play(
        lambda asker: differences(asker, recording),
        store=replace(STORE, log_file_bytes=16 << 20),
        cluster="LabCluster",
    )
    assert not wrong, "\n".join(wrong)


def test_deviations_name_steps_that_were_recorded() -> None:
    recorded: set[tuple[str, str | int]] = set()
    for name in ("errors", "more"):
        recorded |= {(name, each.step) for each in exchanges(name)}
        recorded |= {(name, each.number) for each in exchanges(name)}
    assert DEVIATIONS.keys() <= recorded


def test_every_refused_code_is_a_code_that_rocketmq_knows() -> None:
    known = {int(code) for code in RequestCode}
    asked = {decoded(e.request).code for name in ("errors", "more") for e in exchanges(name)}
    assert {10, 11, 14, 15, 17, 29, 30, 34, 36, 310, 320} <= asked & known
