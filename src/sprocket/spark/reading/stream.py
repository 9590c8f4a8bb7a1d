"""Reads topics as a stream: decides which offsets each micro-batch reads.

Spark's checkpoint is the only truth: offsets come from it and are saved in it. A new queue is read
from its first message; a queue whose broker is away does not advance until it is back. A
micro-batch is read as a batch is (`read`), with the same rows each time.

Each micro-batch begins with the question whether its queues are still those of the checkpoint
(`recognition`); all queues are asked about at the start, and at each refresh of the route. Of a
topic with many queues some stand for the others (`sampling`): what is asked at each micro-batch
does not grow with the number of queues.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Mapping
from functools import partial

from sprocket.base.errors import RouteNotFound, SprocketError, TransportError
from sprocket.base.rare_log import RareLog
from sprocket.clientcore.witness import Witness
from sprocket.message.queue import QueueId
from sprocket.spark.brokers.cluster import ClusterMetadata
from sprocket.spark.brokers.pool import ConnectionPool
from sprocket.spark.options.checkpoint import StreamOffsets, Witnesses
from sprocket.spark.options.options import READER_GROUP, StreamOptions
from sprocket.spark.options.positions import LATEST, QueuePositions
from sprocket.spark.reading.byte_limit import ByteLimit
from sprocket.spark.reading.plan import Offsets, Planner
from sprocket.spark.reading.ranges import between, limit, records_in
from sprocket.spark.reading.read import SharePartition
from sprocket.spark.reading.recognition import (
    QueueChange,
    find_changes,
    report_changes,
    witnesses_of,
)
from sprocket.spark.reading.sampling import beside, chosen

logger = logging.getLogger(__name__)

#: Spark asks again at once if there is nothing new; this pause costs little and spares the brokers.
#: A broker describes a queue in some 12 us, so the pause is longer with many queues: a stream that
#: waits takes a twentieth of a broker's core.
_IDLE_S = 0.02
_IDLE_S_EACH_QUEUE = 0.0002
_IDLE_S_LONGEST = 1.0
#: Pause before a broker that is away is asked again.
_AWAY_S = 0.5
#: The offsets of more queues are committed at most so often, as each takes two requests.
_COMMITS_AT_ONCE = 64
_COMMIT_S = 5.0


class StreamPlan:
    """Decides the offsets of micro-batches; kept in one process during the whole query.

    Args:
        options: the user's options.
    """

    def __init__(self, options: StreamOptions) -> None:
        self._options = options
        self._pool = ConnectionPool(options.nameservers, signer=options.signer, tls=options.tls)
        self._cluster = ClusterMetadata(self._pool)
        self._planner = Planner(self._cluster, options)
        self._queues: list[QueueId] = []
        self._queues_until = 0.0
        #: Until when queues without new messages need not be recognised again.
        self._recognised_until = 0.0
        #: How many times queues without new messages were recognised.
        self._turn = 0
        #: The last message of each queue, as far as the brokers described it with the ends.
        self._last: dict[QueueId, Witness | None] = {}
        #: When the offsets of many queues were last committed.
        self._committed_at = -_COMMIT_S
        #: The last micro-batch that this process planned: its queues were recognised.
        self._planned: StreamOffsets | None = None
        #: The ends of an "available now" query; None for any other.
        self._target: Offsets | None = None
        self._committed: Offsets = {}
        self._byte_limit = ByteLimit(self._sizes)
        # Spark asks again at once, so what keeps failing would fill the log.
        self._warnings = RareLog(logger, lambda: int(time.monotonic() * 1000))
        self._triggered_at = time.monotonic()
        #: The ends of all queues when they were last read.
        self.latest: Offsets = {}

    def close(self) -> None:
        """Closes all connections."""
        self._pool.close()

    def initial(self) -> StreamOffsets:
        """The first offsets of a query without a checkpoint."""
        queues = self._planner.queues()
        latest = QueuePositions("startingOffsets", LATEST)
        return StreamOffsets(self._planner.starting(queues, otherwise=latest))

    def set_target(self) -> None:
        """Limits the query to the messages that exist now."""
        self._target = self._planner.retried(self._ends)

    def next(
        self, start: StreamOffsets, records_max: int | None, bytes_max: int | None = None
    ) -> StreamOffsets:
        """The end of the micro-batch that begins at `start`; `start` if there is nothing to read.

        Args:
            records_max: most offsets that it may have; None for no limit.
            bytes_max: about the most bytes; None for no limit.

        Raises:
            ReadFailed: a queue ends before its start, or is not the one that was read, and loss is
                not allowed.
            SprocketError: the cluster cannot be reached, and this is an "available now" query,
                which would otherwise end too early.
        """
        ends = self._ends_now(start.next)
        anew = {queue: change.begin for queue, change in self._changes(start, ends).items()}
        done = {q: at for q, at in {**start.next, **anew}.items() if q in ends}
        known = self._with_new({**start.next, **anew}, ends)
        for queue, offset in known.items():
            ends.setdefault(queue, offset)
        waiting = records_in(between(known, ends))
        is_idle = not anew and (waiting == 0 or self._is_too_little(waiting))
        self._commit(done, is_last=is_idle and self._target is not None)
        if is_idle:
            time.sleep(idle_s(self._queues))
            return start if known == start.next else StreamOffsets(known, start.witnesses)
        self._triggered_at = time.monotonic()
        if records_max is not None:
            ends = limit(known, ends, records_max)
        if bytes_max is not None:
            ends = self._byte_limit.lowered(known, ends, bytes_max)
        self._planned = StreamOffsets(ends, self._witnesses(start, known, ends, anew), anew)
        return self._planned

    def partitions(self, start: StreamOffsets, end: StreamOffsets) -> list[SharePartition]:
        """The tasks of a micro-batch.

        Raises:
            ReadFailed: a queue is not the one for which a process before this one planned the
                batch, and loss is not allowed.
        """
        self._know(end.next)
        begin = self._with_new({**start.next, **end.anew}, end.next)
        if end != self._planned:
            begin.update(self._changed_since(end))
        shares = self._planner.shares(between(begin, end.next))
        return [SharePartition(share, self._cluster.addresses) for share in shares]

    def done(self, offsets: StreamOffsets) -> None:
        """Reports that Spark has written all messages before these offsets."""
        self._commit(offsets.next)

    def _changes(self, start: StreamOffsets, ends: Offsets) -> dict[QueueId, QueueChange]:
        """The queues that are not those of the checkpoint; they are reported.

        A queue whose broker does not answer is left out of `ends`, and so waits.
        """
        now = time.monotonic()
        is_due = now >= self._recognised_until
        witnesses = {queue: one for queue, one in start.witnesses.items() if queue in ends}
        moved = {queue for queue in witnesses if ends[queue] != start.next.get(queue)}
        asked = chosen(witnesses, moved, is_due=is_due, turn=self._turn)
        changes = self._found_changes(asked, ends)
        others = {q: one for q, one in beside(witnesses, changes).items() if q not in asked}
        changes.update(self._found_changes(others, ends))
        shorter = [
            queue
            for queue, offset in start.next.items()
            if queue not in changes and ends.get(queue, offset) < offset
        ]
        for queue, first in self._planner.retried(lambda: self._cluster.earliest(shorter)).items():
            lost = f"it ends at {ends[queue]}, and has been read up to {start.next[queue]}"
            # Without a witness it may be another queue, of which nothing was read.
            begin = ends[queue] if queue in start.witnesses else first
            changes[queue] = QueueChange(lost, begin)
        if is_due:
            self._recognised_until = now + self._options.route_refresh_ms / 1000
            self._turn += 1
        report_changes(self._options, changes)
        return changes

    def _found_changes(self, asked: Witnesses, ends: Offsets) -> dict[QueueId, QueueChange]:
        changes: dict[QueueId, QueueChange] = {}
        for some in _by_broker(asked).values():
            one_broker = {queue: asked[queue] for queue in some}
            find = partial(find_changes, self._cluster, self._options.group, one_broker)
            try:
                changes.update(find() if self._target is None else self._planner.retried(find))
            except SprocketError as error:
                if self._target is not None:
                    raise
                self._warnings.warning(
                    "queues of broker %s are not read: %s", some[0].broker, error
                )
                for queue in some:
                    ends.pop(queue, None)
        return changes

    def _witnesses(
        self, start: StreamOffsets, begin: Offsets, ends: Offsets, anew: Offsets
    ) -> Witnesses:
        """The witnesses after a micro-batch: a new one of each queue that has moved."""
        moved = {queue: end for queue, end in ends.items() if end > begin[queue]}
        kept = {queue: one for queue, one in start.witnesses.items() if queue not in anew}
        for queue, end in list(moved.items()):
            last = self._last.get(queue)
            if last is not None and last.offset == end - 1:
                kept[queue] = last
                del moved[queue]
        for some in _by_broker(moved).values():
            try:
                wanted = {queue: moved[queue] for queue in some}
                kept.update(witnesses_of(self._cluster, self._options.group, wanted))
            except SprocketError as error:  # an older witness serves as well
                logger.info("no new witnesses from broker %s: %s", some[0].broker, error)
        return kept

    def _sizes(self, places: list[tuple[QueueId, int]]) -> list[int]:
        """The sizes of some messages, of brokers that reply."""
        found: list[int] = []
        for broker in sorted({queue.broker for queue, _ in places}):
            some = [place for place in places if place[0].broker == broker]
            try:
                found += self._cluster.sizes(self._options.group, some)
            except SprocketError as error:  # others, and earlier messages, say enough
                logger.info("no sizes of messages from broker %s: %s", broker, error)
        return found

    def _changed_since(self, end: StreamOffsets) -> Offsets:
        """Queues that were made anew since another process planned this batch: their ends.

        What was planned is gone. The next batch begins with the first message that was not read.
        """
        witnesses = {queue: one for queue, one in end.witnesses.items() if queue in end.next}
        find = partial(find_changes, self._cluster, self._options.group, witnesses)
        until = time.monotonic() + self._options.pull_timeout_ms / 1000
        while True:
            try:
                changes = self._planner.retried(find)
                break
            except (TransportError, RouteNotFound):  # tasks wait as long for a broker
                if time.monotonic() >= until:
                    raise
            time.sleep(_AWAY_S)
            self._look_up({queue.topic for queue in witnesses})
        report_changes(self._options, changes)
        return {queue: end.next[queue] for queue in changes}

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
            self._warnings.warning("no new offsets: %s", error)
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
        found: Offsets = {}
        for broker, queues in _by_broker(self._queues).items():
            try:
                for queue, (end, last) in self._cluster.ends(queues).items():
                    found[queue], self._last[queue] = end, last
            except SprocketError as error:
                self._queues_until = 0.0
                if not skips_absent:
                    raise
                self._warnings.warning("the offsets of broker %s cannot be read: %s", broker, error)
        self.latest.update(found)
        return found

    def _know(self, queues: Mapping[QueueId, int]) -> None:
        """Looks up the addresses of brokers that are not known yet, after a restart."""
        self._look_up(
            {queue.topic for queue in queues if queue.broker not in self._cluster.addresses}
        )

    def _look_up(self, topics: Iterable[str]) -> None:
        for topic in sorted(topics):
            try:
                self._planner.retried(partial(self._cluster.readable, topic))
            except SprocketError as error:
                logger.warning("topic %s cannot be found: %s", topic, error)

    def _commit(self, offsets: Mapping[QueueId, int], *, is_last: bool = False) -> None:
        """Commits the group's offsets to brokers. Only people read them, so a failure is logged.

        Args:
            is_last: the query ends, so the offsets of many queues do not wait either.
        """
        if self._options.group == READER_GROUP:
            return
        moved = {
            queue: offset
            for queue, offset in offsets.items()
            if self._committed.get(queue) != offset and queue.broker in self._cluster.addresses
        }
        if not moved:
            return
        if len(moved) > _COMMITS_AT_ONCE:
            now = time.monotonic()
            if not is_last and now < self._committed_at + _COMMIT_S:
                return
            self._committed_at = now
        try:
            self._cluster.commit(self._options.group, moved)
            self._committed.update(moved)
        except SprocketError as error:
            logger.info("group %s: offsets not committed: %s", self._options.group, error)


def idle_s(queues: Iterable[QueueId]) -> float:
    """The pause, seconds, before brokers are asked again for the ends of these queues."""
    most = max(map(len, _by_broker(queues).values()), default=0)
    return min(max(_IDLE_S, most * _IDLE_S_EACH_QUEUE), _IDLE_S_LONGEST)


def _by_broker(queues: Iterable[QueueId]) -> dict[str, list[QueueId]]:
    found: dict[str, list[QueueId]] = {}
    for queue in queues:
        found.setdefault(queue.broker, []).append(queue)
    return found
