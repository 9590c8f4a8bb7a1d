"""Pops of lite topics that found no message, and wait for one: each at its client.

A held pop is a suspended coroutine. What becomes ready for some clients wakes one pop of one of
them, by turns; the message is ready for all of them, so nothing is lost if that client is gone.
Source: PopLiteLongPollingService of RocketMQ 5.5.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from sprocket.base.deadline import Deadline
from sprocket.broker.settings import BrokerSettings


class HeldLitePops:
    """The pops that wait.

    Attributes:
        count: how many.
        is_stopped: whether the broker stops, so that nothing waits any more.
    """

    def __init__(self, settings: BrokerSettings) -> None:
        self._settings = settings
        self._waiting: dict[str, dict[asyncio.Future[None], None]] = {}
        self._turn = 0
        self.count = 0
        self.is_stopped = False

    def is_full(self, client_id: str) -> bool:
        """Whether no more pops of a client may wait."""
        config = self._settings.config
        return (
            self.count >= config.held_pops_max
            or len(self._waiting.get(client_id, ())) >= config.held_pops_queue_max
        )

    async def wait(self, client_id: str, deadline: Deadline, on_lost: Callable[[], None]) -> None:
        """Waits until there may be a message, or until the deadline.

        Args:
            on_lost: called if it was woken, and is cancelled nevertheless: another one should be.
        """
        if self.is_stopped:
            return
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(client_id, {})[future] = None
        self.count += 1
        try:
            async with asyncio.timeout_at(deadline.at):
                await future
        except TimeoutError:
            return
        except asyncio.CancelledError:
            if future.done() and not future.cancelled():
                self._forget(client_id, future)
                on_lost()
            raise
        finally:
            self.count -= 1
            self._forget(client_id, future)

    def _forget(self, client_id: str, future: asyncio.Future[None]) -> None:
        futures = self._waiting.get(client_id, {})
        futures.pop(future, None)
        if not futures:
            self._waiting.pop(client_id, None)

    def wake(self, clients: Sequence[str]) -> None:
        """Wakes one pop of the first of some clients that has one, by turns."""
        if len(clients) > 1:
            self._turn = (self._turn + 1) % len(clients)
            clients = [*clients[self._turn :], *clients[: self._turn]]
        for client_id in clients:
            for future in self._waiting.get(client_id, ()):
                if not future.done():
                    future.set_result(None)
                    return

    def end(self, client_id: str) -> None:
        """Ends the wait of all pops of a client."""
        for future in self._waiting.get(client_id, ()):
            if not future.done():
                future.set_result(None)

    def stop(self) -> None:
        """Ends the wait of all, and holds no further ones."""
        self.is_stopped = True
        for client_id in list(self._waiting):
            self.end(client_id)
