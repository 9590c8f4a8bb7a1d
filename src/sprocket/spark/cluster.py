"""The cluster as a planner sees it: which topics and queues there are, and their offsets.

Blocking. Questions about many queues of one broker travel together. The first name server that
answers is asked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from sprocket.base.errors import ReplyError, RouteNotFound, TopicNotFound, TransportError
from sprocket.message.queue import QueueId
from sprocket.message.topic import TEMPLATE, is_readable, is_writable
from sprocket.protocol.bodies import Route, TopicList
from sprocket.protocol.command import Command, Header
from sprocket.protocol.requests.offset import (
    MaxOffset,
    MinOffset,
    OffsetReply,
    SearchOffset,
    UpdateOffset,
)
from sprocket.protocol.requests.route import RouteOfTopic, TopicNames
from sprocket.spark.wire import Wire

TIMEOUT_S = 10.0
#: As Java's producers ask for.
_NEW_TOPIC_QUEUES = 4


@dataclass(frozen=True, slots=True)
class Place:
    """Where a topic lies: the queues that may be read, sorted."""

    queues: tuple[QueueId, ...]


class Cluster:
    """Asks name servers and brokers; keeps its connections until it is closed."""

    def __init__(self, nameservers: Sequence[str], *, timeout_s: float = TIMEOUT_S) -> None:
        self._nameservers = nameservers
        self._timeout_s = timeout_s
        self._wires: dict[str, Wire] = {}
        #: Addresses of brokers, by name, as the routes told.
        self.addresses: dict[str, str] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Hangs up everywhere."""
        for wire in self._wires.values():
            wire.close()
        self._wires.clear()

    def topics(self) -> list[str]:
        """Names of all topics, sorted."""
        reply = self._ask_nameserver(TopicNames())
        return sorted(set(TopicList.decode(reply.body).topic_list))

    def place(self, topic: str) -> Place:
        """Where a topic lies.

        Raises:
            RouteNotFound: no broker has it.
        """
        route = self._route(topic)
        return Place(
            tuple(
                sorted(
                    QueueId(topic, data.broker_name, number)
                    for data in route.queue_datas
                    if is_readable(data.perm) and data.broker_name in self.addresses
                    for number in range(data.read_queue_nums)
                )
            )
        )

    def writable(self, topic: str) -> list[QueueId]:
        """The topic's queues that take messages, sorted; of a topic not yet made, those to come.

        Raises:
            RouteNotFound: no broker has it, and none makes topics.
        """
        try:
            route = self._route(topic)
            count_max = None
        except RouteNotFound:
            route = self._route(TEMPLATE)
            count_max = _NEW_TOPIC_QUEUES
        found = sorted(
            QueueId(topic, data.broker_name, number)
            for data in route.queue_datas
            if is_writable(data.perm) and data.broker_name in self.addresses
            for number in range(min(data.write_queue_nums, count_max or data.write_queue_nums))
        )
        if not found:
            raise RouteNotFound(f"no broker takes messages for topic {topic}")
        return found

    def _route(self, topic: str) -> Route:
        try:
            reply = self._ask_nameserver(RouteOfTopic(topic=topic, accept_standard_json_only=True))
        except TopicNotFound:
            raise RouteNotFound(f"no broker has topic {topic}") from None
        route = Route.decode(reply.body)
        for data in route.broker_datas:
            if data.broker_addrs:
                self.addresses[data.broker_name] = data.broker_addrs[min(data.broker_addrs)]
        return route

    def earliest(self, queues: Iterable[QueueId]) -> dict[QueueId, int]:
        """Offset of each queue's first message."""
        return self._offsets(queues, _first)

    def latest(self, queues: Iterable[QueueId]) -> dict[QueueId, int]:
        """Offset after each queue's last message."""
        return self._offsets(queues, _last)

    def at(self, times: Mapping[QueueId, int]) -> dict[QueueId, int]:
        """Offset of the first message stored at a time (ms) or after it; the end if none is."""
        return self._offsets(
            times,
            lambda q: SearchOffset(
                topic=q.topic, queue_id=q.number, timestamp=times[q], bname=q.broker
            ),
        )

    def commit(self, group: str, offsets: Mapping[QueueId, int]) -> None:
        """Commits a group's offsets, each the next one to read."""
        self._ask_brokers(offsets, lambda q: _committing(group, q, offsets[q]))

    def _offsets(
        self, queues: Iterable[QueueId], question: Callable[[QueueId], Header]
    ) -> dict[QueueId, int]:
        replies = self._ask_brokers(queues, question)
        return {queue: reply.read(OffsetReply).offset for queue, reply in replies.items()}

    def _ask_brokers(
        self, queues: Iterable[QueueId], question: Callable[[QueueId], Header]
    ) -> dict[QueueId, Command]:
        """Asks each queue's broker; the questions to one broker travel together."""
        by_broker: dict[str, list[QueueId]] = {}
        for queue in queues:
            by_broker.setdefault(queue.broker, []).append(queue)
        found: dict[QueueId, Command] = {}
        for broker, some in by_broker.items():
            address = self.addresses[broker]
            try:
                replies = self._wire(address).ask_all([question(queue) for queue in some])
            except (TransportError, ReplyError):
                self._hang_up(address)
                raise
            found.update(zip(some, replies, strict=True))
        return found

    def _ask_nameserver(self, header: Header) -> Command:
        failure: TransportError | None = None
        for address in self._nameservers:
            try:
                return self._wire(address).ask(header)
            except TransportError as error:
                self._hang_up(address)
                failure = failure or error
        assert failure is not None, "no name server is configured"
        raise failure

    def _wire(self, address: str) -> Wire:
        wire = self._wires.get(address)
        if wire is None:
            wire = self._wires[address] = Wire(address, timeout_s=self._timeout_s)
        return wire

    def _hang_up(self, address: str) -> None:
        wire = self._wires.pop(address, None)
        if wire is not None:
            wire.close()


def _first(queue: QueueId) -> MinOffset:
    return MinOffset(topic=queue.topic, queue_id=queue.number, bname=queue.broker)


def _last(queue: QueueId) -> MaxOffset:
    return MaxOffset(topic=queue.topic, queue_id=queue.number, bname=queue.broker)


def _committing(group: str, queue: QueueId, offset: int) -> UpdateOffset:
    return UpdateOffset(
        consumer_group=group,
        topic=queue.topic,
        queue_id=queue.number,
        commit_offset=offset,
        bname=queue.broker,
    )
