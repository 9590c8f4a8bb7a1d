"""A broker's open store, the parts over it and their tasks, in one role.

`Broker` is the outside: it listens, and stays while what is here is opened, changed and closed. All
requests go through `dispatch`, which is replaced as a whole when the role changes, so that no
request asks for the role.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable
from contextlib import AsyncExitStack
from functools import partial

from sprocket.base.errors import SprocketError
from sprocket.base.watermark import Watermark
from sprocket.broker.dispatch import Dispatch
from sprocket.broker.members.registration import Registration
from sprocket.broker.members.replication import Replication, copy_rules
from sprocket.broker.parts import BrokerParts, Location, Ports
from sprocket.broker.replica_config import SLAVE
from sprocket.broker.request_table import RequestTable
from sprocket.broker.settings import BrokerSettings
from sprocket.broker.tables.files import Work
from sprocket.delay.levels.levels import DelayLevels
from sprocket.message.topic import SCHEDULE
from sprocket.remoting.endpoints import EventualResponse, Response
from sprocket.remoting.pool import Pool
from sprocket.store.store import Store

logger = logging.getLogger(__name__)

#: How long a stop waits for the log to be on the disk, s.
_FLUSH_SECONDS = 5.0
#: Topics that one log line names at most.
_NAMED_MAX = 20


class OpenBroker:
    """What of a broker is open. `open` it once, then `save` and `close` it.

    Args:
        pool: connections to name servers and other brokers.
        failure: gets the error with which a background task ends.

    Attributes:
        store, parts: there once `open` has made them; they stay after `close`.
        dispatch: answers requests; None while they cannot be answered.
    """

    store: Store
    parts: BrokerParts
    registration: Registration

    def __init__(
        self,
        settings: BrokerSettings,
        *,
        world: Ports,
        place: Location,
        pool: Pool,
        failure: asyncio.Future[None],
    ) -> None:
        self._settings = settings
        self._world = world
        self._place = place
        self._pool = pool
        self._failure = failure
        self._running: list[asyncio.Task[None]] = []
        self._exit = AsyncExitStack()
        self.dispatch: Dispatch | None = None

    async def open(self) -> None:
        """Opens the store, starts all tasks and registers at the name servers.

        Raises:
            DirectoryInUse: another process has locked the folder.
            ConfigError: the store was made with other file sizes, or the delay levels are invalid.
            StoreError: the store or a state file cannot be opened.
            UsageError: the port for slaves is in use.
        """
        async with AsyncExitStack() as opened:
            levels = DelayLevels.parse(self._settings.store.delay_levels)
            replication = await self._open_store(opened, levels)
            place = self._place._replace(
                ha_address=replication.address_beside(self._place.address)
            )
            self.parts = BrokerParts(
                self.store,
                self._settings,
                levels=levels,
                world=self._world,
                place=place,
                pool=self._pool,
                replication=replication,
            )
            self.registration = self.parts.registration
            table = RequestTable(
                self.parts, self.store, self._settings, world=self._world, place=place
            )
            opened.push_async_callback(self._stop_timers)
            opened.push_async_callback(self._stop_running)
            opened.push_async_callback(self.parts.tables.filters.close)
            await self._start(table.dispatch())
            self._exit = opened.pop_all()

    async def _open_store(self, opened: AsyncExitStack, levels: DelayLevels) -> Replication:
        """Opens the store and its replication."""
        rules, replicated, readable = copy_rules(self._settings.config), Watermark(), Watermark()
        self.store = await Store.open(
            disk=self._world.disk,
            clock=self._world.clock,
            root=self._place.root,
            config=self._settings.store,
            store_host=self._place.packed,
            tag_codes={SCHEDULE: levels.tag_code},
            safe=(readable,) if rules.least > 1 else (),
            is_copy=self._settings.config.role == SLAVE,
        )
        opened.push_async_callback(self.store.close)
        replication = Replication(
            self.store,
            self._settings,
            replicated=replicated,
            readable=readable,
            pool=self._pool,
            entropy=self._world.entropy,
        )
        return await opened.enter_async_context(replication)

    async def announced(self, outcome: EventualResponse) -> Response:
        """The reply to a request that created or changed a topic, after the topic is saved and the
        name servers know it."""
        await self.parts.files.topics.saved()
        await self.registration.announced()
        return await outcome if isinstance(outcome, Awaitable) else outcome

    async def save(self) -> None:
        """Saves the tables after the log is flushed to the disk. No request may change one then."""
        if not self.parts.replication.is_slave:
            self.parts.settlement.write_op_records()
        try:
            async with asyncio.timeout(_FLUSH_SECONDS):
                await self.store.sync()
            for file in self.parts.files:
                await file.idle()
                file.save()
        except (SprocketError, TimeoutError) as error:
            logger.error("not everything could be saved: %s", error)
        finally:
            for file in self.parts.files:
                file.close()

    async def close(self) -> None:
        """Ends the tasks and closes the store, after `save`."""
        await self._exit.aclose()

    # The order matters. The files are loaded before anything may change a table, so that no save
    # replaces a file that was not read. Delivery and transactions compare their positions with
    # the log before the first request. The broker registers last, once it can serve.
    async def _start(self, dispatch: Dispatch) -> None:
        parts = self.parts
        for file in parts.files:
            file.load()
        if lost := parts.tables.topics.add_missing(self.store.queues()):
            logger.warning("topics with messages are made again: %s", ", ".join(lost[:_NAMED_MAX]))
        if not parts.replication.is_slave:
            await self._start_delivery()
        self.dispatch = dispatch
        self._run("store", self.store.run)
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

    async def _start_delivery(self) -> None:
        """Prepares what writes messages of its own: a slave gets those from its master."""
        parts = self.parts
        parts.delivery.start()
        parts.settlement.start()
        if parts.timers is not None:
            await parts.timers.start()

    def _run_delivery(self) -> None:
        """Runs it."""
        parts = self.parts
        self._run("delivery of delayed messages", parts.delivery.run)
        if parts.timed_delivery is not None:
            self._run("delivery of timed messages", parts.timed_delivery.run)
        self._run("questions about transactions", parts.check_loop.run)

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
        for file in self.parts.files:
            await file.idle()

    async def _stop_timers(self) -> None:
        """Stops the timers and saves their state after the last delivery."""
        timers = self.parts.timers
        if timers is not None:
            was_in_use = timers.is_in_use
            await timers.stop()
            if was_in_use:
                await self.parts.files.timer_counts.idle()
                self.parts.files.timer_counts.save()
