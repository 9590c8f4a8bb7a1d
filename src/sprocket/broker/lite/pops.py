"""Pops of lite topics (200070): a client gets messages of those that it subscribes.

Source: PopLiteMessageProcessor, PopLiteLongPollingService of RocketMQ 5.5.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from itertools import islice

from sprocket.base.deadline import Deadline
from sprocket.base.ports import Clock
from sprocket.broker.dispatch import Endpoints
from sprocket.broker.lite.held import HeldLitePops
from sprocket.broker.lite.ready import ReadyLites
from sprocket.broker.lite.rules import LiteRules
from sprocket.broker.lite.subscriptions import LiteClient, LiteSubscriptions
from sprocket.broker.lite.taking import QUEUE, LitePopAsk, LiteTaking
from sprocket.broker.pop.access import PopAccess
from sprocket.broker.pop.journal import OrderRow, PopJournal
from sprocket.broker.sending.acknowledgement import Acknowledgement
from sprocket.broker.settings import BrokerSettings
from sprocket.broker.tables.offsets import ConsumerOffsets
from sprocket.broker.tables.volumes import Volumes
from sprocket.message.lite import LiteName
from sprocket.message.pop_handle import ORDER_QUEUE
from sprocket.protocol.codes import RequestCode, ResponseCode
from sprocket.protocol.command import Buffer, Command, Reply
from sprocket.protocol.requests.lite import PopLite, PopLiteReply
from sprocket.remoting.transport import Peer

#: No pop is held longer, whatever its client asks for, ms.
HOLD_MS_MAX = 300_000
#: A wait may end so much before its deadline, since clocks have a resolution; then it is over, s.
_OVER_SECONDS = 0.000_1
#: Lite topics that one pop reads before others run on the loop, and that it loads at most.
_READ_AT_ONCE = 64
_FOUND, _NOT_FOUND = "FOUND", "NO_MESSAGE_IN_QUEUE"


@dataclass(slots=True)
class PoppedLites:
    """What a pop found.

    Attributes:
        counts: how often each message came before.
        rows, starts, names: of each lite topic its row, and the offset from which it was read.
        end: log offset behind what was noted of them.
    """

    pop_ms: int
    parts: list[Buffer] = field(default_factory=list)
    counts: list[int] = field(default_factory=list)
    rows: list[OrderRow] = field(default_factory=list)
    starts: list[int] = field(default_factory=list)
    names: list[LiteName] = field(default_factory=list)
    size: int = 0
    end: int = 0


class LitePopRequests:
    """Answers pops of lite topics.

    Args:
        alarm: is set when something is due earlier than all before.
    """

    def __init__(
        self,
        subscriptions: LiteSubscriptions,
        ready: ReadyLites,
        taking: LiteTaking,
        journal: PopJournal,
        *,
        rules: LiteRules,
        access: PopAccess,
        acknowledgement: Acknowledgement,
        offsets: ConsumerOffsets,
        volumes: Volumes,
        held: HeldLitePops,
        settings: BrokerSettings,
        clock: Clock,
        alarm: asyncio.Event,
    ) -> None:
        self._subscriptions = subscriptions
        self._ready = ready
        self._taking = taking
        self._journal = journal
        self._rules = rules
        self._access = access
        self._acknowledgement = acknowledgement
        self._offsets = offsets
        self._volumes = volumes
        self._held = held
        self._settings = settings
        self._clock = clock
        self._alarm = alarm

    def endpoints(self) -> Endpoints:
        """The endpoint, by request code."""
        return {RequestCode.POP_LITE_MESSAGE: self.pop}

    async def pop(self, command: Command, peer: Peer) -> Reply:
        """Takes messages, or waits until there are some.

        Raises:
            NoPermission, TopicNotFound, GroupNotFound, InvalidParameter: see `LiteRules.check_pop`.
            ReplyError, StoreError, DiskFull: what is given out cannot be noted.
        """
        header = command.read(PopLite)
        deadline = Deadline.after_ms(min(header.poll_time, HOLD_MS_MAX))
        while True:
            self._rules.check_pop(header)
            self._access.check_invisible(header.invisible_time)
            client = self._client(header)
            if client is not None:
                client.asked_ms = self._clock.now_ms()
                found = await self._take(client, header)
                if found.parts:
                    return await self._reply(header, found)
                if self._ready.of(client):
                    continue  # it became ready meanwhile
            if deadline.left() < _OVER_SECONDS or self._held.is_stopped:
                return self._empty(header, ResponseCode.POLLING_TIMEOUT)
            if self._held.is_full(header.client_id):
                return self._empty(header, ResponseCode.POLLING_FULL)
            await self._held.wait(header.client_id, deadline, lambda: self._lost(header))

    def _client(self, header: PopLite) -> LiteClient | None:
        client = self._subscriptions.find(header.client_id)
        if client is None or (client.group, client.parent) != (
            header.consumer_group, header.topic,
        ):  # fmt: skip
            return None
        return client

    def _lost(self, header: PopLite) -> None:
        """Wakes another pop: the one that was woken is gone."""
        client = self._client(header)
        for name in [] if client is None else list(islice(self._ready.of(client), _READ_AT_ONCE)):
            self._held.wake(self._ready.mark(header.consumer_group, name))

    async def _take(self, client: LiteClient, header: PopLite) -> PoppedLites:
        if not self._journal.has_orders:
            await self._journal.begin_orders()
        again = self._given_before(client, header)
        for name in [*again, *islice(self._ready.of(client), header.max_msg_num)]:
            await self._taking.load(client.group, name, header.max_msg_num)
        found = PoppedLites(0)
        while names := [*again, *islice(self._ready.of(client), _READ_AT_ONCE)]:
            again = ()
            voids = (
                self._offsets.popped.void_ms(client.group, name.queue, QUEUE) for name in names
            )
            found.pop_ms = max(self._clock.now_ms(), *(void_ms + 1 for void_ms in voids))
            self._take_from(client, header, names, found)
            if found.rows:
                self._give(client, header, found)
                break
            await asyncio.sleep(0)
        return found

    def _given_before(self, client: LiteClient, header: PopLite) -> tuple[LiteName, ...]:
        """The lite topics of a pop whose reply did not reach the client, which asks again."""
        attempt, names = client.last_attempt or (None, ())
        return names if attempt is not None and attempt == header.attempt_id else ()

    def _take_from(
        self, client: LiteClient, header: PopLite, names: list[LiteName], found: PoppedLites
    ) -> None:
        """Reads lite topics until there is enough; those with nothing are no longer ready."""
        for name in dict.fromkeys(names):
            count = header.max_msg_num - len(found.parts)
            size = self._settings.config.pull_bytes_max - found.size
            if count <= 0 or size <= 0:
                return
            if not client.has_all and name.lite not in client.lites:
                self._ready.unmark(client, name)
                continue
            taken = self._taking.take(
                LitePopAsk(
                    client.group, name, count, size, found.pop_ms, header.invisible_time,
                    header.attempt_id,
                )
            )  # fmt: skip
            if taken.row is None:
                self._ready.unmark(client, name)
                if taken.blocked_ms is not None:
                    self._block(client.group, name, taken.blocked_ms)
                continue
            found.parts += taken.messages
            found.counts += taken.counts
            found.rows.append(taken.row)
            found.starts.append(taken.start)
            found.names.append(name)
            found.size += taken.size

    # Both the rows and the offsets of groups that had none are changed in one step. The offset
    # stays at the first message until that is acknowledged.
    def _give(self, client: LiteClient, header: PopLite, found: PoppedLites) -> None:
        found.end = self._journal.keep_orders(found.rows).end
        for name, start in zip(found.names, found.starts, strict=True):
            if self._offsets.committed(client.group, name.queue, QUEUE) != start:
                self._offsets.pop_from(client.group, name.queue, queue_number=QUEUE, offset=start)
            self._ready.unmark(client, name)
            self._block(client.group, name, found.pop_ms + header.invisible_time)
        if header.attempt_id is not None:
            client.last_attempt = (header.attempt_id, tuple(found.names))
        self._volumes.got(client.group, client.parent, count=len(found.parts), size=found.size)

    def _block(self, group: str, name: LiteName, until_ms: int) -> None:
        if self._ready.block(group, name, until_ms):
            self._alarm.set()

    async def _reply(self, header: PopLite, found: PoppedLites) -> Reply:
        reply = PopLiteReply(
            pop_time=found.pop_ms,
            invisible_time=header.invisible_time,
            revive_qid=ORDER_QUEUE,
            order_count_info=";".join(map(str, found.counts)),
        )
        await self._acknowledgement.safe_up_to(found.end)
        return Reply(reply, found.parts, ResponseCode.SUCCESS, _FOUND)

    def _empty(self, header: PopLite, code: int) -> Reply:
        reply = PopLiteReply(
            pop_time=self._clock.now_ms(),
            invisible_time=header.invisible_time,
            revive_qid=ORDER_QUEUE,
            order_count_info="",
        )
        return Reply(reply, b"", code, _NOT_FOUND)
