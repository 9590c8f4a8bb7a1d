"""Batches that come in one read: nothing about them is otherwise than alone."""

from __future__ import annotations

from dataclasses import replace
from typing import cast

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sprocket.broker.config import BrokerConfig
from sprocket.broker.sending.batch_reader import BatchReader
from sprocket.broker.sending.destination import draft_in_batch
from sprocket.broker.sending.group_rules import GroupRules
from sprocket.broker.sending.intake import Placing, SendReader
from sprocket.broker.sending.stamp import Stamp
from sprocket.broker.settings import BrokerSettings
from sprocket.broker.tables.topics import Topics
from sprocket.message.batch import BatchedMessage, encode
from sprocket.message.ids import UniqueIds
from sprocket.message.properties import WAIT
from sprocket.protocol.command import Command
from sprocket.protocol.requests.send import SendBatch
from sprocket.store.config import StoreConfig
from sprocket.testing.disk import FaultyDisk
from sprocket.testing.entropy import SeededEntropy
from tests.broker.parts import ROOT, STORE, SUCCESS, Asker, play
from tests.broker.sending.test_run_reader import PEER, Known, Now, Request, plain, together

ILLEGAL, FULL, ODD = 13, 14, 1


def batch(number: int, *bodies: bytes, more: str = "", **fields: object) -> Request:
    """A batch to queue 0 of T, as clients make it."""
    parts = [
        BatchedMessage(0, body, f"UNIQ_KEY\x01K{number}.{place}\x02{more}")
        for place, body in enumerate(bodies)
    ]
    text = f"UNIQ_KEY\x01B{number}\x02WAIT\x01true\x02"
    given = {"topic": "T", "queue_id": 0, "properties": text, "batch": True, **fields}
    return SendBatch(**given), encode(parts)  # type: ignore[arg-type]


def test_each_message_of_each_is_told_where_it_lies() -> None:
    async def test(asker: Asker) -> None:
        await asker.create("T", 2)
        requests = [batch(n, b"%d" % n, b"x" * n, b"end", queue_id=n % 2) for n in range(1, 9)]
        replies = await together(asker, requests)
        assert [reply.opaque for reply in replies] == list(range(8))
        for n, reply in enumerate(replies, 1):
            fields = reply.fields
            assert (reply.code, fields["queueId"], fields["transactionId"]) == (
                SUCCESS, str(n % 2), f"B{n}",
            )  # fmt: skip
            first = int(fields["queueOffset"])
            assert first == (n - 1) // 2 * 3
            stored = (await asker.pull("T", first, queue=n % 2)).messages[:3]
            assert [each.body for each in stored] == [b"%d" % n, b"x" * n, b"end"]
            assert [each.message_id for each in stored] == [f"K{n}.{place}" for place in range(3)]
            ids = fields["msgId"].split(",")
            assert [int(each[-16:], 16) for each in ids] == [each.log_offset for each in stored]

    play(test)


def test_one_that_is_refused_costs_no_other() -> None:
    async def test(asker: Asker) -> None:
        await asker.create("T")
        bad: list[tuple[Request, int]] = [
            (batch(0, b"x", more="DELAY\x011\x02"), ILLEGAL),
            (batch(0, b"x", more="TRAN_MSG\x01true\x02"), ILLEGAL),
            (batch(0, b"x", more="p\x01" + "v" * 32_740 + "\x02"), ILLEGAL),
            (batch(0, *[b"x"] * 10_001), ILLEGAL),
            (batch(0), ILLEGAL),
            (batch(0, b"x", queue_id=7), 29),
            (batch(0, b"x", sys_flag=1), ODD),
            ((batch(0)[0], b"\xff" * 64), ODD),
            ((batch(0)[0], batch(0, b"x", b"y")[1][:-1]), ODD),
        ]
        good = batch(1, b"good", b"too")
        replies = await together(asker, [each for one, _ in bad for each in (good, one, good)])
        assert [reply.code for reply in replies] == [
            code for _, wanted in bad for code in (SUCCESS, wanted, SUCCESS)
        ]
        assert await asker.bodies("T") == [b"good", b"too"] * 2 * len(bad)

    play(test, store=replace(STORE, queue_file_bytes=1000 * 20))


def test_single_sends_between_them_keep_their_place() -> None:
    async def test(asker: Asker) -> None:
        await asker.create("T")
        requests = [
            batch(0, b"0", b"1"),
            plain(2, b"2"),
            batch(3, b"3"),
            plain(4, b"4"),
            plain(5, b"5"),
        ]
        assert {reply.code for reply in await together(asker, requests)} == {SUCCESS}
        assert await asker.bodies("T") == [b"%d" % n for n in range(6)]

    play(test)


def test_messages_of_a_batch_are_found_by_their_keys() -> None:
    async def test(asker: Asker) -> None:
        await asker.create("T")
        await together(asker, [batch(n, b"%d" % n, more=f"KEYS\x01k{n}\x02") for n in range(3)])
        stored = (await asker.pull("T")).messages
        assert [each.keys for each in stored] == [["k0"], ["k1"], ["k2"]]
        store = asker.broker._parts._store
        assert [len(store.find("T", key, count_max=9)) for key in ("k1", "K2.0", "none")] == [
            1,
            1,
            0,
        ]

    play(test)


