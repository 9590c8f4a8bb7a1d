"""What a broker asks of its clients: told once, or asked for an answer.

Source: Broker2Client of RocketMQ 5.x.
"""

from __future__ import annotations

from collections.abc import Iterable

from sprocket.base.deadline import Deadline
from sprocket.base.errors import SystemFailure, TransportError
from sprocket.broker.clients import Client
from sprocket.protocol.command import Buffer, Command, Header
from sprocket.protocol.requests.client import IdsChanged
from sprocket.remoting.transport import Peer

#: How long a client may take to answer what an operator asks through the broker.
ANSWER_MS = 10_000


def tell_members(group: str, members: Iterable[Client]) -> None:
    """Tells a group's members, one-way, that somebody came or left; they share the queues anew."""
    for member in members:
        peer_of(member).send_oneway(IdsChanged(consumer_group=group))


async def ask(client: Client, header: Header, *, body: Buffer = b"") -> Command:
    """A client's answer to a request, as it came.

    Raises:
        SystemFailure: it did not answer in time, or its connection broke.
    """
    try:
        deadline = Deadline.after_ms(ANSWER_MS)
        return await peer_of(client).call(header, body=body, deadline=deadline)
    except TransportError as error:
        raise SystemFailure(f"client {client.client_id} does not answer: {error}") from error


def peer_of(client: Client) -> Peer:
    """The connection that a member is known by."""
    assert isinstance(client.connection, Peer)
    return client.connection
