"""Operators' requests for statistics of queues and topics, and of the broker as a whole.

Source: AdminBrokerProcessor.prepareRuntimeInfo, getTopicStatsInfo, queryConsumeTimeSpan,
queryConsumeQueue of RocketMQ 5.x.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime

from sprocket.base.deadline import loop_ms
from sprocket.base.errors import TopicNotFound
from sprocket.base.ports import Clock
from sprocket.broker.dispatch import Endpoints
from sprocket.broker.operate.listings import in_turns, listed
from sprocket.broker.operate.queues import TopicQueueOffsets
from sprocket.broker.operate.rates import Rates
from sprocket.broker.reading.pull import PullRequests
from sprocket.broker.sending.ingress import Ingress
from sprocket.broker.sending.timers import TimerFigures
from sprocket.broker.sending.transactions import TransactionCounts
from sprocket.broker.tables.offsets import ConsumerOffsets
from sprocket.broker.tables.volumes import MINUTE, Volumes
from sprocket.protocol.bodies import (
    ConsumeTimeSpans,
    KvTable,
    Queue,
    QueueRange,
    QueueTimeSpan,
    TopicStatsTable,
)
from sprocket.protocol.codes import VERSION, VERSION_NAME, RequestCode
from sprocket.protocol.command import Command, Reply
from sprocket.protocol.requests.group import ConsumeTimeSpan
from sprocket.protocol.requests.topic import TopicStats
from sprocket.remoting.transport import Peer
from sprocket.store.store import Store

_SAMPLE_SECONDS = 5.0


class FigureRequests:
    """Shows offsets and times of queues, and the broker's counters."""

    def __init__(
        self, queues: TopicQueueOffsets, offsets: ConsumerOffsets, *, state: BrokerFigures
    ) -> None:
        self._queues = queues
        self._offsets = offsets
        self._state = state

    def endpoints(self) -> Endpoints:
        """The endpoints, by request code."""
        return {
            RequestCode.GET_TOPIC_STATS_INFO: self.topic,
            RequestCode.QUERY_CONSUME_TIME_SPAN: self.time_spans,
            RequestCode.GET_BROKER_RUNTIME_INFO: self.broker,
        }

    async def topic(self, command: Command, peer: Peer) -> Reply:
        """The first and last offsets of a topic's queues.

        Raises:
            TopicNotFound: there is no such topic.
        """
        topic = command.read(TopicStats).topic
        queues = self._queues.queues_of(topic)
        if not queues and not self._queues.has(topic):
            raise TopicNotFound(f"topic[{topic}] not exist")
        table = {}
        async for queue in in_turns(queues):
            high = self._queues.high(queue)
            table[queue] = QueueRange(
                last_update_timestamp=max(self._queues.time_of(queue, high - 1), 0),
                max_offset=high,
                min_offset=self._queues.low(queue),
            )
        rate = self._state.puts_per_second(topic)
        return await listed(TopicStatsTable(offset_table=table, topic_put_tps=rate))

    async def time_spans(self, command: Command, peer: Peer) -> Reply:
        """When the first, the last, and a group's next message in each queue were stored.

        Raises:
            TopicNotFound: there is no such topic.
        """
        header = command.read(ConsumeTimeSpan)
        queues = self._queues.readable(header.topic)
        if not queues:
            raise TopicNotFound(f"topic[{header.topic}] not exist")
        spans = []
        async for queue in in_turns(queues):
            offset = self._offsets.committed(header.group, queue.topic, queue.queue_id) or 0
            await self._queues.load_times(queue, self._queues.low(queue), offset - 1, offset)
            spans.append(self._span(queue, header.group))
        return await listed(ConsumeTimeSpans(consume_time_span_set=spans))

    def _span(self, queue: Queue, group: str) -> QueueTimeSpan:
        high = self._queues.high(queue)
        oldest_ms = max(self._queues.time_of(queue, self._queues.low(queue)), 0)
        newest_ms = max(self._queues.time_of(queue, high - 1), 0)
        offset = self._offsets.committed(group, queue.topic, queue.queue_id) or 0
        consumed_ms = self._queues.time_of(queue, offset - 1) if offset > 0 else oldest_ms
        consumed_ms = max(consumed_ms, 0)
        is_behind = offset < high
        waiting_ms = self._queues.time_of(queue, offset) if is_behind else 0
        return QueueTimeSpan(
            consume_time_stamp=consumed_ms,
            consume_time_stamp_str=_text(consumed_ms),
            delay_time=self._state.now_ms() - waiting_ms if waiting_ms > 0 else 0,
            max_time_stamp=newest_ms,
            max_time_stamp_str=_text(newest_ms),
            message_queue=queue,
            min_time_stamp=oldest_ms,
            min_time_stamp_str=_text(oldest_ms),
        )

    def broker(self, command: Command, peer: Peer) -> Reply:
        """Counters and state, as far as RocketMQ's tools read them."""
        return Reply(body=KvTable(table=self._state.table()).encode())


def _text(time_ms: int) -> str:
    """A time in the form of RocketMQ's tools, in UTC. Source: UtilAll.timeMillisToHumanString2."""
    moment = datetime.fromtimestamp(time_ms / 1000, UTC)
    return f"{moment:%Y-%m-%d#%H:%M:%S}:{time_ms % 1000:03d}"


