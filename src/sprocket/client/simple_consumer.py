"""The simple consumer: receives messages on request, and acknowledges each one by itself.

It pops: nothing is fetched ahead, and no queue belongs to it. Source: SimpleConsumer of RocketMQ
5's clients, whose names it has; it speaks the remoting protocol.
"""

from __future__ import annotations

import asyncio
import itertools
import os
from collections.abc import Iterable, Sequence
from typing import Literal, Unpack

from sprocket.base.deadline import Deadline
from sprocket.base.errors import (
    ClosedError,
    HandleExpired,
    ReplyError,
    SprocketError,
    UsageError,
)
from sprocket.client.base import arguments
from sprocket.client.base.lifecycle import Lifecycle
from sprocket.client.base.nameservers import nameserver_addresses
from sprocket.client.base.spanned import receives, settles
from sprocket.client.base.world import ClientEnvironment
from sprocket.client.fetching.statistics import Counters, Statistics
from sprocket.client.group.discovery import Discovery
from sprocket.client.group.offsets import StartPosition
from sprocket.client.group.remote_requests import MemberInfo, RemoteRequests
from sprocket.client.group.subscriptions import Subscriptions, Topics
from sprocket.client.pop_config import SimpleConfig
from sprocket.client.popping.pop_client import (
    INIT_MODES,
    PopClient,
    PopWish,
    check_poppable,
    no_place,
)
from sprocket.client.popping.pop_member import CONSUME_POP, PopMember
from sprocket.client.session.session import Session
from sprocket.clientcore.attempts import is_refusal, may_pass
from sprocket.filter.choice import MessageSelector
from sprocket.message.pop_handle import POP_COUNT_MAX
from sprocket.message.popped_message import PoppedMessage
from sprocket.message.queue import QueueId
from sprocket.message.topic import check_consumer_group

#: How long one of several brokers holds a pop before the next one is asked, ms.
_TURN_MS = 1_000
#: Pause after a round in which no broker held a pop, s.
_PAUSE_SECONDS = 0.2


