"""The broker: how it starts, how it stops, and its background tasks.

Each request goes through `dispatch`, which calls the endpoint of the request code. `send` and
`retries` store messages through `ingress`; `pull` reads them for consumers, and `pop` gives them
out one by one. `positions` and `offsets` keep the consumers' offsets, `membership` and `clients`
the connected clients, `locks` the leases of ordered consumers. `operate` answers the requests of
operators, `registration` registers the broker at the name servers, `delay` delivers messages that
are due. `tables` holds the broker's state and `files` writes it to state files. `parts` builds all
of these, `request_table` the endpoints.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Sequence
from contextlib import AsyncExitStack
from functools import partial
from types import TracebackType
from typing import Self

from sprocket.base.config import check
from sprocket.base.deadline import Deadline
from sprocket.base.errors import ConfigError, ServiceNotAvailable, SprocketError, UsageError
from sprocket.base.ports import Clock, Disk, Entropy
from sprocket.base.watermark import Watermark
from sprocket.broker.config import BrokerConfig
from sprocket.broker.dispatch import Dispatch
from sprocket.broker.members.replication import Replication, copy_rules
from sprocket.broker.parts import BrokerParts, Location, Ports
from sprocket.broker.replica_config import SLAVE
from sprocket.broker.request_table import RequestTable
from sprocket.broker.settings import BrokerSettings
from sprocket.broker.tables.files import Work
from sprocket.delay.levels.levels import DelayLevels
from sprocket.message.hosts import pack
from sprocket.message.topic import SCHEDULE
from sprocket.protocol.command import Command, Reply
from sprocket.remoting import address as addresses
from sprocket.remoting.endpoints import EventualResponse, Response
from sprocket.remoting.limits import ConnectionLimits
from sprocket.remoting.pool import Pool
from sprocket.remoting.server import Server
from sprocket.remoting.transport import Peer
from sprocket.store.config import StoreConfig
from sprocket.store.store import Store

logger = logging.getLogger(__name__)

#: How long a stop waits for the log to be on the disk, s.
_FLUSH_SECONDS = 5.0
#: Topics that one log line names at most.
_NAMED_MAX = 20


class Broker:
    """A broker. Use it with `async with`: inside, it serves and is registered.

    Args:
        config: settings of the broker.
        store: settings of its store.
        root: folder of its store and state files.
        disk, clock, entropy: the ports to the machine.
        memory_bytes: the memory of the machine.

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
    ) -> None:
        check(config)
        check(store)
        self._settings = BrokerSettings(config, store)
        self._root = root
        self._world = Ports(disk, clock, entropy, memory_bytes)
        self._server = Server(
            self._answer_all,
            host=config.host,
            port=config.port,
            limits=ConnectionLimits(
                frame_bytes_max=config.frame_bytes_max,
                unfinished_bytes_max=config.unfinished_bytes_max,
            ),
        )
        self._pool = Pool(entropy=entropy)
        self._dispatch: Dispatch | None = None
        self._running: list[asyncio.Task[None]] = []
        self._exit = AsyncExitStack()

    @property
    def address(self) -> str:
        """`host:port` at which clients reach the broker."""
        host = self._settings.config.advertised_host or self._settings.config.host
        return addresses.join(host, self._server.port)

    async def __aenter__(self) -> Self:
        """Listens, opens the store and registers at the name servers.

        Raises:
            UsageError: the address is in use, or does not belong to this machine.
            DirectoryInUse: another process has locked the folder.
            ConfigError: the store was made with other file sizes, or the delay levels are invalid.
            StoreError: the store or a state file cannot be opened.
        """
        self._failure: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._failure.add_done_callback(_retrieve)
        async with AsyncExitStack() as opened:
            await opened.enter_async_context(self._server)
            await opened.enter_async_context(self._pool)
            place = await self._place()
            levels = DelayLevels.parse(self._settings.store.delay_levels)
            rules, replicated, readable = (
                copy_rules(self._settings.config),
                Watermark(),
                Watermark(),
            )
            self._store = await Store.open(
                disk=self._world.disk,
                clock=self._world.clock,
                root=self._root,
                config=self._settings.store,
                store_host=place.packed,
                tag_codes={SCHEDULE: levels.tag_code},
                safe=(readable,) if rules.least > 1 else (),
                is_copy=self._settings.config.role == SLAVE,
            )
            opened.push_async_callback(self._store.close)
            replication = Replication(
                self._store,
                self._settings,
                replicated=replicated,
                readable=readable,
                pool=self._pool,
                entropy=self._world.entropy,
            )
            await opened.enter_async_context(replication)
            place = place._replace(ha_address=replication.address_beside(self.address))
            self._parts = BrokerParts(
                self._store,
                self._settings,
                levels=levels,
                world=self._world,
                place=place,
                pool=self._pool,
                replication=replication,
            )
            table = RequestTable(
                self._parts, self._store, self._settings, world=self._world, place=place
            )
            opened.push_async_callback(self._stop_timers)
            opened.push_async_callback(self._stop_running)
            opened.push_async_callback(self._parts.tables.filters.close)
            await self._start(table.dispatch())
            self._exit = opened.pop_all()
        logger.info("broker %s serves at %s", self._settings.config.name, self.address)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Unregisters, answers the requests in flight, and saves everything to the disk."""
        async with self._exit:
            await self._parts.registration.leave()
            self._parts.pulls.stop()
            self._parts.pop.stop()
            drain_ms = self._settings.config.drain_ms
            await self._server.drain(Deadline.after_ms(drain_ms))
            await self._save()

    async def serve(self) -> None:
        """Waits until the broker fails; never returns otherwise.

        Raises:
            StoreError: the disk failed; the caller leaves the broker.
        """
        await asyncio.shield(self._failure)

    async def _place(self) -> Location:
        return Location(self._root, self.address, "", await _packed(self.address))

    # The order matters. The files are loaded before anything may change a table, so that no save
    # replaces a file that was not read. Delivery and transactions compare their positions with
    # the log before the first request. The broker registers last, once it can serve.
    async def _start(self, dispatch: Dispatch) -> None:
        parts = self._parts
        for file in parts.files:
            file.load()
        if lost := parts.tables.topics.add_missing(self._store.queues()):
            logger.warning("topics with messages are made again: %s", ", ".join(lost[:_NAMED_MAX]))
        if not parts.replication.is_slave:
            parts.delivery.start()
            parts.settlement.start()
            if parts.timers is not None:
                await parts.timers.start()
            await parts.pop.start()
        self._dispatch = dispatch
        self._run("store", self._store.run)
        if not parts.replication.is_slave:
            self._run_delivery()
        self._run("watch over clients", parts.membership.run)
        self._run("notices to members", parts.membership.send_notices)
        self._run("leases", partial(parts.tables.lock_table.run, parts.files.locks))
        self._run("filters", parts.tables.filters.run)
        self._run("figures", parts.state.run)
        for name, work in parts.files.rounds(self._settings):
            self._run(name, work)
        self._run("replication", partial(parts.replication.run, parts.copied))
        await parts.registration.first()
        self._run("registration", parts.registration.run)

    def _run_delivery(self) -> None:
        """Runs what writes messages of its own: a slave gets those from its master."""
        parts = self._parts
        self._run("delivery of delayed messages", parts.delivery.run)
        if parts.timed_delivery is not None:
            self._run("delivery of timed messages", parts.timed_delivery.run)
        self._run("questions about transactions", parts.check_loop.run)
        self._run("return of popped messages", parts.pop.run)

    def _run(self, name: str, work: Work) -> None:
        self._running.append(asyncio.create_task(self._watched(name, work), name=name))

    async def _watched(self, name: str, work: Work) -> None:
        try:
            await work()
        except Exception as error:  # root of a task
            logger.critical("the broker's %s ended", name, exc_info=error)
            if not self._failure.done():
                self._failure.set_exception(error)

    async def _stop_running(self) -> None:
        """Cancels all background tasks."""
        for task in self._running:
            task.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)
        for file in self._parts.files:
            await file.idle()
        self._failure.cancel()

    async def _stop_timers(self) -> None:
        """Stops the timers and saves their state after the last delivery."""
        timers = self._parts.timers
        if timers is not None:
            was_in_use = timers.is_in_use
            await timers.stop()
            if was_in_use:
                await self._parts.files.timer_counts.idle()
                self._parts.files.timer_counts.save()

    async def _save(self) -> None:
        """Saves the tables after the log is flushed to the disk."""
        if not self._parts.replication.is_slave:
            self._parts.settlement.write_op_records()
        try:
            async with asyncio.timeout(_FLUSH_SECONDS):
                await self._store.sync()
            for file in self._parts.files:
                await file.idle()
                file.save()
        except (SprocketError, TimeoutError) as error:
            logger.error("not everything could be saved: %s", error)
        finally:
            for file in self._parts.files:
                file.close()

    # A client that sent to a new topic asks a name server for its route next. So replies to
    # requests that changed topics wait until the name servers know; all others go out at once.
    def _answer_all(self, commands: Sequence[Command], peer: Peer) -> Sequence[EventualResponse]:
        if self._dispatch is None:
            error = ServiceNotAvailable("the broker is starting")
            return [Reply(code=error.code, remark=error.remark)] * len(commands)
        registration = self._parts.registration
        before = registration.changes
        outcomes = self._dispatch.answer_first(commands, peer)
        if registration.changes == before:
            return outcomes
        return [None if each is None else self._announced(each) for each in outcomes]

    async def _announced(self, outcome: EventualResponse) -> Response:
        """The reply to a request that created or changed a topic, after the topic is saved and the
        name servers know it."""
        await self._parts.files.topics.saved()
        await self._parts.registration.announced()
        return await outcome if isinstance(outcome, Awaitable) else outcome


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
