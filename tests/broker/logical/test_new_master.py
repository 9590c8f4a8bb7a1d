"""Static topics when a broker gets another master."""

from __future__ import annotations

import asyncio
from typing import Any, cast

from sprocket.broker.logical.mapped import MappedQueues
from sprocket.broker.logical.parts import PartRequests
from sprocket.broker.logical.pulls import LogicalPulls
from sprocket.broker.tables.offsets import ConsumerOffsets
from sprocket.broker.tables.queue_mappings import QueueMappings
from sprocket.protocol.bodies import MappingDetail, MappingItem
from sprocket.protocol.command import Command, Reply
from sprocket.protocol.requests.pull import PullMessage, PullReply
from sprocket.protocol.requests.topic import DeleteTopic
from sprocket.remoting.transport import Peer
from sprocket.testing.clock import ManualClock
from sprocket.testing.loop import simulate
from tests.broker.logical.moving import Land, play
from tests.broker.parts import pull_of

PARTS = [MappingItem(bname="a"), MappingItem(bname="b", gen=1, logic_offset=10_000)]


class NewMaster:
    """Shows two messages of a part that has more."""

    def __init__(self, end: int) -> None:
        self.end = end

    async def ask(self, item: MappingItem, header: Any, *_: object) -> Reply:
        shown = PullReply(
            suggest_which_broker_id=0, next_begin_offset=2, min_offset=0, max_offset=2
        )
        return Reply(shown, code=19)

    async def end_of(self, *_: object) -> int:
        return self.end


def following(end: int) -> tuple[int, int]:
    async def main() -> tuple[int, int]:
        mappings = QueueMappings("b", ManualClock(), on_change=lambda topic: None)
        mappings.put(
            MappingDetail(bname="b", hosted_queues={0: PARTS}, topic="T", total_queues=1),
            is_forced=False,
        )
        pulls = LogicalPulls(
            MappedQueues(mappings),
            cast(PartRequests, NewMaster(end)),
            mappings,
            cast(ConsumerOffsets, None),
        )

        def never(command: Command, peer: Peer) -> Reply:
            raise AssertionError("the topic is static")

        endpoints = pulls.around({PullMessage.code: never, 361: never})
        outcome = endpoints[PullMessage.code](Command.request(pull_of("T", 2)), cast(Peer, None))
        reply = await cast(Any, outcome)
        return reply.code, reply.header.next_begin_offset

    return simulate(lambda network: main())


def test_messages_that_a_new_master_does_not_show_yet_are_not_skipped() -> None:
    assert following(5) == (19, 2)
    assert following(2) == (20, 10_000)


def test_a_slave_that_is_promoted_goes_on_with_the_logical_queues() -> None:
    async def test(land: Land) -> None:
        first, slave = land.cluster.brokers[1], land.cluster.slaves[1]
        await land.create(1, "broker-0")
        await land.sent("broker-0", b"0")
        await land.move("broker-1")
        await land.sent("broker-1", b"1")
        await asyncio.sleep(3)
        mapped = slave.server._parts.tables.mappings.by_topic
        assert mapped == first.server._parts.tables.mappings.by_topic
        first.kill()
        await slave.stop()
        await land.cluster.promote(slave, id=0, role="ASYNC_MASTER")
        await asyncio.sleep(1)
        assert await land.sent(slave.name, b"2") == [10_001]
        assert await land.read(slave.name) == [(0, b"0"), (10_000, b"1"), (10_001, b"2")]
        assert (await land.call(slave.name, DeleteTopic(topic="T"))).code == 0

    play(test, slaves=1)


def test_a_slave_forgets_a_topic_that_its_master_deleted() -> None:
    async def test(land: Land) -> None:
        slave = land.cluster.slaves[0]
        await land.create(1, "broker-0")
        await asyncio.sleep(2)
        assert "T" in slave.server._parts.tables.mappings.by_topic
        await land.call("broker-0", DeleteTopic(topic="T"))
        await asyncio.sleep(2)
        assert not slave.server._parts.tables.mappings.by_topic

    play(test, brokers=1, slaves=1)
