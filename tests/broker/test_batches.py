"""Topics that keep each batch as one record, through the broker's door."""

from __future__ import annotations

import asyncio

import pytest

from sprocket.message.batch import BatchedMessage, encode
from sprocket.protocol.requests.send import SendBack, SendBatch
from sprocket.protocol.requests.topic import DeleteTopic
from sprocket.testing.loop import simulate
from sprocket.testing.network import Network
from tests.broker.groups import BrokerGroup, group
from tests.broker.parts import SUCCESS, Asker, new_disk, play, serving
from tests.broker.pop.popping import pop

KIND = "+queue.type=BatchCQ"


def batch(topic: str = "t", *, key: str | None = "U1", queue: int = 0, **more: object) -> SendBatch:
    properties = "WAIT\x01true\x02" + (f"UNIQ_KEY\x01{key}\x02" if key else "")
    return SendBatch(
        producer_group="p", topic=topic, queue_id=queue, properties=properties, batch=True,
        born_timestamp=1, **more,  # type: ignore[arg-type]
    )  # fmt: skip


def body(*bodies: bytes, text: str = "") -> bytes:
    return encode(BatchedMessage(0, each, text) for each in bodies)


def test_a_batch_is_one_record_and_answered_with_one_id() -> None:
    async def test(asker: Asker) -> None:
        await asker.create("t", 1, attributes=KIND)
        await asker.send("t", b"first")
        reply = await asker.call(batch(), body(b"a", b"b", b"c"))
        assert reply.code == SUCCESS
        assert (reply.fields["queueOffset"], reply.fields["batchUniqId"]) == ("1", "U1")
        assert "," not in reply.fields["msgId"]
        assert await asker.max_offset("t") == 4
        pulled = await asker.pull("t", 2)
        assert [each.body for each in pulled.messages] == [b"a", b"b", b"c"]
        assert [each.queue_offset for each in pulled.messages] == [1, 2, 3]
        assert pulled.next_offset == 4
        assert (await asker.pull("t", 4)).code == 19

    play(test)


def test_a_batch_without_a_key_is_stored_message_by_message_as_in_java() -> None:
    async def test(asker: Asker) -> None:
        await asker.create("t", 1, attributes=KIND)
        reply = await asker.call(batch(key=None), body(b"a", b"b"))
        assert "batchUniqId" not in reply.fields
        assert len(reply.fields["msgId"].split(",")) == 2
        assert await asker.bodies("t") == [b"a", b"b"]

    play(test)


def test_what_a_batch_cannot_hold_is_refused() -> None:
    async def test(asker: Asker) -> None:
        await asker.create("t", 1, attributes=KIND)
        assert await asker.code(batch(), b"garbage") == 1
        for text in ("DELAY\x011\x02", "TRAN_MSG\x01true\x02", "TIMER_DELAY_SEC\x011\x02"):
            assert await asker.code(batch(), body(b"a", text=text)) == 13
        assert await asker.max_offset("t") == 0

    play(test)


def test_a_sender_cannot_make_a_plain_message_a_batch() -> None:
    async def test(asker: Asker) -> None:
        await asker.create("t", 1, attributes=KIND)
        await asker.create("plain", 1)
        for topic in ("t", "plain"):
            await asker.send(topic, body(b"a", b"b"), INNER_NUM="2", INNER_BASE="7")
            header = batch(topic)
            header.batch, header.sys_flag = False, 0xC0
            assert await asker.max_offset(topic) == 1
            (message,) = (await asker.pull(topic)).messages
            assert "INNER_NUM" not in message.properties

    play(test)


def test_a_batch_is_not_popped_nor_given_back_as_a_whole() -> None:
    async def test(asker: Asker) -> None:
        await asker.create("t", 1, attributes=KIND)
        await asker.call(batch(), body(b"a", b"b"))
        assert (await pop(asker)).code == 29
        await asker.beat("g", topics={"t": "*"})
        (message, _) = (await asker.pull("t")).messages
        back = SendBack(offset=message.log_offset, group="g", delay_level=0)
        assert await asker.code(back) == 13

    play(test)


def test_topics_and_messages_are_there_after_a_kill_also_without_the_file_of_topics() -> None:
    async def main(*, is_file_lost: bool) -> None:
        disk = new_disk()
        async with serving(disk) as asker:
            await asker.create("t", 1, attributes=KIND)
            await asker.call(batch(), body(b"a", b"b"))
            disk = disk.after_kill()
        if is_file_lost:
            disk.remove("/data/config/topics.json")
            disk.remove("/data/config/topics.json.bak")
        async with serving(disk) as asker:
            assert await asker.bodies("t") == [b"a", b"b"]
            await asker.call(batch(), body(b"c"))
            assert await asker.bodies("t") == [b"a", b"b", b"c"]
            assert asker.broker is not None

    for is_lost in (False, True):
        simulate(lambda network, is_lost=is_lost: main(is_file_lost=is_lost))


@pytest.mark.parametrize("delay", [0.0, 0.2])
def test_a_slave_shows_the_same_batches_also_if_the_topic_comes_to_it_later(delay: float) -> None:
    async def test(running: BrokerGroup) -> None:
        master, slave = running.askers
        await master.create("t", 2, attributes=KIND)
        await asyncio.sleep(delay)
        for queue in (0, 1):
            await master.send("t", b"alone", queue=queue)
            await master.call(batch(queue=queue), body(b"a", b"b"))
            await master.send("t", b"last", queue=queue)
        await asyncio.sleep(2)
        for queue in (0, 1):
            bodies = [b"alone", b"a", b"b", b"last"]
            assert await slave.bodies("t", queue) == bodies == await master.bodies("t", queue)
            assert await slave.max_offset("t", queue) == 4

    async def main(network: Network) -> None:
        async with group(network, slaves=1, slave_reads=True) as running:
            await test(running)

    simulate(main)


def test_a_topic_is_made_again_as_another_kind() -> None:
    async def main() -> None:
        disk = new_disk()
        for kind in ("BatchCQ", "SimpleCQ", "BatchCQ"):
            async with serving(disk) as asker:
                await asker.create("t", 1, attributes=f"+queue.type={kind}")
                reply = await asker.call(batch(), body(b"a", b"b"))
                assert ("batchUniqId" in reply.fields) == (kind == "BatchCQ")
                disk = disk.after_kill()
            async with serving(disk) as asker:
                assert await asker.bodies("t") == [b"a", b"b"]
                assert await asker.code(DeleteTopic(topic="t")) == SUCCESS

    simulate(lambda network: main())
