"""Requests of operators to a member of a consumer group, which its broker passes on: reset offsets
(220), list offsets (221), describe the running consumer (307), consume one message now (309).

Source: ClientRemotingProcessor, MQClientInstance, ConsumerRunningInfo of RocketMQ 5.x.
"""

from __future__ import annotations

import asyncio
import logging
import math
import sys
import traceback
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import fields
from typing import Any, NamedTuple, Protocol

from sprocket.base.errors import CorruptRecord, RemoteProtocolError
from sprocket.base.ports import Clock
from sprocket.client.base.subscription import Later, Listener, Subscription
from sprocket.client.base.threads import call_in_thread
from sprocket.client.base.user_code import is_from_outside
from sprocket.client.config import ClientConfig
from sprocket.client.fetching.fetcher import Feed, as_sent
from sprocket.client.fetching.statistics import Statistics, TopicStatistics
from sprocket.client.fetching.window import Window
from sprocket.client.group.leases import TRUST
from sprocket.message import record
from sprocket.message.message import StoredMessage
from sprocket.message.properties import RETRY_TOPIC
from sprocket.message.queue import QueueId
from sprocket.protocol.bodies import (
    ConsumeDirectlyResult,
    ConsumeRates,
    ConsumeStatusBody,
    Queue,
    ResetOffsetBody,
    ResetOffsetList,
    RunningInfo,
    WindowState,
)
from sprocket.protocol.codes import VERSION_NAME, ResponseCode
from sprocket.protocol.command import Buffer, Command, Reply
from sprocket.protocol.requests.client import ConsumeDirectly, ConsumerRunning
from sprocket.protocol.requests.offset import ClientConsumeStatus, ResetClientOffset

logger = logging.getLogger(__name__)

#: How many stacks of tasks and of threads are returned at most, and how many frames of each.
_STACKS_MAX = 200
_FRAMES_MAX = 30
_MIB = 1 << 20


class MovableMember(Protocol):
    """The part of a member that operators can change."""

    @property
    def feeds(self) -> list[Feed]:
        """The feeds of the queues that it holds."""
        ...

    async def move(self, queue: QueueId, offset: int) -> None:
        """Continues the queue at an offset, and commits it."""
        ...


class MemberInfo(NamedTuple):
    """The unchanging facts about a member.

    Attributes:
        began_ms: when it started, in ms since 1970 UTC.
    """

    group: str
    config: ClientConfig
    is_ordered: bool
    nameservers: tuple[str, ...]
    began_ms: int
    consume_type: str = "CONSUME_PASSIVELY"


class _Progress(NamedTuple):
    """A queue's offset, and since when it is unchanged, in ms since 1970 UTC."""

    offset: int
    since_ms: int


