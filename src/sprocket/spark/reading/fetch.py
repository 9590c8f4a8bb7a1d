"""Fetches ranges of queues from brokers: exactly [start, end), or an error with the offset.

The next pull is always pending while the reply to the last one is decoded; with small ranges, the
first pulls of several that follow. If a connection breaks, or a broker restarts or is busy, it
tries again, up to a limit of time without progress; the brokers' addresses are looked up again
after each failure. Blocking, for Spark's tasks.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Iterator, Mapping
from types import TracebackType
from typing import NamedTuple, Self

from sprocket.base.backoff import pauses
from sprocket.base.errors import (
    ProtocolError,
    ReplyError,
    RouteNotFound,
    SprocketError,
    SystemFailure,
    TransportError,
)
from sprocket.clientcore.attempts import may_pass
from sprocket.clientcore.replies import PullAnswer, PullStatus, read_pull
from sprocket.filter.tags import ALL, TagFilter
from sprocket.message.queue import QueueId
from sprocket.protocol.requests.pull import SUBSCRIPTION, SUSPEND, PullMessage
from sprocket.spark.brokers.connection import BlockingConnection
from sprocket.spark.brokers.pool import ConnectionPool
from sprocket.spark.options.loss import ReadFailed, report_loss
from sprocket.spark.options.options import ReadOptions
from sprocket.spark.reading.ranges import Range

logger = logging.getLogger(__name__)

#: How long a broker may hold a pull at the end of a queue, ms.
_HOLD_MS = 5_000
#: How much longer than that a reply may take, seconds.
_ANSWER_S = 15.0
_PAUSE_FIRST_S = 0.1
_PAUSE_LONGEST_S = 2.0

#: This many bytes or offsets are collected before they are decoded: for fewer, the set-up of a
#: batch costs too much; more would only take memory.
_GATHER_BYTES = 2 * 1024 * 1024
_GATHER_RECORDS = 8192
#: So many following ranges are asked for ahead, if they are at the same broker and all of them have
#: few records: each of many small queues would otherwise cost a round trip.
AHEAD_MAX = 8

#: A pull that is under way: its connection, and its number there.
_Asked = tuple[BlockingConnection, int]


class Chunk(NamedTuple):
    """Records from a broker, for offsets [start, end); some may be outside that range."""

    records: memoryview
    start: int
    end: int


class Fetcher:
    """Fetches ranges for one task.

    Args:
        options: how to read.
        addresses: brokers' addresses by name, from when the read was planned.
    """

    def __init__(self, options: ReadOptions, addresses: Mapping[str, str]) -> None:
        self._options = options
        self._filter = options.filter
        #: Brokers that do not filter by SQL: they return all messages, and the decoder filters.
        self._unfiltered: set[str] = set()
        #: Pulls of the first records of ranges that follow.
        self._ahead: dict[Range, _Asked] = {}
        self._pool = ConnectionPool(
            options.nameservers,
            signer=options.signer,
            tls=options.tls,
            addresses=addresses,
            timeout_s=_ANSWER_S,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._pool.close()

    def chunks(self, wanted: Range, following: Iterable[Range] = ()) -> Iterator[Chunk]:
        """The records of a range, in order, in chunks large enough to decode.

        Args:
            following: the ranges that are asked for next.

        Raises:
            ReadFailed: messages are gone, or did not come in time, or the broker refused.
        """
        return gathered(self._answers(wanted, _few(wanted, following)))

    def _answers(self, wanted: Range, following: list[Range]) -> Iterator[Chunk]:
        """The result of each pull.

        The next pull is sent before the caller decodes this reply, so that broker and decoder work
        at the same time. After a failure the pending pull is dropped, and the loop continues at the
        offset after the last yielded chunk: so no message is read twice, and none is left out.
        """
        position = wanted.start
        asked = self._ahead.pop(wanted, None)
        patience = _Patience(self._options.pull_timeout_ms / 1000)
        while position < wanted.end:
            try:
                wire, number = asked or self._ask(wanted, position)
                asked = None
                self._ask_for(following)
                reply = wire.receive(number, timeout_s=_HOLD_MS / 1000 + _ANSWER_S)
                step = self._step(wanted, position, read_pull(reply))
            except (TransportError, ReplyError, RouteNotFound, ProtocolError) as error:
                asked = None
                self._recover(wanted, position, error, patience)
                continue
            if step.end == position:
                patience.spend(wanted, position, "no message has come")
                continue
            patience.renew()
            position = step.end
            if position < wanted.end:
                asked = self._ask_ahead(wanted, position)
            if step.records:
                yield step

    def _ask(self, wanted: Range, position: int) -> _Asked:
        connection = self._pool.to(wanted.queue.broker)
        return connection, connection.send(self._pull(wanted, position))

    def _ask_for(self, following: list[Range]) -> None:
        """Asks for ranges that follow, unless that was done."""
        for one in following:
            if one not in self._ahead:
                asked = self._ask_ahead(one, one.start)
                if asked is not None:
                    self._ahead[one] = asked
        following.clear()

    def _ask_ahead(self, wanted: Range, position: int) -> _Asked | None:
        try:
            return self._ask(wanted, position)
        except TransportError:
            return None  # the next `_ask` raises it again, where it is treated

    def _pull(self, wanted: Range, position: int) -> PullMessage:
        options = self._options
        is_unfiltered = wanted.queue.broker in self._unfiltered
        return PullMessage(
            consumer_group=options.group,
            topic=wanted.queue.topic,
            queue_id=wanted.queue.number,
            queue_offset=position,
            max_msg_nums=min(options.pull_records, wanted.end - position),
            sys_flag=SUBSCRIPTION | SUSPEND,
            suspend_timeout_millis=_HOLD_MS,
            subscription=ALL if is_unfiltered else self._filter.expression,
            expression_type=TagFilter.kind if is_unfiltered else self._filter.kind,
            max_msg_bytes=options.pull_bytes,
            bname=wanted.queue.broker,
        )

    def _step(self, wanted: Range, position: int, answer: PullAnswer) -> Chunk:
        """The chunk of a reply: with records, or a step forward without any, or empty."""
        after = answer.next_offset
        is_found = answer.status is PullStatus.FOUND
        if is_found or (answer.status is PullStatus.NO_MATCHED and after > position):
            if after <= position:
                raise ReadFailed(
                    f"{wanted.queue} at offset {position}: the broker returned messages, but the "
                    f"next offset is {after}"
                )
            return Chunk(memoryview(answer.records), position, after)
        if position < answer.min_offset:
            return self._jump(wanted, position, min(answer.min_offset, wanted.end), answer)
        if not self._options.fails_on_loss and answer.max_offset < wanted.end:
            return self._jump(wanted, position, wanted.end, answer)
        return Chunk(memoryview(b""), position, position)

    def _jump(self, wanted: Range, position: int, after: int, answer: PullAnswer) -> Chunk:
        """Continues behind messages that are gone, if the options allow it."""
        report_loss(
            self._options,
            wanted.queue,
            f"offsets [{position}, {after}) are gone: the broker has "
            f"[{answer.min_offset}, {answer.max_offset})",
        )
        return Chunk(memoryview(b""), position, after)

    def _recover(
        self, wanted: Range, position: int, error: SprocketError, patience: _Patience
    ) -> None:
        """Pauses after a failure that may pass; raises for any other."""
        is_unfiltered = self._cannot_filter(wanted.queue, error)
        if is_unfiltered or may_pass(error):
            self._hang_up(wanted.queue.broker)
        if is_unfiltered:
            self._unfiltered.add(wanted.queue.broker)
            return
        if not may_pass(error):
            raise ReadFailed(f"{wanted.queue} at offset {position}: {error}") from error
        patience.spend(wanted, position, str(error))
        self._look_up(wanted.queue)

    def _hang_up(self, broker: str) -> None:
        """Drops a connection, and what is under way there: it will be asked for again."""
        self._pool.hang_up_on(broker)
        self._ahead = {one: it for one, it in self._ahead.items() if one.queue.broker != broker}

    def _cannot_filter(self, queue: QueueId, error: SprocketError) -> bool:
        """Whether a broker may have refused to filter by SQL (its `enablePropertyFilter` is false).

        RocketMQ has no special code for that: it replies with code 1, as for any failure inside the
        broker. A second pull without the condition is right in both cases, because the task applies
        the condition anyway; if the broker fails for another reason, that pull fails as well.
        """
        return (
            isinstance(error, SystemFailure)
            and self._filter.kind != TagFilter.kind
            and queue.broker not in self._unfiltered
        )

    def _look_up(self, queue: QueueId) -> None:
        """Requests the broker's present address; if that fails, the old one stays."""
        try:
            self._pool.route(queue.topic)
        except SprocketError as error:
            logger.info("no route of %s: %s", queue.topic, error)


