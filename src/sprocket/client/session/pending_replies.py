"""Replies that are awaited, by the name under which each was asked for.

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
    """Who waits for which reply. Each waits for one, and forgets it when the time is over."""

    def __init__(self) -> None:
        self._waiting: dict[str, asyncio.Future[Message]] = {}

    @property
    def is_awaiting(self) -> bool:
        """Whether somebody waits."""
        return bool(self._waiting)

    def expect(self, name: str) -> asyncio.Future[Message]:
        """The reply that will come under that name."""
        waiting: asyncio.Future[Message] = asyncio.get_running_loop().create_future()
        self._waiting[name] = waiting
        return waiting

    def forget(self, name: str) -> None:
        """Nobody waits for it any more."""
        self._waiting.pop(name, None)

    def receive(self, command: Command) -> Reply:
        """Takes in what a broker pushes, and thanks it; a reply that nobody awaits is let go."""
        header = command.read(PushReplyMessage)
        properties = decode(header.properties or "")
        waiting = self._waiting.get(properties.get(CORRELATION_ID, ""))
        if waiting is None or waiting.done():
            logger.info("a reply came that nobody awaits, or no longer: %s", properties)
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
