"""A broker on a simulated loop, asked through its public door."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TypeVar

from sprocket.base.deadline import Deadline
from sprocket.broker.broker import Broker
from sprocket.broker.config import BrokerConfig
from sprocket.message.message import StoredMessage
from sprocket.message.record import scan
from sprocket.protocol.bodies import (
    ConsumerData,
    HeartbeatBody,
    ProducerData,
    SubscriptionData,
)
from sprocket.protocol.command import Buffer, Command, Header, Reply
from sprocket.protocol.requests.client import Heartbeat
from sprocket.protocol.requests.offset import MaxOffset, QueryOffset, UpdateOffset
from sprocket.protocol.requests.pull import SUBSCRIPTION, SUSPEND, PullMessage
from sprocket.protocol.requests.send import SendMessageV2
from sprocket.protocol.requests.topic import CreateTopic
from sprocket.protocol.signing import Signer
from sprocket.remoting.pool import Pool
from sprocket.remoting.transport import Peer
from sprocket.store.config import StoreConfig
from sprocket.testing.clock import LoopClock
from sprocket.testing.disk import MemoryDisk
from sprocket.testing.entropy import SeededEntropy
from sprocket.testing.loop import simulate

T = TypeVar("T")

ROOT = "/data"
CONFIG = BrokerConfig(port=10911)
#: Small files, so that rolling from one to the next happens.
STORE = StoreConfig(
    log_file_bytes=256 * 1024, queue_file_bytes=100 * 20, index_slots=50, index_entries=100
)
SUCCESS, NOT_FOUND, RETRY, MOVED = 0, 19, 20, 21


class Asker:
    """A client's connection to a broker.

    Attributes:
        told: requests that the broker sent, in order.
    """

    def __init__(self, broker: Broker, signer: Signer | None = None) -> None:
        self.broker = broker
        self.told: list[Command] = []
        self.answer: Callable[[Command], Reply | None] = lambda command: None
        self.pool = Pool(endpoint=self._told, signer=signer)

    def _told(self, command: Command, peer: Peer) -> Reply | None:
        self.told.append(command)
        return self.answer(command)

    async def call(self, header: Header, body: Buffer = b"", seconds: float = 60.0) -> Command:
        """The reply, whatever its code."""
        deadline = Deadline.after(seconds)
        return await self.pool.call(self.broker.address, header, body=body, deadline=deadline)

    async def code(self, header: Header, body: Buffer = b"") -> int:
        """The reply's code."""
        return (await self.call(header, body)).code

    async def create(
        self, topic: str, queues: int = 1, permission: int = 6, attributes: str | None = None
    ) -> None:
        header = CreateTopic(
            topic=topic,
            default_topic="TBW102",
            read_queue_nums=queues,
            write_queue_nums=queues,
            perm=permission,
            topic_filter_type="SINGLE_TAG",
            attributes=attributes,
        )
        assert await self.code(header) == SUCCESS

    async def send(
        self, topic: str, body: bytes = b"x", *, queue: int = 0, **properties: str
    ) -> dict[str, str]:
        """Sends one message; returns the reply's fields."""
        text = "".join(f"{name}\x01{value}\x02" for name, value in properties.items())
        header = SendMessageV2(
            producer_group="p", topic=topic, queue_id=queue, properties=text, born_timestamp=1
        )
        reply = await self.call(header, body)
        assert reply.code == SUCCESS, (reply.code, reply.remark)
        return dict(reply.fields)

    async def pull(
        self, topic: str, offset: int = 0, *, queue: int = 0, hold_ms: int = 0, tags: str = "*"
    ) -> Pulled:
        """Pulls with a subscription of its own."""
        header = pull_of(topic, offset, queue=queue, hold_ms=hold_ms, tags=tags)
        return Pulled(await self.call(header))

    async def bodies(self, topic: str, queue: int = 0) -> list[bytes]:
        """Bodies of all messages of a queue."""
        found: list[bytes] = []
        while (pulled := await self.pull(topic, len(found), queue=queue)).code == SUCCESS:
            found += [message.body for message in pulled.messages]
        return found

    async def beat(
        self, group: str = "", *, client_id: str = "c1", topics: dict[str, str] | None = None,
        producer: str = "", version: int = 1, model: str = "CLUSTERING",
    ) -> Command:  # fmt: skip
        """A heartbeat with one consumer group, one producer group, or both."""
        subscriptions = [
            SubscriptionData(topic=topic, sub_string=text, sub_version=version)
            for topic, text in (topics or {}).items()
        ]
        consumer = ConsumerData(
            group_name=group,
            consume_type="CONSUME_PASSIVELY",
            message_model=model,
            subscriptions=subscriptions,
        )
        body = HeartbeatBody(
            client_id=client_id,
            consumers=[consumer] if group else [],
            producers=[ProducerData(group_name=producer)] if producer else [],
        )
        reply = await self.call(Heartbeat(), body.encode())
        assert reply.code == SUCCESS, reply.remark
        return reply

    async def commit(self, group: str, topic: str, offset: int, queue: int = 0) -> int:
        header = UpdateOffset(
            consumer_group=group, topic=topic, queue_id=queue, commit_offset=offset
        )
        return await self.code(header)

    async def committed(self, group: str, topic: str, queue: int = 0) -> int | None:
        header = QueryOffset(
            consumer_group=group, topic=topic, queue_id=queue, set_zero_if_not_found=False
        )
        reply = await self.call(header)
        return int(reply.fields["offset"]) if reply.code == SUCCESS else None

    async def max_offset(self, topic: str, queue: int = 0) -> int:
        reply = await self.call(MaxOffset(topic=topic, queue_id=queue))
        return int(reply.fields["offset"])


