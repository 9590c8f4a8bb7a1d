"""The calls of one connection, as the methods of a service see them."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING

from sprocket.base.cancelling import cancel_begun
from sprocket.base.deadline import Deadline
from sprocket.proxy.http2.call_form import CallForm
from sprocket.proxy.http2.messages_in import MessageReader
from sprocket.proxy.http2.status import GrpcError, GrpcStatus
from sprocket.proxy.http2.stream import Http2Stream

if TYPE_CHECKING:
    from sprocket.proxy.http2.peer_calls import PeerCalls

#: `drained` waits while more than this is queued on a stream, bytes.
QUEUED_BYTES_MAX = 1 << 18
NEVER = Deadline.never()


class GrpcCall:
    """One call.

    Its task is cancelled when the client cancels the call, when its connection breaks and at its
    deadline.

    Attributes:
        method: the path: `/package.Service/Method`.
        metadata: the headers of the request, pseudo-headers too, by their names in lower case.
        deadline: when the client gives up.
        is_over: whether nothing more can be sent: it has ended, or the client is gone.
    """

    def __init__(
        self,
        calls: PeerCalls,
        stream: Http2Stream,
        form: CallForm,
        deadline: Deadline,
    ) -> None:
        self._calls = calls
        self.stream = stream
        self.form = form
        self.method = form.path
        self.metadata = form.metadata
        self.deadline = deadline
        self.is_over = False
        self.reader: MessageReader | None = None
        self.requests: deque[bytes] = deque()
        self.unread_bytes = 0
        #: The bytes of an incomplete message, as they are counted for the connection.
        self.kept_bytes = 0
        self.task: asyncio.Task[None] | None = None
        self.timer: asyncio.TimerHandle | None = None
        self.has_headers = False
        self._changed: asyncio.Event | None = None

    @property
    def address(self) -> str:
        """`host:port` of the client."""
        return self._calls.address()

    async def receive(self) -> bytes | None:
        """The next request of a streaming method; None after the last one.

        Only one at a time may wait here.

        Raises:
            GrpcError: the message is compressed and cannot be opened; the method lets it pass.
        """
        while not self.requests:
            if self.stream.is_peer_done or self.is_over:
                return None
            await self._change()
        message = self.requests.popleft()
        self._calls.was_read(self)
        return message if self.reader is None else self.reader.content(message)

    def send(self, message: bytes) -> None:
        """Sends a message of a streaming method; it is dropped once the call is over.

        Whoever sends many awaits `drained` between them: what the client does not read is kept.
        """
        if not self.is_over:
            self._calls.send_message(self, message)

    async def drained(self) -> None:
        """Returns when the client has taken most of what was sent, or is gone."""
        while self.stream.queued_bytes > QUEUED_BYTES_MAX and not self.is_over:
            await self._change()

    async def _change(self) -> None:
        if self._changed is None:
            self._changed = asyncio.Event()
        self._changed.clear()
        await self._changed.wait()

    def changed(self) -> None:
        """Wakes those that wait for the client."""
        if self._changed is not None:
            self._changed.set()

    def end(self) -> None:
        """Ends the call; a task that is still in it is cancelled."""
        self.is_over = True
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None
        if self.task is not None and self.task is not asyncio.current_task():
            cancel_begun(self.task)
        self.requests.clear()
        self.changed()


def ending_of(error: BaseException) -> tuple[GrpcStatus, str]:
    """Status and text for an error that came out of a method."""
    if isinstance(error, GrpcError):
        return error.status, error.text
    return GrpcStatus.UNKNOWN, f"internal error: {type(error).__name__}"