class SimpleConsumer(Lifecycle):
    """A consumer that receives messages when it asks, and acknowledges each one by itself.

    A message that is received is invisible to the rest of its group for a time. If it is not
    acknowledged by then, the group gets it again. The members share no queues, so a group may have
    more members than queues, and a slow message holds up no other::

        import asyncio
        from sprocket import SimpleConsumer

        async def main():
            async with SimpleConsumer("billing", nameservers="127.0.0.1:9876") as consumer:
                consumer.subscribe("orders", tags="paid")
                while messages := await consumer.receive(invisible_ms=30_000):
                    for message in messages:
                        print(message.body)
                    await consumer.ack(messages)

        asyncio.run(main())

    Args:
        group: the consumer group's name.
        nameservers: `host:port`, or several, separated by `;` or as a list. None: the environment
            variable SPROCKET_NAMESERVERS, or else NAMESRV_ADDR.
        start: where a group without offsets starts: `"first"`, or `"last"` for the newest message
            of each queue. The brokers decide: a queue that still has its very first message is read
            from there.
        config: sizes and times.
        world: clock and randomness, for simulations.

    Raises:
        UsageError: the group's name or the start is invalid.
        ConfigError: there is no name server, or an address is invalid.

    Methods raise `ClosedError` if it is not started. It belongs to the event loop in which it was
    started; any number of its tasks may use it at once. The brokers are RocketMQ 5's or Sprocket's:
    others are refused with `RequestNotSupported`. `sprocket.client.blocking` has the same without a
    loop.
    """

    def __init__(
        self,
        group: str,
        *,
        nameservers: str | Sequence[str] | None = None,
        start: Literal["first", "last"] = "last",
        config: SimpleConfig | None = None,
        world: ClientEnvironment | None = None,
    ) -> None:
        check_consumer_group(group)
        if start not in INIT_MODES:
            raise UsageError(f"a group that pops starts 'first' or 'last', not {start!r}")
        self.group = group
        self.config = arguments.settings(config, SimpleConfig)
        self._init_mode = INIT_MODES[start]
        self._where = StartPosition.of(start).where
        self._nameservers = nameserver_addresses(nameservers, os.environ)
        self._world = world
        self._subscriptions = Subscriptions()
        self._counters = Counters(group)
        self._discovery: Discovery | None = None
        self._session: Session | None = None
        self._member: PopMember | None = None
        self._pops: PopClient | None = None
        self._turns = itertools.count()
        #: The tasks in `receive`, which end when the consumer is closed.
        self._receiving: set[asyncio.Future[list[PoppedMessage]]] = set()

    @property
    def client_id(self) -> str | None:
        """The id by which brokers and other members know it; None before the start."""
        return self._session.client_id if self._session is not None else None

    async def start(self) -> None:
        """Joins the group. Servers that do not run yet are contacted again in the background."""
        if self._session is not None:
            return
        session = self._session = Session.join(
            self._nameservers, self.config, self._world, group=self.group
        )
        try:
            self._pops = PopClient(session, self.group, self.config.call_timeout_ms)
            by_topic = self._subscriptions.by_topic
            member = self._member = PopMember(session, self.group, by_topic, where=self._where)
            clock = session.world.clock
            info = MemberInfo(
                self.group, self.config, False, self._nameservers, clock.now_ms(), CONSUME_POP
            )
            session.operated[self.group] = RemoteRequests(
                member, by_topic, info, statistics=self.statistics, clock=clock
            )
            session.add_consumer(member)
            self._discovery = Discovery(session, self._subscriptions, self._changed, self.config)
            await self._discovery.start()
        except BaseException:  # raised again; only nothing must stay half open
            await self.close()
            raise

    async def close(self) -> None:
        """Leaves the group. What was received and not acknowledged comes again after its time;
        what brokers give to a `receive` that is running becomes visible again at once."""
        self._check_loop()
        session, self._session = self._session, None
        discovery, self._discovery = self._discovery, None
        member, self._member = self._member, None
        pops, self._pops = self._pops, None
        if session is None:
            return
        session.operated.pop(self.group, None)
        for task in list(self._receiving):
            task.cancel()
        if discovery is not None:
            await discovery.close()
        if pops is not None:
            await pops.close(Deadline.after_ms(self.config.call_timeout_ms))
        if member is not None:
            await session.remove_consumer(member)
        await session.leave(group=self.group)

    def subscribe(self, topic: Topics, **choice: Unpack[MessageSelector]) -> None:
        """Subscribes to a topic, or to all that match a pattern; before or after the start.

        All members of a group need the same subscriptions.

        Args:
            choice: which messages: by `tags` or `sql`, see `MessageSelector`.

        Raises:
            SubscriptionInvalid: the tags or the SQL cannot be parsed.
            UsageError: the topic's name is invalid, or the messages are chosen by `code`.
        """
        wanted = arguments.chosen(choice)
        check_poppable(wanted)
        now_ms = (self._world or ClientEnvironment.real()).clock.now_ms()
        self._subscriptions.set(topic, wanted, None, version=now_ms)
        self._changed()

    def unsubscribe(self, topic: Topics) -> None:
        """Unsubscribes from a topic or pattern; else does nothing."""
        if self._subscriptions.drop(topic):
            self._changed()

    @receives
    async def receive(
        self,
        count: int | None = None,
        *,
        invisible_ms: int | None = None,
        wait_ms: float | None = None,
    ) -> list[PoppedMessage]:
        """Receives messages of one topic and broker; an empty list if none arrive in time.

        The topics and brokers take turns. A broker that is away is passed over.

        Args:
            count: how many messages at most; None: `config.receive_batch`. Brokers give 32 at most.
            invisible_ms: for how long they are invisible to others; None: `config.invisible_ms`.
            wait_ms: how long to wait for the first message; None: `config.hold_ms`.

        Raises:
            UsageError: nothing is subscribed, or an argument is invalid.
            RouteNotFound: none of the topics exists.
            RequestNotSupported: the brokers do not know pop consumption.
            TransportError, ReplyError: no broker could be asked; this is the last failure.
        """
        self._running()
        if self._subscriptions.is_empty:
            raise UsageError("subscribe topics first")
        config = self.config
        count = config.receive_batch if count is None else count
        arguments.check_count("count", count)
        invisible_ms = config.invisible_ms if invisible_ms is None else invisible_ms
        arguments.check_count("invisible_ms", invisible_ms)
        wait_ms = config.hold_ms if wait_ms is None else wait_ms
        deadline = Deadline.after_ms(arguments.milliseconds("wait_ms", wait_ms))
        wish = PopWish(min(count, POP_COUNT_MAX), invisible_ms, 0, self._init_mode)
        task = asyncio.ensure_future(self._receive(wish, deadline))
        self._receiving.add(task)
        try:
            return await task
        except asyncio.CancelledError:
            current = asyncio.current_task()
            if current is not None and current.cancelling():
                raise
            raise ClosedError("the consumer is closed") from None
        finally:
            self._receiving.discard(task)

    async def _receive(self, wish: PopWish, deadline: Deadline) -> list[PoppedMessage]:
        is_first = True
        while True:
            began = asyncio.get_running_loop().time()
            places, failures = await self._places()
            is_answered = False
            for place in places:
                hold_ms = int(deadline.left() * 1000)
                if len(places) > 1:
                    hold_ms = 0 if is_first else min(hold_ms, _TURN_MS)
                try:
                    messages = await self._pop(place, wish._replace(hold_ms=hold_ms))
                except SprocketError as error:
                    failures.append(error)
                    self._refused(place, error)
                else:
                    is_answered = True
                    if messages:
                        return messages
            is_hopeless = places and not any(may_pass(e) or is_refusal(e) for e in failures)
            if failures and not is_answered and (is_hopeless or not deadline.left()):
                raise failures[-1]
            if not deadline.left():
                return []
            seconds = asyncio.get_running_loop().time() - began
            if not is_first and seconds < _PAUSE_SECONDS:  # nobody holds pops now
                await asyncio.sleep(min(_PAUSE_SECONDS, deadline.left()))
            is_first = False

    async def _places(self) -> tuple[list[QueueId], list[SprocketError]]:
        """Where to pop, beginning with the next one whose turn it is; and what went wrong."""
        if self._member is None:
            raise ClosedError("the consumer is closed")
        places, failures = await self._member.places(self.config.call_timeout_ms)
        if not places:
            return [], failures or [no_place(self._subscriptions.by_topic)]
        at = next(self._turns) % len(places)
        return places[at:] + places[:at], failures

    def _refused(self, place: QueueId, error: SprocketError) -> None:
        """Reports a broker that refuses, while others may answer."""
        if self._session is not None and isinstance(error, ReplyError):
            what = f"pop topic {place.topic} of {place.broker}"
            self._session.reachability.refused(f"group {self.group}", what, error)

    async def _pop(self, place: QueueId, wish: PopWish) -> list[PoppedMessage]:
        self._running()
        subscription = self._subscriptions.by_topic.get(place.topic)
        if subscription is None or self._pops is None:
            return []
        began = asyncio.get_running_loop().time()
        messages = await self._pops.pop(place, subscription, wish)
        if messages:
            now = asyncio.get_running_loop().time()
            count = len(messages)
            self._counters.pulled(place.topic, now, count=count, seconds=now - began)
        return messages

    @settles("ack")
    async def ack(self, messages: PoppedMessage | Iterable[PoppedMessage]) -> None:
        """Acknowledges a message, or several: they do not come again.

        Several of one broker are acknowledged in one request, where the broker knows that.

        Raises:
            HandleExpired: some were visible again before, so they may come again; its `messages`
                names them. All others are acknowledged.
            TransportError, ReplyError: a broker could not be reached, or refused.
        """
        pops, listed = self._asked(messages)
        if not listed:
            return
        deadline = Deadline.after_ms(self.config.ack_timeout_ms)
        failures = await pops.acknowledge(listed, deadline)
        now = asyncio.get_running_loop().time()
        failed = {id(message) for message, _ in failures}
        for message in listed:
            if id(message) not in failed:
                self._counters.consumed(message.topic, now, now - message.received)
        for _, error in failures:
            if not isinstance(error, HandleExpired):
                raise error
        if failures:
            late = [message for message, _ in failures]
            text = f"{len(late)} of {len(listed)} messages were visible again: {failures[0][1]}"
            raise HandleExpired(text, messages=late) from failures[0][1]

    @settles("change_invisible_time")
    async def change_invisible_time(self, message: PoppedMessage, invisible_ms: int) -> None:
        """Changes for how long a message is invisible, counted from now.

        A longer time is for work that takes longer; a shorter one has the group get the message
        again earlier. The message's handle is another one then.

        Raises:
            HandleExpired: it is visible again already.
            TransportError, ReplyError: the broker could not be reached, or refused.
        """
        pops, _ = self._asked(message)
        arguments.check_count("invisible_ms", invisible_ms)
        await pops.hide(message, invisible_ms, Deadline.after_ms(self.config.ack_timeout_ms))

    @settles("forward_to_dead_letters")
    async def forward_to_dead_letters(self, message: PoppedMessage) -> None:
        """Makes a message a dead letter in `%DLQ%group`, and acknowledges it.

        Raises:
            HandleExpired: it is a dead letter, and comes again too.
            TransportError, ReplyError: the broker could not be reached, or refused.
        """
        pops, _ = self._asked(message)
        await pops.bury(message, Deadline.after_ms(self.config.ack_timeout_ms))

    def statistics(self) -> Statistics:
        """Returns rates and times by topic. A message counts as consumed when it is acknowledged,
        and its time is that since it was received."""
        return self._counters.snapshot(asyncio.get_running_loop().time())

    def _asked(
        self, messages: PoppedMessage | Iterable[PoppedMessage]
    ) -> tuple[PopClient, list[PoppedMessage]]:
        self._running()
        if self._pops is None:
            raise ClosedError("the consumer is closed")
        is_one = isinstance(messages, PoppedMessage)
        if not is_one and not isinstance(messages, Iterable):
            raise UsageError(f"that is a message from receive, or several, not {messages!r}")
        listed = [messages] if isinstance(messages, PoppedMessage) else list(messages)
        for message in listed:
            if not isinstance(message, PoppedMessage):
                raise UsageError(f"only messages from receive have handles, not {message!r}")
            if message.group != self.group:
                raise UsageError(f"that message was received by group {message.group}")
        return self._pops, listed

    def _running(self) -> None:
        self._check_loop()
        if self._session is None:
            raise ClosedError("the consumer is not started, or is closed")

    def _changed(self, fresh: Sequence[str] = ()) -> None:
        """Has brokers and name servers learn of changed subscriptions."""
        self._check_loop()
        if self._discovery is not None:
            self._discovery.discover_soon()
        if self._session is not None:
            self._session.heartbeat_soon()
