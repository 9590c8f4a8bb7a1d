"""Objects are sent to topics by the topic's codec, with what kind of body it is."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

import pytest

pytest.importorskip("fastavro")

from sprocket import Message, Producer, UsageError
from sprocket.client import blocking
from sprocket.client.sending.typed_messages import TypedMessages
from sprocket.client.tracing import Tracer
from sprocket.schemas.avro_bodies import AvroBodies
from sprocket.schemas.errors import BodyMismatch
from sprocket.testing.virtual_time import VirtualTopics, virtual_time
from tests.schemas.parts import AVRO_ORDER


@dataclass
class Order:
    id: str
    amount: float = 1.0


def made(value: object, codecs: Any = None, topic: Any = "t", **attributes: Any) -> Message:
    return asyncio.run(TypedMessages(codecs).message(topic, value, attributes))  # type: ignore[arg-type]


def test_the_codec_is_that_of_the_topic() -> None:
    avro = AvroBodies(AVRO_ORDER)
    by_topic = made(Order("o-1"), {"t": avro})
    assert avro.decode(by_topic.body)["id"] == "o-1"
    assert by_topic.properties == {"contentType": "application/avro"}
    assert made(Order("o-1"), avro).body == by_topic.body
    other = made(Order("o-1"), {"u": avro})
    assert (other.body, other.properties["contentType"]) == (
        b'{"id":"o-1","amount":1.0}', "application/json",
    )  # fmt: skip


def test_a_message_has_all_else_that_messages_have() -> None:
    message = made(
        Order("o-1"), tag="new", keys=["o-1"], delay=5, properties={"contentType": "mine", "a": "b"}
    )
    assert (message.tag, message.keys, message.delay) == ("new", ["o-1"], 5)
    assert message.properties == {"contentType": "mine", "a": "b"}


def test_what_cannot_be_sent_is_told() -> None:
    with pytest.raises(UsageError, match="name of a topic"):
        made(Order("a"), topic=Message("t", b"x"))
    with pytest.raises(BodyMismatch):
        made(object())
    for body in (b"raw", bytearray(b"raw"), memoryview(b"raw")):
        with pytest.raises(UsageError, match=r"send Message\(topic, body\)"):
            made(body)
    assert made(b"raw", AvroBodies('"bytes"')).body == b"\x06raw"


@virtual_time
async def test_producers_send_objects(rocketmq: VirtualTopics) -> None:
    topic = await rocketmq.topic()
    async with Producer("p") as producer:
        await producer.send(topic, Order("o-1"))
        await producer.send(await producer.message(topic, Order("o-2"), tag="new"), key="o-2")
        with pytest.raises(UsageError):
            await producer.send(Message(topic, b"x"), Order("o-3"))
        with pytest.raises(UsageError, match="expected a Message"):
            await producer.send(topic)
        with pytest.raises(BodyMismatch):
            await producer.send(topic, object())
    found = await rocketmq.messages(topic, 2)
    assert sorted(each.body for each in found) == [
        b'{"id":"o-1","amount":1.0}', b'{"id":"o-2","amount":1.0}',
    ]  # fmt: skip
    assert {each.properties["contentType"] for each in found} == {"application/json"}
    assert {each.tag for each in found} == {None, "new"}


@virtual_time
async def test_traced_producers_send_objects(rocketmq: VirtualTopics) -> None:
    topic = await rocketmq.topic()
    async with Tracer() as tracer, tracer.producer("p") as producer:
        await producer.send(topic, {"a": 1})
    (found,) = await rocketmq.messages(topic, 1)
    assert found.body == b'{"a":1}'


def test_the_blocking_face_has_both() -> None:
    assert blocking.Producer.send.__doc__ == Producer.send.__doc__
    assert blocking.Producer.message.__doc__ == Producer.message.__doc__
