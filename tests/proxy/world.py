"""A proxy before brokers on a simulated loop, and clients that call its methods.

The calls are those of the engine, without a connection: the border between the two is bytes.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any, TypeVar

from sprocket.base.deadline import Deadline
from sprocket.broker.config import BrokerConfig
from sprocket.client.producer import Producer
from sprocket.protocol.bodies import GroupConfig
from sprocket.protocol.command import Buffer, Command, Header
from sprocket.protocol.requests.group import CreateGroup
from sprocket.protocol.requests.offset import MaxOffset, OffsetReply
from sprocket.protocol.requests.topic import CreateTopic
from sprocket.protocol.signing import Signer
from sprocket.proxy.config import ProxyConfig
from sprocket.proxy.http2.call_form import Streaming, Unary
from sprocket.proxy.messages import rocketmq_pb2 as pb
from sprocket.proxy.proxy import SERVICE, InnerBroker, Proxy
from sprocket.remoting.pool import Pool
from sprocket.remoting.tls.settings import DISABLED, TlsConfig
from sprocket.testing.clock import LoopClock
from sprocket.testing.cluster import Cluster
from sprocket.testing.entropy import SeededEntropy
from sprocket.testing.loop import simulate
from sprocket.testing.network import Network

R = TypeVar("R")

TOPIC, GROUP = "orders", "workers"


class FakeCall:
    """A call as the engine gives it to a method."""

    def __init__(
        self, metadata: dict[str, str], deadline: Deadline, requests: list[bytes] | None = None
    ) -> None:
        self.method = ""
        self.metadata = metadata
        self.deadline = deadline
        self.address = "10.9.8.7:1234"
        self.is_over = False
        self.sent: list[bytes] = []
        self.arrived: asyncio.Queue[bytes] = asyncio.Queue()
        self._requests: asyncio.Queue[bytes | None] = asyncio.Queue()
        for each in requests or ():
            self._requests.put_nowait(each)

    def put(self, request: bytes | None) -> None:
        """Has the client send a message; None ends its side."""
        self._requests.put_nowait(request)

    async def receive(self) -> bytes | None:
        return await self._requests.get()

    def send(self, message: bytes) -> None:
        self.sent.append(message)
        self.arrived.put_nowait(message)

    async def drained(self) -> None:
        await asyncio.sleep(0)


class Received:
    """What a receive got."""

    def __init__(self, parts: list[pb.ReceiveMessageResponse]) -> None:
        kinds = [part.WhichOneof("content") for part in parts]
        assert kinds[0] == "status"
        assert kinds[-1] == "delivery_timestamp"
        assert set(kinds[1:-1]) <= {"message"}
        self.code = parts[0].status.code
        self.messages = [part.message for part in parts[1:-1]]

    @property
    def bodies(self) -> list[bytes]:
        return [each.body for each in self.messages]

    @property
    def handles(self) -> list[str]:
        return [each.system_properties.receipt_handle for each in self.messages]


class Client:
    """A client of the proxy."""

    def __init__(self, proxy: Proxy, client_id: str = "me@1", **metadata: str) -> None:
        self.proxy = proxy
        self.metadata = {
            "x-mq-client-id": client_id,
            "x-mq-language": "GO",
            "x-mq-client-version": "5.1.4",
            ":authority": "proxy.example:8081",
            **metadata,
        }
        self.stream: FakeCall | None = None
        self.task: asyncio.Future[None] | None = None

    async def ask(self, name: str, request: Any) -> Any:
        """The reply of a unary method."""
        method = self.proxy.methods[f"{SERVICE}{name}"]
        assert isinstance(method, Unary)
        call: Any = FakeCall(self.metadata, Deadline.after(60))
        outcome = method.answer(call, request.SerializeToString())
        data = outcome if isinstance(outcome, bytes) else await outcome
        return getattr(pb, f"{name}Response").FromString(data)

    async def send(self, *messages: pb.Message) -> pb.SendMessageResponse:
        reply: pb.SendMessageResponse = await self.ask(
            "SendMessage", pb.SendMessageRequest(messages=messages)
        )
        return reply

    def receiving(
        self, *, seconds: float = 60, topic: str = TOPIC, **more: Any
    ) -> asyncio.Future[Received]:
        """A receive under way."""
        call = self.receive_call(seconds=seconds, topic=topic, **more)

        async def received() -> Received:
            await self.run_receive(call)
            return Received([pb.ReceiveMessageResponse.FromString(each) for each in call.sent])

        return asyncio.ensure_future(received())

    def receive_call(self, *, seconds: float = 60, **more: Any) -> FakeCall:
        """The call of a receive."""
        request = receive_request(**more)
        return FakeCall(self.metadata, Deadline.after(seconds), [request.SerializeToString()])

    async def run_receive(self, call: Any) -> None:
        """Has the method answer."""
        method = self.proxy.methods[f"{SERVICE}ReceiveMessage"]
        assert isinstance(method, Streaming)
        await method.answer(call)

    async def receive(self, **more: Any) -> Received:
        return await self.receiving(**more)

    async def ack(self, *handles: str, group: str = GROUP, topic: str = TOPIC) -> list[int]:
        """The codes of acknowledgements."""
        entries = [pb.AckMessageEntry(message_id="m", receipt_handle=each) for each in handles]
        reply = await self.ask(
            "AckMessage",
            pb.AckMessageRequest(
                group=pb.Resource(name=group), topic=pb.Resource(name=topic), entries=entries
            ),
        )
        return [each.status.code for each in reply.entries]

    async def connect(self, settings: pb.Settings) -> pb.TelemetryCommand:
        """Opens telemetry; returns the answer to the settings."""
        method = self.proxy.methods[f"{SERVICE}Telemetry"]
        assert isinstance(method, Streaming)
        call = self.stream = FakeCall(self.metadata, Deadline.never())
        answer: Any = method.answer
        self.task = asyncio.ensure_future(answer(call))
        call.put(pb.TelemetryCommand(settings=settings).SerializeToString())
        return await self.told()

    async def told(self) -> pb.TelemetryCommand:
        """The next command to the client."""
        assert self.stream is not None
        assert self.task is not None
        arrived = asyncio.ensure_future(self.stream.arrived.get())
        await asyncio.wait([arrived, self.task], return_when=asyncio.FIRST_COMPLETED)
        if not arrived.done():
            arrived.cancel()
            await self.task
        return pb.TelemetryCommand.FromString(await arrived)

    def tell(self, command: pb.TelemetryCommand) -> None:
        """Sends a command of the client."""
        assert self.stream is not None
        self.stream.put(command.SerializeToString())

    def disconnect(self) -> None:
        """Ends telemetry, as a connection that breaks does."""
        assert self.task is not None
        self.task.cancel()


def message(body: bytes = b"hello", *, topic: str = TOPIC, **system: Any) -> pb.Message:
    """A message as clients send it."""
    made = pb.Message(topic=pb.Resource(name=topic), body=body)
    made.system_properties.message_id = "01ABCD"
    made.system_properties.message_type = pb.NORMAL
    made.system_properties.born_timestamp.seconds = 1_000_000
    made.system_properties.born_host = "laptop"
    for name, value in system.items():
        if isinstance(value, list):
            getattr(made.system_properties, name).extend(value)
        elif hasattr(value, "SerializeToString"):
            getattr(made.system_properties, name).CopyFrom(value)
        else:
            setattr(made.system_properties, name, value)
    return made


def receive_request(
    *,
    group: str = GROUP,
    topic: str = TOPIC,
    broker: str = "",
    count: int = 16,
    invisible: int = 30,
    hold: float = 5,
    tags: str = "*",
    sql: str = "",
    renew: bool = False,
    attempt: str = "",
) -> pb.ReceiveMessageRequest:
    """A receive as clients send it; times in seconds."""
    made = pb.ReceiveMessageRequest(group=pb.Resource(name=group), batch_size=count)
    made.message_queue.topic.name = topic
    made.message_queue.broker.name = broker
    made.filter_expression.type = pb.SQL if sql else pb.TAG
    made.filter_expression.expression = sql or tags
    made.auto_renew = renew
    if not renew:
        made.invisible_duration.seconds = invisible
    made.long_polling_timeout.seconds = int(hold)
    if attempt:
        made.attempt_id = attempt
    return made


def consumer_settings(
    group: str = GROUP, topic: str = TOPIC, *, kind: pb.ClientType = pb.SIMPLE_CONSUMER
) -> pb.Settings:
    """The settings of a consumer."""
    made = pb.Settings(client_type=kind)
    made.subscription.group.name = group
    entry = made.subscription.subscriptions.add()
    entry.topic.name = topic
    entry.expression.type = pb.TAG
    entry.expression.expression = "*"
    return made


def producer_settings(*topics: str) -> pb.Settings:
    """The settings of a producer."""
    made = pb.Settings(client_type=pb.PRODUCER)
    made.publishing.topics.extend(pb.Resource(name=each) for each in topics or (TOPIC,))
    return made


class World:
    """A cluster with a proxy."""

    def __init__(self, cluster: Cluster, proxy: Proxy, pool: Pool) -> None:
        self.cluster = cluster
        self.proxy = proxy
        self.pool = pool

    @property
    def names(self) -> list[str]:
        return self.cluster.nameserver_addresses

    async def broker(self, header: Header, body: Buffer = b"") -> Command:
        """The reply of the first broker."""
        address = self.cluster.brokers[0].server.address
        deadline = Deadline.after(10)
        return await self.pool.call(address, header, body=body, deadline=deadline)

    async def make_topic(
        self, name: str = TOPIC, queues: int = 1, kind: str = "", permission: int = 6
    ) -> None:
        """Makes a topic at all brokers."""
        header = CreateTopic(
            topic=name,
            default_topic="TBW102",
            read_queue_nums=queues,
            write_queue_nums=queues,
            perm=permission,
            topic_filter_type="SINGLE_TAG",
            attributes=f"+message.type={kind}" if kind else None,
        )
        for machine in self.cluster.brokers:
            reply = await self.pool.call(
                machine.server.address, header, deadline=Deadline.after(10)
            )
            assert reply.code == 0, reply.remark

    async def make_group(self, name: str = GROUP, **more: Any) -> None:
        """Makes a group at the first broker."""
        reply = await self.broker(CreateGroup(), GroupConfig(group_name=name, **more).encode())
        assert reply.code == 0, reply.remark

    async def count(self, topic: str) -> int:
        """How many messages the first queue of a topic has had at the first broker."""
        reply = await self.broker(MaxOffset(topic=topic, queue_id=0))
        return reply.checked().read(OffsetReply).offset

    @asynccontextmanager
    async def producer(self) -> AsyncIterator[Producer]:
        """A producer that does not use the proxy."""
        async with Producer("p", nameservers=self.names) as made:
            yield made


def play(
    test: Callable[[World, Client], Awaitable[None]],
    *,
    inner: bool = False,
    brokers: int = 1,
    broker: BrokerConfig | None = None,
    config: ProxyConfig | None = None,
    signer: Signer | None = None,
    seed: int = 0,
) -> None:
    """Plays a test with a client, in virtual time. `signer` signs what does not use the proxy."""

    async def main(network: Network) -> None:
        cluster = Cluster(network, seed, brokers=brokers, broker=broker)
        await cluster.start()
        async with proxy_before(cluster, config, inner=inner, signer=signer) as world:
            await test(world, Client(world.proxy))

    simulate(main, seed=seed)


@asynccontextmanager
async def proxy_before(
    cluster: Cluster,
    config: ProxyConfig | None = None,
    *,
    inner: bool = False,
    signer: Signer | None = None,
) -> AsyncIterator[World]:
    """A proxy before a cluster; `inner` reaches the first broker without connections."""
    server = cluster.brokers[0].server
    proxy = Proxy(
        replace(config or ProxyConfig(port=8081), nameservers=tuple(cluster.nameserver_addresses)),
        clock=LoopClock(),
        entropy=SeededEntropy("proxy"),
        inner=InnerBroker(server.answer_first, server.address, server.accounts) if inner else None,
        tls=TlsConfig(mode=DISABLED),
    )
    async with Pool(signer=signer) as pool, proxy:
        yield World(cluster, proxy, pool)
