"""The broker's part in replication: it sends its log to slaves, or copies a master's, by its role.

Source: BrokerController.initializeBrokerScheduledTasks, handleRegisterBrokerResult of RocketMQ 5.x.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from functools import partial
from types import TracebackType
from typing import Self

from sprocket.base.deadline import Deadline
from sprocket.base.errors import (
    ConnectFailed,
    ServiceNotAvailable,
    SprocketError,
    StoreError,
    SystemFailure,
    UsageError,
)
from sprocket.base.ports import Entropy
from sprocket.base.watermark import Watermark
from sprocket.broker.config import BrokerConfig
from sprocket.broker.members.comparison import LogComparison
from sprocket.broker.members.in_sync_upkeep import InSyncUpkeep
from sprocket.broker.members.seat import Seat
from sprocket.broker.replica_config import SYNC_MASTER
from sprocket.broker.settings import BrokerSettings
from sprocket.election.elector import Elector, Member
from sprocket.protocol.bodies import ClusterInfo
from sprocket.protocol.codes import MASTER, ResponseCode
from sprocket.protocol.requests.route import ClusterOf
from sprocket.remoting import address as addresses
from sprocket.remoting.pool import Pool
from sprocket.replication.copies import Copies, CopyRules
from sprocket.replication.epoch_file import EpochFile
from sprocket.replication.in_sync_copies import InSyncCopies
from sprocket.replication.master import Master
from sprocket.replication.master_address import MasterAddress
from sprocket.replication.rules import StreamRules
from sprocket.replication.slave import Slave
from sprocket.replication.stream_start import FreshStart
from sprocket.store.store import Store

logger = logging.getLogger(__name__)

#: How long a name server may take to say which brokers are registered, s.
_ASK_SECONDS = 3.0
#: Heartbeats in a lease, in a group.
_HEARTBEATS = 10
#: A member that is to lead is looked at so often, s.
_HAS_ALL_SECONDS = 0.002
#: Pause before the next message of an asynchronous master is sent, so that more come with it, s.
_GATHER_SECONDS = 0.005


def copy_rules(config: BrokerConfig) -> CopyRules:
    """How many copies a message needs by these settings, the master's included."""
    return CopyRules(config.copies_wanted, config.copies_least, config.copies_gap_bytes)


def stream_rules(config: BrokerConfig, seat: Seat | None = None) -> StreamRules:
    """How replication connections are used by these settings; in a group, by its lease."""
    heartbeat, silence = config.replication_heartbeat_ms, config.replication_silence_ms
    if seat is not None:
        heartbeat = min(heartbeat, int(seat.lease * 1000 / _HEARTBEATS))
        silence = min(silence, int(seat.lease * 1000))
    return StreamRules(
        heartbeat=heartbeat / 1000,
        silence=silence / 1000,
        batch_bytes=config.replication_batch_bytes,
        bytes_per_second=config.replication_bytes_per_second if config.replication_limit else 0,
        gather=0.0 if config.role == SYNC_MASTER else _GATHER_SECONDS,
        fresh=FreshStart.parse(config.replication_start),
    )


