"""The number of undecided transactions by topic: the table of `config/transactionMetrics`.

    {"dataVersion":{...},"transactionCount":{topic:{"count":3,"timeStamp":1690000000000}}}

It is written for a Java broker that takes over the store and continues the count. Sprocket counts
with the ledger, so it never reads the file. Source: TransactionMetrics of RocketMQ 5.x.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sprocket.base.ports import Clock
from sprocket.transaction.ledger import Ledger


class UndecidedCounts:
    """The table, as a view of the ledger."""

    def __init__(self, ledger: Ledger, clock: Clock) -> None:
        self._ledger = ledger
        self._clock = clock
        self._saved = 0
        self._shown: dict[str, tuple[int, int]] = {}

    @property
    def is_changed(self) -> bool:
        """Whether it has changed since it was last saved."""
        return self._ledger.changes != self._saved

    @is_changed.setter
    def is_changed(self, is_changed: bool) -> None:
        self._saved = -1 if is_changed else self._ledger.changes

    def to_json(self) -> dict[str, Any]:
        """The content of the file. Topics without undecided transactions stay in it, as in Java."""
        now_ms = self._clock.now_ms()
        for topic in {*self._ledger.by_topic, *self._shown}:
            count = self._ledger.by_topic.get(topic, 0)
            if self._shown.get(topic, (-1, 0))[0] != count:
                self._shown[topic] = count, now_ms
        newest_ms = max((at_ms for _, at_ms in self._shown.values()), default=0)
        return {
            "dataVersion": {
                "counter": self._ledger.changes, "stateVersion": 0, "timestamp": newest_ms,
            },
            "transactionCount": {
                topic: {"count": count, "timeStamp": at_ms}
                for topic, (count, at_ms) in sorted(self._shown.items())
            },
        }  # fmt: skip

    def load(self, state: Mapping[str, Any]) -> None:
        """Does nothing: the ledger is built from the store."""
