"""What the connections of kombu in one process share: task queues, mail, and feeds to channels.

It runs on the background loop of the blocking clients.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable
from typing import Any

from sprocket.base.errors import SprocketError
from sprocket.client.base.background_loop import BlockingClient, on_the_loop, opened_by, waiting
from sprocket.client.base.lifecycle import Lifecycle
from sprocket.integrations.celery.channel_messages import ChannelMessages
from sprocket.integrations.celery.feed import ChannelFeed, Delivery
from sprocket.integrations.celery.settings import TransportSettings
from sprocket.integrations.queues.mail import ADDRESS, ANY_KEY, KEY, Mail, MailBox, Taker
from sprocket.integrations.queues.names import tag_of, topic_of
from sprocket.integrations.queues.task_queues import TaskQueues
from sprocket.message.message import StoredMessage
from sprocket.message.popped_message import PoppedMessage

logger = logging.getLogger(__name__)

_MAIL = "sprocket-mail"
#: For how long it is believed that a queue has no topic, s.
_ABSENT_SECONDS = 1.0
_ABSENT_MAX = 10_000
#: Within this time a broker has given a message again that was given back, s.
_AGAIN_SECONDS = 5.0


class Station(Lifecycle):
    """On the event loop; `BlockingStation` is what channels use."""

    def __init__(self, settings: TransportSettings) -> None:
        self.settings = settings
        self.queues = TaskQueues(settings.nameservers, settings.queues)
        self._mail: Mail | None = None
        #: Feeds by channel and queue, and the takers of mail.
        self._feeds: dict[tuple[int, str], ChannelFeed] = {}
        self._takers: dict[tuple[int, str], Taker] = {}
        self._settling: set[asyncio.Task[None]] = set()
        self._acked: list[PoppedMessage] = []
        #: Queues that were declared as topics: what is sent to them never is mail.
        self._durable: set[str] = set()
        #: When queues were seen to have no topic.
        self._absent: dict[str, float] = {}
        #: When a message of a topic was last given back.
        self._given_back: dict[str, float] = {}
        self._closing: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Starts the clients, which connect when needed."""
        await self.queues.start()

    async def close(self) -> None:
        """Settles what is to be settled, gives back the rest, and closes the clients."""
        if self._closing is None:
            self._closing = asyncio.ensure_future(self._close())
        await asyncio.shield(self._closing)

    async def _close(self) -> None:
        feeds, self._feeds = list(self._feeds.values()), {}
        await asyncio.gather(*(feed.close() for feed in feeds))
        await self.settled()
        if self._mail is not None:
            self._mail.close()
        await self.queues.close()

    async def check(self) -> None:
        """Asks a name server something.

        Raises:
            TransportError, ReplyError: none answers, or it refuses.
        """
        await self.queues.check()

    async def declare(self, queue: str, is_mail: bool, max_priority: int) -> None:
        """Makes a queue: a topic, or a box for mail, which knows no priorities."""
        if is_mail:
            await self.open_box(queue, f"queue {queue}")
        else:
            self._durable.add(queue)
            await self.queues.declare(self._topic(queue), max_priority=max_priority)

    async def open_box(self, queue: str, address: str, pattern: str = ANY_KEY) -> None:
        """Has the mail for an address in a queue's box from now on."""
        await (await self._post_office()).open(queue, address, pattern)

    async def close_box(self, queue: str) -> None:
        """Ends a mail queue."""
        if self._mail is not None:
            self._mail.close_box(queue)

    async def put(self, queue: str, body: bytes, due_ms: int | None, priority: int) -> None:
        """Sends a message to a queue: to its topic, or as mail if there is no such topic."""
        if self._box(queue) is None and await self._has_topic(queue):
            await self.queues.send(self._topic(queue), body, due_ms=due_ms, priority=priority)
        else:
            await self.post(f"queue {queue}", "", body)

    async def post(self, address: str, key: str, body: bytes) -> None:
        """Sends mail."""
        properties = {ADDRESS: address}
        if key:
            properties[KEY] = key
        topic = (await self._post_office()).topic
        await self.queues.send(topic, body, tag=tag_of(address), properties=properties)

    async def get(self, queue: str) -> tuple[StoredMessage | None, MailBox | None]:
        """Receives one message of a queue, if there is one now, and its box if it is mail."""
        if (box := self._box(queue)) is not None:
            return box.take(), box
        topic = self._topic(queue)
        if not await self.queues.exists(topic):
            return None, None
        await self.settled()
        since = asyncio.get_running_loop().time() - self._given_back.get(topic, -_AGAIN_SECONDS)
        found = await self.queues.receive(topic, 1, max(0.0, _AGAIN_SECONDS - since) * 1000)
        if not found:
            self._given_back.pop(topic, None)
        return (found[0] if found else None), None

    async def attach(
        self,
        channel: int,
        queue: str,
        credit: Callable[[], int],
        deliver: Delivery,
        tell: Callable[[], None],
    ) -> MailBox | None:
        """Begins to deliver a queue's messages to a channel.

        Args:
            credit: how many more messages it may have.
            deliver: takes a message.
            tell: is called when there is mail.

        Returns:
            The box from which the channel takes the messages of a mail queue.
        """
        if (box := self._box(queue)) is not None:
            if (channel, queue) not in self._takers:
                self._takers[channel, queue] = tell
                box.attach(tell)
            return box
        if (channel, queue) not in self._feeds:
            feed = ChannelFeed(self.queues, self._topic(queue), credit, deliver)
            self._feeds[channel, queue] = feed
        return None

    async def detach(self, channel: int, queue: str) -> bool:
        """Ends that. Returns whether this was the last taker of a mail queue."""
        if (feed := self._feeds.pop((channel, queue), None)) is not None:
            await feed.close()
        return self._detach_mail(channel, queue)

    def _detach_mail(self, channel: int, queue: str) -> bool:
        taker, box = self._takers.pop((channel, queue), None), self._box(queue)
        if taker is None or box is None:
            return False
        box.detach(taker)
        return not box.is_taken

    def drop(self, channel: int, held: ChannelMessages) -> None:
        """Ends all that a channel has; what it holds is given back soon."""
        owned = [key for key in self._feeds if key[0] == channel]
        self._settle(self._give_back_all([self._feeds.pop(key) for key in owned], held))
        for _, queue in [key for key in self._takers if key[0] == channel]:
            if self._mail is not None and self._detach_mail(channel, queue):
                self._mail.close_box(queue)

    async def _give_back_all(self, feeds: list[ChannelFeed], held: ChannelMessages) -> None:
        await asyncio.gather(*(feed.close() for feed in feeds))
        await self.queues.give_back(held.take_all())

    def wake(self, channel: int) -> None:
        """A channel may have more messages now."""
        for (owner, _), feed in self._feeds.items():
            if owner == channel:
                feed.wake()

    def ack(self, message: PoppedMessage) -> None:
        """Acknowledges a message soon, together with others."""
        self._acked.append(message)
        if len(self._acked) == 1:
            self._settle(self._acknowledge())

    def reject(self, message: PoppedMessage, requeue: bool) -> None:
        """Gives a message back, or makes it a dead letter."""
        if requeue:
            self._given_back[message.topic] = asyncio.get_running_loop().time()
            self._settle(self.queues.give_back([message]))
        else:
            self._settle(self.queues.bury(message))

    async def settled(self) -> None:
        """Waits until all that was acknowledged, given back or rejected so far is so."""
        while self._settling:
            await asyncio.wait(self._settling)

    async def give_back(self, messages: list[PoppedMessage]) -> None:
        """Has others get messages again at once, after what is settled now."""
        await self.settled()
        await self.queues.give_back(messages)

    async def count(self, queue: str) -> int:
        """How many messages a queue has."""
        if (box := self._box(queue)) is not None:
            return len(box)
        return await self.queues.count(self._topic(queue))

    async def purge(self, queue: str) -> int:
        """Discards a queue's messages and returns how many that were."""
        if (box := self._box(queue)) is not None:
            return box.clear()
        return await self.queues.purge(self._topic(queue))

    async def has(self, queue: str) -> bool:
        """Whether a queue exists, as far as this process can know."""
        return self._box(queue) is not None or await self.queues.exists(self._topic(queue))

    def now_ms(self) -> int:
        """The time, ms since 1970."""
        return self.queues.now_ms()

    async def _acknowledge(self) -> None:
        messages, self._acked = self._acked, []
        await self.queues.acknowledge(messages)

    def _settle(self, work: Any) -> None:
        async def settle() -> None:
            try:
                await work
            except SprocketError as error:
                logger.error("messages are not settled, and will be delivered again: %s", error)

        task = asyncio.ensure_future(settle())
        self._settling.add(task)
        task.add_done_callback(self._settling.discard)

    async def _post_office(self) -> Mail:
        if self._mail is None:
            topic = topic_of(_MAIL, self.settings.queues.prefix)
            await self.queues.declare(topic, queues=1)
            if self._mail is None:
                self._mail = Mail(self.queues.reader, topic, self.queues.now_ms)
        return self._mail

    async def _has_topic(self, queue: str) -> bool:
        if queue in self._durable:
            return True
        now = asyncio.get_running_loop().time()
        if now - self._absent.get(queue, -_ABSENT_SECONDS) < _ABSENT_SECONDS:
            return False
        if await self.queues.exists(self._topic(queue)):
            self._absent.pop(queue, None)
            return True
        if len(self._absent) >= _ABSENT_MAX:
            self._absent.clear()
        self._absent[queue] = now
        return False

    def _box(self, queue: str) -> MailBox | None:
        return None if self._mail is None else self._mail.boxes.get(queue)

    def _topic(self, queue: str) -> str:
        return topic_of(queue, self.settings.queues.prefix)