class Replication:
    """Replication of one broker. Use it with `async with` once the store is open.

    Args:
        replicated: is raised to the log offset up to which there are as many copies as wanted.
        readable: the same for the least copies, with which messages are accepted.
        pool: connections to the name servers.
        is_slave: the role in which it begins.
        seat: this broker's place in a group; None if it is in none.
        epochs: the epochs of the log, in a group.

    Attributes:
        is_slave: the role now.
        copies: what is known of the slaves' logs.
        master: where the master of a slave is: tasks of a slave that copy what is not in the log
            wait for it here.
        sender: sends the log to slaves; None at a slave, or if the port is in use.
        slave: copies the master's log; None at a master.
    """

    def __init__(
        self,
        store: Store,
        settings: BrokerSettings,
        *,
        replicated: Watermark,
        readable: Watermark,
        pool: Pool,
        entropy: Entropy,
        is_slave: bool,
        seat: Seat | None = None,
        epochs: EpochFile | None = None,
    ) -> None:
        self._epochs = epochs
        config = settings.config
        self._seat = seat
        self._time = asyncio.get_running_loop().time
        self._store = store
        self._settings = settings
        self._replicated, self._readable = replicated, readable
        self._pool = pool
        self._entropy = entropy
        self._rules = stream_rules(config, seat)
        #: How often the name servers should have been asked who is a slave.
        self._questions = Watermark()
        self._exit = AsyncExitStack()
        self._is_flushing = settings.store.flush == "SYNC_FLUSH"
        self.is_slave = is_slave
        self.copies = Copies(copy_rules(config))
        if (
            config.nameservers and seat is None
        ):  # until one has answered, nobody is known to be a slave
            self.copies.registered = {}
        self.master = MasterAddress(config.replication_master or "")
        self.sender: Master | None = None
        self.slave: Slave | None = None
        self.in_sync: InSyncCopies | None = None
        self._set_changes = Watermark()

    async def __aenter__(self) -> Self:
        """Listens for slaves, if this is a master.

        Raises:
            UsageError: the port that is set is in use; or any other, where senders wait for slaves.
        """
        if not self.is_slave:
            await self._listen()
        return self

    async def lead(self, epoch: int) -> None:
        """Makes a slave the master of an epoch, which is on the disk before any message of it. What
        copied the old master's log must have ended.

        Raises:
            UsageError: the port for slaves is in use.
            StoreError: the epoch cannot be kept.
        """
        assert self._seat is not None, "roles change in groups only"
        assert self._epochs is not None, "a group has epochs"
        try:
            self._epochs.begin(epoch, self._store.log_start, self._store.log_end)
        except (ValueError, OSError) as error:
            raise StoreError(f"epoch {epoch} cannot be kept: {error}") from error
        self.slave = None
        view = self._seat.elector.view
        self.in_sync = InSyncCopies(
            self._seat.number,
            copy_rules(self._settings.config),
            confirmed=self._readable.value,
            epoch_start=self._store.log_end,
        )
        self.in_sync.set_in_sync(view.in_sync | {self._seat.number}, view.set_epoch)
        self.copies = _MemberCopies(self.in_sync, self._seat.elector, self._store)
        await self._listen()
        self.is_slave = False

    def give_up(self) -> None:
        """Ends what waits for copies: this broker is not the master any more, so nobody knows
        whether the next one has them."""
        error = ServiceNotAvailable("this broker is not the master any more; send to the new one")
        self._replicated.fail(error)

    async def _listen(self) -> None:
        config = self._settings.config
        sender = Master(
            self._store,
            self.copies,
            replicated=self._replicated,
            readable=self._readable,
            sendable=self._store.flushed if self._is_flushing else self._store.replica.appended,
            host=config.host,
            port=self._port_to_listen_at(),
            rules=self._rules,
            on_stranger=self._ask_soon,
        )
        try:
            self.sender = await self._exit.enter_async_context(sender)
        except UsageError as error:
            if config.replication_port or config.role == SYNC_MASTER:
                raise
            logger.warning(
                "%s; so no slave can copy this broker. broker.replication_port (haListenPort) "
                "takes another port",
                error,
            )
        if config.role == SYNC_MASTER:
            rules = self.copies.rules
            logger.info(
                "a send is answered with %d copies, this broker's included; with fewer than %d in "
                "sync, messages are refused",
                rules.wanted,
                rules.least,
            )

    def _port_to_listen_at(self) -> int:
        """The port for slaves, 0 for any; in a group the other members know it already."""
        if self._seat is not None:
            return self._seat.replication_port
        config = self._settings.config
        return config.replication_port or (config.port and config.port + 1)

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._exit.aclose()

    def address_beside(self, address: str) -> str:
        """The address for slaves of a broker that clients reach at `address`."""
        host, port = addresses.split(address)
        if self.sender is not None:
            port = self.sender.port
        else:
            port = self._settings.config.replication_port or min(port + 1, 65535)
        return addresses.join(host, port)

    async def run(self, on_copied: Callable[[], None]) -> None:
        """Copies the master's log, or keeps track of who is a slave, until cancelled.

        Args:
            on_copied: is called after records were copied.

        Raises:
            StoreError: a slave's disk failed.
        """
        if self._seat is not None and self.in_sync is not None:
            await self._lead_group(self._seat, self.in_sync)
            return
        if not self.is_slave:
            await self._know_slaves()
            return
        self.slave = Slave(
            self._store,
            self.master,
            rules=self._rules,
            is_flushing=self._is_flushing,
            entropy=self._entropy,
            on_copied=on_copied if self._seat is None else partial(self._show_copied, on_copied),
            compared=LogComparison(self._store, self.master, self._pool).difference,
            on_lost=self._seat.on_lost if self._seat is not None else lambda: None,
        )
        await self.slave.run()

    def _show_copied(self, on_copied: Callable[[], None]) -> None:
        self._readable.rise(self._store.log_end)
        self._store.replica.confirm()
        on_copied()

    async def _lead_group(self, seat: Seat, copies: InSyncCopies) -> None:
        """Keeps the in-sync set, until cancelled."""
        upkeep = InSyncUpkeep(
            seat.elector,
            copies,
            number=seat.number,
            lease=seat.lease,
            behind_ms=lambda: self._settings.config.copies_behind_ms,
            log_end=lambda: self._store.log_end,
            on_change=self._set_changed,
        )
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(upkeep.run())
            tasks.create_task(self._confirm_alone(seat, copies))

    def _set_changed(self) -> None:
        self._set_changes.rise(self._set_changes.value + 1)
        if self.sender is not None:
            self.sender.recount()

    async def _confirm_alone(self, seat: Seat, copies: InSyncCopies) -> None:
        """Confirms what is appended while no other member is in sync, whose reports would do it."""
        appended = self._store.replica.appended
        while True:
            changes, seen = self._set_changes.value, appended.value
            if self.sender is not None:
                self.sender.recount()
            if copies.in_sync == {seat.number}:
                await appended.reach(seen + 1, Deadline.never())
            else:
                await self._set_changes.reach(changes + 1, Deadline.never())

    def learn_master(self, address: str, replication: str) -> None:
        """Takes the addresses of a slave's master from a name server; in a group the elector says
        who it is."""
        if self._seat is None:
            self.master.learn(address, replication)

    def follow(self, master: Member, epoch: int) -> None:
        """Copies from another master of the group from now on."""
        self.slave = None
        self.master.learn(master.address, master.replication_address)

    def ends(self) -> dict[int, int]:
        """The log offsets up to which the other members have the log, as far as is known."""
        if self.in_sync is None:
            return {}
        return {number: each.report for number, each in self.in_sync.members.items()}

    async def has_all(self, member: int, deadline: Deadline) -> bool:
        """Whether a member has the whole log before the deadline."""
        if self.in_sync is None:
            return False
        end = self._store.log_end
        while self.in_sync.behind(member, end) and deadline.left() > 0:  # noqa: ASYNC110 - a stop
            await asyncio.sleep(_HAS_ALL_SECONDS)
        return not self.in_sync.behind(member, end)

    def is_known(self, host: str) -> bool:
        """Whether reports from a host count as those of a slave."""
        return self.copies.is_known(host)

    @property
    def is_waiting(self) -> bool:
        """Whether sends wait for slaves."""
        return self._settings.config.copies_wanted > 1

    def role_check(self) -> Callable[[bool], None] | None:
        """What each message is checked with before it is stored; see `Ingress`."""
        if self._seat is None:
            return self.check_copies if self.is_waiting else None
        return self._check_waiting if self.is_waiting else self._check_lead

    def check_copies(self, is_awaited: bool = True) -> None:
        """
        Raises:
            SystemFailure: too few copies are in sync to accept a message that waits for them.
        """
        if not is_awaited:
            return
        if self.in_sync is not None:
            if not self.in_sync.is_enough(self._store.log_end):
                raise SystemFailure(
                    f"in-sync replicas not enough: {len(self.in_sync.in_sync)} of the "
                    f"{self._settings.config.copies_least} that a message needs, the master "
                    "included"
                )
            return
        end = self._store.replica.end
        if not self.copies.is_enough(end):
            raise SystemFailure(
                f"in-sync replicas not enough: {self.copies.in_sync(end)} of the "
                f"{self.copies.rules.least} copies that a message needs, the master's included"
            )

    # Whoever waits for all of the in-sync set needs no clock: if another member leads by now, one
    # of the set follows it, and confirms nothing here. An answer without copies needs the right to
    # lead at this moment, whatever has held up this process.
    def _check_waiting(self, is_awaited: bool) -> None:
        if is_awaited:
            self.check_copies()
        else:
            self._check_lead(is_awaited)

    def _check_lead(self, is_awaited: bool) -> None:
        """
        Raises:
            ServiceNotAvailable: another broker of the group may lead by now.
        """
        assert self._seat is not None, "it is checked in a group only"
        if self._time() >= self._seat.elector.writes_until:
            raise ServiceNotAvailable(
                "another broker of the group may be its master by now: the elector has not "
                "confirmed this one for as long as its lease lasts"
            )

    async def reach(self, end: int, deadline: Deadline) -> int:
        """The response code for a message once it has enough copies, or at the deadline.

        Args:
            end: the log offset after the message.
        """
        if await self._replicated.reach(end, deadline):
            return ResponseCode.SUCCESS
        if self.in_sync is None and self.copies.in_sync(end) < self.copies.rules.wanted:
            return ResponseCode.SLAVE_NOT_AVAILABLE
        return ResponseCode.FLUSH_SLAVE_TIMEOUT

    def _ask_soon(self) -> None:
        self._questions.rise(self._questions.value + 1)

    async def _know_slaves(self) -> None:
        """Asks the name servers who is a slave: at once when a stranger connects, and regularly."""
        while True:
            asked = self._questions.value
            if self.sender is not None and self.sender.links:
                registered = await self._registered_slaves()
                if registered is not None or not self.copies.registered:
                    self.sender.know_slaves(registered)
            pause = self._settings.config.registration_ms / 1000
            await self._questions.reach(asked + 1, Deadline.after(pause))

    # Each name server may have been started just now and know only some. So the most that any of
    # them says counts; if none knows this broker at all, nothing is known.
    async def _registered_slaves(self) -> Mapping[str, int] | None:
        """How many slaves are registered at each host; None if no name server says so."""
        config = self._settings.config
        found: Counter[str] | None = None
        for nameserver in config.nameservers:
            try:
                reply = await self._pool.ask(
                    nameserver, ClusterOf(), deadline=Deadline.after(_ASK_SECONDS)
                )
                broker = ClusterInfo.decode(reply.body).broker_addr_table.get(config.name)
            except SprocketError as error:
                logger.info("name server %s does not say who is a slave: %s", nameserver, error)
                continue
            if broker is not None:
                slaves = [each for number, each in broker.broker_addrs.items() if number != MASTER]
                found = Counter(await _hosts(slaves)) | (found or Counter())
        return found


async def _hosts(registered: list[str]) -> list[str]:
    """The IP addresses of registered brokers."""
    hosts = []
    for each in registered:
        try:
            host, port = addresses.split(each)
            names = await asyncio.get_running_loop().getaddrinfo(host, port)
            hosts.append(addresses.of_socket(names[0][4]).rpartition(":")[0])
        except (OSError, ConnectFailed) as error:
            logger.info("slave address %s cannot be resolved: %s", each, error)
    return hosts


class _MemberCopies(Copies):
    """Reports of slaves as those of members, by their hosts."""

    __slots__ = ("_elector", "_members", "_store")

    def __init__(self, members: InSyncCopies, elector: Elector, store: Store) -> None:
        super().__init__(CopyRules(2, 2))
        self._members = members
        self._elector = elector
        self._store = store

    def report(self, link: int, host: str, offset: int) -> None:
        for number, member in self._elector.view.members.items():
            if addresses.split(member.address)[0] == host:
                now = asyncio.get_running_loop().time()
                self._members.report(link, number, offset, end=self._store.log_end, now=now)

    def replicated(self, count: int, end: int) -> int:
        return self._members.readable(end)
