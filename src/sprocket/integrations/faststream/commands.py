"""What is published: the body with the fields of a RocketMQ message."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from faststream.response import PublishCommand, Response
from faststream.response.publish_type import PublishType

from sprocket.message.message import StoredMessage


class RocketMQResponse(Response):
    """What a handler returns to set fields of the message that is published for it.

    Args:
        body: the body; the serializer writes it.
        headers: user properties.
        correlation_id: by default that of the message that is handled.
        fields: fields of `sprocket.Message`: `tag`, `keys`, `delay`, `deliver_at`, `priority`.
    """

    def __init__(
        self,
        body: Any,
        *,
        headers: Mapping[str, str] | None = None,
        correlation_id: str | None = None,
        key: str | int | None = None,
        **fields: Any,
    ) -> None:
        super().__init__(body, headers=dict(headers or {}), correlation_id=correlation_id)
        self.key = key
        self.fields = fields

    def as_publish_command(self) -> RocketMQPublishCommand:
        """The command that publishes it."""
        return RocketMQPublishCommand(
            self.body,
            headers=self.headers,
            correlation_id=self.correlation_id,
            key=self.key,
            fields=self.fields,
            _publish_type=PublishType.PUBLISH,
        )


class RocketMQPublishCommand(PublishCommand):
    """One message, or several of a batch, to publish.

    Attributes:
        bodies: those of a batch after the first.
        key: messages with one key go to one queue, in order.
        fields: further fields of `sprocket.Message`.
        timeout: how long a request waits for its reply, s.
        question: the request that this command answers.
    """

    def __init__(
        self,
        message: Any,
        *bodies: Any,
        topic: str = "",
        headers: Mapping[str, str] | None = None,
        correlation_id: str | None = None,
        reply_to: str = "",
        key: str | int | None = None,
        fields: Mapping[str, Any] | None = None,
        timeout: float = 3.0,
        _publish_type: PublishType,
    ) -> None:
        super().__init__(
            message,
            destination=topic,
            headers=dict(headers or {}),
            correlation_id=correlation_id,
            reply_to=reply_to,
            _publish_type=_publish_type,
        )
        self.bodies = bodies
        self.key = key
        self.fields = {name: one for name, one in (fields or {}).items() if one is not None}
        self.timeout = timeout
        self.question: StoredMessage | None = None

    @property
    def batch_bodies(self) -> tuple[Any, ...]:
        """All bodies of a batch."""
        return (self.body, *self.bodies)

    @classmethod
    def from_cmd(cls, cmd: PublishCommand) -> RocketMQPublishCommand:
        """The command, made one of RocketMQ's if it is another."""
        if isinstance(cmd, cls):
            return cmd
        return cls(
            cmd.body,
            topic=cmd.destination,
            headers=cmd.headers,
            correlation_id=cmd.correlation_id,
            reply_to=cmd.reply_to,
            _publish_type=cmd.publish_type,
        )


def fields_of(
    tag: str | None,
    keys: Sequence[str] | None,
    delay: timedelta | float | None,
    deliver_at: datetime | int | None,
    priority: int | None,
) -> dict[str, Any]:
    """Those fields of a message that are given."""
    given = {
        "tag": tag,
        "keys": keys,
        "delay": delay,
        "deliver_at": deliver_at,
        "priority": priority,
    }
    return {name: value for name, value in given.items() if value is not None}
