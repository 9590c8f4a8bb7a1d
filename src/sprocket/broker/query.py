"""Finding single messages, by their place in the log (33).

Source: QueryMessageProcessor of RocketMQ 5.x.
"""

from __future__ import annotations

from sprocket.base.errors import OffsetOutOfRange, SystemFailure
from sprocket.broker.dispatch import Answers
from sprocket.protocol.codes import RequestCode
from sprocket.protocol.command import Command, Reply
from sprocket.protocol.requests.query import ViewMessage
from sprocket.remoting.transport import Peer
from sprocket.store.store import Store


class Queries:
    """Answers questions for messages."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def answers(self) -> Answers:
        """By request code."""
        return {RequestCode.VIEW_MESSAGE_BY_ID: self.view}

    def view(self, command: Command, peer: Peer) -> Reply:
        """The record that begins at a log offset.

        Raises:
            SystemFailure: none begins there.
        """
        header = command.read(ViewMessage)
        try:
            return Reply(body=self._store.lookup(header.offset))
        except OffsetOutOfRange:
            raise SystemFailure(f"can not find message by the offset, {header.offset}") from None
