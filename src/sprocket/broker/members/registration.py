"""Registers this broker at the name servers: all topics periodically, a changed topic at once.

Each name server is served by itself, whether the others answer or not. One that has the whole table
gets only the changed topics; one that missed something gets the whole table at the next
registration. A Java name server takes a first registration with exactly one topic for a change and
refuses it, so the first registration always contains the whole table.
Source: BrokerOuterAPI.registerBrokerAll, BrokerController.registerIncrementBrokerData of RocketMQ
5.x.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection

import msgspec

from sprocket.base.deadline import Deadline
from sprocket.base.errors import SprocketError
from sprocket.base.troubles import Troubles
from sprocket.base.watermark import Watermark
from sprocket.broker.members.acting import EXPIRY_MS
from sprocket.broker.settings import BrokerSettings
from sprocket.broker.tables.queue_mappings import QueueMappings
from sprocket.broker.tables.topics import Topics
from sprocket.clientcore.logical_queues import info_of
from sprocket.message.record import body_crc
from sprocket.protocol.bodies import DataVersion, RegisterBody, TopicConfig, TopicTable
from sprocket.protocol.codes import MASTER
from sprocket.protocol.command import Command
from sprocket.protocol.requests.route import RegisterBroker, RegisterBrokerReply, UnregisterBroker
from sprocket.remoting.pool import Pool
from sprocket.remoting.transport import Peer

logger = logging.getLogger(__name__)

#: Pause before a failed registration is tried again, s.
_AGAIN_SECONDS = 2.0
#: How long a starting broker waits for its name servers, s.
_FIRST_SECONDS = 1.0
#: How long a reply waits at most until the name servers know a new topic, s.
_ANNOUNCE_SECONDS = 1.0
#: How long unregistration may take, s.
_LEAVE_SECONDS = 2.0
_READ_WRITE = 6


class Registration:
    """Registers one broker at its name servers.

    Args:
        address, ha_address: where clients and slaves reach the broker.
        on_master: is called with the addresses of a slave's master, for clients and for slaves, as
            a name server gives them; both are empty if it knows no master.

        number: the broker's number until `move`; 0 is the master.

    Attributes:
        changes: how often a topic was created, changed or removed.
    """

    def __init__(
        self,
        pool: Pool,
        topics: Topics,
        mappings: QueueMappings,
        *,
        settings: BrokerSettings,
        address: str,
        ha_address: str,
        on_master: Callable[[str, str], None],
        number: int,
    ) -> None:
        self._number, self._epoch = number, 0
        self._pool = pool
        self._topics = topics
        self._mappings = mappings
        self._settings = settings
        self._address = address
        self._ha_address = ha_address
        self._on_master = on_master
        self._links = {each: _NameServerState() for each in self._servers()}
        self._others = asyncio.Event()
        self._troubles = Troubles(lambda: asyncio.get_running_loop().time(), logger)
        self.changes = 0

    def _servers(self) -> tuple[str, ...]:
        """Whom it registers at: the container that started it, too, makes new topics elsewhere."""
        config = self._settings.config
        return (*config.nameservers, *((config.container,) if config.container else ()))

    def changed(self, topic: str) -> None:
        """Registers a topic soon that was created, changed or removed."""
        self.changes += 1
        for link in self._links.values():
            link.mark_changed(topic)

    def change(self) -> None:
        """Registers at the name servers of the settings in force, and leaves others, soon."""
        wanted = self._servers()
        if tuple(self._links) != wanted:
            known = self._links
            self._links = {each: known.get(each) or _NameServerState() for each in wanted}
            for each in wanted:
                if each not in known:
                    self._links[each].start_over()
            self._others.set()

    async def announced(self) -> None:
        """Returns when the name servers know all changes so far, or after one second.

        A reply that waits for this lets the client find its new topic at the name servers.
        """
        deadline = Deadline.after(_ANNOUNCE_SECONDS)
        for link in self._links.values():
            if link.is_whole:
                await link.settled_changes.reach(self.changes, deadline)

    def register_all(self) -> None:
        """Registers the whole table at all name servers soon."""
        for link in self._links.values():
            link.start_over()

    def move(self, number: int, epoch: int) -> None:
        """Registers the broker soon under another number, which it has since an epoch.

        A name server of RocketMQ takes a new master at another address only with a state version
        that is not below the old one's, and forgets an address under its other number.
        Source: RouteInfoManager.registerBroker, ReplicasManager.changeToMaster of RocketMQ 5.x.
        """
        self._number, self._epoch = number, epoch
        self.register_all()

    async def first(self) -> None:
        """Registers at all name servers; those that do not answer within one second are left to
        `run`."""
        try:
            async with asyncio.timeout(_FIRST_SECONDS):
                await asyncio.gather(*(self._register(*pair) for pair in self._links.items()))
        except TimeoutError:
            logger.warning("not all name servers have answered yet")

    async def run(self) -> None:
        """Keeps the registration at all name servers up to date, until cancelled."""
        keeping: dict[str, asyncio.Task[None]] = {}
        async with asyncio.TaskGroup() as tasks:
            while True:
                left = keeping.keys() - self._links.keys()
                for address in left:
                    keeping.pop(address).cancel()
                for address, link in self._links.items():
                    if address not in keeping:
                        keeping[address] = tasks.create_task(self._keep(address, link))
                await self._leave(left)
                await self._others.wait()
                self._others.clear()

    async def leave(self) -> None:
        """Unregisters the broker. A name server that cannot be reached notices the closed
        connection or the missing registrations."""
        await self._leave(self._servers())

    async def _leave(self, nameservers: Collection[str]) -> None:
        config = self._settings.config
        header = UnregisterBroker(
            broker_name=config.name,
            broker_addr=self._address,
            cluster_name=config.cluster,
            broker_id=self._number,
        )
        deadline = Deadline.after(_LEAVE_SECONDS)
        outcomes = await asyncio.gather(
            *(self._pool.call(address, header, deadline=deadline) for address in nameservers),
            return_exceptions=True,
        )
        for address, outcome in zip(nameservers, outcomes, strict=True):
            if isinstance(outcome, BaseException):
                logger.info("cannot unregister at name server %s: %s", address, outcome)

    async def _keep(self, address: str, link: _NameServerState) -> None:
        while True:
            pause = self._settings.config.registration_ms / 1000
            if not link.is_whole:
                pause = min(pause, _AGAIN_SECONDS)
            if not await link.has_news(pause):
                link.is_whole = False
            await self._register(address, link)

    # `changes` is read before the request: what changes while it is under way is not in it and
    # belongs to the next one. A failure raises the watermark too: replies wait for a name server
    # that is slow, but not for one that is down. Failures are logged at first, and then rarely.
    async def _register(self, address: str, link: _NameServerState) -> None:
        """Registers the changed topics at one name server, or the whole table."""
        changes = self.changes
        body = self._body(self._due_topics(link))
        config = self._settings.config
        header = RegisterBroker(
            broker_name=config.name,
            broker_addr=self._address,
            cluster_name=config.cluster,
            ha_server_addr=self._ha_address,
            broker_id=self._number,
            enable_acting_master=config.acting_master,
            heartbeat_timeout_millis=EXPIRY_MS if config.acting_master else None,
            body_crc32=body_crc(body),
        )
        deadline = Deadline.after_ms(config.registration_timeout_ms)
        try:
            reply = await self._pool.ask(address, header, body=body, deadline=deadline)
            link.watch(await self._pool.peer(address, deadline))
        except SprocketError as error:
            self._troubles.failed(address, f"cannot register at name server {address}", error)
            link.is_whole = False
            link.settled_changes.rise(changes)
            return
        if not link.was_ever_whole:
            logger.info("registered at name server %s", address)
        if self._number != MASTER:
            self._learn_master(reply)
        self._troubles.ended(address, f"registered again at name server {address}")
        name = f"warning of {address}"
        if reply.remark:
            self._troubles.failed(name, reply.remark, f"so says name server {address}")
        else:
            self._troubles.ended(name, f"name server {address} warns no more")
        link.is_whole = link.was_ever_whole = True
        link.settled_changes.rise(changes)

    def _learn_master(self, reply: Command) -> None:
        try:
            header = reply.read(RegisterBrokerReply)
        except SprocketError as error:
            logger.warning("a name server answers a registration with a wrong header: %s", error)
        else:
            self._on_master(header.master_addr or "", header.ha_server_addr or "")

    def _due_topics(self, link: _NameServerState) -> dict[str, TopicConfig]:
        """The topics of the next registration: the changed ones if these suffice, otherwise all."""
        changed, link.changed = link.changed, set()
        known = self._topics.by_name
        if link.is_whole and changed and all(name in known for name in changed):
            return {name: known[name] for name in sorted(changed)}
        return known

    def _body(self, topics: dict[str, TopicConfig]) -> bytes:
        permission = self._settings.config.permission
        if permission != _READ_WRITE:
            topics = {name: _limited(topic, permission) for name, topic in topics.items()}
        table = TopicTable(
            data_version=self._version(),
            mapping_data_version=DataVersion(),
            topic_config_table=topics,
            topic_queue_mapping_detail_map={},
            topic_queue_mapping_info_map={
                name: info_of(detail)
                for name, detail in self._mappings.by_topic.items()
                if name in topics
            },
        )
        has_filters = self._settings.config.filter_workers > 0
        servers = [self._address] if has_filters else []
        return RegisterBody(filter_server_list=servers, topics=table).encode()

    def _version(self) -> DataVersion:
        """The version of the topics; in a group, the epoch is its state version."""
        version = self._topics.version
        if not self._epoch:
            return version
        return msgspec.structs.replace(version, state_version=self._epoch)


def _limited(topic: TopicConfig, permission: int) -> TopicConfig:
    """The topic with the permissions that the broker itself allows."""
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
    """The state of the registration at one name server.

    Attributes:
        is_whole: whether the name server has the whole table, as far as is known.
        was_ever_whole: whether it ever had it.
        changed: topics that changed since the last registration.
        settled_changes: how many changes it knows, or has failed to accept.
    """

    __slots__ = (
        "_peer",
        "_wakeup",
        "changed",
        "is_whole",
        "settled_changes",
        "was_ever_whole",
    )

    def __init__(self) -> None:
        self.settled_changes = Watermark()
        self.is_whole = False
        self.was_ever_whole = False
        self.changed: set[str] = set()
        self._wakeup = asyncio.Event()
        self._peer: Peer | None = None

    def mark_changed(self, topic: str) -> None:
        """Notes a changed topic for the next registration, which follows soon."""
        self.changed.add(topic)
        self._wakeup.set()

    def start_over(self) -> None:
        """Makes the next registration contain the whole table, soon."""
        self.is_whole = False
        self._wakeup.set()

    def watch(self, peer: Peer) -> None:
        """Registers again when the connection breaks: the name server removes the broker then."""
        if peer is not self._peer:
            self._peer = peer
            peer.on_close(self._lost)

    def _lost(self, peer: Peer) -> None:
        if peer is self._peer:
            self.start_over()

    async def has_news(self, seconds: float) -> bool:
        """Waits for a change; False if there was none in time."""
        try:
            async with asyncio.timeout(seconds):
                await self._wakeup.wait()
        except TimeoutError:
            return False
        self._wakeup.clear()
        return True
