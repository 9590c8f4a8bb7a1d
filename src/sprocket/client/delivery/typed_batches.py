"""Batch listeners that take lists of objects instead of messages.

The function gets what fits, in order, and the messages that do not fit have results of their own:
so one of them keeps no others back.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

from sprocket.client.base.subscription import (
    BatchResult,
    Later,
    Outcome,
    is_coroutine_function,
)
from sprocket.client.delivery.typed import DecodingListener, Misfits, bodies_of
from sprocket.message.message import StoredMessage
from sprocket.schemas.body_codec import BodyCodec
from sprocket.schemas.errors import BodyMismatch

T = TypeVar("T")

#: Takes the objects, or the objects and their messages.
AsyncTypedBatchFunction = (
    Callable[[list[T]], Awaitable[BatchResult]]
    | Callable[[list[T], list[StoredMessage]], Awaitable[BatchResult]]
)
PlainTypedBatchFunction = (
    Callable[[list[T]], BatchResult] | Callable[[list[T], list[StoredMessage]], BatchResult]
)
TypedBatchFunction = AsyncTypedBatchFunction[T] | PlainTypedBatchFunction[T]

#: The place of a result that the function decides.
_FITS = object()


class TypedBatchListener(DecodingListener[T]):
    """A listener made by `typed_batch`: the user's function is `function`."""

    takes_batches = True

    def __call__(self, messages: list[StoredMessage]) -> Any:
        """Calls the function with the objects in messages."""
        values, fitting, results = self._decoded(messages)
        if not fitting:
            return results
        return _merged(self._called(values, fitting), results)

    def _decoded(
        self, messages: list[StoredMessage]
    ) -> tuple[list[T], list[StoredMessage], list[Any]]:
        """The objects, their messages, and for all messages the result or `_FITS`."""
        values: list[T] = []
        fitting: list[StoredMessage] = []
        results: list[Any] = []
        for message in messages:
            try:
                values.append(self._bodies.decode(message.body))
            except BodyMismatch as error:
                results.append(self._misfit(message, error))
            else:
                fitting.append(message)
                results.append(_FITS)
        return values, fitting, results


class AsyncTypedBatchListener(TypedBatchListener[T]):
    """The same for a coroutine function; schemas are fetched without blocking the event loop."""

    async def __call__(self, messages: list[StoredMessage]) -> Any:
        """Awaits the function with the objects in messages."""
        for message in messages:
            await self._bodies.prepare(message.body)
        values, fitting, results = self._decoded(messages)
        if not fitting:
            return results
        result = self._called(values, fitting)
        return _merged(await result if inspect.isawaitable(result) else result, results)


def _merged(result: Any, results: list[Any]) -> Any:
    """The result for all messages, from that of the function for those that fit."""
    count = results.count(_FITS)
    if count == len(results) or result is Outcome.ROLLBACK:
        return result
    if isinstance(result, Sequence) and not isinstance(result, Later):
        if len(result) != count:
            return result  # the delivery refuses it
        decided = iter(result)
    else:
        decided = iter([None if result is Outcome.COMMIT else result] * count)
    return [next(decided) if each is _FITS else each for each in results]


def typed_batch(
    kind: type[T], codec: BodyCodec | None = None, *, misfits: Misfits = "dead letter"
) -> Callable[[TypedBatchFunction[T]], TypedBatchListener[T]]:
    """Makes a batch listener of a function that takes lists of objects of a type::

        @consumer.on("orders", batch=100)
        @typed_batch(Order)
        async def bill(orders: list[Order]) -> None: ...

    Args:
        kind, codec, misfits: as for `typed`.

    The function takes the objects, or the objects and their messages, and returns what a batch
    listener returns, with one result for each object that it got. If it raises, all messages of the
    batch come again. If no body fits, it is not called.

    Raises:
        UsageError: `misfits` is none of these, or the function takes other arguments.
    """
    bodies = bodies_of(kind, codec, misfits)

    def make(function: TypedBatchFunction[T]) -> TypedBatchListener[T]:
        is_async = is_coroutine_function(function)
        made = AsyncTypedBatchListener if is_async else TypedBatchListener
        return made(function, bodies, misfits)

    return make
