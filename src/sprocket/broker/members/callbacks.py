"""Requests that a broker sends to its clients: one-way, or with a reply.

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

#: How long a client may take to answer a request that the broker passes on, ms.
ANSWER_MS = 10_000
#: Languages whose clients are built on the one in C++; they expect lists in place of maps.
_CPP_FAMILY = frozenset({"CPP", "PYTHON"})


def notify_members(group: str, members: Iterable[ClientInfo]) -> None:
    """Notifies a group's members, one-way, that a member joined or left; they rebalance then."""
    for member in members:
        peer_of(member).send_oneway(IdsChanged(consumer_group=group))


def send_reset(
    header: ResetClientOffset, offsets: Mapping[Queue, int], members: Iterable[ClientInfo]
) -> None:
    """Sends the offsets of a reset to a group's members, one-way, in the form of each language.

    Java's broker chooses the form by the language of the operator's tool instead.
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
    """Sends a request to a client and gives its response unchanged.

    Raises:
        SystemFailure: the client did not answer in time, or its connection broke.
    """
    try:
        deadline = Deadline.after_ms(ANSWER_MS)
        return await peer_of(client).call(header, body=body, deadline=deadline)
    except TransportError as error:
        raise SystemFailure(f"client {client.client_id} does not answer: {error}") from error


def peer_of(client: ClientInfo) -> Peer:
    """The connection that identifies a member."""
    assert isinstance(client.connection, Peer)
    return client.connection
