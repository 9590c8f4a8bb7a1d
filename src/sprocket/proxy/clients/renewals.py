"""Messages that stay invisible while their clients live.

A client that consumes for as long as it takes asks for that with its receives. The proxy then
changes the invisible time of each such message before it ends, which gives the message another
handle; the client goes on to use the one that it got. If the client is gone, its messages become
visible at once.
Source: DefaultReceiptHandleManager, RenewStrategyPolicy of RocketMQ 5.3 (module proxy).
"""

from __future__ import annotations

import asyncio
import heapq
import logging
from collections.abc import Awaitable, Callable
from itertools import count

from sprocket.base.errors import SprocketError
from sprocket.base.ports import Clock
from sprocket.clientcore.retry_policy import pause_ms
from sprocket.message.pop_handle import PopHandle
from sprocket.protocol.bodies import GroupConfig
from sprocket.proxy.config import ProxyConfig
from sprocket.proxy.messages.statuses import CallRefused

logger = logging.getLogger(__name__)

#: The invisible times after the first, ms; the last one is for all further ones.
_TIMES_MS = (60_000, 180_000, 300_000, 600_000, 1_800_000, 3_600_000)
#: Renewals and returns in progress at a time.
_AT_ONCE = 64


class KeptMessage:
    """A message that a client has in hand.

    Attributes:
        handle: its newest handle.
        since_ms: when it was received, ms since 1970 UTC.
        failures_before: how often it was delivered before.
        renewed: how often its time was renewed.
        failed: renewals in a row that failed.
        changing: settled when a change in progress has ended.
        is_over: whether it is acknowledged or given back.
    """

    __slots__ = (
        "changing", "client_id", "due_ms", "failed", "failures_before", "group", "handle",
        "is_over", "key", "renewed", "since_ms", "topic",
    )  # fmt: skip

    def __init__(
        self,
        client_id: str,
        group: str,
        topic: str,
        handle: str,
        *,
        since_ms: int,
        failures_before: int,
    ) -> None:
        self.client_id = client_id
        self.group = group
        self.topic = topic
        self.key = handle
        self.handle = handle
        self.due_ms = PopHandle.parse(handle).due_ms
        self.since_ms = since_ms
        self.failures_before = failures_before
        self.renewed = 0
        self.failed = 0
        self.changing: asyncio.Future[None] | None = None
        self.is_over = False

    def changed(self, handle: str) -> None:
        """Takes over the handle after a change."""
        self.handle = handle
        self.due_ms = PopHandle.parse(handle).due_ms


#: Changes the invisible time of a message: group, topic, handle, ms; returns its new handle.
ChangeTime = Callable[[str, str, str, int], Awaitable[str]]
#: The settings of a group, by its name and a topic.
GroupOf = Callable[[str, str], Awaitable[GroupConfig | None]]


