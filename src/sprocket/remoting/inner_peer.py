"""A client in the same process: its requests, and those to it, are calls of functions.

A broker knows its members by their connections. One that is served in the same process has none,
so this stands for it.
"""

from __future__ import annotations

from collections.abc import Callable

from sprocket.base.deadline import Deadline
from sprocket.protocol.codes import VERSION
from sprocket.protocol.command import ONEWAY, RESPONSE, Buffer, Command, Header, Reply
from sprocket.remoting.endpoints import EventualResponse
from sprocket.remoting.transport import Peer


class InnerPeer(Peer):
    """The other side of a connection that is none.

    Args:
        address: `host:port` of the client behind it.
        receive: answers requests to it.

    Attributes:
        language, version: the client's, as brokers show them; an empty language for ours.
    """

    # All of `Peer` that brokers use is here, so nothing of a real connection is made.
    def __init__(
        self,
        address: str,
        receive: Callable[[Command], EventualResponse] | None = None,
        *,
        language: str = "",
        version: int = VERSION,
    ) -> None:
        self.address = address
        self.language = language
        self.version = version
        self.has_spoken = True
        self._receive = receive
        self._is_gone = False
        self._when_gone: list[Callable[[Peer], None]] = []

    async def call(
        self, header: Header, *, body: Buffer = b"", deadline: Deadline, is_held: bool = False
    ) -> Command:
        """Has the client answer a request."""
        outcome = self._received(Command.request(header, body=body))
        if not isinstance(outcome, Reply | bytes) and outcome is not None:
            outcome = await outcome
        return command_of(outcome if isinstance(outcome, Reply) else Reply(code=1))

    def send_oneway(self, header: Header, *, body: Buffer = b"") -> None:
        """Gives the client a request that has no answer."""
        command = Command.request(header, body=body)
        command.flag = ONEWAY
        self._received(command)

    def _received(self, command: Command) -> EventualResponse:
        if self._receive is None or self._is_gone:
            return Reply(code=1, remark="the client takes no requests")
        return self._receive(command)

    @property
    def is_closed(self) -> bool:
        """Whether the client is gone."""
        return self._is_gone

    @property
    def is_full(self) -> bool:
        """Whether the client reads too little: never, since it is called."""
        return False

    def on_close(self, callback: Callable[[Peer], None]) -> None:
        """Calls `callback(peer)` once the client is gone; at once if it is."""
        if self._is_gone:
            callback(self)
        else:
            self._when_gone.append(callback)

    def close(self) -> None:
        """Says that the client is gone."""
        self._is_gone = True
        callbacks, self._when_gone = self._when_gone, []
        for callback in callbacks:
            callback(self)

    abort = close


def command_of(reply: Reply) -> Command:
    """A reply as its receiver sees it."""
    body = reply.body
    if not isinstance(body, bytes | bytearray | memoryview):
        body = b"".join(body)
    return Command(reply.code, flag=RESPONSE, remark=reply.remark, body=body, header=reply.header)
