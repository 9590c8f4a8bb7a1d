"""Builds the endpoints of all requests that a broker answers, over its parts."""

from __future__ import annotations

from functools import partial

from sprocket.audit.recorder import AuditRecorder
from sprocket.broker.audited import audit_trail
from sprocket.broker.config import BrokerConfig
from sprocket.broker.dispatch import Dispatch, Endpoints, RunEndpoints
from sprocket.broker.live_parts import change_parts
from sprocket.broker.logical.requests import around
from sprocket.broker.members.seat import Seat
from sprocket.broker.operate.accounts import AccountEndpoints
from sprocket.broker.operate.connections import ConnectionRequests
from sprocket.broker.operate.elections import ElectionRequests
from sprocket.broker.operate.entries import EntryRequests
from sprocket.broker.operate.figures import FigureRequests
from sprocket.broker.operate.groups import GroupRequests
from sprocket.broker.operate.plain_accounts import PlainAccountRequests
from sprocket.broker.operate.progress import ProgressRequests
from sprocket.broker.operate.queues import TopicQueueOffsets
from sprocket.broker.operate.replicas import ReplicaRequests
from sprocket.broker.operate.resets import ResetRequests
from sprocket.broker.operate.settings import SettingRequests
from sprocket.broker.operate.state_changes import StateRequests
from sprocket.broker.operate.topics import TopicRequests
from sprocket.broker.operate.volumes import VolumeRequests
from sprocket.broker.parts import BrokerParts
from sprocket.broker.place import Location, Ports
from sprocket.broker.pop.modes import RequestModeRequests
from sprocket.broker.reading.positions import OffsetRequests
from sprocket.broker.reading.query import QueryRequests
from sprocket.broker.sending.batch_reader import BatchReader
from sprocket.broker.sending.group_rules import GroupRules
from sprocket.broker.sending.intake import Placing, SendReader
from sprocket.broker.sending.kernel import KernelSends
from sprocket.broker.sending.replies import Replies
from sprocket.broker.sending.retries import SendBacks
from sprocket.broker.sending.run_reader import RunReader
from sprocket.broker.sending.send import Sends
from sprocket.broker.sending.staged import StagedRequests
from sprocket.broker.sending.timers import TimerRequests
from sprocket.broker.sending.transactions import TransactionRequests
from sprocket.broker.settings import BrokerSettings
from sprocket.broker.slave_requests import at_slave
from sprocket.broker.tables.changes import TOPICS
from sprocket.broker.tables.locks import LockRequests
from sprocket.broker.tables.state import once_saved
from sprocket.store.config import StoreConfig
from sprocket.store.store import Store


