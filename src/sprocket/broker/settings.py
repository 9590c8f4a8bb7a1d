"""The broker's settings while it runs; an operator can change some of them.

Parts keep this object and read `config` at each use, so that a change has effect at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from sprocket.audit.config import AuditConfig
from sprocket.base.config import SECRET_MASK, Declared, check, settings_of
from sprocket.base.errors import ConfigError, InvalidParameter, SystemFailure
from sprocket.base.java_properties import properties
from sprocket.base.kept_settings import KeptSettings
from sprocket.base.rocketmq_settings import rocketmq_settings
from sprocket.base.setting_values import from_text, shown_settings, to_text
from sprocket.base.suggestions import nearest
from sprocket.broker.config import BrokerConfig
from sprocket.broker.live_settings import why_fixed
from sprocket.remoting.tls.settings import TlsConfig
from sprocket.store.config import StoreConfig
from sprocket.store.writing.retention import RetentionRules

#: Whether a server's own connections use TLS. The admin tool of RocketMQ 4 needs the line.
_TLS = "useTLS"


class BrokerSettings:
    """The settings in force.

    Attributes:
        config: settings of the broker; a change replaces the whole object.
        store: settings of the store; likewise, and the store is told.
    """

    __slots__ = ("_is_tls", "_kept", "config", "store")

    def __init__(
        self,
        config: BrokerConfig,
        store: StoreConfig,
        kept: KeptSettings | None = None,
        *,
        is_tls: bool = False,
    ) -> None:
        """
        Args:
            kept: the file of changes, which the next start applies; None if none are kept.
            is_tls: whether the broker's own connections use TLS, which is shown and cannot change.
        """
        self._is_tls = is_tls
        self.config = config
        self.store = store
        self._kept = kept

    def load(self) -> None:
        """Applies the changes that were kept.

        Raises:
            StoreError: their file cannot be read.
        """
        if self._kept is not None:
            self.apply(*self._kept.load())

    def keep(self, config: BrokerConfig, store: StoreConfig) -> None:
        """Keeps settings for the next start, before they are applied.

        Raises:
            SystemFailure: the disk refuses it.
        """
        if self._kept is not None and (config, store) != (self.config, self.store):
            try:
                self._kept.save((config, store))
            except OSError as error:
                raise SystemFailure(f"the change cannot be kept: {error}") from error

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
                if each.key == _TLS and each.value.strip() == to_text(self._is_tls):
                    continue  # a listing that is sent back
                raise InvalidParameter(_unknown(each.key, known))
            if declared.about.is_secret and each.value.strip() == SECRET_MASK:
                continue  # a listing that is sent back
            value = _value(declared, each.key, each.value)
            is_other = value != getattr(parts[declared.part], declared.name)
            if is_other and (why := why_fixed(declared)) is not None:
                raise InvalidParameter(
                    f"{each.key} cannot be changed while the broker runs, since {why}: change it "
                    "in its configuration, and start it again"
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
        self._check_waiting(config)
        return config, store

    def _check_waiting(self, config: BrokerConfig) -> None:
        """
        Raises:
            InvalidParameter: sends would begin to wait for slaves, or end to do so: what replies
                is made for one of both.
        """
        for name in ("copies_wanted", "copies_least"):
            if (getattr(config, name) > 1) != (getattr(self.config, name) > 1):
                raise InvalidParameter(
                    "inSyncReplicas (broker.copies) and minInSyncReplicas (broker.copies_min) can "
                    "change while the broker runs, but not from or to 1: whether anybody waits for "
                    "slaves is decided at the start"
                )

    def apply(self, config: BrokerConfig, store: StoreConfig) -> None:
        """Replaces the settings."""
        self.config, self.store = config, store

    def lines(self) -> list[str]:
        """All settings as `key=value` with RocketMQ's names, or `part.name` without one; sorted.

        Secrets are masked.
        """
        texts = [*self._texts(), (_TLS, to_text(self._is_tls))]
        return sorted(f"{key}={value}" for key, value in texts)

    def _texts(self) -> Iterator[tuple[str, str]]:
        parts: tuple[Any, ...] = (self.config, self.store)
        for part in parts:
            for declared in settings_of(part.__class__).values():
                name = next(iter(declared.rocketmq_names), declared.key)
                value = getattr(part, declared.name)
                is_masked = declared.about.is_secret and value is not None
                yield name, SECRET_MASK if is_masked else to_text(value)


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
    for kind in (TlsConfig, AuditConfig):
        for declared in settings_of(kind).values():
            if key in (*declared.rocketmq_names, declared.key):
                return (
                    f"{key} cannot be changed while the broker runs: it is only read at its start"
                )
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
