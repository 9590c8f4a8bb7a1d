"""A slave that acts as the master while there is none, in a broker that elects nobody.

The slave with the smallest number that lives is read as if it were the master: routes of name
servers that allow it show it as number 0, and here it lets consumers read, also where slaves may
not be read as a rule. It keeps their offsets, and gives leases on queues; those that the master had
given count on. It accepts nothing: what becomes due, and the ends of transactions, wait for the
master.

Who lives is what name servers say. So each process shows them every second that it lives, and asks
who else does; a notice of a name server only makes it ask at once. A master that comes back takes
over the offsets and leases that its slaves have meanwhile, before it registers; who was asked for
leases gives none until it is seen that the master did not come after all. It also tells them where
it replicates, as RocketMQ's does and waits for. A slave believes that only while there is no
master, and from the host of that master.

Source: BrokerController.updateMinBroker, BrokerPreOnlineService and AdminBrokerProcessor.
updateBrokerHaInfo of RocketMQ 5.x, and docs/cn/SlaveActingMasterMode.md there.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Callable, Iterable, Mapping

from sprocket.base.deadline import Deadline
from sprocket.base.errors import SprocketError
from sprocket.base.watermark import Watermark
from sprocket.broker.dispatch import Endpoints
from sprocket.broker.settings import BrokerSettings
from sprocket.broker.tables.locks import LockTable
from sprocket.broker.tables.offset_keys import SEPARATOR
from sprocket.broker.tables.offsets import ConsumerOffsets
from sprocket.protocol.bodies import BrokerMembersBody, HeldLeasesBody, OffsetTable
from sprocket.protocol.codes import MASTER, OwnRequestCode, RequestCode
from sprocket.protocol.command import Command, Reply
from sprocket.protocol.requests.election import ExchangeReplicaAddress, ExchangeReplicaAddressReply
from sprocket.protocol.requests.offset import AllOffsets
from sprocket.protocol.requests.replica import HeldLeases
from sprocket.protocol.requests.route import (
    BrokerHeartbeat,
    BrokerMembers,
    SmallestNumberChanged,
)
from sprocket.remoting.pool import Pool
from sprocket.remoting.transport import Peer
from sprocket.replication.master_address import MasterAddress

logger = logging.getLogger(__name__)

#: After so much silence name servers remove the broker, ms. Source: brokerNotActiveTimeoutMillis.
EXPIRY_MS = 10_000
#: Pause between two signs of life, s. Source: brokerHeartbeatInterval.
_HEARTBEAT_SECONDS = 1.0
#: How long a name server or a slave may take to answer, s.
_ASK_SECONDS = 3.0


class ActingMaster:
    """Knows whether this broker is the master, or stands for it.

    Args:
        pool: connections to name servers and slaves.
        address, ha_address: where clients and slaves reach this broker.
        master: the master of a slave, which a master that comes back tells it.
        log_end: the end of this broker's log at its start.
        is_slave: whether this broker is a slave now.
        register: registers this broker soon, by which a slave learns where its master replicates.
        leases: the leases on queues.

    Attributes:
        is_acting: whether this slave stands for the master now.
    """

    def __init__(
        self,
        pool: Pool,
        settings: BrokerSettings,
        *,
        address: str,
        ha_address: str,
        master: MasterAddress,
        log_end: int,
        is_slave: Callable[[], bool],
        register: Callable[[], None],
        leases: LockTable,
    ) -> None:
        self._leases = leases
        #: When a master last took over the leases, by the loop's time.
        self._given_at = -math.inf
        self._pool = pool
        self._settings = settings
        self._address = address
        self._ha_address = ha_address
        self._master = master
        self._first_end = log_end
        self._is_slave = is_slave
        self._register = register
        #: The master's address, as name servers say; None if there is none.
        self._known_master: str | None = None
        self._notices = Watermark()
        self.is_acting = False

    def endpoints(self) -> Endpoints:
        """The endpoints, by request code."""
        return {
            RequestCode.NOTIFY_MIN_BROKER_ID_CHANGE: self._smallest_changed,
            RequestCode.EXCHANGE_BROKER_HA_INFO: self._exchange,
            OwnRequestCode.HELD_LEASES: self._held_leases,
        }

    def may_lease(self) -> bool:
        """Whether queues may be leased here now."""
        if not self._is_slave():
            return True
        since = asyncio.get_running_loop().time() - self._given_at
        return self._leases.is_own and since > EXPIRY_MS / 1000

    async def run(self) -> None:
        """Shows name servers that this broker lives, and asks who else does, until cancelled."""
        while True:
            await asyncio.gather(*(self._show(each) for each in self._settings.config.nameservers))
            notices = self._notices.value
            if members := await self._members():
                self._live(members)
            await self._notices.reach(notices + 1, Deadline.after(_HEARTBEAT_SECONDS))

    async def others(self) -> list[str]:
        """The addresses of the other living slaves, by their numbers."""
        members = await self._members() or {}
        own = (MASTER, self._settings.config.id)
        return [address for number, address in sorted(members.items()) if number not in own]

    async def take_over(self, offsets: ConsumerOffsets) -> None:
        """Takes over the offsets that slaves have, where they are ahead of this master's.

        A slave that does not answer is left out.
        """
        for address in await self.others():
            try:
                await self._tell_address(address)
                deadline = Deadline.after(_ASK_SECONDS)
                reply = await self._pool.ask(address, AllOffsets(), deadline=deadline)
                count = _take(OffsetTable.decode(reply.body), offsets)
            except SprocketError as error:
                logger.warning("no offsets are taken over from slave %s: %s", address, error)
                continue
            logger.info("%d offsets are taken over from slave %s", count, address)
            await self._take_leases(address)

    async def _take_leases(self, slave: str) -> None:
        deadline = Deadline.after(_ASK_SECONDS)
        try:
            reply = await self._pool.ask(slave, HeldLeases(), deadline=deadline)
            self._leases.take_over(HeldLeasesBody.decode(reply.body).leases)
        except SprocketError as error:  # RocketMQ's do not know the request
            logger.info("no leases are taken over from slave %s: %s", slave, error)

    async def _tell_address(self, slave: str) -> None:
        """Tells a slave where its master replicates, before name servers know it."""
        told = ExchangeReplicaAddress(
            master_ha_address=self._ha_address,
            master_address=self._address,
            master_flush_offset=self._first_end,
        )
        await self._pool.ask(slave, told, deadline=Deadline.after(_ASK_SECONDS))

    async def _show(self, nameserver: str) -> None:
        config = self._settings.config
        header = BrokerHeartbeat(
            cluster_name=config.cluster,
            broker_addr=self._address,
            broker_name=config.name,
            broker_id=config.id,
        )
        try:
            await self._pool.call(nameserver, header, deadline=Deadline.after(_ASK_SECONDS))
        except SprocketError as error:  # the registration reports it
            logger.debug("no sign of life to %s: %s", nameserver, error)

    async def _members(self) -> dict[int, str] | None:
        """The addresses of the living processes by number; None if no name server answers.

        One that has just been started knows only some, so what all of them say is joined.
        """
        answers = await asyncio.gather(
            *(self._members_at(each) for each in self._settings.config.nameservers)
        )
        known = [each for each in answers if each is not None]
        return {n: address for each in known for n, address in each.items()} if known else None

    async def _members_at(self, nameserver: str) -> dict[int, str] | None:
        config = self._settings.config
        asked = BrokerMembers(cluster_name=config.cluster, broker_name=config.name)
        try:
            deadline = Deadline.after(_ASK_SECONDS)
            reply = await self._pool.ask(nameserver, asked, deadline=deadline)
            group = BrokerMembersBody.decode(reply.body).broker_member_group
        except SprocketError as error:
            logger.debug("%s does not tell who lives: %s", nameserver, error)
            return None
        return None if group is None else group.broker_addrs

    def _live(self, members: Mapping[int, str]) -> None:
        """Applies which processes of this name live."""
        config = self._settings.config
        before, self._known_master = self._known_master, members.get(MASTER)
        if config.id != MASTER and self._known_master not in (None, before):
            self._register()
        is_acting = min(members) == config.id != MASTER
        if is_acting != self.is_acting:
            self.is_acting = is_acting
            (self._leases.act if is_acting else self._leases.end_act)()
            what = "stands for its master, which is away" if is_acting else "stands for none now"
            logger.warning("%s %d %s", config.name, config.id, what)

    # Requests.

    def _smallest_changed(self, command: Command, peer: Peer) -> Reply:
        command.read(SmallestNumberChanged)
        self._notices.rise(self._notices.value + 1)
        return Reply()

    def _held_leases(self, command: Command, peer: Peer) -> Reply:
        """The leases that were given in the master's place."""
        if not (self._is_slave() and self.is_acting):
            return Reply(body=HeldLeasesBody().encode())
        self._given_at = asyncio.get_running_loop().time()
        return Reply(body=HeldLeasesBody(leases=self._leases.held()).encode())

    def _exchange(self, command: Command, peer: Peer) -> Reply:
        """A master tells its slave its address, or a slave asks its master for it."""
        told = command.read(ExchangeReplicaAddress)
        if not self._is_slave():
            return Reply(
                ExchangeReplicaAddressReply(
                    master_ha_address=self._ha_address,
                    master_flush_offset=self._first_end,
                    master_address=self._address,
                )
            )
        is_believed = self._settings.config.acting_master and self._known_master is None
        if is_believed and told.master_ha_address and told.master_address:
            hosts = {
                _host(each) for each in (peer.address, told.master_address, told.master_ha_address)
            }
            if len(hosts) == 1:
                self._master.came_back(told.master_address, told.master_ha_address)
        return Reply()


def _host(address: str) -> str:
    return address.rpartition(":")[0]


def _take(table: OffsetTable, offsets: ConsumerOffsets) -> int:
    """Takes over offsets that are ahead; returns how many."""
    count = 0
    for key, queues in table.offset_table.items():
        topic, _, group = key.partition(SEPARATOR)
        for number, offset in _ahead(queues.items(), offsets, group, topic):
            offsets.put(group, topic, queue_number=number, offset=offset)
            count += 1
    return count


def _ahead(
    queues: Iterable[tuple[int, int]], offsets: ConsumerOffsets, group: str, topic: str
) -> list[tuple[int, int]]:
    own = offsets.queues(group, topic)
    return [(number, offset) for number, offset in queues if offset > own.get(number, -1)]
