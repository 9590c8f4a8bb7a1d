"""Asks for the parts of logical queues: this broker for its own queues, others for theirs.

Source: the `rewriteRequestForStaticTopic` of ConsumerManageProcessor and AdminBrokerProcessor of
RocketMQ 5.3.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any, cast

from msgspec.structs import replace

from sprocket.base.errors import ReplyError
from sprocket.broker.dispatch import Endpoints
from sprocket.broker.logical.mapped import with_header
from sprocket.broker.logical.other_brokers import OtherBrokers
from sprocket.clientcore.attempts import is_refusal
from sprocket.protocol.bodies import MappingItem
from sprocket.protocol.command import Command, Reply
from sprocket.protocol.requests.offset import MaxOffset, OffsetReply
from sprocket.remoting.transport import Peer


class PartRequests:
    """Sends a request for one part of a logical queue to the broker that holds it.

    Args:
        broker: this broker's name.
        inner: this broker's endpoints for its own queues, by request code.
    """

    def __init__(self, broker: str, inner: Endpoints, others: OtherBrokers) -> None:
        self._broker = broker
        self._inner = inner
        self._others = others

    def is_here(self, item: MappingItem) -> bool:
        """Whether this broker holds a part."""
        return item.bname == self._broker

    def local(self, header: Any, command: Command, peer: Peer) -> Reply | Awaitable[Reply]:
        """This broker's own reply."""
        outcome = self._inner[header.code](with_header(command, header), peer)
        return cast("Reply | Awaitable[Reply]", outcome)

    async def ask(self, item: MappingItem, header: Any, command: Command, peer: Peer) -> Reply:
        """The reply of the broker that holds a part, whatever its code.

        Args:
            header: with the topic; the part's queue is put in.

        Raises:
            SprocketError: this broker refuses it, or the other one cannot be reached.
        """
        asked = replace(header, queue_id=item.queue_id, bname=item.bname, lo=False)
        if self.is_here(item):
            outcome = self.local(asked, command, peer)
            return outcome if isinstance(outcome, Reply) else await outcome
        answered = await self._others.ask(item.bname, header.topic, asked)
        if answered.code and is_refusal(error := answered.error()):
            self._others.refused(item.bname, error)
        found = None
        if header.reply is not None and answered.fields:
            found = answered.read(header.reply)
        return Reply(found, answered.body, answered.code, answered.remark)

    async def asked(self, item: MappingItem, header: Any, command: Command, peer: Peer) -> Any:
        """The header of a successful reply.

        Raises:
            ReplyError: the reply has another code than 0.
            SprocketError: as `ask`.
        """
        reply = await self.ask(item, header, command, peer)
        if reply.code:
            raise ReplyError.of(reply.code, reply.remark or "")
        return reply.header

    async def end_of(self, item: MappingItem, topic: str, command: Command, peer: Peer) -> int:
        """The offset behind the last message in a part's queue.

        Raises:
            SprocketError: as `asked`; also of a new master that does not know it yet.
        """
        header = MaxOffset(topic=topic, queue_id=0)
        found: OffsetReply = await self.asked(item, header, command, peer)
        return found.offset
