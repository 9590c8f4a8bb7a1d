"""Sends what falls due at an acting master to another master of the cluster.

The message goes out as a producer would send it. What only brokers write about one that waits is
left out, so that whoever stores it begins anew.
Source: EscapeBridge of RocketMQ 5.3, where a message is not stored until the reply is SEND_OK.
"""

from __future__ import annotations

import asyncio
import logging
from typing import NamedTuple

from sprocket.base.deadline import Deadline
from sprocket.base.errors import SprocketError, TransportError
from sprocket.base.ports import Entropy
from sprocket.base.troubles import Troubles
from sprocket.broker.settings import BrokerSettings
from sprocket.clientcore.queue_choice import Faults, QueueChooser
from sprocket.clientcore.routes import read_route
from sprocket.message import properties as names
from sprocket.message.properties import encode
from sprocket.message.queue import QueueId
from sprocket.message.record import TRANSACTION_MASK, Draft
from sprocket.message.topic import is_retry_topic
from sprocket.protocol.bodies import Route
from sprocket.protocol.codes import MASTER, ResponseCode
from sprocket.protocol.requests.route import RouteOfTopic
from sprocket.protocol.requests.send import SendMessageV2
from sprocket.remoting.pool import Pool

logger = logging.getLogger(__name__)

#: How long another broker may take to store a message, s. Source: EscapeBridge.SEND_TIMEOUT.
SEND_SECONDS = 3.0
#: How long a name server may take to say where a topic is, s, and how long that counts.
_ASK_SECONDS = 3.0
_ROUTE_SECONDS = 5.0
#: Replies to messages that are stored.
_STORED = frozenset(
    {
        ResponseCode.SUCCESS,
        ResponseCode.FLUSH_DISK_TIMEOUT,
        ResponseCode.FLUSH_SLAVE_TIMEOUT,
        ResponseCode.SLAVE_NOT_AVAILABLE,
    }
)
#: A retry keeps where it comes from.
_OF_RETRIES = frozenset({names.RETRY_TOPIC, names.ORIGIN_ID})
#: A time that counts from now on would begin anew.
_RELATIVE = frozenset({names.TIMER_DELAY_SECONDS, names.TIMER_DELAY_MS})


class DueMessage(NamedTuple):
    """A message that is to be delivered elsewhere.

    Attributes:
        log_offset: of the record in which it waits.
        draft: the message for its own topic.
        properties: those of the draft.
        is_half: whether its transaction is undecided, and the other broker is to ask how it ended.
    """

    log_offset: int
    draft: Draft
    properties: dict[str, str]
    is_half: bool = False

    @property
    def group(self) -> str:
        """The producer group that sent it."""
        return self.properties.get(names.PRODUCER_GROUP, "")

    def text(self) -> str:
        """Its properties for a send."""
        kept = _OF_RETRIES if is_retry_topic(self.draft.topic) else frozenset()
        dropped = (names.OF_BROKERS | _RELATIVE) - kept
        if not self.is_half:
            dropped |= {names.HALF}
        return encode({name: each for name, each in self.properties.items() if name not in dropped})


class EscapeSender:
    """Finds other masters and sends to them.

    Args:
        pool: connections to name servers and brokers.
    """

    def __init__(self, pool: Pool, settings: BrokerSettings, entropy: Entropy) -> None:
        self._pool = pool
        self._settings = settings
        self._faults = Faults()
        self._entropy = entropy
        #: Made with the first message: most brokers never stand for another.
        self._chooser: QueueChooser | None = None
        #: By topic: until when its route counts, by the loop's time, and its queues elsewhere.
        self._routes: dict[str, tuple[float, list[tuple[QueueId, str]]]] = {}
        self._troubles = Troubles(lambda: asyncio.get_running_loop().time(), logger)

    async def send(self, message: DueMessage) -> bool:
        """Sends a message; returns whether another master has stored it."""
        topic, time = message.draft.topic, asyncio.get_running_loop().time()
        places = await self._places(topic)
        if not places:
            self._troubles.failed(topic, f"no other master has topic {topic}: what is due waits")
            return False
        addresses = dict(places)
        if self._chooser is None:
            self._chooser = QueueChooser(self._entropy.below(1 << 16), self._faults)
        queue = self._chooser.next(list(addresses), time)
        try:
            reply = await self._pool.call(
                addresses[queue],
                self._header(message, queue),
                body=message.draft.body,
                deadline=Deadline.after(SEND_SECONDS),
            )
        except TransportError as error:
            self._faults.failed(queue.broker, time)
            self._routes.pop(topic, None)
            self._troubles.failed(topic, f"what is due in {topic} waits for another master", error)
            return False
        if reply.code not in _STORED:
            self._faults.failed(queue.broker, time)
            self._troubles.failed(
                topic, f"{queue.broker} refuses what is due in {topic}", reply.error()
            )
            return False
        self._troubles.ended(topic, f"what is due in {topic} is delivered at {queue.broker}")
        return True

    @staticmethod
    def _header(message: DueMessage, queue: QueueId) -> SendMessageV2:
        draft = message.draft
        is_retry = is_retry_topic(draft.topic)
        return SendMessageV2(
            producer_group=message.group,
            topic=draft.topic,
            queue_id=queue.number,
            sys_flag=draft.sys_flag & ~TRANSACTION_MASK,
            born_timestamp=draft.born_ms,
            flag=draft.flag,
            properties=message.text(),
            reconsume_times=draft.reconsume_times,
            # Whether it is retried was decided when it began to wait.
            max_reconsume_times=draft.reconsume_times + 1 if is_retry else None,
            bname=queue.broker,
        )

    async def _places(self, topic: str) -> list[tuple[QueueId, str]]:
        """The queues of a topic at other masters, with their addresses."""
        time = asyncio.get_running_loop().time()
        until, places = self._routes.get(topic, (0.0, []))
        if time < until:
            return places
        for nameserver in self._settings.config.nameservers:
            try:
                reply = await self._pool.ask(
                    nameserver, RouteOfTopic(topic=topic), deadline=Deadline.after(_ASK_SECONDS)
                )
                route = read_route(topic, Route.decode(reply.body))
            except SprocketError as error:
                logger.debug("%s gives no route of %s: %s", nameserver, topic, error)
                continue
            places = [
                (queue, route.addresses[queue.broker][MASTER])
                for queue in route.writable
                if queue.broker != self._settings.config.name
                and MASTER in route.addresses.get(queue.broker, {})
            ]
            if places:
                break
        self._routes[topic] = time + _ROUTE_SECONDS, places
        if len(self._routes) > 1024:
            del self._routes[next(iter(self._routes))]
        return places
