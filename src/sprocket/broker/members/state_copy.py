"""A slave's task that copies what is not in the log: topics, groups, offsets, leases, progress.

It asks a master of Sprocket for what has changed since the version that it has; the reply comes at
once if a topic or group has changed, and after a fraction of a second at the latest. A master that
does not know the request is RocketMQ's: it is asked for whole tables every few seconds.

A reply is applied when the slave's log has reached the master's end of then. So the state is never
ahead of the log, whenever the master is lost.

The task may be started and cancelled at any time; after that, the tables are what was applied.
Source: SlaveSynchronize of RocketMQ 5.x, which asks every 10 or 60 s.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine

from sprocket.base.deadline import Deadline
from sprocket.base.errors import CallTimeout, ReplyError, SprocketError, TransportError
from sprocket.base.troubles import Troubles
from sprocket.base.watermark import Watermark
from sprocket.broker.members.copied_tables import CopiedTables
from sprocket.broker.tables.locks import LockTable
from sprocket.delay.timers.timer_check import JAVA_PART
from sprocket.protocol.bodies import (
    ChangedState,
    DelayOffsets,
    GroupTable,
    KvTable,
    OffsetTable,
    RequestModes,
    TimerState,
    TopicTable,
)
from sprocket.protocol.codes import ResponseCode
from sprocket.protocol.command import Command, Header
from sprocket.protocol.requests.admin import BrokerState
from sprocket.protocol.requests.group import AllGroupConfigs, AllRequestModes
from sprocket.protocol.requests.offset import AllOffsets
from sprocket.protocol.requests.replica import AllDelayOffsets, StateChanges, TimerCheckPoint
from sprocket.protocol.requests.topic import AllTopicConfigs
from sprocket.remoting.pool import Pool
from sprocket.remoting.transport import Peer
from sprocket.replication.master_address import MasterAddress
from sprocket.store.store import Store

logger = logging.getLogger(__name__)

#: How long the master may hold a question, ms: so old are offsets at a slave at most.
WAIT_MS = 300
#: How long the master may take for an answer besides, s.
_ASK_SECONDS = 5.0
#: The same for what has changed, which is little. A late reply is still used: a machine that has
#: much to do may be late by seconds, at either end.
_CHANGES_SECONDS = 10.0
#: After so long without a reply the same is asked over another connection as well, s: what carried
#: the first one may have forgotten it, so that nobody is told of its end.
_PATIENCE_SECONDS = 0.7
#: How long a reply waits for a log that stands still before the master is asked again, s.
_LOG_SECONDS = 2.0
#: Pause after a failure, s.
_AGAIN_SECONDS = 0.5
#: Pause between two copies of RocketMQ's tables, s.
_TABLES_SECONDS = 10.0


class StateCopy:
    """Copies a master's state.

    Args:
        master: where the master is; a change of its address begins anew.
        copied: the tables.
        number: of this broker.
        leases: the leases, which a slave keeps in another way.
        on_timers: gets the progress of the master's timers.

    Attributes:
        version: the version that was applied; -1 before the first whole copy.
    """

    def __init__(
        self,
        pool: Pool,
        store: Store,
        *,
        master: MasterAddress,
        copied: CopiedTables,
        number: int,
        leases: LockTable,
        on_timers: Callable[[TimerState], None],
    ) -> None:
        self._number = number
        self._pool = pool
        self._store = store
        self._master = master
        self._copied = copied
        self._leases = leases
        self._on_timers = on_timers
        self._troubles = Troubles(lambda: asyncio.get_running_loop().time(), logger)
        self._asked = self._origin = ""
        self._listing_at, self._is_more = -1, False
        #: The newest bodies of RocketMQ's tables, by class: equal ones are not decoded again.
        self._bodies: dict[type[Header], bytes] = {}
        #: How often the log has shown something that the tables do not know.
        self._news = Watermark()
        self.version = -1

    def copy_soon(self) -> None:
        """Ends the pause: the log has messages of a topic that is not known. A master of Sprocket
        says so by itself."""
        self._news.rise(self._news.value + 1)

    async def run(self) -> None:
        """Copies until cancelled."""
        self._leases.begin_copy()
        try:
            while True:
                await self._copy_once()
        finally:
            self._leases.end_copy()

    async def _copy_once(self) -> None:
        """One question, or one copy of whole tables; and the pause after it, if any."""
        changes, news, address = (
            self._master.changes.value,
            self._news.value,
            self._master.address,
        )
        if address != self._asked:
            self._asked = address
            self._bodies.clear()
        pause = 0.0
        try:
            if address:
                pause = await self._copy_from(address)
        except SprocketError as error:
            pause = _AGAIN_SECONDS
            # What carried the connection may have forgotten it, so that nobody is told of its end.
            peer = self._pool.connected(address)
            if isinstance(error, CallTimeout) and peer is not None:
                peer.abort()
            self._troubles.failed("state", f"no state is copied from the master {address}", error)
        else:
            self._troubles.ended("state", f"the state of the master {address} is copied")
        if pause or not address:
            deadline = Deadline.after(pause) if address else Deadline.never()
            await _first(
                self._master.changes.reach(changes + 1, deadline),
                self._news.reach(news + 1, deadline),
            )

    async def _copy_from(self, address: str) -> float:
        """Copies from a master of either kind; returns the pause before the next time, s.

        Raises:
            SprocketError: it does not answer, or what it answers cannot be applied.
        """
        try:
            await self._ask(address)
        except ReplyError as error:
            if error.code != ResponseCode.REQUEST_CODE_NOT_SUPPORTED:
                raise
            await self._copy_tables(address)
            return _TABLES_SECONDS
        return 0.0

    async def _ask(self, address: str) -> None:
        """Asks for changes, and applies them when the log is there.

        Raises:
            SprocketError: it does not answer, or the reply cannot be applied.
        """
        asked = StateChanges(
            broker_id=self._number,
            origin=self._origin,
            since=self.version,
            listing_at=self._listing_at,
            wait_ms=0 if self._is_more else WAIT_MS,
        )
        state = ChangedState.decode((await self._reply(address, asked)).body)
        if await self._has_log(state.log_end, address):
            await self._apply(state)

    # At most two questions wait at a time, so that a master which is late gets no more to do.
    async def _reply(self, address: str, asked: StateChanges) -> Command:
        """The reply that comes first, of two connections if the first one is silent.

        Raises:
            SprocketError: there is none.
        """
        questions = [self._question(address, asked)]
        given_up: Peer | None = None
        try:
            patience = _PATIENCE_SECONDS + WAIT_MS / 1000
            done, _ = await asyncio.wait(questions, timeout=patience)
            if not done:
                given_up = self._pool.give_up(address)
                questions.append(self._question(address, asked))
            for each in asyncio.as_completed(questions):
                try:
                    return await each
                except TransportError as error:
                    if all(question.done() for question in questions):
                        raise error
            raise CallTimeout(f"{address} does not answer")
        finally:
            for question in questions:
                question.cancel()
            await asyncio.gather(*questions, return_exceptions=True)
            if given_up is not None:
                given_up.abort()

    def _question(self, address: str, asked: StateChanges) -> asyncio.Future[Command]:
        deadline = Deadline.after(_CHANGES_SECONDS)
        return asyncio.ensure_future(self._pool.ask(address, asked, deadline=deadline))

    async def _has_log(self, end: int, address: str) -> bool:
        """Waits until the log reaches an offset. A log that stands still may never do so: its
        master may have lost that end.

        Returns:
            Whether it has, and the master is still the same.
        """
        appended = self._store.replica.appended
        while self._master.address == address:
            before = appended.value
            if await appended.reach(end, Deadline.after(_LOG_SECONDS)):
                return self._master.address == address
            if appended.value == before:
                break
        return False

    async def _apply(self, state: ChangedState) -> None:
        if state.is_first:
            self._copied.begin_listing()
        self._copied.apply(state)
        if state.timers is not None:
            self._on_timers(state.timers)
        if state.version >= 0:
            await self._copied.end_listing()
        await self._copied.saved()
        self._origin, self.version = state.origin, state.version
        self._listing_at, self._is_more = state.listing_at, state.is_more

    # RocketMQ's masters. The log's end is asked for after the tables, so what these refer to is in
    # the log before it.

    async def _copy_tables(self, address: str) -> None:
        """Copies whole tables; each that the master does not give is left out.

        Raises:
            SprocketError: the master does not answer.
        """
        copied = self._copied
        topics = await self._table(address, AllTopicConfigs())
        groups = await self._table(address, AllGroupConfigs())
        offsets = await self._table(address, AllOffsets())
        delays = await self._table(address, AllDelayOffsets())
        modes = await self._table(address, AllRequestModes())
        timers = await self._table(address, TimerCheckPoint())
        figures = await self._pool.ask(
            address, BrokerState(), deadline=Deadline.after(_ASK_SECONDS)
        )
        end = int(KvTable.decode(figures.body).table.get("commitLogMaxOffset", 0))
        if not await self._has_log(end, address):
            self._bodies.clear()
            return
        if topics:
            await copied.replace_topics(TopicTable.decode(topics))
        if groups:
            await copied.replace_groups(GroupTable.decode(groups))
        if offsets:
            await copied.replace_offsets(OffsetTable.decode(offsets))
        if modes:
            copied.replace_modes(RequestModes.decode(modes))
        if delays:
            copied.replace_delays(DelayOffsets.decode(delays))
        if timers:
            slot_ms, _, _, queue_next = JAVA_PART.unpack_from(timers)
            at = TimerState(slot_ms=slot_ms, delivered_from=end, queue_then=queue_next)
            if slot_ms > 0:  # else no message has ever waited there
                self._on_timers(at)

    async def _table(self, address: str, asked: Header) -> bytes:
        """The body of a table; empty if it is as it was, or the master does not give it.

        Raises:
            SprocketError: the master does not answer.
        """
        try:
            reply = await self._pool.ask(address, asked, deadline=Deadline.after(_ASK_SECONDS))
        except ReplyError as error:
            logger.info("the master %s does not give a table: %s", address, error)
            return b""
        body = bytes(reply.body)
        if self._bodies.get(type(asked)) == body:
            return b""
        self._bodies[type(asked)] = body
        return body


async def _first(*waits: Coroutine[object, object, object]) -> None:
    """Returns when one of them does; the others are cancelled."""
    tasks = [asyncio.ensure_future(each) for each in waits]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
