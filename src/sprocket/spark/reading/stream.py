"""Reads topics as a stream: decides which offsets each micro-batch reads.

Spark's checkpoint is the only truth: offsets come from it and are saved in it. A new queue is read
from its first message; a queue whose broker is away does not advance until it is back. A
micro-batch is read as a batch is (`read`), with the same rows each time.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from functools import partial

from sprocket.base.errors import SprocketError
from sprocket.message.queue import QueueId
from sprocket.spark.brokers.cluster import ClusterMetadata
from sprocket.spark.brokers.pool import ConnectionPool
from sprocket.spark.options.loss import report_loss
from sprocket.spark.options.options import READER_GROUP, StreamOptions
from sprocket.spark.options.positions import LATEST, QueuePositions
from sprocket.spark.reading.plan import Offsets, Planner
from sprocket.spark.reading.ranges import between, limit, records_in
from sprocket.spark.reading.read import SharePartition

logger = logging.getLogger(__name__)

#: Spark asks again at once if there is nothing new; this pause costs little and spares the brokers.
_IDLE_S = 0.02


class StreamPlan:
    """Decides the offsets of micro-batches; kept in one process during the whole query.

    Args:
        options: the user's options.
    """

    def __init__(self, options: StreamOptions) -> None:
        self._options = options
        self._pool = ConnectionPool(options.nameservers, signer=options.signer)
        self._cluster = ClusterMetadata(self._pool)
        self._planner = Planner(self._cluster, options)
        self._queues: list[QueueId] = []
        self._queues_until = 0.0
        #: The ends of an "available now" query; None for any other.
        self._target: Offsets | None = None
        self._committed: Offsets = {}
        self._triggered_at = time.monotonic()
        #: The ends of all queues when they were last read.
        self.latest: Offsets = {}

    def close(self) -> None:
        """Closes all connections."""
        self._pool.close()

    def initial(self) -> Offsets:
        """The first offsets of a query without a checkpoint."""
        queues = self._planner.queues()
        return self._planner.starting(queues, otherwise=QueuePositions("startingOffsets", LATEST))

    def set_target(self) -> None:
        """Limits the query to the messages that exist now."""
        self._target = self._planner.retried(self._ends)

    def next(self, start: Mapping[QueueId, int], records_max: int | None) -> Offsets:
        """The end of the micro-batch that begins at `start`; `start` if there is nothing to read.

        Args:
            records_max: most offsets that it may have; None for no limit.

        Raises:
            ReadFailed: a queue ends before its start, and loss is not allowed.
            SprocketError: the cluster cannot be reached, and this is an "available now" query,
                which would otherwise end too early.
        """
        self._commit(start)
        ends = self._ends_now(start)
        start = self._with_new(start, ends)
        for queue, offset in start.items():
            if ends.setdefault(queue, offset) < offset:
                lost = f"it ends at {ends[queue]}, and has been read up to {offset}"
                report_loss(self._options, queue, lost)
        waiting = records_in(between(start, ends))
        if waiting == 0 or self._is_too_little(waiting):
            time.sleep(_IDLE_S)
            return {queue: min(offset, ends[queue]) for queue, offset in start.items()}
        self._triggered_at = time.monotonic()
        return ends if records_max is None else limit(start, ends, records_max)

    def partitions(self, start: Offsets, end: Offsets) -> list[SharePartition]:
        """The tasks of a micro-batch."""
        self._know(end)
        shares = self._planner.shares(between(self._with_new(start, end), end))
        return [SharePartition(share, self._cluster.addresses) for share in shares]

    def done(self, offsets: Offsets) -> None:
        """Reports that Spark has written all messages before these offsets."""
        self._commit(offsets)

    def _with_new(self, start: Mapping[QueueId, int], ends: Offsets) -> Offsets:
        """The start, with the first offset of each queue that is missing from it."""
        new = sorted(set(ends) - set(start))
        if not new:
            return dict(start)
        return {**start, **self._planner.retried(lambda: self._cluster.earliest(new))}

    def _is_too_little(self, waiting: int) -> bool:
        """Whether to wait for more messages, by the user's options."""
        if self._target is not None or waiting >= self._options.trigger_records_min:
            return False
        waited_ms = (time.monotonic() - self._triggered_at) * 1000
        return waited_ms < self._options.trigger_delay_ms

    def _ends_now(self, start: Mapping[QueueId, int]) -> Offsets:
        if self._target is not None:
            ends = self._planner.retried(self._ends)
            return {
                queue: min(ends[queue], max(target, start.get(queue, 0)))
                for queue, target in self._target.items()
                if queue in ends
            }
        try:
            return self._ends(skips_absent=True)
        except SprocketError as error:
            logger.warning("no new offsets: %s", error)
            return {}

    def _ends(self, *, skips_absent: bool = False) -> Offsets:
        """The ends of all queues; the list of queues is refreshed regularly.

        Args:
            skips_absent: leaves out the queues of brokers that do not reply.
        """
        now = time.monotonic()
        if now >= self._queues_until:
            self._queues = self._planner.queues()
            self._queues_until = now + self._options.route_refresh_ms / 1000
        by_broker: dict[str, list[QueueId]] = {}
        for queue in self._queues:
            by_broker.setdefault(queue.broker, []).append(queue)
        found: Offsets = {}
        for broker, queues in by_broker.items():
            try:
                found.update(self._cluster.latest(queues))
            except SprocketError as error:
                self._queues_until = 0.0
                if not skips_absent:
                    raise
                logger.warning("the offsets of broker %s cannot be read: %s", broker, error)
        self.latest.update(found)
        return found

    def _know(self, queues: Mapping[QueueId, int]) -> None:
        """Looks up the addresses of brokers that are not known yet, after a restart."""
        for topic in sorted(
            {queue.topic for queue in queues if queue.broker not in self._cluster.addresses}
        ):
            try:
                self._planner.retried(partial(self._cluster.readable, topic))
            except SprocketError as error:
                logger.warning("topic %s cannot be found: %s", topic, error)

    def _commit(self, offsets: Mapping[QueueId, int]) -> None:
        """Commits the group's offsets to brokers. Only people read them, so a failure is logged."""
        if self._options.group == READER_GROUP:
            return
        moved = {
            queue: offset
            for queue, offset in offsets.items()
            if self._committed.get(queue) != offset and queue.broker in self._cluster.addresses
        }
        if not moved:
            return
        try:
            self._cluster.commit(self._options.group, moved)
            self._committed.update(moved)
        except SprocketError as error:
            logger.info("group %s: offsets not committed: %s", self._options.group, error)
