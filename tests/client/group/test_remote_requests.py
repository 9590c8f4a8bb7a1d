"""What a consumer does for operators: against a node, and by itself."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest

from sprocket import Later, Message, Producer, PushConsumer, Standalone
from sprocket.base.deadline import Deadline
from sprocket.base.errors import RemoteProtocolError, ReplyError
from sprocket.broker.config import BrokerConfig
from sprocket.client.group.remote_requests import positions_in, stacks
from sprocket.message.message import StoredMessage
from sprocket.message.queue import QueueId
from sprocket.protocol.bodies import (
    ConsumeDirectlyResult,
    ConsumeStatusBody,
    Queue,
    QueueOffsetItem,
    ResetOffsetBody,
    ResetOffsetList,
    RunningInfo,
)
from sprocket.protocol.command import Command, Header
from sprocket.protocol.requests.client import ConsumeDirectly, ConsumerRunning
from sprocket.protocol.requests.offset import ConsumeStatus, QueryOffset, ResetOffset
from sprocket.protocol.requests.topic import CreateTopic
from sprocket.remoting.pool import Pool
from tests.support import run


class Town:
    """A node, a topic `T` of one queue with messages 0 to 9, and an operator."""

    def __init__(self, node: Standalone, pool: Pool) -> None:
        self.node = node
        self._pool = pool
        self.ids: list[str] = []

    async def ask(self, header: Header, body: bytes = b"") -> Command:
        address, deadline = self.node.broker_address, Deadline.after(60)
        return await self._pool.ask(address, header, body=body, deadline=deadline)

    async def send(self, first: int, end: int) -> None:
        async with Producer("p", nameservers=self.node.nameserver_address) as producer:
            for number in range(first, end):
                sent = await producer.send(Message("T", b"%d" % number))
                self.ids.append(sent.offset_id)

    async def committed(self) -> int:
        reply = await self.ask(QueryOffset(consumer_group="g", topic="T", queue_id=0))
        return int(reply.fields["offset"])

    def consumer(self, *, ordered: bool = False) -> PushConsumer:
        names = self.node.nameserver_address
        return PushConsumer("g", nameservers=names, start="first", ordered=ordered)


@asynccontextmanager
async def town(*, server_side_reset: bool = True) -> AsyncIterator[Town]:
    config = BrokerConfig(host="127.0.0.1", port=0, server_side_reset=server_side_reset)
    async with Standalone(configs=[config]) as node, Pool() as pool:
        made = Town(node, pool)
        header = CreateTopic(
            topic="T", default_topic="TBW102", read_queue_nums=1, write_queue_nums=1, perm=6,
            topic_filter_type="SINGLE_TAG",
        )  # fmt: skip
        await made.ask(header)
        await made.send(0, 10)
        yield made


async def until(condition: Callable[[], bool], seconds: float = 120.0) -> None:
    for _ in range(int(seconds * 100)):
        if condition():
            return
        await asyncio.sleep(0.01)
    raise AssertionError(f"still not so after {seconds} s")


@pytest.mark.parametrize("server_side_reset", [True, False])
@pytest.mark.parametrize("ordered", [True, False])
def test_a_busy_consumer_is_moved_and_its_old_work_commits_nothing(
    server_side_reset: bool, ordered: bool
) -> None:
    async def story() -> None:
        async with town(server_side_reset=server_side_reset) as there:
            consumer = there.consumer(ordered=ordered)
            seen: list[int] = []
            ended: list[int] = []
            overlapping: list[int] = []
            may_end = asyncio.Event()

            @consumer.on("T")
            async def listen(message: StoredMessage) -> None:
                if seen != ended:
                    overlapping.append(message.queue_offset)
                seen.append(message.queue_offset)
                if message.queue_offset == 9:
                    await may_end.wait()
                ended.append(message.queue_offset)

            async with consumer:
                await until(lambda: 9 in seen)
                reset = ResetOffset(topic="T", group="g", queue_id=-1, timestamp=0, is_force=True)
                await there.ask(reset)
                asyncio.get_running_loop().call_later(0.2, may_end.set)
                await until(lambda: seen.count(0) == 2 and seen.count(9) == 2)
                assert sorted(seen[10:]) == list(range(10))
                assert not (ordered and overlapping)
            assert await there.committed() == 10

    run(story())


def test_a_reset_of_a_group_that_is_away_counts_when_it_comes() -> None:
    async def story() -> None:
        async with town() as there:
            seen: list[int] = []
            for expected in (range(10), range(4, 10)):
                seen.clear()
                consumer = there.consumer()

                @consumer.on("T")
                async def listen(message: StoredMessage) -> None:
                    seen.append(message.queue_offset)

                async with consumer:
                    await until(lambda: 9 in seen)
                assert sorted(seen) == list(expected)
                await there.ask(ResetOffset(topic="T", group="g", queue_id=0, offset=4))

    run(story())


def test_a_consumer_tells_what_it_holds_and_does() -> None:
    async def story() -> None:
        async with town() as there:
            consumer = there.consumer()
            never = asyncio.Event()
            seen: list[int] = []

            @consumer.on("T", tags="*")
            async def listen(message: StoredMessage) -> None:
                seen.append(message.queue_offset)
                if message.queue_offset >= 7:
                    await never.wait()

            async with consumer:
                await until(lambda: len(seen) == 10)
                assert consumer.client_id is not None
                running = ConsumerRunning(
                    consumer_group="g", client_id=consumer.client_id, jstack_enable=True
                )
                info = RunningInfo.decode((await there.ask(running)).body)
                window = info.mq_table[Queue(broker_name="broker-a", queue_id=0, topic="T")]
                assert (window.cached_msg_count, window.commit_offset) == (3, 7)
                assert (window.cached_msg_min_offset, window.cached_msg_max_offset) == (7, 9)
                assert window.last_consume_timestamp > 0
                assert {each.topic for each in info.subscription_set} == {"T", "%RETRY%g"}
                rates = info.status_table["T"]
                assert rates.consume_ok_tps > 0
                assert rates.pull_tps > 0
                properties = info.properties
                assert properties["PROP_CONSUME_TYPE"] == "CONSUME_PASSIVELY"
                assert properties["PROP_CONSUMEORDERLY"] == "false"
                assert there.node.nameserver_address in properties["PROP_NAMESERVER_ADDR"]
                assert info.jstack is not None
                assert "task " in info.jstack
                reply = await there.ask(ConsumeStatus(topic="T", group="g"))
                table = ConsumeStatusBody.decode(reply.body).consumer_table
                assert list(table[consumer.client_id].values()) == [7]
                never.set()

    run(story())


def test_a_consumer_consumes_one_message_directly() -> None:
    async def story() -> None:
        async with town() as there:
            consumer = there.consumer()
            seen: list[bytes] = []

            def listen(message: StoredMessage) -> Later | None:
                seen.append(message.body)
                if message.body == b"1" and seen.count(b"1") > 1:
                    return Later()
                if message.body == b"2" and seen.count(b"2") > 1:
                    raise ValueError("no twos")
                return None

            consumer.subscribe("T", listener=listen)
            async with consumer:
                await until(lambda: len(seen) == 10)
                results = []
                for number in range(3):
                    directly = ConsumeDirectly(
                        consumer_group="g",
                        client_id=consumer.client_id,
                        msg_id=there.ids[number],
                        topic="T",
                    )
                    reply = await there.ask(directly)
                    results.append(ConsumeDirectlyResult.decode(reply.body))
                assert [each.consume_result for each in results] == [
                    "CR_SUCCESS", "CR_LATER", "CR_THROW_EXCEPTION",
                ]  # fmt: skip
                assert results[2].remark == "ValueError: no twos"
                assert seen[10:] == [b"0", b"1", b"2"]
                assert await there.committed() <= 10

    run(story())


def test_a_consumer_without_listeners_consumes_nothing_directly() -> None:
    async def story() -> None:
        async with town() as there, there.consumer() as consumer:
            consumer.subscribe("T")
            await until(lambda: bool(consumer.queues))
            directly = ConsumeDirectly(
                consumer_group="g", client_id=consumer.client_id, msg_id=there.ids[0], topic="T"
            )
            with pytest.raises(ReplyError, match="nobody listens to topic T"):
                await there.ask(directly)

    run(story())


def test_both_forms_of_offsets_are_read() -> None:
    table = ResetOffsetBody(offset_table={Queue(broker_name="b", queue_id=1, topic="T"): 5})
    item = QueueOffsetItem(broker_name="b", offset=5, queue_id=1, topic="T")
    items = ResetOffsetList(offset_table=[item])
    expected = {QueueId("T", "b", 1): 5}
    assert positions_in(table.encode()) == expected
    assert positions_in(items.encode()) == expected
    assert positions_in(b"{}") == {}
    with pytest.raises(RemoteProtocolError):
        positions_in(b"nonsense")


def test_stacks_tell_tasks_and_threads() -> None:
    async def story() -> None:
        told = stacks()
        assert "test_stacks_tell_tasks_and_threads" in told
        assert "thread " in told

    run(story())
