"""Requests to brokers: over connections, or to a broker in the same process without any.

A call is a command at once if nothing has to be waited for, else an awaitable: a send to a broker
in the same process costs no task.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

from sprocket.base.deadline import Deadline
from sprocket.base.errors import CallTimeout, SystemFailure
from sprocket.protocol.codes import LANGUAGE
from sprocket.protocol.command import BINARY, Buffer, Command, Header, Reply
from sprocket.protocol.frame import PREFIX_BYTES, decode_header
from sprocket.remoting.endpoints import EventualResponse, Response
from sprocket.remoting.inner_peer import InnerPeer, command_of
from sprocket.remoting.pool import Pool
from sprocket.remoting.transport import Peer

#: Answers the first of some requests of a peer.
AnswerFirst = Callable[[Sequence[Command], Peer], Sequence[EventualResponse]]


class BrokerCalls(Protocol):
    """Asks brokers by their address."""

    def call(
        self,
        address: str,
        header: Header,
        *,
        body: Buffer = b"",
        deadline: Deadline,
        peer: Peer | None = None,
        is_held: bool = False,
    ) -> Command | Awaitable[Command]:
        """Sends a request; the reply has any code.

        Args:
            peer: stands for the client at a broker in the same process.
            is_held: whether the broker may hold the reply back.

        Raises:
            TransportError: no reply.
        """
        ...


class PoolCalls:
    """Asks over connections."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    def call(
        self,
        address: str,
        header: Header,
        *,
        body: Buffer = b"",
        deadline: Deadline,
        peer: Peer | None = None,
        is_held: bool = False,
    ) -> Awaitable[Command]:
        """See `BrokerCalls`."""
        return self._pool.call(address, header, body=body, deadline=deadline, is_held=is_held)


class InnerCalls:
    """Asks one broker in the same process, and all others as `others` does.

    Args:
        answer: that broker's.
        address: under which routes have it.
        own: stands for the proxy itself there.
    """

    def __init__(
        self, answer: AnswerFirst, address: str, others: BrokerCalls, *, own: InnerPeer
    ) -> None:
        self._answer = answer
        self._address = address
        self._others = others
        self._own = own

    # The header stays an object: the broker reads it as if it had decoded it. A request that calls
    # itself binary gets its reply as an object too, not as a text in JSON.
    def call(
        self,
        address: str,
        header: Header,
        *,
        body: Buffer = b"",
        deadline: Deadline,
        peer: Peer | None = None,
        is_held: bool = False,
    ) -> Command | Awaitable[Command]:
        """See `BrokerCalls`."""
        if address != self._address:
            return self._others.call(address, header, body=body, deadline=deadline, is_held=is_held)
        inner = peer if isinstance(peer, InnerPeer) else self._own
        command = Command(
            header.code,
            language=inner.language or LANGUAGE,
            version=inner.version,
            body=body,
            serialization=BINARY,
            header=header,
            user="",  # the proxy has checked who calls
        )
        outcome = self._answer((command,), inner)[0]
        if type(outcome) is Reply:
            return command_of(outcome)
        if outcome is None or isinstance(outcome, Reply | bytes):
            return _read(outcome)
        return _later(outcome, deadline)


async def _later(outcome: Awaitable[Response], deadline: Deadline) -> Command:
    try:
        async with asyncio.timeout_at(None if deadline.is_never else deadline.at):
            return _read(await outcome)
    except TimeoutError:
        raise CallTimeout("the broker has not answered in time") from None


def _read(response: Response) -> Command:
    """A reply, or what its frame says."""
    if isinstance(response, Reply):
        return command_of(response)
    if response is None:
        raise SystemFailure("the broker gives no reply")
    word = int.from_bytes(response[4:PREFIX_BYTES], "big")
    end = PREFIX_BYTES + (word & 0xFFFFFF)
    command = decode_header(response[PREFIX_BYTES:end], word >> 24)
    command.body = response[end:]
    return command
