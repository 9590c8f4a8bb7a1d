"""Asks the brokers for their figures, once for all who look at the console."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Sequence

from sprocket.admin import brokers, positions
from sprocket.admin.brokers import BrokerProcess
from sprocket.admin.caller import Caller
from sprocket.base.errors import SprocketError
from sprocket.console.history.history import ClusterHistory

logger = logging.getLogger(__name__)

SAMPLE_SECONDS = 10.0
#: Groups whose lag is sampled, and how long after somebody looked at them, ms.
_WATCHED_MAX, _WATCHED_MS = 50, 3_600_000


class HistorySampler:
    """Samples the state of the brokers while it runs, and the lag of groups that are watched.

    Args:
        caller: asks in the name of the console itself.

    Attributes:
        history: what was sampled.
        processes: the brokers at the last sample.
        sampled_ms: when that was, ms since 1970 UTC.
        failure: why the last sample failed; None if it did not.
    """

    def __init__(self, caller: Caller, *, now_ms: Callable[[], int]) -> None:
        self._caller = caller
        self._now_ms = now_ms
        self._watched: dict[str, int] = {}
        self.history = ClusterHistory()
        self.processes: Sequence[BrokerProcess] = ()
        self.sampled_ms = 0
        self.failure: str | None = None

    async def run(self) -> None:
        """Samples until it is cancelled."""
        while True:
            await self.sample()
            await asyncio.sleep(SAMPLE_SECONDS)

    async def sample(self) -> None:
        """Samples once. What fails is remembered and logged once."""
        try:
            found = await brokers.processes(self._caller)
        except SprocketError as error:
            self._failed(str(error))
            self.processes = ()
            return
        now_ms = self._now_ms()
        self.processes, self.sampled_ms = found, now_ms
        self.history.add_brokers(now_ms, found)
        if any(each.is_reachable and not each.state for each in found):
            self._failed("a broker refuses to show its figures to the console")
        else:
            self.failure = None
        await self._sample_groups(now_ms)

    async def _sample_groups(self, now_ms: int) -> None:
        self._watched = {
            group: at for group, at in self._watched.items() if at > now_ms - _WATCHED_MS
        }
        self.history.forget_groups(self._watched)
        for group in list(self._watched):
            await self._sample_group(group)

    async def _sample_group(self, group: str) -> None:
        with contextlib.suppress(SprocketError):
            lag = await positions.lag(self._caller, group)
            self.history.add_lag(self._now_ms(), group, lag.queues)

    async def watch(self, group: str) -> None:
        """Has the lag of a group sampled now and for an hour; of too many, the oldest goes."""
        is_new = group not in self._watched
        self.keep_watching(group)
        if is_new:
            await self._sample_group(group)

    def keep_watching(self, group: str) -> None:
        """Has the lag of a group sampled for the next hour."""
        self._watched.pop(group, None)
        self._watched[group] = self._now_ms()
        while len(self._watched) > _WATCHED_MAX:
            del self._watched[next(iter(self._watched))]

    def _failed(self, why: str) -> None:
        if why != self.failure:
            logger.warning("the console's history has a gap: %s", why)
        self.failure = why
