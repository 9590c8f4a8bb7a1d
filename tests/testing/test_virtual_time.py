"""Async tests in virtual time."""

from __future__ import annotations

import asyncio
import inspect
import os
from collections.abc import Callable
from typing import Any

import pytest

from sprocket.base.errors import UsageError
from sprocket.client.base.world import ClientEnvironment
from sprocket.client.producer import Producer
from sprocket.client.push_consumer import PushConsumer
from sprocket.message.message import Message, StoredMessage
from sprocket.testing.clock import EPOCH_MS
from sprocket.testing.virtual_time import HOST, VirtualTopics, virtual_time


class Reminders:
    """Code that knows nothing of tests: its clients take name servers and clock by themselves."""

    def __init__(self, topic: str, group: str) -> None:
        self.topic, self.group = topic, group
        self.arrivals: list[tuple[float, bytes]] = []

    async def run(self) -> None:
        consumer = PushConsumer(self.group, start="first")

        @consumer.on(self.topic)
        async def arrived(message: StoredMessage) -> None:
            self.arrivals.append((asyncio.get_running_loop().time(), message.body))

        async with consumer, Producer("reminders") as producer:
            await producer.send(Message(self.topic, b"in ten minutes", delay=600))
            await asyncio.sleep(650)


def test_ten_minutes_pass_at_once_and_clients_need_not_know() -> None:
    seen: list[Any] = []

    @virtual_time(seed=7)
    async def story(rocketmq: VirtualTopics) -> None:
        reminders = Reminders(await rocketmq.topic("reminders"), rocketmq.group())
        start = asyncio.get_running_loop().time()
        await reminders.run()
        ((at, body),) = reminders.arrivals
        (message,) = await rocketmq.messages(reminders.topic, 1)
        seen.extend((round(at - start), body, message.born_ms - EPOCH_MS < 60_000))

    story()
    assert seen == [600, b"in ten minutes", True]


def histories(**settings: Any) -> list[str]:
    found: list[str] = []

    @virtual_time(**settings)
    async def story(rocketmq: VirtualTopics) -> None:
        topic = await rocketmq.topic(queues=4)
        async with Producer("p") as producer:
            sends = (producer.send(Message(topic, b"%d" % n)) for n in range(20))
            await asyncio.gather(*sends)
        found.append(rocketmq.network.history)

    story()
    return found


def test_a_seed_decides_the_history() -> None:
    assert histories(seed=[3, 4, 3]) == [*histories(seed=3), *histories(seed=4), *histories(seed=3)]
    assert histories(seed=3) != histories(seed=4)


def test_the_cluster_can_be_broken() -> None:
    @virtual_time(brokers=2)
    async def story(rocketmq: VirtualTopics) -> None:
        topic = await rocketmq.topic()
        one, _ = rocketmq.cluster.brokers
        rocketmq.network.slow(HOST, one.name, 0.1)
        one.kill()
        async with Producer("p") as producer:
            for number in range(8):
                await producer.send(Message(topic, b"%d" % number))
            await one.start()
        assert len(await rocketmq.messages(topic, 8)) == 8

    story()


def test_everything_is_as_before_afterwards_and_a_failure_has_its_seed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("SPROCKET_NAMESERVERS", raising=False)
    real = ClientEnvironment.real

    @virtual_time(seed=range(5, 9))
    async def story(rocketmq: VirtualTopics) -> None:
        assert os.environ["SPROCKET_NAMESERVERS"] == rocketmq.nameservers
        raise ValueError("the third" if "x" in rocketmq.group("x") else "")

    with pytest.raises(ValueError, match="the third") as raised:
        story()
    assert raised.value.__notes__ == ["in virtual time with seed=5"]
    assert ClientEnvironment.real is real
    assert "SPROCKET_NAMESERVERS" not in os.environ


def test_it_keeps_name_marks_and_other_parameters() -> None:
    got: list[int] = []

    @virtual_time
    @pytest.mark.process
    async def story(rocketmq: VirtualTopics, number: int, more: int = 3) -> None:
        """About the story."""
        got.append(number + more)

    marked: Any = story
    assert list(inspect.signature(story).parameters) == ["number", "more"]
    assert (story.__name__, story.__doc__) == ("story", "About the story.")
    assert [mark.name for mark in marked.pytestmark] == ["process"]
    assert not inspect.iscoroutinefunction(story)
    story(number=4)
    assert got == [7]


def test_a_test_that_takes_no_cluster_has_only_the_time() -> None:
    @virtual_time
    async def story() -> None:
        await asyncio.sleep(60)

    story()


@pytest.mark.parametrize(
    ("given", "reason"),
    [({"seed": ()}, "a seed"), ({"brokers": 0}, "one broker"), ({"nameservers": 0}, "one name s")],
)
def test_a_test_that_would_pass_without_a_run_is_refused(given: Any, reason: str) -> None:
    with pytest.raises(UsageError, match=reason):
        virtual_time(**given)


@pytest.mark.parametrize("decorate", [virtual_time, virtual_time(seed=1)])
def test_a_plain_function_is_refused(decorate: Callable[..., Any]) -> None:
    def story() -> None: ...

    with pytest.raises(UsageError, match="story is none"):
        decorate(story)
