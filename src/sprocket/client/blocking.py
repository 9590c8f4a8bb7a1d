"""The same clients for programs without an event loop.

Each method waits for its asynchronous namesake, which runs on one event loop in one background
thread of this process: there is no second implementation, and any number of threads may use one
client. A producer or pull consumer that a forked child inherited starts anew in the child by
itself; a push consumer does not, for a child has not joined the group.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterator, Sequence
from concurrent.futures import Future
from functools import partial, update_wrapper
from types import TracebackType
from typing import Any, Concatenate, Generic, ParamSpec, Protocol, Self, TypeVar, overload

from sprocket.base.errors import ClosedError, UsageError
from sprocket.client import consumer, manual, producer
from sprocket.client.config import ConsumerConfig, ProducerConfig, PullConfig
from sprocket.client.offsets import Start
from sprocket.client.subscription import BatchListener, MessageListener
from sprocket.client.world import World
from sprocket.message.message import StoredMessage
from sprocket.message.queue import QueueId

__all__ = ["Producer", "PullConsumer", "PushConsumer"]

P = ParamSpec("P")
T = TypeVar("T")
M = TypeVar("M", bound=MessageListener)
B = TypeVar("B", bound=BatchListener)
C = TypeVar("C", bound="_Client")


class _Client(Protocol):
    """What the asynchronous clients have in common."""

    async def start(self) -> None: ...

    async def close(self) -> None: ...


class _Background:
    """The event loop in its thread."""

    def __init__(self) -> None:
        self.process = os.getpid()
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="sprocket", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        self.loop.run_forever()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Runs a coroutine on the loop and waits for its end; whatever stops the wait stops it."""
        if threading.current_thread() is self._thread:
            work.close()
            raise UsageError("an async listener must not wait for a blocking client")
        future: Future[T] = asyncio.run_coroutine_threadsafe(work, self.loop)
        try:
            return future.result()
        except BaseException:  # also Ctrl-C: nobody waits any more
            future.cancel()
            raise


_background: _Background | None = None
_starting = threading.Lock()


def _loop_of_this_process() -> _Background:
    """The background loop, made on first use and again after a fork."""
    global _background, _starting
    found = _background
    if found is not None and found.process == os.getpid():
        return found
    if found is not None:
        _starting = threading.Lock()  # a thread that the child does not have may hold the old one
    with _starting:
        if _background is None or _background.process != os.getpid():
            _background = _Background()
        return _background


class _Face(Generic[C]):
    """A client of this module: an asynchronous one, and where it runs."""

    #: Whether a forked child may go on with it.
    _survives_fork = True

    def __init__(self, make: Callable[[], C]) -> None:
        self._make = make
        self._client = make()
        self._process = os.getpid()
        self._is_started = False

    def _run(self, method: Callable[..., Coroutine[Any, Any, T]], *args: Any, **named: Any) -> T:
        background = _loop_of_this_process()
        if self._process != background.process:
            self._begin_in_child(background)
        return background.run(method(self._client, *args, **named))

    def _begin_in_child(self, background: _Background) -> None:
        if not self._survives_fork:
            raise ClosedError("this consumer belongs to the process that started it")
        self._client = self._make()
        self._process = background.process
        if self._is_started:
            background.run(self._client.start())

    def start(self) -> None:
        """As the asynchronous client's `start`."""
        self._run(_start)
        self._is_started = True

    def close(self) -> None:
        """As the asynchronous client's `close`."""
        self._is_started = False
        if self._process == os.getpid():
            self._run(_close)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


async def _start(client: _Client) -> None:
    await client.start()


async def _close(client: _Client) -> None:
    await client.close()


