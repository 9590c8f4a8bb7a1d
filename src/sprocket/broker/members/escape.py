"""What falls due at an acting master is delivered at other masters of the cluster.

A slave that stands for its master may not write to its own log, which must stay a copy. So messages
whose delay is over, and transactions that are due for a check, are sent to other masters, and the
slave notes which (`EscapedTable`). A master that comes back asks for that before it delivers
anything: the slave first ends what it is sending, and delivers nothing more until it is seen that
the master did not come after all. What no other master takes waits for the master of this name.

A message is delivered twice where it cannot be known whether it was delivered: the reply of the
other master was lost, this broker was killed within a second of it, or what the old master did last
is not in this log.
Source: EscapeBridge, ScheduleMessageService, TimerMessageStore, TransactionalMessageServiceImpl and
BrokerPreOnlineService of RocketMQ 5.3, which hand back progress and not messages.
"""

from __future__ import annotations

import asyncio
import heapq
import logging
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from sprocket.base.deadline import Deadline
from sprocket.base.errors import ReplyError, SprocketError, StoreError, SystemBusy
from sprocket.base.troubles import Troubles
from sprocket.base.watermark import Watermark
from sprocket.broker.dispatch import Endpoints
from sprocket.broker.members.acting import EXPIRY_MS
from sprocket.broker.members.escape_send import SEND_SECONDS, DueMessage, EscapeSender
from sprocket.broker.members.escape_sources import DueSource
from sprocket.broker.settings import BrokerSettings
from sprocket.broker.tables.escaped import EscapedTable, unpacked
from sprocket.delay.levels.schedule import ScheduleProgress
from sprocket.protocol.bodies import DelayOffsets
from sprocket.protocol.codes import OwnRequestCode, ResponseCode
from sprocket.protocol.command import Command, Reply
from sprocket.protocol.requests.replica import AllDelayOffsets, EscapedMessages
from sprocket.remoting.pool import Pool
from sprocket.remoting.transport import Peer
from sprocket.store.store import Store

logger = logging.getLogger(__name__)

#: Pause between two checks whether something is due, or whether this broker acts, s.
_DUE_SECONDS, _ACT_SECONDS = 0.02, 0.2
#: Pause before another try to deliver a message, s.
_AGAIN_SECONDS = 1.0
#: Messages of one kind that wait for another try; then no further ones are read.
_WAITING_MAX = 1_000
#: Records that are checked before others run on the loop.
_CHECKED_MAX = 256
#: How long a process of this name may take to end what it is sending, s.
_END_SECONDS = SEND_SECONDS + 1.0


class ActingState(Protocol):
    """What is known of the processes of this broker's name."""

    @property
    def is_acting(self) -> bool:
        """Whether this slave stands for its master."""
        ...

    async def others(self) -> Sequence[str]:
        """The addresses of the other living slaves."""
        ...