def _few(wanted: Range, following: Iterable[Range]) -> list[Range]:
    """Those of the following ranges that are asked for ahead: few records altogether."""
    found: list[Range] = []
    records = wanted.records
    for one in following:
        records += one.records
        is_elsewhere = one.queue.broker != wanted.queue.broker
        if is_elsewhere or records > _GATHER_RECORDS or len(found) == AHEAD_MAX:
            break
        found.append(one)
    return found


def gathered(chunks: Iterator[Chunk]) -> Iterator[Chunk]:
    """Chunks, joined with the following ones until they are large enough to decode."""
    parts: list[Chunk] = []
    size = 0
    for chunk in chunks:
        parts.append(chunk)
        size += len(chunk.records)
        if size >= _GATHER_BYTES or chunk.end - parts[0].start >= _GATHER_RECORDS:
            yield _joined(parts)
            parts, size = [], 0
    if parts:
        yield _joined(parts)


def _joined(parts: list[Chunk]) -> Chunk:
    if len(parts) == 1:
        return parts[0]
    records = memoryview(b"".join(part.records for part in parts))
    return Chunk(records, parts[0].start, parts[-1].end)


class _Patience:
    """How long a range may be without progress, and the pauses meanwhile."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self.renew()

    def renew(self) -> None:
        """Starts the time again after progress."""
        self._end = time.monotonic() + self._seconds
        self._pauses = pauses(_PAUSE_FIRST_S, _PAUSE_LONGEST_S)

    def spend(self, wanted: Range, position: int, why: str) -> None:
        """Pauses; raises ReadFailed if there is no time left."""
        left = self._end - time.monotonic()
        if left <= 0:
            raise ReadFailed(
                f"{wanted.queue} at offset {position}, of {wanted}: {why}; no progress for "
                f"{self._seconds:g} s (option pullTimeoutMs)"
            )
        time.sleep(min(left, next(self._pauses)))
