"""Tells the name servers what this broker holds: all of it regularly, a change at once.

Every name server hears of everything, whether the others answer or not. One that has the whole
table is told a change alone; a name server that misses something gets the whole at the next round.
A Java name server takes a first registration of exactly one topic for such a change and refuses it,
so the first one is always whole.
Source: BrokerOuterAPI.registerBrokerAll, BrokerController.registerIncrementBrokerData of RocketMQ
5.x.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable

from sprocket.base.deadline import Deadline
from sprocket.base.errors import SprocketError
from sprocket.base.watermark import Watermark
from sprocket.broker.settings import BrokerSettings
from sprocket.broker.tables.topics import Topics
from sprocket.message.record import body_crc
from sprocket.protocol.bodies import DataVersion, RegisterBody, TopicConfig, TopicTable
from sprocket.protocol.requests.route import RegisterBroker, UnregisterBroker
from sprocket.remoting.pool import Pool
from sprocket.remoting.transport import Peer

logger = logging.getLogger(__name__)

#: Pause before a name server that did not answer is tried again, s.
_AGAIN_SECONDS = 2.0
#: How long a broker that starts waits for its name servers, s.
_FIRST_SECONDS = 1.0
#: How long an answer waits until the name servers know of a new topic, s.
_ANNOUNCE_SECONDS = 1.0
#: How long leaving may take, s.
_LEAVE_SECONDS = 2.0
_READ_WRITE = 6


class Registration:
    """Registers one broker at its name servers.

    Args:
        address, ha_address: where clients and slaves reach the broker.

    Attributes:
        changes: how often a topic was made, changed or removed.
    """

    def __init__(
        self,
        pool: Pool,
        topics: Topics,
        *,
        settings: BrokerSettings,
        address: str,
        ha_address: str,
    ) -> None:
        self._pool = pool
        self._topics = topics
        self._settings = settings
        self._address = address
        self._ha_address = ha_address
        self._links = [_NameServerState() for _ in settings.config.nameservers]
        self.changes = 0

    def changed(self, topic: str) -> None:
        """A topic was made, changed or removed: the name servers are told soon."""
        self.changes += 1
        for link in self._links:
            link.mark_changed(topic)

    async def announced(self) -> None:
        """Returns when the name servers know what changed before, or after a moment.

        So that a client that is told of a new topic finds it there too.
        """
        deadline = Deadline.after(_ANNOUNCE_SECONDS)
        for link in self._links:
            if link.is_whole:
                await link.heard.reach(self.changes, deadline)

    def register_all(self) -> None:
        """Everything has changed: the name servers are told soon."""
        for link in self._links:
            link.start_over()

    async def first(self) -> None:
        """Tells every name server everything; those that do not answer soon are left to `run`."""
        try:
            async with asyncio.timeout(_FIRST_SECONDS):
                await asyncio.gather(*(self._register(*pair) for pair in self._pairs()))
        except TimeoutError:
            logger.warning("not all name servers have answered yet")

    async def run(self) -> None:
        """Keeps all name servers up to date, until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            for address, link in self._pairs():
                tasks.create_task(self._keep(address, link))

    async def leave(self) -> None:
        """Takes the broker off the routes. A name server that does not answer finds out itself."""
        config = self._settings.config
        header = UnregisterBroker(
            broker_name=config.name,
            broker_addr=self._address,
            cluster_name=config.cluster,
            broker_id=config.id,
        )
        deadline = Deadline.after(_LEAVE_SECONDS)
        outcomes = await asyncio.gather(
            *(
                self._pool.call(address, header, deadline=deadline)
                for address in config.nameservers
            ),
            return_exceptions=True,
        )
        for address, outcome in zip(config.nameservers, outcomes, strict=True):
            if isinstance(outcome, BaseException):
                logger.info("name server %s was not told of the end: %s", address, outcome)

    def _pairs(self) -> Iterable[tuple[str, _NameServerState]]:
        return zip(self._settings.config.nameservers, self._links, strict=True)

    async def _keep(self, address: str, link: _NameServerState) -> None:
        while True:
            pause = self._settings.config.registration_ms / 1000
            if not link.is_whole:
                pause = min(pause, _AGAIN_SECONDS)
            if not await link.has_news(pause):
                link.is_whole = False
            await self._register(address, link)

    async def _register(self, address: str, link: _NameServerState) -> None:
        """Tells one name server what it has not heard, or everything."""
        changes = self.changes
        body = self._body(self._due_topics(link))
        config = self._settings.config
        header = RegisterBroker(
            broker_name=config.name,
            broker_addr=self._address,
            cluster_name=config.cluster,
            ha_server_addr=self._ha_address,
            broker_id=config.id,
            enable_acting_master=False,
            body_crc32=body_crc(body),
        )
        deadline = Deadline.after_ms(config.registration_timeout_ms)
        try:
            await self._pool.ask(address, header, body=body, deadline=deadline)
            link.watch(await self._pool.peer(address, deadline))
        except SprocketError as error:
            if not link.has_complained:
                logger.warning("name server %s does not take the registration: %s", address, error)
            link.has_complained, link.is_whole = True, False
            link.heard.rise(changes)
            return
        if link.has_complained or not link.was_ever_whole:
            logger.info("registered at name server %s", address)
        link.has_complained = False
        link.is_whole = link.was_ever_whole = True
        link.heard.rise(changes)

    def _due_topics(self, link: _NameServerState) -> dict[str, TopicConfig]:
        """The topics that a name server is to hear of next."""
        news, link.news = link.news, set()
        known = self._topics.by_name
        if link.is_whole and news and all(name in known for name in news):
            return {name: known[name] for name in sorted(news)}
        return known

    def _body(self, topics: dict[str, TopicConfig]) -> bytes:
        permission = self._settings.config.permission
        if permission != _READ_WRITE:
            topics = {name: _limited(topic, permission) for name, topic in topics.items()}
        table = TopicTable(
            data_version=self._topics.version,
            mapping_data_version=DataVersion(),
            topic_config_table=topics,
            topic_queue_mapping_detail_map={},
            topic_queue_mapping_info_map={},
        )
        has_filters = self._settings.config.filter_workers > 0
        servers = [self._address] if has_filters else []
        return RegisterBody(filter_server_list=servers, topics=table).encode()


