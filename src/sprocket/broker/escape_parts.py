"""Builds what delivers at other masters while a slave stands for its own."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from sprocket.broker.members.acting import ActingMaster
from sprocket.broker.members.escape import Escape
from sprocket.broker.members.escape_send import EscapeSender
from sprocket.broker.members.escape_sources import (
    HalfSource,
    LevelSource,
    TimerSource,
    is_waiting,
)
from sprocket.broker.members.replication import Replication
from sprocket.broker.settings import BrokerSettings
from sprocket.broker.tables.tables import Tables
from sprocket.delay.levels.deliver import LevelDelivery
from sprocket.delay.levels.levels import DelayLevels
from sprocket.delay.timers.timers import Timers
from sprocket.remoting.pool import Pool
from sprocket.store.store import Store
from sprocket.transaction.check import CheckRules

if TYPE_CHECKING:
    from sprocket.broker.place import Ports


def escape(
    store: Store,
    pool: Pool,
    settings: BrokerSettings,
    world: Ports,
    *,
    tables: Tables,
    levels: DelayLevels,
    delivery: LevelDelivery,
    timers: Timers | None,
    rules: Callable[[], CheckRules],
    acting: ActingMaster,
    replication: Replication,
) -> Escape:
    """The escape of a broker.

    Args:
        delivery: of the delay levels, by which the progress is corrected.
        rules: when undecided transactions are due.
    """
    clock, progress = world.clock, tables.progress

    def is_copying() -> bool:
        return replication.slave is not None and replication.slave.is_connected

    return Escape(
        store,
        pool,
        settings,
        acting=acting,
        sender=EscapeSender(pool, settings, world.entropy),
        sources=(
            LevelSource(store, levels, progress, clock, correct=delivery.start),
            TimerSource(timers, store, clock, tables.topics.is_own),
            HalfSource(store, tables.offsets, rules=rules, clock=clock),
        ),
        table=tables.escaped,
        progress=progress,
        is_copying=is_copying,
        is_waiting=partial(
            is_waiting, store, progress=progress, timers=timers, offsets=tables.offsets
        ),
    )