def _waiting(
    method: Callable[Concatenate[C, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate[_Face[C], P], T]:
    """A method that waits for an asynchronous one; signature and words are its."""

    def call(self: _Face[C], /, *args: P.args, **named: P.kwargs) -> T:
        return self._run(method, *args, **named)

    update_wrapper(call, method)
    return call


def _on_the_loop(
    method: Callable[Concatenate[C, P], T],
) -> Callable[Concatenate[_Face[C], P], T]:
    """A method that does not wait, done on the loop all the same: what it touches lives there."""

    async def do(client: C, /, *args: P.args, **named: P.kwargs) -> T:
        return method(client, *args, **named)

    update_wrapper(do, method)
    return _waiting(do)


class Producer(_Face[producer.Producer]):
    """Sends messages; see `sprocket.Producer` for what each method does.

    Example::

        from sprocket import Message
        from sprocket.client.blocking import Producer

        with Producer("order-senders", nameservers="127.0.0.1:9876") as producer:
            sent = producer.send(Message("orders", b"one book", tag="new", keys=["o-1"]))
            print(sent.queue, sent.queue_offset, sent.status)
    """

    def __init__(
        self,
        group: str,
        *,
        nameservers: str | Sequence[str] | None = None,
        config: ProducerConfig | None = None,
        world: World | None = None,
    ) -> None:
        super().__init__(
            lambda: producer.Producer(group, nameservers=nameservers, config=config, world=world)
        )

    send = _waiting(producer.Producer.send)
    send_batch = _waiting(producer.Producer.send_batch)
    send_oneway = _waiting(producer.Producer.send_oneway)
    queues = _waiting(producer.Producer.queues)


class PushConsumer(_Face[consumer.PushConsumer]):
    """A member of a consumer group; see `sprocket.PushConsumer` for what each method does.

    Plain functions as listeners run in threads of their own, several at once. Example::

        from sprocket.client.blocking import PushConsumer

        with PushConsumer("billing", nameservers="127.0.0.1:9876") as consumer:

            @consumer.on("orders", tags="new || paid")
            def bill(message):
                print(message.body, message.tag, message.keys)

            consumer.wait_closed()  # until Ctrl-C

    Or iterate::

        with PushConsumer("billing", nameservers="127.0.0.1:9876") as consumer:
            consumer.subscribe("orders")
            for message in consumer:
                print(message.body)
    """

    _survives_fork = False

    def __init__(
        self,
        group: str,
        *,
        nameservers: str | Sequence[str] | None = None,
        start: Start = "last",
        ordered: bool = False,
        broadcasting: bool = False,
        config: ConsumerConfig | None = None,
        world: World | None = None,
    ) -> None:
        super().__init__(
            lambda: consumer.PushConsumer(
                group,
                nameservers=nameservers,
                start=start,
                ordered=ordered,
                broadcasting=broadcasting,
                config=config,
                world=world,
            )
        )

    subscribe = _on_the_loop(consumer.PushConsumer.subscribe)
    unsubscribe = _on_the_loop(consumer.PushConsumer.unsubscribe)
    later = _on_the_loop(consumer.PushConsumer.later)
    pause = _on_the_loop(consumer.PushConsumer.pause)
    resume = _on_the_loop(consumer.PushConsumer.resume)
    statistics = _on_the_loop(consumer.PushConsumer.statistics)
    wait_closed = _waiting(consumer.PushConsumer.wait_closed)

    @overload
    def on(self, topic: str, *, tags: str = "*") -> Callable[[M], M]: ...

    @overload
    def on(self, topic: str, *, tags: str = "*", batch: int) -> Callable[[B], B]: ...

    def on(self, topic: str, *, tags: str = "*", batch: int | None = None) -> Any:
        """Decorates the function that gets a topic's messages, as the asynchronous `on`."""

        async def subscribe(client: consumer.PushConsumer, function: Any) -> Any:
            on: Any = client.on
            return on(topic, tags=tags, batch=batch)(function)

        return partial(self._run, subscribe)

    @property
    def queues(self) -> list[QueueId]:
        """Queues that this member has now, sorted."""
        return self._client.queues

    @property
    def client_id(self) -> str | None:
        """The name by which brokers and other members know it; None before the start."""
        return self._client.client_id

    def __iter__(self) -> Iterator[StoredMessage]:
        messages = self._run(_iterate)
        try:
            while (message := self._run(_next_of, messages)) is not None:
                yield message
        finally:
            self._run(_end_of, messages)


async def _iterate(client: consumer.PushConsumer) -> AsyncGenerator[StoredMessage, None]:
    return aiter(client)


async def _next_of(
    client: consumer.PushConsumer, messages: AsyncGenerator[StoredMessage, None]
) -> StoredMessage | None:
    return await anext(messages, None)


async def _end_of(
    client: consumer.PushConsumer, messages: AsyncGenerator[StoredMessage, None]
) -> None:
    await messages.aclose()


class PullConsumer(_Face[manual.PullConsumer]):
    """Reads queues by hand; see `sprocket.PullConsumer` for what each method does.

    Example::

        from sprocket.client.blocking import PullConsumer

        with PullConsumer("audit", nameservers="127.0.0.1:9876") as consumer:
            for queue in consumer.queues("orders"):
                pulled = consumer.pull(queue, consumer.min_offset(queue))
                for message in pulled.messages:
                    print(message.queue_offset, message.body)
    """

    def __init__(
        self,
        group: str,
        *,
        nameservers: str | Sequence[str] | None = None,
        config: PullConfig | None = None,
        world: World | None = None,
    ) -> None:
        super().__init__(
            lambda: manual.PullConsumer(group, nameservers=nameservers, config=config, world=world)
        )

    queues = _waiting(manual.PullConsumer.queues)
    pull = _waiting(manual.PullConsumer.pull)
    pull_blocking = _waiting(manual.PullConsumer.pull_blocking)
    committed = _waiting(manual.PullConsumer.committed)
    commit = _waiting(manual.PullConsumer.commit)
    min_offset = _waiting(manual.PullConsumer.min_offset)
    max_offset = _waiting(manual.PullConsumer.max_offset)
    offset_at = _waiting(manual.PullConsumer.offset_at)
