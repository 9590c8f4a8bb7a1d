"""Decorators for methods of consumers that receive or settle: they make spans, if there are some.

Methods that are called for each message look at `_spans` themselves instead.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator
from typing import Any, Protocol, TypeVar, cast

from sprocket.client.base.spans import Spans
from sprocket.message.message import StoredMessage
from sprocket.message.queue import QueueId

F = TypeVar("F", bound=Callable[..., Awaitable[Any]])


class SpannedClient(Protocol):
    """A client that may make spans."""

    config: Any
    group: str

    @property
    def _spans(self) -> Spans | None: ...


def receives(function: F) -> F:
    """Decorates a method that returns messages, or something that has them."""

    @functools.wraps(function)
    async def received(self: SpannedClient, *arguments: Any, **given: Any) -> Any:
        if (spans := self._spans) is None:
            return await function(self, *arguments, **given)
        began_ns = time.time_ns()
        found = await function(self, *arguments, **given)
        spans.received(getattr(found, "messages", found), began_ns)
        return found

    return cast(F, received)


def _settled(first: object = None) -> list[StoredMessage | QueueId]:
    """The messages or queues that are to be settled; nothing of what is neither."""
    listed = [first] if isinstance(first, StoredMessage | QueueId) else first
    if not isinstance(listed, Iterable):
        return []
    return [each for each in listed if isinstance(each, StoredMessage | QueueId)]


def settles(name: str) -> Callable[[F], F]:
    """Decorates a method that settles its first argument: a message, several, or offsets."""

    def decorate(function: F) -> F:
        @functools.wraps(function)
        async def settled(self: SpannedClient, *arguments: Any, **given: Any) -> Any:
            if (spans := self._spans) is None:
                return await function(self, *arguments, **given)
            if arguments and isinstance(arguments[0], Iterator):  # it can be read once only
                arguments = (list(arguments[0]), *arguments[1:])
            settled_ones = _settled(*arguments[:1])
            topics = {each.topic for each in settled_ones}
            topic = topics.pop() if len(topics) == 1 else ""
            messages = [each for each in settled_ones if isinstance(each, StoredMessage)]
            with spans.settling(name, messages, topic):
                return await function(self, *arguments, **given)

        return cast(F, settled)

    return decorate
