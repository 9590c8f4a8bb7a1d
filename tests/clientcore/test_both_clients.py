"""The asyncio client and Spark's tasks see the same queues, and choose the same one for a key."""

from __future__ import annotations

import asyncio
from typing import Any
from unittest.mock import patch

from hypothesis import given, settings
from hypothesis import strategies as st

from sprocket.base.deadline import Deadline
from sprocket.base.errors import RouteNotFound, TopicNotFound
from sprocket.client.sending.fixed_queue import fixed_queue
from sprocket.client.session.routes import RouteCache
from sprocket.clientcore.routes import TopicRoute
from sprocket.message.message import Message
from sprocket.message.queue import QueueId
from sprocket.message.topic import TEMPLATE
from sprocket.protocol.bodies import BrokerData, QueueData, Route
from sprocket.protocol.command import RESPONSE, Command, Header
from sprocket.spark.brokers.cluster import ClusterMetadata
from sprocket.spark.brokers.connection import BlockingConnection
from sprocket.spark.brokers.pool import ConnectionPool
from sprocket.spark.options.write_options import write_options
from sprocket.spark.writing.failures import WriteFailed
from sprocket.spark.writing.rows import OutgoingMessage
from sprocket.spark.writing.send import Sender

BROKERS = ("a", "b", "c")
SERVER = "127.0.0.1:1"
NEW_TOPIC_QUEUES = 4


@st.composite
def routes(draw: st.DrawFn) -> Route:
    """Any route: several brokers in any order, without masters, unreadable, ordered."""
    names = draw(st.lists(st.sampled_from(BROKERS), unique=True))
    listed = draw(st.permutations(names))
    numbers = st.dictionaries(st.integers(0, 2), st.just("127.0.0.1:2"), max_size=3)
    ordered = draw(
        st.none()
        | st.lists(st.tuples(st.sampled_from(BROKERS), st.integers(0, 5)), min_size=1).map(
            lambda pairs: ";".join(f"{name}:{count}" for name, count in pairs)
        )
    )
    return Route(
        broker_datas=[
            BrokerData(broker_name=name, broker_addrs=draw(numbers))
            for name in listed
            if draw(st.integers(0, 5))
        ],
        queue_datas=[
            QueueData(
                broker_name=name,
                perm=draw(st.integers(0, 7)),
                read_queue_nums=draw(st.integers(0, 6)),
                write_queue_nums=draw(st.integers(0, 6)),
            )
            for name in names
        ],
        order_topic_conf=ordered,
    )


class Answering:
    """A name server, as a connection of either client asks it."""

    def __init__(self, by_topic: dict[str, Route]) -> None:
        self._by_topic = by_topic

    def reply(self, header: Header) -> Command:
        topic = header.to_fields()["topic"]
        if topic not in self._by_topic:
            raise TopicNotFound(f"no topic {topic}")
        return Command(0, 1, RESPONSE, body=self._by_topic[topic].encode())

    async def ask(self, address: str, header: Header, **_: Any) -> Command:
        return self.reply(header)

    def connected(self) -> Any:
        """Lets Spark's connections answer from here."""
        return patch.multiple(
            BlockingConnection,
            __init__=lambda self, address, **_: setattr(self, "address", address),
            ask=lambda _, header: self.reply(header),
            close=lambda _: None,
        )


def of_producer(server: Answering, topic: str) -> TopicRoute:
    async def route() -> TopicRoute:
        cache = RouteCache(server, [SERVER], first=0, timeout_ms=1000)  # type: ignore[arg-type]
        return await cache.for_sending(topic, NEW_TOPIC_QUEUES, Deadline.after(5))

    return asyncio.run(route())


def queue_of_producer(server: Answering, message: Message, key: str) -> QueueId | None:
    try:
        route = of_producer(server, message.topic)
    except RouteNotFound:
        return None
    return fixed_queue(route, message, key=key) if route.writable else None


def queue_of_sink(server: Answering, message: Message) -> QueueId | None:
    options = write_options({"namesrvAddr": SERVER, "queueBy": "key", "sendRetries": "0"})
    with server.connected(), Sender(options) as sender:
        try:
            return sender.fixed_queue(OutgoingMessage(message, None, None))
        except WriteFailed:
            return None


@settings(deadline=None)
@given(
    route=routes(),
    key=st.text(st.characters(exclude_categories=["Z", "C"]), min_size=1),
    is_new=st.booleans(),
)
def test_a_sink_and_a_producer_put_a_key_into_the_same_queue(
    route: Route, key: str, is_new: bool
) -> None:
    server = Answering({TEMPLATE if is_new else "t": route})
    message = Message("t", b"x", keys=[key])
    assert queue_of_sink(server, message) == queue_of_producer(server, message, key)


@settings(deadline=None)
@given(route=routes())
def test_both_see_the_same_queues_to_read(route: Route) -> None:
    server = Answering({"t": route})
    with server.connected(), ConnectionPool([SERVER]) as wires:
        readable = ClusterMetadata(wires).readable("t")
        assert readable == of_producer(server, "t").readable
        # Each is reached where the asyncio client would reach it.
        assert {queue.broker for queue in readable} <= set(wires.addresses)
