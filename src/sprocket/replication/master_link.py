"""The connection to a master, as its slave sees it: the frames in, the reports out.

Frames that arrive together are given on together, and then reported once. Each step of a
synchronous send waits for this, so nothing here is a task or a stream.
"""

from __future__ import annotations

import asyncio
import enum
from collections.abc import Callable, Sequence
from typing import cast

from sprocket.base.errors import ConnectionLost, SprocketError
from sprocket.replication.epoch_frames import EpochFrame
from sprocket.replication.frames import Frame
from sprocket.replication.slave_forms import SlaveStream

#: With more bytes of reports that the master has not taken, a report is left to the next time.
_UNSENT_MAX = 64 * 1024


class StreamEnd(enum.Enum):
    """How a connection to a master ended, or why there was none."""

    #: The master closed it, as one that stops does, or its process was killed.
    CLOSED = enum.auto()
    #: The connection broke.
    RESET = enum.auto()
    #: Nobody listens at the master's port.
    REFUSED = enum.auto()
    #: No connection was made in time.
    UNREACHABLE = enum.auto()
    #: Nothing came from the master for long.
    SILENT = enum.auto()
    #: It was ended here: the master is another one now, or cannot be copied.
    LEFT = enum.auto()


class StreamEnded(ConnectionLost):
    """The connection to a master has ended.

    Attributes:
        how: in what way.
    """

    def __init__(self, how: StreamEnd, text: str) -> None:
        super().__init__(text)
        self.how = how


class MasterLink(asyncio.Protocol):
    """The protocol of one connection.

    Attributes:
        ended: fails when the connection ends, with the reason; `StreamEnded` if that is the
            connection itself.
        heard_at: time of the loop when something last came from the master.
        reported_at: time of the loop of the last report.
        reported: the highest report; -1 before the first.
    """

    def __init__(
        self,
        stream: SlaveStream,
        *,
        heartbeat: float,
        silence: float,
        position: Callable[[], int],
        on_frames: Callable[[Sequence[Frame | EpochFrame]], None],
    ) -> None:
        """
        Args:
            stream: what is on the wire.
            heartbeat: seconds after which the position is reported again.
            silence: seconds without anything from the master after which it is closed.
            position: gives the log offset to report.
            on_frames: takes frames; an error ends the connection, and is its reason.
        """
        self._heartbeat = heartbeat
        self._silence = silence
        self._position = position
        self._on_frames = on_frames
        self._stream = stream
        self._loop = asyncio.get_running_loop()
        self.heard_at = self.reported_at = self._loop.time()
        self._timer: asyncio.TimerHandle | None = None
        self._transport: asyncio.Transport | None = None
        self.ended: asyncio.Future[None] = self._loop.create_future()
        self.reported = -1

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Greets, or reports for the first time."""
        self._transport = cast("asyncio.Transport", transport)
        if self._stream.greeting:
            self._transport.write(self._stream.greeting)
        self.heard_at = self._loop.time()
        self._report()
        self._watch()

    def data_received(self, data: bytes) -> None:
        """Gives frames on, and reports what became of them."""
        self.heard_at = self._loop.time()
        if self.ended.done():
            return
        try:
            frames = self._stream.feed(data)
            if frames:
                self._on_frames(frames)
        except (SprocketError, OSError) as error:
            self._end(error)
        else:
            self.report()

    def connection_lost(self, error: Exception | None) -> None:
        """Ends it."""
        self._transport = None
        if error is None:
            self._end(StreamEnded(StreamEnd.CLOSED, "it has closed the connection"))
        else:
            self._end(StreamEnded(StreamEnd.RESET, f"the connection broke: {error}"))

    def report(self) -> None:
        """Reports the position if it has risen."""
        if self._position() > self.reported:
            self._report()

    def abort(self, why: str = "the connection is closed here") -> None:
        """Closes it at once."""
        self._end(StreamEnded(StreamEnd.LEFT, why))

    def _report(self) -> None:
        transport = self._transport
        if transport is None or not self._stream.is_ready:
            return
        if transport.get_write_buffer_size() <= _UNSENT_MAX:
            self.reported_at = self._loop.time()
            self.reported = self._position()
            transport.write(self._stream.report(self.reported))

    def _watch(self) -> None:
        """Closes it after a long silence, and reports after a pause; one timer for both."""
        now = self._loop.time()
        if now >= self.heard_at + self._silence:
            why = f"it was silent for {self._silence:g} s"
            self._end(StreamEnded(StreamEnd.SILENT, why))
            return
        if now >= self.reported_at + self._heartbeat:
            self._report()
            self.reported_at = now
        due = min(self.heard_at + self._silence, self.reported_at + self._heartbeat)
        self._timer = self._loop.call_at(due, self._watch)

    def _end(self, reason: Exception) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if not self.ended.done():
            self.ended.set_exception(reason)
        if self._transport is not None:
            self._transport.abort()
