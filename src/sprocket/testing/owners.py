"""Measures how long queues have no owner when members come, leave and die."""

from __future__ import annotations

import asyncio
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
        journal: tells what happened last, and is told of gaps in its groups' records.
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
        #: By group, what happened last, and when.
        self._last: dict[str, tuple[str, float]] = {}

    async def watch(self) -> None:
        """Looks until cancelled."""
        while True:
            self._look()
            await asyncio.sleep(_STEP)

    def _look(self) -> None:
        events = self._journal.events
        for event in events[self._read :]:
            if event.what in _CAUSES:
                self._last[event.who.rpartition("-")[0]] = (_CAUSES[event.what], event.at)
        self._read = len(events)
        for group in self._groups:
            owned = {
                queue
                for member in group.members
                if not member.process.is_stopped
                for queue in member.queues
            }
            for queue in self._queues(group):
                self._see(group, queue, is_owned=queue in owned)

    def _see(self, group: Group, queue: QueueId, *, is_owned: bool) -> None:
        place, now = (group.style.name, queue), self._journal.now
        since = self._since.get(place, -1.0)
        if is_owned:
            if since is not None and since >= 0:
                cause, _ = self._last.get(group.style.name, ("other", 0.0))
                group.records[0].gaps[cause].append(now - since)
            self._since[place] = None
        elif since is None:
            self._since[place] = now
