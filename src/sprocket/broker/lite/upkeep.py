"""What goes on by itself: messages that arrive make their lite topics ready, and so do those that
become visible again; silent clients are forgotten, and lite topics that nobody needs.

A lite topic without new messages for as long as its parent topic says (`lite.topic.expiration`) is
forgotten with the offsets of its groups, whether they have read all or not, as in RocketMQ; its
messages stay in the parent topic.
Source: LiteEventDispatcher, AbstractLiteLifecycleManager of RocketMQ 5.5.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable

from sprocket.base.deadline import Deadline
from sprocket.base.errors import StoreError
from sprocket.base.ports import Clock
from sprocket.broker.lite.held import HeldLitePops
from sprocket.broker.lite.ready import ReadyLites
from sprocket.broker.lite.rules import LiteRules
from sprocket.broker.lite.subscriptions import LiteClient, LiteSubscriptions
from sprocket.broker.lite.taking import QUEUE, LiteTaking
from sprocket.broker.settings import BrokerSettings
from sprocket.broker.tables.offsets import ConsumerOffsets
from sprocket.broker.tables.pop_orders import OrderTable
from sprocket.message.lite import QUEUE_PREFIX, LiteName
from sprocket.store.store import Store

logger = logging.getLogger(__name__)

#: Lite topics that are looked at before others run on the loop.
_AT_ONCE = 256
#: How often silent clients are looked for, s.
_SILENCE_SECONDS = 30.0
#: A row of which all is acknowledged is kept so long that the offsets are saved meanwhile, ms.
_DONE_MS = 60_000
_MINUTE_MS = 60_000


class LiteUpkeep:
    """The tasks of lite topics.

    Args:
        alarm: is set when something is due earlier than all before.
    """

    def __init__(
        self,
        store: Store,
        subscriptions: LiteSubscriptions,
        ready: ReadyLites,
        *,
        rules: LiteRules,
        taking: LiteTaking,
        orders: OrderTable,
        offsets: ConsumerOffsets,
        held: HeldLitePops,
        settings: BrokerSettings,
        clock: Clock,
        alarm: asyncio.Event,
    ) -> None:
        self._store = store
        self._lite = store.lite
        self._subscriptions = subscriptions
        self._ready = ready
        self._rules = rules
        self._taking = taking
        self._orders = orders
        self._offsets = offsets
        self._held = held
        self._settings = settings
        self._clock = clock
        self._alarm = alarm
        #: Clients for which messages of all that they subscribe are looked for.
        self._looked_for: dict[str, None] = {}
        self._has_looks = asyncio.Event()

    async def run(self, forget_client: Callable[[str], None]) -> None:
        """Works until it is cancelled.

        Args:
            forget_client: forgets a client that is silent.
        """
        for client in self._subscriptions.clients():
            self.look(client)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._take_arrivals())
            tasks.create_task(self._take_due())
            tasks.create_task(self._take_looks())
            tasks.create_task(self._drop_silent(forget_client))
            tasks.create_task(self._drop_old())

    def look(self, client: LiteClient) -> None:
        """Looks for messages of all lite topics that a client subscribes."""
        self._looked_for[client.client_id] = None
        self._has_looks.set()

    async def _take_arrivals(self) -> None:
        seen = self._lite.arrivals.value
        while True:
            try:
                await self._lite.arrivals.reach(seen + 1, Deadline.never())
            except StoreError:  # the broker ends
                return
            end = self._lite.arrivals.value
            for start in range(seen, end, _AT_ONCE):
                if len(self._subscriptions):
                    for name in self._lite.arrived(start, min(start + _AT_ONCE, end)):
                        for group in self._subscriptions.groups(name):
                            self._held.wake(self._ready.mark(group, name))
                await asyncio.sleep(0)
            seen = end

    async def _take_due(self) -> None:
        while True:
            self._alarm.clear()
            next_ms = self._ready.next_ms
            left_ms = _MINUTE_MS if next_ms is None else next_ms - self._clock.now_ms()
            if left_ms > 0:
                try:
                    async with asyncio.timeout(min(left_ms, _MINUTE_MS) / 1000):
                        await self._alarm.wait()
                except TimeoutError:
                    pass
            for number, (group, name) in enumerate(self._ready.due(self._clock.now_ms()), 1):
                until_ms = self._taking.blocked_ms(group, name)
                if until_ms is not None:
                    self._ready.block(group, name, until_ms)
                elif self._taking.has_rest(group, name):
                    self._held.wake(self._ready.mark(group, name))
                if number % _AT_ONCE == 0:
                    await asyncio.sleep(0)

    async def _take_looks(self) -> None:
        while True:
            await self._has_looks.wait()
            self._has_looks.clear()
            clients, self._looked_for = self._looked_for, {}
            for client_id in clients:
                client = self._subscriptions.find(client_id)
                if client is not None:
                    await self._look(client)

    async def _look(self, client: LiteClient) -> None:
        names: Iterable[LiteName] = [LiteName(client.parent, lite) for lite in client.lites]
        if client.has_all:
            names = self._lite.names(client.parent)
        for number, name in enumerate(names, 1):
            if self._subscriptions.find(client.client_id) is not client:
                return
            if self._lite.has(name) and self._taking.has_rest(client.group, name):
                if client.has_all:
                    self._ready.mark(client.group, name)
                elif name.lite in client.lites:
                    self._ready.mark_for(client, name)
                self._held.wake([client.client_id])
            if number % _AT_ONCE == 0:
                await asyncio.sleep(0)

    async def _drop_silent(self, forget_client: Callable[[str], None]) -> None:
        while True:
            await asyncio.sleep(_SILENCE_SECONDS)
            since_ms = self._clock.now_ms() - self._settings.config.lite_subscription_expiry_ms
            for client_id in list(self._subscriptions.silent_since(since_ms)):
                logger.info("client %s subscribes no lite topics any more: it is silent", client_id)
                forget_client(client_id)

    async def _drop_old(self) -> None:
        while True:
            await asyncio.sleep(self._settings.config.lite_check_ms / 1000)
            await self._drop_done_rows()
            for parent in self._lite.parents():
                if (minutes := self._rules.minutes_of(parent)) > 0:
                    kept_ms = max(minutes * _MINUTE_MS, self._settings.config.lite_kept_ms_min)
                    await self._drop_unused(parent, kept_ms)

    async def _drop_unused(self, parent: str, kept_ms: int) -> None:
        groups = self._rules.groups_of().get(parent, [])
        for number, name in enumerate(self._lite.names(parent), 1):
            if self._lite.last_ms(name) is None:
                place = self._lite.last_place(name)
                if place is not None:
                    await self._store.cold.load_record(place)
                self._lite.read_last_ms(name)
            last_ms = self._lite.last_ms(name)
            if last_ms is not None and self._clock.now_ms() - last_ms > kept_ms:
                self._forget(name, groups)
            if number % _AT_ONCE == 0:
                await asyncio.sleep(0)

    def _forget(self, name: LiteName, groups: Iterable[str]) -> None:
        """Forgets a lite topic, with what groups have read of it."""
        for group in groups:
            self._orders.put(group, name.queue, QUEUE, None)
            self._ready.unblock(group, name)
            key = f"{name.queue}@{group}"
            self._offsets.copy_row(key, {})
            self._offsets.popped.drop(key)
        self._lite.remove(name)

    # What is acknowledged completely need not stay, and there may be a million lite topics. The
    # offset behind it must be on the disk first: a start reads it from the row.
    async def _drop_done_rows(self) -> None:
        now_ms = self._clock.now_ms()
        for number, key in enumerate(self._orders.names(), 1):
            if key.startswith(QUEUE_PREFIX):
                topic, _, group = key.partition("@")
                row = self._orders.row(key).get(QUEUE)
                is_old = row is not None and now_ms - row.last_ms > _DONE_MS
                if row is not None and is_old and row.next_offset() > row.offsets()[-1]:
                    self._orders.put(group, topic, QUEUE, None)
            if number % _AT_ONCE == 0:
                await asyncio.sleep(0)

    async def forget_parent(self, parent: str) -> None:
        """Forgets what groups have read of a parent topic's lite topics, before it is deleted."""
        groups = self._rules.groups_of().get(parent, [])
        for number, name in enumerate(self._lite.names(parent), 1):
            self._forget(name, groups)
            if number % _AT_ONCE == 0:
                await asyncio.sleep(0)
