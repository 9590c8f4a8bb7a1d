"""A broker without servers, for tests: what is published goes to the handlers at once."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, cast
from unittest.mock import AsyncMock

import anyio
from faststream._internal.parser import DefaultCodec
from faststream._internal.testing.broker import EnterType, TestBroker, change_producer
from faststream.exceptions import SubscriberNotFound

from sprocket.filter.tags import TagFilter
from sprocket.integrations.faststream.broker import RocketMQBroker
from sprocket.integrations.faststream.clients import BrokerClients
from sprocket.integrations.faststream.commands import RocketMQPublishCommand
from sprocket.integrations.faststream.messages import Delivery
from sprocket.integrations.faststream.producer import RocketMQProducer
from sprocket.integrations.faststream.publisher import RocketMQPublisher
from sprocket.integrations.faststream.subscriber import RocketMQSubscriber


class TestRocketMQBroker(TestBroker[RocketMQBroker, EnterType], broker=RocketMQBroker):
    """Runs handlers in memory::

        async with TestRocketMQBroker(broker) as tested:
            await tested.publish({"id": "o-1"}, "orders")
            bill.mock.assert_called_once_with({"id": "o-1"})

    One subscriber of each group gets a message, if its tags fit; SQL is not evaluated. With
    `with_real=True` the broker connects to its servers, and only the mocks are set.
    """

    def create_publisher_fake_subscriber(
        self, broker: RocketMQBroker, publisher: Any
    ) -> tuple[RocketMQSubscriber, bool]:
        """A subscriber of a publisher's topic, and whether it is one of the program's."""
        topic = cast("RocketMQPublisher", publisher).topic
        for other in self.brokers:
            for subscriber in other.subscribers:
                if cast("RocketMQSubscriber", subscriber).topic == topic:
                    return cast("RocketMQSubscriber", subscriber), True
        return broker.subscriber(topic, f"{topic}-test", persistent=False), False

    @contextmanager
    def _patch_producer(self, broker: RocketMQBroker) -> Generator[None, None, None]:
        config = broker.config.broker_config
        with change_producer(config, ProducerInMemory(broker, self.brokers)):
            yield

    async def _fake_connect(self, broker: RocketMQBroker, *args: Any, **kwargs: Any) -> Any:
        clients = AsyncMock(spec=BrokerClients, producer=None)
        broker.config.broker_config.connect(clients)
        return clients


class ProducerInMemory(RocketMQProducer):
    """Gives messages to the handlers of brokers."""

    def __init__(self, broker: RocketMQBroker, brokers: Sequence[RocketMQBroker]) -> None:
        super().__init__(broker._parser, broker._decoder)
        self._brokers = brokers
        config = broker.config.broker_config
        self.codec = config.broker_codec or DefaultCodec()
        self.serializer = config.fd_config._serializer

    async def publish(self, cmd: RocketMQPublishCommand) -> None:
        """Runs the handlers for a message."""
        await self._handle(cmd, cmd.body)

    async def publish_batch(self, cmd: RocketMQPublishCommand) -> None:
        """Runs the handlers for each message."""
        for body in cmd.batch_bodies:
            await self._handle(cmd, body)

    async def _handle(self, cmd: RocketMQPublishCommand, body: Any) -> None:
        message = await self.message(cmd, body)
        for subscriber in self._of(message.topic, message.tag):
            await subscriber.process_message(Delivery(message))

    async def request(self, cmd: RocketMQPublishCommand) -> Delivery:
        """Runs the first handler; returns what it answers.

        Raises:
            SubscriberNotFound: nobody has the topic.
            TimeoutError: the handler did not return in time.
        """
        message = await self.message(cmd, cmd.body)
        for subscriber in self._of(message.topic, message.tag):
            with anyio.fail_after(cmd.timeout):
                answer = await subscriber.process_message(Delivery(message))
            made = RocketMQPublishCommand.from_cmd(answer.as_publish_command())
            made.correlation_id = answer.correlation_id
            return Delivery(await self.message(made, answer.body))
        raise SubscriberNotFound

    def _of(self, topic: str, tag: str | None) -> Iterator[RocketMQSubscriber]:
        """The subscribers that get a message: one of each group, all where they broadcast."""
        groups: set[str] = set()
        for broker in self._brokers:
            for each in cast("list[RocketMQSubscriber]", broker.subscribers):
                is_again = each.group in groups and not each.options.broadcasting
                if each.topic == topic and not is_again and _fits(each.tags, tag):
                    groups.add(each.group)
                    yield each


def _fits(tags: str, tag: str | None) -> bool:
    """Whether a subscription gets messages with a tag."""
    wanted = TagFilter.parse(tags)
    return wanted.is_all or tag in wanted.tags
