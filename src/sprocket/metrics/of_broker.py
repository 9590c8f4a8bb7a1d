"""The metrics of a broker, read from its tables.

Source of what each counts: BrokerMetricsManager, ConsumerLagCalculator and
DefaultStoreMetricsManager of RocketMQ 5.3. Two things differ there: RocketMQ shows a group only
while it has members, here its lag shows whether it runs or not; and the label `message_type` is the
type of the topic, since asking each message would slow down every send.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping
from typing import TYPE_CHECKING

from sprocket.broker.operate.group_progress import GroupProgress
from sprocket.broker.operate.listings import in_turns
from sprocket.broker.operate.queues import TopicQueueOffsets
from sprocket.broker.sending.timers import SPANS_SECONDS
from sprocket.message.topic import (
    group_of,
    is_dead_letter_topic,
    is_retry_topic,
    is_system_group,
    is_system_topic,
)
from sprocket.metrics import names
from sprocket.metrics.histograms import histograms, of_topic
from sprocket.metrics.model import Family, Metric
from sprocket.protocol.bodies import Queue, QueueProgress
from sprocket.protocol.codes import version_name
from sprocket.transaction.ledger import EndState

if TYPE_CHECKING:
    from sprocket.broker.broker import Broker
    from sprocket.broker.open_broker import OpenBroker
    from sprocket.broker.tables.volumes import Flow

_REMOTING = "remoting"
_DISK = ("local", "disk")
#: RocketMQ's words for the ways to consume, as it reports them.
_MODES = {
    "CONSUME_ACTIVELY": "pull",
    "CONSUME_PASSIVELY": "push",
    "CONSUME_POP": "pop",
}


class BrokerMetrics:
    """Reads the metrics of a broker.

    Args:
        by_queue: whether the lag of each queue is one of them.
    """

    def __init__(self, broker: Broker, *, by_queue: bool = True) -> None:
        self._broker = broker
        self._by_queue = by_queue

    @property
    def labels(self) -> Mapping[str, str]:
        """The labels of all values."""
        config = self._broker.settings.config
        return {"cluster": config.cluster, "node_type": "broker", "node_id": config.name}

    async def families(self) -> AsyncIterator[Family]:
        """The values now; nothing while the broker starts or changes its role."""
        inside = self._broker.inside
        if inside is None or inside.dispatch is None:
            return
        for family in self._of_tables(inside):
            yield family
        for family in await _flows(inside):
            yield family
        for family in await self._lags(inside):
            yield family
        for family in _of_store(inside):
            yield family
        yield await _due(inside)
        if (measures := self._broker.measures) is not None:
            for family in histograms(measures, inside.parts.tables.topics):
                yield family

    def _of_tables(self, inside: OpenBroker) -> Iterator[Family]:
        tables = inside.parts.tables
        permission = self._broker.settings.config.permission
        yield Family.single(names.PERMISSION, permission)
        yield Family.single(names.TOPICS, len(tables.topics.by_name))
        yield Family.single(names.GROUPS, len(tables.groups.by_name))
        yield _producers(inside)
        yield _consumers(inside)
        yield Family(
            names.HALVES, {(topic,): count for topic, count in tables.ledger.by_topic.items()}
        )
        ended = inside.parts.settlement.counts
        yield Family.single(names.COMMITS, ended[EndState.COMMITTED])
        yield Family.single(names.ROLLBACKS, ended[EndState.ROLLED_BACK])
        yield _requests(inside)
        yield Family.single(names.HELD_PULLS, inside.parts.pulls.held_count)
        quotas = inside.parts.quotas.admission
        yield Family(names.QUOTA_REFUSED, {(*of,): times for of, times in quotas.refused.items()})
        yield Family(names.QUOTA_DELAYED, {(*of,): times for of, times in quotas.delayed.items()})
        yield _replicas(inside)

    async def _lags(self, inside: OpenBroker) -> list[Family]:
        parts = inside.parts
        tables = parts.tables
        queues = TopicQueueOffsets(
            tables.topics, inside.store, broker_name=self._broker.settings.config.name
        )
        progress = GroupProgress(queues, tables.offsets, tables.clients)
        lags = _Lags(queues, parts.state.now_ms(), by_queue=self._by_queue)
        async for group in in_turns(list(tables.groups.by_name), at_once=16):
            async for topic in in_turns(tables.offsets.topics_of(group), at_once=64):
                await lags.take(group, topic, await progress.table(group, [topic]))
        return lags.families


class _Lags:
    """Adds up the progress of groups.

    Attributes:
        families: the sums.
    """

    def __init__(self, queues: TopicQueueOffsets, now_ms: int, *, by_queue: bool) -> None:
        self._queues = queues
        self._now_ms = now_ms
        self._by_queue = by_queue
        self._of = {
            metric: Family(metric)
            for metric in (
                names.LAG, names.LAG_MS, names.IN_FLIGHT, names.QUEUEING_MS, names.READY,
                names.QUEUE_LAG,
            )
        }  # fmt: skip

    @property
    def families(self) -> list[Family]:
        return [family for family in self._of.values() if family.points]

    async def take(self, group: str, topic: str, rows: Mapping[Queue, QueueProgress]) -> None:
        """Adds the queues of a group in a topic."""
        if not rows:
            return
        labels = (group, topic, _truth(is_retry_topic(topic)), _is_system(topic, group))
        oldest_ms = unread_ms = self._now_ms
        lag = ready = 0
        for queue, row in rows.items():
            behind = max(row.broker_offset - row.consumer_offset, 0)
            unread = max(row.broker_offset - row.pull_offset, 0)
            lag, ready = lag + behind, ready + unread
            if behind:
                oldest_ms = min(oldest_ms, await self._stored_ms(queue, row.consumer_offset))
            if unread:
                unread_ms = min(unread_ms, await self._stored_ms(queue, row.pull_offset))
            if self._by_queue:
                self._of[names.QUEUE_LAG].points[group, topic, str(queue.queue_id)] = behind
        values: dict[Metric, float] = {
            names.LAG: lag,
            names.LAG_MS: self._now_ms - oldest_ms,
            names.IN_FLIGHT: lag - ready,
            names.QUEUEING_MS: self._now_ms - unread_ms,
            names.READY: ready,
        }
        for metric, value in values.items():
            self._of[metric].points[labels] = value

    async def _stored_ms(self, queue: Queue, offset: int) -> int:
        """When the first message from an offset on was stored."""
        offset = max(offset, self._queues.low(queue))
        await self._queues.load_times(queue, offset)
        stored_ms = self._queues.time_of(queue, offset)
        return stored_ms if stored_ms > 0 else self._now_ms


async def _flows(inside: OpenBroker) -> list[Family]:
    """What came in and went out, by topic and group."""
    tables = inside.parts.tables
    put, put_bytes = Family(names.MESSAGES_IN), Family(names.BYTES_IN)
    got, got_bytes = Family(names.MESSAGES_OUT), Family(names.BYTES_OUT)
    dead = Family(names.DEAD)
    flow: Flow
    async for topic, flow in in_turns(tables.volumes.puts()):
        labels = of_topic(tables.topics, topic)
        put.points[labels], put_bytes.points[labels] = flow.messages, flow.bytes
        if is_dead_letter_topic(topic):
            group = group_of(topic) or ""
            dead.add((group, _truth(is_system_group(group))), flow.messages)
    async for (topic, group), flow in in_turns(tables.volumes.gets()):
        of_group = (topic, group, _truth(is_retry_topic(topic)), _is_system(topic, group))
        got.points[of_group], got_bytes.points[of_group] = flow.messages, flow.bytes
    return [put, put_bytes, got, got_bytes, dead]


def _producers(inside: OpenBroker) -> Family:
    family = Family(names.PRODUCERS)
    for members in inside.parts.tables.clients.producer_groups().values():
        for each in members:
            family.add((each.language.lower(), _version(each.version), _REMOTING), 1)
    return family


def _consumers(inside: OpenBroker) -> Family:
    tables = inside.parts.tables
    family = Family(names.CONSUMERS)
    for group in tables.clients.groups():
        mode = _MODES.get(group.consume_type, group.consume_type.lower())
        is_system = _truth(is_system_group(group.name))
        for each in group.members.values():
            version = _version(each.version)
            language = each.language.lower()
            family.add((group.name, language, version, mode, _REMOTING, is_system), 1)
    return family


def _requests(inside: OpenBroker) -> Family:
    dispatch = inside.dispatch
    assert dispatch is not None
    family = Family(names.REQUESTS)
    for code, count in dispatch.counts.items():
        failed = dispatch.failures[code] if code >= 0 else count
        for result, number in (("success", count - failed), ("failed", failed)):
            if number:
                family.points[str(code) if code >= 0 else "other", result] = number
    return family


def _replicas(inside: OpenBroker) -> Family:
    replication = inside.parts.replication
    family = Family(names.REPLICA_LAG)
    end = inside.store.log_end
    sender = replication.sender
    for link in () if sender is None else sender.links.values():
        is_in_sync = _truth(replication.is_in_sync(link))
        family.points[link.address, is_in_sync] = max(end - link.reported.value, 0)
    return family


def _of_store(inside: OpenBroker) -> Iterator[Family]:
    store, parts = inside.store, inside.parts
    yield Family(names.STORAGE, {_DISK: store.log_end - store.log_start})
    yield Family.single(names.DISK_USAGE, store.disk_usage)
    yield Family(names.UNFLUSHED, {_DISK: max(store.log_end - store.flushed.value, 0)})
    yield Family(names.UNDISPATCHED, {_DISK: 0})
    now_ms = parts.state.now_ms()
    if store.oldest_ms > 0:
        yield Family(names.KEPT_MS, {_DISK: max(now_ms - store.oldest_ms, 0)})
    timers, delivery = parts.timers, parts.timed_delivery
    if timers is None or delivery is None:
        return
    by_topic = timers.counts.by_topic()
    yield Family(names.TIMING, {(*_DISK, topic): count for topic, count in by_topic.items()})
    yield Family(names.TIMERS_IN, {_DISK: timers.entered})
    yield Family(names.TIMERS_OUT, {_DISK: delivery.count})
    yield Family(names.TIMER_LAG, {_DISK: timers.lag if timers.is_in_use else 0})
    behind_ms = max(now_ms - timers.current.slot_ms, 0) if timers.is_in_use else 0
    yield Family(names.TIMER_MS, {_DISK: behind_ms})


async def _due(inside: OpenBroker) -> Family:
    """The messages with a delivery time, by how soon they are due."""
    family = Family(names.TIMER_SNAPSHOT)
    timers = inside.parts.timers
    if timers is not None and timers.is_in_use:
        counts = await timers.pending(inside.parts.state.now_ms(), SPANS_SECONDS)
        for seconds, count in counts.spans.items():
            family.points[*_DISK, str(seconds)] = count
    return family


def _version(version: int) -> str:
    """As RocketMQ writes it: `v5_3_3`."""
    return "v" + version_name(version).replace(".", "_").lower()


def _is_system(topic: str, group: str) -> str:
    return _truth(is_system_topic(topic) or is_system_group(group))


def _truth(value: bool) -> str:
    return "true" if value else "false"
