"""A broker's open store, the parts over it and their tasks, in one role.

`Broker` is the outside: it listens, and stays while what is here is opened, changed and closed. All
requests go through `dispatch`, which is replaced as a whole when the role changes.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from functools import partial

from sprocket.audit.audit_log import AuditLog
from sprocket.base.errors import SprocketError, StoreError
from sprocket.base.watermark import Watermark
from sprocket.broker.audited import audit_recorder
from sprocket.broker.dispatch import Dispatch
from sprocket.broker.logical.cleaning import PartCleaning
from sprocket.broker.logical.other_brokers import OtherBrokers
from sprocket.broker.members.group_replication import GroupReplication
from sprocket.broker.members.registration import Registration
from sprocket.broker.members.replication import Replication, copy_rules
from sprocket.broker.members.seat import Seat
from sprocket.broker.members.vip_listener import VipListener
from sprocket.broker.parts import BrokerParts
from sprocket.broker.place import Location, Ports
from sprocket.broker.request_table import RequestTable
from sprocket.broker.sending.audit_topic import AuditTopic
from sprocket.broker.settings import BrokerSettings
from sprocket.broker.tables.measures import BrokerMeasures
from sprocket.broker.work import RunningWork
from sprocket.delay.levels.levels import DelayLevels
from sprocket.election.elector import Member
from sprocket.message.topic import SCHEDULE
from sprocket.protocol.codes import MASTER
from sprocket.remoting.endpoints import EventualResponse, Response
from sprocket.remoting.pool import Pool
from sprocket.remoting.tls.settings import TlsConfig
from sprocket.replication.epoch_file import EpochFile
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
        vip: makes the second port of a master, for a count of RocketMQ's slaves.
        seat: the broker's place in its group; None if it is in none.
        tls: the settings of TLS, for replication.
        audit: writes the audit log; None if there is none.

    Attributes:
        store, parts: there once `open` has made them; they stay after `close`.
        group: the replication of a broker of a group.
        dispatch: answers requests; None while they cannot be answered.
    """

    store: Store
    parts: BrokerParts
    registration: Registration
    group: GroupReplication

    def __init__(
        self,
        settings: BrokerSettings,
        *,
        world: Ports,
        place: Location,
        pool: Pool,
        failure: asyncio.Future[None],
        vip: Callable[[Callable[[], int]], VipListener],
        seat: Seat | None = None,
        tls: TlsConfig | None = None,
        audit: AuditLog | None = None,
        measures: BrokerMeasures | None = None,
    ) -> None:
        self._audit = audit
        self._measures = measures
        self._seat = seat
        self._tls = tls
        self._settings = settings
        self._world = world
        self._place = place
        self._pool = pool
        self._vip = vip
        self._running = RunningWork(failure)
        #: Tasks that end when the role changes: those that write messages, and replication.
        self._delivering = RunningWork(failure)
        self._replicating = RunningWork(failure)
        self._is_accepting = False
        self._exit = AsyncExitStack()
        self.dispatch: Dispatch | None = None

    async def open(self, *, is_slave: bool, cut_at: int | None = None) -> None:
        """Opens the store, starts all tasks and registers at the name servers.

        Args:
            cut_at: log offset from which on the log is dropped.

        Raises:
            DirectoryInUse: another process has locked the folder.
            ConfigError: the store was made with other file sizes, or the delay levels are invalid.
            StoreError: the store or a state file cannot be opened.
            UsageError: the port for slaves is in use.
        """
        async with AsyncExitStack() as opened:
            levels = DelayLevels.parse(self._settings.store.delay_levels)
            replication = await self._open_store(opened, levels, is_slave=is_slave, cut_at=cut_at)
            place = self._place._replace(ha_address=replication.address_beside(self._place.address))
            self.parts = BrokerParts(
                self.store,
                self._settings,
                levels=levels,
                world=self._world,
                place=place,
                pool=self._pool,
                replication=replication,
                number=self._settings.config.id if self._seat is None else self._seat.number,
                measures=self._measures,
            )
            self.registration = self.parts.registration
            self._recorder = audit_recorder(
                self._audit, self.parts, self._settings, clock=self._world.clock, place=place
            )
            self._table = RequestTable(
                self.parts, self.store, self._settings, world=self._world, place=place,
                seat=self._seat, audit=self._recorder,
            )  # fmt: skip
            opened.push_async_callback(self._stop_timers)
            opened.push_async_callback(self._stop_running)
            opened.push_async_callback(self.parts.tables.filters.close)
            await self._start()
            self._exit = opened.pop_all()

    async def _open_store(
        self, opened: AsyncExitStack, levels: DelayLevels, *, is_slave: bool, cut_at: int | None
    ) -> Replication:
        """Opens the store and its replication."""
        rules, replicated, readable = copy_rules(self._settings.config), Watermark(), Watermark()
        self.store = await Store.open(
            disk=self._world.disk,
            clock=self._world.clock,
            root=self._place.root,
            config=self._settings.store,
            store_host=self._place.packed,
            tag_codes={SCHEDULE: levels.tag_code},
            safe=(readable,) if rules.least > 1 or self._seat is not None else (),
            is_copy=is_slave,
            is_member=self._seat is not None,
            cut_at=cut_at,
        )
        opened.push_async_callback(self.store.close)
        if self._seat is None:
            replication = Replication(
                self.store,
                self._settings,
                replicated=replicated,
                readable=readable,
                pool=self._pool,
                entropy=self._world.entropy,
                tls=self._tls,
                may_copy=self._may_copy,
            )
        else:
            replication = self._grouped(self._seat, replicated=replicated, readable=readable)
        return await opened.enter_async_context(replication)

    async def promote(self, epoch: int) -> None:
        """Makes a slave of a group the master of an epoch, without opening anything again.

        Raises:
            UsageError: the port for slaves is in use.
            StoreError: the epoch cannot be kept.
        """
        self._record("LEADS", epoch=epoch)
        await self._replicating.end()
        await self.group.lead(epoch)
        self.parts.copied()
        with self.store.replica.whole():
            self._prepare_delivery()
        await self._start_timers()
        self.store.replica.accept_messages()
        self.dispatch = self._table.of_master()
        self._run_delivery()
        self._run_replication()
        self.registration.move(MASTER, epoch)

    async def follow(self, master: Member, epoch: int) -> None:
        """Has a slave copy from another master of its group, whose epoch is not below this."""
        self._record("FOLLOWS", master=master.id, epoch=epoch)
        await self._replicating.end()
        self.group.follow(master, epoch)
        self._run_replication()

    async def retire(self) -> None:
        """Ends accepting messages, at a master that gives its place to another member: the log is
        complete, and slaves go on copying it."""
        self.dispatch = self._table.of_slave(was_master=True)
        await self._delivering.end()
        self.parts.settlement.write_op_records()
        self._is_accepting = False
        self.store.replica.accept_messages(False)

    def resume(self) -> None:
        """Accepts messages again after `retire`: no other member has taken the place."""
        self.store.replica.accept_messages()
        self.dispatch = self._table.of_master()
        self._run_delivery()

    def depose(self) -> None:
        """Ends answering at once, since another member is the master: what waits for copies is
        answered with an error, and held pulls without messages."""
        self.dispatch = None
        self._is_accepting = False
        self.store.replica.accept_messages(False)
        self._record("DEPOSED")  # in files only: the log is another master's now
        self.group.give_up()
        for part in (self.parts.quotas.admission, self.parts.pulls, self.parts.pop):
            part.stop()
        self.parts.lite.stop()

    def _record(self, change: str, **named: object) -> None:
        """Records a change of the role."""
        if self._recorder is not None:
            self._recorder.record_event(change, named)

    async def announced(self, outcome: EventualResponse) -> Response:
        """The reply to a request that created or changed a topic, after the topic is saved, and the
        name servers and the slaves know it."""
        response = await outcome if isinstance(outcome, Awaitable) else outcome
        await self.parts.files.topics.saved()
        await self.registration.announced()
        await self.parts.followers.have_all()
        return response

    async def save(self) -> None:
        """Saves the tables after the log is flushed to the disk. No request may change one then."""
        if self._is_accepting:
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

    def _grouped(
        self, seat: Seat, *, replicated: Watermark, readable: Watermark
    ) -> GroupReplication:
        epochs = EpochFile(self._world.disk, self._place.root)
        try:
            epochs.load(self.store.log_start, self.store.log_end)
        except OSError as error:
            raise StoreError(f"the epochs of the log cannot be read: {error}") from error
        self.group = GroupReplication(
            self.store,
            self._settings,
            replicated=replicated,
            readable=readable,
            pool=self._pool,
            entropy=self._world.entropy,
            seat=seat,
            epochs=epochs,
            tls=self._tls,
            may_copy=self._may_copy,
        )
        return self.group

    def _may_copy(self, host: str) -> bool:
        is_open = not self._settings.config.is_closed
        return is_open or (hasattr(self, "parts") and self.parts.rights.may_copy(host))

    async def close(self) -> None:
        """Ends the tasks and closes the store, after `save`."""
        await self._exit.aclose()

    # The files are loaded before anything may change a table: no save replaces one that was not
    # read. Delivery and transactions compare their positions with the log before requests come.
    async def _start(self) -> None:
        parts = self.parts
        for file in parts.files:
            file.load()
        parts.rights.open()
        await parts.files.accounts.written()
        parts.pop.opened()
        is_slave = parts.replication.is_slave
        stored = self.store.queues()
        has_batches = self.store.batches.has
        if lost := parts.tables.topics.add_missing(stored, is_copy=is_slave, is_batch=has_batches):
            logger.warning("topics with messages are made again: %s", ", ".join(lost[:_NAMED_MAX]))
        parts.tables.mappings.keep(parts.tables.topics.by_name)
        is_plain = self._settings.config.acting_master and self._seat is None
        if not is_slave:
            if is_plain:
                await self._take_over()
            self._prepare_delivery()
            await self._start_timers()
        await parts.escape.forget_passed()
        self.dispatch = self._table.of_slave() if is_slave else self._table.of_master()
        self._running.run("store", self.store.run)
        if not is_slave:
            self._run_delivery()
        self._running.run("watch over clients", parts.membership.run)
        self._running.run("notices to members", parts.membership.send_notices)
        self._running.run("leases", partial(parts.tables.lock_table.run, parts.files.locks))
        self._running.run("filters", parts.tables.filters.run)
        self._running.run("figures", parts.state.run)
        if (plain := parts.rights.plain) is not None:
            self._running.run("accounts of plain_acl.yml", plain.run)
        for name, work in parts.files.rounds(self._settings):
            self._running.run(name, work)
        self._run_replication()
        if is_plain:
            self._running.run("watch over the broker's processes", parts.acting.run)
            if is_slave and self._settings.config.remote_escape:
                self._running.run("delivery at other masters", parts.escape.run)
        await parts.registration.first()
        self._running.run("registration", parts.registration.run)

    async def _take_over(self) -> None:
        """Takes over what slaves did in this master's place, before it delivers anything."""
        await self.parts.acting.take_over(self.parts.tables.offsets)
        await self.parts.escape.take_over()
        if self.parts.tables.escaped.is_changed:
            await self.parts.files.escaped_rounds.save_at_once()

    def _prepare_delivery(self) -> None:
        """Prepares what writes messages of its own: a slave gets those from its master."""
        self.parts.delivery.start()
        self.parts.settlement.start()
        self.parts.publication.start()

    async def _start_timers(self) -> None:
        if self.parts.timers is not None:
            await self.parts.timers.start()
        await self.parts.pop.start()  # before anything is stored
        self.parts.settlement.end_elsewhere(self.parts.tables.escaped.log_offsets)

    def _run_delivery(self) -> None:
        """Runs it."""
        parts = self.parts
        self._is_accepting = True
        self._delivering.run("delivery of delayed messages", parts.delivery.run)
        if parts.timed_delivery is not None:
            self._delivering.run("delivery of timed messages", parts.timed_delivery.run)
        self._delivering.run("questions about transactions", parts.check_loop.run)
        self._delivering.run("publication of staged batches", parts.publication.run)
        self._delivering.run("return of popped messages", parts.pop.run)
        self._delivering.run("lite topics", parts.lite.run)
        if isinstance(self._recorder, AuditTopic):
            self._delivering.run("entries of the audit topic", self._recorder.run)
        cleaning = PartCleaning(
            self._settings.config.name, self.store, parts.tables.mappings,
            OtherBrokers(parts.pool, self._settings),
        )  # fmt: skip
        self._delivering.run("parts of static topics", cleaning.run)
        self._delivering.run("port for Java's slaves", self._vip(parts.strange_slaves).run)

    def _run_replication(self) -> None:
        """Sends the log to slaves, or copies a master's, and what is not in it."""
        parts = self.parts
        self._replicating.run("replication", partial(parts.replication.run, parts.copied))
        if parts.replication.is_slave:
            self._replicating.run("copy of the master's state", parts.state_copy.run)
            if parts.timer_following is not None:
                self._replicating.run("timers of the master", parts.timer_following.run)

    async def _stop_running(self) -> None:
        """Cancels all background tasks."""
        await self._running.end()
        await self._delivering.end()
        await self._replicating.end()
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
