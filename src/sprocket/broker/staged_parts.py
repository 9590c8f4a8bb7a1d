"""Builds what stages batches and publishes them, and what finds the queues of sends for both."""

from __future__ import annotations

from sprocket.broker.place import Ports
from sprocket.broker.sending.ingress import Ingress
from sprocket.broker.sending.intake import Placing
from sprocket.broker.sending.publication import Publication
from sprocket.broker.sending.staged_reader import StagedReader
from sprocket.broker.sending.stamp import Stamp
from sprocket.broker.settings import BrokerSettings
from sprocket.broker.tables.tables import Tables
from sprocket.store.store import Store


def staged_parts(
    store: Store,
    ingress: Ingress,
    stamp: Stamp,
    tables: Tables,
    settings: BrokerSettings,
    world: Ports,
    host: bytes,
) -> tuple[Placing, Publication]:
    """What finds topic and queue of a message, and what publishes staged batches.

    Args:
        host: the broker's packed address.
    """
    placing = Placing(
        tables.topics,
        static=tables.mappings.by_topic,
        settings=settings,
        entropy=world.entropy,
    )
    reader = StagedReader(placing, stamp, settings=settings, clock=world.clock)
    return placing, Publication(store, ingress, reader, clock=world.clock, host=host)
