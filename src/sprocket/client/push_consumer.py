"""The push consumer: a member of a group whose messages go to listeners, or to a loop."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from typing import Any, TypeVar, Unpack, overload

from sprocket.base.deadline import Deadline
from sprocket.base.errors import ClosedError, UsageError
from sprocket.client.base.arguments import chosen, settings
from sprocket.client.base.lifecycle import Lifecycle
from sprocket.client.base.nameservers import nameserver_addresses
from sprocket.client.base.subscription import BatchListener, Later, Listener, MessageListener
from sprocket.client.base.world import ClientEnvironment
from sprocket.client.config import ConsumerConfig
from sprocket.client.delivery.dispatcher import Dispatcher
from sprocket.client.delivery.iterate import IteratedDelivery
from sprocket.client.delivery.processes import check_portable
from sprocket.client.fetching.pauses import Pauses
from sprocket.client.fetching.statistics import Counters, Statistics
from sprocket.client.group.agreement import check_agreement
from sprocket.client.group.discovery import Discovery
from sprocket.client.group.local_offsets import LocalOffsets, broadcasting_config, open_local
from sprocket.client.group.offsets import Start, StartPosition
from sprocket.client.group.subscriptions import Subscriptions, Topics
from sprocket.client.popping.message_source import (
    MessageSource,
    Mode,
    SourceOptions,
    check_mode,
)
from sprocket.client.popping.pop_client import check_poppable
from sprocket.client.sending.request_reply import Responder
from sprocket.client.sending.sender import Sent
from sprocket.client.session.session import Session
from sprocket.filter.choice import Filter, MessageSelector, filter_of
from sprocket.message.message import StoredMessage
from sprocket.message.queue import QueueId
from sprocket.message.topic import check_consumer_group, retry_topic

__all__ = ["Later", "PushConsumer", "Start"]

#: Seconds after the start in which the first topic should be subscribed.
_SUBSCRIBED_SECONDS = 5.0
logger = logging.getLogger(__name__)

M = TypeVar("M", bound=MessageListener)
B = TypeVar("B", bound=BatchListener)


class PushConsumer(Lifecycle):
    """A member of a consumer group; the members of the group share the queues of its topics.

    Each message goes to one member, at least once. When the listener returns, the message is
    consumed. If the listener raises an exception or returns `Later()`, the message is redelivered
    after 10 s, then 30 s, … up to 2 h; after 16 redeliveries it becomes a dead letter in
    `%DLQ%group`::

        import asyncio
        from sprocket import PushConsumer

        async def main():
            async with PushConsumer("billing", nameservers="127.0.0.1:9876") as consumer:

                @consumer.on("orders", tags="new || paid")
                async def bill(message):
                    print(message.body, message.tag, message.keys, message.queue)

                await asyncio.sleep(60)

        asyncio.run(main())

    A listener may be a plain function too; it runs in a thread. Or iterate over the consumer: a
    message is consumed when the loop requests the next one, and is redelivered if the loop ends
    before that::

        async with PushConsumer("billing", nameservers="127.0.0.1:9876") as consumer:
            consumer.subscribe("orders")
            async for message in consumer:
                print(message.body)

    Args:
        group: the consumer group's name.
        nameservers: `host:port`, or several, separated by `;` or as a list. None: the environment
            variable SPROCKET_NAMESERVERS, or else NAMESRV_ADDR.
        start: where a group without committed offsets starts. `"last"`: with messages that are sent
            from now on. `"first"`: with the oldest messages. A datetime or ms since 1970 UTC: with
            messages that were stored at this time or later.
        ordered: whether each queue's messages are delivered one after the other, in the order in
            which they were stored. A queue is read under a lease then, and a message that fails
            blocks its queue: it is redelivered every second, without limit unless
            `config.reconsume_max` sets one. `Later(-1)` makes it a dead letter.
        mode: how it gets messages. `"pull"`: from queues, which the members share. `"pop"`: one by
            one, from all queues (see `docs/guide/pop.md`). `"broker"`: as operators have set it at
            the brokers for a topic and the group (`sprocket group mode`).
        broadcasting: whether every member receives every message. Offsets are then stored in a file
            on this machine (see `config.offsets_folder`) under the client id, which is
            `address@DEFAULT`, as for Java clients, or `address@instance`; members on one machine
            need different `config.instance`. A message that fails is dropped with a warning,
            because broadcasting has no redelivery.
        config: concurrency, limits and times.
        world: clock and randomness, for simulations.

    Raises:
        UsageError: the group's name or the start is invalid.
        ConfigError: there is no name server, or an address is invalid.

    A consumer belongs to the event loop in which it was started. `sprocket.client.blocking` has the
    same class for programs without a loop.
    """

    def __init__(
        self,
        group: str,
        *,
        nameservers: str | Sequence[str] | None = None,
        start: Start = "last",
        ordered: bool = False,
        broadcasting: bool = False,
        mode: Mode = "pull",
        config: ConsumerConfig | None = None,
        world: ClientEnvironment | None = None,
    ) -> None:
        check_consumer_group(group)
        self.group = group
        self.config = settings(config, ConsumerConfig)
        self.ordered = ordered
        self.broadcasting = broadcasting
        self.mode = mode
        used = broadcasting_config(self.config) if broadcasting else self.config
        servers = nameserver_addresses(nameservers, os.environ)
        self._options = SourceOptions(group, used, start, ordered, broadcasting, mode, servers)
        check_mode(self._options)
        self._pauses = Pauses()
        self._counters = Counters(group)
        self._local: LocalOffsets | None = None
        StartPosition.of(start)
        self._world = world
        self._subscriptions = Subscriptions()
        self._dispatcher = Dispatcher(
            group,
            self.config,
            subscriptions=self._subscriptions.by_topic,
            ordered=ordered,
            broadcasting=broadcasting,
            counters=self._counters,
            pauses=self._pauses,
        )
        self._discovery: Discovery | None = None
        self._session: Session | None = None
        self._source: MessageSource | None = None
        self._closed = asyncio.Event()

    @property
    def queues(self) -> list[QueueId]:
        """The queues that this member holds or pops now, sorted; those that it pops at all queues
        of a broker have the number -1."""
        return self._source.queues if self._source is not None else []

    @property
    def client_id(self) -> str | None:
        """The id by which brokers and other members know it; None before the start."""
        return self._session.client_id if self._session is not None else None

    @overload
    def on(self, topic: Topics, **choice: Unpack[MessageSelector]) -> Callable[[M], M]: ...

    @overload
    def on(
        self, topic: Topics, *, batch: int, **choice: Unpack[MessageSelector]
    ) -> Callable[[B], B]: ...

    def on(
        self, topic: Topics, *, batch: int | None = None, **choice: Unpack[MessageSelector]
    ) -> Any:
        """Subscribes the decorated function to a topic's messages; before or after the start.

        Args:
            topic: its name, or a pattern (`re.compile("orders-.*")`) for all topics whose whole
                names match; topics that appear later are found within `config.route_refresh_ms`.
            batch: None: the function takes one message. A number: it takes a list with at most so
                many messages, and may return a list with None or `Later` for each.
            choice: which messages: `tags="new || paid"`, `sql="amount > 5 AND region = 'eu'"`, or
                `code=` a function that the broker runs; see
                `sprocket.filter.choice.MessageSelector`.

        Raises:
            UsageError, SubscriptionInvalid: as for `subscribe`.
        """

        if callable(topic):
            raise UsageError('the decorator needs a topic: @consumer.on("orders")')

        def subscribe(function: Any) -> Any:
            self._subscribe(topic, chosen(choice), self._listener(function, batch))
            return function

        return subscribe

    def subscribe(
        self,
        topic: Topics,
        *,
        listener: MessageListener | BatchListener | None = None,
        batch: int | None = None,
        **choice: Unpack[MessageSelector],
    ) -> None:
        """Subscribes to a topic; before or after the start.

        All members of a group need the same subscriptions, because brokers keep one for a group.

        Args:
            topic, batch, choice: as for `on`.
            listener: receives the messages; None: they are iterated over.

        Raises:
            SubscriptionInvalid: the tags or the SQL cannot be parsed.
            UsageError: the topic's name or the listener is invalid, or some topics have a listener
                and others have none.
        """
        if batch is not None and listener is None:
            raise UsageError("batch goes with a listener")
        found = None if listener is None else self._listener(listener, batch)
        self._subscribe(topic, chosen(choice), found)

    def _listener(self, function: Any, batch: int | None) -> Listener:
        """A user's function, whose calls are spans if there are some; not in other processes."""
        made = Listener.of(function, batch)
        if self._spans is None or (made.is_blocking and self.config.processes):
            return made
        return self._spans.around(made)

    def unsubscribe(self, topic: Topics) -> None:
        """Unsubscribes from a topic or pattern, and releases its queues; else does nothing."""
        if self._subscriptions.drop(topic):
            self._changed()

    def _subscribe(self, topic: Topics, wanted: Filter, listener: Listener | None) -> None:
        self._check_loop()
        self._dispatcher.check(listener)
        if self.mode == "pop":
            check_poppable(wanted)
        if listener is not None and listener.is_blocking and self.config.processes:
            check_portable(listener.function)
        now_ms = (self._world or ClientEnvironment.real()).clock.now_ms()
        self._subscriptions.set(topic, wanted, listener, version=now_ms)
        self._dispatcher.choose(listener)
        self._changed()

    def _changed(self, fresh: Sequence[str] = ()) -> None:
        if self._discovery is not None:
            self._discovery.discover_soon()
        if self._source is not None:
            self._source.subscribed(fresh)

    def later(self, message: StoredMessage, delay_level: int = 0) -> None:
        """Marks the current message of a loop over the consumer for redelivery.

        Args:
            message: the message that the loop received last.
            delay_level: as in `Later`.

        Raises:
            UsageError: it is not the current message of a loop, or messages go to listeners, which
                return `Later()` instead.
            ClosedError: the consumer is not started, or is closed.
        """
        self._iterated().mark(message, Later(delay_level))

    def __aiter__(self) -> AsyncGenerator[StoredMessage, None]:
        return self._iterated().iterate()

    def _iterated(self) -> IteratedDelivery:
        self._check_loop()
        if self._session is None:
            raise ClosedError("the consumer is not started, or is closed")
        return self._dispatcher.iterated

    async def start(self) -> None:
        """Joins the group. Servers that do not run yet are contacted again in the background.

        Raises:
            UsageError: with `config.alike_only`, members of the group have other subscriptions.
            DirectoryInUse, StoreError, OSError: in broadcasting, the file of offsets is in use, is
                broken, or cannot be accessed.
        """
        self._check_loop()
        if self._session is not None:
            return
        self._closed.clear()
        options = self._options
        session = self._session = Session.join(
            options.nameservers, options.config, self._world, group=self.group
        )
        version = session.world.clock.now_ms()
        try:
            if self.broadcasting:
                folder, client_id = self.config.offsets_folder, session.client_id
                self._local = open_local(self._world, folder, client_id, self.group)
            else:
                self._subscriptions.set(
                    retry_topic(self.group), filter_of("*"), None, version=version
                )
            self._discovery = Discovery(session, self._subscriptions, self._changed, self.config)
            await self._discovery.start()
            wanted = self._subscriptions.by_topic
            if self.config.alike_only:
                await check_agreement(session, self.group, wanted=wanted, config=self.config)
            source = self._source = MessageSource(
                session,
                options,
                wanted,
                self._dispatcher,
                counters=self._counters,
                pauses=self._pauses,
                local=self._local,
            )
            session.operated[self.group] = source.requests(session, self.statistics, version)
            await source.start()
            call_later = asyncio.get_running_loop().call_later
            call_later(_SUBSCRIBED_SECONDS, self._check_subscribed, session)
        except BaseException:  # raised again; only nothing must stay half open
            await self.close()
            raise

    def _check_subscribed(self, session: Session) -> None:
        """Reports a consumer for which nothing was subscribed some seconds after its start."""
        is_any = self._subscriptions.by_topic.keys() - {retry_topic(self.group)}
        if self._session is session and not is_any and not self._subscriptions.has_patterns:
            logger.warning("%s: no topic is subscribed, so no message comes", self.group)

    def pause(self, topic: str | None = None) -> None:
        """Stops fetching from one topic, or from all; fetched messages are still delivered.

        The consumer stays a member and keeps its queues; new messages wait at the brokers.
        Redelivered messages of a paused topic wait in memory, because all topics share one retry
        topic.

        Args:
            topic: None: all topics.
        """
        if topic is None:
            self._pauses.pause_all()
        else:
            self._pauses.pause_topic(topic)

    def resume(self, topic: str | None = None) -> None:
        """Continues to fetch from one topic; None: from all."""
        if topic is None:
            self._pauses.resume_all()
        else:
            self._pauses.resume_topic(topic)

    async def reply(
        self, request: StoredMessage, body: bytes, *, properties: Mapping[str, str] | None = None
    ) -> Sent:
        """Replies to a message that a producer sent by `request`; errors as `Producer.reply`."""
        if self._session is None:
            raise ClosedError("the consumer is not started, or is closed")
        self._session.check_loop()
        return await Responder(self._session).reply(request, body, properties=properties)

    def statistics(self) -> Statistics:
        """Returns rates, times and failures by topic, and how many messages are in memory."""
        windows = self._source.windows if self._source is not None else ()
        return self._counters.snapshot(asyncio.get_running_loop().time(), windows)

    async def close(self) -> None:
        """Leaves the group: waits for running listeners, commits, unregisters at the brokers.

        The wait takes `config.drain_ms` at most; coroutines that still run are cancelled then.
        """
        self._check_loop()
        session, self._session = self._session, None
        source, self._source = self._source, None
        delivery = self._dispatcher.close()
        if session is None:
            return
        session.operated.pop(self.group, None)
        discovery, self._discovery = self._discovery, None
        if discovery is not None:
            await discovery.close()
        if source is not None:
            await source.stop_fetching()
        if delivery is not None:
            await delivery.stop(Deadline.after_ms(self.config.drain_ms))
        if source is not None:
            await source.leave()
        local, self._local = self._local, None
        if local is not None:
            local.close()
        await session.leave(group=self.group)
        self._closed.set()

    async def wait_closed(self) -> None:
        """Returns when the consumer is closed; for programs that do nothing else."""
        await self._closed.wait()
