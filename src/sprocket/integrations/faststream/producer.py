"""Publishing through Sprocket's producer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from faststream._internal.endpoint.utils import ParserComposition
from faststream._internal.parser import DefaultCodec
from faststream._internal.producer import ProducerProto
from faststream.exceptions import IncorrectState

from sprocket.client.producer import Producer
from sprocket.integrations.faststream.commands import RocketMQPublishCommand
from sprocket.integrations.faststream.messages import (
    CORRELATION,
    REPLY_TO,
    Delivery,
    decode,
    parse_message,
)
from sprocket.message.message import Message
from sprocket.schemas.body_codec import CONTENT_TYPE

if TYPE_CHECKING:
    from fast_depends.library.serializer import SerializerProto
    from faststream._internal.parser import CodecProto


class RocketMQProducer(ProducerProto[RocketMQPublishCommand]):
    """Makes messages of commands, and sends them."""

    def __init__(self, parser: Any = None, decoder: Any = None) -> None:
        self._parser = ParserComposition(parser, parse_message)
        self._decoder = ParserComposition(decoder, decode)
        self.codec: CodecProto = DefaultCodec()
        self.serializer: SerializerProto | None = None
        self._producer: Producer | None = None

    def connect(
        self, producer: Producer, serializer: SerializerProto | None, codec: CodecProto | None
    ) -> None:
        """Sends by this producer from now on."""
        self._producer = producer
        self.serializer = serializer
        self.codec = codec or DefaultCodec()

    def disconnect(self) -> None:
        """Sends nothing from now on."""
        self._producer = None

    @property
    def connected(self) -> Producer:
        """The producer.

        Raises:
            IncorrectState: the broker is not connected.
        """
        if self._producer is None:
            raise IncorrectState("the broker is not connected: call connect() or start() first")
        return self._producer

    async def publish(self, cmd: RocketMQPublishCommand) -> Any:
        """Sends a message, or the reply to a request; returns where it is stored."""
        message = await self.message(cmd, cmd.body)
        if cmd.question is not None:
            return await self.connected.reply(
                cmd.question, message.body, properties=message.properties
            )
        return await self.connected.send(message, key=cmd.key)

    async def request(self, cmd: RocketMQPublishCommand) -> Any:
        """Sends a request and waits for its reply."""
        message = await self.message(cmd, cmd.body)
        reply = await self.connected.request(message, timeout_ms=cmd.timeout * 1000)
        return Delivery(reply)

    async def publish_batch(self, cmd: RocketMQPublishCommand) -> Any:
        """Sends several messages in few requests."""
        messages = [await self.message(cmd, body) for body in cmd.batch_bodies]
        return await self.connected.send_many(messages, key_of=lambda _: cmd.key)

    async def message(self, cmd: RocketMQPublishCommand, body: Any) -> Message:
        """The message of a command with a body."""
        encoded, content_type = await self.codec.encode(body, self.serializer)
        own = {
            CONTENT_TYPE: content_type,
            CORRELATION: cmd.correlation_id,
            REPLY_TO: cmd.reply_to,
        }
        properties = {name: str(value) for name, value in cmd.headers.items()}
        properties.update({name: value for name, value in own.items() if value})
        return Message(cmd.destination, encoded, properties=properties, **cmd.fields)
