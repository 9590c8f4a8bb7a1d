"""Builds the parts of pop consumption over those of the broker."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable

from sprocket.base.errors import SprocketError
from sprocket.base.ports import Clock, Entropy
from sprocket.broker.dispatch import Endpoints, RunEndpoints
from sprocket.broker.pop.access import PopAccess
from sprocket.broker.pop.ack_runs import AckRuns
from sprocket.broker.pop.acks import AckRequests
from sprocket.broker.pop.held import HeldPops
from sprocket.broker.pop.journal import PopJournal
from sprocket.broker.pop.pops import PopRequests
from sprocket.broker.pop.replay import PopReplay
from sprocket.broker.pop.revival import Revival
from sprocket.broker.pop.taking import Taking
from sprocket.broker.sending.acknowledgement import Acknowledgement
from sprocket.broker.sending.ingress import Ingress
from sprocket.broker.settings import BrokerSettings
from sprocket.broker.tables.tables import Tables
from sprocket.delay.timers.timers import Timers
from sprocket.store.store import Store

logger = logging.getLogger(__name__)


class PopParts:
    """The parts of pop consumption.

    Args:
        timers: the timers; None if they are switched off.
        host: the broker's address in binary form.
        save_orders: saves the pops in order in their file; raises `StoreError` or `ClosedError`.

    Attributes:
        journal: the records about popped messages.
        access: decides which pops are allowed.
    """

    def __init__(
        self,
        store: Store,
        tables: Tables,
        ingress: Ingress,
        acknowledgement: Acknowledgement,
        *,
        timers: Timers | None,
        settings: BrokerSettings,
        clock: Clock,
        entropy: Entropy,
        host: bytes,
        save_orders: Callable[[], Awaitable[None]],
    ) -> None:
        orders, offsets, topics = tables.pop_orders, tables.offsets, tables.topics
        self._orders = orders
        self._held = HeldPops(store, settings)
        self._notified = HeldPops(store, settings)
        self.journal = PopJournal(
            store, ingress, offsets, orders, settings=settings, clock=clock, host=host,
            save_orders=save_orders,
        )  # fmt: skip
        self._replay = PopReplay(store, self.journal, offsets, orders)
        self.access = access = PopAccess(topics, tables.groups, settings)
        taking = Taking(
            store, self.journal, orders, offsets=offsets, topics=topics,
            volumes=tables.volumes, settings=settings, clock=clock, entropy=entropy,
        )  # fmt: skip
        self._pops = PopRequests(
            store, access, taking, acknowledgement, held=self._held, notified=self._notified,
            settings=settings, clock=clock,
        )  # fmt: skip
        self._acks = AckRequests(
            store, access, self.journal, orders, acknowledgement=acknowledgement,
            offsets=offsets, topics=topics, held=self._held, clock=clock,
        )  # fmt: skip
        self._ack_runs = AckRuns(self._acks, self.journal, acknowledgement)
        self._revival = Revival(
            store, self.journal, orders, timers, replay=self._replay, offsets=offsets,
            topics=topics, groups=tables.groups, held=self._held, notified=self._notified,
            settings=settings, clock=clock,
        )  # fmt: skip

    def endpoints(self) -> Endpoints:
        """The endpoints, by request code."""
        return {**self._pops.endpoints(), **self._acks.endpoints()}

    def runs(self) -> RunEndpoints:
        """Endpoints for requests that arrive together, by request code."""
        return self._ack_runs.runs()

    def opened(self) -> None:
        """Compares what was saved with the log, which may have been cut since."""
        self._replay.opened()

    async def start(self) -> None:
        """Reads what was written about popped messages since the offsets were saved.

        Raises:
            StoreError: the disk failed.
        """
        self._revival.prepare()
        await self._replay.start()

    async def run(self) -> None:
        """Gives back what is not acknowledged in time, until it is cancelled."""
        await self._revival.run()

    def forget_order(self, group: str, topic: str, queue_number: int) -> None:
        """Forgets what a group popped in order from a queue: it was reset there."""
        if self._orders.find(group, topic, queue_number) is None:
            return
        try:
            self.journal.keep_order(group, topic, queue_number, None)
        except SprocketError as error:  # it still is saved in the file, but not at slaves
            logger.error("%s popped %s in order, and no slave is told: %s", group, topic, error)
            self._orders.put(group, topic, queue_number, None)

    def forget_topic(self, topic: str) -> None:
        """Forgets what was popped in order from a topic that is deleted: messages of another topic
        of this name would be taken for those that were done."""
        for place in self._orders.rows_of(topic=topic):
            self.forget_order(*place)

    def forget_group(self, group: str) -> None:
        """The same for a group that is deleted with its offsets."""
        for place in self._orders.rows_of(group=group):
            self.forget_order(*place)

    def end_held(self, topic: str) -> None:
        """Ends the wait of all pops of a topic: it was changed or deleted, or a group was reset in
        it."""
        self._held.end(topic)
        self._notified.end(topic)

    def stop(self) -> None:
        """Answers all pops that wait, and holds no further ones."""
        self._held.stop()
        self._notified.stop()
