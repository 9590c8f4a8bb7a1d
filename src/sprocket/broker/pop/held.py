"""Pops that found no message, and wait for one.

A held pop is a suspended coroutine. A message that arrives wakes one for all queues of its topic,
or one for its queue, in each group; messages that come again wake one of their group. Each pop that
is woken reads for itself; if it leaves messages, it wakes the next. So a message never wakes a
thousand pops of which one gets it.
Source: PopLongPollingService of RocketMQ 5.3.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterator, Mapping
from typing import NamedTuple

from sprocket.base.deadline import Deadline
from sprocket.base.errors import StoreError
from sprocket.broker.settings import BrokerSettings
from sprocket.store.store import Store

#: The number in a request that stands for all queues.
ALL_QUEUES = -1
#: Watermarks are asked for again after this time, s. Those of a topic that is deleted and made
#: again are others; but then all pops of the topic are woken, and the watch over it ends.
_AGAIN_SECONDS = 30.0
#: A topic of more queues has no task for each of them; its queues are read every so often, s.
_WATCHED_MAX, _LOOK_SECONDS = 128, 0.1


class PopPlace(NamedTuple):
    """Of what a pop waits for messages; `queue_number` may be `ALL_QUEUES`."""

    topic: str
    group: str
    queue_number: int


class HeldPops:
    """The pops that wait.

    Attributes:
        count: how many.
    """

    def __init__(self, store: Store, settings: BrokerSettings) -> None:
        self._store = store
        self._settings = settings
        self._waiting: dict[str, dict[PopPlace, dict[asyncio.Future[None], None]]] = {}
        self._watches: dict[str, dict[int, asyncio.Task[None]]] = {}
        #: Of topics with many queues, by queue where it ended at the last look.
        self._ends: dict[str, dict[int, int]] = {}
        self._is_stopped = False
        self.count = 0

    def waiting(self, place: PopPlace) -> int:
        """How many wait at a place."""
        return len(self._waiting.get(place.topic, {}).get(place, ()))

    def is_full(self, place: PopPlace) -> bool:
        """Whether no more may wait there."""
        config = self._settings.config
        return (
            self.count >= config.held_pops_max or self.waiting(place) >= config.held_pops_queue_max
        )

    @property
    def is_stopped(self) -> bool:
        """Whether the broker stops, so that nothing waits any more."""
        return self._is_stopped

    def stop(self) -> None:
        """Ends the wait of all."""
        self._is_stopped = True
        for places in self._waiting.values():
            for futures in places.values():
                _wake(futures, len(futures))
        for topic in list(self._watches):
            self._end_watch(topic)

    # The reader looked at its queues one after the other, and may have waited for the disk between
    # them. What arrived since it looked at one is found by the ends that it saw, before the wait.
    async def wait(
        self, place: PopPlace, seen: Mapping[tuple[str, int], int], deadline: Deadline
    ) -> bool:
        """Waits until there may be a message; False at the deadline.

        Args:
            seen: by topic and queue, where those ended that the caller read.
        """
        if self._is_stopped:
            return False
        if any(self._store.max_offset(*queue) > end for queue, end in seen.items()):
            return True
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        places = self._waiting.setdefault(place.topic, {})
        places.setdefault(place, {})[future] = None
        self.count += 1
        self._watch(place.topic, [number for topic, number in seen if topic == place.topic])
        try:
            async with asyncio.timeout_at(deadline.at):
                await future
            return not self._is_stopped
        except TimeoutError:
            return _is_woken(future)
        except asyncio.CancelledError:
            if _is_woken(future):
                self._forget(place, future)
                self.wake(place.topic, place.group, place.queue_number)
            raise
        finally:
            self.count -= 1
            self._forget(place, future)

    def _forget(self, place: PopPlace, future: asyncio.Future[None]) -> None:
        places = self._waiting.get(place.topic, {})
        futures = places.get(place, {})
        futures.pop(future, None)
        if not futures:
            places.pop(place, None)
        if not places:
            self._waiting.pop(place.topic, None)
            self._end_watch(place.topic)

    def wake(self, topic: str, group: str, queue_number: int, count: int = 1) -> None:
        """Wakes some pops of a group that wait for a queue: first those for all queues."""
        places = self._waiting.get(topic)
        if not places:
            return
        for number in dict.fromkeys((ALL_QUEUES, queue_number)):
            futures = places.get(PopPlace(topic, group, number))
            if futures:
                count = _wake(futures, count)

    def wake_any(self, topic: str, group: str) -> None:
        """Wakes one pop of a group, whatever queue of the topic it waits for."""
        for place, futures in list(self._waiting.get(topic, {}).items()):
            if place.group == group and not _wake(futures, 1):
                return

    def end(self, topic: str) -> None:
        """Wakes all pops of a topic, which is deleted."""
        for futures in self._waiting.get(topic, {}).values():
            _wake(futures, len(futures))

    def _watch(self, topic: str, numbers: Collection[int]) -> None:
        watches = self._watches.setdefault(topic, {})
        if len(numbers) > _WATCHED_MAX:
            ends = self._ends.setdefault(topic, {})
            for number in numbers:  # of a topic that got more queues, some are new
                if number not in ends:
                    ends[number] = self._store.max_offset(topic, number)
            if ALL_QUEUES not in watches:
                watches[ALL_QUEUES] = asyncio.create_task(self._many_arrivals(topic, ends))
            return
        for number in numbers:
            if number not in watches:
                end = self._store.max_offset(topic, number)
                watches[number] = asyncio.create_task(self._arrivals(topic, number, end))

    def _end_watch(self, topic: str) -> None:
        self._ends.pop(topic, None)
        for task in self._watches.pop(topic, {}).values():
            task.cancel()

    async def _arrivals(self, topic: str, number: int, seen: int) -> None:
        """Wakes pops when messages arrive in a queue, until it is cancelled."""
        while True:
            arrivals = self._store.arrivals(topic, number)
            try:
                await arrivals.reach(seen + 1, Deadline.after(_AGAIN_SECONDS))
            except StoreError:  # the broker ends
                return
            end = self._store.max_offset(topic, number)
            if end > seen:
                for group in list(self._groups(topic)):
                    self.wake(topic, group, number, end - seen)
            seen = end

    async def _many_arrivals(self, topic: str, ends: dict[int, int]) -> None:
        """The same for a topic of many queues: their ends are compared from time to time."""
        while True:
            await asyncio.sleep(_LOOK_SECONDS)
            for place, number in enumerate(list(ends), 1):
                end = self._store.max_offset(topic, number)
                if end > ends[number]:
                    for group in list(self._groups(topic)):
                        self.wake(topic, group, number, end - ends[number])
                ends[number] = end
                if place % _WATCHED_MAX == 0:
                    await asyncio.sleep(0)

    def _groups(self, topic: str) -> Iterator[str]:
        return iter({place.group: None for place in self._waiting.get(topic, {})})


def _is_woken(future: asyncio.Future[None]) -> bool:
    return future.done() and not future.cancelled()


def _wake(futures: Mapping[asyncio.Future[None], None], count: int) -> int:
    """Wakes the first ones; returns how many more may be woken."""
    for future in futures:
        if count <= 0:
            break
        if not future.done():
            future.set_result(None)
            count -= 1
    return count
