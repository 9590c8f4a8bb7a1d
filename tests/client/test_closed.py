"""All kinds of clients at a closed name server and a closed broker, with no right too many."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from sprocket.auth.policies import UserPolicies
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
from sprocket.client.tracing import Tracer
from sprocket.client.transactional_producer import Outcome, TransactionalProducer
from sprocket.message.message import Message
from sprocket.nameserver.config import NameServerConfig
from sprocket.protocol.bodies import AclBody, PolicyBody, PolicyEntryBody, UserBody
from sprocket.protocol.requests.account import CreateAcl, CreateUser
from sprocket.testing.cluster import Cluster
from sprocket.testing.disk import MemoryDisk
from sprocket.testing.loop import simulate
from sprocket.testing.network import Network
from tests.broker.accounts import INNER, ROOT_USER, entry
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
        self.broker = cluster.brokers[0].server
        self.names = cluster.nameservers[0].server
        self.given: dict[str, Any] = {"nameservers": self.servers, "world": world}

    def change_rights(self, *entries: tuple[str, str]) -> None:
        """Gives the user other rights, at the broker and at the name server."""
        policies = UserPolicies([entry(*each) for each in entries])
        self.broker._parts.tables.accounts.policies["shop"] = policies
        self.names._accounts._table.policies["shop"] = policies

    async def send(self, *bodies: bytes, **keys: Any) -> None:
        config = ProducerConfig(**{**KEYS, **keys})
        async with Producer("p", config=config, **self.given) as producer:
            for body in bodies:
                await producer.send(Message("T", body))


def play(test: Callable[[Shop], Awaitable[None]], **settings: Any) -> None:
    async def main(network: Network) -> None:
        first = {key: INNER[key] for key in ("first_user", "inner_keys")}
        names = NameServerConfig(authentication=True, authorization=True, **first)
        broker = BrokerConfig(auto_create_topics=False, trace_topic=True, **INNER, **settings)
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
        process, world = cluster.client("shop", disk=MemoryDisk())
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


@pytest.mark.parametrize("outcome", [Outcome.COMMIT, Outcome.ROLLBACK])
def test_the_broker_asks_a_producer_that_signs_how_a_transaction_ended(outcome: Outcome) -> None:
    """The broker's question has no signature, and the producer's answer has one."""
    asked: list[bytes] = []

    def check(message: Any) -> Outcome:
        asked.append(message.body)
        return Outcome.UNKNOWN if len(asked) == 1 else outcome

    async def test(shop: Shop) -> None:
        producer = TransactionalProducer(
            "p", check=check, config=ProducerConfig(**KEYS), **shop.given
        )
        async with producer:
            async with producer.transaction(Message("T", b"paid")) as begun:
                begun.leave_open()
            await some(asked, 2)
            await asyncio.sleep(5)
        async with PullConsumer("g", config=PullConfig(**KEYS), **shop.given) as pulling:
            ends = [await pulling.max_offset(each) for each in await pulling.queues("T")]
        assert sum(ends) == (outcome is Outcome.COMMIT)
        assert asked == [b"paid", b"paid"]

    play(test, transaction_timeout_ms=1_000, transaction_check_ms=1_000)


@pytest.mark.parametrize("mode", ["pull", "pop"])
@pytest.mark.parametrize("group", ["g", "other"])
def test_a_consumer_that_is_refused_says_so_rarely_and_asks_rarely(
    mode: Any, group: str, caplog: pytest.LogCaptureFixture
) -> None:
    """And it consumes once it has the right."""

    async def test(shop: Shop) -> None:
        await shop.send(b"1")
        got: list[bytes] = []

        async def listen(message: Any) -> None:
            got.append(message.body)

        if group == "g":  # the topic is what it may not read
            shop.change_rights(("Topic:T", "Get"), ("Group:g", "Sub"))
        consumer = PushConsumer(
            group, start="first", mode=mode, config=ConsumerConfig(**KEYS), **shop.given
        )
        consumer.subscribe("T", listener=listen)
        caplog.clear()
        async with consumer:
            await asyncio.sleep(60)
            assert consumer.refusal is not None
            assert "no permission to access" in str(consumer.refusal)
            before = shop.broker._parts.rights.guard.refused
            await asyncio.sleep(600)
            assert shop.broker._parts.rights.guard.refused - before < 300  # two queues
            lines = [each for each in caplog.records if each.levelname == "WARNING"]
            assert 0 < len(lines) < 20, [each.getMessage() for each in lines]
            shop.change_rights(("Topic:T", "Sub"), (f"Group:{group}", "Sub"))
            await some(got, 1)
            await asyncio.sleep(60)
            assert consumer.refusal is None

    play(test)


def test_messages_that_fail_too_often_are_buried_without_more_rights() -> None:
    async def test(shop: Shop) -> None:
        await shop.send(b"1")
        got: list[bytes] = []

        async def listen(message: Any) -> None:
            got.append(message.body)
            raise ValueError("always")

        config = ConsumerConfig(reconsume_max=1, **KEYS)
        consumer = PushConsumer("g", start="first", config=config, **shop.given)
        consumer.subscribe("T", listener=listen)
        async with consumer:
            await some(got, 2)
            await asyncio.sleep(60)
        assert shop.broker._parts.tables.topics.get("%DLQ%g") is not None
        async with PullConsumer("g", config=PullConfig(**KEYS), **shop.given) as pulling:
            with pytest.raises(SprocketError, match="no permission to access Topic:%DLQ%g"):
                await pulling.queues("%DLQ%g")

    play(test)


def test_a_broadcasting_consumer_needs_no_more() -> None:
    async def test(shop: Shop) -> None:
        await shop.send(b"1", b"2")
        got: list[bytes] = []

        async def listen(message: Any) -> None:
            got.append(message.body)

        consumer = PushConsumer(
            "g", start="first", broadcasting=True, config=ConsumerConfig(**KEYS), **shop.given
        )
        consumer.subscribe("T", listener=listen)
        async with consumer:
            await some(got, 2)
            assert consumer.refusal is None

    play(test)


def test_a_reply_needs_the_right_to_the_cluster_s_reply_topic() -> None:
    async def test(shop: Shop) -> None:
        consumer = PushConsumer("g", start="last", config=ConsumerConfig(**KEYS), **shop.given)

        async def answer(message: Any) -> None:
            await consumer.reply(message, b"yes")

        consumer.subscribe("T", listener=answer)
        given = {**shop.given, "world": shop.world}
        async with consumer, Producer("p", config=ProducerConfig(**KEYS), **given) as producer:
            await asyncio.sleep(30)
            with pytest.raises(SprocketError):
                await producer.request(Message("T", b"really?"), timeout_ms=5_000)
            reply_topic = ("Topic:DefaultCluster_REPLY_TOPIC", "Pub")
            shop.change_rights(("Topic:T", "Pub,Sub"), ("Group:g", "Sub"), reply_topic)
            reply = await producer.request(Message("T", b"really?"), timeout_ms=60_000)
            assert reply.body == b"yes"

    play(test)


@pytest.mark.parametrize("may_trace", [True, False])
def test_traces_need_the_right_to_their_topic_and_messages_flow_without(may_trace: bool) -> None:
    async def test(shop: Shop) -> None:
        root = Asker(shop.broker, ROOT_USER)
        if not may_trace:
            shop.change_rights(("Topic:T", "Pub"))
        async with Tracer(config=ProducerConfig(**KEYS), **shop.given) as tracer:
            config = ProducerConfig(**KEYS)
            async with tracer.producer("p", config=config, **shop.given) as producer:
                await producer.send(Message("T", b"1"))
            await asyncio.sleep(30)
        assert len(await root.bodies("RMQ_SYS_TRACE_TOPIC")) == may_trace
        await root.pool.close()

    play(test)