class BrokerFigures:
    """Counters and rates of the broker since its start."""

    def __init__(
        self,
        store: Store,
        ingress: Ingress,
        *,
        pulls: PullRequests,
        volumes: Volumes,
        clock: Clock,
        transactions: TransactionCounts,
        timers: TimerFigures | None = None,
        of_group: Callable[[], dict[str, str]] = dict,
        of_quotas: Callable[[], dict[str, str]] = dict,
    ) -> None:
        """
        Args:
            of_group: figures of a broker that belongs to a group.
            of_quotas: what was refused or delayed because of quotas.
        """
        self._of_group = of_group
        self._of_quotas = of_quotas
        self._store = store
        self._volumes = volumes
        self._ingress = ingress
        self._pulls = pulls
        self._clock = clock
        self._started_ms = clock.now_ms()
        #: Rates and the running time are measured by the loop's clock, which never jumps.
        self._began_ms = loop_ms()
        self._put = Rates(self._began_ms)
        self._got = Rates(self._began_ms)
        self._timers = timers
        self._transactions = transactions
        self._entered = Rates(self._began_ms)
        self._delivered = Rates(self._began_ms)

    def now_ms(self) -> int:
        """The present time, ms since 1970."""
        return self._clock.now_ms()

    async def run(self) -> None:
        """Samples the counters every five seconds, until cancelled."""
        while True:
            await asyncio.sleep(_SAMPLE_SECONDS)
            now_ms = loop_ms()
            self._put.sample(now_ms, self._ingress.count)
            self._got.sample(now_ms, self._pulls.count)
            if self._timers is not None:
                self._entered.sample(now_ms, self._timers.entered)
                self._delivered.sample(now_ms, self._timers.delivered)
            self._volumes.sample(now_ms)

    def puts_per_second(self, topic: str) -> float:
        """Messages per second stored in a topic, over the last minute."""
        flow = self._volumes.of_topic(topic)
        return 0.0 if flow is None else flow.in_last(MINUTE, loop_ms()).per_second

    # RocketMQ's tools parse many of these entries as numbers. So the table begins with zeros for
    # those without a meaning here; later parts replace what they know, such as rates of timers.
    def table(self) -> dict[str, str]:
        """All figures, by RocketMQ's names."""
        now_ms = loop_ms()
        put, got = self._ingress.count, self._pulls.count
        rates = " ".join(f"{rate:.2f}" for rate in self._got.per_second(now_ms, got))
        unflushed = self._store.log_end - self._store.flushed.value
        zeros = dict.fromkeys(_ZEROS, "0")
        return (
            zeros
            | self._of_timers(now_ms)
            | self._transactions.table()
            | self._of_group()
            | self._of_quotas()
            | {
                "bootTimestamp": str(self._started_ms),
                "brokerActive": "true",
                "brokerVersion": str(VERSION),
                "brokerVersionDesc": VERSION_NAME,
                "commitLogDiskRatio": f"{self._store.disk_usage:.4f}",
                "commitLogMaxOffset": str(self._store.log_end),
                "commitLogMinOffset": str(self._store.log_start),
                "earliestMessageTimeStamp": str(self._store.oldest_ms),
                "getFoundTps": rates,
                "getTotalTps": rates,
                "getTransferredTps": rates,
                "getTransferedTps": rates,
                "heldPulls": str(self._pulls.held_count),
                "msgGetTotalTodayNow": str(got),
                "msgPutTotalTodayNow": str(put),
                "putTps": " ".join(f"{rate:.2f}" for rate in self._put.per_second(now_ms, put)),
                "remainHowManyDataToFlush": f"{unflushed} B",
                "runtime": f"[ {(now_ms - self._began_ms) // 1000} seconds ]",
            }
        )

    def _of_timers(self, now_ms: int) -> dict[str, str]:
        timers = self._timers
        if timers is None:
            return {}
        entered = self._entered.per_second(now_ms, timers.entered)
        delivered = self._delivered.per_second(now_ms, timers.delivered)
        return timers.table() | {
            "timerEnqueueTps": f"{entered[0]:.1f}",
            "timerDequeueTps": f"{delivered[0]:.1f}",
        }


#: Entries that RocketMQ's tools parse as numbers and that have no meaning here: there are no
#: thread pools, and no counters from before the start.
_ZEROS = (
    "ackThreadPoolQueueHeadWaitTimeMills",
    "ackThreadPoolQueueSize",
    "dispatchBehindBytes",
    "msgGetTotalTodayMorning",
    "msgGetTotalYesterdayMorning",
    "msgPutTotalTodayMorning",
    "msgPutTotalYesterdayMorning",
    "pageCacheLockTimeMills",
    "pullThreadPoolQueueHeadWaitTimeMills",
    "pullThreadPoolQueueSize",
    "sendThreadPoolQueueHeadWaitTimeMills",
    "sendThreadPoolQueueSize",
    "timerCongestNum",
    "timerDequeueTps",
    "timerEnqueueTps",
    "timerOffsetBehind",
    "timerReadBehind",
)
