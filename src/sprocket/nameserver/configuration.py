"""Requests about settings: the key-value settings of others, and the name server's own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from sprocket.audit.entries import BodyNames
from sprocket.base.config import SECRET_MASK, Declared, settings_of
from sprocket.base.config_files import ConfigFile, load
from sprocket.base.errors import ConfigError, NoPermission, QueryNotFound, SystemFailure
from sprocket.base.kept_settings import KeptSettings
from sprocket.base.loaded_config import DEFAULT
from sprocket.base.setting_values import shown_settings, without_masks
from sprocket.nameserver.config import NameServerConfig
from sprocket.nameserver.settings import KeyValueSettings
from sprocket.protocol.bodies import KvTable
from sprocket.protocol.codes import RequestCode
from sprocket.protocol.command import Buffer, Command, Reply
from sprocket.protocol.requests import route
from sprocket.remoting.transport import Peer

#: Settings that may change while a name server runs; the others need a restart.
CHANGEABLE = frozenset(
    {
        "scan_ms",
        "order_conf_in_routes",
        "order_conf_to_brokers",
        "topic_lists",
        "all_topics_list",
        "acting_masters",
        "notify_smallest",
        "quotas",
        "broker_expiry_ms",
        "topics_absent_are_deleted",
        "topics_max",
        "brokers_max",
        "kv_entries_max",
        "drain_ms",
    }
)


class Configuration:
    """The current settings; some of them may change while the name server runs."""

    def __init__(self, config: NameServerConfig, kept: KeptSettings | None = None) -> None:
        """
        Args:
            kept: the file of changes, which the next start applies; None if none are kept.
        """
        self.now = config
        self._kept = kept

    def load(self) -> None:
        """Applies the changes that were kept.

        Raises:
            StoreError: their file cannot be read.
        """
        if self._kept is not None:
            (self.now,) = self._kept.load()

    def change(self, config: NameServerConfig) -> None:
        """Keeps settings for the next start, and applies them.

        Raises:
            SystemFailure: the disk refuses it.
        """
        if self._kept is not None and config != self.now:
            try:
                self._kept.save((config,))
            except OSError as error:
                raise SystemFailure(f"the change cannot be kept: {error}") from error
        self.now = config


class ConfigurationRequests:
    """Handles requests that read and change settings.

    Args:
        settings: the key-value settings.
        configuration: the name server's own.
        save: writes the key-value settings to the disk; raises OSError if that fails.
        on_change: is called with the new settings.
    """

    def __init__(
        self,
        settings: KeyValueSettings,
        configuration: Configuration,
        *,
        save: Callable[[], None],
        on_change: Callable[[NameServerConfig], None],
    ) -> None:
        self._on_change = on_change
        self._settings = settings
        self._configuration = configuration
        self._save = save

    def table(self) -> dict[int, Callable[[Command, Peer], Reply]]:
        """The handling functions by request code."""
        return {
            route.PutKv.code: self._put_kv,
            route.GetKv.code: self._get_kv,
            route.DeleteKv.code: self._delete_kv,
            route.KvList.code: self._list_kv,
            route.UpdateNameServerConfig.code: self._update_config,
            route.ReadNameServerConfig.code: self._read_config,
        }

    def _put_kv(self, command: Command, peer: Peer) -> Reply:
        asked = command.read(route.PutKv)
        before = self._settings.get(asked.namespace, asked.key)
        self._settings.put(asked.namespace, asked.key, asked.value)
        self._keep(asked.namespace, asked.key, before)
        return Reply()

    def _get_kv(self, command: Command, peer: Peer) -> Reply:
        asked = command.read(route.GetKv)
        value = self._settings.get(asked.namespace, asked.key)
        if value is None:
            raise QueryNotFound(f"No config item, Namespace: {asked.namespace} Key: {asked.key}")
        return Reply(route.KvReply(value=value))

    def _delete_kv(self, command: Command, peer: Peer) -> Reply:
        asked = command.read(route.DeleteKv)
        before = self._settings.get(asked.namespace, asked.key)
        self._settings.delete(asked.namespace, asked.key)
        self._keep(asked.namespace, asked.key, before)
        return Reply()

    def _list_kv(self, command: Command, peer: Peer) -> Reply:
        namespace = command.read(route.KvList).namespace
        table = self._settings.of(namespace)
        if table is None:
            raise QueryNotFound(f"No config item, Namespace: {namespace}")
        return Reply(body=KvTable(table).encode())

    def _keep(self, namespace: str, key: str, before: str | None) -> None:
        """Saves the settings; if that fails, the change is undone."""
        try:
            self._save()
        except OSError as error:
            if before is None:
                self._settings.delete(namespace, key)
            else:
                self._settings.put(namespace, key, before)
            raise SystemFailure(f"cannot keep it: {error}") from error

    def _update_config(self, command: Command, peer: Peer) -> Reply:
        """Changes settings; with a file of key-value settings, also for the next start."""
        # A request may repeat settings that it does not change, so only those that differ count.
        # One that needs a restart refuses the whole request.
        try:
            text = without_masks(bytes(command.body).decode("utf-8"))
            loaded = load([NameServerConfig], file=ConfigFile("request.properties", text))
        except (ConfigError, UnicodeDecodeError) as error:
            raise SystemFailure(str(error)) from None
        asked = loaded.of(NameServerConfig)
        changes: dict[str, Any] = {
            name: getattr(asked, name)
            for name, declared in settings_of(NameServerConfig).items()
            if loaded.origins[declared.key] != DEFAULT
            and getattr(asked, name) != getattr(self._configuration.now, name)
        }
        if fixed := sorted(changes.keys() - CHANGEABLE):
            raise NoPermission(f"cannot change while it runs: {', '.join(fixed)}")
        self._configuration.change(replace(self._configuration.now, **changes))
        self._on_change(self._configuration.now)
        return Reply()

    def _read_config(self, command: Command, peer: Peer) -> Reply:
        now = self._configuration.now
        lines = [
            f"{_first_name(declared)}={_plain(declared, getattr(now, name))}\n"
            for name, declared in settings_of(NameServerConfig).items()
            if not declared.about.is_secret
        ]
        return Reply(body="".join(sorted(lines)).encode())


def _first_name(declared: Declared) -> str:
    return (declared.rocketmq_names or [declared.key])[0]


def _plain(declared: Declared, value: Any) -> str:
    if declared.about.is_secret and value is not None:
        return SECRET_MASK
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return ";".join(value)
    return "" if value is None else str(value)


def _settings(body: Buffer) -> dict[str, Any]:
    """What a request to change settings names, without secrets and values of unknown names."""
    known = {
        name: declared
        for declared in settings_of(NameServerConfig).values()
        for name in (*declared.rocketmq_names, declared.key)
    }
    return {"settings": shown_settings(bytes(body).decode("utf-8", "replace"), known)}


#: For the audit log.
AUDITED_BODIES: BodyNames = {RequestCode.UPDATE_NAMESRV_CONFIG: _settings}
