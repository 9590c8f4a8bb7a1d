"""Messages that come back, through the door."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from sprocket.protocol.bodies import GroupConfig, LockBody, Queue, TopicConfig
from sprocket.protocol.requests.group import CreateGroup
from sprocket.protocol.requests.lock import LockQueues
from sprocket.protocol.requests.send import SendBack, SendMessageV2
from sprocket.protocol.requests.topic import TopicConfigOf
from sprocket.testing.disk import FaultyDisk
from tests.broker.parts import ROOT, STORE, SUCCESS, Asker, play

RETRY_TOPIC, DEAD_LETTERS = "%RETRY%g", "%DLQ%g"


def back(log_offset: int, *, level: int = 0, limit: int | None = None) -> SendBack:
    return SendBack(
        offset=log_offset,
        group="g",
        delay_level=level,
        origin_msg_id="x",
        origin_topic="T",
        max_reconsume_times=limit,
    )


async def sent(asker: Asker) -> int:
    """Log offset of a message."""
    await asker.send("T", b"body", TAGS="a", mine="1")
    (message,) = (await asker.pull("T")).messages
    return message.log_offset


def test_a_message_comes_again_after_its_delay_with_what_it_had() -> None:
    async def test(asker: Asker) -> None:
        loop = asyncio.get_running_loop()
        log_offset = await sent(asker)
        began = loop.time()
        assert await asker.code(back(log_offset)) == SUCCESS
        waiting = await asker.pull(RETRY_TOPIC, hold_ms=15_000)
        assert 10 <= loop.time() - began < 10.5
        (message,) = waiting.messages
        assert (message.body, message.reconsume_times) == (b"body", 1)
        assert message.properties["RETRY_TOPIC"] == "T"
        assert message.properties["mine"] == "1"
        assert message.properties["ORIGIN_MESSAGE_ID"].endswith(f"{log_offset:016X}")
        assert [m.body for m in (await asker.pull(RETRY_TOPIC, tags="a")).messages] == [b"body"]

    play(test)


def test_after_the_last_try_it_is_a_dead_letter_at_once_and_can_be_read() -> None:
    async def test(asker: Asker) -> None:
        log_offset = await sent(asker)
        for attempt in range(2):
            assert await asker.code(back(log_offset, limit=2, level=1)) == SUCCESS
            pulled = await asker.pull(RETRY_TOPIC, attempt, hold_ms=15_000)
            log_offset = pulled.messages[0].log_offset
        assert await asker.code(back(log_offset, limit=2, level=1)) == SUCCESS
        (message,) = (await asker.pull(DEAD_LETTERS)).messages
        assert (message.body, message.reconsume_times) == (b"body", 3)
        assert message.properties["RETRY_TOPIC"] == "T"
        await asyncio.sleep(30)
        assert len(await asker.bodies(RETRY_TOPIC)) == 2
        reply = await asker.call(TopicConfigOf(topic=DEAD_LETTERS))
        topic = TopicConfig.decode(reply.body)
        assert (topic.perm, topic.read_queue_nums) == (6, 1)

    play(test)


@pytest.mark.parametrize("wait", ["true", "false"])
def test_it_is_on_the_disk_when_that_is_answered_where_sends_are(wait: str) -> None:
    disk = FaultyDisk("slow", sync_seconds=(0.2, 0.2))
    disk.make_directory(ROOT)

    async def test(asker: Asker) -> None:
        loop = asyncio.get_running_loop()
        await asker.send("T", b"body", WAIT=wait)
        await asyncio.sleep(1.0)
        (message,) = (await asker.pull("T")).messages
        began = loop.time()
        assert await asker.code(back(message.log_offset, level=-1)) == SUCCESS
        assert loop.time() - began >= 0.2
        assert await asker.bodies(DEAD_LETTERS) == [b"body"]

    play(test, disk, store=replace(STORE, flush="SYNC_FLUSH"))


@pytest.mark.parametrize(("level", "limit"), [(-1, 16), (0, 0)])
def test_a_group_may_give_up_at_once(level: int, limit: int) -> None:
    async def test(asker: Asker) -> None:
        assert await asker.code(back(await sent(asker), level=level, limit=limit)) == SUCCESS
        assert await asker.bodies(DEAD_LETTERS) == [b"body"]

    play(test)


def test_what_cannot_come_back_is_refused_with_its_reason() -> None:
    async def test(asker: Asker) -> None:
        log_offset = await sent(asker)
        for wrong in (log_offset + 1, 1 << 40, -1):
            reply = await asker.call(back(wrong))
            assert (reply.code, str(wrong) in (reply.remark or "")) == (1, True)
        unknown = back(log_offset)
        unknown.group = "bad name!"
        assert await asker.code(unknown) == 26

    play(test)


def test_a_group_without_retry_queues_wants_nothing_back() -> None:
    async def test(asker: Asker) -> None:
        body = GroupConfig(group_name="g", retry_queue_nums=0).encode()
        await asker.code(CreateGroup(), body)
        assert await asker.code(back(await sent(asker))) == SUCCESS
        assert await asker.code(TopicConfigOf(topic=RETRY_TOPIC)) == 17

    play(test)


def resend(times: int, limit: int = 1) -> SendMessageV2:
    """A message sent to the retry topic, as ordered consumers do when they give up."""
    return SendMessageV2(
        producer_group="p",
        topic=RETRY_TOPIC,
        queue_id=0,
        properties="DELAY\x014\x02RETRY_TOPIC\x01T\x02",
        reconsume_times=times,
        max_reconsume_times=limit,
    )


def test_a_send_to_the_retry_topic_waits_or_is_a_dead_letter_by_its_count() -> None:
    async def test(asker: Asker) -> None:
        assert await asker.code(resend(1), b"once more") == SUCCESS
        assert await asker.code(resend(2), b"too often") == SUCCESS
        assert await asker.bodies(DEAD_LETTERS) == [b"too often"]
        await asyncio.sleep(31)
        assert await asker.bodies(RETRY_TOPIC) == [b"once more"]

    play(test)


def test_what_an_ordered_group_sends_to_its_retry_topic_is_a_dead_letter_at_the_limit() -> None:
    async def test(asker: Asker) -> None:
        await asker.create("T")
        queue = Queue(broker_name="broker-a", queue_id=0, topic="T")
        body = LockBody(client_id="c", consumer_group="g", mq_set=[queue]).encode()
        assert await asker.code(LockQueues(), body) == SUCCESS
        assert await asker.code(resend(1, limit=1), b"given up") == SUCCESS
        assert await asker.bodies(DEAD_LETTERS) == [b"given up"]
        await asyncio.sleep(60)
        assert await asker.bodies(RETRY_TOPIC) == []

    play(test)
