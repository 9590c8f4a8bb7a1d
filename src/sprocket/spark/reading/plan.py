"""Plans a read: chooses topics, turns positions into offsets, and offsets into shares.

Batch and streaming reads have this in common. It asks the cluster and decides; the arithmetic is in
`ranges`.
"""

from __future__ import annotations

import logging
import os
import re
import time
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import TypeVar

from sprocket.base.errors import ConfigError, ReplyError, SprocketError, TransportError
from sprocket.clientcore.attempts import may_pass
from sprocket.message.queue import QueueId
from sprocket.message.topic import SYSTEM_PREFIX, is_system_topic
from sprocket.spark.brokers.cluster import ClusterMetadata
from sprocket.spark.brokers.pool import ConnectionPool
from sprocket.spark.checkpoints import offsets_of_query
from sprocket.spark.options.loss import ReadFailed
from sprocket.spark.options.options import BatchOptions, ReadOptions
from sprocket.spark.options.positions import EARLIEST, LATEST, PositionKind, QueuePositions
from sprocket.spark.reading.pushdown import EVERYTHING, PushedConditions
from sprocket.spark.reading.ranges import Range, Share, between, cut, records_in, share_count
from sprocket.spark.reading.recognition import QueueChange, find_changes, report_changes

logger = logging.getLogger(__name__)

T = TypeVar("T")
Offsets = dict[QueueId, int]


class Planner:
    """Plans reads of one cluster.

    Args:
        cluster: the cluster to ask.
        options: the user's options.
    """

    def __init__(self, cluster: ClusterMetadata, options: ReadOptions) -> None:
        self._cluster = cluster
        self._options = options

    def queues(self) -> list[QueueId]:
        """Every queue that the options choose and that exists now, sorted.

        Raises:
            RouteNotFound: a topic in the options does not exist.
            ConfigError: a queue in the options does not exist.
        """
        options = self._options
        if options.queues:
            there = self._queues_of(sorted({queue.topic for queue in options.queues}))
            missing = sorted(options.queues - set(there))
            if missing:
                raise ConfigError(f"option assign names {missing[0]}, which does not exist")
            return sorted(options.queues)
        names: Iterable[str] = options.topics
        if options.pattern:
            names = matching(options.pattern, self.retried(self._cluster.topics))
        return self._queues_of(names)

    def starting(self, queues: Iterable[QueueId], *, otherwise: QueuePositions) -> Offsets:
        """The first offset to read in each queue; options with a time take precedence."""
        options = self._options
        positions = options.starting_time or options.starting_times or options.starting or otherwise
        queues = tuple(queues)
        if positions.checkpoint is not None:
            positions = offsets_of_query(positions.option, positions.checkpoint, queues)
        offsets, earliest, latest = self._resolve(positions, queues)
        changes = self._changes(positions, queues)
        offsets.update((queue, change.begin) for queue, change in changes.items())
        for queue, offset in offsets.items():
            if positions.of(queue).kind is PositionKind.TIME and offset >= latest[queue]:
                self._nothing_since(positions, queue)
            elif not earliest[queue] <= offset <= latest[queue]:
                lost = f"{positions.option}: {queue} has offsets [{earliest[queue]}, "
                self._lost(f"{lost}{latest[queue]}), and {offset} was asked for")
                # A queue that ends before the offset is another one, of which nothing was read.
                offsets[queue] = earliest[queue]
        return offsets

    def shares(self, ranges: list[Range]) -> list[Share]:
        """Cuts ranges into the shares of the tasks."""
        options = self._options
        count = share_count(
            records_in(ranges),
            at_least=options.partitions_min,
            records_max=options.partition_records_max,
            cores=os.cpu_count() or 1,
        )
        return cut(ranges, count)

    def _queues_of(self, topics: Iterable[str]) -> list[QueueId]:
        found = [self.retried(partial(self._cluster.readable, topic)) for topic in topics]
        return sorted(queue for queues in found for queue in queues)

    def _resolve(
        self, positions: QueuePositions, queues: Iterable[QueueId]
    ) -> tuple[Offsets, Offsets, Offsets]:
        """The offsets for positions, and each queue's first offset and end."""
        wanted = {queue: positions.of(queue) for queue in queues}
        positions.check_names(set(wanted))
        times = {queue: at.value for queue, at in wanted.items() if at.kind is PositionKind.TIME}
        earliest = self.retried(lambda: self._cluster.earliest(wanted))
        by_time = self.retried(lambda: self._cluster.at(times))
        latest = self.retried(lambda: self._cluster.latest(wanted))
        of_group = [queue for queue, at in wanted.items() if at.kind is PositionKind.COMMITTED]
        group = positions.group or self._options.group
        committed = self.retried(lambda: self._cluster.committed(group, of_group))
        offsets = {}
        for queue, at in wanted.items():
            by_kind = {
                PositionKind.EARLIEST: earliest[queue],
                PositionKind.LATEST: latest[queue],
                PositionKind.COMMITTED: committed.get(queue, earliest[queue]),
                PositionKind.OFFSET: at.value,
                PositionKind.TIME: by_time.get(queue, 0),
            }
            offsets[queue] = by_kind[at.kind]
        return offsets, earliest, latest

    def _changes(
        self, positions: QueuePositions, queues: tuple[QueueId, ...]
    ) -> dict[QueueId, QueueChange]:
        """The queues that are not those of the given offsets; they are reported."""
        witnesses = {
            queue: witness
            for queue, witness in positions.witnesses.items()
            if queue in queues and positions.of(queue).kind is PositionKind.OFFSET
        }
        group = self._options.group
        changes = self.retried(lambda: find_changes(self._cluster, group, witnesses))
        report_changes(self._options, changes)
        return changes

    def _nothing_since(self, positions: QueuePositions, queue: QueueId) -> None:
        if self._options.time_strategy == "error":
            raise ConfigError(
                f"option {positions.option}: {queue} has no message as new as that "
                '(startingOffsetsByTimestampStrategy is "error")'
            )

    def _lost(self, what: str) -> None:
        if self._options.fails_on_loss:
            raise ReadFailed(f"{what}. Set failOnDataLoss to false to read what is there")
        logger.warning("%s; reading what is there", what)

    def retried(self, ask: Callable[[], T]) -> T:
        """Calls `ask`, and retries if no reply came or the reply was to try again later."""
        left = self._options.offset_retries
        while True:
            try:
                return ask()
            except (TransportError, ReplyError) as error:
                if left <= 0 or not may_pass(error):
                    raise
                left -= 1
            time.sleep(self._options.offset_retry_ms / 1000)


