"""A pool of connections to servers, one for each address, made on first use."""

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
from sprocket.protocol.codes import ResponseCode
from sprocket.protocol.command import JSON, Buffer, Command, Header, Reply
from sprocket.protocol.signing import Signer
from sprocket.remoting import address as addresses
from sprocket.remoting.endpoints import Endpoint, one_by_one
from sprocket.remoting.limits import ConnectionLimits
from sprocket.remoting.tls.dialling import TlsDialler
from sprocket.remoting.tls.settings import ClientTls
from sprocket.remoting.transport import Peer
from sprocket.remoting.turns import Turns
from sprocket.remoting.unfinished import UnfinishedFrames

logger = logging.getLogger(__name__)

#: The first and the longest pause before a server that could not be reached is tried again.
_PAUSE_FIRST = 0.1
_PAUSE_LONGEST = 2.0
_CLOSE_SECONDS = 1.0


class _Outage:
    """A server that could not be reached, and the loop time of the next attempt."""

    __slots__ = ("error", "pauses", "until")

    def __init__(self, pauses: Iterator[float]) -> None:
        self.pauses = pauses
        self.until = 0.0
        self.error = ""


class Pool:
    """Sends requests to servers by their address. Use it with `async with`, or `close` it.

    Concurrent callers share one connection, and one attempt to make it. After a failed attempt,
    calls to that server fail at once for a growing pause, so that a caller with another server
    can use that one without a delay.

    Args:
        endpoint: handles requests from servers; without it the reply is "not supported".
        limits: the limits of each connection.
        entropy: randomises the pauses, so that many clients do not all try at once.
        serialization: of our requests, `JSON` or `BINARY`.
        signer: signs our requests, for servers with access control.
        tls: how connections speak TLS; None for plain ones.
    """

    def __init__(
        self,
        *,
        endpoint: Endpoint | None = None,
        limits: ConnectionLimits | None = None,
        entropy: Entropy | None = None,
        serialization: int = JSON,
        signer: Signer | None = None,
        tls: ClientTls | None = None,
    ) -> None:
        self._dialler = None if tls is None else TlsDialler(tls)
        self._answer = endpoint or _refuse
        self._limits = limits or ConnectionLimits()
        self._entropy = entropy
        self._serialization = serialization
        self._signer = signer
        self._peers: dict[str, Peer] = {}
        self._connecting: dict[str, asyncio.Task[Peer]] = {}
        self._outages: dict[str, _Outage] = {}
        self._turns: Turns | None = None
        self._unfinished = UnfinishedFrames(self._limits.unfinished_bytes_allowed)
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
        self,
        address: str,
        header: Header,
        *,
        body: Buffer = b"",
        deadline: Deadline,
        is_held: bool = False,
    ) -> Command:
        """Sends a request and returns the reply, whatever its code.

        Args:
            is_held: whether the server may hold the reply back, as that to a pull.

        Raises:
            ConnectFailed: the server cannot be reached.
            ConnectionLost: the connection broke. The request may have been carried out.
            CallTimeout: no reply in time. The request may have been carried out.
            ClosedError: the pool is closed.
            ConfigError: a file of the settings of TLS cannot be used.
        """
        # The fast path: with an open connection nothing is awaited here. See `peer` for the rest.
        peer = self._peers.get(address)
        if peer is None or peer.is_closed:
            peer = await self.peer(address, deadline)
        return await peer.call(header, body=body, deadline=deadline, is_held=is_held)

    async def ask(
        self, address: str, header: Header, *, body: Buffer = b"", deadline: Deadline
    ) -> Command:
        """The same as `call`, but raises an error for a reply that is no success.

        Raises:
            ReplyError: the reply has another code than 0; see `ReplyError.of`.
            TransportError, ClosedError: as in `call`.
        """
        return (await self.call(address, header, body=body, deadline=deadline)).checked()

    async def send_oneway(
        self, address: str, header: Header, *, body: Buffer = b"", deadline: Deadline
    ) -> None:
        """Sends a request without a reply; returns once it is queued for writing.

        Raises:
            ConnectFailed, ConnectionLost, ClosedError: as in `call`.
            CallTimeout: the server does not read in time.
        """
        peer = await self.peer(address, deadline)
        await peer.wait_for_capacity(deadline)
        peer.send_oneway(header, body=body)

    async def peer(self, address: str, deadline: Deadline) -> Peer:
        """The connection to a server; it is made if there is none.

        Raises:
            ConnectFailed: the server cannot be reached.
            CallTimeout: the deadline passes first; the attempt continues for other callers.
            ClosedError: the pool is closed.
        """
        # 1. An open connection serves all callers. One that has just broken may still be in the
        #    table until its `on_close` runs, so it is checked, not only found.
        peer = self._peers.get(address)
        if peer is not None and not peer.is_closed:
            return peer
        if self._is_closed:
            raise ClosedError("the connections are closed")
        # 2. Without one, the first caller starts an attempt and later callers join it. The attempt
        #    is a task of its own, since it must outlive the caller that started it.
        task = self._connecting.get(address)
        if task is None:
            self._raise_during_pause(address)
            task = asyncio.ensure_future(self._connect(address))
            task.add_done_callback(_retrieve)
            self._connecting[address] = task
        # 3. Each caller waits with its own deadline. `wait`, unlike `wait_for`, does not cancel the
        #    task at a timeout or when the caller is cancelled.
        await asyncio.wait([task], timeout=None if deadline.is_never else deadline.left())
        if not task.done():
            raise CallTimeout(f"{address} could not be reached in time")
        if task.cancelled():
            raise ClosedError("the connections are closed")
        return task.result()

    def connected(self, address: str) -> Peer | None:
        """The open connection to a server, or None."""
        peer = self._peers.get(address)
        return None if peer is None or peer.is_closed else peer

    def give_up(self, address: str) -> Peer | None:
        """Takes the open connection to a server out of the pool, so that the next call makes
        another one. Calls that wait for replies on it go on; the caller closes it."""
        return self._peers.pop(address, None)

    def is_connected(self, address: str) -> bool:
        """Whether a connection to that server is open."""
        return self.connected(address) is not None

    async def close(self) -> None:
        """Closes all connections; waiting calls raise `ConnectionLost`."""
        # First new attempts are refused, then the running ones are cancelled, so that none of them
        # adds a connection later that nobody would close.
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
        # Whatever the result, the attempt leaves the table, so that the next caller starts a new
        # one: after a failure only once the pause is over. A success ends the pauses.
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
        seconds = self._limits.connect_seconds
        async with asyncio.timeout(seconds):
            if self._dialler is not None:
                return await self._dialler.connect(self._new_peer, host, port, seconds=seconds)
            _, peer = await loop.create_connection(self._new_peer, host, port)
        return peer

    def _new_peer(self) -> Peer:
        return Peer(
            one_by_one(self._answer),
            self._limits,
            is_client=False,
            turns=self._turns or self._take_turns(),
            unfinished=self._unfinished,
            serialization=self._serialization,
            signer=self._signer,
        )

    def _take_turns(self) -> Turns:
        self._turns = Turns(asyncio.get_running_loop())
        return self._turns

    def _forget(self, address: str, peer: Peer) -> None:
        # A new connection may have taken the place of the lost one already.
        if self._peers.get(address) is peer:
            del self._peers[address]

    def _failed(self, address: str, why: str) -> ConnectFailed:
        # Only the first failure of an outage is logged; the pauses grow until a success.
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
    return Reply(
        code=ResponseCode.REQUEST_CODE_NOT_SUPPORTED,
        remark=f"request type {command.code} not supported",
    )


def _retrieve(task: asyncio.Task[Peer]) -> None:
    """Reads the task's error, or asyncio logs it as never retrieved if all callers have left."""
    if not task.cancelled():
        task.exception()
