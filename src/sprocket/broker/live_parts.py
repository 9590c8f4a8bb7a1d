"""Tells the parts of a broker that were made with old settings of the new ones.

Whatever reads `BrokerSettings` at each use needs no word.
"""

from __future__ import annotations

from sprocket.broker.config import BrokerConfig
from sprocket.broker.parts import BrokerParts
from sprocket.broker.settings import BrokerSettings


def change_parts(parts: BrokerParts, settings: BrokerSettings, before: BrokerConfig) -> None:
    """Has the parts act by the settings in force.

    Args:
        before: those that were in force.
    """
    config = settings.config
    parts.tables.change(before, config)
    parts.stamp.change(config)
    parts.acknowledgement.change()
    parts.replication.change()
    parts.registration.change()
    if config.permission != before.permission:
        parts.registration.register_all()
    if (limits := parts.delay_rules.timer) is not None:
        limits.allow(settings.store.timer_delay_seconds_max * 1000)
