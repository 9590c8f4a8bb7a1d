"""Warns of consumer groups whose members disagree, and of clients with the same client id.

Members with other subscriptions, or another way to consume, leave messages unread that nobody
misses at once; two members with one client id consume the same queues. It is reported once for each
group and change, then rarely, and once when it is over. The reply to a heartbeat has the warning as
its remark, which Java's clients ignore and Sprocket's log.
"""

from __future__ import annotations

import asyncio
import logging

from sprocket.base.troubles import Troubles
from sprocket.broker.tables.clients import ClientInfo, ConsumerGroup

logger = logging.getLogger(__name__)


class Harmony:
    """What is wrong in the consumer groups of a broker."""

    def __init__(self) -> None:
        self._troubles = Troubles(lambda: asyncio.get_running_loop().time(), logger)

    def warnings(self, group: ConsumerGroup, client: ClientInfo) -> list[str]:
        """Reports what is wrong with a group, seen from a member that sent a heartbeat.

        Returns:
            What the member is to know.
        """
        found = []
        if group.discord:
            found.append(group.discord)
            name = f"discord {group.name}"
            is_new = self._troubles.reported(name) not in (None, group.discord)
            self._troubles.failed(name, group.discord, is_new=is_new)
        elif self._troubles.is_any:
            self.left(group)
        name = f"twins {group.name} {client.client_id}"
        if (twin := group.twin_of(client)) is not None:
            one, other = sorted((twin.address, client.address))
            text = (
                f"two clients of consumer group {group.name} call themselves {client.client_id}, "
                f"from {one} and {other}: they consume the same queues, and each needs an instance "
                "name of its own"
            )
            found.append(text)
            self._troubles.failed(name, text)
        elif self._troubles.is_any:
            self._troubles.ended(name, f"only one client of {group.name} is {client.client_id} now")
        return found

    def left(self, group: ConsumerGroup) -> None:
        """A member has left a group, or has changed what it wants."""
        if self._troubles.is_any and not group.discord:
            self._troubles.ended(
                f"discord {group.name}", f"the members of consumer group {group.name} agree again"
            )
