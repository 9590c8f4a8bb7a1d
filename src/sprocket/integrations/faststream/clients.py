"""What a broker of FastStream holds open: a producer, and a consumer for each group."""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

from faststream.exceptions import SetupError

from sprocket.client.base.subscription import MessageListener
from sprocket.client.config import ConsumerConfig, ProducerConfig
from sprocket.client.group.offsets import Start
from sprocket.client.popping.message_source import Mode
from sprocket.client.producer import Producer
from sprocket.client.push_consumer import PushConsumer


class GroupOptions(NamedTuple):
    """How a group consumes; the same for all its subscribers of a process.

    Attributes:
        start: where the group begins if it has no offsets.
        ordered: each queue in its order.
        broadcasting: each process gets every message.
        mode: `pull`, `pop` or `broker`.
        max_workers: how many handlers run at the same time.
    """

    start: Start = "last"
    ordered: bool = False
    broadcasting: bool = False
    mode: Mode = "pull"
    max_workers: int = 1


class JoinedGroup:
    """This process's member of a group. RocketMQ keeps one set of subscriptions for a group, so
    subscribers with one group share it."""

    def __init__(self, consumer: PushConsumer, options: GroupOptions) -> None:
        self.consumer = consumer
        self.options = options
        self.topics: set[str] = set()
        self.is_started = False


class BrokerClients:
    """The clients of a broker.

    Args:
        nameservers: `host:port`, several with `;` between them.
        group: the producers' group.
    """

    def __init__(
        self,
        nameservers: str | None,
        group: str,
        producer_config: ProducerConfig | None,
        consumer_config: ConsumerConfig | None,
    ) -> None:
        self._nameservers = nameservers
        self._consumer_config = consumer_config or ConsumerConfig()
        self.producer = Producer(group, nameservers=nameservers, config=producer_config)
        self._members: dict[str, JoinedGroup] = {}

    async def start(self) -> None:
        """Starts the producer; it connects when it is needed."""
        await self.producer.start()

    async def close(self) -> None:
        """Leaves all groups and closes the producer."""
        members, self._members = self._members, {}
        for member in members.values():
            await member.consumer.close()
        await self.producer.close()

    async def subscribe(
        self,
        group: str,
        options: GroupOptions,
        topic: str,
        tags: str,
        sql: str | None,
        listener: MessageListener,
    ) -> None:
        """Subscribes a listener to a topic, as a member of a group.

        Raises:
            SetupError: a subscriber of the group has other options, or has the topic already.
        """
        member = self._members.get(group)
        if member is None:
            config = dataclasses.replace(self._consumer_config, concurrency=options.max_workers)
            consumer = PushConsumer(
                group,
                nameservers=self._nameservers,
                start=options.start,
                ordered=options.ordered,
                broadcasting=options.broadcasting,
                mode=options.mode,
                config=config,
            )
            member = self._members[group] = JoinedGroup(consumer, options)
        if member.options != options:
            raise SetupError(
                f"subscribers of group {group} have different options ({member.options} and "
                f"{options}): give them the same, or groups of their own"
            )
        if topic in member.topics:
            raise SetupError(
                f"two subscribers of group {group} have topic {topic}: give one another group"
            )
        member.consumer.subscribe(topic, listener=listener, tags=tags, sql=sql)
        member.topics.add(topic)
        if not member.is_started:
            member.is_started = True
            await member.consumer.start()

    async def unsubscribe(self, group: str, topic: str) -> None:
        """Ends a subscription; the last one of a group leaves it, after its handlers ended."""
        member = self._members.get(group)
        if member is None or topic not in member.topics:
            return
        member.topics.discard(topic)
        if member.topics:
            member.consumer.unsubscribe(topic)
        else:
            del self._members[group]
            await member.consumer.close()
