"""A topic that is made at one broker of a container is made at all of them.

The brokers register at the container as they do at a name server, and with the same promise: the
reply to whoever made a topic, by a command or by a first message, waits for that. So a producer
that sends to a new topic finds the queues of all brokers when it asks for the route. Only what is
new is made at the others: a change or a deletion is for the brokers that it was sent to, as in any
cluster. A broker that comes back gets the topics and groups that it has missed.

For an ordered topic the queues of all brokers are listed at the name servers (`ORDER_TOPIC_CONFIG`
of RocketMQ): then keys stay with their queues while a broker is down.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol

from sprocket.admin.topic_changes import request_of
from sprocket.base.backoff import pauses
from sprocket.base.cancelling import end_all
from sprocket.base.deadline import Deadline
from sprocket.base.errors import QueryNotFound, SprocketError, TopicNotFound
from sprocket.message.topic import (
    SELF_TEST,
    is_dead_letter_topic,
    is_retry_topic,
    is_system_topic,
)
from sprocket.message.topic_attributes import MESSAGE_TYPE
from sprocket.nameserver.settings import ORDER_NAMESPACE
from sprocket.protocol.bodies import GroupTable, KvTable, TopicConfig
from sprocket.protocol.command import Buffer, Command, Header
from sprocket.protocol.requests.group import AllGroupConfigs, CreateGroup
from sprocket.protocol.requests.route import GetKv, KvList, KvReply, PutKv
from sprocket.protocol.requests.topic import TopicConfigOf

logger = logging.getLogger(__name__)

_FIFO = "FIFO"
#: How long one request may take, s.
_ASK_SECONDS = 3.0
#: How long the reply to a report waits for the other brokers, s. The broker waits no longer.
_WAIT_SECONDS = 0.9
_TRIES = 8


class Asks(Protocol):
    """Sends a request to a server and returns its reply; see `Pool.ask`."""

    async def __call__(
        self, address: str, header: Header, *, body: Buffer = b"", deadline: Deadline
    ) -> Command: ...


@dataclass(slots=True)
class _Reporter:
    """A broker that has registered, and the topics that it has, as far as is known."""

    address: str
    topics: set[str] = field(default_factory=set)


class TopicSpread:
    """Makes topics at all brokers.

    Args:
        ask: sends requests, signed if the brokers want that.
        nameservers: get the order of the queues of ordered topics.
        names: the brokers of the container, whether they run or not.
        is_common: whether all brokers have a topic; False for one that is named like a broker.
    """

    def __init__(
        self,
        ask: Asks,
        nameservers: Sequence[str],
        *,
        names: Callable[[], Iterable[str]],
        is_common: Callable[[str], bool],
    ) -> None:
        self._names = names
        self._ask = ask
        self.nameservers = nameservers
        self._is_common = is_common
        self._brokers: dict[str, _Reporter] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        #: Those that make a topic at a broker.
        self._copies: dict[tuple[str, str], asyncio.Task[None]] = {}

    async def reported(self, broker: str, address: str, names: Iterable[str]) -> None:
        """A broker has registered: all its topics, or only those that changed.

        Returns when the others have what is new, or after nearly a second; it goes on then.
        """
        names = set(names)
        is_whole = SELF_TEST in names  # which every broker has, and which never changes
        common = {each for each in names if self._is_spread(each)}
        before = self._brokers.get(broker)
        now = self._brokers[broker] = _Reporter(address, common)
        if before is None:
            self._start(self._caught_up(broker))
            return
        if not is_whole:
            now.topics |= before.topics
        if new := sorted(now.topics - before.topics):
            others = [name for name in self._brokers if name != broker]
            work = [self._start(self._made_all(new, broker, other)) for other in others]
            work.append(self._start(self._ordered(new, broker)))
            await asyncio.wait(work, timeout=_WAIT_SECONDS)

    def gone(self, broker: str) -> None:
        """A broker has ended: when it registers again, it gets what it has missed."""
        self._brokers.pop(broker, None)

    def withdraw(self, brokers: Iterable[str]) -> None:
        """Has the queues of brokers that take no more messages left out of ordered topics, soon."""
        names = set(brokers)
        self._start(self._tried("the order of topics", partial(self._withdraw, names)))

    async def _withdraw(self, names: set[str]) -> None:
        for nameserver in self.nameservers:
            try:
                reply = await self._request(nameserver, KvList(namespace=ORDER_NAMESPACE))
            except QueryNotFound:
                continue
            for topic, value in KvTable.decode(reply.body).table.items():
                rest = without(value, names)
                if rest != value:
                    wanted = PutKv(namespace=ORDER_NAMESPACE, key=topic, value=rest)
                    await self._request(nameserver, wanted)

    async def close(self) -> None:
        """Ends what is under way."""
        await end_all(list(self._tasks))

    def _is_spread(self, topic: str) -> bool:
        return self._is_common(topic) and not (
            is_system_topic(topic) or is_retry_topic(topic) or is_dead_letter_topic(topic)
        )

    def _start(self, work: Awaitable[None]) -> asyncio.Task[None]:
        task: asyncio.Task[None] = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            logger.error("making topics as at the other brokers failed", exc_info=error)

    async def _caught_up(self, broker: str) -> None:
        """Makes what a broker lacks that others have."""
        sources = {
            topic: other
            for other, each in self._brokers.items()
            if other != broker
            for topic in each.topics
            if (topic, other) not in self._copies  # it does not have that yet
        }
        for topic, other in sorted(sources.items()):
            await self._made_all([topic], other, broker)
        await self._tried(f"groups at {broker}", partial(self._copy_groups, broker))

    async def _made_all(self, topics: Iterable[str], source: str, target: str) -> None:
        """Makes topics of one broker at another one that lacks them."""
        for topic in topics:
            reporter = self._brokers.get(target)
            if reporter is not None and topic not in reporter.topics:
                reporter.topics.add(topic)  # it is not news when that broker reports it
                copy = partial(self._copy_topic, topic, source, target)
                work = self._start(self._tried(f"topic {topic} at {target}", copy))
                self._copies[topic, target] = work
                work.add_done_callback(partial(self._copied, (topic, target)))
            if (copying := self._copies.get((topic, target))) is not None:
                await asyncio.wait([copying])

    def _copied(self, key: tuple[str, str], work: asyncio.Task[None]) -> None:
        if self._copies.get(key) is work:
            del self._copies[key]

    async def _tried(self, what: str, work: Callable[[], Awaitable[None]]) -> None:
        """Does something, again if it fails: the broker may be starting."""
        for number, pause in enumerate(pauses(0.2, 5.0), 1):
            try:
                await work()
                return
            except SprocketError as error:
                if number == _TRIES:
                    logger.error("cannot make %s as at the others: %s", what, error)
                    return
            await asyncio.sleep(pause)

    async def _copy_topic(self, topic: str, source: str, target: str) -> None:
        if source not in self._brokers or target not in self._brokers:
            return  # it ended; it gets the topic when it is back
        try:
            config = await self._config(topic, source)
        except TopicNotFound:
            if (there := self._brokers.get(target)) is not None:
                there.topics.discard(topic)
            return
        if (there := self._brokers.get(target)) is None:
            return
        await self._request(there.address, request_of(config))
        logger.info("topic %s of %s is made at %s too", topic, source, target)

    async def _ordered(self, topics: Iterable[str], source: str) -> None:
        for topic in topics:
            await self._tried(f"the order of {topic}", partial(self._write_order, topic, source))

    async def _write_order(self, topic: str, source: str) -> None:
        """Lists the queues of an ordered topic at the name servers."""
        if source not in self._brokers:
            return
        try:
            config = await self._config(topic, source)
        except TopicNotFound:
            return
        if not is_ordered(config):
            return
        queues = dict.fromkeys(self._names(), config.write_queue_nums)
        for nameserver in self.nameservers:
            try:
                key = GetKv(namespace=ORDER_NAMESPACE, key=topic)
                found = (await self._request(nameserver, key)).read(KvReply).value or ""
            except QueryNotFound:
                found = ""
            value = order_of(found, queues)
            if value != found:
                wanted = PutKv(namespace=ORDER_NAMESPACE, key=topic, value=value)
                await self._request(nameserver, wanted)

    async def _config(self, topic: str, broker: str) -> TopicConfig:
        reply = await self._request(self._brokers[broker].address, TopicConfigOf(topic=topic))
        return TopicConfig.decode(reply.body)

    async def _copy_groups(self, broker: str) -> None:
        """Makes the groups that a broker lacks and another one has."""
        if broker not in self._brokers:
            return
        address = self._brokers[broker].address
        others = [each.address for name, each in self._brokers.items() if name != broker]
        if not others:
            return
        present = (await self._groups(address)).subscription_group_table
        for group in (await self._groups(others[0])).subscription_group_table.values():
            if group.group_name not in present:
                await self._request(address, CreateGroup(), group.encode())

    async def _groups(self, address: str) -> GroupTable:
        return GroupTable.decode((await self._request(address, AllGroupConfigs())).body)

    async def _request(self, address: str, header: Header, body: Buffer = b"") -> Command:
        return await self._ask(address, header, body=body, deadline=Deadline.after(_ASK_SECONDS))


def is_ordered(config: TopicConfig) -> bool:
    """Whether the messages of a topic are to stay in order."""
    return config.order or config.attributes.get(MESSAGE_TYPE) == _FIFO


def order_of(found: str, queues: dict[str, int]) -> str:
    """An order configuration such as `broker-a:4;broker-b:4`, with the queues of some brokers.

    Brokers that are in it keep their place and their number of queues, since keys are hashed over
    all queues in their order.
    """
    places = [each for each in found.split(";") if each]
    names = {each.partition(":")[0] for each in places}
    places += [f"{name}:{count}" for name, count in sorted(queues.items()) if name not in names]
    return ";".join(places)


def without(order: str, brokers: Collection[str]) -> str:
    """An order configuration without the queues of some brokers."""
    places = [each for each in order.split(";") if each.partition(":")[0] not in brokers]
    return ";".join(places)