class Pulled:
    """A reply to a pull."""

    def __init__(self, reply: Command) -> None:
        self.code = reply.code
        self.remark = reply.remark
        self.fields = dict(reply.fields)
        self.messages: list[StoredMessage] = list(scan(bytes(reply.body)))

    @property
    def next_offset(self) -> int:
        return int(self.fields["nextBeginOffset"])


def pull_of(
    topic: str, offset: int = 0, *, queue: int = 0, hold_ms: int = 0, tags: str = "*"
) -> PullMessage:
    """A pull that brings its subscription, by group `g`."""
    return PullMessage(
        consumer_group="g",
        topic=topic,
        queue_id=queue,
        queue_offset=offset,
        max_msg_nums=32,
        sys_flag=SUBSCRIPTION | (SUSPEND if hold_ms else 0),
        suspend_timeout_millis=hold_ms,
        subscription=tags,
    )


@asynccontextmanager
async def serving(
    disk: MemoryDisk | None = None, *, store: StoreConfig = STORE, **settings: object
) -> AsyncIterator[Asker]:
    """A broker, and a connection to it."""
    broker = Broker(
        replace(CONFIG, **settings),  # type: ignore[arg-type]
        store=store,
        root=ROOT,
        disk=disk or new_disk(),
        clock=LoopClock(),
        entropy=SeededEntropy(1),
    )
    async with broker:
        asker = Asker(broker)
        async with asker.pool:
            yield asker


@asynccontextmanager
async def another(asker: Asker, signer: Signer | None = None) -> AsyncIterator[Asker]:
    """One more connection to the same broker, which signs its requests if it has keys."""
    other = Asker(asker.broker, signer)
    async with other.pool:
        yield other


def new_disk() -> MemoryDisk:
    """An empty disk."""
    disk = MemoryDisk()
    disk.make_directory(ROOT)
    return disk


def play(
    test: Callable[[Asker], Awaitable[T]],
    disk: MemoryDisk | None = None,
    *,
    store: StoreConfig = STORE,
    **settings: object,
) -> T:
    """Runs a test against a broker, in virtual time."""

    async def main() -> T:
        async with serving(disk, store=store, **settings) as asker:
            return await test(asker)

    return simulate(lambda network: main())


async def settle(turns: int = 20) -> None:
    """Lets everything that can happen now happen."""
    for _ in range(turns):
        await asyncio.sleep(0.001)
