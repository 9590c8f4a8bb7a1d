"""Sending through the door."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from sprocket.base.deadline import Deadline
from sprocket.message.batch import BatchedMessage, encode
from sprocket.protocol.requests.send import SendBatch, SendMessage, SendMessageV2
from sprocket.protocol.requests.topic import TopicConfigOf
from sprocket.testing.disk import FaultyDisk
from tests.broker.parts import ROOT, STORE, SUCCESS, Asker, play, settle

ILLEGAL, FLUSH_TIMEOUT = 13, 10


def message(topic: str = "T", queue: int = 0, **more: object) -> SendMessageV2:
    return SendMessageV2(producer_group="p", topic=topic, queue_id=queue, **more)  # type: ignore[arg-type]


def batch() -> SendBatch:
    return SendBatch(
        producer_group="p", topic="T", queue_id=0, properties="UNIQ_KEY\x01B\x02", batch=True
    )


def test_a_message_comes_back_as_it_was_sent_with_the_brokers_marks() -> None:
    async def test(asker: Asker) -> None:
        reply = await asker.send("T", b"\x00\xff", TAGS="a", KEYS="k l", mine="ä", UNIQ_KEY="u1")
        assert reply["queueOffset"] == "0"
        assert reply["transactionId"] == "u1"
        assert (reply["MSG_REGION"], reply["TRACE_ON"]) == ("r", "true")
        (stored,) = (await asker.pull("T")).messages
        assert stored.body == b"\x00\xff"
        assert stored.properties == {
            "TAGS": "a", "KEYS": "k l", "mine": "ä", "UNIQ_KEY": "u1",
            "MSG_REGION": "r", "TRACE_ON": "true", "CLUSTER": "c",
        }  # fmt: skip
        assert reply["msgId"].endswith(f"{stored.log_offset:016X}")

    play(test, region="r", cluster="c")


def test_the_last_property_keeps_its_value_with_and_without_a_separator_at_the_end() -> None:
    async def test(asker: Asker) -> None:
        for text in ("KEYS\x01k\x02TAGS\x01TagA", "UNIQ_KEY\x01u\x02TAGS\x01TagA"):
            for end in ("", "\x02"):
                assert await asker.code(message(properties=text + end), b"x") == SUCCESS
        parts = [
            BatchedMessage(0, b"x", "TAGS\x01TagA"),
            BatchedMessage(0, b"x", "TAGS\x01TagA\x02"),
        ]
        assert await asker.code(batch(), encode(parts)) == SUCCESS
        found = (await asker.pull("T", tags="TagA")).messages
        assert [each.properties["TAGS"] for each in found] == ["TagA"] * 6
        assert {each.properties["CLUSTER"] for each in found} == {"DefaultCluster"}

    play(test)


def test_what_the_client_says_of_region_cluster_and_traces_does_not_count() -> None:
    async def test(asker: Asker) -> None:
        await asker.send("T", MSG_REGION="mine", CLUSTER="mine", TRACE_ON="false", POP_CK="x")
        (stored,) = (await asker.pull("T")).messages
        assert stored.properties["MSG_REGION"] == "DefaultRegion"
        assert stored.properties["CLUSTER"] == "DefaultCluster"
        assert stored.properties["TRACE_ON"] == "true"
        assert "POP_CK" not in stored.properties
        assert len(stored.properties["UNIQ_KEY"]) == 32

    play(test)


def test_the_long_form_of_a_send_does_the_same() -> None:
    async def test(asker: Asker) -> None:
        header = SendMessage(producer_group="p", topic="T", queue_id=2, properties="TAGS\x01a")
        reply = await asker.call(header, b"long")
        assert (reply.code, reply.fields["queueId"]) == (SUCCESS, "2")
        assert await asker.bodies("T", 2) == [b"long"]

    play(test)


def test_a_queue_below_zero_leaves_the_choice_to_the_broker() -> None:
    async def test(asker: Asker) -> None:
        await asker.create("T", 3)
        chosen = {(await asker.call(message(queue=-1), b"x")).fields["queueId"] for _ in range(40)}
        assert chosen == {"0", "1", "2"}
        assert await asker.code(message(queue=3), b"x") == 29
        await asker.create("N", 0)
        assert await asker.code(message("N", -1), b"x") == 29

    play(test)


@pytest.mark.parametrize(
    ("size", "code"),
    [(0, ILLEGAL), (1, SUCCESS), (999, SUCCESS), (1000, SUCCESS), (1001, ILLEGAL)],
)
def test_a_body_may_have_the_size_that_is_set_and_no_more(size: int, code: int) -> None:
    store = replace(STORE, message_bytes_max=1000)

    async def test(asker: Asker) -> None:
        reply = await asker.call(message(), b"x" * size)
        assert reply.code == code
        if size > 1000:
            assert "1000" in (reply.remark or "")
        whole = encode([BatchedMessage(0, b"x" * max(size - 22, 0), "")])
        assert await asker.code(batch(), whole) == (code if size > 22 else SUCCESS)

    play(test, store=store)


def test_properties_are_limited_with_the_brokers_own_included() -> None:
    async def test(asker: Asker) -> None:
        await asker.send("T")
        (plain,) = (await asker.pull("T")).messages
        added = sum(len(name) + len(value) + 2 for name, value in plain.properties.items())
        for length, code in ((32767 - added - 3, SUCCESS), (32767 - added - 2, ILLEGAL)):
            text = "p\x01" + "v" * length + "\x02"
            assert await asker.code(message(properties=text), b"x") == code
            parts = encode([BatchedMessage(0, b"x", text)])
            assert await asker.code(batch(), parts) == code
        for length in (32768, 65535, 65536):
            reply = await asker.call(message(properties="p\x01" + "é" * (length // 2)), b"x")
            assert reply.code == ILLEGAL

    play(test)


def test_a_batch_is_stored_whole_or_not_at_all() -> None:
    async def test(asker: Asker) -> None:
        parts = [
            BatchedMessage(0, b"1", "KEYS\x01a\x02"),
            BatchedMessage(3, b"2", ""),
            BatchedMessage(0, b"3", "TAGS\x01t\x02"),
        ]
        reply = await asker.call(batch(), encode(parts))
        assert reply.code == SUCCESS
        assert reply.fields["transactionId"] == "B"
        assert reply.fields["queueOffset"] == "0"
        assert len(reply.fields["msgId"].split(",")) == 3
        stored = (await asker.pull("T")).messages
        assert [each.body for each in stored] == [b"1", b"2", b"3"]
        assert [each.flag for each in stored] == [0, 3, 0]
        too_long = BatchedMessage(0, b"x", "p\x01" + "v" * 32760)
        assert await asker.code(batch(), encode([BatchedMessage(0, b"4", ""), too_long])) == ILLEGAL
        assert await asker.code(batch(), encode([BatchedMessage(0, b"4", "DELAY\x011")])) == ILLEGAL
        assert await asker.max_offset("T") == 3

    play(test)


@pytest.mark.parametrize("body", [b"garbage", b"\x00" * 30, b"\xff" * 64])
def test_a_batch_that_is_none_is_refused_and_nothing_is_stored(body: bytes) -> None:
    async def test(asker: Asker) -> None:
        assert await asker.code(batch(), body) == 1
        assert await asker.max_offset("T") == 0

    play(test)


def test_transaction_bits_of_a_plain_send_do_not_hide_it() -> None:
    async def test(asker: Asker) -> None:
        for sys_flag in (0x4, 0xC, 0x8):
            assert await asker.code(message(sys_flag=sys_flag), b"x") == SUCCESS
        assert len(await asker.bodies("T")) == 3

    play(test)


def test_a_oneway_send_is_stored_and_not_answered() -> None:
    async def test(asker: Asker) -> None:
        peer = await asker.pool.peer(asker.broker.address, Deadline.after(5))
        peer.send_oneway(message(), body=b"quiet")
        await settle()
        assert await asker.bodies("T") == [b"quiet"]

    play(test)


def test_a_first_send_makes_the_topic() -> None:
    async def test(asker: Asker) -> None:
        await asker.send("Made")
        reply = await asker.call(TopicConfigOf(topic="Made"))
        assert b'"writeQueueNums":4' in bytes(reply.body)

    play(test)


def test_a_send_waits_for_the_disk_where_that_is_set() -> None:
    disk = FaultyDisk("slow", sync_seconds=(0.2, 0.2))
    disk.make_directory(ROOT)
    store = replace(STORE, flush="SYNC_FLUSH")

    async def test(asker: Asker) -> None:
        loop = asyncio.get_running_loop()
        began = loop.time()
        await asker.send("T")
        assert loop.time() - began >= 0.2
        began = loop.time()
        await asker.send("T", WAIT="false")
        assert loop.time() - began < 0.1

    play(test, disk, store=store)


def test_a_send_that_waited_too_long_for_the_disk_says_so_and_is_stored() -> None:
    disk = FaultyDisk("slow", sync_seconds=(3.0, 3.0))
    disk.make_directory(ROOT)
    store = replace(STORE, flush="SYNC_FLUSH")

    async def test(asker: Asker) -> None:
        reply = await asker.call(message(), b"x")
        assert reply.code == FLUSH_TIMEOUT
        assert reply.fields["queueOffset"] == "0"
        assert await asker.bodies("T") == []  # it could still be lost
        await asyncio.sleep(3.0)
        assert len(await asker.bodies("T")) == 1

    play(test, disk, store=store, flush_timeout_ms=1000)


def test_what_is_far_too_long_is_refused_before_it_is_taken_apart() -> None:
    async def test(asker: Asker) -> None:
        pairs = "a\x01b\x02" * 500_000
        assert await asker.code(message(properties=pairs), b"x") == ILLEGAL
        assert await asker.code(message("x" * 1_000_000), b"x") == 29
        store_limit = STORE.message_bytes_max
        assert await asker.code(batch(), bytes(store_limit + 1)) == ILLEGAL

    play(test)
