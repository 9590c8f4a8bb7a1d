"""The broker's part in replication: it sends its log to slaves, or copies a master's, by its role.

Source: BrokerController.initializeBrokerScheduledTasks, handleRegisterBrokerResult of RocketMQ 5.x.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from types import TracebackType
from typing import Self

from sprocket.base.deadline import Deadline
from sprocket.base.errors import (
    ConnectFailed,
    SprocketError,
    SystemFailure,
    UsageError,
)
from sprocket.base.ports import Entropy
from sprocket.base.watermark import Watermark
from sprocket.broker.config import BrokerConfig
from sprocket.broker.members.comparison import LogComparison
from sprocket.broker.replica_config import SLAVE, SYNC_MASTER
from sprocket.broker.settings import BrokerSettings
from sprocket.protocol.bodies import ClusterInfo
from sprocket.protocol.codes import MASTER, ResponseCode
from sprocket.protocol.requests.route import ClusterOf
from sprocket.remoting import address as addresses
from sprocket.remoting.pool import Pool
from sprocket.remoting.tls.settings import TlsConfig
from sprocket.replication.copies import Copies, CopyRules
from sprocket.replication.epochs import EpochList
from sprocket.replication.master import Master
from sprocket.replication.master_address import MasterAddress
from sprocket.replication.master_forms import MasterForm, PlainForm
from sprocket.replication.rules import StreamRules
from sprocket.replication.slave import Slave
from sprocket.replication.slave_link import SlaveLink
from sprocket.replication.stream_start import FreshStart
from sprocket.store.store import Store

logger = logging.getLogger(__name__)

#: How long a name server may take to say which brokers are registered, s.
_ASK_SECONDS = 3.0
#: Pause before the next message of an asynchronous master is sent, so that more come with it, s.
_GATHER_SECONDS = 0.005


def copy_rules(config: BrokerConfig) -> CopyRules:
    """How many copies a message needs by these settings, the master's included."""
    return CopyRules(
        config.copies_wanted,
        config.copies_least,
        config.copies_gap_bytes,
        follows_sync=config.copies_follow_sync,
    )


