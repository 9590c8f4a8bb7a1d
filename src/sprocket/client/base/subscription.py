"""Subscriptions, listeners, and what a listener may return. These are plain values."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Awaitable, Callable, Sequence
from enum import Enum
from typing import Any, NamedTuple

from sprocket.base.errors import UsageError
from sprocket.client.base.arguments import check_count, check_takes
from sprocket.filter.choice import Filter
from sprocket.message.message import StoredMessage
from sprocket.protocol.bodies import SubscriptionData
from sprocket.protocol.requests.transaction import COMMIT, ROLLBACK, UNKNOWN


class Outcome(Enum):
    """The end of a transaction, or what an ordered listener returns to commit by hand."""

    COMMIT = COMMIT
    ROLLBACK = ROLLBACK
    UNKNOWN = UNKNOWN


class Later(NamedTuple):
    """A listener returns this to receive its messages again later.

    Attributes:
        delay_level: 0: a delay that grows with each failure, from 10 s to 2 h. 1 to 18: one of the
            broker's fixed delays. -1: no redelivery; the message becomes a dead letter at once.
        pause_ms: for ordered consumption, where delay levels above 0 have no effect: how long the
            queue pauses before the message comes again; None: `ConsumerConfig.suspend_ms`.
    """

    delay_level: int = 0
    pause_ms: int | None = None

    @property
    def is_right(self) -> bool:
        """Whether both values have the right type; users may have passed anything."""
        return isinstance(self.delay_level, int) and isinstance(self.pause_ms, int | None)


#: What a listener may return: None for success, or `Later`. In ordered consumption without
#: `auto_commit` also `Outcome.COMMIT` or `Outcome.ROLLBACK`.
Result = Later | Outcome | None
#: A batch listener may also return a list with None or `Later` for each message.
BatchResult = Result | Sequence[Later | None]
#: Receives one message. A plain function runs in a thread, a coroutine function on the event loop.
MessageListener = Callable[[StoredMessage], Awaitable[Result]] | Callable[[StoredMessage], Result]
#: Receives several messages of one topic in one call.
BatchListener = (
    Callable[[list[StoredMessage]], Awaitable[BatchResult]]
    | Callable[[list[StoredMessage]], BatchResult]
)


class Listener(NamedTuple):
    """A user's function and how to call it.

    Attributes:
        function: the user's function.
        batch: messages per call at most; None: each call gets one message, not in a list.
        is_blocking: whether it must run in a thread or in another process.
    """

    function: Callable[[Any], Any]
    batch: int | None
    is_blocking: bool

    @classmethod
    def of(cls, function: Callable[[Any], Any], batch: int | None) -> Listener:
        """Makes a listener from a user's function.

        Raises:
            UsageError: the function does not take exactly one argument, `batch` is below 1, or does
                not go with a typed listener.
        """
        if batch is not None:
            check_count("batch", batch)
            if not getattr(function, "takes_batches", True):
                raise UsageError(
                    "typed() takes one message at a time: leave out batch, or use typed_batch()"
                )
        elif getattr(function, "takes_batches", False):
            raise UsageError("typed_batch() takes batches: give batch=100, or use typed()")
        check_takes(function, "message" if batch is None else "messages", what="a listener")
        return cls(function, batch, is_blocking=not is_coroutine_function(function))


def is_coroutine_function(function: Callable[..., Any]) -> bool:
    """Whether a call of it has to be awaited: it may be an object, or a `functools.partial`."""
    while isinstance(function, functools.partial):
        function = function.func
    call = getattr(function, "__call__", None)  # noqa: B004 - an object's own, if it is async
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(call)


class Subscription(NamedTuple):
    """A topic, the filter for its messages, and the listener that receives them.

    Attributes:
        version: when it was made, in ms since 1970; brokers keep the newest one of a group.
        listener: None if the messages are iterated over or polled.
    """

    topic: str
    filter: Filter
    version: int
    listener: Listener | None = None

    def describe(self) -> SubscriptionData:
        """Returns it in the form that heartbeats contain."""
        return SubscriptionData(
            topic=self.topic,
            expression_type=self.filter.kind,
            sub_string=self.filter.expression,
            sub_version=self.version,
            tags_set=list(self.filter.tags),
            code_set=sorted(self.filter.codes),
        )
