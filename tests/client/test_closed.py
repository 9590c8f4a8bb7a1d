"""All kinds of clients at a closed name server and a closed broker, with no right too many."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from sprocket.base.errors import SprocketError
from sprocket.broker.config import BrokerConfig
from sprocket.client.base.world import ClientEnvironment
from sprocket.client.config import ConsumerConfig, LitePullConfig, ProducerConfig, PullConfig
from sprocket.client.lite_pull_consumer import LitePullConsumer
from sprocket.client.pop_config import SimpleConfig
from sprocket.client.producer import Producer
from sprocket.client.pull_consumer import PullConsumer
from sprocket.client.push_consumer import PushConsumer
from sprocket.client.simple_consumer import SimpleConsumer
from sprocket.client.transactional_producer import TransactionalProducer
from sprocket.message.message import Message
from sprocket.nameserver.config import NameServerConfig
from sprocket.protocol.bodies import AclBody, PolicyBody, PolicyEntryBody, UserBody
from sprocket.protocol.requests.account import CreateAcl, CreateUser
from sprocket.testing.cluster import Cluster
from sprocket.testing.loop import simulate
from sprocket.testing.network import Network
from tests.broker.accounts import INNER, ROOT_USER
from tests.broker.parts import SUCCESS, Asker

KEYS: dict[str, Any] = {"access_key": "shop", "secret_key": "shop's"}
#: What a program that sends and consumes needs, and no more.
RIGHTS = [
    ("Topic:T", ["Pub", "Sub"]),
    ("Group:g", ["Sub"]),
    ("Topic:RMQ_SYS_TRACE_TOPIC", ["Pub"]),
]


class Shop:
    """A closed cluster, and a program with the keys of a user."""

    def __init__(self, cluster: Cluster, world: ClientEnvironment) -> None:
        self.servers = cluster.nameserver_addresses
        self.world = world
        self.given: dict[str, Any] = {"nameservers": self.servers, "world": world}

    async def send(self, *bodies: bytes, **keys: Any) -> None:
        config = ProducerConfig(**{**KEYS, **keys})
        async with Producer("p", config=config, **self.given) as producer:
            for body in bodies:
                await producer.send(Message("T", body))


def play(test: Callable[[Shop], Awaitable[None]]) -> None:
    async def main(network: Network) -> None:
        first = {key: INNER[key] for key in ("first_user", "inner_keys")}
        names = NameServerConfig(authentication=True, authorization=True, **first)
        broker = BrokerConfig(auto_create_topics=False, **INNER)
        cluster = Cluster(network, "closed", brokers=1, broker=broker, nameserver=names)
        await cluster.start()
        root = Asker(cluster.brokers[0].server, ROOT_USER)
        await root.create("T", 2)
        entries = [
            PolicyEntryBody(resource=each, actions=actions, decision="Allow")
            for each, actions in RIGHTS
        ]
        acl = AclBody(policies=[PolicyBody(entries=entries)]).encode()
        async with root.pool:
            for server in (*cluster.brokers, *cluster.nameservers):
                asker = Asker(server.server, ROOT_USER)
                body = UserBody(password="shop's").encode()
                assert await asker.code(CreateUser(username="shop"), body) == SUCCESS
                assert await asker.code(CreateAcl(subject="User:shop"), acl) == SUCCESS
                await asker.pool.close()
        process, world = cluster.client("shop")
        await process.run(test(Shop(cluster, world)))
        await cluster.stop()

    simulate(main)


async def some(messages: list[bytes], count: int) -> None:
    async with asyncio.timeout(120):
        while len(messages) < count:  # noqa: ASYNC110 - the client counts
            await asyncio.sleep(0.1)


@pytest.mark.parametrize("keys", [{}, {"access_key": "shop", "secret_key": "wrong"}])
def test_a_client_without_the_right_keys_is_told_so(keys: dict[str, Any]) -> None:
    async def test(shop: Shop) -> None:
        given = {"access_key": None, "secret_key": None, **keys}
        with pytest.raises(SprocketError, match=r"not signed|check signature failed"):
            await shop.send(b"x", **given)

    play(test)


@pytest.mark.parametrize("mode", ["pull", "pop"])
def test_a_push_consumer_gets_again_what_failed(mode: Any) -> None:
    async def test(shop: Shop) -> None:
        await shop.send(b"1", b"2", b"3")
        got: list[bytes] = []

        async def listen(message: Any) -> None:
            got.append(message.body)
            if got.count(message.body) == 1:
                raise ValueError("once")

        consumer = PushConsumer(
            "g", start="first", mode=mode, config=ConsumerConfig(**KEYS), **shop.given
        )
        consumer.subscribe("T", listener=listen)
        async with consumer:
            await some(got, 6)
        assert sorted(got) == [b"1", b"1", b"2", b"2", b"3", b"3"]

    play(test)


def test_an_ordered_consumer_locks_its_queues() -> None:
    async def test(shop: Shop) -> None:
        await shop.send(b"1", b"2")
        got: list[bytes] = []

        async def listen(message: Any) -> None:
            got.append(message.body)

        consumer = PushConsumer(
            "g", start="first", ordered=True, config=ConsumerConfig(**KEYS), **shop.given
        )
        consumer.subscribe("T", listener=listen)
        async with consumer:
            await some(got, 2)

    play(test)


def test_simple_lite_and_pull_consumers_read() -> None:
    async def test(shop: Shop) -> None:
        await shop.send(b"1", b"2")
        simple = SimpleConsumer("g", start="first", config=SimpleConfig(**KEYS), **shop.given)
        simple.subscribe("T")
        async with simple:
            got: list[bytes] = []
            while len(got) < 2:
                messages = await simple.receive(4, wait_ms=4_000)
                await simple.ack(messages)
                got += [each.body for each in messages]
        async with PullConsumer("g", config=PullConfig(**KEYS), **shop.given) as pulling:
            ends = [await pulling.max_offset(each) for each in await pulling.queues("T")]
        assert sum(ends) == 2
        lite = LitePullConsumer("g", start="first", config=LitePullConfig(**KEYS), **shop.given)
        lite.subscribe("T")
        async with lite:
            assert await lite.poll(timeout_ms=2_000) == []  # the group has read all

    play(test)


def test_transactions_are_committed_and_checked() -> None:
    async def test(shop: Shop) -> None:
        producer = TransactionalProducer(
            "p", check=lambda message: True, config=ProducerConfig(**KEYS), **shop.given
        )
        async with producer, producer.transaction(Message("T", b"paid")):
            pass
        async with PullConsumer("g", config=PullConfig(**KEYS), **shop.given) as pulling:
            ends = [await pulling.max_offset(each) for each in await pulling.queues("T")]
        assert sum(ends) == 1

    play(test)