def _limited(topic: TopicConfig, permission: int) -> TopicConfig:
    """The topic as a broker shows it that may not be read, or not be written."""
    return TopicConfig(
        attributes=topic.attributes,
        order=topic.order,
        perm=topic.perm & permission,
        read_queue_nums=topic.read_queue_nums,
        topic_filter_type=topic.topic_filter_type,
        topic_name=topic.topic_name,
        topic_sys_flag=topic.topic_sys_flag,
        write_queue_nums=topic.write_queue_nums,
    )


class _NameServerState:
    """What one name server has heard.

    Attributes:
        is_whole: whether it has the whole table, as far as we know.
        was_ever_whole: whether it had it once.
        has_complained: whether it is known not to answer.
        news: topics that changed since it was told.
        heard: of how many changes it knows, or will not be waited for.
    """

    __slots__ = (
        "_peer",
        "_wakeup",
        "has_complained",
        "heard",
        "is_whole",
        "news",
        "was_ever_whole",
    )

    def __init__(self) -> None:
        self.heard = Watermark()
        self.is_whole = False
        self.was_ever_whole = False
        self.has_complained = False
        self.news: set[str] = set()
        self._wakeup = asyncio.Event()
        self._peer: Peer | None = None

    def mark_changed(self, topic: str) -> None:
        """A topic changed."""
        self.news.add(topic)
        self._wakeup.set()

    def start_over(self) -> None:
        """It is to be told everything."""
        self.is_whole = False
        self._wakeup.set()

    def watch(self, peer: Peer) -> None:
        """It forgets a broker whose connection breaks, so it is told again when that happens."""
        if peer is not self._peer:
            self._peer = peer
            peer.on_close(self._lost)

    def _lost(self, peer: Peer) -> None:
        if peer is self._peer:
            self.start_over()

    async def has_news(self, seconds: float) -> bool:
        """Waits for a change; False if none came in time."""
        try:
            async with asyncio.timeout(seconds):
                await self._wakeup.wait()
        except TimeoutError:
            return False
        self._wakeup.clear()
        return True