class RequestTable:
    """The endpoints of a broker, by who asks: producers and readers, consumers, operators.

    Args:
        parts: what the endpoints work on.
        store: the opened store.
        seat: the broker's place in its group; None if it is in none.
        audit: records who changes something; None if nothing does.
    """

    def __init__(
        self,
        parts: BrokerParts,
        store: Store,
        settings: BrokerSettings,
        *,
        world: Ports,
        place: Location,
        seat: Seat | None = None,
        audit: AuditRecorder | None = None,
    ) -> None:
        self._parts = parts
        self._trail = None if audit is None else audit_trail(audit, parts.tables)
        self._seat = seat
        self._tables = parts.tables
        self._check = parts.rights.check
        self._store = store
        self._settings = settings
        self._clock, self._entropy = world.clock, world.entropy
        self._address = place.address
        self._users = AccountEndpoints(
            parts.tables.accounts, parts.rights, parts.pool,
            lambda: parts.replication.master.address,
        )  # fmt: skip
        messages, self._runs, reader = self._messages(parts.placing)
        self._kernel = KernelSends(
            parts.placing, parts.stamp, parts.ingress, parts.acknowledgement,
            store_host=place.packed, is_wanted=settings.config.kernel,
        )  # fmt: skip
        self._table = {**messages, **self._consumers(), **self._operators()}
        self._table |= around(
            dict(self._table), self._tables, settings, pool=parts.pool, reader=reader,
            ingress=parts.ingress, acknowledgement=parts.acknowledgement, rules=parts.delay_rules,
            clock=world.clock,
        )  # fmt: skip
        if seat is not None:
            self._table |= seat.endpoints

    def of_master(self) -> Dispatch:
        """What calls the endpoint of each request at a master."""
        refusals = self._parts.acknowledgement.refusals()
        return Dispatch(
            self._table,
            refusals=refusals,
            run_endpoints=self._runs,
            check=self._check,
            trail=self._trail,
            quotas=self._parts.quotas,
            kernel=self._kernel.take,
        )

    def of_slave(self, *, was_master: bool = False) -> Dispatch:
        """The same at a slave; or at a master that gives its place to another one, which may still
        be read."""
        refusals = self._parts.acknowledgement.refusals()
        acting = self._parts.acting
        table = at_slave(
            {**self._table, **self._users.of_slave()},
            self._settings,
            is_acting=lambda: was_master or acting.is_acting,
        )
        return Dispatch(
            table,
            refusals=refusals,
            check=self._check,
            trail=self._trail,
            quotas=self._parts.quotas,
        )

    def _messages(self, placing: Placing) -> tuple[Endpoints, RunEndpoints, SendReader]:
        """Endpoints that store and read messages, those for sends that arrive together, and what
        reads sends."""
        parts, tables = self._parts, self._tables
        rules = GroupRules(
            tables.topics,
            tables.groups,
            locks=tables.locks,
            settings=self._settings,
            entropy=self._entropy,
        )
        reader = SendReader(
            placing,
            rules=rules,
            stamp=parts.stamp,
            clock=self._clock,
            settings=self._settings,
        )
        runs = RunReader(placing, parts.stamp, parts.delay_rules, self._clock)
        batches = BatchReader(placing, parts.stamp, self._settings)
        sends = Sends(reader, runs, batches, parts.ingress, parts.acknowledgement)
        send_backs = SendBacks(
            self._store, parts.ingress, parts.acknowledgement, rules=rules, volumes=tables.volumes,
            rights=parts.rights,
        )  # fmt: skip
        replies = Replies(
            tables.clients,
            placing,
            parts.ingress,
            parts.acknowledgement,
            stamp=parts.stamp,
            clock=self._clock,
            address=self._address,
        )
        transactions = TransactionRequests(
            self._store, parts.acknowledgement, settlement=parts.settlement, rights=parts.rights,
            measures=parts.measures,
        )  # fmt: skip
        staged = StagedRequests(
            parts.publication, self._store, parts.acknowledgement, rights=parts.rights,
            clock=self._clock,
        )  # fmt: skip
        endpoints = {
            **sends.endpoints(),
            **replies.endpoints(),
            **send_backs.endpoints(),
            **parts.pulls.endpoints(),
            **parts.pop.endpoints(),
            **parts.lite.endpoints(),
            **QueryRequests(self._store).endpoints(),
            **transactions.endpoints(),
            **staged.endpoints(),
            **TimerRequests(
                parts.timers,
                parts.ingress,
                parts.acknowledgement,
                topics=tables.topics,
                settings=self._settings,
                clock=self._clock,
            ).endpoints(),
        }
        return endpoints, {**sends.runs(), **parts.pop.runs()}, reader

    def _consumers(self) -> Endpoints:
        """Endpoints for heartbeats, filters, consumer offsets and queue locks."""
        parts, tables = self._parts, self._tables
        positions = OffsetRequests(
            self._store,
            tables.offsets,
            topics=tables.topics,
            groups=tables.groups,
            clients=tables.clients,
            is_slave=lambda: parts.replication.is_slave,
            settling=parts.replication.settling,
        )
        modes = RequestModeRequests(
            tables.request_modes, parts.pool, topics=tables.topics, groups=tables.groups,
            clients=tables.clients, settings=self._settings,
        )  # fmt: skip
        return {
            **parts.membership.endpoints(),
            **parts.proxied.endpoints(),
            **modes.endpoints(),
            **parts.followers.once_copied(
                once_saved(modes.changes(), parts.files.request_modes, reports_failure=True)
            ),
            **once_saved(tables.filters.endpoints(), parts.files.filters, reports_failure=True),
            **positions.endpoints(),
            **LockRequests(
                tables.locks,
                parts.files.locks,
                topics=tables.topics,
                mappings=tables.mappings,
                broker=self._settings.config.name,
                may_lease=parts.acting.may_lease,
            ).endpoints(),
        }

    def _operators(self) -> Endpoints:
        """Endpoints for operators."""
        parts, tables = self._parts, self._tables
        queues = TopicQueueOffsets(
            tables.topics, self._store, broker_name=self._settings.config.name
        )
        save_offsets = parts.files.offset_rounds.save_at_once
        groups = GroupRequests(
            tables.groups, tables.clients,
            offsets=tables.offsets, locks=tables.locks, volumes=tables.volumes,
            address=self._address, lock_file=parts.files.locks,
            save_groups=parts.files.groups.written, save_offsets=save_offsets,
            on_cleaned=parts.pop.forget_group,
        )  # fmt: skip
        topics = TopicRequests(
            tables.topics, tables.mappings, self._store, parts.pulls, parts.pop,
            offsets=tables.offsets, clients=tables.clients, volumes=tables.volumes,
            settings=self._settings, save_topics=parts.files.topics.written,
            save_mappings=parts.files.mappings.written, save_offsets=save_offsets,
            on_removed=partial(parts.followers.journal.record, TOPICS),
            before_delete=parts.lite.forget_parent,
        )  # fmt: skip
        connections = ConnectionRequests(
            tables.clients, self._store, topics=tables.topics, groups=tables.groups,
            broker_name=self._settings.config.name,
        )  # fmt: skip
        named = once_saved(
            {**topics.endpoints(), **groups.endpoints()},
            parts.files.topics,
            parts.files.groups,
            parts.files.locks,
            parts.files.mappings,
            reports_failure=True,
        )
        return {
            **parts.followers.once_copied(named),
            **self._accounts(),
            **self._for_slaves(),
            **self._positions(queues),
            **FigureRequests(queues, tables.offsets, state=parts.state).endpoints(),
            **VolumeRequests(tables.volumes, cluster=self._settings.config.cluster).endpoints(),
            **connections.endpoints(),
            **ReplicaRequests(self._store, parts.replication, self._clock).endpoints(),
            **ElectionRequests(
                self._store, parts.replication, settings=self._settings, seat=self._seat
            ).endpoints(),
            **parts.acting.endpoints(),
            **parts.escape.endpoints(),
            **EntryRequests(self._store, tables.clients).endpoints(),
            **SettingRequests(
                self._settings,
                self._store,
                timer_counts=tables.timer_counts,
                on_change=self._changed,
            ).endpoints(),
        }

    def _changed(self, before: BrokerConfig, _: StoreConfig) -> None:
        """Tells what was made with the old settings of the new ones."""
        change_parts(self._parts, self._settings, before)
        self._kernel.change(is_wanted=self._settings.config.kernel)

    def _for_slaves(self) -> Endpoints:
        """Endpoints that give slaves what they copy besides the log."""
        parts = self._parts
        return StateRequests(
            parts.tables, self._store, parts.timers, followers=parts.followers,
            may_have_users=parts.rights.may_have_users,
        ).endpoints()  # fmt: skip

    def _accounts(self) -> Endpoints:
        """Endpoints about users and their policies, or about accounts in files."""
        parts = self._parts
        plain = PlainAccountRequests(
            parts.rights.plain, self._settings, self._clock, self._address
        ).endpoints()
        changes = once_saved(self._users.changes(), parts.files.accounts, reports_failure=True)
        return {**parts.followers.once_copied(changes), **self._users.questions(), **plain}

    def _positions(self, queues: TopicQueueOffsets) -> Endpoints:
        """Endpoints that show and reset consumer offsets."""
        parts, tables = self._parts, self._tables
        progress = ProgressRequests(
            queues,
            tables.offsets,
            groups=tables.groups,
            clients=tables.clients,
            volumes=tables.volumes,
            address=self._address,
        )
        resets = ResetRequests(
            queues,
            tables.offsets,
            groups=tables.groups,
            clients=tables.clients,
            pulls=parts.pulls,
            pops=parts.pop,
            mappings=tables.mappings,
            settings=self._settings,
            save=parts.files.save_reset,
        )
        return {**progress.endpoints(), **resets.endpoints()}
