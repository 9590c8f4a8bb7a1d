"""Publishers: a topic with the fields that its messages have, and the replies to requests."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from faststream._internal.endpoint.publisher import PublisherSpecification, PublisherUsecase
from faststream._internal.endpoint.publisher.fake import FakePublisher
from faststream.message import StreamMessage
from faststream.response import PublishCommand
from faststream.response.publish_type import PublishType
from faststream.specification.asyncapi.utils import resolve_payloads
from faststream.specification.schema import Message as MessageSchema
from faststream.specification.schema import Operation, PublisherSpec

from sprocket.integrations.faststream.commands import RocketMQPublishCommand
from sprocket.integrations.faststream.configs import (
    RocketMQBrokerConfig,
    RocketMQPublisherConfig,
    RocketMQPublisherSpecificationConfig,
)
from sprocket.integrations.faststream.messages import THE_CLIENT, Delivery
from sprocket.message.message import StoredMessage

if TYPE_CHECKING:
    from faststream._internal.producer import ProducerProto
    from faststream._internal.types import PublisherMiddleware


class RocketMQPublisher(PublisherUsecase):
    """Publishes to one topic, by calls or what a handler returns."""

    _outer_config: RocketMQBrokerConfig

    def __init__(
        self,
        config: RocketMQPublisherConfig,
        specification: PublisherSpecification[Any, Any],
    ) -> None:
        super().__init__(config, specification)
        self._topic = config.topic
        self.key = config.key
        self.headers = dict(config.headers)
        self.fields = dict(config.fields)

    @property
    def topic(self) -> str:
        """The topic, with the prefixes of its routers."""
        return f"{self._outer_config.prefix}{self._topic}"

    async def publish(
        self,
        message: Any = None,
        topic: str = "",
        *,
        key: str | int | None = None,
        headers: Mapping[str, str] | None = None,
        correlation_id: str | None = None,
        reply_to: str = "",
        **fields: Any,
    ) -> Any:
        """Publishes a message; fields of `sprocket.Message` that are given replace its own.

        Returns:
            Where the broker stored it, a `sprocket.Sent`.
        """
        cmd = self._command(PublishType.PUBLISH, message, topic, key, headers, fields)
        cmd.correlation_id = correlation_id or self._outer_config.id_generator()
        cmd.reply_to = reply_to
        producer = self._outer_config.producer
        return await self._basic_publish(cmd, producer=producer, _extra_middlewares=())

    async def _publish(
        self, cmd: PublishCommand, *, _extra_middlewares: Iterable[PublisherMiddleware]
    ) -> None:
        made = RocketMQPublishCommand.from_cmd(cmd)
        made.destination = made.destination or self.topic
        made.add_headers(self.headers, override=False)
        made.key = self.key if made.key is None else made.key
        made.fields = {**self.fields, **made.fields}
        await self._basic_publish(
            made, producer=self._outer_config.producer, _extra_middlewares=_extra_middlewares
        )

    async def request(
        self,
        message: Any = None,
        topic: str = "",
        *,
        headers: Mapping[str, str] | None = None,
        correlation_id: str | None = None,
        timeout: float = 3.0,
        **fields: Any,
    ) -> Any:
        """Publishes a request and waits for its reply, so many seconds at most."""
        cmd = self._command(PublishType.REQUEST, message, topic, None, headers, fields)
        cmd.correlation_id = correlation_id or self._outer_config.id_generator()
        cmd.timeout = timeout
        return await self._basic_request(cmd, producer=self._outer_config.producer)

    def _command(
        self,
        kind: PublishType,
        message: Any,
        topic: str,
        key: str | int | None,
        headers: Mapping[str, str] | None,
        fields: Mapping[str, Any],
    ) -> RocketMQPublishCommand:
        return RocketMQPublishCommand(
            message,
            topic=topic or self.topic,
            key=self.key if key is None else key,
            headers={**self.headers, **(headers or {})},
            fields={**self.fields, **fields},
            _publish_type=kind,
        )


class RocketMQReplies(FakePublisher):
    """Sends what a handler returns to who asked: a client that waits, or a topic."""

    def __init__(self, producer: ProducerProto[Any], question: StreamMessage[Delivery]) -> None:
        super().__init__(producer=producer)
        self._question = question

    def patch_command(self, cmd: PublishCommand) -> RocketMQPublishCommand:
        """The command with its destination."""
        made = RocketMQPublishCommand.from_cmd(super().patch_command(cmd))
        to = self._question.reply_to
        asked = self._question.raw_message.message
        if to.startswith(THE_CLIENT) and isinstance(asked, StoredMessage):
            made.question = asked
            made.destination = asked.topic
        else:
            made.destination = to
        return made


class RocketMQPublisherSpecification(
    PublisherSpecification[RocketMQBrokerConfig, RocketMQPublisherSpecificationConfig]
):
    """A publisher in the AsyncAPI document."""

    @property
    def topic(self) -> str:
        """The topic, with the prefixes of its routers."""
        return f"{self._outer_config.prefix}{self.config.topic}"

    @property
    def name(self) -> str:
        """The name of its channel."""
        return self.config.title_ or f"{self.topic}:Publisher"

    def get_schema(self) -> dict[str, PublisherSpec]:
        """Its channel with the schema of its messages."""
        payload = resolve_payloads(self.get_payloads(), "Publisher")
        return {
            self.name: PublisherSpec(
                address=self.topic,
                description=self.config.description_,
                operation=Operation(
                    message=MessageSchema(title=f"{self.name}:Message", payload=payload),
                    bindings=None,
                ),
                bindings=None,
            )
        }
