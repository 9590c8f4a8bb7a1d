"""Builds the parts of a broker and gives each the others that it needs; nothing runs here.

`request_table` builds the endpoints of all requests over them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from sprocket.base.ports import Clock, Entropy
from sprocket.broker.dispatch import Quotas
from sprocket.broker.escape_parts import escape
from sprocket.broker.lite.parts import LiteParts
from sprocket.broker.members.acting import ActingMaster
from sprocket.broker.members.copied_tables import CopiedTables
from sprocket.broker.members.followers import Followers
from sprocket.broker.members.membership import MembershipRequests
from sprocket.broker.members.proxied_clients import ProxiedClientRequests
from sprocket.broker.members.registration import Registration
from sprocket.broker.members.replication import Replication
from sprocket.broker.members.state_copy import StateCopy
from sprocket.broker.operate.figures import BrokerFigures
from sprocket.broker.place import Location, Ports
from sprocket.broker.pop.parts import PopParts
from sprocket.broker.reading.pull import PullRequests
from sprocket.broker.reading.read_place import ReadPlaces
from sprocket.broker.sending.acknowledgement import Acknowledgement
from sprocket.broker.sending.destination import DelayRules
from sprocket.broker.sending.ingress import Ingress
from sprocket.broker.sending.stamp import Stamp
from sprocket.broker.sending.timers import TimerFigures
from sprocket.broker.sending.transactions import (
    LiveProducers,
    ParkingIngress,
    TransactionCounts,
    check_rules,
)
from sprocket.broker.settings import BrokerSettings
from sprocket.broker.staged_parts import staged_parts
from sprocket.broker.tables.access import ReadAccess
from sprocket.broker.tables.changes import ACCOUNTS, FILTERS, GROUPS, MODES, TOPICS
from sprocket.broker.tables.files import StateFiles
from sprocket.broker.tables.measures import BrokerMeasures
from sprocket.broker.tables.rights import Rights
from sprocket.broker.tables.state import StateFile
from sprocket.broker.tables.tables import Tables
from sprocket.delay.levels.deliver import LevelDelivery
from sprocket.delay.levels.levels import DelayLevels
from sprocket.delay.timers.following import TimerFollowing
from sprocket.delay.timers.shape import shapes
from sprocket.delay.timers.timed_delivery import TimedDelivery
from sprocket.delay.timers.timers import Timers
from sprocket.filterserver.uploads import Key, key_text
from sprocket.message.ids import UniqueIds
from sprocket.message.topic_attributes import has_batch_queues
from sprocket.protocol.bodies import TimerState
from sprocket.quotas.admission import Admission
from sprocket.remoting.pool import Pool
from sprocket.store.store import Store
from sprocket.transaction.check_loop import CheckLoop
from sprocket.transaction.settle import Settlement

_PROCESSES = 1 << 16


class BrokerParts:
    """All parts between the connections and the store.

    Args:
        store: the opened store.
        pool: connections to the name servers.
        replication: how the log is copied, which needs nothing of these parts.
        number: under which the broker registers at first.
        measures: the histograms that are kept; None for none.
    """

    # The lines are in the order of dependencies: ingress needs the timers, settlement and delivery
    # need ingress, the figures need all. The tables call back only after all parts exist.
    def __init__(
        self,
        store: Store,
        settings: BrokerSettings,
        *,
        levels: DelayLevels,
        world: Ports,
        place: Location,
        pool: Pool,
        replication: Replication,
        number: int,
        measures: BrokerMeasures | None = None,
    ) -> None:
        clock, host = world.clock, place.packed
        self.replication, self.pool, self.measures = replication, pool, measures
        self._store, self._queue_count = store, 0
        self.followers = _followers(settings, replication, world.entropy)
        tables = self.tables = self._tables(settings, clock, levels)
        self.rights = Rights(tables.accounts, settings, world.disk)
        self.files = StateFiles(tables, store, world.disk, place.root)
        self.timers = self._timers(store, settings, world=world, root=place.root)
        self.registration = self._registration(pool, settings, place, number)
        self.acting = self._acting(pool, settings, place)
        self.delay_rules = DelayRules.of(settings, levels)
        self.ingress = Ingress(
            store,
            rules=self.delay_rules,
            settings=settings,
            topics=tables.topics,
            volumes=tables.volumes,
            clock=clock,
            ledger=tables.ledger,
            timers=self.timers,
            check_role=replication.role_check(),
            measures=measures,
        )
        self.settlement = self._settlement(store, clock=clock, host=host)
        self.check_loop = self._check_loop(self.settlement, settings, clock=clock, host=host)
        self.delivery = self._delivery(store, levels, clock=clock)
        self.timed_delivery = self._timed_delivery(store, settings, clock=clock)
        self.escape = escape(
            store, pool, settings, world, tables=tables, levels=levels, delivery=self.delivery,
            timers=self.timers, rules=self.check_loop.rules, acting=self.acting,
            replication=replication,
        )  # fmt: skip
        self.membership = self._membership(settings, clock)
        self.proxied = ProxiedClientRequests(self.membership, clock)
        self.pulls = self._pulls(store, settings, world.memory_bytes)
        self.quotas = self._quotas(settings)
        self.state = self._state(store, clock=clock)
        self.timer_following = self._timer_following(settings)
        self.state_copy = self._state_copy(store, pool, number)
        self.stamp = Stamp(settings.config, ids=_ids(world.entropy, place))
        staged = staged_parts(store, self.ingress, self.stamp, tables, settings, world, host)
        self.placing, self.publication = staged
        self.acknowledgement = Acknowledgement(store, settings, host, replication)
        self.pop = self._pop(store, settings, world=world, host=host)
        self.lite = LiteParts(
            store, tables, self.pop, self.acknowledgement, settings=settings, clock=clock
        )

    def copied(self) -> None:
        """Makes the topics known whose first messages were copied from a master."""
        count = self._store.replica.queue_count
        if count != self._queue_count:
            self._queue_count = count
            if self.tables.topics.add_missing(
                self._store.queues(), is_copy=True, is_batch=self._store.batches.has
            ):
                self.state_copy.copy_soon()

    def strange_slaves(self) -> int:
        """How many slaves copy the log and do not ask for changes of the tables."""
        sender = self.replication.sender
        return 0 if sender is None else len(sender.links) - self.followers.count

    def _registration(
        self, pool: Pool, settings: BrokerSettings, place: Location, number: int
    ) -> Registration:
        return Registration(
            pool,
            self.tables.topics,
            self.tables.mappings,
            settings=settings,
            address=place.address,
            ha_address=place.ha_address,
            on_master=self.replication.learn_master,
            number=number,
        )

    def _quotas(self, settings: BrokerSettings) -> Quotas:
        """What the senders of requests may take."""
        admission = Admission(
            lambda: settings.config.quotas,
            clock=asyncio.get_running_loop().time,
            client_of=self.tables.clients.id_of,
            user_of=lambda command: command.user or "",
            waiting_max=lambda: settings.config.held_pulls_max,
        )
        return Quotas(admission, settings)

    def _pulls(self, store: Store, settings: BrokerSettings, memory_bytes: int) -> PullRequests:
        """Endpoints of pulls."""
        tables = self.tables
        access = ReadAccess(
            tables.topics,
            tables.groups,
            clients=tables.clients,
            settings=settings,
            filters=tables.filters,
        )
        places = ReadPlaces(
            store, settings, replication=self.replication, memory_bytes=memory_bytes
        )
        return PullRequests(
            store,
            access,
            offsets=tables.offsets,
            settings=settings,
            volumes=tables.volumes,
            places=places,
        )

    def _tables(self, settings: BrokerSettings, clock: Clock, levels: DelayLevels) -> Tables:
        """All tables, whose changes are saved in their files."""
        return Tables(
            settings,
            clock,
            levels=levels,
            on_topic=self._topic_changed,
            on_group=self._noted(GROUPS, lambda files: files.groups),
            on_filters=self._filters_changed,
            on_mode=self._noted(MODES, lambda files: files.request_modes),
            on_mapping=self._mapping_changed,
            on_account=self._noted(ACCOUNTS, lambda files: files.accounts),
            journal=self.followers.journal,
            measures=self.measures,
        )

    def _timer_following(self, settings: BrokerSettings) -> TimerFollowing | None:
        if self.timers is None:
            return None
        return TimerFollowing(self.timers, lambda: settings.config.delay_save_ms)

    def _pop(
        self, store: Store, settings: BrokerSettings, *, world: Ports, host: bytes
    ) -> PopParts:
        """Pop consumption."""
        return PopParts(
            store, self.tables, self.ingress, self.acknowledgement, timers=self.timers,
            settings=settings, clock=world.clock, entropy=world.entropy, host=host,
            save_orders=self.files.order_rounds.save_at_once,
        )  # fmt: skip

    def _timers(
        self, store: Store, settings: BrokerSettings, *, world: Ports, root: str
    ) -> Timers | None:
        """The timers of messages with a delivery time of their own; None if they are off."""
        if not settings.store.timers:
            return None
        return Timers(
            store,
            world.disk,
            root,
            shape=shapes(lambda: settings.store),
            clock=world.clock,
            counts=self.tables.timer_counts,
            elsewhere=self.tables.escaped.log_offsets,
        )

    def _delivery(self, store: Store, levels: DelayLevels, *, clock: Clock) -> LevelDelivery:
        """Delivery of messages with a delay level."""
        accept, progress = self.ingress.accept_due, self.tables.progress
        return LevelDelivery(
            store, accept, levels=levels, progress=progress, clock=clock,
            elsewhere=self.tables.escaped.log_offsets,
        )  # fmt: skip

    def _timed_delivery(
        self, store: Store, settings: BrokerSettings, *, clock: Clock
    ) -> TimedDelivery | None:
        """Delivery of messages with a delivery time of their own; None if timers are off."""
        if self.timers is None:
            return None
        return TimedDelivery(
            self.timers,
            store,
            self.ingress.accept_due,
            clock=clock,
            save_ms=lambda: settings.store.timer_flush_interval_ms,
        )

    def _membership(self, settings: BrokerSettings, clock: Clock) -> MembershipRequests:
        """Endpoints of heartbeats."""
        tables = self.tables
        return MembershipRequests(
            tables.clients,
            topics=tables.topics,
            groups=tables.groups,
            settings=settings,
            clock=clock,
        )

    def _state_copy(self, store: Store, pool: Pool, number: int) -> StateCopy:
        """What a slave copies besides the log."""
        return StateCopy(
            pool,
            store,
            number=number,
            master=self.replication.master,
            copied=CopiedTables(self.tables, self.files, store),
            leases=self.tables.lock_table,
            on_timers=self._timers_are_at,
        )

    def _timers_are_at(self, state: TimerState) -> None:
        if self.timer_following is not None:
            self.timer_following.learn(state.slot_ms, state.delivered_from, state.queue_then)

    def _acting(self, pool: Pool, settings: BrokerSettings, place: Location) -> ActingMaster:
        """What a broker knows of the other processes of its name."""
        return ActingMaster(
            pool,
            settings,
            address=place.address,
            ha_address=place.ha_address,
            master=self.replication.master,
            log_end=self._store.log_end,
            is_slave=lambda: self.replication.is_slave,
            register=self.registration.register_all,
            leases=self.tables.lock_table,
        )

    def _state(self, store: Store, *, clock: Clock) -> BrokerFigures:
        """Figures that the broker reports about itself."""
        timers = None
        if self.timers is not None and self.timed_delivery is not None:
            timers = TimerFigures(self.timers, self.timed_delivery, clock)
        return BrokerFigures(
            store,
            self.ingress,
            pulls=self.pulls,
            volumes=self.tables.volumes,
            clock=clock,
            timers=timers,
            transactions=TransactionCounts(self.tables.ledger, self.settlement, self.check_loop),
            of_group=self.replication.figures,
            of_quotas=self.quotas.admission.figures,
        )

    def _settlement(self, store: Store, *, clock: Clock, host: bytes) -> Settlement:
        """Commit and rollback of transactions."""
        tables = self.tables
        return Settlement(
            store,
            ParkingIngress(self.ingress, tables.topics),
            ledger=tables.ledger,
            offsets=tables.offsets,
            clock=clock,
            host=host,
        )

    def _check_loop(
        self, settlement: Settlement, settings: BrokerSettings, *, clock: Clock, host: bytes
    ) -> CheckLoop:
        """The checks that ask producers how an undecided transaction ended."""
        tables = self.tables
        return CheckLoop(
            settlement,
            tables.ledger,
            producers=LiveProducers(tables.clients, broker_name=settings.config.name, host=host),
            rules=check_rules(settings),
            clock=clock,
        )

    def _topic_changed(self, name: str) -> None:
        topic = self.tables.topics.get(name)
        if topic is None and self.measures is not None:
            self.measures.forget(name)
        is_batch = topic is not None and has_batch_queues(topic.attributes)
        self._store.batches.set_kind(name, is_batch=is_batch)
        self.files.topics.changed()
        self.pop.end_held(name)  # they look again, at other queues or with other permissions
        self.registration.changed(name)
        self.followers.journal.record(TOPICS, name)

    def _noted(self, kind: str, file: Callable[[StateFiles], StateFile]) -> Callable[[str], None]:
        """What a change of a table does: its file is saved, and slaves get what has changed."""

        def changed(name: str) -> None:
            file(self.files).changed()
            self.followers.journal.record(kind, name)

        return changed

    def _mapping_changed(self, topic: str) -> None:
        self.files.mappings.changed()
        self.registration.changed(topic)
        self.followers.journal.record(TOPICS, topic)

    def _filters_changed(self, key: Key) -> None:
        self.files.filters.changed()
        self.followers.journal.record(FILTERS, key_text(key))


def _followers(settings: BrokerSettings, replication: Replication, entropy: Entropy) -> Followers:
    return Followers(
        lambda: entropy.token(8).hex(),
        is_known=replication.is_known,
        timeout_ms=lambda: settings.config.slave_timeout_ms if replication.is_waiting else 0,
    )


def _ids(entropy: Entropy, place: Location) -> UniqueIds:
    return UniqueIds(
        address=place.packed[:-4], process=entropy.below(_PROCESSES), token=entropy.token(4)
    )
