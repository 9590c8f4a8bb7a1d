"""Subscribers: a topic consumed by a group, one message at a time or several at once."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import TYPE_CHECKING, Any

from faststream._internal.endpoint.subscriber import SubscriberSpecification, SubscriberUsecase
from faststream._internal.endpoint.subscriber.call_item import CallsCollection
from faststream.exceptions import FeatureNotSupportedException, SetupError
from faststream.specification.asyncapi.utils import resolve_payloads
from faststream.specification.schema import Message as MessageSchema
from faststream.specification.schema import Operation, SubscriberSpec

from sprocket.client.base.subscription import Later
from sprocket.integrations.faststream.configs import (
    RocketMQBrokerConfig,
    RocketMQSubscriberConfig,
    RocketMQSubscriberSpecificationConfig,
)
from sprocket.integrations.faststream.messages import Delivery, decode, parse_message
from sprocket.integrations.faststream.publisher import RocketMQReplies
from sprocket.message.message import StoredMessage

if TYPE_CHECKING:
    from faststream._internal.endpoint.publisher import PublisherProto
    from faststream.message import StreamMessage


class RocketMQSubscriber(SubscriberUsecase[Delivery]):
    """Gives the messages of a topic to its handlers, as a member of a consumer group."""

    _outer_config: RocketMQBrokerConfig

    def __init__(
        self,
        config: RocketMQSubscriberConfig,
        specification: SubscriberSpecification[Any, Any],
        calls: CallsCollection[Delivery],
    ) -> None:
        config.parser, config.decoder = parse_message, decode
        super().__init__(config, specification, calls)
        self._topic = config.topic
        self._group = config.group
        self.tags = config.tags
        self.sql = config.sql
        self.options = config.options
        self._is_subscribed = False

    @property
    def topic(self) -> str:
        """The topic, with the prefixes of its routers."""
        return f"{self._outer_config.prefix}{self._topic}"

    @property
    def group(self) -> str:
        """The consumer group.

        Raises:
            SetupError: neither the subscriber nor its broker has one.
        """
        if group := self._group or self._outer_config.group:
            return group
        raise SetupError(
            f"the subscriber of {self._topic} has no group: give it one, or the broker, with group="
        )

    async def start(self) -> None:
        """Joins the group, if there are handlers."""
        await super().start()
        self._post_start()
        if self.calls:
            await self._outer_config.connection.subscribe(
                self.group, self.options, self.topic, self.tags, self.sql, self._handle
            )
            self._is_subscribed = True

    async def stop(self) -> None:
        """Leaves the group once the running handlers have ended."""
        if self._is_subscribed and self._outer_config.clients is not None:
            self._is_subscribed = False
            await self._outer_config.clients.unsubscribe(self.group, self.topic)
        await super().stop()

    async def _handle(self, message: StoredMessage) -> Later | None:
        """Runs the handlers for a message. What nobody acknowledged comes again."""
        delivery = Delivery(message, Later())
        await self.consume(delivery)
        return delivery.verdict

    async def get_one(self, *, timeout: float = 5.0) -> Any:
        """Is not there: a group's messages go to handlers.

        Raises:
            FeatureNotSupportedException: always.
        """
        raise FeatureNotSupportedException(
            "get_one is not supported: use a handler, or sprocket.LitePullConsumer to poll"
        )

    def __aiter__(self) -> AsyncIterator[Any]:
        """Is not there: a group's messages go to handlers.

        Raises:
            FeatureNotSupportedException: always.
        """
        raise FeatureNotSupportedException(
            "iteration is not supported: use a handler, or iterate over a sprocket.PushConsumer"
        )

    def _make_response_publisher(self, message: StreamMessage[Any]) -> Sequence[PublisherProto]:
        return (RocketMQReplies(self._outer_config.producer, message),)

    def get_log_context(self, message: StreamMessage[Delivery] | None) -> dict[str, str]:
        """What log lines say of a message."""
        return {
            "topic": self.topic,
            "group": self._group or self._outer_config.group,
            "message_id": "" if message is None else message.message_id,
        }


class RocketMQSubscriberSpecification(
    SubscriberSpecification[RocketMQBrokerConfig, RocketMQSubscriberSpecificationConfig]
):
    """A subscriber in the AsyncAPI document."""

    @property
    def topic(self) -> str:
        """The topic, with the prefixes of its routers."""
        return f"{self._outer_config.prefix}{self.config.topic}"

    @property
    def channel_labels(self) -> list[str]:
        """The names of its channels."""
        return [self.topic]

    def get_schema(self) -> dict[str, SubscriberSpec]:
        """Its channel with the schema of its messages."""
        payload = resolve_payloads(self.get_payloads())
        return {
            self.name: SubscriberSpec(
                address=self.topic,
                description=self.description,
                operation=Operation(
                    message=MessageSchema(title=f"{self.name}:Message", payload=payload),
                    bindings=None,
                ),
                bindings=None,
            )
        }
