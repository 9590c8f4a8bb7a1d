"""The timers of a slave: they put on the wheel what the log brings, and deliver nothing.

The master says how far its timers are. So a slave that becomes a master continues in the slot in
which the master was, with its own wheel, and has to look for deliveries in the end of the log only.
Source: TimerMessageStore.isRunningDequeue of RocketMQ 5.3, where slaves do the same.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import NamedTuple

from sprocket.base.deadline import loop_ms
from sprocket.base.errors import StoreError
from sprocket.base.troubles import Troubles
from sprocket.delay.timers.timers import Timers

logger = logging.getLogger(__name__)

#: Pause between two steps, s.
_PAUSE_SECONDS = 0.2


class _FollowedSlot(NamedTuple):
    slot_ms: int
    delivered_from: int
    queue_then: int


class TimerFollowing:
    """Keeps the timers of a slave as its master's.

    Args:
        timers: not started, or stopped from delivering.
        save_ms: gives the pause between two saves of their files.
    """

    def __init__(self, timers: Timers, save_ms: Callable[[], int]) -> None:
        self._timers = timers
        self._save_ms = save_ms
        self._newest: _FollowedSlot | None = None
        self._troubles = Troubles(lambda: asyncio.get_running_loop().time(), logger)

    def learn(self, slot_ms: int, delivered_from: int, queue_then: int) -> None:
        """Records how far the master's timers are; the log that this refers to is here."""
        self._newest = _FollowedSlot(slot_ms, delivered_from, queue_then)

    async def run(self) -> None:
        """Follows until cancelled.

        Raises:
            StoreError, ConfigError: the files cannot be opened.
        """
        await self._timers.start()
        saved_ms = loop_ms()
        while True:
            await asyncio.sleep(_PAUSE_SECONDS)
            if self._newest is None:
                continue
            try:
                await self._step(self._newest)
                if self._timers.is_in_use and loop_ms() - saved_ms >= self._save_ms():
                    saved_ms = loop_ms()
                    await self._timers.save()
            except (StoreError, OSError) as error:
                self._troubles.failed("timers", "the timers of this slave are behind", error)
            else:
                self._troubles.ended("timers", "the timers of this slave follow again")

    async def _step(self, newest: _FollowedSlot) -> None:
        self._timers.follow(*newest)
        while self._timers.is_in_use and self._timers.catch_up():  # noqa: ASYNC110 - a step each
            await asyncio.sleep(0)
