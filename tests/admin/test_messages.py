"""Finding messages, against a node."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from sprocket import Message, Producer
from sprocket.admin import messages
from sprocket.admin.caller import Caller
from sprocket.base.errors import QueryNotFound, SprocketError, UsageError
from sprocket.message.hosts import pack, unpack
from sprocket.message.ids import offset_id
from sprocket.message.record import Draft, Encoder, topic_part
from sprocket.protocol.bodies import BrokerData, QueueData, Route
from sprocket.protocol.command import Command, Header
from sprocket.protocol.requests.query import QueryMessage
from sprocket.protocol.requests.route import RouteOfTopic
from tests.admin.test_topics import operating
from tests.support import run


def test_a_message_is_viewed_by_its_offset_id() -> None:
    async def story() -> None:
        async with operating() as (node, caller):
            async with Producer("app", nameservers=node.nameserver_address) as producer:
                sent = await producer.send(Message("orders", b"coffee" * 2000, tag="new"))
            found = await messages.view(caller, sent.offset_id)
            assert (found.body, found.tag, found.topic) == (b"coffee" * 2000, "new", "orders")
            beyond = offset_id(pack(node.broker_address), 1 << 40)
            with pytest.raises(SprocketError):
                await messages.view(caller, beyond)
            with pytest.raises(UsageError):
                await messages.view(caller, "nonsense")

    run(story())


def test_a_message_is_found_where_its_broker_is_now(tmp_path: Path) -> None:
    """The old address is another broker's, or nobody's."""

    async def story() -> None:
        async with (
            operating(store=str(tmp_path)) as (node, _),
            Producer("app", nameservers=node.nameserver_address) as producer,
        ):
            place = (await producer.send(Message("orders", b"coffee"))).offset_id
        async with operating(store=str(tmp_path)) as (node, caller):
            assert unpack(bytes.fromhex(place)[:8]) != node.broker_address
            found = await messages.view(caller, place)
            assert (found.body, found.queue.broker) == (b"coffee", "broker-a")
            lies = offset_id(pack(node.broker_address), found.log_offset)
            with pytest.raises(QueryNotFound):
                await messages.view(caller, lies)

    run(story())


def record(topic: str, keys: str, at: int) -> bytes:
    """A stored record, as a broker's answer holds it."""
    draft = Draft(
        topic=topic, queue_number=0, body=b"x", properties=f"KEYS\x01{keys}\x02".encode(),
        tag_code=0, flag=0, sys_flag=0, born_ms=1, born_host=pack("10.0.0.1:1"),
    )  # fmt: skip
    return Encoder(pack("10.0.0.1:2")).encode(
        draft,
        topic_part(topic.encode()),
        queue_offset=at,
        log_offset=at * 1000,
        stored_ms=100 - at,
    )


class Answering(Caller):
    """A caller whose servers say what the test wants."""

    def __init__(self, body: bytes | None) -> None:
        self._body = body

    async def ask_nameserver(self, header: Header, *, body: Any = b"") -> Command:
        assert isinstance(header, RouteOfTopic)
        route = Route(
            [BrokerData({0: "10.0.0.1:2"}, "a", "c")], queue_datas=[QueueData("a", 6, 1, 0, 1)]
        )
        return cast(Command, SimpleNamespace(body=route.encode()))

    async def ask(self, address: str, header: Header, *, body: Any = b"") -> Command:
        assert isinstance(header, QueryMessage)
        if self._body is None:
            raise QueryNotFound("nothing")
        return cast(Command, SimpleNamespace(body=self._body))


def test_messages_that_only_share_the_key_s_hash_are_dropped() -> None:
    """`Aa` and `BB` have one hash, and so have the topics named so; brokers tell both."""
    told = record("AaTopic", "Aa", 1) + record("BBTopic", "BB", 2) + record("BBTopic", "Aa BB", 3)
    caller = Answering(told + told)
    found = run(messages.query(caller, "BBTopic", "BB"))
    assert [message.queue_offset for message in found] == [3, 2]  # by time of storing
    assert run(messages.query(caller, "AaTopic", "BB")) == []


def test_nothing_found_is_no_message() -> None:
    assert run(messages.query(Answering(None), "orders", "k")) == []
    assert run(messages.by_unique_id(Answering(None), "orders", "k")) == []