class BlockingStation(BlockingClient[Station]):
    """The same without a loop."""

    @opened_by(Station)
    def __init__(self) -> None:
        """Takes the arguments of the asynchronous station."""

    check = waiting(Station.check)
    declare = waiting(Station.declare)
    open_box = waiting(Station.open_box)
    close_box = waiting(Station.close_box)
    put = waiting(Station.put)
    post = waiting(Station.post)
    get = waiting(Station.get)
    attach = waiting(Station.attach)
    detach = waiting(Station.detach)
    give_back = waiting(Station.give_back)
    count = waiting(Station.count)
    purge = waiting(Station.purge)
    has = waiting(Station.has)
    now_ms = on_the_loop(Station.now_ms)

    def wake(self, channel: int) -> None:
        """As the asynchronous method; does not wait."""
        self._post(lambda station: station.wake(channel))

    def ack(self, channel: int, message: PoppedMessage) -> None:
        """Acknowledges a message, and wakes the channel's feeds; does not wait."""

        def ack(station: Station) -> None:
            station.ack(message)
            station.wake(channel)

        self._post(ack)

    def reject(self, channel: int, message: PoppedMessage, requeue: bool) -> None:
        """As the asynchronous method, and wakes the channel's feeds; does not wait."""

        def reject(station: Station) -> None:
            station.reject(message, requeue)
            station.wake(channel)

        self._post(reject)

    def drop(self, channel: int, held: ChannelMessages) -> None:
        """As the asynchronous method; does not wait."""
        self.call_soon(lambda: self._client.drop(channel, held))

    def close_soon(self) -> None:
        """Has the station closed, and does not wait for that."""
        self._begin_close()

    def call_soon(self, do: Callable[[], None]) -> None:
        """Has the loop call a function; does not wait, and takes no lock.

        So finalizers may use it, which Python runs in any thread and at any place. In a child that
        has not used the station it does nothing.
        """
        if self._process == os.getpid():
            self._post(lambda _: do())
