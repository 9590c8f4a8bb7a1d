"""Messages with a delivery time: recall (370), checkpoint (60), and how many wait (61).

A recall is itself a message: it waits in the same slot of the wheel as the message that it recalls.
Source: RecallMessageProcessor, AdminBrokerProcessor.getTimerCheckPoint and getTimerMetrics of
RocketMQ 5.3.
"""

from __future__ import annotations

from collections.abc import Awaitable

from sprocket.base.errors import (
    DiskFull,
    NoPermission,
    ReplyError,
    ServiceNotAvailable,
    StoreError,
    SystemFailure,
    TopicNotFound,
    UsageError,
)
from sprocket.base.ports import Clock
from sprocket.broker.dispatch import Endpoints
from sprocket.broker.sending.acknowledgement import Acknowledgement
from sprocket.broker.sending.destination import Intake
from sprocket.broker.sending.ingress import Ingress
from sprocket.broker.settings import BrokerSettings
from sprocket.broker.tables.topics import Topics
from sprocket.delay.timers.timed import recall_of, whole_number
from sprocket.delay.timers.timed_delivery import TimedDelivery
from sprocket.delay.timers.timers import Timers
from sprocket.message.hosts import pack
from sprocket.message.recall import RecallHandle
from sprocket.message.topic import is_writable
from sprocket.protocol.bodies import DataVersion, TimerMetric, TimerMetricsBody
from sprocket.protocol.codes import RequestCode, ResponseCode
from sprocket.protocol.command import Command, Reply
from sprocket.protocol.requests.send import RecallMessage, RecallReply
from sprocket.remoting.transport import Peer

#: Periods in which waiting messages are counted by due time, s. Source: TimerMetrics.timerDist.
SPANS_SECONDS = (5, 60, 300, 900, 3_600, 14_400, 28_800, 86_400)


class TimerRequests:
    """Answers requests about messages with a delivery time.

    Args:
        timers: the timers; None if they are switched off.
    """

    def __init__(
        self,
        timers: Timers | None,
        ingress: Ingress,
        acknowledgement: Acknowledgement,
        *,
        topics: Topics,
        settings: BrokerSettings,
        clock: Clock,
    ) -> None:
        self._timers = timers
        self._ingress = ingress
        self._acknowledgement = acknowledgement
        self._topics = topics
        self._settings = settings
        self._clock = clock

    def endpoints(self) -> Endpoints:
        """The endpoints, by request code."""
        return {
            RequestCode.RECALL_MESSAGE: self.recall,
            RequestCode.GET_TIMER_CHECK_POINT: self.check_point,
            RequestCode.GET_TIMER_METRICS: self.metrics,
        }

    def recall(self, command: Command, peer: Peer) -> Reply | Awaitable[Reply]:
        """Stores a recall of a waiting message. Whether that exists is found out when it is due.

        Raises:
            NoPermission: recalls are switched off.
            ServiceNotAvailable: the broker is not writable.
            TopicNotFound: there is no such topic.
            ReplyError: the handle is invalid, belongs to another topic or broker, or is too late.
            SystemFailure: the recall cannot be stored.
        """
        header = command.read(RecallMessage)
        config = self._settings.config
        if not config.recall:
            raise NoPermission("recall failed, operation is forbidden")
        if not is_writable(config.permission):
            raise ServiceNotAvailable("recall failed, broker service not available")
        if header.topic not in self._topics.by_name:
            raise TopicNotFound(f"recall failed, the topic[{header.topic}] not exist")
        handle = self._handle(header)
        draft, properties = recall_of(
            handle,
            group=header.producer_group or "",
            born_host=pack(peer.address),
            now_ms=self._clock.now_ms(),
        )
        try:
            receipt = self._ingress.accept(Intake(draft, properties))
        except (SystemFailure, StoreError, DiskFull) as error:
            raise SystemFailure("recall failed, execute error") from error
        reply = RecallReply(msg_id=handle.unique_key, msg_region=config.region)
        is_awaited = receipt.destination.is_awaited
        settled = self._acknowledgement.settled(receipt.last, is_awaited=is_awaited)
        return Reply(reply) if settled is None else _after(settled, reply)

    def _handle(self, header: RecallMessage) -> RecallHandle:
        try:
            handle = RecallHandle.parse(header.recall_handle)
        except UsageError as error:
            raise _refused(str(error)) from error
        if handle.topic != header.topic:
            raise _refused("recall failed, topic not match")
        if handle.broker != self._settings.config.name:
            raise _refused("recall failed, broker service not available")
        due_ms = whole_number(handle.due_ms)
        left_ms = -1 if due_ms is None else due_ms - self._clock.now_ms()
        if not 0 < left_ms < self._settings.store.timer_delay_seconds_max * 1000:
            raise _refused("recall failed, timestamp invalid")
        return handle

    def check_point(self, command: Command, peer: Peer) -> Reply:
        """The progress of the timers, in the form of their checkpoint file.

        Raises:
            SystemFailure: timers are switched off.
        """
        if self._timers is None:
            raise SystemFailure("The checkpoint is null")
        is_in_use = self._timers.is_in_use
        return Reply(body=self._timers.files.check.java_part() if is_in_use else bytes(56))

    async def metrics(self, command: Command, peer: Peer) -> Reply:
        """How many messages wait, by topic and by due time.

        Raises:
            SystemFailure: timers are switched off.
        """
        timers = self._timers
        if timers is None:
            raise SystemFailure("The timer message store is null")
        now_ms = self._clock.now_ms()
        pending = await timers.pending(now_ms, SPANS_SECONDS)
        body = TimerMetricsBody(
            data_version=DataVersion(timestamp=now_ms),
            timing_count={
                topic: TimerMetric(count=count, time_stamp=now_ms)
                for topic, count in timers.counts.by_topic().items()
            },
            timing_distribution={str(seconds): count for seconds, count in pending.spans.items()},
            later_count=pending.later,
            next_deliver_time=pending.next_ms,
        )
        return Reply(body=body.encode())


async def _after(settled: Awaitable[int], reply: RecallReply) -> Reply:
    """The reply after the recall is flushed; as in Java its code is 0 even if the flush fails."""
    await settled
    return Reply(reply)


def _refused(remark: str) -> ReplyError:
    return ReplyError.of(ResponseCode.ILLEGAL_OPERATION, remark)


class TimerFigures:
    """The timers' part of the broker's figures, by RocketMQ's names."""

    def __init__(self, timers: Timers, delivery: TimedDelivery, clock: Clock) -> None:
        self._timers = timers
        self._delivery = delivery
        self._clock = clock

    @property
    def entered(self) -> int:
        """Messages that started to wait since the broker's start."""
        return self._timers.entered

    @property
    def delivered(self) -> int:
        """Messages that were delivered since the broker's start."""
        return self._delivery.count

    def table(self) -> dict[str, str]:
        """How many messages wait, and the lag of the timers.

        The wheel with its million slots is not scanned, as tools send this request all the time.
        """
        timers = self._timers
        now_ms = self._clock.now_ms()
        behind_ms = now_ms - timers.current.slot_ms if timers.is_in_use else 0
        return {
            "timerReadBehind": str(max(behind_ms, 0) // 1000),
            "timerOffsetBehind": str(timers.lag if timers.is_in_use else 0),
            "timerCongestNum": str(timers.counts.total),
        }
