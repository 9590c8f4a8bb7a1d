"""The broker: it listens, answers, and stays while its store and parts are opened and closed.

Each request goes through `dispatch`, which calls the endpoint of the request code. `send` and
`retries` store messages through `ingress`; `pull` reads them for consumers, and `pop` gives them
out one by one. `positions` and `offsets` keep the consumers' offsets, `membership` and `clients`
the connected clients, `locks` the leases of ordered consumers. `operate` answers the requests of
operators, `registration` registers the broker at the name servers, `delay` delivers messages that
are due. `tables` holds the broker's state and `files` writes it to state files. `parts` builds all
of these, `request_table` the endpoints, and `open_broker` opens and runs them.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from functools import partial

from sprocket.audit.audit_log import audit_log
from sprocket.audit.config import AuditConfig
from sprocket.auth.guard import KnownUsers
from sprocket.base.config import check
from sprocket.base.deadline import Deadline
from sprocket.base.errors import ConfigError, ServiceNotAvailable, UsageError
from sprocket.base.kept_settings import KeptSettings
from sprocket.base.opened_in_order import OpenedInOrder
from sprocket.base.ports import Clock, Disk, Entropy
from sprocket.broker.call_meter import CallMeter
from sprocket.broker.config import BrokerConfig
from sprocket.broker.dispatch import Dispatch
from sprocket.broker.group_broker import GroupBroker
from sprocket.broker.live_settings import CHANGED_FILE, why_fixed
from sprocket.broker.members.seat import Seat
from sprocket.broker.members.vip_listener import VipListener
from sprocket.broker.open_broker import OpenBroker
from sprocket.broker.parts import BrokerParts
from sprocket.broker.place import Location, Ports
from sprocket.broker.replica_config import SLAVE
from sprocket.broker.sending import kernel
from sprocket.broker.settings import BrokerSettings
from sprocket.broker.tables.measures import BrokerMeasures
from sprocket.election.controller_elector import ControllerTimes
from sprocket.election.elector import Elector
from sprocket.election.etcd import EtcdSecurity
from sprocket.election.opening import ElectorRequest, open_elector
from sprocket.message.hosts import pack
from sprocket.protocol.codes import RequestCode
from sprocket.protocol.command import Command, Reply
from sprocket.remoting import address as addresses
from sprocket.remoting.endpoints import BatchEndpoint, EventualResponse, Shortcut
from sprocket.remoting.ip_counts import IpCounts
from sprocket.remoting.limits import ConnectionLimits
from sprocket.remoting.pool import Pool
from sprocket.remoting.server import Server
from sprocket.remoting.tls.settings import TlsConfig, checked_settings
from sprocket.remoting.transport import Peer
from sprocket.store.config import FOLDER_SETTINGS, StoreConfig
from sprocket.store.store import Store

logger = logging.getLogger(__name__)


class Broker(OpenedInOrder):
    """A broker. Use it with `async with`: inside, it serves and is registered.

    Args:
        config: settings of the broker.
        store: settings of its store.
        root: folder of its store and state files.
        disk, clock, entropy: the ports to the machine.
        memory_bytes: the memory of the machine.
        elector: says which broker of this name is the master, instead of the one that is set.
        tls: whether and how it speaks TLS.
        audit: whether and where it writes an audit log.
        measures: the histograms that it keeps for metrics; None for none.

    Attributes:
        ips: its connections by IP address.

    Raises:
        ConfigError: a setting is invalid.
    """

    def __init__(
        self,
        config: BrokerConfig,
        *,
        store: StoreConfig,
        root: str,
        disk: Disk,
        clock: Clock,
        entropy: Entropy,
        memory_bytes: int = 8 << 30,
        elector: Elector | None = None,
        tls: TlsConfig | None = None,
        audit: AuditConfig | None = None,
        measures: BrokerMeasures | None = None,
    ) -> None:
        check(config)
        check(store)
        self._audit = audit_log(
            audit, server=config.name, part="broker", beside=root, disk=disk, clock=clock
        )
        self._tls = checked_settings(tls)
        if elector is not None or config.elector_place is not None:
            config = replace(config, role=config.leading_role)
        path = f"{root}/config/{CHANGED_FILE}"
        kept = KeptSettings(
            disk, path, (config, store), lambda each: why_fixed(each) is None,
            where=FOLDER_SETTINGS,
        )  # fmt: skip
        is_tls = self._tls.outgoing_tls() is not None
        self._settings = BrokerSettings(config, store, kept, is_tls=is_tls)
        self._root = root
        self._world = Ports(disk, clock, entropy, memory_bytes)
        self.ips = IpCounts(self)
        self.measures = measures
        self._endpoint: BatchEndpoint = self.answer_first
        shortcut: Shortcut | None = self.take_first if kernel.is_installed() else None
        if measures is not None:
            meter = CallMeter(measures)
            self._endpoint = meter.measured(self._endpoint)
            if shortcut is not None:
                shortcut = meter.measured_shortcut(shortcut, self._sends)
        self._server = Server(
            self._endpoint,
            shortcut=shortcut,
            host=config.host,
            port=config.port,
            limits=_limits(config),
            connections_max=config.connections_max or None,
            tls=self._tls,
            ips=self.ips,
        )
        self._pool = Pool(
            entropy=entropy, tls=self._tls.outgoing_tls(), signer=config.inner_signer()
        )
        self._elector = elector or _elector(config, root, self._world, self._tls)
        #: What is open now; None while it changes.
        self._inside: OpenBroker | None = None
        self._last: OpenBroker | None = None
        self._group: GroupBroker | None = None

    @property
    def address(self) -> str:
        """`host:port` at which clients reach the broker."""
        host = self._settings.config.advertised_host or self._settings.config.host
        return addresses.join(host, self._server.port)

    @property
    def settings(self) -> BrokerSettings:
        """The settings in force."""
        return self._settings

    @property
    def inside(self) -> OpenBroker | None:
        """What is open now; None while it starts, and while its role changes."""
        return self._inside

    # Tests look inside by these names.

    @property
    def _store(self) -> Store:
        return self._now.store

    @property
    def _parts(self) -> BrokerParts:
        return self._now.parts

    @property
    def _dispatch(self) -> Dispatch | None:
        return self._now.dispatch

    @property
    def _now(self) -> OpenBroker:
        for inside in (self._inside, self._last):
            if inside is not None and hasattr(inside, "parts"):
                return inside
        raise AttributeError("nothing was opened yet")

    async def _open(self, opened: AsyncExitStack) -> None:
        """Listens, opens the store and registers at the name servers.

        Raises:
            UsageError: the address is in use, or does not belong to this machine.
            DirectoryInUse: another process has locked the folder.
            ConfigError: the store was made with other file sizes, or the delay levels are invalid.
            StoreError: the store or a state file cannot be opened.
        """
        self._failure: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._failure.add_done_callback(_retrieve)
        self._settings.load()
        await opened.enter_async_context(self._server)
        await opened.enter_async_context(self._pool)
        opened.callback(self._failure.cancel)
        if self._audit is not None:
            await opened.enter_async_context(self._audit)
        place = Location(self._root, self.address, "", await _packed(self.address))
        if self._elector is None:
            inside = self._make(place)
            self._show(inside)
            opened.push_async_callback(inside.close)
            await inside.open(is_slave=self._settings.config.role == SLAVE)
        else:
            await self._open_group(self._elector, place, opened)
        opened.push_async_callback(self._finish)
        logger.info("broker %s serves at %s", self._settings.config.name, self.address)

    async def _finish(self) -> None:
        """Unregisters, answers the requests in flight, and saves everything to the disk."""
        if self._group is not None:
            await self._group.hand_over()
        inside = self._inside
        if inside is None or inside.dispatch is None:  # it changes its role at this moment
            return
        await inside.registration.leave()
        inside.parts.quotas.admission.stop()
        inside.parts.pulls.stop()
        inside.parts.pop.stop()
        inside.parts.lite.stop()
        await self._server.drain(Deadline.after_ms(self._settings.config.drain_ms))
        await inside.save()

    def _make(self, place: Location, seat: Seat | None = None) -> OpenBroker:
        return OpenBroker(
            self._settings,
            world=self._world,
            place=place,
            pool=self._pool,
            failure=self._failure,
            vip=self._vip_listener,
            tls=self._tls,
            seat=seat,
            audit=self._audit,
            measures=self.measures,
        )

    def _vip_listener(self, strangers: Callable[[], int]) -> VipListener:
        return VipListener(
            self._endpoint,
            host=self._settings.config.host,
            port=self._server.port,
            limits=_limits(self._settings.config),
            strangers=strangers,
            ips=IpCounts(self, beside=self.ips),
        )

    async def _open_group(self, elector: Elector, place: Location, opened: AsyncExitStack) -> None:
        """Opens the broker as a slave of its group, which may then become the master."""
        config = self._settings.config
        self._group = GroupBroker(
            elector,
            partial(self._make, place),
            pool=self._pool,
            lease=config.group_lease_ms / 1000,
            is_unclean=config.elect_unclean,
            on_open=self._show,
            failure=self._failure,
        )
        opened.push_async_callback(self._group.close)
        port = config.replication_port or min(self._server.port + 1, 65535)
        await self._group.open(self.address, port)

    def _show(self, inside: OpenBroker | None) -> None:
        """Has requests answered by what is open now."""
        self._last = self._inside or self._last
        self._inside = inside

    async def serve(self) -> None:
        """Waits until the broker fails; never returns otherwise.

        Raises:
            StoreError: the disk failed; the caller leaves the broker.
        """
        await asyncio.shield(self._failure)

    def accounts(self) -> KnownUsers | None:
        """The users and their policies, for parts of the same process; None while it opens."""
        inside = self._inside or self._last
        return None if inside is None else inside.parts.rights.known

    # The server asks these for each connection.

    def connections_max(self, ip: str) -> int | None:
        """How many connections an IP address may have; None for any number."""
        has_rules = self._settings.config.quotas and hasattr(self._inside, "parts")
        return self._parts.quotas.admission.connections_max(ip) if has_rules else None

    def connection_refused(self, ip: str) -> None:
        """Counts a connection that was closed because of it."""
        self._parts.quotas.admission.connection_refused(ip)

    def take_first(self, data: bytes, peer: Peer) -> tuple[int, bytes] | None:
        """See `Shortcut`."""
        inside = self._inside
        if inside is None or (dispatch := inside.dispatch) is None:
            return None
        return dispatch.take_first(data, peer)

    def _sends(self) -> int:
        """How many single messages were sent since the role began."""
        inside = self._inside
        if inside is None or inside.dispatch is None:
            return 0
        return inside.dispatch.counts.get(RequestCode.SEND_MESSAGE_V2, 0)

    # A client that sent to a new topic asks a name server for its route next. So replies to
    # requests that changed topics wait until the name servers know; all others go out at once.
    def answer_first(self, commands: Sequence[Command], peer: Peer) -> Sequence[EventualResponse]:
        """Answers the first of some requests that came together: those of a connection, or those
        of a part of the same process.
        """
        inside = self._inside
        if inside is None or (dispatch := inside.dispatch) is None:
            error = ServiceNotAvailable("the broker is starting, or changes its role")
            return [Reply(code=error.code, remark=error.remark)] * len(commands)
        registration = inside.registration
        before = registration.changes
        outcomes = dispatch.answer_first(commands, peer)
        if registration.changes == before:
            return outcomes
        return [None if each is None else inside.announced(each) for each in outcomes]


def _elector(config: BrokerConfig, root: str, world: Ports, tls: TlsConfig) -> Elector | None:
    """The elector that is set; None if there is none.

    Raises:
        ConfigError: it cannot be made.
    """
    if (place := config.elector_place) is None:
        return None
    return open_elector(
        ElectorRequest(
            place,
            config.cluster,
            config.name,
            world.disk,
            root,
            world.entropy,
            world.clock,
            lease_ms=config.lease_ms,
            priority=config.election_priority,
            elect_unclean=config.elect_unclean,
            controller_times=ControllerTimes(
                config.controller_heartbeat_ms / 1000, config.controller_silence_ms / 1000
            ),
            security=EtcdSecurity(
                password=config.elector_password,
                ca=config.elector_ca,
                cert=config.elector_cert,
                key=config.elector_key,
            ),
            tls=tls.outgoing_tls(),
            signer=config.inner_signer(),
        )
    )


def _limits(config: BrokerConfig) -> ConnectionLimits:
    return ConnectionLimits(
        frame_bytes_max=config.frame_bytes_max, unfinished_bytes_max=config.unfinished_bytes_max
    )


def _retrieve(failure: asyncio.Future[None]) -> None:
    """Marks the failure as retrieved: asyncio warns otherwise, and it is in the log already."""
    if not failure.cancelled():
        failure.exception()


async def _packed(address: str) -> bytes:
    """An address in the binary form of records; a host name is resolved.

    Raises:
        ConfigError: the host name cannot be resolved.
    """
    try:
        return pack(address)
    except UsageError:
        host, port = addresses.split(address)
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host, port)
    except OSError as error:
        raise ConfigError(f"broker address {address}: {error}") from error
    return pack(addresses.of_socket(found[0][4]))
