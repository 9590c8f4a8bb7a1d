"""Notifies the members of consumer groups that a member joined or left, so that they rebalance.

In a small group each change is sent to all members at once, as in RocketMQ. In a large one that
would cost the square of its members when they all come or go: there the changes of a tenth of a
second become one notice for each member, and a turn of the loop sends a bounded number.
Source: DefaultConsumerIdsChangeListener of RocketMQ 5.x.
"""

from __future__ import annotations

import asyncio

from sprocket.broker.members.callbacks import notify_members
from sprocket.broker.tables.clients import ClientTable, ConsumerGroup

#: Up to so many members a group is notified at once.
SMALL_GROUP_MAX = 64
#: How long the changes of larger groups are collected, s.
PAUSE_SECONDS = 0.1
#: Notices in one turn of the loop; each takes some 15 µs.
_NOTICES_AT_ONCE = 64


class MemberNotices:
    """Sends the notices, at once or collected."""

    def __init__(self, clients: ClientTable) -> None:
        self._clients = clients
        #: Large groups that have changed, in the order of their first change.
        self._changed: dict[str, None] = {}
        self._has_changed = asyncio.Event()

    def group_changed(self, group: ConsumerGroup) -> None:
        """Notifies a group's members, soon if they are many."""
        if group.name not in self._changed:
            if len(group.members) <= SMALL_GROUP_MAX:
                notify_members(group.name, group.members.values())
                return
            self._changed[group.name] = None
            self._has_changed.set()

    # What changes while the notices of a round are sent belongs to the next round. Members that
    # join meanwhile get theirs then, and those that left are skipped by their closed connections.
    async def run(self) -> None:
        """Sends the collected notices, until cancelled."""
        while True:
            await self._has_changed.wait()
            await asyncio.sleep(PAUSE_SECONDS)
            self._has_changed.clear()
            changed, self._changed = self._changed, {}
            for name in changed:
                group = self._clients.group(name)
                members = [] if group is None else list(group.members.values())
                for begin in range(0, len(members), _NOTICES_AT_ONCE):
                    notify_members(name, members[begin : begin + _NOTICES_AT_ONCE])
                    await asyncio.sleep(0)
