"""Which keys the table of consumer offsets has, by topic and by group. Pure.

Lite topics are in no index by topic: there may be a million, and whoever asks for one knows its
groups.

A key is `topic@group`, or has further parts that are kept unchanged. What concerns one topic or one
group visits its own keys only: a broker has hundreds of thousands.
"""

from __future__ import annotations

from collections.abc import Iterable

from sprocket.message.lite import QUEUE_PREFIX

SEPARATOR = "@"


class OffsetKeys:
    """An index of keys; adding a key twice, or removing one that is missing, changes nothing.

    Attributes:
        topics: topics by group, from keys of the usual form with committed offsets.
        groups: groups by topic, from the same keys.
    """

    def __init__(self) -> None:
        self.topics: dict[str, dict[str, None]] = {}
        self.groups: dict[str, dict[str, None]] = {}
        self._of_topic: dict[str, dict[str, None]] = {}
        self._of_group: dict[str, dict[str, None]] = {}

    def add(self, key: str, *, is_committed: bool) -> None:
        """Adds a key.

        Args:
            is_committed: whether it has committed offsets, and not only those of pulls.
        """
        topic, *rest = key.split(SEPARATOR)
        if rest:
            self._of_group.setdefault(rest[0], {})[key] = None
        if topic.startswith(QUEUE_PREFIX):
            return
        self._of_topic.setdefault(topic, {})[key] = None
        if is_committed and len(rest) == 1:
            self.topics.setdefault(rest[0], {})[topic] = None
            self.groups.setdefault(topic, {})[rest[0]] = None

    def remove(self, key: str) -> None:
        """Removes a key."""
        topic, *rest = key.split(SEPARATOR)
        _drop(self._of_topic, topic, key)
        if rest:
            _drop(self._of_group, rest[0], key)
        if len(rest) == 1:
            _drop(self.topics, rest[0], topic)
            _drop(self.groups, topic, rest[0])

    def of_topic(self, topic: str) -> list[str]:
        """The keys of a topic, of any form."""
        return list(self._of_topic.get(topic, ()))

    def of_group(self, group: str) -> list[str]:
        """The keys of a group, of any form."""
        return list(self._of_group.get(group, ()))

    def validate(self, committed: Iterable[str], pulled: Iterable[str]) -> None:
        """Asserts that these are the keys with committed offsets, and those with pulled ones."""
        expected = OffsetKeys()
        for key in committed:
            expected.add(key, is_committed=True)
        for key in pulled:
            expected.add(key, is_committed=False)
        assert vars(self) == vars(expected)


def _drop(index: dict[str, dict[str, None]], name: str, entry: str) -> None:
    entries = index.get(name)
    if entries is not None:
        entries.pop(entry, None)
        if not entries:
            del index[name]
