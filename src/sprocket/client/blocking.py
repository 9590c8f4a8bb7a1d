"""The same clients for programs without an event loop.

Each method waits for the asynchronous method of the same name, which runs on one event loop in one
background thread of this process. There is no second implementation, and any number of threads may
use one client. If a forked child inherits a producer or a pull consumer, it starts again in the
child automatically. A push or lite pull consumer does not, because the child has not joined its
group: its methods raise ClosedError there.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, TypeVar, Unpack, overload

from sprocket.client import lite_pull_consumer as lite
from sprocket.client import producer
from sprocket.client import pull_consumer as manual
from sprocket.client import push_consumer as consumer
from sprocket.client import simple_consumer as simple
from sprocket.client import transactional_producer as transactional
from sprocket.client.base.background_loop import BlockingClient, on_the_loop, opened_by, waiting
from sprocket.client.base.subscription import BatchListener, MessageListener
from sprocket.client.group.subscriptions import Topics
from sprocket.filter.choice import MessageSelector
from sprocket.message.message import Message, StoredMessage
from sprocket.message.queue import QueueId

__all__ = [
    "LitePullConsumer",
    "Producer",
    "PullConsumer",
    "PushConsumer",
    "SimpleConsumer",
    "TransactionalProducer",
]

M = TypeVar("M", bound=MessageListener)
B = TypeVar("B", bound=BatchListener)


class Producer(BlockingClient[producer.Producer]):
    """Sends messages. `sprocket.Producer` describes the methods.

    Example::

        from sprocket import Message
        from sprocket.client.blocking import Producer

        with Producer("order-senders", nameservers="127.0.0.1:9876") as producer:
            sent = producer.send(Message("orders", b"one book", tag="new", keys=["o-1"]))
            print(sent.queue, sent.queue_offset, sent.status)
    """

    @opened_by(producer.Producer)
    def __init__(self) -> None:
        """Takes the arguments of the asynchronous client."""

    send = waiting(producer.Producer.send)
    message = waiting(producer.Producer.message)
    send_batch = waiting(producer.Producer.send_batch)
    send_many = waiting(producer.Producer.send_many)
    send_oneway = waiting(producer.Producer.send_oneway)
    recall = waiting(producer.Producer.recall)
    request = waiting(producer.Producer.request)
    reply = waiting(producer.Producer.reply)
    queues = waiting(producer.Producer.queues)


class TransactionalProducer(BlockingClient[transactional.TransactionalProducer]):
    """Sends messages in transactions. `sprocket.TransactionalProducer` describes the methods.

    Example::

        with TransactionalProducer("shop", nameservers="127.0.0.1:9876", check=was_stored) as shop:
            with shop.transaction(Message("orders", b"one book", keys=["o-1"])):
                orders.store("o-1")  # consumers receive the message if this succeeds
    """

    @opened_by(transactional.TransactionalProducer)
    def __init__(self) -> None:
        """Takes the arguments of the asynchronous client."""

    send = waiting(transactional.TransactionalProducer.send)
    message = waiting(transactional.TransactionalProducer.message)
    send_batch = waiting(transactional.TransactionalProducer.send_batch)
    send_many = waiting(transactional.TransactionalProducer.send_many)
    send_oneway = waiting(transactional.TransactionalProducer.send_oneway)
    recall = waiting(transactional.TransactionalProducer.recall)
    request = waiting(transactional.TransactionalProducer.request)
    reply = waiting(transactional.TransactionalProducer.reply)
    queues = waiting(transactional.TransactionalProducer.queues)
    send_in_transaction = waiting(transactional.TransactionalProducer.send_in_transaction)

    @contextmanager
    def transaction(
        self,
        message: Message,
        *,
        key: str | int | None = None,
        queue: QueueId | None = None,
        immunity_s: int | None = None,
        timeout_ms: float | None = None,
    ) -> Iterator[transactional.Transaction]:
        """Opens a transaction, for use with `with`; arguments as for the asynchronous method."""
        opened = self._run(
            _begin, message, key=key, queue=queue, immunity_s=immunity_s, timeout_ms=timeout_ms
        )
        try:
            yield opened
        except BaseException as error:  # of the caller's work, or what interrupted it
            self._run(_end, opened, error)
            raise
        self._run(_end, opened, None)


async def _begin(
    client: transactional.TransactionalProducer, message: Message, **named: Any
) -> transactional.Transaction:
    return await client.transaction(message, **named).__aenter__()


async def _end(
    client: transactional.TransactionalProducer,
    opened: transactional.Transaction,
    error: BaseException | None,
) -> None:
    await opened.__aexit__(None if error is None else type(error), error, None)


class PushConsumer(BlockingClient[consumer.PushConsumer]):
    """A member of a consumer group. `sprocket.PushConsumer` describes the methods.

    Listeners that are plain functions run in threads, several at once. Example::

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

    @opened_by(consumer.PushConsumer)
    def __init__(self) -> None:
        """Takes the arguments of the asynchronous client."""

    subscribe = on_the_loop(consumer.PushConsumer.subscribe)
    unsubscribe = on_the_loop(consumer.PushConsumer.unsubscribe)
    later = on_the_loop(consumer.PushConsumer.later)
    reply = waiting(consumer.PushConsumer.reply)
    pause = on_the_loop(consumer.PushConsumer.pause)
    resume = on_the_loop(consumer.PushConsumer.resume)
    statistics = on_the_loop(consumer.PushConsumer.statistics)
    wait_closed = waiting(consumer.PushConsumer.wait_closed)

    @overload
    def on(self, topic: Topics, **choice: Unpack[MessageSelector]) -> Callable[[M], M]: ...

    @overload
    def on(
        self, topic: Topics, *, batch: int, **choice: Unpack[MessageSelector]
    ) -> Callable[[B], B]: ...

    def on(
        self, topic: Topics, *, batch: int | None = None, **choice: Unpack[MessageSelector]
    ) -> Any:
        """Decorates the function that receives a topic's messages, as the asynchronous `on`."""

        async def subscribe(client: consumer.PushConsumer, function: Any) -> Any:
            on: Any = client.on
            return on(topic, batch=batch, **choice)(function)

        return partial(self._run, subscribe)

    @property
    def queues(self) -> list[QueueId]:
        """The queues that this member holds now, sorted."""
        return self._here.queues

    @property
    def client_id(self) -> str | None:
        """The id by which brokers and other members know it; None before the start."""
        return self._here.client_id

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