class RemoteRequests:
    """Answers operators' requests to one member; the session passes them on by group."""

    def __init__(
        self,
        member: MovableMember,
        subscriptions: Mapping[str, Subscription],
        info: MemberInfo,
        *,
        statistics: Callable[[], Statistics],
        clock: Clock,
    ) -> None:
        self._member = member
        self._subscriptions = subscriptions
        self._info = info
        self._statistics = statistics
        self._clock = clock
        self._progress: dict[QueueId, _Progress] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._answers: dict[int, Callable[[Command], Reply | Awaitable[Reply] | None]] = {
            ResetClientOffset.code: self._reset,
            ClientConsumeStatus.code: self._positions,
            ConsumerRunning.code: self._running,
            ConsumeDirectly.code: self._consume,
        }

    def __call__(self, command: Command) -> Reply | Awaitable[Reply] | None:
        """Answers a request that a broker passes on."""
        answer = self._answers.get(command.code)
        if answer is None:
            remark = f"request type {command.code} not supported"
            return Reply(code=ResponseCode.REQUEST_CODE_NOT_SUPPORTED, remark=remark)
        return answer(command)

    # Request 220: reset offsets.

    def _reset(self, command: Command) -> None:
        topic = command.read(ResetClientOffset).topic
        held = {feed.queue for feed in self._member.feeds}
        for queue, offset in positions_in(command.body).items():
            if queue.topic == topic and queue in held and offset >= 0:
                logger.warning("%s: an operator moves %s to %d", self._info.group, queue, offset)
                task = asyncio.ensure_future(self._move(queue, offset))
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)

    async def _move(self, queue: QueueId, offset: int) -> None:
        try:
            await self._member.move(queue, offset)
        except Exception:  # root of a task: the error must be logged
            logger.exception("%s: %s could not be moved", self._info.group, queue)

    # Request 221: list offsets.

    def _positions(self, command: Command) -> Reply:
        topic = command.read(ClientConsumeStatus).topic
        table = {
            _queue(feed.queue): int(feed.window.committable)
            for feed in self._member.feeds
            if feed.queue.topic == topic
        }
        return Reply(body=ConsumeStatusBody(message_queue_table=table).encode())

    # Request 307: describe the running consumer.

    def _running(self, command: Command) -> Reply:
        wants_stacks = command.read(ConsumerRunning).jstack_enable
        subscriptions = [each.describe() for each in self._subscriptions.values()]
        info = RunningInfo(
            jstack=stacks() if wants_stacks else None,
            mq_pop_table={},
            mq_table={_queue(feed.queue): self._state(feed) for feed in self._member.feeds},
            properties=self._properties(),
            status_table=self._rates(),
            subscription_set=subscriptions,
        )
        return Reply(body=info.encode())

    def _rates(self) -> dict[str, ConsumeRates]:
        counted = self._statistics().topics
        return {topic: _rates_of(counted.get(topic)) for topic in self._subscriptions}

    def _state(self, feed: Feed) -> WindowState:
        window = feed.window
        count, position = window.count, window.committable
        return WindowState(
            cached_msg_count=count,
            cached_msg_max_offset=window.next_offset - 1 if count else 0,
            cached_msg_min_offset=position if count else 0,
            cached_msg_size_in_mi_b=window.bytes // _MIB,
            commit_offset=position,
            dropped=window.is_closed,
            last_consume_timestamp=self._consumed_ms(feed.queue, position, is_busy=count > 0),
            last_lock_timestamp=self._locked_ms(window),
            last_pull_timestamp=feed.pulled_ms,
            locked=asyncio.get_running_loop().time() < window.trusted_until,
        )

    def _locked_ms(self, window: Window) -> int:
        """Returns when the queue's lease was last renewed, in ms since 1970; 0 without leases."""
        left = window.trusted_until - asyncio.get_running_loop().time()
        if not self._info.is_ordered or math.isinf(left):
            return 0
        return self._clock.now_ms() - int((TRUST - left) * 1000)

    def _consumed_ms(self, queue: QueueId, position: int, *, is_busy: bool) -> int:
        """Returns since when a queue's offset is unchanged; now, if no messages are fetched."""
        now_ms = self._clock.now_ms()
        known = self._progress.get(queue)
        if known is None or known.offset != position or not is_busy:
            known = self._progress[queue] = _Progress(position, now_ms)
        return known.since_ms

    def _properties(self) -> dict[str, str]:
        config, info = self._info.config, self._info
        return {
            **{each.name: _plain(getattr(config, each.name)) for each in fields(config)},
            "PROP_CLIENT_VERSION": VERSION_NAME,
            "PROP_CONSUMEORDERLY": str(info.is_ordered).lower(),
            "PROP_CONSUMER_START_TIMESTAMP": str(info.began_ms),
            "PROP_CONSUME_TYPE": info.consume_type,
            "PROP_NAMESERVER_ADDR": "".join(f"{each};" for each in info.nameservers),
            "PROP_THREADPOOL_CORE_SIZE": str(getattr(config, "concurrency", 1)),
            "language": "PYTHON",
        }

    # Request 309: consume one message now.

    def _consume(self, command: Command) -> Reply | Awaitable[Reply]:
        broker = command.read(ConsumeDirectly).broker_name or ""
        try:
            stored = record.decode(bytes(command.body), broker_name=broker, opens_body=True)
        except CorruptRecord as error:
            raise RemoteProtocolError(f"that is no message: {error}") from error
        message = as_sent(stored)
        listener = self._listener(message)
        if listener is None:
            remark = f"nobody listens to topic {message.queue.topic} here"
            return Reply(code=ResponseCode.SYSTEM_ERROR, remark=remark)
        return self._consumed(listener, message)

    def _listener(self, message: StoredMessage) -> Listener | None:
        subscription = self._subscriptions.get(message.queue.topic)
        if subscription is not None or RETRY_TOPIC not in message.properties:
            return None if subscription is None else subscription.listener
        listeners = (each.listener for each in self._subscriptions.values())
        return next((each for each in listeners if each is not None), None)

    async def _consumed(self, listener: Listener, message: StoredMessage) -> Reply:
        loop = asyncio.get_running_loop()
        began = loop.time()
        outcome, remark = await _outcome(listener, message)
        result = ConsumeDirectlyResult(
            auto_commit=True,
            consume_result=outcome,
            order=self._info.is_ordered,
            remark=remark,
            spent_time_mills=int((loop.time() - began) * 1000),
        )
        return Reply(body=result.encode())