class BatchPlanner(Planner):
    """Plans a batch read."""

    _options: BatchOptions

    def batch(self, wanted: PushedConditions = EVERYTHING) -> list[Share]:
        """The shares of a batch read.

        Args:
            wanted: conditions that limit the read.
        """
        queues = self.queues()
        start = self.starting(queues, otherwise=QueuePositions("startingOffsets", EARLIEST))
        end = self.ending(queues)
        for queue in queues:
            if start[queue] > end[queue]:
                raise ConfigError(
                    f"{queue} would be read from {start[queue]} to {end[queue]}: it ends before it "
                    "begins"
                )
        return self.shares(between(start, self._narrowed(start, end, wanted)))

    def _narrowed(self, start: Offsets, end: Offsets, wanted: PushedConditions) -> Offsets:
        """Limits the read to what is wanted: raises the starts, and returns the lower ends."""
        queues = [queue for queue in end if wanted.admits(queue)]
        since, until = wanted.since_ms, wanted.until_ms
        at = self._cluster.at
        begins = {} if since is None else self.retried(lambda: at(dict.fromkeys(queues, since)))
        ends = {} if until is None else self.retried(lambda: at(dict.fromkeys(queues, until)))
        for queue in queues:
            start[queue] = max(start[queue], wanted.first or 0, begins.get(queue, 0))
        bounds = {queue: ends.get(queue, end[queue]) for queue in queues}
        if wanted.end is not None:
            bounds = {queue: min(bound, wanted.end) for queue, bound in bounds.items()}
        return {queue: min(end[queue], bound) for queue, bound in bounds.items()}

    def ending(self, queues: Iterable[QueueId]) -> Offsets:
        """The offset before which to stop in each queue.

        An offset given by number may be behind the end of the queue: readers then wait for it.
        """
        options = self._options
        positions = (
            options.ending_time
            or options.ending_times
            or options.ending
            or QueuePositions("endingOffsets", LATEST)
        )
        return self._resolve(positions, queues)[0]


def matching(pattern: str, topics: Iterable[str]) -> list[str]:
    """The topics whose whole name matches; RocketMQ's own only if the pattern begins as they do."""
    is_special = pattern.startswith(("%", SYSTEM_PREFIX))
    wanted = re.compile(pattern)
    return [
        topic
        for topic in topics
        if wanted.fullmatch(topic)
        and (is_special or not (topic.startswith("%") or is_system_topic(topic)))
    ]


def plan_batch(
    options: BatchOptions, wanted: PushedConditions = EVERYTHING
) -> tuple[list[Share], Mapping[str, str]]:
    """The shares of a batch read, and the brokers' addresses.

    Args:
        wanted: conditions that limit the read.

    Raises:
        SprocketError: the cluster cannot be reached, or a topic or queue does not exist.
    """
    with ConnectionPool(options.nameservers, signer=options.signer, tls=options.tls) as pool:
        cluster = ClusterMetadata(pool)
        try:
            shares = BatchPlanner(cluster, options).batch(wanted)
        except TransportError as error:
            servers = ";".join(options.nameservers)
            raise SprocketError(f"offsets cannot be read through {servers}: {error}") from error
        return shares, dict(cluster.addresses)
