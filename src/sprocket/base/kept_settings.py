"""Settings that were changed while a server ran, kept for its next start.

The file has each changed setting with two texts: what the configuration said, and what it was
changed to. At a start a change counts as long as the configuration still says the same; once
somebody has changed that, the configuration is the newer one and counts. So neither a change nor an
edit of the file is lost unnoticed. A setting that gets the configured value back leaves the file.

    {"store.kept_hours": {"configured": "72", "changed": "24"}}
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import msgspec

from sprocket.base.config import Declared, check, settings_of
from sprocket.base.errors import ConfigError, StoreError
from sprocket.base.ports import Disk
from sprocket.base.setting_values import from_text, to_text

logger = logging.getLogger(__name__)


class KeptChange(msgspec.Struct, frozen=True):
    """A change of one setting, as texts.

    Attributes:
        configured: what the configuration said when it was changed.
        changed: what it was changed to.
    """

    configured: str
    changed: str


class KeptSettings:
    """The file of one server.

    Args:
        path: where the file is.
        configured: the server's settings as its configuration says.
        is_live: whether a setting may change while the server runs; no other is kept.
        where: which settings say where the file is, for errors.
    """

    def __init__(
        self,
        disk: Disk,
        path: str,
        configured: Sequence[Any],
        is_live: Callable[[Declared], bool],
        *,
        where: str = "",
    ) -> None:
        self._disk = disk
        self._path = path
        self._configured = tuple(configured)
        self._is_live = is_live
        self._where = where

    def load(self) -> tuple[Any, ...]:
        """The settings to start with: those of the configuration, with the changes that count.

        Raises:
            StoreError: the file cannot be read.
        """
        changes = self._read()
        started = tuple(self._changed(config, changes) for config in self._configured)
        try:
            for config in started:
                check(config)
        except ConfigError as error:
            logger.error(
                "the changes in %s do not fit the configuration any more and are left out: %s",
                self._path, error,
            )  # fmt: skip
            return self._configured
        return started

    def save(self, now: Sequence[Any]) -> None:
        """Writes what differs from the configuration.

        Args:
            now: the settings, in the order of `configured`.

        Raises:
            OSError: the disk refuses it.
        """
        changes = {
            declared.key: KeptChange(to_text(getattr(before, name)), to_text(getattr(after, name)))
            for before, after in zip(self._configured, now, strict=True)
            for name, declared in settings_of(before.__class__).items()
            if getattr(before, name) != getattr(after, name) and self._is_live(declared)
        }
        if changes or self._disk.read(self._path) is not None:
            self._disk.make_directory(os.path.dirname(self._path) or ".")
            encoded = msgspec.json.format(msgspec.json.encode(changes), indent=2)
            self._disk.replace(self._path, encoded)

    def _read(self) -> Mapping[str, KeptChange]:
        fault: Exception | None = None
        for path in (self._path, f"{self._path}.bak"):
            try:
                content = self._disk.read(path)
                if content is not None:
                    return msgspec.json.decode(content, type=dict[str, KeptChange])
            except (OSError, msgspec.MsgspecError, UnicodeError) as error:
                fault = error
                logger.warning("%s cannot be read: %s", path, error)
        if fault is not None:
            raise StoreError(
                f"{self._path} cannot be read: {fault}. It has settings that were changed while "
                "the server ran; without the file, those of the configuration count. "
                f"{self._where}"
            )
        return {}

    def _changed(self, config: Any, changes: Mapping[str, KeptChange]) -> Any:
        values: dict[str, Any] = {}
        for name, declared in settings_of(config.__class__).items():
            change = changes.get(declared.key)
            if change is None or not self._is_live(declared):
                continue
            configured = to_text(getattr(config, name))
            if configured != change.configured:
                logger.warning(
                    "%s is %s, as the configuration says since it was changed; %s, which was set "
                    "while the server ran, counts no more",
                    _name(declared), configured, change.changed,
                )  # fmt: skip
                continue
            try:
                values[name] = from_text(declared, change.changed)
            except ConfigError as error:
                logger.error("%s of %s %s", _name(declared), self._path, error)
                continue
            logger.warning(
                "%s is %s, as it was set while the server ran; the configuration says %s",
                _name(declared), change.changed, configured,
            )  # fmt: skip
        return replace(config, **values) if values else config


def _name(declared: Declared) -> str:
    return next(iter(declared.rocketmq_names), declared.key)
