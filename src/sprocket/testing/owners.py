"""Measures how long queues have no owner, or two, when members join, leave and die."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence

from sprocket.message.queue import QueueId
from sprocket.testing.crowd import Group
from sprocket.testing.journal import Journal

#: Seconds between two measurements.
_STEP = 0.05
#: The cause of a gap, by the journal's text for the event.
_CAUSES = {"joins": "join", "leaves": "leave", "is killed": "kill"}


class Owners:
    """Measures which member owns which queue.

    Args:
        journal: has the events that cause gaps; the records of its groups get gaps and overlaps.
        groups: the groups; only those are measured whose members share queues.
        queues: returns all queues of a group.
    """

    def __init__(
        self,
        journal: Journal,
        groups: Sequence[Group],
        queues: Callable[[Group], list[QueueId]],
    ) -> None:
        self._journal = journal
        self._groups = [group for group in groups if group.style.is_shared]
        self._queues = queues
        self._read = 0
        #: By group and queue, since when it has no owner; absent before its first owner.
        self._since: dict[tuple[str, QueueId], float | None] = {}
        #: By group and queue, since when it has more than one owner.
        self._shared_since: dict[tuple[str, QueueId], float] = {}
        #: By group, the number of owners of each queue at the last measurement.
        self._before: dict[str, Counter[QueueId]] = {}
        #: By group, the last cause.
        self._last: dict[str, str] = {}

    async def watch(self) -> None:
        """Measures until it is cancelled."""
        while True:
            self._measure()
            await asyncio.sleep(_STEP)

    def _measure(self) -> None:
        events = self._journal.events
        for event in events[self._read :]:
            if event.what in _CAUSES:
                self._last[event.who.rpartition("-")[0]] = _CAUSES[event.what]
        self._read = len(events)
        for group in self._groups:
            owned = Counter(
                queue
                for member in group.members
                if not member.process.is_stopped
                for queue in member.queues
            )
            if owned == self._before.get(group.style.name):
                continue
            self._before[group.style.name] = owned
            for queue in self._queues(group):
                self._see(group, queue, owners=owned[queue])

    def _see(self, group: Group, queue: QueueId, *, owners: int) -> None:
        place, now = (group.style.name, queue), self._journal.now
        cause, record = self._last.get(group.style.name, "other"), group.records[0]
        if owners > 1:
            self._shared_since.setdefault(place, now)
        elif place in self._shared_since:
            record.overlaps[cause].append(now - self._shared_since.pop(place))
        since = self._since.get(place, -1.0)
        if owners:
            if since is not None and since >= 0:
                record.gaps[cause].append(now - since)
            self._since[place] = None
        elif since is None:
            self._since[place] = now
