"""Sends that come in one read: nothing about them is otherwise than alone."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar, cast

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sprocket.broker.config import BrokerConfig
from sprocket.broker.sending.destination import DelayRules, destination
from sprocket.broker.sending.group_rules import GroupRules
from sprocket.broker.sending.intake import Placing, SendReader
from sprocket.broker.sending.run_reader import RunReader
from sprocket.broker.sending.stamp import Stamp
from sprocket.broker.settings import BrokerSettings
from sprocket.broker.tables.topics import Topics
from sprocket.delay.levels.levels import DelayLevels
from sprocket.delay.timers.timed import TimerLimits
from sprocket.message.ids import UniqueIds
from sprocket.protocol.bodies import TopicConfig
from sprocket.protocol.command import BINARY, JSON, Command, Header
from sprocket.protocol.connection import Connection
from sprocket.protocol.frame import encode_request
from sprocket.protocol.requests.offset import MaxOffset
from sprocket.protocol.requests.send import SendMessage, SendMessageV2
from sprocket.remoting.transport import Peer
from sprocket.store.config import StoreConfig
from sprocket.testing.disk import FaultyDisk
from sprocket.testing.entropy import SeededEntropy
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


NOW_MS = 1_700_000_000_123
RULES = DelayRules(DelayLevels.parse("1s 5s"), TimerLimits(1000, 86_400_000), "broker-a")


class Now:
    """A clock that does not move."""

    def now_ms(self) -> int:
        return NOW_MS


class Somebody:
    """A peer with nothing but an address."""

    address = "127.0.0.1:1"


class Known:
    """Two topics, and the timer's."""

    by_name: ClassVar = {
        "T": TopicConfig(topic_name="T", write_queue_nums=2, topic_filter_type="MULTI_TAG"),
        "U": TopicConfig(topic_name="U", read_queue_nums=2, write_queue_nums=1),
        "rmq_sys_wheel_timer": TopicConfig(topic_name="rmq_sys_wheel_timer"),
    }


PEER = cast(Peer, Somebody())


def readers() -> tuple[RunReader, SendReader]:
    """The reader of runs and that of single sends."""
    placing = Placing(
        cast(Topics, Known()),
        static=(),
        settings=BrokerSettings(BrokerConfig(), StoreConfig()),
        entropy=SeededEntropy(1),
    )
    stamp = Stamp(BrokerConfig(), ids=UniqueIds(address=b"1234", process=1, token=b"5678"))
    settings = BrokerSettings(BrokerConfig(), StoreConfig(message_bytes_max=1))
    one = SendReader(
        placing, rules=cast(GroupRules, None), stamp=stamp, clock=Now(), settings=settings
    )
    return RunReader(placing, stamp, RULES, Now()), one


def due(ms: int) -> str:
    return f"TIMER_DELIVER_MS\x01{NOW_MS + ms}\x02"


DUE = due(60_000)
KEY = "UNIQ_KEY\x01K\x02"
pieces = st.sampled_from(
    [
        KEY, KEY, "UNIQ_KEY\x01größe\x02", "WAIT\x01true\x02", "WAIT\x01false\x02", "TAGS\x01t\x02",
        "KEYS\x01k l\x02", "DELAY\x011\x02", "TRAN_MSG\x01true\x02", "TRAN_MSG\x01false\x02",
        "CLUSTER\x01c\x02", "POP_CK\x01p\x02", DUE, DUE, DUE[:-1], due(0), due(1),
        due(86_400_000), due(86_400_001), "TIMER_DELIVER_MS\x01soon\x02", "TIMER_DELAY_MS\x015\x02",
        "TIMER_OUT_MS\x015\x02", "REAL_TOPIC\x01U\x02", "TIMER_DEL_UNIQKEY\x01T+K\x02",
        "a\x01b\x02", "a\x01\x02", "X", "\x02", "日本\x01語\x02",
    ]
)  # fmt: skip
headers = st.builds(
    SendMessageV2,
    topic=st.sampled_from(["T", "U", "rmq_sys_wheel_timer"]),
    queue_id=st.integers(0, 1),
    properties=st.lists(pieces, max_size=6).map("".join),
    sys_flag=st.sampled_from([0, 1, 4, 8]),
    flag=st.integers(0, 2),
    born_timestamp=st.just(5),
    reconsume_times=st.integers(0, 1),
)


@given(st.lists(headers, min_size=1, max_size=8))
@example([SendMessageV2(topic="T", queue_id=1, properties=KEY + DUE)])
@example([SendMessageV2(topic="T", queue_id=1, properties=KEY + "WAIT\x01false\x02")])
def test_what_is_read_in_a_run_goes_where_it_goes_alone(some: list[SendMessageV2]) -> None:
    runs, one = readers()
    commands = [Command.request(header, body=b"x") for header in some]
    found = runs.read_run(SendMessageV2, commands, PEER)
    for command, header, decided in zip(commands, some, found, strict=False):
        intake = one.read_send(header, command, PEER)
        assert decided == destination(intake, RULES, now_ms=NOW_MS)
    ended_it = commands[len(found) : len(found) + 1]
    assert runs.read_run(SendMessageV2, ended_it, PEER) == []


@pytest.mark.parametrize("more", ["", "TAGS\x01t\x02", DUE, DUE + "a\x01b\x02"])
def test_most_sends_are_read_in_runs(more: str) -> None:
    runs, _ = readers()
    header = SendMessageV2(topic="T", queue_id=1, properties=KEY + more)
    commands = [Command.request(header, body=b"x")] * 3
    assert len(runs.read_run(SendMessageV2, commands, PEER)) == 3
