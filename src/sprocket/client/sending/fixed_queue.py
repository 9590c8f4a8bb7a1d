"""The queue that a caller determines for a message: by a key, by its name, or by a function."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sprocket.base.errors import UsageError
from sprocket.client.base.arguments import check_takes
from sprocket.clientcore.queue_choice import by_key
from sprocket.clientcore.routes import TopicRoute
from sprocket.message.message import Message
from sprocket.message.queue import QueueId

#: Takes the topic's queues and a message; returns one of the queues.
QueueSelector = Callable[[Sequence[QueueId], Message], QueueId]


class QueueNotFound(UsageError):
    """The topic's route has no such queue."""


def fixed_queue(
    route: TopicRoute,
    message: Message,
    *,
    key: str | int | None = None,
    queue: QueueId | None = None,
    selector: QueueSelector | None = None,
) -> QueueId:
    """Returns the queue that the caller determines by exactly one of key, queue and selector.

    Raises:
        UsageError: more than one of them is given.
        QueueNotFound: no queue of the topic that takes messages, as far as the route tells.
    """
    if (key is not None) + (queue is not None) + (selector is not None) != 1:
        raise UsageError("key, queue and queue_selector exclude each other")
    if key is not None:
        return by_key(route.writable, key)
    chosen = queue if selector is None else _selected(selector, route.writable, message)
    if chosen is None or (chosen not in route.writable and chosen not in route.headless):
        raise QueueNotFound(f"{chosen} is no queue of topic {message.topic!r} that takes messages")
    return chosen


def _selected(
    selector: QueueSelector, queues: Sequence[QueueId], message: Message
) -> QueueId | None:
    try:
        return selector(queues, message)
    except TypeError:  # checked only now, since inspecting a function costs more than a send
        check_takes(selector, "queues", "message", what="a queue_selector")
        raise