class Renewals:
    """All such messages.

    Args:
        change: see `ChangeTime`.
        group_of: see `GroupOf`.
    """

    def __init__(
        self, config: ProxyConfig, clock: Clock, *, change: ChangeTime, group_of: GroupOf
    ) -> None:
        self._config = config
        self._clock = clock
        self._change = change
        self._group_of = group_of
        #: By client and by the handle that it got.
        self._kept: dict[str, dict[str, KeptMessage]] = {}
        self._count = 0
        #: By when they are to be looked at.
        self._due: list[tuple[int, int, KeptMessage]] = []
        self._serial = count()
        self._tasks: set[asyncio.Task[None]] = set()
        self._capacity = asyncio.Semaphore(_AT_ONCE)

    def __len__(self) -> int:
        return self._count

    @property
    def is_full(self) -> bool:
        """Whether no more messages can be kept."""
        return self._count >= self._config.renewals_max

    def keep(self, message: KeptMessage) -> None:
        """Keeps a message invisible from now on."""
        of_client = self._kept.setdefault(message.client_id, {})
        if message.key not in of_client:
            self._count += 1
        of_client[message.key] = message
        self._plan(message)

    def _plan(self, message: KeptMessage) -> None:
        at = message.due_ms - self._config.renew_ahead_ms
        heapq.heappush(self._due, (at, next(self._serial), message))

    def taken(self, client_id: str, handle: str) -> str | None:
        """The same as `take` if no change is in progress; None if it must be waited for."""
        message = self._kept.get(client_id, {}).get(handle)
        if message is None:
            return handle
        if message.changing is not None:
            return None
        self._remove(client_id, handle)
        return message.handle

    async def take(self, client_id: str, handle: str) -> str:
        """Ends the care for a message; returns its newest handle."""
        message = self._remove(client_id, handle)
        if message is None:
            return handle
        if message.changing is not None:
            await asyncio.wait([message.changing])
        return message.handle

    def has(self, client_id: str, handle: str) -> bool:
        """Whether a message is kept under a handle."""
        return handle in self._kept.get(client_id, ())

    def _remove(self, client_id: str, key: str) -> KeptMessage | None:
        of_client = self._kept.get(client_id)
        message = None if of_client is None else of_client.pop(key, None)
        if message is None:
            return None
        if not of_client:
            del self._kept[client_id]
        self._count -= 1
        message.is_over = True
        return message

    def give_back(self, client_id: str) -> None:
        """Has all messages of a client that is gone become visible soon."""
        for message in list(self._kept.get(client_id, {}).values()):
            self._remove(client_id, message.key)
            self._start(self._returned(message))

    async def _returned(self, message: KeptMessage) -> None:
        if message.changing is not None:
            await asyncio.wait([message.changing])
        async with self._capacity:
            await self._changed(message, self._config.given_back_ms)

    async def run(self) -> None:
        """Renews times that end soon, until cancelled."""
        while True:
            await asyncio.sleep(self._config.renew_scan_ms / 1000)
            self.renew_due()

    def renew_due(self) -> None:
        """Begins to renew all times that end soon."""
        now_ms = self._clock.now_ms()
        while self._due and self._due[0][0] <= now_ms:
            _, _, message = heapq.heappop(self._due)
            if not message.is_over and message.changing is None:
                message.changing = asyncio.get_running_loop().create_future()
                self._start(self._renew(message))

    async def _renew(self, message: KeptMessage) -> None:
        changing = message.changing
        try:
            async with self._capacity:
                if not message.is_over:
                    await self._renewed(message)
        finally:
            message.changing = None
            if changing is not None and not changing.done():
                changing.set_result(None)

    async def _renewed(self, message: KeptMessage) -> None:
        now_ms = self._clock.now_ms()
        if now_ms - message.since_ms >= self._config.renew_ms_max:
            logger.warning(
                "%s of group %s has a message in hand for %d ms: it is not renewed any more",
                message.client_id, message.group, now_ms - message.since_ms,
            )  # fmt: skip
            group = await self._group_of(message.group, message.topic) or GroupConfig()
            await self._changed(message, pause_ms(group, message.failures_before))
            self._remove(message.client_id, message.key)
            return
        times = min(message.renewed, len(_TIMES_MS) - 1)
        if await self._changed(message, _TIMES_MS[times]):
            message.renewed, message.failed = message.renewed + 1, 0
            self._plan(message)
            return
        message.failed += 1
        if message.failed >= self._config.renew_failures_max:
            self._remove(message.client_id, message.key)
        elif not message.is_over:
            retry_ms = now_ms + self._config.renew_scan_ms
            heapq.heappush(self._due, (retry_ms, next(self._serial), message))

    async def _changed(self, message: KeptMessage, invisible_ms: int) -> bool:
        try:
            handle = await self._change(message.group, message.topic, message.handle, invisible_ms)
        except CallRefused as error:  # its handle does not count any more
            logger.debug("a message of group %s is not kept: %s", message.group, error)
            self._remove(message.client_id, message.key)
            return False
        except SprocketError as error:
            logger.info("a message of group %s cannot be kept: %s", message.group, error)
            return False
        message.changed(handle)
        return True

    def _start(self, work: Awaitable[None]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def close(self, seconds: float) -> None:
        """Gives all messages back; whatever takes longer is left."""
        for client_id in list(self._kept):
            self.give_back(client_id)
        if self._tasks:
            await asyncio.wait(tuple(self._tasks), timeout=seconds)
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
