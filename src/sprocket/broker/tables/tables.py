"""All tables of a broker. Each table is independent of the others.

Most tables are kept in files (`files`). The connected clients and the counters of messages are lost
when the broker stops.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from sprocket.auth.accounts import AccountTable
from sprocket.base.deadline import loop_ms
from sprocket.base.ports import Clock
from sprocket.broker.config import BrokerConfig
from sprocket.broker.settings import BrokerSettings
from sprocket.broker.tables.changes import LEASES, OFFSETS, ORDERS, ChangeJournal
from sprocket.broker.tables.clients import ClientTable
from sprocket.broker.tables.code_filters import CodeFilters
from sprocket.broker.tables.escaped import EscapedTable
from sprocket.broker.tables.groups import Groups
from sprocket.broker.tables.locks import LockTable
from sprocket.broker.tables.measures import BrokerMeasures, MeasuredVolumes
from sprocket.broker.tables.offsets import ConsumerOffsets
from sprocket.broker.tables.pop_orders import OrderTable
from sprocket.broker.tables.queue_locks import QueueLocks
from sprocket.broker.tables.queue_mappings import QueueMappings
from sprocket.broker.tables.request_modes import RequestModeTable
from sprocket.broker.tables.topics import Topics, own_topics
from sprocket.broker.tables.volumes import Volumes
from sprocket.delay.levels.levels import DelayLevels
from sprocket.delay.levels.schedule import ScheduleProgress
from sprocket.delay.timers.counts import Counts
from sprocket.filterserver.uploads import Key
from sprocket.transaction.ledger import Ledger
from sprocket.transaction.pending import UndecidedCounts


class Tables:
    """The tables of one broker, empty.

    Args:
        levels: the delay levels; each has a queue of the schedule topic.
        on_topic: called with the name of a topic that has changed.
        on_group: called with the name of a group that has changed.
        on_filters: called with the key of a filter in Python that has changed.
        on_mode: called with the name of a topic of which a request mode has changed.
        on_mapping: called with the name of a static topic whose mapping has changed.
        on_account: called with the name of a user that has changed.
        journal: records the changes of offsets and of pops in order; the others call back.
        measures: the histograms that are kept; None for none.

    Attributes:
        locks: the leases on queues; `lock_table` is their form in the file.
        progress: the next offset to deliver of each delay level.
        escaped: what was delivered at other brokers in the master's place.
        timer_counts: how many messages wait for a delivery time of their own, by topic.
        ledger: the undecided transactions; `pending` is their form in the file.
        filters: filters in Python; saved only if they are switched on.
    """

    def __init__(
        self,
        settings: BrokerSettings,
        clock: Clock,
        *,
        levels: DelayLevels,
        on_topic: Callable[[str], None],
        on_group: Callable[[str], None],
        on_filters: Callable[[Key], None],
        on_mode: Callable[[str], None],
        on_mapping: Callable[[str], None],
        on_account: Callable[[str], None],
        journal: ChangeJournal,
        measures: BrokerMeasures | None = None,
    ) -> None:
        config = settings.config
        own = own_topics(config, delay_levels=levels.highest)
        self.topics = Topics(own, settings, clock=clock, on_change=on_topic)
        self.groups = Groups(settings, clock=clock, on_change=on_group)
        self.offsets = ConsumerOffsets(
            clock,
            entries_max=lambda: settings.config.offsets_max,
            on_change=partial(journal.record, OFFSETS),
        )
        self.clients = ClientTable(members_max=config.members_max)
        self.locks = QueueLocks(config.lock_lease_ms, partial(journal.record, LEASES))
        self.lock_table = LockTable(self.locks)
        self.volumes = (
            Volumes(loop_ms()) if measures is None else MeasuredVolumes(loop_ms(), measures)
        )
        self.progress = ScheduleProgress()
        self.escaped = EscapedTable()
        self.timer_counts = Counts()
        self.ledger = Ledger()
        self.pending = UndecidedCounts(self.ledger, clock)
        self.filters = CodeFilters(settings, clock, on_change=on_filters)
        self.pop_orders = OrderTable(
            partial(journal.record, ORDERS), lambda: self.offsets.popped.marks
        )
        self.request_modes = RequestModeTable(on_mode)
        self.mappings = QueueMappings(config.name, clock, on_change=on_mapping)
        self.accounts = AccountTable(on_account)

    def change(self, before: BrokerConfig, config: BrokerConfig) -> None:
        """Applies settings that have changed."""
        self.clients.limit(config.members_max)
        self.locks.change(config.lock_lease_ms)
        self.topics.change(before, config)
