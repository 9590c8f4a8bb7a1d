"""What happens to popped messages whose listener failed: they stay invisible until they are due.

So no copy of them is stored, but for dead letters. A message that came by a pull is sent back.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from sprocket.base.deadline import Deadline
from sprocket.base.errors import HandleExpired, SprocketError
from sprocket.client.delivery.redeliver import RedeliveryPolicy
from sprocket.client.popping.group_pauses import GroupPauses
from sprocket.client.popping.pop_client import PopClient
from sprocket.client.popping.popped_window import PoppedWindow
from sprocket.message.message import StoredMessage
from sprocket.message.popped_message import PoppedMessage

logger = logging.getLogger(__name__)


class PopRedelivery:
    """Changes for how long messages that failed are invisible.

    Args:
        pops: asks the brokers.
        window_of: returns the window that holds a message; None if none does.
        pulled: what happens to messages that were pulled.
        pauses: when messages come again.
        reconsume_max: after so many failures a message becomes a dead letter.
        timeout_ms: how long a request may be repeated.
    """

    def __init__(
        self,
        pops: PopClient,
        window_of: Callable[[PoppedMessage], PoppedWindow | None],
        *,
        pulled: RedeliveryPolicy,
        pauses: GroupPauses,
        reconsume_max: int,
        timeout_ms: int,
    ) -> None:
        self._pops = pops
        self._window_of = window_of
        self._pulled = pulled
        self._pauses = pauses
        self._reconsume_max = reconsume_max
        self._timeout_ms = timeout_ms

    async def give_back(self, message: StoredMessage, delay_level: int = 0) -> bool:
        """Has a message come again, or makes it a dead letter; returns False if that fails.

        A message that cannot be hidden for its delay comes again after its invisible time.
        """
        if not isinstance(message, PoppedMessage):
            return await self._pulled.give_back(message, delay_level)
        window = self._window_of(message)
        if window is None:
            return True
        while (changing := window.changing(message)) is not None:
            await asyncio.wait([changing])
        if not window.holds(message):
            return True
        is_dead = delay_level < 0 or message.reconsume_times >= self._reconsume_max
        end = window.begin_change(message)
        try:
            if is_dead:
                await self._pops.bury(message, self._deadline())
            else:
                hidden_ms = await self._pauses.of(message, delay_level)
                await self._pops.hide(message, hidden_ms, self._deadline())
        except HandleExpired:  # it comes again anyway
            pass
        except SprocketError as error:
            logger.info("%s at %d: give back: %s", message.queue, message.queue_offset, error)
            if is_dead:
                return False
        finally:
            end()
        window.discard(message)
        return True

    def _deadline(self) -> Deadline:
        return Deadline.after_ms(self._timeout_ms)
