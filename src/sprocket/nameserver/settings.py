"""The name server's key-value settings: texts under a namespace and a key. Pure.

They are stored as one JSON object, `{"configTable":{namespace:{key:value}}}`.
Source: KVConfigSerializeWrapper of RocketMQ 4.x and 5.x.
"""

from __future__ import annotations

import msgspec

from sprocket.base.errors import CorruptRecord, InvalidParameter, SystemFailure

#: The namespace with the brokers and numbers of queues of ordered topics.
ORDER_NAMESPACE = "ORDER_TOPIC_CONFIG"

#: The most characters of a namespace or key, and of a value.
NAME_MAX = 1_024
VALUE_MAX = 65_536


class _SettingsFile(msgspec.Struct, rename="camel"):
    config_table: dict[str, dict[str, str]] = {}


class KeyValueSettings:
    """The table of settings. It checks every name and value."""

    def __init__(self, *, entries_max: int = 100_000) -> None:
        #: It never contains an empty namespace.
        self._table: dict[str, dict[str, str]] = {}
        self._entries_max = entries_max

    def limit(self, entries_max: int) -> None:
        """Changes how many values there may be."""
        self._entries_max = entries_max

    def put(self, namespace: str, key: str, value: str) -> None:
        """Sets or replaces a value.

        Raises:
            InvalidParameter: a name is empty or too long, or the value is too long.
            SystemFailure: the table is full.
        """
        for name in (namespace, key):
            if not name or len(name) > NAME_MAX:
                raise InvalidParameter(f"namespace and key have 1 to {NAME_MAX} characters")
        if len(value) > VALUE_MAX:
            raise InvalidParameter(f"a value has at most {VALUE_MAX} characters")
        if self.get(namespace, key) is None and self.count() >= self._entries_max:
            raise SystemFailure(f"there are {self._entries_max} settings, no more are taken")
        self._table.setdefault(namespace, {})[key] = value

    def get(self, namespace: str, key: str) -> str | None:
        """A value, or None if it is not set."""
        return self._table.get(namespace, {}).get(key)

    def delete(self, namespace: str, key: str) -> None:
        """Deletes a value; no error if it is not set."""
        keys = self._table.get(namespace, {})
        keys.pop(key, None)
        if not keys:
            self._table.pop(namespace, None)

    def of(self, namespace: str) -> dict[str, str] | None:
        """All values of a namespace by key, sorted; None if it has none."""
        keys = self._table.get(namespace)
        return dict(sorted(keys.items())) if keys else None

    def count(self) -> int:
        """The number of values."""
        return sum(map(len, self._table.values()))

    def encode(self) -> bytes:
        """The table as the file's content."""
        ordered = {namespace: self.of(namespace) or {} for namespace in sorted(self._table)}
        return msgspec.json.format(msgspec.json.encode(_SettingsFile(ordered)), indent=2)

    def decode(self, content: bytes) -> None:
        """Replaces the table by a file's content.

        Raises:
            CorruptRecord: the content is no such table.
        """
        try:
            table = msgspec.json.decode(content, type=_SettingsFile).config_table
        except (msgspec.MsgspecError, UnicodeError) as error:
            raise CorruptRecord(f"no key-value settings: {error}") from None
        self._table = {namespace: dict(keys) for namespace, keys in table.items() if keys}

    def validate(self) -> None:
        """Asserts the invariants."""
        assert all(self._table.values())
