"""Reading ranges of queues from brokers: exactly [start, end), or an error that says where.

The next pull is always on the way while the answer to the last is being decoded. Broken
connections, restarting and busy brokers are waited for, up to a limit without progress; the
brokers' addresses are looked up anew after each failure. Blocking, for Spark's tasks.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Mapping
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
#: How much longer than that an answer may take, seconds.
_ANSWER_S = 15.0
_PAUSE_FIRST_S = 0.1
_PAUSE_LONGEST_S = 2.0

#: Records are gathered to so many bytes or offsets before they are decoded: fewer would waste the
#: set-up of each batch, more would only take memory.
_GATHER_BYTES = 2 * 1024 * 1024
_GATHER_RECORDS = 8192


class Chunk(NamedTuple):
    """Records as a broker gave them, for offsets [start, end); some may lie outside."""

    records: memoryview
    start: int
    end: int


class Fetcher:
    """Fetches ranges for one task.

    Args:
        options: how to read.
        addresses: brokers' addresses by name, as known when the read was planned.
    """

    def __init__(self, options: ReadOptions, addresses: Mapping[str, str]) -> None:
        self._options = options
        self._filter = options.filter
        #: Brokers that do not filter by SQL: they give everything, and whoever decodes chooses.
        self._unfiltered: set[str] = set()
        self._pool = ConnectionPool(
            options.nameservers,
            signer=options.signer,
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

    def chunks(self, one: Range) -> Iterator[Chunk]:
        """The records of a range, in order, as many at a time as are worth decoding.

        Raises:
            ReadFailed: messages are gone, or did not come in time, or the broker refused.
        """
        return gathered(self._answers(one))

    def _answers(self, one: Range) -> Iterator[Chunk]:
        """What each pull gives.

        The next pull goes out before the caller decodes this answer, so that broker and decoder
        work at the same time. A failure throws away the pull on its way, and the loop asks again
        from the last offset that was given out: so nothing is read twice, and nothing is left out.
        """
        position = one.start
        asked: tuple[BlockingConnection, int] | None = None
        patience = _Patience(self._options.pull_timeout_ms / 1000)
        while position < one.end:
            try:
                wire, number = asked or self._ask(one, position)
                asked = None
                reply = wire.receive(number, timeout_s=_HOLD_MS / 1000 + _ANSWER_S)
                step = self._step(one, position, read_pull(reply))
            except (TransportError, ReplyError, RouteNotFound, ProtocolError) as error:
                asked = None
                self._recover(one, position, error, patience)
                continue
            if step.end == position:
                patience.spend(one, position, "no message has come")
                continue
            patience.renew()
            position = step.end
            if position < one.end:
                asked = self._ask_ahead(one, position)
            if step.records:
                yield step

    def _ask(self, one: Range, position: int) -> tuple[BlockingConnection, int]:
        connection = self._pool.to(one.queue.broker)
        return connection, connection.send(self._pull(one, position))

    def _ask_ahead(self, one: Range, position: int) -> tuple[BlockingConnection, int] | None:
        try:
            return self._ask(one, position)
        except TransportError:
            return None  # met again, and dealt with, when the answer is wanted

    def _pull(self, one: Range, position: int) -> PullMessage:
        options = self._options
        is_unfiltered = one.queue.broker in self._unfiltered
        return PullMessage(
            consumer_group=options.group,
            topic=one.queue.topic,
            queue_id=one.queue.number,
            queue_offset=position,
            max_msg_nums=min(options.pull_records, one.end - position),
            sys_flag=SUBSCRIPTION | SUSPEND,
            suspend_timeout_millis=_HOLD_MS,
            subscription=ALL if is_unfiltered else self._filter.expression,
            expression_type=TagFilter.kind if is_unfiltered else self._filter.kind,
            max_msg_bytes=options.pull_bytes,
            bname=one.queue.broker,
        )

    def _step(self, one: Range, position: int, answer: PullAnswer) -> Chunk:
        """What an answer brings: records, or a step forward without any, or none (end = start)."""
        after = answer.next_offset
        is_found = answer.status is PullStatus.FOUND
        if is_found or (answer.status is PullStatus.NO_MATCHED and after > position):
            if after <= position:
                raise ReadFailed(
                    f"{one.queue} at offset {position}: the broker gave messages and "
                    f"wants to go on at {after}"
                )
            return Chunk(memoryview(answer.records), position, after)
        if position < answer.min_offset:
            return self._jump(one, position, min(answer.min_offset, one.end), answer)
        if not self._options.fails_on_loss and answer.max_offset < one.end:
            return self._jump(one, position, one.end, answer)
        return Chunk(memoryview(b""), position, position)

    def _jump(self, one: Range, position: int, after: int, answer: PullAnswer) -> Chunk:
        """Continues behind messages that are gone, if that is allowed."""
        report_loss(
            self._options,
            one.queue,
            f"offsets [{position}, {after}) are gone: the broker has "
            f"[{answer.min_offset}, {answer.max_offset})",
        )
        return Chunk(memoryview(b""), position, after)

    def _recover(
        self, one: Range, position: int, error: SprocketError, patience: _Patience
    ) -> None:
        """Pauses after a failure that may pass; raises where it will not."""
        if self._cannot_filter(one.queue, error):
            self._unfiltered.add(one.queue.broker)
            return
        if not may_pass(error):
            raise ReadFailed(f"{one.queue} at offset {position}: {error}") from error
        self._pool.hang_up_on(one.queue.broker)
        patience.spend(one, position, str(error))
        self._look_up(one.queue)

    def _cannot_filter(self, queue: QueueId, error: SprocketError) -> bool:
        """Whether a broker may have refused to filter by SQL (its `enablePropertyFilter` is false).

        RocketMQ has no code of its own for that: it answers code 1, as for any failure inside the
        broker. Asking once more for everything is right in both cases, as the task applies the
        condition anyway; if the broker fails for another reason, that second pull fails as well.
        """
        return (
            isinstance(error, SystemFailure)
            and self._filter.kind != TagFilter.kind
            and queue.broker not in self._unfiltered
        )

    def _look_up(self, queue: QueueId) -> None:
        """Asks where the broker is now; where nobody knows, the old address stays."""
        try:
            self._pool.route(queue.topic)
        except SprocketError as error:
            logger.info("no route of %s: %s", queue.topic, error)


def gathered(chunks: Iterator[Chunk]) -> Iterator[Chunk]:
    """Neighbouring chunks joined until they are worth decoding."""
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
    """How long a range may go without progress, and the pauses meanwhile."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self.renew()

    def renew(self) -> None:
        """Progress was made."""
        self._end = time.monotonic() + self._seconds
        self._pauses = pauses(_PAUSE_FIRST_S, _PAUSE_LONGEST_S)

    def spend(self, one: Range, position: int, why: str) -> None:
        """Pauses; raises ReadFailed when there is no time left."""
        left = self._end - time.monotonic()
        if left <= 0:
            raise ReadFailed(
                f"{one.queue} at offset {position}, of {one}: {why}; nothing more for "
                f"{self._seconds:g} s (option pullTimeoutMs)"
            )
        time.sleep(min(left, next(self._pauses)))
