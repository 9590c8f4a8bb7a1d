"""What the tables of topics and of consumer groups have in common: configurations by name."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Generic, TypeVar

import msgspec

from sprocket.base.errors import StoreError
from sprocket.base.ports import Clock
from sprocket.protocol.bodies import DataVersion

C = TypeVar("C")


class ConfigTable(Generic[C]):
    """Configurations by name.

    Args:
        by_name: those that are there from the start.
        on_change: called with the name of each that was created, changed or removed.

    Attributes:
        by_name: the configurations; for reading only. One that changes is replaced, so that a copy
            of the table stays as it is.
        version: rises with each change.
    """

    def __init__(
        self, by_name: dict[str, C], *, clock: Clock, on_change: Callable[[str], None]
    ) -> None:
        self.by_name = by_name
        self.version = DataVersion(timestamp=clock.now_ms())
        self._clock = clock
        self._on_change = on_change

    def get(self, name: str) -> C | None:
        """A configuration, or None."""
        return self.by_name.get(name)

    async def save_or_undo(
        self,
        save: Callable[[], Awaitable[None]],
        made: Mapping[str, C],
        before: Mapping[str, C | None],
    ) -> None:
        """Saves creations and changes. If that fails they are taken back, but for what somebody has
        changed since.

        Args:
            save: returns when the table's file contains them.
            made: each as it was put, by name.
            before: each as it was before; None for one that did not exist.

        Raises:
            StoreError: the file cannot be written.
        """
        try:
            await save()
        except StoreError as error:
            for name, config in made.items():
                if self.by_name.get(name) is config:
                    self._replace(name, before[name])
            raise StoreError(f"nothing is created or changed: {error}") from error

    def _replace(self, name: str, config: C | None) -> None:
        """Makes one as it is to be; None if it is to be gone."""
        if config is None:
            self.by_name.pop(name, None)
        else:
            self.by_name[name] = config
        self._changed(name)

    def _changed(self, name: str) -> None:
        self.version = self.version.after_change(self._clock.now_ms())
        self._on_change(name)

    def _load_version(self, state: Mapping[str, Any]) -> None:
        """Loads the version from the JSON of the table's file.

        Raises:
            msgspec.ValidationError: the JSON has another form.
        """
        if version := state.get("dataVersion"):
            self.version = msgspec.convert(version, DataVersion, strict=False)
