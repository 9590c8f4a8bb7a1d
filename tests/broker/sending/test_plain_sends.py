"""Sends that come in one read."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace

import pytest

from sprocket.protocol.command import BINARY, JSON, Command, Header
from sprocket.protocol.connection import Connection
from sprocket.protocol.frame import encode_request
from sprocket.protocol.requests.offset import MaxOffset
from sprocket.protocol.requests.send import SendMessage, SendMessageV2
from sprocket.testing.disk import FaultyDisk
from tests.broker.parts import ROOT, STORE, SUCCESS, Asker, play

Request = tuple[Header, bytes]
ILLEGAL, FULL, FORBIDDEN, IMPOSSIBLE = 13, 14, 16, 29


def plain(number: int, body: bytes, **more: object) -> Request:
    """A send to queue 0 of T, with a unique key as clients give it."""
    text = f"UNIQ_KEY\x01K{number}\x02WAIT\x01true\x02TAGS\x01t\x02"
    header = SendMessageV2(**{"topic": "T", "queue_id": 0, "properties": text, **more})  # type: ignore[arg-type]
    return header, body


def asking(number: int, body: bytes, properties: str) -> Request:
    """The same with more properties."""
    return plain(number, body, properties=f"UNIQ_KEY\x01K{number}\x02{properties}")


async def together(
    asker: Asker, requests: Sequence[Request], *, oneway: int = -1, serialization: int = JSON
) -> list[Command]:
    """Replies to requests that are written at once, as they come; opaques are their places."""
    frames = b"".join(
        b"".join(
            encode_request(
                header, place, body=body, is_oneway=place == oneway, serialization=serialization
            )
        )
        for place, (header, body) in enumerate(requests)
    )
    host, port = asker.broker.address.rsplit(":", 1)
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(frames)
    incoming, replies = Connection(), list[Command]()
    while len(replies) < len(requests) - (oneway >= 0):
        replies += incoming.receive(await reader.read(1 << 16))
    writer.close()
    return replies


@pytest.mark.parametrize("serialization", [JSON, BINARY])
def test_each_is_told_where_it_lies_in_the_order_in_which_they_came(serialization: int) -> None:
    async def test(asker: Asker) -> None:
        await asker.create("T", 2)
        requests = [plain(n, b"%d" % n, queue_id=n % 2) for n in range(20)]
        requests[7] = (SendMessage(topic="T", queue_id=1, properties="UNIQ_KEY\x01K7\x02"), b"7")
        replies = await together(asker, requests, serialization=serialization)
        assert [reply.opaque for reply in replies] == list(range(20))
        assert [reply.serialization for reply in replies] == [serialization] * 20
        for n, reply in enumerate(replies):
            fields = reply.fields
            assert (reply.code, reply.is_response) == (SUCCESS, True)
            assert (fields["queueId"], fields["queueOffset"]) == (str(n % 2), str(n // 2))
            assert (fields["transactionId"], fields["TRACE_ON"]) == (f"K{n}", "true")
            pulled = await asker.pull("T", n // 2, queue=n % 2)
            assert fields["msgId"].endswith(f"{pulled.messages[0].log_offset:016X}")
            assert pulled.messages[0].properties["UNIQ_KEY"] == f"K{n}"
        assert await asker.bodies("T", 1) == [b"%d" % n for n in range(1, 20, 2)]

    play(test)


def test_one_that_is_refused_costs_no_other() -> None:
    store = replace(STORE, message_bytes_max=100)

    async def test(asker: Asker) -> None:
        await asker.create("T")
        await asker.create("closed", permission=4)
        bad: list[tuple[Request, int]] = [
            (plain(0, b""), ILLEGAL),
            (plain(0, bytes(101)), ILLEGAL),
            (plain(0, b"x", properties="UNIQ_KEY\x01K\x02p\x01" + "x" * 32_750 + "\x02"), ILLEGAL),
            (plain(0, b"x", topic="a b"), IMPOSSIBLE),
            (plain(0, b"x", topic="SCHEDULE_TOPIC_XXXX"), FORBIDDEN),
            (plain(0, b"x", queue_id=5), IMPOSSIBLE),
            (plain(0, b"no batch", batch=True), 1),
        ]
        good = plain(1, b"good")
        requests = [request for one, _ in bad for request in (good, one, one, good)]
        replies = await together(asker, requests)
        wanted = [code for _, code in bad for code in (SUCCESS, code, code, SUCCESS)]
        assert [reply.code for reply in replies] == wanted
        assert [reply.opaque for reply in replies] == list(range(len(requests)))
        assert all(reply.remark for reply in replies if reply.code)
        assert await asker.bodies("T") == [b"good"] * 2 * len(bad)

    play(test, store=store)


def test_others_between_them_keep_their_place_in_the_queue() -> None:
    async def test(asker: Asker) -> None:
        await asker.create("T")
        requests: list[Request] = [
            plain(0, b"0"),
            (SendMessageV2(topic="T", queue_id=0), b"1"),
            asking(2, b"2", "MSG_REGION\x01mine\x02"),
            asking(3, b"3", "DELAY\x011\x02"),
            (MaxOffset(topic="T", queue_id=0), b""),
            plain(4, b"4"),
            plain(5, b"5", topic="Made"),
        ]
        replies = await together(asker, requests)
        by_place = {reply.opaque: reply for reply in replies}
        assert {reply.code for reply in replies} == {SUCCESS}
        assert by_place[4].fields["offset"] == "3"
        assert by_place[5].fields["queueOffset"] == "3"
        assert by_place[6].fields["queueOffset"] == "0"
        assert await asker.bodies("T") == [b"0", b"1", b"2", b"4"]

    play(test)


def test_a_oneway_among_them_is_stored_and_not_answered() -> None:
    async def test(asker: Asker) -> None:
        await asker.create("T")
        replies = await together(asker, [plain(n, b"%d" % n) for n in range(5)], oneway=2)
        assert [reply.opaque for reply in replies] == [0, 1, 3, 4]
        assert await asker.bodies("T") == [b"%d" % n for n in range(5)]

    play(test)


def test_each_waits_for_the_disk_unless_it_says_not_to() -> None:
    disk = FaultyDisk("slow", sync_seconds=(0.2, 0.2))
    disk.make_directory(ROOT)
    store = replace(STORE, flush="SYNC_FLUSH")

    async def test(asker: Asker) -> None:
        await asker.create("T")
        requests = [plain(0, b"0"), asking(1, b"1", "WAIT\x01false\x02"), plain(2, b"2")]
        replies = await together(asker, requests)
        assert [reply.opaque for reply in replies] == [1, 0, 2]
        assert [reply.fields["transactionId"] for reply in replies] == ["K1", "K0", "K2"]
        assert await asker.bodies("T") == [b"0", b"1", b"2"]

    play(test, disk, store=store)


def test_those_that_wait_together_too_long_are_each_told_so() -> None:
    disk = FaultyDisk("slow", sync_seconds=(3.0, 3.0))
    disk.make_directory(ROOT)
    store = replace(STORE, flush="SYNC_FLUSH")

    async def test(asker: Asker) -> None:
        await asker.create("T")
        replies = await together(asker, [plain(n, b"%d" % n) for n in range(4)], oneway=1)
        told = [(reply.opaque, reply.code, reply.fields["queueOffset"]) for reply in replies]
        assert told == [(0, 10, "0"), (2, 10, "2"), (3, 10, "3")]

    play(test, disk, store=store, flush_timeout_ms=1000)


def test_a_disk_that_fills_between_them_refuses_those_from_there_on() -> None:
    disk = FaultyDisk("full")
    disk.make_directory(ROOT)

    async def test(asker: Asker) -> None:
        await asker.create("T")
        body = bytes(STORE.log_file_bytes // 4)
        await asker.send("T", body)
        disk.fail("map", 28, times=99)
        replies = await together(asker, [plain(n, body) for n in range(8)])
        codes = [reply.code for reply in replies]
        stored = codes.count(SUCCESS)
        assert 0 < stored < 8
        assert codes == [SUCCESS] * stored + [FULL] * (8 - stored)
        disk.fail("map", times=0)
        assert len(await asker.bodies("T")) == stored + 1

    play(test, disk)
