"""Measures how long queues have no owner, or two, when members come, leave and die."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence

from sprocket.message.queue import QueueId
from sprocket.testing.crowd import Group
from sprocket.testing.journal import Journal

#: Seconds between two looks.
_STEP = 0.05
#: What a gap is put down to, by a word of the journal.
_CAUSES = {"joins": "join", "leaves": "leave", "is killed": "kill"}


class Owners:
    """Looks which member has which queue.

    Args:
        journal: tells what happened last, and is told of gaps and overlaps in its groups' records.
        groups: whom to look at; only those whose members share queues.
        queues: all queues of a group.
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
        #: By group and queue, since when nobody has it; absent as long as nobody ever had.
        self._since: dict[tuple[str, QueueId], float | None] = {}
        #: By group and queue, since when more than one has it.
        self._shared_since: dict[tuple[str, QueueId], float] = {}
        #: By group, how many had each queue at the last look.
        self._before: dict[str, Counter[QueueId]] = {}
        #: By group, what happened last.
        self._last: dict[str, str] = {}

    async def watch(self) -> None:
        """Looks until cancelled."""
        while True:
            self._look()
            await asyncio.sleep(_STEP)

    def _look(self) -> None:
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
