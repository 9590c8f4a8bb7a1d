"""A cluster of brokers with a static topic, asked for its logical queues by raw requests."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TypeVar

from sprocket.admin import static_topics
from sprocket.admin.caller import Caller
from sprocket.base.deadline import Deadline
from sprocket.clientcore.logical_queues import leader
from sprocket.message.message import StoredMessage
from sprocket.message.record import scan
from sprocket.protocol.bodies import MappedTopic
from sprocket.protocol.command import Command, Header
from sprocket.protocol.requests.offset import QueryOffset, UpdateOffset
from sprocket.protocol.requests.pull import PullMessage
from sprocket.protocol.requests.send import SendMessageV2
from sprocket.remoting.pool import Pool
from sprocket.testing.cluster import BROKER_PORT, Cluster
from sprocket.testing.loop import simulate
from sprocket.testing.network import Network
from tests.broker.parts import SUCCESS, pull_of

T = TypeVar("T")


class Land:
    """A running cluster whose brokers are `broker-0` and so on, and an operator with a client."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.pool = Pool()
        self.caller = Caller(self.pool, cluster.nameserver_addresses)
        self.now_ms = 1_700_000_000_000

    async def create(self, queues: int = 1, *brokers: str) -> dict[str, MappedTopic]:
        return await static_topics.create(
            self.caller, "T", queues=queues, brokers=brokers, now_ms=self.now_ms
        )

    async def move(self, *brokers: str) -> dict[str, MappedTopic]:
        return await static_topics.move_queues(
            self.caller, "T", brokers=brokers, now_ms=self.now_ms
        )

    def address(self, broker: str) -> str:
        (machine,) = (each for each in self.cluster.machines if each.name == broker)
        return f"{machine.address}:{BROKER_PORT}"

    async def leader(self, number: int = 0) -> str:
        """The broker that leads a logical queue."""
        for name, mapped in (await static_topics.mappings(self.caller, "T")).items():
            assert mapped.mapping_detail is not None
            if leader(mapped.mapping_detail, number) is not None:
                return name
        raise AssertionError("nobody leads it")

    async def call(self, broker: str, header: Header, body: bytes = b"") -> Command:
        deadline = Deadline.after(60)
        return await self.pool.call(self.address(broker), header, body=body, deadline=deadline)

    async def send(self, broker: str, body: bytes, *, queue: int = 0, **properties: str) -> Command:
        text = "".join(f"{name}\x01{value}\x02" for name, value in properties.items())
        header = SendMessageV2(
            producer_group="p", topic="T", queue_id=queue, properties=text, born_timestamp=1
        )
        return await self.call(broker, header, body)

    async def sent(self, broker: str, *bodies: bytes, queue: int = 0) -> list[int]:
        """Sends, and returns the logical offsets."""
        offsets = []
        for body in bodies:
            reply = await self.send(broker, body, queue=queue)
            assert (reply.code, reply.fields.get("queueId")) == (SUCCESS, str(queue)), reply.remark
            offsets.append(int(reply.fields["queueOffset"]))
        return offsets

    async def pull(self, broker: str, offset: int, *, queue: int = 0, hold_ms: int = 0) -> Command:
        return await self.call(broker, pull_of("T", offset, queue=queue, hold_ms=hold_ms))

    async def read(
        self, broker: str, offset: int = 0, *, queue: int = 0
    ) -> list[tuple[int, bytes]]:
        """All messages from an offset on, with their logical offsets, as a client reads them."""
        found: list[tuple[int, bytes]] = []
        for _ in range(100):
            reply = await self.pull(broker, offset, queue=queue)
            following = int(reply.fields["nextBeginOffset"])
            if reply.code == SUCCESS:
                delta = int(reply.fields["offsetDelta"])
                found += [(each.queue_offset + delta, each.body) for each in messages(reply)]
            elif following == offset:
                return found
            offset = following
        raise AssertionError("the queue has no end")

    async def committed(self, broker: str, queue: int = 0) -> int | None:
        header = QueryOffset(
            consumer_group="g", topic="T", queue_id=queue, set_zero_if_not_found=False
        )
        reply = await self.call(broker, header)
        return int(reply.fields["offset"]) if reply.code == SUCCESS else None

    async def commit(self, broker: str, offset: int, queue: int = 0) -> int:
        header = UpdateOffset(consumer_group="g", topic="T", queue_id=queue, commit_offset=offset)
        return (await self.call(broker, header)).code


def messages(reply: Command) -> list[StoredMessage]:
    """The messages of a pull."""
    return list(scan(bytes(reply.body)))


def commits(offset: int, commit_offset: int) -> PullMessage:
    """A pull that brings an offset to commit."""
    header = pull_of("T", offset)
    header.sys_flag |= 1
    header.commit_offset = commit_offset
    return header


@asynccontextmanager
async def land(network: Network, brokers: int = 2, slaves: int = 0) -> AsyncIterator[Land]:
    cluster = Cluster(network, brokers=brokers, slaves=slaves)
    await cluster.start()
    made = Land(cluster)
    try:
        yield made
    finally:
        await made.pool.close()
        await cluster.stop()


def play(test: Callable[[Land], Awaitable[T]], brokers: int = 2, slaves: int = 0) -> T:
    """Runs a test with a cluster, in virtual time."""

    async def main(network: Network) -> T:
        async with land(network, brokers, slaves) as made:
            return await test(made)

    return simulate(main)
