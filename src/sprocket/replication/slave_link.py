"""One connection from a slave, as its master sees it: the reports in, the bytes of the log out."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Protocol, cast

from sprocket.base.deadline import Deadline
from sprocket.base.errors import ConnectionLost, RemoteProtocolError
from sprocket.base.rare_log import RareLog
from sprocket.base.watermark import Watermark
from sprocket.remoting import address
from sprocket.replication.epoch_frames import SlaveHello

logger = logging.getLogger(__name__)


class SlaveDecoder(Protocol):
    """Reads what a slave sends."""

    @property
    def hello(self) -> SlaveHello | None:
        """How it greeted; None before, and where slaves do not greet."""
        ...

    def feed(self, data: bytes) -> list[int]:
        """The reports that are complete now, in order.

        Raises:
            RemoteProtocolError: no slave sends that.
        """
        ...


class SlaveLink(asyncio.Protocol):
    """The protocol of one connection.

    Attributes:
        number: tells it from others.
        address, host: where it comes from.
        requested: its first report; -1 before.
        reported: its highest report; -1 before the first.
        sent: log offset after the bytes that were sent; -1 before any.
        confirmed: the confirmed offset that was sent last; -1 before.
    """

    def __init__(
        self,
        number: int,
        decoder: SlaveDecoder,
        *,
        silence: float,
        buffered_max: int,
        on_open: Callable[[SlaveLink], None],
        on_greeting: Callable[[SlaveLink], None],
        on_report: Callable[[SlaveLink, int], None],
        on_close: Callable[[SlaveLink], None],
        log: RareLog | None = None,
    ) -> None:
        """
        Args:
            decoder: reads what the slave sends.
            silence: seconds without a report after which it is closed.
            buffered_max: with more bytes than this not sent yet, `drained` waits.
            on_open, on_greeting, on_report, on_close: are called with what happens to it;
                `on_greeting` may raise `RemoteProtocolError`, which ends it.
            log: gets the warnings of all connections, which anybody can cause.
        """
        self.number = number
        self.address = ""
        self.host = ""
        self.requested = -1
        self.reported = Watermark(-1)
        self.sent = -1
        self._is_greeted = False
        self.confirmed = -1
        self._decoder = decoder
        self._silence = silence
        self._buffered_max = buffered_max
        self._on_open = on_open
        self._on_greeting = on_greeting
        self._on_report = on_report
        self._on_close = on_close
        self._log = log or RareLog(logger)
        self._heard_at = 0.0
        self._check: asyncio.TimerHandle | None = None
        self._transport: asyncio.Transport | None = None
        #: Counts pauses and continuations of the transport: odd while it takes no more bytes.
        self._turns = Watermark()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begins to listen for reports."""
        self._transport = cast("asyncio.Transport", transport)
        self._transport.set_write_buffer_limits(high=self._buffered_max)
        self.address = address.of_socket(transport.get_extra_info("peername"))
        self.host = self.address.rpartition(":")[0]
        self._heard_at = asyncio.get_running_loop().time()
        self._listen_on()
        self._on_open(self)

    def data_received(self, data: bytes) -> None:
        """Takes reports."""
        self._heard_at = asyncio.get_running_loop().time()
        try:
            reports = self._decoder.feed(data)
            if self._decoder.hello is not None and not self._is_greeted:
                self._is_greeted = True
                self._on_greeting(self)
        except RemoteProtocolError as error:
            self._log.warning("the slave at %s is disconnected: %s", self.address, error)
            self.abort()
            return
        if not reports:
            return
        if self.requested < 0:
            self.requested = reports[0]
        self._on_report(self, max(reports))
        self.reported.rise(max(reports))

    @property
    def hello(self) -> SlaveHello | None:
        """How the slave greeted; None before, and where slaves do not greet."""
        return self._decoder.hello

    @property
    def member(self) -> int | None:
        """The slave's number, if it has said it and counts as a member; not that of a learner."""
        hello = self.hello
        return None if hello is None or hello.is_learner else hello.member

    def pause_writing(self) -> None:
        """Holds `drained`."""
        self._turns.rise(self._turns.value + 1)

    def resume_writing(self) -> None:
        """Continues it."""
        self._turns.rise(self._turns.value + 1)

    def connection_lost(self, error: Exception | None) -> None:
        """Ends it."""
        if self._check is not None:
            self._check.cancel()
        self._transport = None
        lost = ConnectionLost(f"the slave at {self.address} is gone")
        for mark in (self._turns, self.reported):
            mark.fail(lost)
        self._on_close(self)

    def send(self, head: bytes, offset: int, data: memoryview | bytes) -> None:
        """Sends bytes of the log, which begin at an offset, behind their head; none are a
        heartbeat."""
        if self._transport is not None:
            self._transport.writelines((head, data))
            self.sent = offset + len(data)

    def write(self, data: bytes) -> None:
        """Sends something else."""
        if self._transport is not None:
            self._transport.write(data)

    async def drained(self) -> None:
        """Returns when few bytes are left to be sent.

        Raises:
            ConnectionLost: the connection is gone.
        """
        turn = self._turns.value
        if turn % 2:
            await self._turns.reach(turn + 1, Deadline.never())

    def close(self) -> None:
        """Closes it after what was sent."""
        if self._transport is not None:
            self._transport.close()

    def abort(self) -> None:
        """Closes it at once."""
        if self._transport is not None:
            self._transport.abort()

    def _listen_on(self) -> None:
        """Closes it after a long silence; one timer, whatever arrives."""
        loop = asyncio.get_running_loop()
        left = self._heard_at + self._silence - loop.time()
        if left > 0:
            self._check = loop.call_later(left, self._listen_on)
        else:
            self._log.warning(
                "the slave at %s is disconnected: no report for %g s", self.address, self._silence
            )
            self.abort()
