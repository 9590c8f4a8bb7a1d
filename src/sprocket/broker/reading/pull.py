"""Pulls (codes 11 and 361), with long polling.

A pull that finds messages is answered at once. One that finds none and may wait becomes a coroutine
that waits on the arrival watermark of its queue: the suspended coroutine is the held request. It
ends with messages, at its deadline, when an operator resets its group, or when the broker stops.
Source: PullMessageProcessor, DefaultPullMessageResultHandler, PullRequestHoldService of RocketMQ
5.x.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable

from sprocket.base.deadline import Deadline
from sprocket.base.errors import SystemBusy
from sprocket.broker.dispatch import Endpoints
from sprocket.broker.reading.read_place import ReadPlaces
from sprocket.broker.settings import BrokerSettings
from sprocket.broker.tables.access import Permit, ReadAccess
from sprocket.broker.tables.offsets import ConsumerOffsets
from sprocket.broker.tables.volumes import Volumes
from sprocket.filterserver import slices
from sprocket.protocol.codes import MASTER, RequestCode, ResponseCode
from sprocket.protocol.command import Command, Reply
from sprocket.protocol.requests.pull import (
    COMMIT_OFFSET,
    SUSPEND,
    LitePullMessage,
    PullMessage,
    PullReply,
)
from sprocket.remoting.transport import Peer
from sprocket.store.reading.queue_reader import ReadFilter, ReadResult, ReadStatus
from sprocket.store.store import Store

#: No pull is held longer, whatever its client asks for, ms.
HOLD_MS_MAX = 300_000
#: A scan that finds no match runs for so long (s), and so many reads, in one turn of the loop.
_TURN_SECONDS = 0.002
_TURN_READS = 16

_FOUND = ReadStatus.FOUND
_OFFSET_RESET = "OFFSET_RESET"

_CODES = {
    ReadStatus.FOUND: ResponseCode.SUCCESS,
    ReadStatus.NO_MATCHED_MESSAGE: ResponseCode.PULL_RETRY_IMMEDIATELY,
    ReadStatus.MESSAGE_WAS_REMOVING: ResponseCode.PULL_RETRY_IMMEDIATELY,
    ReadStatus.OFFSET_FOUND_NULL: ResponseCode.PULL_NOT_FOUND,
    ReadStatus.OFFSET_OVERFLOW_ONE: ResponseCode.PULL_NOT_FOUND,
    ReadStatus.OFFSET_OVERFLOW_BADLY: ResponseCode.PULL_OFFSET_MOVED,
    ReadStatus.OFFSET_TOO_SMALL: ResponseCode.PULL_OFFSET_MOVED,
}
#: The queue has no messages: a pull from offset 0 waits for them, any other offset is wrong.
_EMPTY = (ReadStatus.NO_MESSAGE_IN_QUEUE, ReadStatus.NO_MATCHED_LOGIC_QUEUE)
#: The queue has no message at the offset yet.
_AT_THE_END = (*_EMPTY, ReadStatus.OFFSET_OVERFLOW_ONE, ReadStatus.OFFSET_FOUND_NULL)


class PullRequests:
    """Answers pulls.

    Attributes:
        count: messages pulled since the start.
    """

    def __init__(
        self,
        store: Store,
        access: ReadAccess,
        *,
        offsets: ConsumerOffsets,
        settings: BrokerSettings,
        volumes: Volumes,
        places: ReadPlaces,
    ) -> None:
        self._store = store
        self._places = places
        self._volumes = volumes
        self._access = access
        self._offsets = offsets
        self._settings = settings
        #: Long scans take turns: one of them at most continues in each turn of the loop.
        self._turns = asyncio.Semaphore(1)
        self._is_stopping = False
        self._held_count = 0
        self.count = 0
        #: Time limits of held pulls, by group, topic and queue number; in the order of arrival.
        self._held: dict[tuple[str, str, int], dict[asyncio.Timeout, None]] = {}

    def endpoints(self) -> Endpoints:
        """The endpoints, by request code."""
        return {RequestCode.PULL_MESSAGE: self.pull, RequestCode.LITE_PULL_MESSAGE: self.lite_pull}

    @property
    def held_count(self) -> int:
        """How many pulls are held."""
        return self._held_count

    def pull(self, command: Command, peer: Peer) -> Reply | Awaitable[Reply]:
        """Messages of a queue, at once or when they arrive."""
        return self._pull(command.read(PullMessage), peer)

    def lite_pull(self, command: Command, peer: Peer) -> Reply | Awaitable[Reply]:
        """The same, for lite pull consumers, which choose their queues themselves."""
        return self._pull(command.read(LitePullMessage), peer)

    def end_held(self, group: str, topic: str, queue_number: int) -> None:
        """Ends the wait of a group's held pulls of a queue, so that they are answered now."""
        for limit in self._held.get((group, topic, queue_number), ()):
            _end(limit)

    def end_held_of(self, topic: str) -> None:
        """Ends the wait of all held pulls of a topic that was deleted.

        Their clients must learn of the deletion: a new topic of the same name has other messages at
        the same offsets.
        """
        for key, limits in self._held.items():
            if key[1] == topic:
                for limit in limits:
                    _end(limit)

    def stop(self) -> None:
        """Answers all held pulls with "not found", and holds no further ones."""
        self._is_stopping = True
        for limits in self._held.values():
            for limit in limits:
                _end(limit)

    # Most pulls find messages in memory and have no filter in Python. They are answered without a
    # coroutine and a task. Only a pull that must wait for a file, or for a filter, gets one.
    def _pull(self, header: PullMessage, peer: Peer) -> Reply | Awaitable[Reply]:
        permit = self._access.permit(header, peer)
        reset = self._reset(header, permit, peer)
        if reset is not None:
            return reset
        if permit.choose is not None or self._is_cold(header, header.queue_offset, permit):
            return self._wait_and_read(header, peer, permit)
        return self._answered(
            header, peer, permit, self._read(header, header.queue_offset, permit.wants)
        )

    async def _wait_and_read(self, header: PullMessage, peer: Peer, permit: Permit) -> Reply:
        """As `_pull`, if the messages must be loaded or a filter in Python must run."""
        found = await self._chosen(header, header.queue_offset, permit)
        reply = self._answered(header, peer, permit, found)
        return reply if isinstance(reply, Reply) else await reply

    def _answered(
        self, header: PullMessage, peer: Peer, permit: Permit, found: ReadResult
    ) -> Reply | Awaitable[Reply]:
        """The reply after the first read: at once, or when messages arrive."""
        self._count(header, peer, found)
        if found.status is _FOUND:
            return self._found(found, permit)
        if self._places.sends_back():
            return self._sent_back(found, permit)
        if header.sys_flag & SUSPEND and not self._is_stopping and _may_hold(found, header):
            hold_ms = self._hold_ms(header)
            if hold_ms > 0:
                return self._hold(header, peer, found=found, deadline=Deadline.after_ms(hold_ms))
        return self._answer(found, permit, header.queue_offset)

    def _count(self, header: PullMessage, peer: Peer, found: ReadResult) -> None:
        group, topic, number = header.consumer_group, header.topic, header.queue_id
        self._offsets.pulled(
            group, topic, queue_number=number, offset=found.next_offset, address=peer.address
        )
        if header.sys_flag & COMMIT_OFFSET and header.commit_offset >= 0:
            self._offsets.commit(
                group,
                topic,
                queue_number=number,
                offset=header.commit_offset,
                address=peer.address,
            )

    def _read(self, header: PullMessage, offset: int, wants: ReadFilter | None) -> ReadResult:
        count_max, bytes_max = self._limits(header.max_msg_bytes or 0)
        found = self._store.read(
            header.topic,
            header.queue_id,
            offset,
            count_max=min(header.max_msg_nums, count_max),
            bytes_max=bytes_max,
            wants=wants,
        )
        return self._counted(header, found, offset)

    async def _chosen(self, header: PullMessage, offset: int, permit: Permit) -> ReadResult:
        """Loads a slice of the queue, reads it, and gives the messages that match the filter."""
        await self._store.load(
            header.topic, header.queue_id, offset, **self._sought(header, permit)
        )
        if permit.choose is None:
            return self._scanned(header, offset, permit)
        count_max, bytes_max = self._limits(header.max_msg_bytes or 0)
        found = self._store.read(
            header.topic,
            header.queue_id,
            offset,
            count_max=slices.COUNT_MAX,
            bytes_max=slices.BYTES_MAX,
            wants=permit.wants,
        )
        if found.count:
            most = min(header.max_msg_nums, count_max)
            found = await permit.choose(found, most, bytes_max)
        return self._counted(header, found, offset)

    def _scanned(self, header: PullMessage, offset: int, permit: Permit) -> ReadResult:
        """Reads as long as nothing matches and the next entries are in memory, for 2 ms at most."""
        time = asyncio.get_running_loop().time
        until = time() + _TURN_SECONDS
        found = self._read(header, offset, permit.wants)
        for _ in range(1, _TURN_READS):
            offset = found.next_offset
            if (
                not _is_unfinished(found)
                or time() >= until
                or self._is_cold(header, offset, permit)
            ):
                break
            found = self._read(header, offset, permit.wants)
        return found

    def _is_cold(self, header: PullMessage, offset: int, permit: Permit) -> bool:
        sought = self._sought(header, permit)
        return self._store.is_cold(header.topic, header.queue_id, offset, **sought)

    def _sought(self, header: PullMessage, permit: Permit) -> dict[str, int]:
        """How many queue entries and bytes of records a read may examine."""
        count, bytes_max = self._limits(header.max_msg_bytes or 0)
        count = max(1, min(header.max_msg_nums, count))
        if permit.wants is not None:
            count = permit.wants.entries_max
        if permit.choose is not None:
            count, bytes_max = max(count, slices.COUNT_MAX), slices.BYTES_MAX
        return {"count": count, "bytes_max": bytes_max}

    def _counted(self, header: PullMessage, found: ReadResult, offset: int) -> ReadResult:
        if self._places.is_slave:
            found = self._places.unmoved(found, offset)
        if found.count:
            self.count += found.count
            self._volumes.got(
                header.consumer_group, header.topic, count=found.count, size=found.bytes
            )
        return found

    def _limits(self, asked_bytes: int) -> tuple[int, int]:
        """The limits of messages and of bytes in one reply. A client that states its bytes may get
        more than RocketMQ's 32: a million messages in replies of 32 take mostly waiting time.
        """
        config = self._settings.config
        if asked_bytes <= 0:
            return config.pull_count_max, config.pull_bytes_max
        return config.pull_asked_count_max, min(asked_bytes, config.pull_asked_bytes_max)

    def _hold_ms(self, header: PullMessage) -> int:
        config = self._settings.config
        if config.long_polling:
            return min(header.suspend_timeout_millis, HOLD_MS_MAX)
        return config.short_polling_ms

    # While a pull is held, its topic or group may lose its permission, its subscription may change,
    # and an operator may reset the group. So permission and reset are checked before each read
    # and before the last reply. A message that does not match the filter only moves the offset
    # on: the pull waits again, and the client does not send a new one for each such message.
    async def _hold(
        self, header: PullMessage, peer: Peer, *, found: ReadResult, deadline: Deadline
    ) -> Reply:
        """Reads after each arrival, until a message matches or the deadline is over."""
        if self._held_count >= self._settings.config.held_pulls_max:
            raise SystemBusy(f"{self._held_count} pulls are held, the broker's limit")
        self._held_count += 1
        try:
            while await self._has_more(header, found, deadline):
                permit = self._access.permit(header, peer)
                if (reset := self._reset_while_held(header, permit, peer)) is not None:
                    return reset
                found = await self._chosen(header, found.next_offset, permit)
                if found.status is not ReadStatus.NO_MATCHED_MESSAGE:
                    return self._answer(found, permit, header.queue_offset)
            permit = self._access.permit(header, peer)
            reset = self._reset_while_held(header, permit, peer)
            return reset or self._answer(found, permit, header.queue_offset)
        finally:
            self._held_count -= 1

    async def _has_more(self, header: PullMessage, found: ReadResult, deadline: Deadline) -> bool:
        """Waits for messages behind a read; False at the deadline or if the wait was ended."""
        if _is_unfinished(found):
            async with self._turns:
                await asyncio.sleep(0)  # a long scan continues at once, but in turn with others
            return deadline.left() > 0 and not self._is_stopping
        key = (header.consumer_group, header.topic, header.queue_id)
        limit = asyncio.timeout_at(deadline.at)
        arrivals = self._store.arrivals(header.topic, header.queue_id)
        try:
            async with limit:
                self._held.setdefault(key, {})[limit] = None
                end = max(found.max_offset, found.next_offset)
                return await arrivals.reach(end + 1, Deadline.never())
        except TimeoutError:
            return False
        finally:
            limits = self._held[key]
            limits.pop(limit, None)
            if not limits:
                del self._held[key]

    def _reset(self, header: PullMessage, permit: Permit, peer: Peer) -> Reply | None:
        """The reply that moves a consumer to the offset of a reset; None if there is none."""
        group, topic, number = header.consumer_group, header.topic, header.queue_id
        offset = self._offsets.pull_at(
            group, topic, queue_number=number, offset=header.queue_offset, address=peer.address
        )
        return None if offset is None else self._moved(header, permit, offset)

    def _reset_while_held(self, header: PullMessage, permit: Permit, peer: Peer) -> Reply | None:
        """The same for a pull that was held when the reset came."""
        offset = self._offsets.held_at(
            header.consumer_group, header.topic, header.queue_id, address=peer.address
        )
        return None if offset is None else self._moved(header, permit, offset)

    def _moved(self, header: PullMessage, permit: Permit, offset: int) -> Reply:
        topic, number = header.topic, header.queue_id
        low, high = self._store.min_offset(topic, number), self._store.max_offset(topic, number)
        return Reply(
            _header(permit, offset, low=low, high=high),
            code=ResponseCode.PULL_OFFSET_MOVED,
            remark=_OFFSET_RESET,
        )

    def _found(self, found: ReadResult, permit: Permit) -> Reply:
        return Reply(self._header(found, permit), found.parts, 0, "FOUND")

    def _sent_back(self, found: ReadResult, permit: Permit) -> Reply:
        """The reply of a slave that sends a consumer to the master."""
        code, remark = ResponseCode.PULL_RETRY_IMMEDIATELY, found.status.value
        return Reply(self._header(found, permit), code=code, remark=remark)

    def _answer(self, found: ReadResult, permit: Permit, asked: int) -> Reply:
        """The reply for any status; `asked` is the offset that the client asked for."""
        if found.status is _FOUND:
            return self._found(found, permit)
        status, remark = found.status, found.status.value
        if status in _EMPTY:
            code = ResponseCode.PULL_OFFSET_MOVED if asked else ResponseCode.PULL_NOT_FOUND
            remark = ReadStatus.NO_MESSAGE_IN_QUEUE.value
        else:
            code = _CODES[status]
        return Reply(self._header(found, permit), code=code, remark=remark)

    def _header(self, found: ReadResult, permit: Permit) -> PullReply:
        return _header(
            permit,
            found.next_offset,
            low=found.min_offset,
            high=found.max_offset,
            broker=self._places.next_broker(found, permit.group),
        )


def _end(limit: asyncio.Timeout) -> None:
    if not limit.expired():
        limit.reschedule(asyncio.get_running_loop().time())


def _may_hold(found: ReadResult, header: PullMessage) -> bool:
    """Whether matching messages may still arrive, or may be behind those that were examined."""
    if found.status in _EMPTY:
        return header.queue_offset == 0
    return found.status in _AT_THE_END or _is_unfinished(found)


def _is_unfinished(found: ReadResult) -> bool:
    """Whether a read has matched nothing so far, and the queue has more messages."""
    return found.status is ReadStatus.NO_MATCHED_MESSAGE and found.next_offset < found.max_offset


def _header(
    permit: Permit, next_offset: int, *, low: int, high: int, broker: int = MASTER
) -> PullReply:
    return PullReply(
        suggest_which_broker_id=broker,
        next_begin_offset=next_offset,
        min_offset=low,
        max_offset=high,
        topic_sys_flag=permit.topic.topic_sys_flag,
        group_sys_flag=permit.group.group_sys_flag,
    )
