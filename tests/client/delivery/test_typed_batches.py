"""Typed batch listeners take lists of objects; what does not fit keeps no others back."""

from __future__ import annotations

import asyncio
import pickle
from pathlib import Path
from typing import Any

import pytest

from sprocket import Later, Message, Producer, PushConsumer, StoredMessage, UsageError, typed_batch
from sprocket.client.base.subscription import Listener, Outcome
from sprocket.client.delivery.processes import check_portable
from sprocket.schemas.choice import choose
from sprocket.schemas.errors import RegistryUnavailable
from sprocket.schemas.framing import join
from sprocket.testing.virtual_time import VirtualTopics, virtual_time
from tests.client.delivery.test_typed import Order, stored

SEEN: list[Any] = []
GOOD, BAD = stored(b'{"id":"o-1"}'), stored(b"no order")


@typed_batch(Order)
def plain(orders: list[Order]) -> None:
    SEEN.append(orders)


def returning(result: Any) -> Any:
    @typed_batch(Order)
    async def listener(orders: list[Order], messages: list[StoredMessage]) -> Any:
        assert len(orders) == len(messages)
        SEEN.append([order.id for order in orders])
        return result

    return lambda *messages: asyncio.run(listener(list(messages)))


def test_the_function_gets_lists_and_its_result_counts() -> None:
    SEEN.clear()
    assert plain([GOOD, GOOD]) is None
    assert SEEN.pop() == [Order("o-1"), Order("o-1")]
    assert returning(Later(3))(GOOD, GOOD) == Later(3)
    assert returning([None, Later(1)])(GOOD, GOOD) == [None, Later(1)]
    assert SEEN == [["o-1", "o-1"]] * 2


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        (None, [Later(-1), None, Later(-1), None]),
        (Later(2), [Later(-1), Later(2), Later(-1), Later(2)]),
        ([Later(1), None], [Later(-1), Later(1), Later(-1), None]),
        ((None, None), [Later(-1), None, Later(-1), None]),
        (Outcome.COMMIT, [Later(-1), None, Later(-1), None]),
        (Outcome.ROLLBACK, Outcome.ROLLBACK),
        ([None], [None]),  # as wrong as what the function returned
    ],
)
def test_what_does_not_fit_has_results_of_its_own(result: Any, expected: Any) -> None:
    SEEN.clear()
    assert returning(result)(BAD, GOOD, BAD, GOOD) == expected
    assert SEEN == [["o-1", "o-1"]]


def test_without_anything_that_fits_the_function_is_not_called() -> None:
    SEEN.clear()
    assert returning(None)(BAD, BAD) == [Later(-1), Later(-1)]
    assert plain([BAD]) == [Later(-1)]
    assert typed_batch(Order, misfits="drop")(SEEN.append)([BAD]) == [None]
    assert not SEEN


def test_an_object_that_is_called_like_a_coroutine_function_is_awaited() -> None:
    class Awaited:
        async def __call__(self, orders: list[Order]) -> Later:
            return Later(len(orders))

    listener: Any = typed_batch(Order)(Awaited())
    assert not Listener.of(listener, 10).is_blocking
    assert asyncio.run(listener([GOOD, BAD])) == [Later(1), Later(-1)]


def test_a_batch_listener_belongs_to_a_batch_and_runs_where_its_function_belongs() -> None:
    assert Listener.of(plain, 10).is_blocking
    with pytest.raises(UsageError, match="give batch=100"):
        Listener.of(plain, None)
    with pytest.raises(UsageError, match="misfits is one of"):
        typed_batch(Order, misfits="ignore")  # type: ignore[arg-type]
    check_portable(plain)
    assert pickle.loads(pickle.dumps(plain)) is plain


def test_a_registry_that_is_away_is_a_failure_of_the_listener(tmp_path: Path) -> None:
    codec = choose(None, registry=tmp_path).codec()
    tmp_path.rmdir()

    @typed_batch(Order, codec)
    async def bill(orders: list[Order]) -> None:
        raise AssertionError

    with pytest.raises(RegistryUnavailable):
        asyncio.run(bill([stored(join(1, b"x"))]))


@virtual_time
async def test_a_consumer_gets_lists_and_the_rest_are_dead_letters_at_once(
    rocketmq: VirtualTopics,
) -> None:
    topic, group = await rocketmq.topic("orders", queues=1), rocketmq.group("billing")
    billed: list[str] = []
    async with Producer("p") as producer, PushConsumer(group, start="first") as consumer:
        bodies = [b'{"id":"a"}', b"no order", b'{"id":"b"}']
        await producer.send_batch([Message(topic, body) for body in bodies])

        @consumer.on(topic, batch=10)
        @typed_batch(Order)
        async def bill(orders: list[Order]) -> None:
            billed.extend(order.id for order in orders)

        await asyncio.sleep(5)
        assert billed == ["a", "b"]
        (letter,) = await rocketmq.messages(f"%DLQ%{group}", 1)
        assert letter.body == b"no order"
