"""The result of loading settings: values with their origins, and everything that is wrong. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from sprocket.base.config import (
    Declared,
    conflicts,
    declared_by,
    part_of,
    remarks,
)
from sprocket.base.errors import ConfigError
from sprocket.base.setting_values import from_text

T = TypeVar("T")

#: The origin of a value that nobody set.
DEFAULT = "default"


class LoadedConfig:
    """Collects values from all sources, the later ones last, and builds the configurations.

    Attributes:
        notes: warnings, one line each.
        faults: what is wrong, one line each, with place, name and value.
        origins: by `part.name`, the source of its value.
    """

    def __init__(self, kinds: Sequence[type]) -> None:
        self.kinds = tuple(kinds)
        self.notes: list[str] = []
        self.faults: list[str] = []
        self.origins: dict[str, str] = {}
        self._given: dict[str, Any] = {}
        self._wrong: set[str] = set()
        self._made: dict[type, Any] = {}

    @property
    def declared(self) -> Mapping[str, Declared]:
        """All settings of the kinds, by `part.name`."""
        return declared_by(self.kinds)

    def of(self, kind: type[T]) -> T:
        """The configuration of one part."""
        made: T = self._made[kind]
        return made

    def of_part(self, part: str) -> Any:
        """The configuration of the part with this name."""
        return next(made for kind, made in self._made.items() if part_of(kind) == part)

    def set_text(self, declared: Declared, text: str, origin: str, name: str | None = None) -> None:
        """Records a value that is given as text; see `set`."""
        try:
            value = from_text(declared, text)
        except ConfigError as error:
            self._refuse(declared, str(error), origin, name)
            return
        self.set(declared, value, origin, name)

    def set(self, declared: Declared, value: Any, origin: str, name: str | None = None) -> None:
        """Records a value; a later one replaces it. One that is wrong becomes a fault.

        Args:
            origin: the place where it stands, for messages.
            name: the name it has there, if that is not `part.name`.
        """
        if complaint := declared.complaint(value):
            self._refuse(declared, complaint, origin, name)
            return
        if doubt := declared.doubt(value):
            self.notes.append(f"{origin}: {_called(declared, name)} {doubt}")
        self._given[declared.key] = value
        self.origins[declared.key] = origin

    def _refuse(self, declared: Declared, complaint: str, origin: str, name: str | None) -> None:
        self.faults.append(f"{origin}: {_called(declared, name)} {complaint}")
        self._wrong.add(declared.key)

    def make(self) -> None:
        """Builds the configurations from the recorded values.

        Raises:
            ConfigError: something is wrong; the text has a line for each fault.
        """
        given: dict[str, dict[str, Any]] = defaultdict(dict)
        for key, value in self._given.items():
            part, _, name = key.partition(".")
            given[part][name] = value
        self.origins = {**dict.fromkeys(self.declared, DEFAULT), **self.origins}
        for kind in self.kinds:
            part = part_of(kind)
            made = kind(**given[part])
            for conflict in conflicts(made):
                keys = [f"{part}.{name}" for name in conflict.names]
                if not self._wrong.intersection(keys):
                    origin = next((self.origins[k] for k in keys if self.origins[k] != DEFAULT), "")
                    place = f"{origin}: " if origin else ""
                    self.faults.append(f"{place}{keys[0]} {conflict.text}")
            self._made[kind] = made
            self.notes += remarks(made)
        if self.faults:
            raise ConfigError("\n".join(dict.fromkeys(self.faults)))


def _called(declared: Declared, name: str | None) -> str:
    """A setting's name in a message: the one it has in its file, and ours."""
    return declared.key if name in (None, declared.key) else f"{name} ({declared.key})"
