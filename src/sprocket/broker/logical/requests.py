"""The requests of producers and consumers, for static topics and all others."""

from __future__ import annotations

from sprocket.base.ports import Clock
from sprocket.broker.dispatch import Endpoints
from sprocket.broker.logical.group_offsets import LogicalGroupOffsets
from sprocket.broker.logical.mapped import MappedQueues
from sprocket.broker.logical.offsets import LogicalOffsets
from sprocket.broker.logical.other_brokers import OtherBrokers
from sprocket.broker.logical.parts import PartRequests
from sprocket.broker.logical.pulls import LogicalPulls
from sprocket.broker.logical.sends import LogicalSends
from sprocket.broker.sending.acknowledgement import Acknowledgement
from sprocket.broker.sending.destination import DelayRules
from sprocket.broker.sending.ingress import Ingress
from sprocket.broker.sending.intake import SendReader
from sprocket.broker.settings import BrokerSettings
from sprocket.broker.tables.tables import Tables
from sprocket.remoting.pool import Pool


def around(
    inner: Endpoints,
    tables: Tables,
    settings: BrokerSettings,
    *,
    pool: Pool,
    reader: SendReader,
    ingress: Ingress,
    acknowledgement: Acknowledgement,
    rules: DelayRules,
    clock: Clock,
) -> Endpoints:
    """The endpoints that know logical queues.

    Args:
        inner: the endpoints of a broker for its own queues.
        pool: its connections to other brokers.
    """
    queues = MappedQueues(tables.mappings)
    parts = PartRequests(settings.config.name, inner, OtherBrokers(pool, settings))
    groups = LogicalGroupOffsets(queues, parts, tables.offsets)
    sends = LogicalSends(queues, reader, ingress, acknowledgement, rules=rules, clock=clock)
    return {
        **sends.around(inner),
        **LogicalPulls(queues, parts, tables.mappings, tables.offsets).around(inner),
        **LogicalOffsets(queues, parts, groups).around(inner),
    }
