"""The broker's settings while it runs: some can be changed by an operator.

Parts keep this object and read `config` each time, so that a change is seen at once.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from sprocket.base.config import settings_of
from sprocket.base.config_files import load, properties
from sprocket.base.errors import ConfigError, InvalidParameter
from sprocket.broker.config import BrokerConfig
from sprocket.store.config import StoreConfig

logger = logging.getLogger(__name__)

#: What is looked at again on each use. The rest counts from the next start on.
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
        config: of the broker; replaced as a whole by a change.
        store: of the store; these stay as they are.
    """

    __slots__ = ("config", "store")

    def __init__(self, config: BrokerConfig, store: StoreConfig) -> None:
        self.config = config
        self.store = store

    def change(self, text: str) -> None:
        """Takes over lines of `key=value` in RocketMQ's names. Unknown keys change nothing.

        Raises:
            InvalidParameter: a value cannot be, or cannot change while the broker runs.
        """
        by_name = {
            name: declared
            for declared in settings_of(BrokerConfig).values()
            for name in declared.rocketmq_names
        }
        asked: dict[str, str] = {}
        for _, key, value in properties(text):
            declared = by_name.get(key)
            if declared is None:
                logger.info("setting %r is not known here and changes nothing", key)
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
        """All settings as `key=value`, in RocketMQ's names, sorted."""
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
