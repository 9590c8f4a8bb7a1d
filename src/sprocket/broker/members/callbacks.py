"""What a broker asks of its clients: told once, or asked for an answer.

Source: Broker2Client of RocketMQ 5.x.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from sprocket.base.deadline import Deadline
from sprocket.base.errors import SystemFailure, TransportError
from sprocket.broker.tables.clients import ClientInfo
from sprocket.protocol.bodies import (
    Queue,
    QueueOffsetItem,
    ResetOffsetBody,
    ResetOffsetList,
)
from sprocket.protocol.command import Buffer, Command, Header
from sprocket.protocol.requests.client import IdsChanged
from sprocket.protocol.requests.offset import ResetClientOffset
from sprocket.remoting.transport import Peer

#: How long a client may take to answer what an operator asks through the broker.
ANSWER_MS = 10_000
#: Languages whose clients come of the one in C++; they read tables as lists of items.
_CPP_FAMILY = frozenset({"CPP", "PYTHON"})


def notify_members(group: str, members: Iterable[ClientInfo]) -> None:
    """Tells a group's members, one-way, that somebody came or left; they share the queues anew."""
    for member in members:
        peer_of(member).send_oneway(IdsChanged(consumer_group=group))


def send_reset(
    header: ResetClientOffset, offsets: Mapping[Queue, int], members: Iterable[ClientInfo]
) -> None:
    """Tells a group's members, one-way, where an operator sends them; each in its own form.

    Java's broker chooses the form by the language of the operator's tool.
    """
    table = ResetOffsetBody(offset_table=dict(offsets)).encode()
    items = ResetOffsetList(
        offset_table=[
            QueueOffsetItem(
                broker_name=queue.broker_name,
                offset=offset,
                queue_id=queue.queue_id,
                topic=queue.topic,
            )
            for queue, offset in offsets.items()
        ]
    ).encode()
    for member in members:
        body = items if member.language in _CPP_FAMILY else table
        peer_of(member).send_oneway(header, body=body)


async def call_client(client: ClientInfo, header: Header, *, body: Buffer = b"") -> Command:
    """A client's answer to a request, as it came.

    Raises:
        SystemFailure: it did not answer in time, or its connection broke.
    """
    try:
        deadline = Deadline.after_ms(ANSWER_MS)
        return await peer_of(client).call(header, body=body, deadline=deadline)
    except TransportError as error:
        raise SystemFailure(f"client {client.client_id} does not answer: {error}") from error


def peer_of(client: ClientInfo) -> Peer:
    """The connection that a member is known by."""
    assert isinstance(client.connection, Peer)
    return client.connection
