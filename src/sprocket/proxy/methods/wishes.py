"""What a receive asks a broker for, and the messages in its reply."""

from __future__ import annotations

from typing import NamedTuple

from sprocket.filter.tags import TagFilter
from sprocket.protocol.command import Command
from sprocket.protocol.requests.lite import PopLite
from sprocket.protocol.requests.pop import PopMessage
from sprocket.proxy.brokers.popped_replies import PoppedOne, read_popped, read_popped_lite
from sprocket.proxy.clients.served_clients import ServedClient
from sprocket.proxy.messages import checks
from sprocket.proxy.messages import rocketmq_pb2 as pb


class Wish(NamedTuple):
    """What a receive asks for.

    Attributes:
        kept_by: the client for which messages stay invisible; None if they do not.
        attempts_max: how often a message is delivered at most.
    """

    group: str
    topic: str
    broker: str
    address: str
    header: PopMessage | PopLite
    tags: TagFilter | None
    kept_by: ServedClient | None
    attempts_max: int


def popped_of(reply: Command, wish: Wish) -> list[PoppedOne]:
    """The messages in a broker's reply.

    Raises:
        RemoteProtocolError: it is not whole.
    """
    if isinstance(wish.header, PopLite):
        return read_popped_lite(reply, wish.header, wish.broker)
    return read_popped(reply, wish.header, wish.broker)


def filter_of(asked: pb.FilterExpression) -> tuple[str, str, TagFilter | None]:
    """Kind and text of a filter for brokers, and the tags that are compared here.

    Raises:
        CallRefused: it cannot be parsed.
    """
    tags = checks.check_expression(asked)
    if tags is None:
        return "SQL92", asked.expression, None
    return "TAG", tags.expression, None if tags.is_all else tags
