"""The table of uploaded filters, with a state file, `config/filterCode.json`. Pure.

A filter belongs to one group and one topic. The last few versions of each name are kept, so that
members of a group with different versions do not replace each other's; a subscription without a
version gets the newest.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import msgspec

from sprocket.base.errors import SystemBusy

#: The most versions of one filter, and the most filters.
VERSIONS_MAX = 4
FILTERS_MAX = 1_000
_BYTES_MAX = 16 << 20

Key = tuple[str, str, str]


def key_text(key: Key) -> str:
    """A key as one text, which `key_in` reads; no name has a line break."""
    return "\n".join(key)


def key_in(text: str) -> Key:
    """The key in a text of `key_text`.

    Raises:
        ValueError: it is no such text.
    """
    group, topic, name = text.split("\n")
    return group, topic, name


class Uploaded(msgspec.Struct, rename="camel"):
    """One version of a filter.

    Attributes:
        uploaded_ms, uploaded_by: when it was uploaded, and from which address.
        off: why it is switched off; empty if it is on.
    """

    group: str
    topic: str
    name: str
    version: str
    source: str
    uploaded_ms: int
    uploaded_by: str
    off: str = ""

    @property
    def key(self) -> Key:
        """The common key of all its versions."""
        return self.group, self.topic, self.name

    @property
    def words(self) -> str:
        """Its description in error texts and logs."""
        return f"filter {self.name}@{self.version} of group {self.group}, topic {self.topic}"


class Uploads:
    """All uploaded filters.

    Args:
        on_change: called after each change with the filter's key, when the file must be saved.
    """

    def __init__(self, on_change: Callable[[Key], None] = lambda key: None) -> None:
        self._on_change = on_change
        self._by_key: dict[Key, dict[str, Uploaded]] = {}

    def __iter__(self) -> Iterator[Uploaded]:
        """All versions, by group, topic and name, the newest last."""
        for _, versions in sorted(self._by_key.items()):
            yield from versions.values()

    def __len__(self) -> int:
        return sum(map(len, self._by_key.values()))

    def find(self, key: Key, version: str = "") -> Uploaded | None:
        """A version, or the newest; None if there is none."""
        versions = self._by_key.get(key, {})
        if version:
            return versions.get(version)
        return next(reversed(versions.values()), None)

    def put(self, uploaded: Uploaded) -> list[Uploaded]:
        """Adds a version, or makes a known one the newest; it is switched on.

        Returns:
            The versions that were removed.

        Raises:
            SystemBusy: there are too many filters, or their sources are too large.
        """
        versions = self._by_key.get(uploaded.key, {})
        size = sum(len(each.source) for each in self) + len(uploaded.source)
        if (not versions and len(self._by_key) >= FILTERS_MAX) or size > _BYTES_MAX:
            raise SystemBusy(f"the broker has {len(self._by_key)} filters in Python, its limit")
        self._by_key[uploaded.key] = versions
        gone = [versions.pop(uploaded.version)] if uploaded.version in versions else []
        versions[uploaded.version] = uploaded
        while len(versions) > VERSIONS_MAX:
            gone.append(versions.pop(next(iter(versions))))
        self._on_change(uploaded.key)
        return gone

    def switch_off(self, uploaded: Uploaded, why: str) -> None:
        """Switches a version off."""
        uploaded.off = why
        self._on_change(uploaded.key)

    def remove(self, key: Key, version: str = "") -> list[Uploaded]:
        """Removes one or all versions, and returns them."""
        versions = self._by_key.get(key, {})
        gone = [each for each in versions.values() if version in ("", each.version)]
        for each in gone:
            del versions[each.version]
        if not versions:
            self._by_key.pop(key, None)
        if gone:
            self._on_change(key)
        return gone

    def all_keys(self) -> list[Key]:
        """The keys of all filters."""
        return list(self._by_key)

    def versions(self, key: Key) -> list[Uploaded]:
        """All versions of a filter, the newest last."""
        return list(self._by_key.get(key, {}).values())

    def copy(self, key: Key, versions: Iterable[Uploaded]) -> list[Uploaded]:
        """Makes a filter as a master has it; without versions it is gone.

        Returns:
            The versions that were there before.
        """
        before = self.versions(key)
        copied = {each.version: each for each in versions}
        if copied:
            self._by_key[key] = copied
        else:
            self._by_key.pop(key, None)
        self._on_change(key)
        return before

    def to_json(self) -> dict[str, Any]:
        """The content of the state file."""
        return {"filters": [_written(each) for each in self]}

    def load(self, state: Mapping[str, Any]) -> None:
        """Adds the content of a state file.

        Raises:
            msgspec.ValidationError, ValueError: it has another form.
        """
        for each in msgspec.convert(state.get("filters") or [], list[Uploaded]):
            each.source = b64decode(each.source, validate=True).decode()
            self._by_key.setdefault(each.key, {})[each.version] = each


def _written(each: Uploaded) -> dict[str, Any]:
    """A filter in the state file. Base64 keeps a user's source from being taken for syntax."""
    return {**msgspec.to_builtins(each), "source": b64encode(each.source.encode()).decode()}