class Escape:
    """Delivers elsewhere while this broker acts as the master.

    Args:
        acting: who lives, and who stands for the master.
        sources: what falls due.
        table: what was delivered elsewhere.
        progress: of the delay levels.
        is_copying: whether a master sends its log to this slave now: then it lives, whatever the
            name servers say, and delivers by itself.
        is_waiting: whether the message of the record at a log offset may still be delivered.
    """

    def __init__(
        self,
        store: Store,
        pool: Pool,
        settings: BrokerSettings,
        *,
        acting: ActingState,
        sender: EscapeSender,
        sources: Sequence[DueSource],
        table: EscapedTable,
        progress: ScheduleProgress,
        is_copying: Callable[[], bool],
        is_waiting: Callable[[int], bool],
    ) -> None:
        self._is_waiting = is_waiting
        self._store = store
        self._pool = pool
        self._settings = settings
        self._acting = acting
        self._sender = sender
        self._sources = sources
        self._table = table
        self._progress = progress
        self._is_copying = is_copying
        self._troubles = Troubles(lambda: asyncio.get_running_loop().time(), logger)
        #: When a process of this name last asked for the table, by the loop's time.
        self._given_at = -math.inf
        #: How many times what was being sent has ended, and whether anything is.
        self._ends = Watermark()
        self._is_delivering = False
        #: Messages delivered elsewhere since the start.
        self.count = 0

    def endpoints(self) -> Endpoints:
        """The endpoints, by request code."""
        return {OwnRequestCode.ESCAPED_MESSAGES: self._escaped}

    async def run(self) -> None:
        """Delivers what falls due whenever this broker acts, until cancelled."""
        while True:
            if self._may_deliver():
                await self._deliver()
            await asyncio.sleep(_ACT_SECONDS)

    def _may_deliver(self) -> bool:
        since = asyncio.get_running_loop().time() - self._given_at
        return self._acting.is_acting and not self._is_copying() and since > EXPIRY_MS / 1000

    async def _deliver(self) -> None:
        """Delivers until this broker acts no more, or another process asks for the table."""
        self._is_delivering = True
        try:
            await self._merge_all(await self._acting.others())
            for source in self._sources:
                await source.begin()
            logger.warning("what falls due is delivered at other masters")
            async with asyncio.TaskGroup() as tasks:
                for source in self._sources:
                    tasks.create_task(self._serve(source))
        except SprocketError as error:
            self._troubles.failed("begin", "nothing is delivered at other masters yet", error)
        finally:
            self._is_delivering = False
            self._ends.rise(self._ends.value + 1)

    async def _serve(self, source: DueSource) -> None:
        loop = asyncio.get_running_loop()
        waiting: list[tuple[float, int, DueMessage]] = []
        while self._may_deliver():
            found: DueMessage | None = None
            if waiting and waiting[0][0] <= loop.time():
                found = heapq.heappop(waiting)[2]
            elif len(waiting) < _WAITING_MAX:
                found = await self._taken(source)
            if found is None:
                await asyncio.sleep(_DUE_SECONDS)
            elif found.log_offset in self._table.log_offsets:
                await asyncio.sleep(0)
            elif not await self._sent(found):
                at = loop.time() + _AGAIN_SECONDS
                heapq.heappush(waiting, (at, found.log_offset, found))

    async def _taken(self, source: DueSource) -> DueMessage | None:
        try:
            return await source.take()
        except StoreError as error:
            self._troubles.failed("read", "what is due cannot be read", error)
            await asyncio.sleep(_AGAIN_SECONDS)
            return None

    async def _sent(self, message: DueMessage) -> bool:
        if not await self._sender.send(message):
            return False
        self._table.add(message.log_offset)
        self.count += 1
        return True

    async def forget_passed(self) -> None:
        """Forgets what nobody would deliver any more, at the start of this broker: whoever delivers
        has passed it, and that is on the disk."""
        passed: list[int] = []
        for count, log_offset in enumerate(sorted(self._table.log_offsets), 1):
            if not self._is_waiting(log_offset):
                passed.append(log_offset)
            if count % _CHECKED_MAX == 0:
                await asyncio.sleep(0)
        self._table.forget(passed)

    # What is handed back.

    async def _escaped(self, command: Command, peer: Peer) -> Reply:
        """The table, once nothing is being sent any more.

        Raises:
            SystemBusy: that takes too long.
        """
        self._given_at = asyncio.get_running_loop().time()
        if self._is_delivering:
            ended = self._ends.value + 1
            if not await self._ends.reach(ended, Deadline.after(_END_SECONDS)):
                raise SystemBusy("a message is still being sent to another master")
        return Reply(body=self._table.packed())

    async def take_over(self) -> None:
        """Takes over what slaves have delivered, before this master delivers anything.

        A slave that does not answer is left out: what it delivered is delivered again.
        """
        await self._merge_all(await self._acting.others())

    async def _merge_all(self, addresses: Iterable[str]) -> None:
        for address in addresses:
            try:
                count = await self._merge(address)
            except SprocketError as error:
                logger.warning("what %s has delivered elsewhere is not known: %s", address, error)
            else:
                logger.info("%d messages were delivered elsewhere by %s", count, address)

    async def _merge(self, address: str) -> int:
        deadline = Deadline.after(_END_SECONDS + 1.0)
        reply = await self._pool.call(address, EscapedMessages(), deadline=deadline)
        if reply.code == ResponseCode.REQUEST_CODE_NOT_SUPPORTED:
            return await self._merge_delays(address)
        offsets = unpacked(bytes(reply.checked().body))
        return self._table.merge(offsets, log_end=self._store.log_end)

    async def _merge_delays(self, address: str) -> int:
        """Takes over how far RocketMQ's slave has delivered the delay levels: it says no more."""
        deadline, count = Deadline.after(_END_SECONDS), 0
        try:
            reply = await self._pool.ask(address, AllDelayOffsets(), deadline=deadline)
        except ReplyError as error:
            logger.info("slave %s gives no progress of delays: %s", address, error)
            return 0
        for level, offset in DelayOffsets.decode(reply.body).offset_table.items():
            if offset > self._progress.at(level):
                count += offset - self._progress.at(level)
                self._progress.move(level, offset)
        return count
