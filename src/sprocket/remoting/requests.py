"""The requests of one peer: handled in their order, in turns, within the limits."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING

from sprocket.base.cancelling import cancel_begun, close_unbegun
from sprocket.protocol.command import Command, Reply
from sprocket.remoting.endpoints import BatchEndpoint, Response, Shortcut, error_reply, frame_of
from sprocket.remoting.turns import RUN, Account, Turns
from sprocket.remoting.writer import FrameWriter

if TYPE_CHECKING:
    from sprocket.remoting.transport import Peer

logger = logging.getLogger(__name__)

#: Beside modest peers, what the others send waits for its turn unless it is as short as this.
_SHORT_READ_BYTES = 1 << 13
#: In a turn so many bytes are decoded in one go, or half as many more if that is the rest.
_PIECE_BYTES = 1 << 15
#: A peer that waits for its turn is read up to so many bytes: to pause it and go on costs two calls
#: of the system, and most wait for replies anyway.
_HELD_BYTES_MAX = 1 << 16
#: A request with a large body counts as one more for so many bytes.
_BYTES_A_REQUEST = 1 << 13
#: The shortcut says how many bytes it took; a request that it takes has about so many.
_BYTES_A_SHORT_REQUEST = 512


class PeerRequests:
    """Handles the requests of one connection.

    Args:
        peer: is passed to the endpoint.
        endpoint: handles the requests.
        writer: takes the replies.
        turns: shares the loop between this peer and the others.
        tasks_max: with this many requests in progress it has enough.
        unread_bytes_max: with more bytes of finished replies that wait it is closed.
        waits_for_reader: whether requests wait while the peer does not read the replies.
        on_change: is called when `has_enough` may have changed.
        read: handles received bytes in this peer's turn, and calls `receive` with the requests.
        shortcut: handles the first requests of a read, if it can.

    Attributes:
        tasks: the requests in progress, which wait for something.
        account: see `turns.Waiting`.
    """

    __slots__ = (
        "_endpoint", "_held", "_held_bytes", "_held_from", "_is_in_line", "_loop", "_on_change",
        "_peer", "_put_off", "_read", "_shortcut", "_tasks_max", "_turn_until", "_turns",
        "_unread_bytes", "_unread_bytes_max", "_waits_for_reader", "_when_handled", "_writer",
        "account", "tasks",
    )  # fmt: skip

    def __init__(
        self,
        peer: Peer,
        endpoint: BatchEndpoint,
        writer: FrameWriter,
        turns: Turns,
        *,
        tasks_max: int,
        unread_bytes_max: int,
        waits_for_reader: bool,
        on_change: Callable[[], None],
        read: Callable[[bytes], None],
        shortcut: Shortcut | None = None,
    ) -> None:
        self._peer = peer
        self._endpoint = endpoint
        self._writer = writer
        self._turns = turns
        self._tasks_max = tasks_max
        self._unread_bytes = 0
        self._unread_bytes_max = unread_bytes_max
        self._waits_for_reader = waits_for_reader
        self._shortcut = shortcut
        self._on_change = on_change
        self._read = read
        self._loop = asyncio.get_running_loop()
        #: Requests that wait for a turn of this peer, and whether it is in the line for one.
        self._put_off: Sequence[Command] = ()
        self._is_in_line = False
        #: What was read and waits for a turn, behind the requests that do; and its size.
        self._held: deque[bytes] = deque()
        self._held_bytes = 0
        #: Where the part of the first of them begins that was not handled yet.
        self._held_from = 0
        #: Until when the turn of this peer goes on; None at other times.
        self._turn_until: float | None = None
        self.account = Account()
        self._when_handled: Callable[[], None] | None = None
        self.tasks: set[asyncio.Task[None]] = set()

    @property
    def is_busy(self) -> bool:
        """Whether a request waits for its reply."""
        return bool(self.tasks or self._put_off or self._held)

    @property
    def has_enough(self) -> bool:
        """Whether no more requests should be read for now."""
        if self._held:
            is_behind = self._held_bytes >= _HELD_BYTES_MAX
        else:
            is_behind = bool(self._put_off) or self._is_in_line
        return is_behind or len(self.tasks) >= self._tasks_max or self._is_unread

    @property
    def _is_unread(self) -> bool:
        """Whether requests wait until the peer reads the replies to earlier ones."""
        return self._writer.is_full and self._waits_for_reader

    # Asked for each read, so the cheap questions come first.
    def holds(self, data: bytes) -> bool:
        """Keeps what was read for this peer's turn, if it is the turn of others. Then it is not
        even decoded, which takes a third of the time of a send."""
        turns = self._turns
        if not (turns.is_full or self._held or len(data) > _SHORT_READ_BYTES):
            return False
        if self._turn_until is not None or not self._waits_for_reader:
            return False
        if not self._held and (
            turns.is_modest(self) or not (turns.is_full or turns.is_short(self._loop.time()))
        ):
            return False
        self._held.append(data)
        self._held_bytes += len(data)
        self.go_on()
        self._on_change()
        return True

    def receive(self, requests: Sequence[Command], size: int = 0) -> None:
        """Handles requests that were read now, or puts them off if it is not this peer's turn.

        Args:
            size: the bytes of the read.
        """
        if self._turn_until is not None:
            self._handle(requests, self._turn_until, size)
        elif self._put_off:
            self._put_off = [*self._put_off, *requests]
            self._on_change()
        elif self._turns.is_over or self._is_unread or self._turns.is_behind(self):
            self._put_off = requests
            self.go_on()
        else:
            began = self._loop.time()
            turns = self._turns
            seconds = self._handle(requests, turns.turn_until(began), size) - began
            if seconds > 0:
                turns.spend(seconds)
                turns.charge(self, seconds)
            if self._put_off:
                self.go_on()

    def take_first(self, data: bytes) -> bytes:
        """Has the shortcut handle the first requests of a read that begins with a frame, if it is
        this peer's turn. Returns what it leaves."""
        turns = self._turns
        if self._shortcut is None:
            return data
        if self._turn_until is None and (self.has_enough or turns.is_over or turns.is_behind(self)):
            return data
        began = self._loop.time()
        taken = self._shortcut(data, self._peer)
        if taken is None:
            return data
        used, replies = taken
        if replies:
            self._writer.frames.append(replies)
        now = self._loop.time()
        turns.count(self, max(1, used // _BYTES_A_SHORT_REQUEST), now)
        turns.spend(now - began)
        turns.charge(self, now - began)
        return data[used:]

    def count_decoding(self, seconds: float) -> None:
        """Counts the time that decoding a read took. If the iteration has no time left, nothing
        more is read before this peer's turn, even if nothing of the read needs a reply."""
        self._turns.spend(seconds)
        if self._turns.is_over and not self._is_in_line and not self._put_off:
            self._is_in_line = True
            self._turns.join(self)
            self._on_change()

    def go_on(self) -> None:
        """Joins the line for a turn if there are requests that can be handled."""
        if (self._put_off or self._held) and not self._is_in_line and not self._is_unread:
            self._is_in_line = True
            self._turns.join(self)

    def take_turn(self, until: float) -> bool:
        """See `turns.Waiting`."""
        if not self._is_unread:
            if self._put_off:
                self._handle(self._put_off, until)
            elif self._held:
                self._turn_until = until
                try:
                    self._read(self._next_piece())
                finally:
                    self._turn_until = None
            self._writer.flush()
        has_more = bool(self._put_off or self._held)
        self._is_in_line = has_more and not self._is_unread
        if not self._put_off:
            self._on_change()
        if not has_more and self._when_handled is not None:
            then, self._when_handled = self._when_handled, None
            then()
        return self._is_in_line

    def abort(self) -> None:
        """See `turns.Waiting`."""
        self._peer.abort()

    def _next_piece(self) -> bytes:
        data, begin = self._held[0], self._held_from
        end = begin + _PIECE_BYTES
        if len(data) > end + _PIECE_BYTES // 2:
            self._held_from = end
        else:
            self._held.popleft()
            end, self._held_from = len(data), 0
        self._held_bytes -= end - begin
        return data[begin:end]

    def when_handled(self, then: Callable[[], None]) -> None:
        """Calls `then` once all requests that were received are handled, or in progress."""
        if self._put_off or self._held:
            self._when_handled = then
        else:
            then()

    def cancel(self) -> None:
        """Drops all requests, those in progress too."""
        self._put_off = ()
        self._held.clear()
        self._held_bytes = self._held_from = 0
        for task in tuple(self.tasks):
            cancel_begun(task)

    # The endpoint answers one request, or those of a run, and the clock is read after each call:
    # one request may take as long as many others. Unread replies are bounded between calls as well,
    # since those to the requests of a single read may have hundreds of MiB.
    def _handle(self, requests: Sequence[Command], until: float, size: int = 0) -> float:
        """Handles requests in their order up to a loop time, the first ones in any case.

        Returns:
            The loop's time after it.
        """
        count, turns, clock = len(requests), self._turns, self._loop.time
        at = self._answer(requests if count <= RUN else requests[:RUN])
        now = clock()
        if at < count:
            writer, waits = self._writer, self._waits_for_reader
            most = min(RUN, count) if turns.is_short(now) else count
            while at < most and now < until and not (waits and writer.is_full):
                at += self._answer(requests[at : min(at + RUN, most)])
                now = clock()
        turns.count(self, at + size // _BYTES_A_REQUEST, now)
        self._put_off = requests[at:] if at < count else ()
        return now

    def _answer(self, requests: Sequence[Command]) -> int:
        """Has the endpoint handle the first requests; returns how many it handled."""
        try:
            outcomes = self._endpoint(requests, self._peer)
        except Exception as error:  # an error in a request must not end the connection
            outcomes = [error_reply(command, error) for command in requests]
        writer = self._writer
        if len(outcomes) == 1 and type(outcomes[0]) is Reply:  # as most requests but sends
            writer.add(frame_of(requests[0], outcomes[0]))
            return 1
        for command, outcome in zip(requests, outcomes, strict=False):
            if type(outcome) is bytes:
                writer.frames.append(outcome)
            elif type(outcome) is Reply:
                writer.add(frame_of(command, outcome))
            elif outcome is not None:
                self._start(command, outcome)  # type: ignore[arg-type]
        return len(outcomes)

    def _start(self, command: Command, awaitable: Awaitable[Response]) -> None:
        task = self._loop.create_task(self._finish(command, awaitable))
        self.tasks.add(task)
        task.add_done_callback(self._finished)
        if len(self.tasks) >= self._tasks_max:
            self._on_change()

    async def _finish(self, command: Command, awaitable: Awaitable[Response]) -> None:
        try:
            while not self._turns.may_begin(self):  # noqa: ASYNC110  (others have their turns)
                await asyncio.sleep(0)
            answered = await awaitable
        except asyncio.CancelledError:
            close_unbegun(awaitable)  # it was not its turn yet
            raise
        except Exception as error:  # root of a task
            answered = error_reply(command, error)
        writer = self._writer
        if writer.is_full:
            await self._until_read(answered)
        if isinstance(answered, Reply):
            writer.send(frame_of(command, answered))
        elif answered is not None:
            writer.send([answered])

    async def _until_read(self, answered: Response) -> None:
        """Waits until the peer reads. A peer that reads nothing while many long replies to it are
        finished is closed, since each of them stays in memory."""
        body = answered.body if isinstance(answered, Reply) else answered
        size = len(body) if isinstance(body, bytes) else 0
        self._unread_bytes += size
        try:
            if self._unread_bytes > self._unread_bytes_max and not self._peer.is_closed:
                logger.warning(
                    "%s is let go: it reads nothing, and the replies to it that are finished have "
                    "more than %d bytes",
                    self._peer.address,
                    self._unread_bytes_max,
                )
                self._peer.abort()
            while self._writer.is_full:
                await self._writer.room.wait()
        finally:
            self._unread_bytes -= size

    def _finished(self, task: asyncio.Task[None]) -> None:
        self.tasks.discard(task)
        if len(self.tasks) == self._tasks_max - 1:
            self._on_change()
