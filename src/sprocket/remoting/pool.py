"""Connections to servers, made when they are needed: one for each address."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from types import TracebackType
from typing import Self

from sprocket.base.backoff import pauses
from sprocket.base.deadline import Deadline
from sprocket.base.errors import CallTimeout, ClosedError, ConnectFailed
from sprocket.base.ports import Entropy
from sprocket.protocol.command import JSON, Buffer, Command, Header, Reply
from sprocket.protocol.signing import Signer
from sprocket.remoting import address as addresses
from sprocket.remoting.answers import Answer, one_by_one
from sprocket.remoting.limits import Limits
from sprocket.remoting.transport import Peer

logger = logging.getLogger(__name__)

#: Seconds in which a server that could not be reached is not tried again: at first, at most.
_PAUSE_FIRST = 0.1
_PAUSE_LONGEST = 2.0
_CLOSE_SECONDS = 1.0


class _Outage:
    """A server that could not be reached, and when it is worth another try."""

    __slots__ = ("error", "pauses", "until")

    def __init__(self, pauses: Iterator[float]) -> None:
        self.pauses = pauses
        self.until = 0.0
        self.error = ""


class Pool:
    """Calls servers by their address. Use it with `async with`, or `close` it.

    Concurrent callers share a connection and the making of it. A server that could not be reached
    is left alone for a growing pause, in which calls to it fail at once: whoever has another
    server asks that one.

    Args:
        answer: answers what servers ask us; without it they get "not supported".
        limits: what one connection may cost.
        entropy: spreads the pauses of many clients.
        serialization: of our requests, `JSON` or `BINARY`.
        signer: signs our requests, for servers with access control.
    """

    def __init__(
        self,
        *,
        answer: Answer | None = None,
        limits: Limits | None = None,
        entropy: Entropy | None = None,
        serialization: int = JSON,
        signer: Signer | None = None,
    ) -> None:
        self._answer = answer or _refuse
        self._limits = limits or Limits()
        self._entropy = entropy
        self._serialization = serialization
        self._signer = signer
        self._peers: dict[str, Peer] = {}
        self._connecting: dict[str, asyncio.Task[Peer]] = {}
        self._outages: dict[str, _Outage] = {}
        self._is_closed = False

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def call(
        self, address: str, header: Header, *, body: Buffer = b"", deadline: Deadline
    ) -> Command:
        """Sends a request and returns the reply as it came, whatever its code.

        Raises:
            ConnectFailed: the server cannot be reached.
            ConnectionLost: the connection broke. The request may have been carried out.
            CallTimeout: no reply in time. The request may have been carried out.
            ClosedError: the pool was closed.
        """
        peer = self._peers.get(address)
        if peer is None or peer.is_closed:
            peer = await self.peer(address, deadline)
        return await peer.call(header, body=body, deadline=deadline)

    async def ask(
        self, address: str, header: Header, *, body: Buffer = b"", deadline: Deadline
    ) -> Command:
        """As `call`, for whoever expects success.

        Raises:
            ReplyError: the server's answer has another code than 0; one class per code.
            TransportError, ClosedError: as `call`.
        """
        return (await self.call(address, header, body=body, deadline=deadline)).checked()

    async def send_oneway(
        self, address: str, header: Header, *, body: Buffer = b"", deadline: Deadline
    ) -> None:
        """Sends a request that nobody answers; returns when it is on its way.

        Raises:
            ConnectFailed, ConnectionLost, ClosedError: as `call`.
            CallTimeout: the server takes nothing more.
        """
        peer = await self.peer(address, deadline)
        await peer.wait_for_room(deadline)
        peer.send_oneway(header, body=body)

    async def peer(self, address: str, deadline: Deadline) -> Peer:
        """The connection to a server, made if it is not there.

        Raises:
            ConnectFailed: the server cannot be reached.
            CallTimeout: the deadline came first; the making goes on for others.
            ClosedError: the pool was closed.
        """
        peer = self._peers.get(address)
        if peer is not None and not peer.is_closed:
            return peer
        if self._is_closed:
            raise ClosedError("the connections are closed")
        task = self._connecting.get(address)
        if task is None:
            self._raise_during_pause(address)
            task = asyncio.ensure_future(self._connect(address))
            task.add_done_callback(_retrieve)
            self._connecting[address] = task
        await asyncio.wait([task], timeout=None if deadline.is_never else deadline.left())
        if not task.done():
            raise CallTimeout(f"{address} could not be reached in time")
        if task.cancelled():
            raise ClosedError("the connections are closed")
        return task.result()

    def connected(self, address: str) -> Peer | None:
        """The connection to a server, if it stands."""
        peer = self._peers.get(address)
        return None if peer is None or peer.is_closed else peer

    def is_connected(self, address: str) -> bool:
        """Whether a connection to that server stands."""
        return self.connected(address) is not None

    async def close(self) -> None:
        """Ends all connections; calls that wait get `ConnectionLost`."""
        self._is_closed = True
        connecting = list(self._connecting.values())
        for task in connecting:
            task.cancel()
        peers = list(self._peers.values())
        for peer in peers:
            peer.close()
        deadline = Deadline.after(_CLOSE_SECONDS)
        for peer in peers:
            await peer.wait_closed(deadline)
        await asyncio.gather(*connecting, return_exceptions=True)

    async def _connect(self, address: str) -> Peer:
        try:
            peer = await self._open(address)
        except OSError as error:  # TimeoutError is one too
            raise self._failed(address, str(error) or "it does not answer") from error
        except ConnectFailed as error:
            raise self._failed(address, str(error)) from error
        finally:
            self._connecting.pop(address, None)
        self._outages.pop(address, None)
        self._peers[address] = peer
        peer.on_close(lambda lost: self._forget(address, lost))
        return peer

    async def _open(self, address: str) -> Peer:
        loop = asyncio.get_running_loop()
        host, port = addresses.split(address)
        async with asyncio.timeout(self._limits.connect_seconds):
            _, peer = await loop.create_connection(self._new_peer, host, port)
        return peer

    def _new_peer(self) -> Peer:
        return Peer(
            one_by_one(self._answer),
            self._limits,
            is_client=False,
            serialization=self._serialization,
            signer=self._signer,
        )

    def _forget(self, address: str, peer: Peer) -> None:
        if self._peers.get(address) is peer:
            del self._peers[address]

    def _failed(self, address: str, why: str) -> ConnectFailed:
        outage = self._outages.get(address)
        if outage is None:
            outage = _Outage(pauses(_PAUSE_FIRST, _PAUSE_LONGEST, entropy=self._entropy))
            self._outages[address] = outage
            logger.info("%s cannot be reached: %s", address, why)
        outage.error = f"{address} cannot be reached: {why}"
        outage.until = asyncio.get_running_loop().time() + next(outage.pauses)
        return ConnectFailed(outage.error)

    def _raise_during_pause(self, address: str) -> None:
        outage = self._outages.get(address)
        if outage is not None and asyncio.get_running_loop().time() < outage.until:
            raise ConnectFailed(outage.error)


def _refuse(command: Command, peer: Peer) -> Reply:
    return Reply(code=3, remark=f"request type {command.code} not supported")


def _retrieve(task: asyncio.Task[Peer]) -> None:
    """Looks at the outcome, in case every caller has given up: then it is no news."""
    if not task.cancelled():
        task.exception()