class LitePullConsumer(BlockingClient[lite.LitePullConsumer]):
    """Returns messages to `poll`. `sprocket.LitePullConsumer` describes the methods.

    Example::

        from sprocket.client.blocking import LitePullConsumer

        with LitePullConsumer("audit", nameservers="127.0.0.1:9876") as consumer:
            consumer.subscribe("orders", tags="paid")
            while messages := consumer.poll(timeout_ms=10_000):
                for message in messages:
                    print(message.queue, message.queue_offset, message.body)
            consumer.commit()
    """

    _survives_fork = False

    @opened_by(lite.LitePullConsumer)
    def __init__(self) -> None:
        """Takes the arguments of the asynchronous client."""

    subscribe = on_the_loop(lite.LitePullConsumer.subscribe)
    unsubscribe = on_the_loop(lite.LitePullConsumer.unsubscribe)
    assign = on_the_loop(lite.LitePullConsumer.assign)
    on_assignment = on_the_loop(lite.LitePullConsumer.on_assignment)
    pause = on_the_loop(lite.LitePullConsumer.pause)
    resume = on_the_loop(lite.LitePullConsumer.resume)
    poll = waiting(lite.LitePullConsumer.poll)
    commit = waiting(lite.LitePullConsumer.commit)
    committed = waiting(lite.LitePullConsumer.committed)
    position = waiting(lite.LitePullConsumer.position)
    seek = waiting(lite.LitePullConsumer.seek)
    seek_to_begin = waiting(lite.LitePullConsumer.seek_to_begin)
    seek_to_end = waiting(lite.LitePullConsumer.seek_to_end)
    seek_to_time = waiting(lite.LitePullConsumer.seek_to_time)
    queues = waiting(lite.LitePullConsumer.queues)
    statistics = on_the_loop(lite.LitePullConsumer.statistics)

    @property
    def assignment(self) -> list[QueueId]:
        """The queues that this consumer reads now, sorted."""
        return self._here.assignment

    @property
    def client_id(self) -> str | None:
        """The id by which brokers and other members know it; None before the start."""
        return self._here.client_id


class PullConsumer(BlockingClient[manual.PullConsumer]):
    """Reads queues from offsets that the caller keeps. `sprocket.PullConsumer` has the details.

    Example::

        from sprocket.client.blocking import PullConsumer

        with PullConsumer("audit", nameservers="127.0.0.1:9876") as consumer:
            for queue in consumer.queues("orders"):
                pulled = consumer.pull(queue, consumer.min_offset(queue))
                for message in pulled.messages:
                    print(message.queue_offset, message.body)
    """

    @opened_by(manual.PullConsumer)
    def __init__(self) -> None:
        """Takes the arguments of the asynchronous client."""

    queues = waiting(manual.PullConsumer.queues)
    pull = waiting(manual.PullConsumer.pull)
    pull_blocking = waiting(manual.PullConsumer.pull_blocking)
    committed = waiting(manual.PullConsumer.committed)
    commit = waiting(manual.PullConsumer.commit)
    min_offset = waiting(manual.PullConsumer.min_offset)
    max_offset = waiting(manual.PullConsumer.max_offset)
    offset_at = waiting(manual.PullConsumer.offset_at)


class SimpleConsumer(BlockingClient[simple.SimpleConsumer]):
    """Receives messages on request, and acknowledges each. `sprocket.SimpleConsumer` has the rest.

    Example::

        from sprocket.client.blocking import SimpleConsumer

        with SimpleConsumer("billing", nameservers="127.0.0.1:9876") as consumer:
            consumer.subscribe("orders", tags="paid")
            while messages := consumer.receive(invisible_ms=30_000):
                for message in messages:
                    print(message.body)
                consumer.ack(messages)
    """

    _survives_fork = False

    @opened_by(simple.SimpleConsumer)
    def __init__(self) -> None:
        """Takes the arguments of the asynchronous client."""

    subscribe = on_the_loop(simple.SimpleConsumer.subscribe)
    unsubscribe = on_the_loop(simple.SimpleConsumer.unsubscribe)
    receive = waiting(simple.SimpleConsumer.receive)
    ack = waiting(simple.SimpleConsumer.ack)
    change_invisible_time = waiting(simple.SimpleConsumer.change_invisible_time)
    forward_to_dead_letters = waiting(simple.SimpleConsumer.forward_to_dead_letters)
    statistics = on_the_loop(simple.SimpleConsumer.statistics)

    @property
    def client_id(self) -> str | None:
        """The id by which brokers and other members know it; None before the start."""
        return self._here.client_id
