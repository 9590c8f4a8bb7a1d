"""Builds the parts of lite topics over those of the broker."""

from __future__ import annotations

import asyncio

from sprocket.base.ports import Clock
from sprocket.broker.dispatch import Endpoints
from sprocket.broker.lite.acks import LiteAckRequests
from sprocket.broker.lite.control import LiteControlRequests
from sprocket.broker.lite.figures import LiteFigureRequests
from sprocket.broker.lite.held import HeldLitePops
from sprocket.broker.lite.pops import LitePopRequests
from sprocket.broker.lite.ready import ReadyLites
from sprocket.broker.lite.rules import LiteRules
from sprocket.broker.lite.subscriptions import LiteSubscriptions
from sprocket.broker.lite.taking import LiteTaking
from sprocket.broker.lite.upkeep import LiteUpkeep
from sprocket.broker.pop.parts import PopParts
from sprocket.broker.sending.acknowledgement import Acknowledgement
from sprocket.broker.settings import BrokerSettings
from sprocket.broker.tables.tables import Tables
from sprocket.store.store import Store


class LiteParts:
    """The parts of lite topics.

    Args:
        pop: pop consumption, whose journal and endpoints they use.
    """

    def __init__(
        self,
        store: Store,
        tables: Tables,
        pop: PopParts,
        acknowledgement: Acknowledgement,
        *,
        settings: BrokerSettings,
        clock: Clock,
    ) -> None:
        orders, offsets = tables.pop_orders, tables.offsets
        alarm = asyncio.Event()
        subscriptions = LiteSubscriptions()
        ready = ReadyLites(subscriptions)
        self._held = held = HeldLitePops(settings)
        rules = LiteRules(tables.topics, tables.groups, settings)
        taking = LiteTaking(store, orders, offsets, clock)
        self._upkeep = LiteUpkeep(
            store, subscriptions, ready, rules=rules, taking=taking, orders=orders,
            offsets=offsets, held=held, settings=settings, clock=clock, alarm=alarm,
        )  # fmt: skip
        self._control = LiteControlRequests(
            store, subscriptions, ready, rules=rules, taking=taking, offsets=offsets, held=held,
            settings=settings, clock=clock, forget_order=pop.forget_order,
            look=self._upkeep.look,
        )  # fmt: skip
        self._pops = LitePopRequests(
            subscriptions, ready, taking, pop.journal, rules=rules, access=pop.access,
            acknowledgement=acknowledgement, offsets=offsets, volumes=tables.volumes, held=held,
            settings=settings, clock=clock, alarm=alarm,
        )  # fmt: skip
        self._acks = LiteAckRequests(
            store, pop.journal, orders, offsets=offsets, rules=rules, ready=ready, taking=taking,
            held=held, access=pop.access, acknowledgement=acknowledgement, clock=clock,
            alarm=alarm, others=pop.endpoints(),
        )  # fmt: skip
        self._figures = LiteFigureRequests(
            store, subscriptions, rules=rules, orders=orders, offsets=offsets,
            settings=settings, look=self._upkeep.look,
        )  # fmt: skip

    def endpoints(self) -> Endpoints:
        """The endpoints, by request code; they take the place of some of pop consumption."""
        return {
            **self._control.endpoints(),
            **self._pops.endpoints(),
            **self._acks.endpoints(),
            **self._figures.endpoints(),
        }

    async def run(self) -> None:
        """Makes ready what arrives, and forgets what nobody needs, until it is cancelled."""
        await self._upkeep.run(self._control.forget)

    async def forget_parent(self, parent: str) -> None:
        """Forgets what groups have read of a parent topic's lite topics, before it is deleted."""
        await self._upkeep.forget_parent(parent)

    def stop(self) -> None:
        """Answers all pops that wait, and holds no further ones."""
        self._held.stop()
