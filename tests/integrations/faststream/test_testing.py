"""FastStream's way to test: handlers without servers."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support import run

pytest.importorskip("faststream")

from faststream.exceptions import SubscriberNotFound

from sprocket.integrations.faststream import RocketMQBroker, TestRocketMQBroker


def test_handlers_run_in_memory_with_mocks() -> None:
    broker = RocketMQBroker(group="shop")
    bills = broker.publisher("bills")

    @broker.subscriber("orders", tags="new")
    @bills
    async def bill(order: dict[str, Any]) -> dict[str, Any]:
        return {"of": order["id"]}

    @broker.subscriber("asked")
    async def answer(number: int) -> int:
        return number * 2

    async def scenario() -> None:
        async with TestRocketMQBroker(broker) as tested:
            await tested.publish({"id": "o-1"}, "orders", tag="new")
            bill.mock.assert_called_once_with({"id": "o-1"})
            bills.mock.assert_called_once_with({"of": "o-1"})
            await tested.publish({"id": "o-2"}, "orders", tag="old")
            bill.mock.assert_called_once()
            await tested.publish_batch({"id": "a"}, {"id": "b"}, topic="orders", tag="new")
            assert bill.mock.call_count == 3
            assert await (await tested.request(4, "asked")).decode() == 8
            with pytest.raises(SubscriberNotFound):
                await tested.request(4, "nobody")

    run(scenario())


def test_one_subscriber_of_a_group_gets_a_message_and_each_that_broadcasts() -> None:
    broker = RocketMQBroker()
    seen: list[str] = []
    for name, group, broadcasting in (
        ("a", "one", False), ("b", "one", False), ("c", "two", True), ("d", "two", True),
    ):  # fmt: skip

        @broker.subscriber("orders", group, broadcasting=broadcasting)
        async def handle(body: str, name: str = name) -> None:
            seen.append(name)

    async def scenario() -> None:
        async with TestRocketMQBroker(broker) as tested:
            await tested.publish("x", "orders")

    run(scenario())
    assert len(set(seen) & {"a", "b"}) == 1
    assert {"c", "d"} <= set(seen)


def test_a_failing_handler_fails_the_test() -> None:
    broker = RocketMQBroker(group="shop")

    @broker.subscriber("orders")
    async def fails(body: str) -> None:
        raise ValueError("the shop is closed")

    async def scenario() -> None:
        async with TestRocketMQBroker(broker) as tested:
            await tested.publish("x", "orders")

    with pytest.raises(ValueError, match="the shop is closed"):
        run(scenario())
