"""What a consumer wants of a topic, who gets it, and what a listener may return. Values."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Awaitable, Callable, Sequence
from enum import Enum
from typing import Any, NamedTuple

from sprocket.client.base.arguments import check_count, check_takes
from sprocket.filter.choice import Filter
from sprocket.message.message import StoredMessage
from sprocket.protocol.bodies import SubscriptionData
from sprocket.protocol.requests.transaction import COMMIT, ROLLBACK, UNKNOWN


class Outcome(Enum):
    """How a transaction ended, or what an ordered listener commits by hand."""

    COMMIT = COMMIT
    ROLLBACK = ROLLBACK
    UNKNOWN = UNKNOWN


class Later(NamedTuple):
    """What a listener returns so that its messages come again later.

    Attributes:
        delay_level: 0: later each time it fails, from 10 s to 2 h. 1 to 18: one of the broker's
            fixed delays. -1: never; the message becomes a dead letter at once.
        pause_ms: ordered consumption, where delay levels above 0 mean nothing: how long the queue
            rests before the message comes again; None: `ConsumerConfig.suspend_ms`.
    """

    delay_level: int = 0
    pause_ms: int | None = None

    @property
    def is_right(self) -> bool:
        """Whether it says numbers, as it should; a user may have written anything."""
        return isinstance(self.delay_level, int) and isinstance(self.pause_ms, int | None)


#: What a listener may return: nothing for success, or `Later`; in ordered consumption that is
#: committed by hand also `Outcome.COMMIT` or `Outcome.ROLLBACK`.
Result = Later | Outcome | None
#: What one that takes batches may return besides: a list with one of these for each message.
BatchResult = Result | Sequence[Later | None]
#: Gets one message. A plain function runs in a thread, a coroutine function on the event loop.
MessageListener = Callable[[StoredMessage], Awaitable[Result]] | Callable[[StoredMessage], Result]
#: Gets several messages of one topic at once.
BatchListener = (
    Callable[[list[StoredMessage]], Awaitable[BatchResult]]
    | Callable[[list[StoredMessage]], BatchResult]
)


class Listener(NamedTuple):
    """A user's function and how to call it.

    Attributes:
        function: what the user gave.
        batch: messages per call; None for one that is not in a list.
        is_blocking: whether it must run in a thread, or in another process.
    """

    function: Callable[[Any], Any]
    batch: int | None
    is_blocking: bool

    @classmethod
    def of(cls, function: Callable[[Any], Any], batch: int | None) -> Listener:
        """Looks at a user's function.

        Raises:
            UsageError: it does not take a message, or messages; or the batch is not above 0.
        """
        if batch is not None:
            check_count("batch", batch)
        check_takes(function, "message" if batch is None else "messages", what="a listener")
        return cls(function, batch, is_blocking=not _is_coroutine_function(function))


def _is_coroutine_function(function: Callable[[Any], Any]) -> bool:
    while isinstance(function, functools.partial):
        function = function.func
    call = getattr(function, "__call__", None)  # noqa: B004 - an object's own, if it is async
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(call)


class Subscription(NamedTuple):
    """A topic, which of its messages, and who gets them.

    Attributes:
        version: when it was made, ms since 1970; brokers keep the newest of a group.
        listener: None for messages that are iterated over.
    """

    topic: str
    filter: Filter
    version: int
    listener: Listener | None = None

    def describe(self) -> SubscriptionData:
        """As a heartbeat says it."""
        return SubscriptionData(
            topic=self.topic,
            expression_type=self.filter.kind,
            sub_string=self.filter.expression,
            sub_version=self.version,
            tags_set=list(self.filter.tags),
            code_set=sorted(self.filter.codes),
        )
