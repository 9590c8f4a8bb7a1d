"""The connection to a master, as its slave sees it: the frames in, the reports out.

Frames that arrive together are given on together, and then reported once. Each step of a
synchronous send waits for this, so nothing here is a task or a stream.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import cast

from sprocket.base.errors import ConnectionLost, SprocketError
from sprocket.replication.frames import REPORT, Frame, FrameDecoder

#: With more bytes of reports that the master has not taken, a report is left to the next time.
_UNSENT_MAX = 64 * 1024


class MasterLink(asyncio.Protocol):
    """The protocol of one connection.

    Attributes:
        ended: fails when the connection ends, with the reason.
        reported: the highest report; -1 before the first.
    """

    def __init__(
        self,
        *,
        heartbeat: float,
        silence: float,
        position: Callable[[], int],
        on_frames: Callable[[Sequence[Frame]], None],
    ) -> None:
        """
        Args:
            heartbeat: seconds after which the position is reported again.
            silence: seconds without anything from the master after which it is closed.
            position: gives the log offset to report.
            on_frames: takes frames; an error ends the connection, and is its reason.
        """
        self._heartbeat = heartbeat
        self._silence = silence
        self._position = position
        self._on_frames = on_frames
        self._decoder = FrameDecoder()
        self._loop = asyncio.get_running_loop()
        self._heard_at = self._reported_at = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._transport: asyncio.Transport | None = None
        self.ended: asyncio.Future[None] = self._loop.create_future()
        self.reported = -1

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Reports for the first time."""
        self._transport = cast("asyncio.Transport", transport)
        self._heard_at = self._loop.time()
        self._report()
        self._watch()

    def data_received(self, data: bytes) -> None:
        """Gives frames on, and reports what became of them."""
        self._heard_at = self._loop.time()
        if self.ended.done():
            return
        try:
            frames = self._decoder.feed(data)
            if frames:
                self._on_frames(frames)
        except (SprocketError, OSError) as error:
            self._end(error)
        else:
            self.report()

    def connection_lost(self, error: Exception | None) -> None:
        """Ends it."""
        self._transport = None
        self._end(ConnectionLost("it has closed the connection"))

    def report(self) -> None:
        """Reports the position if it has risen."""
        if self._position() > self.reported:
            self._report()

    def abort(self) -> None:
        """Closes it at once."""
        self._end(ConnectionLost("the connection is closed here"))

    def _report(self) -> None:
        transport = self._transport
        if transport is not None and transport.get_write_buffer_size() <= _UNSENT_MAX:
            self._reported_at = self._loop.time()
            self.reported = self._position()
            transport.write(REPORT.pack(self.reported))

    def _watch(self) -> None:
        """Closes it after a long silence, and reports after a pause; one timer for both."""
        now = self._loop.time()
        if now >= self._heard_at + self._silence:
            self._end(ConnectionLost(f"it was silent for {self._silence:g} s"))
            return
        if now >= self._reported_at + self._heartbeat:
            self._report()
            self._reported_at = now
        due = min(self._heard_at + self._silence, self._reported_at + self._heartbeat)
        self._timer = self._loop.call_at(due, self._watch)

    def _end(self, reason: Exception) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if not self.ended.done():
            self.ended.set_exception(reason)
        if self._transport is not None:
            self._transport.abort()
