"""A slave's side: connects to the master, and copies its log.

The slave reports its log's end: all of it that is written, or, with synchronous flush, that is on
the disk. It never reports part of a record. Bytes that do not continue its log end the connection,
with a warning that says what to do; so does a master that is silent. Then it connects again, after
a pause that grows.

Source: DefaultHAClient of RocketMQ 5.x, which does not check what it copies.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence

from sprocket.base.backoff import pauses
from sprocket.base.deadline import Deadline
from sprocket.base.errors import (
    ConnectionLost,
    DiskFull,
    ProtocolError,
    TransportError,
)
from sprocket.base.ports import Entropy
from sprocket.remoting import address as addresses
from sprocket.remoting.tls.dialling import TlsDialler
from sprocket.remoting.tls.settings import ClientTls
from sprocket.replication.epoch_frames import EpochFrame
from sprocket.replication.frames import Frame
from sprocket.replication.master_address import MasterAddress
from sprocket.replication.master_link import MasterLink, StreamEnd, StreamEnded
from sprocket.replication.rules import StreamRules
from sprocket.replication.slave_forms import PlainStream, SlaveStream
from sprocket.store.store import Store
from sprocket.store.writing.replica_log import CopyMismatch, LogCopy

logger = logging.getLogger(__name__)

_CONNECT_SECONDS = 10.0
_ANOTHER = "another broker is the master now"


class Slave:
    """Copies the log of a master.

    Args:
        store: the store of the copy.
        master: where the master is.
        is_flushing: whether only what is on the disk is reported.
        on_copied: is called after records were copied.
        compared: gives the reason why the master's log is not this one's continuation, as far as
            it can be known before anything is copied; None if there is none.
        stream: makes the form of each connection: what is on the wire.
        on_end: is called when a connection has ended, or could not be made.
        tls: how the connection speaks TLS; None for a plain one.

    Attributes:
        is_connected: whether the master sends its log now.
        heard_at: time of the loop when something last came from a master; None before.
    """

    def __init__(
        self,
        store: Store,
        master: MasterAddress,
        *,
        rules: StreamRules,
        is_flushing: bool,
        entropy: Entropy,
        on_copied: Callable[[], None],
        compared: Callable[[], Awaitable[str | None]],
        stream: Callable[[], SlaveStream] = PlainStream,
        on_end: Callable[[StreamEnd], None] = lambda _: None,
        tls: ClientTls | None = None,
    ) -> None:
        self._store = store
        self._log = store.replica
        self._master = master
        self._rules = rules
        self._is_flushing = is_flushing
        self._mark = store.flushed if is_flushing else store.replica.appended
        self._entropy = entropy
        self._on_copied = on_copied
        self._compared = compared
        self._stream = stream
        self._on_end = on_end
        self._dialler = None if tls is None else TlsDialler(tls)
        self._last_reason = ""
        self._link: MasterLink | None = None
        self._heard_at: float | None = None
        self._reported_at: float | None = None
        self.is_connected = False

    def change(self, rules: StreamRules) -> None:
        """Uses the next connections by other rules."""
        self._rules = rules

    @property
    def heard_at(self) -> float | None:
        """Time of the loop when something last came from a master; None before."""
        return self._heard_at if self._link is None else self._link.heard_at

    @property
    def reported_at(self) -> float | None:
        """Time of the loop when this log's end was last reported to a master; None before."""
        return self._reported_at if self._link is None else self._link.reported_at

    async def run(self) -> None:
        """Copies until cancelled.

        Raises:
            LogsDiffer: the log must be cut before it can go on.
            StoreError: the disk failed, or the store is damaged.
        """
        while True:
            for pause in pauses(*self._rules.pauses, entropy=self._entropy):
                address = await self._master.known()
                end, changes = self._log.end, self._master.changes.value
                how = StreamEnd.LEFT
                try:
                    await self._copy_from(address)
                except (CopyMismatch, DiskFull, ProtocolError, TransportError) as error:
                    self._report_reason(address, str(error))
                    how = error.how if isinstance(error, StreamEnded) else how
                except OSError as error:
                    self._report_reason(address, f"cannot connect: {error}")
                    is_refused = isinstance(error, ConnectionRefusedError)
                    how = StreamEnd.REFUSED if is_refused else StreamEnd.UNREACHABLE
                finally:
                    self.is_connected = False
                self._on_end(how)
                if await self._master.changes.reach(changes + 1, Deadline.after(pause)):
                    break  # another master, or another epoch: it is tried at once
                if self._log.end > end:
                    break

    def _report_reason(self, address: str, reason: str) -> None:
        """Logs why nothing is copied; the same reason only once."""
        if reason != self._last_reason:
            self._last_reason = reason
            logger.warning(
                "nothing is copied from the master at %s for now, the log ends at %d: %s",
                address, self._log.end, reason,
            )  # fmt: skip

    async def _copy_from(self, address: str) -> None:
        host, port = addresses.split(address)
        term = self._master.term
        if (difference := await self._compared()) is not None:
            raise ConnectionLost(difference)
        if self._is_flushing:
            await self._store.sync()  # the stream begins at what is reported, and that is the end
        copy, stream = self._log.copy(), self._stream()

        def is_current() -> bool:
            return (address, term) == (self._master.replication, self._master.term)

        def on_frames(frames: Sequence[Frame | EpochFrame]) -> None:
            if not is_current():
                raise ConnectionLost(_ANOTHER)
            before = self._log.end
            for frame in frames:
                self._append(copy, stream, frame)
            stream.after(frames[-1])
            if self._log.end > before:
                self._on_copied()

        def link() -> MasterLink:
            rules, mark = self._rules, self._mark
            return MasterLink(
                stream,
                heartbeat=rules.heartbeat,
                silence=rules.silence,
                position=lambda: mark.value,
                on_frames=on_frames,
            )

        connected = await self._connected(link, host, port)
        self._link = connected
        tasks = [
            asyncio.ensure_future(self._report_flushes(connected)),
            asyncio.ensure_future(self._watch_master(connected, is_current)),
        ]
        try:
            await connected.ended
        finally:
            self._heard_at, self._reported_at = connected.heard_at, connected.reported_at
            self._link = None
            for task in tasks:
                task.cancel()
            connected.abort()

    async def _watch_master(self, link: MasterLink, is_current: Callable[[], bool]) -> None:
        """Leaves a master that is one no longer, also if nothing comes from it."""
        changes = self._master.changes
        while is_current():
            await changes.reach(changes.value + 1, Deadline.never())
        link.abort(_ANOTHER)

    async def _connected(self, link: Callable[[], MasterLink], host: str, port: int) -> MasterLink:
        async with asyncio.timeout(_CONNECT_SECONDS):
            if self._dialler is not None:
                return await self._dialler.connect(link, host, port, seconds=_CONNECT_SECONDS)
            _, connected = await asyncio.get_running_loop().create_connection(link, host, port)
            return connected

    def _append(self, copy: LogCopy, stream: SlaveStream, frame: Frame | EpochFrame) -> None:
        if frame.data or frame.offset == copy.end:
            if frame.offset == copy.end or self._log.is_empty:
                stream.before(frame)
            copy.append(frame.offset, frame.data)
        elif not (self._log.is_empty and not frame.offset % self._store.log_file_bytes):
            raise ConnectionLost(_difference(frame.offset, copy.end))
        if not self.is_connected:
            self.is_connected = True
            self._last_reason = ""
            logger.info("copying the master's log from %d on", frame.offset)

    async def _report_flushes(self, link: MasterLink) -> None:
        """Reports what a flush has brought to the disk. Without flushes, there is nothing to wait
        for: each position is reported with the frames that led to it."""
        position = self._mark.value
        while self._is_flushing:
            await self._mark.reach(position + 1, Deadline.never())
            position = self._mark.value
            link.report()


def _difference(masters: int, own: int) -> str:
    """What a heartbeat means that does not begin at the end of this log."""
    if masters < own:
        return (
            f"its log ends at {masters}, before this one, which ends at {own}: this log has "
            "messages that the master has not. Compare both; if the master is right, empty this "
            "broker's folder, so that it copies anew"
        )
    return (
        f"its log begins at {masters}, behind the end of this one, {own}: what is between is "
        "deleted there. Empty this broker's folder, so that it begins anew"
    )
