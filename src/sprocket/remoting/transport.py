"""One connection: `protocol.connection` with a socket around it.

It promises: the requests of one read are answered together and in one write; a request that can be
answered at once never becomes a task; nothing that the peer sends ends anything but its own
connection; what the peer does not read costs bounded memory; however much one peer asks at once,
the others have their turn.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import cast

from sprocket.base.deadline import Deadline
from sprocket.base.errors import CallTimeout, ConnectionLost, RemoteProtocolError
from sprocket.protocol.command import JSON, RESPONSE, Buffer, Command, Header, Reply
from sprocket.protocol.connection import Connection
from sprocket.protocol.frame import encode_request
from sprocket.protocol.signing import Signer
from sprocket.remoting import address
from sprocket.remoting.answers import AnswerAll, Answered, apology, frame_of
from sprocket.remoting.calls import Calls
from sprocket.remoting.limits import Limits

logger = logging.getLogger(__name__)

#: So many requests are answered before a look at the clock,
_TOGETHER_MAX = 64
#: and for so long before others have their turn of the loop, in seconds.
_TURN_SECONDS = 0.002
#: Up to here joining what is written is cheaper than handing it over in parts.
_JOINED_BYTES_MAX = 1 << 15
#: Parts smaller than this on average are joined however many they are.
_PART_BYTES_MIN = 1 << 12


class Peer(asyncio.Protocol):
    """The other side of one connection.

    Args:
        answer_all: answers its requests.
        limits: what it may cost.
        is_client: whether it called us. Then its requests wait while it does not read replies.
        serialization: how our own requests are written; replies go out as their request came.
        signer: signs our own requests.

    Attributes:
        address: `host:port` of the peer.
        has_spoken: set whenever something comes; for whoever looks for silent ones to clear.
    """

    def __init__(
        self,
        answer_all: AnswerAll,
        limits: Limits,
        *,
        is_client: bool,
        serialization: int = JSON,
        signer: Signer | None = None,
    ) -> None:
        self._answer_all = answer_all
        self._limits = limits
        self._is_client = is_client
        self._serialization = serialization
        self._signer = signer
        self._incoming = Connection(limits.frame_bytes_max)
        self._loop = asyncio.get_running_loop()
        self._closed: asyncio.Future[None] = self._loop.create_future()
        self._on_close: list[Callable[[Peer], None]] = []
        #: Frames to be written before this turn of the loop ends.
        self._outgoing: list[Buffer] = []
        self._is_flush_due = False
        self._calls = Calls(self._loop, on_overdue=None if is_client else self._overdue)
        #: The peer's requests that wait.
        self._tasks: set[asyncio.Task[None]] = set()
        #: Those that came and were not looked at yet, since others have their turn.
        self._put_off: Sequence[Command] = ()
        self._is_full = False
        self._is_reading = True
        self._is_draining = False
        self._room = asyncio.Event()
        self.address = ""
        self.has_spoken = True
        #: When calls were overdue first since it has spoken.
        self._silent_since = 0.0

    # What the loop tells.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The connection is there."""
        self._transport = cast(asyncio.Transport, transport)
        self._transport.set_write_buffer_limits(high=self._limits.unwritten_bytes_max)
        self.address = address.of_socket(transport.get_extra_info("peername"))
        self._calls.connected(self.address)

    def data_received(self, data: bytes) -> None:
        """Some bytes came: from part of a frame to dozens of them."""
        self.has_spoken = True
        incoming = self._incoming
        try:
            commands = incoming.receive(data)
        except RemoteProtocolError:
            commands = []
        requests = []
        for command in commands:
            if command.flag & RESPONSE:
                self._settle(command)
            else:
                requests.append(command)
        if self._put_off:
            self._put_off = [*self._put_off, *requests]
        elif requests:
            self._take(requests)
        if self._outgoing:
            self._flush()
        if incoming.fault is not None and not self.is_closed:
            logger.info("%s is let go, it broke the protocol: %s", self.address, incoming.fault)
            self._catch_up()
            self._transport.close()

    def connection_lost(self, error: Exception | None) -> None:
        """The connection is gone: calls fail, its requests are cancelled."""
        self._closed.set_result(None)
        self._calls.fail(ConnectionLost(f"the connection to {self.address} broke"))
        for task in tuple(self._tasks):
            task.cancel()
        self._put_off = ()
        self._outgoing.clear()
        self._room.set()
        callbacks, self._on_close = self._on_close, []
        for callback in callbacks:
            callback(self)

    def pause_writing(self) -> None:
        """The peer does not read what we wrote."""
        self._is_full = True
        self._room.clear()
        self._read_or_wait()

    def resume_writing(self) -> None:
        """The peer has read on."""
        self._is_full = False
        self._room.set()
        self._read_or_wait()

    # Its requests.

    def _take(self, requests: Sequence[Command]) -> None:
        """Answers requests in their order; what takes too long goes on in the next turn."""
        turn_ends = self._loop.time() + _TURN_SECONDS
        for at in range(0, len(requests), _TOGETHER_MAX):
            if at and self._loop.time() >= turn_ends:
                self._put_off = requests[at:]
                self._read_or_wait()
                self._loop.call_soon(self._go_on)
                return
            self._answer(requests[at : at + _TOGETHER_MAX])

    def _go_on(self) -> None:
        requests, self._put_off = self._put_off, ()
        self._take(requests)
        self._flush()
        self._read_or_wait()

    def _catch_up(self) -> None:
        """Answers at once what was put off: the connection is about to be closed."""
        requests, self._put_off = self._put_off, ()
        self._answer(requests)
        self._flush()

    def _answer(self, requests: Sequence[Command]) -> None:
        try:
            outcomes = self._answer_all(requests, self)
        except Exception as error:  # what cannot be answered must not cost the connection
            outcomes = [apology(command, error) for command in requests]
        put = self._outgoing.append
        for command, outcome in zip(requests, outcomes, strict=True):
            if type(outcome) is bytes:
                put(outcome)
            elif type(outcome) is Reply:
                self._outgoing += frame_of(command, outcome)
            elif outcome is not None:
                self._start(command, outcome)  # type: ignore[arg-type]

    def _start(self, command: Command, awaitable: Awaitable[Answered]) -> None:
        task = self._loop.create_task(self._finish(command, awaitable))
        self._tasks.add(task)
        task.add_done_callback(self._finished)
        if len(self._tasks) >= self._limits.tasks_max:
            self._read_or_wait()

    async def _finish(self, command: Command, awaitable: Awaitable[Answered]) -> None:
        try:
            answered = await awaitable
        except Exception as error:  # root of a task
            answered = apology(command, error)
        while self._is_full and not self._closed.done():
            await self._room.wait()
        if isinstance(answered, Reply):
            self._send(frame_of(command, answered))
        elif answered is not None:
            self._send([answered])

    def _finished(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not self._is_reading:
            self._read_or_wait()

    def _read_or_wait(self) -> None:
        """Reads nothing more while too much is unanswered or unread, and goes on after."""
        is_unread = self._is_full and self._is_client
        is_behind = self._put_off or len(self._tasks) >= self._limits.tasks_max
        has_room = not is_unread and not is_behind
        if has_room == self._is_reading or self._is_draining or self.is_closed:
            return
        self._is_reading = has_room
        if has_room:
            self._transport.resume_reading()
        else:
            self._transport.pause_reading()

    # Our requests.

    async def call(self, header: Header, *, body: Buffer = b"", deadline: Deadline) -> Command:
        """Sends a request and returns the reply as it came, whatever its code.

        Raises:
            CallTimeout: no reply in time. The request may have been carried out.
            ConnectionLost: the connection broke. The request may have been carried out.
            LocalProtocolError: the request cannot be written.
        """
        calls = self._calls
        if self._is_full or len(calls) >= self._limits.calls_max or self._closed.done():
            await self.wait_for_room(deadline)
        if deadline.at <= self._loop.time():
            raise CallTimeout(f"no time left to ask {self.address}")
        number = calls.next_number()
        frame = encode_request(
            header,
            number,
            body=body,
            serialization=self._serialization,
            signer=self._signer,
        )
        future = calls.add(number, deadline.at)
        self._send(frame)
        try:
            return await future
        except asyncio.CancelledError:
            calls.forget(number)
            raise

    def number_of_call(self) -> int | None:
        """A number for `call_written`; None if a request had to wait, for which there is `call`.

        Only for a connection that stands.
        """
        calls = self._calls
        if self._is_full or len(calls) >= self._limits.calls_max:
            return None
        return calls.next_number()

    async def call_written(
        self, number: int, head: bytes, body: Buffer, deadline: Deadline
    ) -> Command:
        """As `call`, for whoever has written the request already.

        Args:
            number: what `number_of_call` has just given, as it stands in the head.
            head: all of the frame before the body.
        """
        future = self._calls.add(number, deadline.at)
        self._send([head, body])
        try:
            return await future
        except asyncio.CancelledError:
            self._calls.forget(number)
            raise

    def send_oneway(self, header: Header, *, body: Buffer = b"") -> None:
        """Sends a request that nobody answers. It is dropped if the peer reads nothing.

        Raises:
            LocalProtocolError: the request cannot be written.
        """
        if self._is_full or self.is_closed:
            return
        self._send(
            encode_request(
                header,
                self._calls.next_number(),
                body=body,
                is_oneway=True,
                serialization=self._serialization,
                signer=self._signer,
            )
        )

    def _settle(self, reply: Command) -> None:
        """Gives a reply to whoever waits for it; a late one finds nobody."""
        if self._calls.settle(reply) and not self._is_full:
            self._room.set()

    def _overdue(self) -> None:
        """Calls got no reply in time; if nothing else has come for long, the way is dead."""
        if self.has_spoken:
            self.has_spoken, self._silent_since = False, self._loop.time()
        elif self._loop.time() - self._silent_since >= self._limits.silent_seconds:
            logger.info("%s has been silent for too long and is let go", self.address)
            self.abort()

    async def wait_for_room(self, deadline: Deadline) -> None:
        """Returns when one more request may be sent.

        Raises:
            CallTimeout: the peer did not read, or did not answer, in time.
            ConnectionLost: the connection is closed.
        """
        while not self._closed.done():
            if not self._is_full and len(self._calls) < self._limits.calls_max:
                return
            self._room.clear()
            try:
                async with asyncio.timeout_at(None if deadline.is_never else deadline.at):
                    await self._room.wait()
            except TimeoutError:
                raise CallTimeout(f"{self.address} takes no more requests") from None
        raise ConnectionLost(f"the connection to {self.address} is closed")

    # Writing and closing.

    def _send(self, frame: list[Buffer]) -> None:
        """Writes a frame together with the others of this turn of the loop."""
        self._outgoing += frame
        if not self._is_flush_due:
            self._is_flush_due = True
            self._loop.call_soon(self._flush)

    def _flush(self) -> None:
        self._is_flush_due = False
        frames, self._outgoing = self._outgoing, []
        if not frames or self._closed.done():
            return
        total = sum(map(len, frames))
        if total <= _JOINED_BYTES_MAX or total < len(frames) * _PART_BYTES_MIN:
            self._transport.write(b"".join(frames))
        else:
            self._transport.writelines(frames)

    @property
    def is_closed(self) -> bool:
        """Whether it is closed or closing."""
        return self._closed.done() or self._transport.is_closing()

    @property
    def is_busy(self) -> bool:
        """Whether a request of either side waits for its answer."""
        return bool(self._tasks or self._put_off) or len(self._calls) > 0

    def on_close(self, callback: Callable[[Peer], None]) -> None:
        """Has `callback(peer)` called once the connection is gone; at once if it is."""
        if self._closed.done():
            callback(self)
        else:
            self._on_close.append(callback)

    def close(self) -> None:
        """Writes what is to be written, then closes."""
        self._flush()
        self._transport.close()

    def abort(self) -> None:
        """Closes at once; what was not written is lost."""
        self._transport.abort()

    async def drain(self, deadline: Deadline) -> None:
        """Reads nothing more, answers what is in flight, closes; aborts at the deadline."""
        self._is_draining = True
        if not self.is_closed:
            self._transport.pause_reading()
        self._catch_up()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=deadline.left())
        self.close()
        await self.wait_closed(deadline)

    async def wait_closed(self, deadline: Deadline) -> None:
        """Returns when the connection is gone; at the deadline it is aborted."""
        await asyncio.wait([self._closed], timeout=deadline.left())
        if not self._closed.done():
            self.abort()
            await asyncio.wait([self._closed])
