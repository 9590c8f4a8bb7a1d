"""Finds topics that match a consumer's patterns: at each route refresh, and for a new pattern."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence

from sprocket.base.deadline import Deadline
from sprocket.base.errors import SprocketError, UsageError
from sprocket.client.base.waiting import either
from sprocket.client.config import ClientConfig
from sprocket.client.group.subscriptions import Subscriptions
from sprocket.client.session.session import Session

logger = logging.getLogger(__name__)

_SEARCH = "list the topics for its patterns"


class Discovery:
    """Updates subscriptions by pattern when topics appear or disappear.

    Args:
        session: connections and routes.
        subscriptions: the subscriptions.
        on_change: is called after a change, with the topics that have appeared since the first
            search; the group consumes them from their first message on.
        config: how often to search, and how long a name server may take.
    """

    def __init__(
        self,
        session: Session,
        subscriptions: Subscriptions,
        on_change: Callable[[Sequence[str]], None],
        config: ClientConfig,
    ) -> None:
        self._session = session
        self._subscriptions = subscriptions
        self._on_change = on_change
        self._seconds = config.route_refresh_ms / 1000
        self._timeout_ms = config.call_timeout_ms
        self._now = asyncio.Event()
        #: All topics that have been listed so far; None before the first list.
        self._known: set[str] | None = None
        self._task: asyncio.Task[None] | None = None

    def discover_soon(self) -> None:
        """Starts a search now, for a new pattern."""
        self._now.set()

    async def start(self) -> None:
        """Searches once, if there is a pattern, and then periodically in the background."""
        await self._discover()
        self._task = asyncio.ensure_future(self._discover_loop())

    async def close(self) -> None:
        """Stops the search."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    async def _discover_loop(self) -> None:
        while True:
            await either(self._now, self._seconds)
            self._now.clear()
            try:
                await self._discover()
            except Exception:  # root of a task: subscriptions stay, and the search is repeated
                logger.exception("the search for matching topics failed")

    async def _discover(self) -> None:
        if not self._subscriptions.has_patterns:
            return
        try:
            names = await self._session.routes.names(Deadline.after_ms(self._timeout_ms))
            version = self._session.world.clock.now_ms()
            found, gone = self._subscriptions.listed(names, version=version)
        except (SprocketError, UsageError) as error:
            self._session.reachability.refused(f"client {self._session.client_id}", _SEARCH, error)
            return
        self._session.reachability.succeeded(f"client {self._session.client_id}", _SEARCH)
        fresh = [] if self._known is None else [each for each in found if each not in self._known]
        #: A topic that is gone and comes again is another one.
        self._known = {*(self._known or ()), *names} - set(gone)
        for topic in found:
            logger.info("topic %s matches a pattern and is subscribed now", topic)
        for topic in gone:
            logger.info("topic %s no longer exists and is not subscribed any more", topic)
        if found or gone:
            self._on_change(fresh)
