"""A container of brokers: the parent process of several brokers, and of what belongs to them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from functools import partial

from msgspec.structs import replace

from sprocket.audit.audit_log import audit_log
from sprocket.audit.config import AuditConfig
from sprocket.audit.trail import AuditedClients, AuditTrail
from sprocket.base.cancelling import end_all
from sprocket.base.errors import SprocketError
from sprocket.base.loaded_config import LoadedConfig
from sprocket.base.opened_in_order import OpenedInOrder
from sprocket.base.ports import Disk
from sprocket.broker.config import BrokerConfig, is_anywhere
from sprocket.container.children import ChildFailed, ChildSpec, Launcher
from sprocket.container.config import ContainerConfig
from sprocket.container.draining import Remaining
from sprocket.container.pages import ChildPages, ContainerMetrics
from sprocket.container.plan import BrokerPlan, as_text, variables
from sprocket.container.remembered import (
    AddedBroker,
    ContainerFile,
    ContainerState,
    share_users,
    users_in,
)
from sprocket.container.requests import ContainerAccess, ContainerRequests
from sprocket.container.restarts import Restarts
from sprocket.container.spreading import TopicSpread
from sprocket.container.supervisor import Supervisor
from sprocket.message.topic import reply_topic
from sprocket.metrics.config import MetricsConfig
from sprocket.metrics.exporting import Exporting
from sprocket.metrics.health import serving
from sprocket.metrics.of_nameserver import NameServerMetrics
from sprocket.nameserver.nameserver import NameServer
from sprocket.protocol.codes import MASTER
from sprocket.remoting import address as addresses
from sprocket.remoting.endpoints import one_by_one
from sprocket.remoting.pool import Pool
from sprocket.remoting.server import Server
from sprocket.remoting.tls.settings import TlsConfig, checked_settings
from sprocket.runtime.clock import SystemClock

logger = logging.getLogger(__name__)

#: What the process of the proxy is called.
PROXY = "proxy"
_LOOPBACK = "127.0.0.1"
#: Between two checks of what remains in a broker that leaves, s.
_DRAIN_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class ContainerSetup:
    """What a container is made of.

    Attributes:
        loaded: the settings that all brokers share, and those of the container.
        brokers: what each broker has of its own.
        arguments: of the command of each broker.
        given: settings of the command line, by `part.name`.
        read_config: reads the configuration file of a broker that is added.
        proxy: makes the process of a proxy for gRPC clients, by the addresses of name servers.
        needs_proxy: whether the start fails if that does not start.
    """

    loaded: LoadedConfig
    file: ContainerFile
    state: ContainerState
    brokers: Sequence[BrokerPlan]
    arguments: tuple[str, ...]
    read_config: Callable[[str], LoadedConfig]
    given: Mapping[str, str] = field(default_factory=dict)
    proxy: Callable[[Sequence[str]], ChildSpec] | None = None
    needs_proxy: bool = True


class Container(OpenedInOrder):
    """Runs brokers. Use it with `async with`: inside, each of them runs, or is tried again.

    Args:
        disk: the port to the disk.
        launcher: starts processes.
        nameserver: runs beside the brokers, in this process.
    """

    def __init__(
        self,
        setup: ContainerSetup,
        *,
        disk: Disk,
        launcher: Launcher,
        nameserver: NameServer | None = None,
    ) -> None:
        self._setup = setup
        self._state = setup.state
        self._disk = disk
        self.nameserver = nameserver
        self._config = setup.loaded.of(ContainerConfig)
        self._broker = setup.loaded.of(BrokerConfig)
        tls = checked_settings(setup.loaded.of(TlsConfig).whole())
        self._pool = Pool(tls=tls.outgoing_tls(), signer=self._broker.inner_signer())
        self.supervisor = Supervisor(
            launcher,
            stop_seconds=self._config.stop_ms / 1000,
            restarts=partial(Restarts, longest=self._config.restart_ms_max / 1000),
            on_change=self._changed,
        )
        self._exporting = Exporting(setup.loaded.of(MetricsConfig), ChildPages(self.supervisor))
        host = self._broker.host
        self._host = _LOOPBACK if is_anywhere(host) else host
        self._server = Server(
            one_by_one(lambda command, peer: self._requests.answer(command, peer)),
            host=host,
            port=self._config.port,
            tls=tls,
        )

    @property
    def address(self) -> str:
        """`host:port` at which brokers are added and removed."""
        return self._server.address

    @property
    def root(self) -> str:
        """The folder of all brokers."""
        return self._setup.file.root

    @property
    def brokers(self) -> Mapping[str, str | None]:
        """The addresses of the brokers by name; None for one that does not run."""
        running = self.supervisor.running
        names = [each.entry.name for each in self._setup.brokers] + [*map(_key, self._state.added)]
        return {name: running[name]["address"] if name in running else None for name in names}

    @property
    def pages(self) -> str | None:
        """`host:port` of metrics and health of all; None if none are served."""
        return self._exporting.address

    @property
    def proxy_address(self) -> str | None:
        """Where the proxy listens; None if none runs."""
        return self.supervisor.running.get(PROXY, {}).get("address")

    async def _open(self, opened: AsyncExitStack) -> None:
        """Starts all.

        Raises:
            UsageError: a port is in use.
            DirectoryInUse: another container uses the folder.
            ChildFailed: no broker could start.
        """
        file = self._setup.file
        await opened.enter_async_context(self._exporting)
        self._disk.make_directory(file.folder)
        opened.callback(self._disk.lock(file.folder).release)
        if file.load() is None:
            file.save(self._state)
        nameservers = list(self._broker.nameservers)
        if self.nameserver is not None:
            await opened.enter_async_context(self.nameserver)
            nameservers.insert(0, self.nameserver.address)
            metrics = NameServerMetrics(self.nameserver)
            self._exporting.add("nameserver", metrics, serving)
        await opened.enter_async_context(self._pool)
        self._spread = TopicSpread(
            self._pool.ask, nameservers, names=self._names, is_common=self._is_common
        )
        opened.push_async_callback(self._spread.close)
        self._requests = ContainerRequests(
            self,
            self._spread,
            ContainerAccess(self._broker, self._read_users),
            trail=await self._trail(opened),
            names=self._names,
            host=self._host,
        )
        await opened.enter_async_context(self._server)
        self._exporting.add(
            "container",
            ContainerMetrics(self.supervisor, "container", lambda: self.address),
            serving,
        )
        opened.push_async_callback(self.supervisor.stop)
        specs = [self._spec(each, nameservers) for each in self._setup.brokers]
        specs += map(self._added_spec, self._state.added)
        await self.supervisor.start(specs)
        await self._start_proxy(nameservers)
        opened.push_async_callback(end_all, self._leaving())

    async def serve(self) -> None:
        """Keeps the brokers running; never returns."""
        await asyncio.get_running_loop().create_future()

    async def add(self, path: str) -> None:
        """Starts a broker by its configuration file, and remembers it.

        One of the brokers of this container that was removed is started again as it was, whatever
        else the file says of it.

        Raises:
            ConfigError: the file is wrong.
            UsageError: the broker is there already.
            ChildFailed: it could not start.
            OSError: it cannot be remembered.
        """
        config = self._setup.read_config(path).of(BrokerConfig)
        for plan in self._setup.brokers:
            if plan.entry.name == config.name and config.id == MASTER:
                await self.supervisor.add(self._spec(plan, self._spread.nameservers))
                return
        added = AddedBroker(
            config=path, name=config.name, cluster=config.cluster, id=max(config.id, MASTER)
        )
        spec = self._added_spec(added)
        await self.supervisor.add(spec)
        try:
            self._remember(replace_added(self._state, [*self._state.added, added]))
        except OSError:  # it was refused, so it must not run
            await self.supervisor.remove(spec.name)
            raise

    async def remove(self, cluster: str, name: str, number: int) -> bool:
        """Stops a broker. One that was added is forgotten; the others start with the container."""
        is_numbered = any(each.entry.name == name for each in self._setup.brokers)
        if is_numbered and cluster == self._broker.cluster and number == self._broker.id:
            return await self.supervisor.remove(name)
        for added in self._state.added:
            if (added.cluster, added.name, added.id) == (cluster, name, number):
                rest = [each for each in self._state.added if each != added]
                self._remember(replace_added(self._state, rest))
                return await self.supervisor.remove(_key(added))
        return False

    def _remember(self, state: ContainerState) -> None:
        self._setup.file.save(state)
        self._state = state

    async def _trail(self, opened: AsyncExitStack) -> AuditTrail | None:
        """What records who adds and removes brokers, if the settings want it."""
        log = audit_log(
            self._setup.loaded.of(AuditConfig), server="container", part="container",
            beside=self.root, disk=self._disk, clock=SystemClock(),
        )  # fmt: skip
        if log is None:
            return None
        await opened.enter_async_context(log)
        return AuditTrail(log, AuditedClients(user_of=lambda command: command.user or ""))

    async def _start_proxy(self, nameservers: Sequence[str]) -> None:
        if self._setup.proxy is None:
            return
        try:
            await self.supervisor.start([self._setup.proxy(nameservers)])
        except ChildFailed:
            if self._setup.needs_proxy:
                raise  # else it is tried again, and its reason is in the log

    def _leaving(self) -> list[asyncio.Task[None]]:
        """Watches the brokers that take no more messages."""
        leaving = [each for each in self._setup.brokers if each.entry.leaves]
        if leaving:
            self._spread.withdraw(each.entry.name for each in leaving)
        return [asyncio.ensure_future(self._drain(each.entry.name)) for each in leaving]

    async def _drain(self, name: str) -> None:
        """Logs what remains in a broker that leaves, and remembers when nothing does."""
        before: dict[str, int] | None = None
        while True:
            about = self.supervisor.running.get(name)
            if about is not None:
                port = addresses.split(about["address"])[1]
                try:
                    address = addresses.join(self._host, port)
                    left = await Remaining(self._pool.ask, address).counts()
                    if left != before:
                        self._drained(name, left)
                    before = left
                except (SprocketError, OSError) as error:  # the file may not be written now
                    logger.warning("%s does not say what remains in it: %s", name, error)
            await asyncio.sleep(_DRAIN_SECONDS)

    def _drained(self, name: str, left: Mapping[str, int]) -> None:
        if left:
            shown = ", ".join(f"{count} {what}" for what, count in left.items())
            logger.warning("%s takes no more messages; left in it: %s", name, shown)
        else:
            logger.warning(
                "nothing is left in %s: stop, and sprocket container resize removes it", name
            )
        entries = [
            replace(each, drained=not left) if each.name == name else each
            for each in self._state.brokers
        ]
        self._remember(replace(self._state, brokers=tuple(entries)))

    def _changed(self, name: str) -> None:
        if name not in self.supervisor.running:
            self._spread.gone(name)

    def _names(self) -> list[str]:
        """The brokers whose topics are the same."""
        if self._broker.id != MASTER:
            return []
        added = [each.name for each in self._state.added if each.id == MASTER]
        return [*(each.entry.name for each in self._setup.brokers if not each.entry.leaves), *added]

    def _is_common(self, topic: str) -> bool:
        cluster = self._broker.cluster
        return topic not in (cluster, reply_topic(cluster), *self._names())

    def _spec(self, plan: BrokerPlan, nameservers: Sequence[str]) -> ChildSpec:
        settings = {
            **self._setup.given,
            **plan.settings,
            "broker.container": addresses.join(self._host, self._server.port),
            "broker.nameservers": as_text(tuple(nameservers)),
        }
        return ChildSpec(
            plan.entry.name,
            (*self._setup.arguments, "--name", plan.entry.name),  # for whoever lists processes
            variables(self._setup.loaded, settings),
            core=plan.entry.number if self._config.pin_cpus else None,
            prepare=partial(self._share_users, plan),
        )

    def _added_spec(self, added: AddedBroker) -> ChildSpec:
        address = addresses.join(self._host, self._server.port)
        own = variables(self._setup.loaded, {"broker.container": address})
        return ChildSpec(_key(added), ("broker", "--config", added.config), own)

    def _share_users(self, plan: BrokerPlan) -> None:
        """Gives a broker that was away the users and their rights that the others have now."""
        users = self._read_users(but=plan)
        if users is not None:
            share_users(self._disk, users, plan.settings["store.path"])

    def _read_users(self, but: BrokerPlan | None = None) -> bytes | None:
        """The file of the users of a broker that runs."""
        running = self.supervisor.running
        for plan in self._setup.brokers:
            if plan is not but and plan.entry.name in running:
                return users_in(self._disk, plan.settings["store.path"])
        return None


def replace_added(state: ContainerState, added: Sequence[AddedBroker]) -> ContainerState:
    """A state with other brokers that were added."""
    return replace(state, added=tuple(added))


def _key(added: AddedBroker) -> str:
    """What an added broker is called among the processes: its name, and which of that name."""
    return added.name if added.id == MASTER else f"{added.name}#{added.id}"
