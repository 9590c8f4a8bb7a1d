"""The broker's settings while it runs; an operator can change some of them.

Parts keep this object and read `config` at each use, so that a change has effect at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from sprocket.base.config import SECRET_MASK, Declared, check, settings_of
from sprocket.base.errors import ConfigError, InvalidParameter
from sprocket.base.java_properties import properties
from sprocket.base.rocketmq_settings import rocketmq_settings
from sprocket.base.setting_values import from_text, shown_settings
from sprocket.base.suggestions import nearest
from sprocket.broker.config import BrokerConfig
from sprocket.store.config import StoreConfig
from sprocket.store.writing.retention import RetentionRules

#: Settings that are read at each use. All others have effect only after a restart.
_LIVE = frozenset(
    f"broker.{name}"
    for name in (
        "permission", "auto_create_topics", "auto_create_groups", "notify_members",
        "client_expiry_ms", "client_scan_ms", "long_polling", "short_polling_ms",
        "held_pulls_max", "pull_count_max", "pull_bytes_max", "pull_asked_count_max",
        "pull_asked_bytes_max", "lite_pull", "sql_filters", "server_side_reset",
        "flush_timeout_ms", "offset_save_ms", "delay_save_ms", "registration_ms",
        "registration_timeout_ms", "reject_transactions", "transaction_timeout_ms",
        "transaction_check_ms", "transaction_checks_max", "transactions_max", "recall",
        "topics_max", "groups_max", "drain_ms", "slave_timeout_ms", "slave_reads",
        "memory_percent", "pop_retry_v2", "pop_retry_percent", "held_pops_max",
        "held_pops_queue_max", "quotas", "request_mode", "pop_share_queues", "server_rebalance",
    )
) | frozenset(
    f"store.{name}"
    for name in (
        "message_bytes_max", "flush_interval_ms", "flush_least_pages",
        "flush_thorough_interval_ms", "queue_flush_interval_ms", "disk_full_percent",
        "kept_hours", "log_bytes_max", "files_removed_max", "delete_hours",
        "disk_used_percent", "may_force", "read_ahead", "disk_check_interval_ms",
        "disk_forced_percent",
    )
)  # fmt: skip


class BrokerSettings:
    """The settings in force.

    Attributes:
        config: settings of the broker; a change replaces the whole object.
        store: settings of the store; likewise, and the store is told.
    """

    __slots__ = ("config", "store")

    def __init__(self, config: BrokerConfig, store: StoreConfig) -> None:
        self.config = config
        self.store = store

    def change(self, text: str) -> None:
        """Applies lines of `key=value`, all or none, with RocketMQ's names or `part.name`.

        Raises:
            InvalidParameter: a setting is unknown, its value is invalid, or it cannot change while
                the broker runs; the text names it. The value that it has already is accepted.
        """
        self.apply(*self.changed(text))

    def changed(self, text: str) -> tuple[BrokerConfig, StoreConfig]:
        """The settings as `change` would make them."""
        parts: dict[str, Any] = {"broker": self.config, "store": self.store}
        known = _known()
        asked: dict[str, dict[str, Any]] = {"broker": {}, "store": {}}
        for each in properties(text):
            declared = known.get(each.key)
            if declared is None:
                raise InvalidParameter(_unknown(each.key, known))
            if declared.about.is_secret and each.value.strip() == SECRET_MASK:
                continue  # a listing that is sent back
            value = _value(declared, each.key, each.value)
            is_other = value != getattr(parts[declared.part], declared.name)
            if is_other and declared.key not in _LIVE:
                raise InvalidParameter(
                    f"{each.key} cannot be changed while the broker runs: change it in its "
                    "configuration, and start it again"
                )
            asked[declared.part][declared.name] = value
        config = replace(self.config, **asked["broker"])
        store = replace(self.store, **asked["store"])
        try:
            check(config)
            check(store)
            RetentionRules.of(store)
        except ConfigError as error:
            raise InvalidParameter(str(error)) from error
        return config, store

    def apply(self, config: BrokerConfig, store: StoreConfig) -> None:
        """Replaces the settings."""
        self.config, self.store = config, store

    def lines(self) -> list[str]:
        """All settings as `key=value` with RocketMQ's names, or `part.name` without one; sorted.

        Secrets are masked.
        """
        return sorted(f"{key}={value}" for key, value in self._texts())

    def _texts(self) -> Iterator[tuple[str, str]]:
        parts: tuple[Any, ...] = (self.config, self.store)
        for part in parts:
            for declared in settings_of(part.__class__).values():
                name = next(iter(declared.rocketmq_names), declared.key)
                value = getattr(part, declared.name)
                is_masked = declared.about.is_secret and value is not None
                yield name, SECRET_MASK if is_masked else _text(value)


def shown_lines(text: str) -> str:
    """What a request wants to change, in one line for logs, without secrets."""
    return shown_settings(text, _known())


def _known() -> dict[str, Declared]:
    """All settings by RocketMQ's names and ours."""
    return {
        name: declared
        for kind in (BrokerConfig, StoreConfig)
        for declared in settings_of(kind).values()
        for name in (*declared.rocketmq_names, declared.key)
    }


def _unknown(key: str, known: Iterable[str]) -> str:
    if (why := rocketmq_settings().without_effect.get(key)) is not None:
        return f"{key} is RocketMQ's and has no effect here: {why}"
    return f"unknown setting '{key}'{nearest(key, known)}"


def _value(declared: Declared, key: str, text: str) -> Any:
    try:
        value = from_text(declared, text)
    except ConfigError as error:
        raise InvalidParameter(f"{key} {error}") from error
    if complaint := declared.complaint(value):
        raise InvalidParameter(f"{key} {complaint}")
    return value


def _text(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        return ";".join(str(each) for each in value)
    return str(value)
