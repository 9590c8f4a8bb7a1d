"""The broker's settings while it runs; an operator can change some of them.

Parts keep this object and read `config` at each use, so that a change has effect at once.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from sprocket.base.config import settings_of
from sprocket.base.config_files import load
from sprocket.base.errors import ConfigError, InvalidParameter
from sprocket.base.java_properties import properties
from sprocket.broker.config import BrokerConfig
from sprocket.store.config import StoreConfig

logger = logging.getLogger(__name__)

#: Settings that are read at each use. All others have effect only after a restart.
_LIVE = frozenset(
    {
        "permission",
        "auto_create_topics",
        "auto_create_groups",
        "notify_members",
        "client_expiry_ms",
        "long_polling",
        "short_polling_ms",
        "held_pulls_max",
        "pull_count_max",
        "pull_bytes_max",
        "pull_asked_count_max",
        "pull_asked_bytes_max",
        "lite_pull",
        "sql_filters",
        "flush_timeout_ms",
        "slave_timeout_ms",
        "slave_reads",
        "memory_percent",
        "offset_save_ms",
        "delay_save_ms",
        "registration_ms",
        "registration_timeout_ms",
        "reject_transactions",
        "transaction_timeout_ms",
        "transaction_check_ms",
        "transaction_checks_max",
        "recall",
    }
)


class BrokerSettings:
    """The settings in force.

    Attributes:
        config: settings of the broker; a change replaces the whole object.
        store: settings of the store; they never change while the broker runs.
    """

    __slots__ = ("config", "store")

    def __init__(self, config: BrokerConfig, store: StoreConfig) -> None:
        self.config = config
        self.store = store

    def change(self, text: str) -> None:
        """Applies lines of `key=value` with RocketMQ's names. Unknown keys are ignored.

        Raises:
            InvalidParameter: a value is invalid, or cannot change while the broker runs.
        """
        by_name = {
            name: declared
            for declared in settings_of(BrokerConfig).values()
            for name in declared.rocketmq_names
        }
        # All lines are checked before any is applied, so that a request changes all or nothing.
        # Unknown names are no error: tools send whole files that name settings of Java's parts.
        asked: dict[str, str] = {}
        for key, value in ((each.key, each.value) for each in properties(text)):
            declared = by_name.get(key)
            if declared is None:
                logger.info("setting %r is unknown and is ignored", key)
            elif declared.name not in _LIVE:
                raise InvalidParameter(f"{key} cannot be changed while the broker runs")
            else:
                asked[declared.key] = value
        try:
            loaded = load((BrokerConfig,), overrides=asked).of(BrokerConfig)
        except ConfigError as error:
            raise InvalidParameter(str(error)) from error
        names = [key.partition(".")[2] for key in asked]
        self.config = replace(self.config, **{name: getattr(loaded, name) for name in names})
        if names:
            logger.warning("settings changed: %s", ", ".join(sorted(names)))

    def lines(self) -> list[str]:
        """All settings as `key=value` with RocketMQ's names, sorted."""
        return sorted(f"{key}={value}" for key, value in self._texts())

    def _texts(self) -> Iterator[tuple[str, str]]:
        parts: tuple[Any, ...] = (self.config, self.store)
        for part in parts:
            for declared in settings_of(part.__class__).values():
                for name in declared.rocketmq_names[:1]:
                    yield name, _text(getattr(part, declared.name))


def _text(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        return ";".join(str(each) for each in value)
    return str(value)
