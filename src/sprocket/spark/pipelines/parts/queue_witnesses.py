"""Witnesses of the queues that a job reads by itself, slice by slice, without a stream."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager

from sprocket.message.queue import QueueId
from sprocket.spark.brokers.cluster import ClusterMetadata
from sprocket.spark.brokers.pool import ConnectionPool
from sprocket.spark.options.checkpoint import Witnesses
from sprocket.spark.options.options import BatchOptions, read_options
from sprocket.spark.pipelines.parts.offsets import Offsets
from sprocket.spark.reading.recognition import (
    QueueChange,
    find_changes,
    report_changes,
    witnesses_of,
)


class QueueWitnesses:
    """Finds witnesses of queues, and recognises queues by them.

    Args:
        options: those of the `rocketmq` source, without a choice of topics.
    """

    def __init__(self, options: Mapping[str, str]) -> None:
        self._options = read_options({**options, "subscribePattern": ".*"}, BatchOptions)

    def begun_anew(self, done: Offsets, end: Offsets, witnesses: Witnesses) -> Offsets:
        """The queues that are not those that were read, and where nothing of them was read.

        Args:
            done: the next offset to read in each queue.
            end: the offset up to which each queue is to be read.

        Raises:
            ReadFailed: there are some, and the options do not allow loss.
        """
        witnesses = {queue: one for queue, one in witnesses.items() if queue in end}
        with self._cluster(witnesses) as cluster:
            changes = find_changes(cluster, self._options.group, witnesses)
        for queue, at in done.items():
            if queue not in changes and end.get(queue, at) < at:
                lost = f"it ends at {end[queue]}, and has been read up to {at}"
                changes[queue] = QueueChange(lost, end[queue] if queue in witnesses else 0)
        report_changes(self._options, changes)
        return {queue: change.begin for queue, change in changes.items()}

    def of(self, done: Offsets) -> Witnesses:
        """The last message before each offset, of queues that have it."""
        with self._cluster(done) as cluster:
            return witnesses_of(cluster, self._options.group, done)

    @contextmanager
    def _cluster(self, queues: Iterable[QueueId]) -> Iterator[ClusterMetadata]:
        options = self._options
        with ConnectionPool(options.nameservers, signer=options.signer, tls=options.tls) as pool:
            cluster = ClusterMetadata(pool)
            for topic in sorted({queue.topic for queue in queues}):
                cluster.readable(topic)
            yield cluster
