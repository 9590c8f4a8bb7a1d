"""Pending replies to request messages, by correlation id.

Source: ClientRemotingProcessor.receiveReplyMessage, RequestFutureHolder of RocketMQ 4.9 and 5.x.
"""

from __future__ import annotations

import asyncio
import logging

from sprocket.base.errors import CorruptRecord
from sprocket.message.compression import is_compressed, open_body
from sprocket.message.message import Message
from sprocket.message.properties import CORRELATION_ID, KEYS, RESERVED, TAGS, decode
from sprocket.protocol.codes import ResponseCode
from sprocket.protocol.command import Command, Reply
from sprocket.protocol.requests.send import PushReplyMessage

logger = logging.getLogger(__name__)


class PendingReplies:
    """The futures of replies that have not arrived; the caller removes its own after a timeout."""

    def __init__(self) -> None:
        self._waiting: dict[str, asyncio.Future[Message]] = {}

    @property
    def is_awaiting(self) -> bool:
        """Whether any reply is awaited."""
        return bool(self._waiting)

    def expect(self, name: str) -> asyncio.Future[Message]:
        """Returns a future for the reply with this correlation id."""
        waiting: asyncio.Future[Message] = asyncio.get_running_loop().create_future()
        self._waiting[name] = waiting
        return waiting

    def forget(self, name: str) -> None:
        """Removes the future of this correlation id; a reply that comes later is ignored."""
        self._waiting.pop(name, None)

    def receive(self, command: Command) -> Reply:
        """Handles a reply that a broker pushes, and confirms it; one that nobody awaits is ignored.

        The confirmation has an error code if the body cannot be decompressed.
        """
        header = command.read(PushReplyMessage)
        properties = decode(header.properties or "")
        waiting = self._waiting.get(properties.get(CORRELATION_ID, ""))
        if waiting is None or waiting.done():
            logger.info("ignored a reply that nobody awaits any more: %s", properties)
            return Reply()
        try:
            waiting.set_result(_message(header, properties, bytes(command.body)))
        except CorruptRecord as error:
            return Reply(code=ResponseCode.SYSTEM_ERROR, remark=f"the reply is broken: {error}")
        return Reply()


def _message(header: PushReplyMessage, properties: dict[str, str], body: bytes) -> Message:
    if is_compressed(header.sys_flag):
        body = open_body(body, header.sys_flag)
    return Message(
        header.topic,
        body,
        tag=properties.get(TAGS),
        keys=properties.get(KEYS, "").split(),
        properties={name: text for name, text in properties.items() if name not in RESERVED},
        flag=header.flag,
    )