def _rates_of(counted: TopicStatistics | None) -> ConsumeRates:
    if counted is None:
        return ConsumeRates()
    return ConsumeRates(
        consume_failed_msgs=counted.failed,
        consume_failed_tps=counted.failed_per_second,
        consume_ok_tps=counted.consumed_per_second,
        consume_rt=counted.listener_ms,
        pull_rt=counted.pull_ms,
        pull_tps=counted.pulled_per_second,
    )


def positions_in(body: Buffer) -> dict[QueueId, int]:
    """Returns the offsets by queue of a request 220, in the form for Java or for C++ clients.

    Raises:
        RemoteProtocolError: the body has neither form.
    """
    try:
        table = ResetOffsetBody.decode(body).offset_table
    except RemoteProtocolError:
        items = ResetOffsetList.decode(body).offset_table
        return {QueueId(each.topic, each.broker_name, each.queue_id): each.offset for each in items}
    return {QueueId(q.topic, q.broker_name, q.queue_id): offset for q, offset in table.items()}


async def _outcome(listener: Listener, message: StoredMessage) -> tuple[str, str | None]:
    """Calls a listener with a message; returns RocketMQ's name of the result, and a remark."""
    payload: Any = message if listener.batch is None else [message]
    try:
        if listener.is_blocking:
            result = await call_in_thread(listener.function, payload)
        else:
            result = await listener.function(payload)
    except BaseException as error:  # a user's listener
        if is_from_outside(error):
            raise
        logger.warning("the listener failed at %s", message.queue, exc_info=error)
        return "CR_THROW_EXCEPTION", f"{type(error).__name__}: {error}"
    if result is None:
        return "CR_SUCCESS", None
    return ("CR_LATER" if isinstance(result, Later) else "CR_RETURN_NULL"), None


def stacks() -> str:
    """Returns the stacks of this loop's tasks and this process's threads, for people to read."""
    parts = []
    for task in sorted(asyncio.all_tasks(), key=lambda each: each.get_name())[:_STACKS_MAX]:
        frames = task.get_stack(limit=_FRAMES_MAX)
        lines = [f"  {f.f_code.co_filename}:{f.f_lineno} {f.f_code.co_name}" for f in frames]
        parts.append("\n".join([f"task {task.get_name()}", *lines]))
    for number, frame in list(sys._current_frames().items())[:_STACKS_MAX]:
        text = "".join(traceback.format_stack(frame, limit=_FRAMES_MAX))
        parts.append(f"thread {number}\n{text}")
    return "\n\n".join(parts)


def _plain(value: object) -> str:
    """Returns a setting as text; a function by its name."""
    return str(getattr(value, "__name__", value))


def _queue(queue: QueueId) -> Queue:
    return Queue(broker_name=queue.broker, queue_id=queue.number, topic=queue.topic)