def test_each_waits_for_the_disk_unless_it_says_not_to() -> None:
    disk = FaultyDisk("slow", sync_seconds=(0.2, 0.2))
    disk.make_directory(ROOT)
    no_wait = "UNIQ_KEY\x01B1\x02WAIT\x01false\x02"

    async def test(asker: Asker) -> None:
        await asker.create("T")
        requests = [batch(0, b"0"), batch(1, b"1", properties=no_wait), batch(2, b"2")]
        replies = await together(asker, requests)
        assert [reply.opaque for reply in replies] == [1, 0, 2]
        replies = await together(asker, [batch(3, b"3"), batch(4, b"4")])
        assert [(reply.opaque, reply.code) for reply in replies] == [(0, SUCCESS), (1, SUCCESS)]
        assert await asker.bodies("T") == [b"%d" % n for n in range(5)]

    play(test, disk, store=replace(STORE, flush="SYNC_FLUSH"))


def test_a_disk_that_fills_between_them_refuses_whole_batches_from_there_on() -> None:
    disk = FaultyDisk("full")
    disk.make_directory(ROOT)

    async def test(asker: Asker) -> None:
        await asker.create("T")
        body = bytes(STORE.log_file_bytes // 8)
        await asker.send("T", body)
        disk.fail("map", 28, times=99)
        replies = await together(asker, [batch(n, body, body) for n in range(8)])
        codes = [reply.code for reply in replies]
        stored = codes.count(SUCCESS)
        assert 0 < stored < 8
        assert codes == [SUCCESS] * stored + [FULL] * (8 - stored)
        disk.fail("map", times=0)
        assert len(await asker.bodies("T")) == 2 * stored + 1

    play(test, disk)


def readers() -> tuple[BatchReader, SendReader]:
    placing = Placing(
        cast(Topics, Known()),
        static=(),
        settings=BrokerSettings(BrokerConfig(), StoreConfig()),
        entropy=SeededEntropy(1),
    )
    stamp = Stamp(BrokerConfig(), ids=UniqueIds(address=b"1234", process=1, token=b"5678"))
    settings = BrokerSettings(BrokerConfig(), StoreConfig())
    one = SendReader(
        placing, rules=cast(GroupRules, None), stamp=stamp, clock=Now(), settings=settings
    )
    return BatchReader(placing, stamp, settings), one


KEY = "UNIQ_KEY\x01K\x02"
pieces = st.sampled_from(
    [
        KEY, KEY, KEY, "UNIQ_KEY\x01größe\x02", "WAIT\x01false\x02", "TAGS\x01t\x02", "a\x01\x02",
        "KEYS\x01k l\x02", "DELAY\x011\x02", "TRAN_MSG\x01false\x02", "CLUSTER\x01c\x02", "X",
        "POP_CK\x01p\x02", "_SYS_MSG_PRIORITY_\x011\x02", "a\x01b\x02", "\x02", "日本\x01語\x02",
    ]
)  # fmt: skip
texts = st.lists(pieces, max_size=4).map("".join)
parts = st.builds(BatchedMessage, st.integers(-9, 9), st.binary(max_size=5), texts)
requests = st.tuples(
    st.builds(
        SendBatch,
        topic=st.sampled_from(["T", "U"]),
        queue_id=st.integers(0, 1),
        properties=st.just(KEY) | texts,
        sys_flag=st.sampled_from([0, 4, 8]),
        flag=st.integers(0, 2),
        born_timestamp=st.just(5),
        batch=st.booleans(),
    ),
    st.lists(parts, min_size=1, max_size=4).map(encode),
)
GOOD = BatchedMessage(0, b"x", KEY)


@given(st.lists(requests, min_size=1, max_size=4))
@example([(SendBatch(topic="T", queue_id=0, properties=KEY), encode([GOOD, GOOD]))])
def test_a_batch_is_read_as_its_messages_are_one_by_one(some: list[Request]) -> None:
    many, one = readers()
    commands = [Command.request(header, body=body) for header, body in some]
    found = many.read_run(commands, PEER)
    for (header, _), command, batch in zip(some, commands, found, strict=False):
        intake = one.read_send(cast(SendBatch, header), command, PEER)
        assert batch.drafts.drafts() == [draft_in_batch(each) for each in intake.parts]
        assert batch.destination.is_awaited == (intake.properties.get(WAIT) != "false")
        assert batch.destination.draft.unique_key == intake.draft.unique_key
        assert (batch.destination.topic, batch.destination.queue_number) == (
            intake.draft.topic, intake.draft.queue_number,
        )  # fmt: skip
    assert many.read_run(commands[len(found) : len(found) + 1], PEER) == []


@pytest.mark.parametrize("more", ["", "TAGS\x01t\x02", "KEYS\x01k\x02", "a\x01b\x02"])
def test_most_batches_are_read_in_runs(more: str) -> None:
    many, _ = readers()
    body = encode([BatchedMessage(0, b"x" * n, KEY + more) for n in range(1, 9)])
    command = Command.request(SendBatch(topic="T", queue_id=1, properties=KEY), body=body)
    assert len(many.read_run([command] * 3, PEER)) == 3
    assert len(many.read_run([command] * 1000, PEER)) == 256, "what takes long is done in parts"
