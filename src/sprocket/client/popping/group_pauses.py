"""When messages that failed come again: as the group's policy at their broker says.

It is asked for when a message fails, and again some time later, since operators change it while
consumers run. A broker that does not tell it has RocketMQ's usual pauses.
"""

from __future__ import annotations

import asyncio

from sprocket.base.deadline import Deadline
from sprocket.base.errors import SprocketError
from sprocket.client.session.session import Session
from sprocket.clientcore.pops import retry_ms
from sprocket.clientcore.retry_policy import pause_ms
from sprocket.message.popped_message import PoppedMessage
from sprocket.protocol.bodies import GroupConfig
from sprocket.protocol.requests.group import GroupConfigOf

#: For how long an answer counts.
_FRESH_SECONDS = 30.0
#: A broker may take so long; the message that failed waits for it.
_ANSWER_SECONDS = 1.0


class GroupPauses:
    """The pauses of one group."""

    def __init__(self, session: Session, group: str) -> None:
        self._session = session
        self._group = group
        self._loop = asyncio.get_running_loop()
        #: By broker, who asks or has asked it, and until when the answer counts.
        self._asked: dict[str, tuple[asyncio.Task[GroupConfig], float]] = {}

    async def of(self, message: PoppedMessage, delay_level: int) -> int:
        """For how long a message that failed stays invisible, ms.

        Args:
            delay_level: that delay, if it is not 0.
        """
        if delay_level > 0:
            return retry_ms(message.reconsume_times, delay_level)
        return pause_ms(await self._config(message.handle.broker), message.reconsume_times)

    async def _config(self, broker: str) -> GroupConfig:
        asked, until = self._asked.get(broker, (None, 0.0))
        now = self._loop.time()
        if asked is None or (asked.done() and now >= until):
            asked = asyncio.ensure_future(self._ask(broker))
            self._asked[broker] = asked, now + _FRESH_SECONDS
        return await asyncio.shield(asked)

    async def _ask(self, broker: str) -> GroupConfig:
        address = self._session.routes.address(broker)
        if address is None:
            return GroupConfig()
        try:
            header, deadline = GroupConfigOf(group=self._group), Deadline.after(_ANSWER_SECONDS)
            reply = await self._session.pool.ask(address, header, deadline=deadline)
            return GroupConfig.decode(reply.body)
        except SprocketError:
            return GroupConfig()

    async def close(self) -> None:
        """Asks nobody any more."""
        tasks = [task for task, _ in self._asked.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
