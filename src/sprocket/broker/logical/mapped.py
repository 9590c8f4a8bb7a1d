"""Finds the requests for logical queues among all others, and the parts of their queues.

A broker without static topics pays one test of an empty dictionary for each request.
Source: TopicQueueMappingManager.buildTopicQueueMappingContext of RocketMQ 5.3.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import msgspec

from sprocket.base.errors import NotLeaderForQueue
from sprocket.broker.tables.queue_mappings import QueueMappings
from sprocket.clientcore.logical_queues import leader
from sprocket.protocol.bodies import MappingDetail, MappingItem
from sprocket.protocol.command import Command
from sprocket.remoting.endpoints import Endpoint, EventualResponse
from sprocket.remoting.transport import Peer

#: Text of the header field `lo` in a request for a broker's own queue.
_PHYSICAL = "false"

K = TypeVar("K", bound=Any)


class MappedQueues:
    """The logical queues that this broker leads."""

    def __init__(self, mappings: QueueMappings) -> None:
        self._mappings = mappings

    def routed(
        self,
        inner: Endpoint,
        kind: type[K],
        answer: Callable[[K, Command, Peer], EventualResponse],
        *,
        has_physical: bool = True,
    ) -> Endpoint:
        """An endpoint: `answer` for requests of logical queues, `inner` for all others.

        Args:
            kind: the declaration of the request, with `topic`.
            has_physical: whether a request may be for one of the broker's own queues.
        """
        by_topic = self._mappings.by_topic

        def endpoint(command: Command, peer: Peer) -> EventualResponse:
            if not by_topic:
                return inner(command, peer)
            header = command.read(kind)
            if header.topic not in by_topic:
                return inner(command, peer)
            if has_physical and command.fields.get("lo") == _PHYSICAL:
                return inner(command, peer)
            return answer(header, command, peer)

        return endpoint

    def detail(self, topic: str) -> MappingDetail:
        """The mapping of a static topic."""
        return self._mappings.by_topic[topic]

    def parts(self, topic: str, number: int) -> Sequence[MappingItem]:
        """The parts of a logical queue that this broker leads, oldest first.

        Raises:
            NotLeaderForQueue: another broker leads it, or none.
        """
        detail = self.detail(topic)
        if leader(detail, number) is None:
            raise NotLeaderForQueue(
                f"{topic}-{number} does not exit in request process of current broker "
                f"{detail.bname}"
            )
        return detail.hosted_queues[number]


def with_header(command: Command, header: Any) -> Command:
    """The request as if it had come with another header of the same declaration."""
    return msgspec.structs.replace(command, header=header)
