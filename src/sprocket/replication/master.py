"""A master's side: listens for slaves and sends each of them the log as it grows.

With synchronous flush, slaves get what is on the master's disk: else a loss of power could leave
them with messages that the master has not, and their logs would no longer be one.

Each slave has a task that sends slices of the log's files, no copies, and waits while the slave
does not read: so a slave that stands still costs as much memory as one that is far behind, a few
frames. What slaves report is counted by the form of the stream, and what enough of them have raises
the watermark `replicated`, for which synchronous sends and their readers wait.

Source: DefaultHAService, DefaultHAConnection of RocketMQ 5.x.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from functools import partial
from types import TracebackType
from typing import Self

from sprocket.base.deadline import Deadline
from sprocket.base.errors import ConnectionLost, OffsetOutOfRange, StoreError, UsageError
from sprocket.base.rare_log import RareLog
from sprocket.base.watermark import Watermark
from sprocket.remoting import address
from sprocket.remoting.listening import why_not_listening
from sprocket.remoting.tls.entrance import Entrance, entrance_of
from sprocket.remoting.tls.settings import TlsConfig
from sprocket.remoting.turns import turns_of
from sprocket.replication.flow import FlowLimit
from sprocket.replication.master_forms import MasterForm
from sprocket.replication.rules import StreamRules
from sprocket.replication.slave_link import SlaveLink
from sprocket.replication.stream_start import LogRange, stream_start
from sprocket.store.store import Store

logger = logging.getLogger(__name__)

#: The most slaves that are connected at a time, and the most hosts that warnings are kept for.
_LINKS_MAX = 64
#: Where senders wait for slaves, a frame waits for the report of the one before, so that it holds
#: all that has arrived meanwhile: many small frames cost both sides twice as much. It does not wait
#: for longer than this, s, nor if so many bytes are not reported, which shows a long way.
_TURN_SECONDS, _UNREPORTED_MAX = 0.002, 64 * 1024
#: The confirmed offset is sent at most this often without anything else, s.
_CONFIRM_SECONDS = 0.005


class Master:
    """Sends one log to slaves. Use it with `async with`.

    Args:
        store: the store of the log.
        form: what is on the wire, and who counts as a copy.
        replicated: is raised to the log offset up to which there are as many copies as wanted.
        readable: the same for the least number of copies: readers see the log up to there.
        sendable: the log offset up to which slaves get the log.
        host, port: where it listens; port 0 takes a free one.
        on_stranger: is called when a host connects that is not known to have a slave.
        tls: whether and how slaves may or must speak TLS.
        may_copy: whether a host may have the log.

    Attributes:
        links: the connected slaves, by the numbers of their connections.
    """

    def __init__(
        self,
        store: Store,
        form: MasterForm,
        *,
        replicated: Watermark,
        readable: Watermark,
        sendable: Watermark,
        host: str,
        port: int,
        rules: StreamRules,
        on_stranger: Callable[[], None],
        tls: TlsConfig | None = None,
        may_copy: Callable[[str], bool] = lambda host: True,
    ) -> None:
        self._store = store
        self._log = store.replica
        self._form = form
        self._replicated, self._readable = replicated, readable
        self._sendable = sendable
        self._host = address.bare(host)
        self._port = port
        self._rules = rules
        self._on_stranger = on_stranger
        self._tls = tls
        self._may_copy = may_copy
        self._entrance: Entrance | None = None
        self._listening: asyncio.Server | None = None
        self._count = 0
        self._tasks: dict[int, asyncio.Task[None]] = {}
        #: Warnings are given once for each host, until its slave is connected without one.
        self._warned: set[str] = set()
        self._warnings = RareLog(logger)
        self._confirming: asyncio.TimerHandle | None = None
        self._following: asyncio.Task[None] | None = None
        self._is_open = False
        self.links: dict[int, SlaveLink] = {}

    @property
    def port(self) -> int:
        """The port that it listens at."""
        return self._port

    async def __aenter__(self) -> Self:
        """Listens.

        Raises:
            UsageError: the address is in use, or not one of this machine.
        """
        loop = asyncio.get_running_loop()
        entrance = entrance_of(self._tls, turns_of(loop), silent_seconds=self._rules.silence)
        try:
            self._listening = await loop.create_server(
                self._accept if entrance is None else partial(entrance.greet, self._accept),
                self._host or None,
                self._port,
                backlog=64,
            )
        except OSError as error:
            where = address.join(self._host or "0.0.0.0", self._port)
            why = why_not_listening(error)
            if entrance is not None:
                entrance.close()
            raise UsageError(f"cannot listen for slaves at {where}: {why}") from error
        self._entrance = entrance
        self._is_open = True
        self._port = self._listening.sockets[0].getsockname()[1]
        self.recount()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._is_open = False
        if self._listening is not None:
            self._listening.close()
        if self._entrance is not None:
            self._entrance.close()
        if self._confirming is not None:
            self._confirming.cancel()
        tasks = [*self._tasks.values(), *([self._following] if self._following else ())]
        for link in list(self.links.values()):
            link.abort()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def change(self, rules: StreamRules) -> None:
        """Uses connections by other rules: what is sent at once, how long one may be silent for
        those that come from now on."""
        self._rules = rules

    def recount(self) -> None:
        """Decides anew how far the copies are, after what is known of slaves has changed."""
        for link in self.links.values():
            if not self._form.is_known(link):
                self._warn(
                    link.host,
                    "no slave of this broker is registered at this address, so what it reports "
                    "does not count as a copy",
                )
        self._recount()

    def _accept(self) -> SlaveLink:
        self._count += 1
        return SlaveLink(
            self._count,
            self._form.decoder(),
            silence=self._rules.silence,
            buffered_max=2 * self._rules.batch_bytes,
            on_open=self._opened,
            on_greeting=self._greeted,
            on_report=self._reported,
            on_close=self._closed,
            log=self._warnings,
        )

    def _opened(self, link: SlaveLink) -> None:
        if not self._may_copy(link.host):
            # A slave connects here while its first signed request is under way.
            logger.info("%s may not copy: no super user has asked from there yet", link.address)
            link.abort()
            return
        if len(self.links) >= _LINKS_MAX and self._form.is_known(link):
            self._make_way()
        if len(self.links) >= _LINKS_MAX:
            self._warnings.warning(
                "slave %s is refused: %d are connected", link.address, len(self.links)
            )
            link.abort()
            return
        self.links[link.number] = link
        logger.info("slave %s has connected", link.address)
        if not self._form.is_known(link):
            self._on_stranger()
        self._tasks[link.number] = asyncio.ensure_future(self._serve(link))

    def _greeted(self, link: SlaveLink) -> None:
        """Answers a slave that says who it is, and closes its older connections."""
        link.write(self._form.greeting(link, max(self._sendable.value, self._log.start)))
        for each in list(self.links.values()):
            if each is not link and each.member == link.member:
                self._closed(each)
                each.abort()

    def _make_way(self) -> None:
        """Closes the oldest connection from a host that is not known to have a slave."""
        strangers = (each for each in self.links.values() if not self._form.is_known(each))
        if (oldest := next(strangers, None)) is not None:
            self._closed(oldest)
            oldest.abort()

    def _closed(self, link: SlaveLink) -> None:
        if self.links.pop(link.number, None) is None:
            return
        self._tasks.pop(link.number).cancel()
        self._form.forget(link)
        logger.info("slave %s is gone; it had the log up to %d", link.address, link.reported.value)
        self._recount()

    # The first report may be anything, and `stream_start` decides about it. A later one beyond the
    # log's end is of something that is no slave of this log, and must not count.
    def _reported(self, link: SlaveLink, offset: int) -> None:
        if offset > self._log.end:
            if link.reported.value >= 0:
                self._warn(link.host, f"it reports {offset}, and the log ends at {self._log.end}")
                link.abort()
            return
        now = asyncio.get_running_loop().time()
        self._form.report(link, offset, end=self._log.end, now=now)
        self._recount()

    def _recount(self) -> None:
        form, end = self._form, self._log.end
        readable = form.readable(end)
        if readable > self._readable.value:
            self._readable.rise(readable)
            self._log.confirm()
            if form.has_confirmed and self._confirming is None and self.links:
                pause = max(self._rules.gather, _CONFIRM_SECONDS)
                loop = asyncio.get_running_loop()
                self._confirming = loop.call_later(pause, self._send_confirmed)
        self._replicated.rise(form.replicated(end))
        is_followed = self._following is not None and not self._following.done()
        if form.is_alone and self._is_open and not is_followed:
            self._following = asyncio.ensure_future(self._follow_log())

    def _send_confirmed(self) -> None:
        """Sends the confirmed offset to slaves that have everything else, for their readers."""
        self._confirming = None
        for link in self.links.values():
            if link.sent >= self._sendable.value and link.confirmed < self._readable.value:
                self._send(link, link.sent, b"")

    async def _follow_log(self) -> None:
        """Confirms what is appended, while no slave has a say in it."""
        mark = self._log.appended
        while self._form.is_alone:
            await mark.reach(mark.value + 1, Deadline.never())
            self._recount()

    def _send(self, link: SlaveLink, offset: int, data: memoryview | bytes) -> None:
        link.send(self._form.head(offset, len(data)), offset, data)
        link.confirmed = self._readable.value

    async def _serve(self, link: SlaveLink) -> None:
        try:
            await link.reported.reach(0, Deadline.never())
            end = max(self._sendable.value, self._log.start)
            log = LogRange(self._log.start, end, self._store.log_file_bytes)
            fresh = self._form.fresh(link, self._rules.fresh)
            start = stream_start(link.requested, log, fresh)
            if start.refusal is None:
                logger.info("slave %s gets the log from %d on", link.address, start.offset)
                self._warned.discard(link.host)
                await self._send_from(link, start.offset)
            self._refuse(link, start.offset, start.refusal or "")
        except OffsetOutOfRange:
            why = "the files that it needs next were deleted before they could be sent"
            self._refuse(link, self._log.start, why)
        except ConnectionLost:
            pass
        except StoreError as error:
            logger.error("slave %s is disconnected: %s", link.address, error)
            link.abort()

    def _refuse(self, link: SlaveLink, offset: int, why: str) -> None:
        """Tells a slave where this log begins or ends, which is not where its own goes on."""
        self._warn(link.host, why)
        self._send(link, offset, b"")
        link.close()

    async def _send_from(self, link: SlaveLink, position: int) -> None:
        """Sends the log from an offset on, until the connection is closed."""
        log, mark = self._log, self._sendable
        limit = FlowLimit(0)
        time = asyncio.get_running_loop().time
        if self._form.has_confirmed:
            self._send(link, position, b"")
        while True:
            rules = self._rules
            limit.change(rules.bytes_per_second)
            batch_bytes = limit.at_once(rules.batch_bytes)
            if not await mark.reach(position + 1, Deadline.after(rules.heartbeat)):
                self._send(link, position, b"")
                continue
            await self._store.cold.load_log(position, position + batch_bytes)
            end = self._form.batch_end(position, min(position + batch_bytes, mark.value))
            data = log.read(position, end - position)
            self._send(link, position, data)
            position += len(data)
            await link.drained()
            pause = limit.pause(len(data), time())
            if position == mark.value:
                pause = max(pause, rules.gather)
            if pause:
                await asyncio.sleep(pause)
            elif not rules.gather and position - link.reported.value < _UNREPORTED_MAX:
                await link.reported.reach(position, Deadline.after(_TURN_SECONDS))

    def _warn(self, host: str, why: str) -> None:
        if host not in self._warned and len(self._warned) < _LINKS_MAX:
            self._warned.add(host)
            logger.warning("the slave at %s: %s", host, why)
