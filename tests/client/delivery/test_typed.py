"""Typed listeners take objects; a body that does not fit goes where the listener says."""

from __future__ import annotations

import asyncio
import pickle
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, get_args

import pytest

from sprocket import Later, Producer, PushConsumer, StoredMessage, UsageError, typed
from sprocket.client.base.subscription import Listener
from sprocket.client.delivery.processes import check_portable
from sprocket.client.delivery.typed import Misfits
from sprocket.message.queue import QueueId
from sprocket.schemas.choice import choose
from sprocket.schemas.errors import RegistryUnavailable
from sprocket.schemas.framing import join
from sprocket.schemas.typed_bodies import encoded
from sprocket.testing.virtual_time import VirtualTopics, virtual_time

SEEN: list[Any] = []


@dataclass
class Order:
    id: str


@typed(Order)
def plain(order: Order) -> None:
    SEEN.append(order)


@typed(Order)
def with_message(order: Order, message: StoredMessage) -> Later:
    SEEN.append((order.id, message.queue_offset))
    return Later(3)


@typed(Order)
async def awaited(order: Order) -> Later:
    SEEN.append(order)
    return Later(2)


def stored(body: bytes, **properties: str) -> StoredMessage:
    text = "".join(f"{name}\x01{value}\x02" for name, value in properties.items())
    return StoredMessage(
        QueueId("orders", "b", 0), 7, 0, body, text.encode(), flag=0, sys_flag=0, born_ms=0,
        born_host="", stored_ms=0, store_host="", reconsume_times=0, prepared_offset=0,
        record_bytes=0, body_crc=0,
    )  # fmt: skip


def test_the_function_gets_the_object_and_its_result_counts() -> None:
    SEEN.clear()
    message = stored(b'{"id":"o-1"}')
    assert plain(message) is None
    assert with_message(message) == Later(3)
    assert asyncio.run(awaited(message)) == Later(2)
    assert [Order("o-1"), ("o-1", 7), Order("o-1")] == SEEN


def test_listeners_are_called_where_their_functions_belong() -> None:
    assert Listener.of(plain, None).is_blocking
    assert Listener.of(with_message, None).is_blocking
    assert not Listener.of(awaited, None).is_blocking
    with pytest.raises(UsageError, match="leave out batch, or use typed_batch"):
        Listener.of(plain, 10)


def test_an_object_that_is_called_like_a_coroutine_function_is_awaited() -> None:
    class Awaited:
        async def __call__(self, order: Order, _: StoredMessage | None = None) -> Later:
            return Later(len(order.id))

    listener: Any = typed(Order)(Awaited())
    assert not Listener.of(listener, None).is_blocking
    assert asyncio.run(listener(stored(b'{"id":"o-1"}'))) == Later(3)


def test_a_listener_runs_in_other_processes_by_its_name() -> None:
    check_portable(plain)
    assert pickle.loads(pickle.dumps(plain)) is plain
    assert plain.__name__ == "plain"


@pytest.mark.parametrize(
    ("misfits", "expected", "words"),
    [
        ("dead letter", Later(-1), "becomes a dead letter"),
        ("retry", Later(), "comes again later"),
        ("drop", None, "is dropped"),
    ],
)
def test_a_body_that_does_not_fit_goes_where_the_listener_says(
    misfits: Misfits, expected: Any, words: str, caplog: pytest.LogCaptureFixture
) -> None:
    SEEN.clear()
    listener = typed(Order, misfits=misfits)(SEEN.append)
    assert listener(stored(b'{"id":7}', contentType="application/avro")) == expected
    assert not SEEN
    assert "offset 7, does not fit: it is no Order" in caplog.text
    assert "its contentType is 'application/avro'" in caplog.text
    assert words in caplog.text


def test_wrong_arguments_are_refused_at_once() -> None:
    with pytest.raises(UsageError, match="misfits is one of"):
        typed(Order, misfits="ignore")  # type: ignore[arg-type]
    for function in (lambda: None, lambda a, b, c: None, 3):
        with pytest.raises(UsageError, match="typed listener"):
            typed(Order)(function)  # type: ignore[arg-type]
    assert len(get_args(Misfits)) == 3


def test_json_with_a_number_in_front_is_converted_as_json_is(tmp_path: Path) -> None:
    pytest.importorskip("jsonschema")
    (tmp_path / "3.json").write_text('{"properties": {"at": {"type": "string"}}}')

    @dataclass
    class Visit:
        at: datetime

    visit = Visit(datetime(2026, 1, 2, tzinfo=UTC))
    for kind in ("json", None):
        codec = choose(kind, registry=tmp_path, writes="3").codec()
        seen: list[Visit] = []
        bill = typed(Visit, codec)(seen.append)
        bill(stored(encoded(visit, codec)))
        assert seen == [visit]


def test_a_registry_that_is_away_is_a_failure_of_the_listener_and_no_misfit(
    tmp_path: Path,
) -> None:
    codec = choose(None, registry=tmp_path).codec()
    tmp_path.rmdir()

    @typed(Order, codec)
    async def bill(order: Order) -> None:
        raise AssertionError

    @typed(Order, codec)
    def bill_in_thread(order: Order) -> None:
        raise AssertionError

    with pytest.raises(RegistryUnavailable):
        asyncio.run(bill(stored(join(1, b"x"))))
    with pytest.raises(RegistryUnavailable):
        bill_in_thread(stored(join(1, b"x")))


@virtual_time
async def test_a_consumer_gets_objects_and_the_rest_are_dead_letters_at_once(
    rocketmq: VirtualTopics,
) -> None:
    topic, group = await rocketmq.topic("orders"), rocketmq.group("billing")
    billed: list[str] = []
    async with Producer("p") as producer, PushConsumer(group, start="first") as consumer:

        @consumer.on(topic)
        @typed(Order)
        async def bill(order: Order) -> None:
            billed.append(order.id)

        await producer.send(topic, Order("o-1"))
        await rocketmq.send(topic, b"no order")
        await producer.send(topic, Order("o-2"))
        await asyncio.sleep(5)
        assert sorted(billed) == ["o-1", "o-2"]
        (letter,) = await rocketmq.messages(f"%DLQ%{group}", 1)
        assert letter.body == b"no order"
