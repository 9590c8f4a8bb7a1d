"""Listeners that take objects instead of messages.

A body that does not fit is no reason to stop, and trying again does not mend it: its message
becomes a dead letter at once, unless `misfits` says otherwise. A schema registry that does not
answer says nothing of the body, so that message comes again later.
"""

from __future__ import annotations

import functools
import inspect
import logging
from collections.abc import Awaitable, Callable
from typing import Any, Generic, Literal, TypeVar, get_args

from sprocket.base.errors import UsageError
from sprocket.client.base.subscription import Later, Result, is_coroutine_function
from sprocket.message.message import StoredMessage
from sprocket.schemas.body_codec import CONTENT_TYPE, BodyCodec
from sprocket.schemas.errors import BodyMismatch
from sprocket.schemas.json_bodies import JsonBodies
from sprocket.schemas.typed_bodies import TypedBodies

logger = logging.getLogger(__name__)

T = TypeVar("T")

#: What becomes of a message whose body does not fit: a dead letter at once, retries as after any
#: failure of a listener, or nothing: it counts as consumed.
Misfits = Literal["dead letter", "retry", "drop"]

#: Takes the object, or the object and its message.
AsyncTypedFunction = (
    Callable[[T], Awaitable[Result]] | Callable[[T, StoredMessage], Awaitable[Result]]
)
PlainTypedFunction = Callable[[T], Result] | Callable[[T, StoredMessage], Result]
TypedFunction = AsyncTypedFunction[T] | PlainTypedFunction[T]


class DecodingListener(Generic[T]):
    """What listeners of single objects and of lists have in common."""

    #: Whether it takes lists of messages.
    takes_batches: bool

    def __init__(
        self, function: Callable[..., Any], bodies: TypedBodies[T], misfits: Misfits
    ) -> None:
        # The names of the function, and not its signature.
        named: Any = self
        functools.update_wrapper(named, function)
        del self.__dict__["__wrapped__"]
        self.function = function
        self._bodies = bodies
        self._misfits = misfits
        self._takes_message = _takes_message(function)

    def __reduce__(self) -> str:
        # A listener that runs in other processes is found there by its name, which the function
        # itself no longer has.
        return str(self.function.__qualname__)

    def _called(self, value: Any, message: Any) -> Any:
        return self.function(value, message) if self._takes_message else self.function(value)

    def _misfit(self, message: StoredMessage, error: BodyMismatch) -> Result:
        kind = message.properties.get(CONTENT_TYPE)
        logger.error(
            "the body of %s, offset %d, does not fit: %s%s; %s",
            message.queue, message.queue_offset, error,
            "" if kind is None else f" (its contentType is {kind[:100]!r})",
            _WORDS[self._misfits],
        )  # fmt: skip
        if self._misfits == "drop":
            return None
        return Later(-1) if self._misfits == "dead letter" else Later()


class TypedListener(DecodingListener[T]):
    """A listener made by `typed`: the user's function is `function`."""

    takes_batches = False

    def __call__(self, message: StoredMessage) -> Any:
        """Calls the function with the object in a message."""
        try:
            value = self._bodies.decode(message.body)
        except BodyMismatch as error:
            return self._misfit(message, error)
        return self._called(value, message)


class AsyncTypedListener(TypedListener[T]):
    """The same for a coroutine function; schemas are fetched without blocking the event loop."""

    async def __call__(self, message: StoredMessage) -> Any:
        """Awaits the function with the object in a message."""
        await self._bodies.prepare(message.body)
        result = super().__call__(message)
        return await result if inspect.isawaitable(result) else result


_WORDS: dict[str, str] = {
    "dead letter": "it becomes a dead letter",
    "retry": "it comes again later",
    "drop": "it is dropped",
}


def typed(
    kind: type[T], codec: BodyCodec | None = None, *, misfits: Misfits = "dead letter"
) -> Callable[[TypedFunction[T]], TypedListener[T]]:
    """Makes a listener of a function that takes objects of a type::

        @consumer.on("orders")
        @typed(Order)
        async def bill(order: Order) -> None: ...

    Args:
        kind: a dataclass, a struct of msgspec, a model of pydantic, or what else msgspec converts
            JSON to. Bodies are checked against it.
        codec: of the bodies; None for JSON. `sprocket.schemas.choice.choose` makes others.
        misfits: what becomes of a message whose body does not fit: "dead letter", at once; "retry",
            as after any failure; or "drop".

    The function takes the object, or the object and its message, and returns what a listener
    returns. It is called for one message at a time; `typed_batch` makes listeners of lists.

    Raises:
        UsageError: `misfits` is none of these, or the function takes other arguments.
    """
    bodies = bodies_of(kind, codec, misfits)

    def make(function: TypedFunction[T]) -> TypedListener[T]:
        made = AsyncTypedListener if is_coroutine_function(function) else TypedListener
        return made(function, bodies, misfits)

    return make


def bodies_of(kind: type[T], codec: BodyCodec | None, misfits: Misfits) -> TypedBodies[T]:
    """The bodies of a typed listener.

    Raises:
        UsageError: `misfits` is none of its values.
    """
    if misfits not in get_args(Misfits):
        raise UsageError(f"misfits is one of {get_args(Misfits)}, not {misfits!r}")
    return TypedBodies(kind, codec or JsonBodies())


def _takes_message(function: Callable[..., Any]) -> bool:
    """Whether a function takes the message too.

    Raises:
        UsageError: it takes neither one argument nor two.
    """
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        raise UsageError(f"a typed listener is a function, not {function!r}") from None
    for count in (2, 1):
        try:
            signature.bind(*range(count))
        except TypeError:
            continue
        return count == 2
    raise UsageError(f"a typed listener takes an object, or an object and its message: {function}")
