"""The state files of a broker: which table is in which file, and when each file is written.

Topics, groups, filters and leases are saved when they change. Offsets, of consumers and of delayed
messages, and pops in order are saved periodically. All tables are saved when the broker stops. The
file names are RocketMQ's, except `accounts.json`, `escapedMessages.json`, `filterCode.json` and
`queueLocks.json`.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterator
from functools import partial
from typing import Any

from sprocket.base.ports import Disk
from sprocket.broker.settings import BrokerSettings
from sprocket.broker.tables.account_rows import AccountRows
from sprocket.broker.tables.state import OffsetSaver, StateFile, StateTable
from sprocket.broker.tables.tables import Tables
from sprocket.store.store import Store

#: A background task's function: runs until it is cancelled or fails.
Work = Callable[[], Coroutine[Any, Any, None]]
#: Pause between two saves of what was delivered elsewhere: so much of it comes twice after a kill.
_ESCAPED_MS = 1_000


class StateFiles:
    """The state files of a broker.

    Args:
        root: the broker's folder; the files are in `config` below it.

    Attributes:
        topics, groups, filters, locks, request_modes, mappings, accounts: files that are saved
            when their table changes.
        timer_counts: saved periodically, and when the timers stop.
        offset_rounds, order_rounds: save the consumers' offsets, and what they popped in order,
            periodically.
        escaped_rounds: the same for what was delivered at other brokers.
    """

    def __init__(self, tables: Tables, store: Store, disk: Disk, root: str) -> None:
        def file(name: str, table: StateTable) -> StateFile:
            return StateFile(disk, f"{root}/config/{name}", table)

        self.topics = file("topics.json", tables.topics)
        self.mappings = file("topicQueueMapping.json", tables.mappings)
        self.groups = file("subscriptionGroup.json", tables.groups)
        self.locks = file("queueLocks.json", tables.lock_table)
        self.filters = file("filterCode.json", tables.filters.uploads)
        orders = file("consumerOrderInfo.json", tables.pop_orders)
        self.request_modes = file("messageRequestMode.json", tables.request_modes)
        self.accounts = StateFile(
            disk, f"{root}/config/accounts.json", AccountRows(tables.accounts), is_secret=True
        )
        self.timer_counts = file("timermetrics", tables.timer_counts)
        offsets = file("consumerOffset.json", tables.offsets)
        delays = file("delayOffset.json", tables.progress)
        pending = file("transactionMetrics", tables.pending)
        self.offset_rounds = OffsetSaver(offsets, tables.offsets, store)
        self.order_rounds = OffsetSaver(orders, tables.pop_orders, store)
        escaped = file("escapedMessages.json", tables.escaped)
        self.escaped_rounds = OffsetSaver(escaped, tables.escaped, store)
        self._delay_rounds = OffsetSaver(delays, tables.progress, store)
        self._pending_rounds = OffsetSaver(pending, tables.pending, store)
        self._timer_rounds = OffsetSaver(self.timer_counts, tables.timer_counts, store)
        self._all = [self.topics, self.groups, offsets, delays, pending, self.timer_counts]
        if tables.filters.is_on:
            self._all.append(self.filters)
        self._all += [self.locks, orders, self.request_modes, self.mappings, self.accounts, escaped]

    def __iter__(self) -> Iterator[StateFile]:
        """All files in use, in the order in which they are loaded and saved."""
        return iter(self._all)

    async def save_reset(self) -> None:
        """Saves a reset: first that nothing is popped in order, then the offsets. In the other
        order a crash between the two would take the offsets back to what was popped.

        Raises:
            StoreError, ClosedError: a file cannot be saved.
        """
        await self.order_rounds.save_at_once()
        await self.offset_rounds.save_at_once()

    def rounds(self, settings: BrokerSettings) -> Iterator[tuple[str, Work]]:
        """The tasks that save periodically until they are cancelled, each with its name."""

        def offset_save_ms() -> int:
            return settings.config.offset_save_ms

        def delay_save_ms() -> int:
            return settings.config.delay_save_ms

        yield "offsets", partial(self.offset_rounds.run, offset_save_ms)
        yield "pops in order", partial(self.order_rounds.run, offset_save_ms)
        yield "delays", partial(self._delay_rounds.run, delay_save_ms)
        yield "counts of transactions", partial(self._pending_rounds.run, delay_save_ms)
        yield "messages delivered elsewhere", partial(self.escaped_rounds.run, lambda: _ESCAPED_MS)
        yield "timers", partial(self._timer_rounds.run, delay_save_ms)