def stream_rules(config: BrokerConfig) -> StreamRules:
    """How replication connections are used by these settings."""
    return StreamRules(
        heartbeat=config.replication_heartbeat_ms / 1000,
        silence=config.replication_silence_ms / 1000,
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
        tls: the settings of TLS, which count for replication if they say so.
        may_copy: whether a host may have the log.

    Attributes:
        is_slave: whether this broker is a slave now.
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
        tls: TlsConfig | None = None,
        may_copy: Callable[[str], bool] = lambda host: True,
    ) -> None:
        config = settings.config
        self._store = store
        self._settings = settings
        self._replicated, self._readable = replicated, readable
        self._pool = pool
        self._entropy = entropy
        self._tls = tls if tls is not None and tls.replication else None
        self._slave_tls = None if self._tls is None else self._tls.outgoing_tls()
        self._may_copy = may_copy
        self._rules = self._stream_rules()
        #: How often the name servers should have been asked who is a slave.
        self._questions = Watermark()
        self._exit = AsyncExitStack()
        self._is_flushing = settings.store.flush == "SYNC_FLUSH"
        self.is_slave = config.role == SLAVE
        self._time = asyncio.get_running_loop().time
        self.copies = Copies(copy_rules(config))
        if config.nameservers:  # until one has answered, nobody is known to be a slave
            self.copies.registered = {}
        self.master = MasterAddress(config.replication_master or "")
        self.sender: Master | None = None
        self.slave: Slave | None = None

    async def __aenter__(self) -> Self:
        """Listens for slaves, if this is a master.

        Raises:
            UsageError: the port that is set is in use; or any other, where senders wait for slaves.
        """
        if not self.is_slave:
            await self._listen(PlainForm(self.copies), self._settings.config.replication_port)
            if self._settings.config.role == SYNC_MASTER:
                rules = self.copies.rules
                logger.info(
                    "a send is answered with %d copies, this broker's included; with fewer than "
                    "%d in sync, messages are refused",
                    rules.wanted,
                    rules.least,
                )
        return self

    async def _listen(self, form: MasterForm, port: int) -> None:
        """Listens for slaves.

        Args:
            port: 0 for the one beside the broker's, which may be in use.

        Raises:
            UsageError: as `__aenter__`.
        """
        config = self._settings.config
        sender = Master(
            self._store,
            form,
            replicated=self._replicated,
            readable=self._readable,
            sendable=self._store.flushed if self._is_flushing else self._store.replica.appended,
            host=config.host,
            port=port or (config.port and config.port + 1),
            rules=self._rules,
            on_stranger=self._ask_soon,
            tls=self._tls,
            may_copy=self._may_copy,
        )
        try:
            self.sender = await self._exit.enter_async_context(sender)
        except UsageError as error:
            if port or config.role == SYNC_MASTER:
                raise
            logger.warning(
                "%s; so no slave can copy this broker. broker.replication_port (haListenPort) "
                "takes another port",
                error,
            )

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
        if not self.is_slave:
            await self._know_slaves()
            return
        self.slave = Slave(
            self._store,
            self.master,
            rules=self._rules,
            is_flushing=self._is_flushing,
            entropy=self._entropy,
            on_copied=on_copied,
            compared=LogComparison(self._store, self.master, self._pool).difference,
            tls=self._slave_tls,
        )
        await self.slave.run()

    def _stream_rules(self) -> StreamRules:
        """How connections are used by the settings in force."""
        return stream_rules(self._settings.config)

    def change(self) -> None:
        """Applies the settings in force."""
        self._rules = self._stream_rules()
        if self.slave is not None:
            self.slave.change(self._rules)
        self.copies.change(copy_rules(self._settings.config))
        if self.sender is not None:
            self.sender.change(self._rules)
            self.sender.recount()

    def learn_master(self, address: str, replication: str) -> None:
        """Takes the addresses of a slave's master from a name server."""
        self.master.learn(address, replication)

    def is_known(self, host: str) -> bool:
        """Whether a host is known to have a slave of this broker."""
        return self.copies.is_known(host)

    @property
    def epochs(self) -> EpochList:
        """The epochs of the log: none, where no elector counts them."""
        return EpochList()

    def figures(self) -> dict[str, str]:
        """Figures of a broker that belongs to a group, for its state."""
        return {}

    def is_in_sync(self, link: SlaveLink) -> bool:
        """Whether a connected slave is in sync."""
        return self._store.log_end - link.reported.value < self.copies.rules.gap_bytes

    def settling(self) -> Awaitable[bool] | None:
        """What to wait for until this broker can say where queues end for readers; None if it can.
        It returns whether that was reached."""
        return None

    @property
    def is_waiting(self) -> bool:
        """Whether sends wait for slaves."""
        return self.copies.rules.wanted > 1

    def role_check(self) -> Callable[[bool], None] | None:
        """What each message is checked with before it is stored; see `Ingress`."""
        return self.check_copies if self.is_waiting else None

    def check_copies(self, is_awaited: bool = True) -> None:
        """
        Raises:
            SystemFailure: too few copies are in sync to accept a message that waits for them.
        """
        if not is_awaited:
            return
        end = self._store.replica.end
        if not self.copies.is_enough(end):
            raise SystemFailure(
                f"in-sync replicas not enough: {self.copies.in_sync(end)} of the "
                f"{self.copies.rules.least} copies that a message needs, the master's included"
            )

    async def reach(self, end: int, deadline: Deadline) -> int:
        """The response code for a message once it has enough copies, or at the deadline.

        Args:
            end: the log offset after the message.
        """
        if await self._replicated.reach(end, deadline):
            return ResponseCode.SUCCESS
        if self.copies.in_sync(end) < self.copies.wanted(end):
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
                    hosts = {link.host for link in self.sender.links.values()}
                    self.copies.know(registered, hosts)
                    self.sender.recount()
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
