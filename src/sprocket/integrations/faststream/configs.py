"""What brokers, subscribers and publishers are set up with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from faststream._internal.configs import (
    BrokerConfig,
    PublisherSpecificationConfig,
    PublisherUsecaseConfig,
    SubscriberSpecificationConfig,
    SubscriberUsecaseConfig,
)
from faststream._internal.constants import EMPTY
from faststream.exceptions import IncorrectState
from faststream.middlewares import AckPolicy

from sprocket.integrations.faststream.clients import BrokerClients, GroupOptions
from sprocket.integrations.faststream.producer import RocketMQProducer


@dataclass(kw_only=True)
class RocketMQBrokerConfig(BrokerConfig):
    """Of a broker, or of a router that becomes part of one.

    Attributes:
        group: of subscribers that name none.
    """

    producer: RocketMQProducer = field(default_factory=RocketMQProducer)
    group: str = ""
    clients: BrokerClients | None = None

    def connect(self, clients: BrokerClients) -> None:
        """Subscribers and publishers use these clients from now on."""
        self.clients = clients
        serializer = self.fd_config._serializer
        self.producer.connect(clients.producer, serializer, self.broker_codec)

    def disconnect(self) -> None:
        """Nothing is published from now on."""
        self.clients = None
        self.producer.disconnect()

    @property
    def connection(self) -> BrokerClients:
        """The broker's clients.

        Raises:
            IncorrectState: the broker is not connected.
        """
        if self.clients is None:
            raise IncorrectState("the broker is not connected: call connect() or start() first")
        return self.clients


@dataclass(kw_only=True)
class RocketMQSubscriberConfig(SubscriberUsecaseConfig):
    """Of a subscriber."""

    _outer_config: RocketMQBrokerConfig = field(default_factory=RocketMQBrokerConfig)
    topic: str
    group: str
    tags: str
    sql: str | None
    options: GroupOptions

    @property
    def ack_policy(self) -> AckPolicy:
        """By default a message whose handler fails comes again, as in all of RocketMQ's clients."""
        for policy in (self._ack_policy, self._outer_config.ack_policy):
            if policy is not EMPTY:
                return policy
        return AckPolicy.NACK_ON_ERROR


@dataclass(kw_only=True)
class RocketMQSubscriberSpecificationConfig(SubscriberSpecificationConfig):
    """Of a subscriber's part of the AsyncAPI document."""

    topic: str


@dataclass(kw_only=True)
class RocketMQPublisherConfig(PublisherUsecaseConfig):
    """Of a publisher."""

    _outer_config: RocketMQBrokerConfig = field(default_factory=RocketMQBrokerConfig)
    topic: str
    key: str | int | None
    headers: Mapping[str, str]
    fields: Mapping[str, Any]


@dataclass(kw_only=True)
class RocketMQPublisherSpecificationConfig(PublisherSpecificationConfig):
    """Of a publisher's part of the AsyncAPI document."""

    topic: str
