"""Messages that stay invisible while their clients live.

A client that consumes for as long as it takes asks for that with its receives. The proxy then
changes the invisible time of each such message before it ends, which gives the message another
handle; the client goes on to use the one that it got. If the client is gone, its messages become
visible at once.

Times are counted on the loop's clock from when a reply of a broker came, so neither a clock that is
set nor one that differs from a broker's makes a renewal come too late. Brokers are asked by lanes
of their own: one that is silent holds up only what it gave out itself.
Source: DefaultReceiptHandleManager, RenewStrategyPolicy of RocketMQ 5.3 (module proxy).
"""

from __future__ import annotations

import asyncio
import heapq
import logging
from collections import deque
from collections.abc import Awaitable, Callable
from itertools import count

from sprocket.base.errors import SprocketError
from sprocket.clientcore.retry_policy import pause_ms
from sprocket.message.pop_handle import PopHandle
from sprocket.protocol.bodies import GroupConfig
from sprocket.proxy.config import ProxyConfig
from sprocket.proxy.messages.statuses import CallRefused

logger = logging.getLogger(__name__)

#: The invisible times after the first, ms; the last one is for all further ones.
_TIMES_MS = (60_000, 180_000, 300_000, 600_000, 1_800_000, 3_600_000)
#: Renewals and returns in progress at a time, of one broker's messages.
_AT_ONCE = 64
#: Times that are looked at in one turn of the loop.
_LOOKS_AT_ONCE = 2048
#: Plans for messages that are done are removed once there are so many more of them than others.
_DONE_MAX = 1024
#: One client has at most this share of all messages that are kept.
_SHARE = 10


class KeptMessage:
    """A message that a client has in hand.

    Args:
        now: when it was received, in seconds on the loop's clock.

    Attributes:
        handle: its newest handle.
        broker: the name of the broker that gave it out.
        since: when it was received.
        due: when its invisible time ends, on the same clock.
        failures_before: how often it was delivered before.
        renewed: how often its time was renewed.
        failed: renewals in a row that failed.
        changing: settled when a change in progress has ended.
        is_over: whether it is acknowledged or given back.
    """

    __slots__ = (
        "broker", "changing", "client_id", "due", "failed", "failures_before", "group", "handle",
        "is_over", "key", "renewed", "since", "topic",
    )  # fmt: skip

    def __init__(
        self,
        client_id: str,
        group: str,
        topic: str,
        handle: str,
        *,
        now: float,
        failures_before: int,
    ) -> None:
        parsed = PopHandle.parse(handle)
        self.client_id = client_id
        self.group = group
        self.topic = topic
        self.key = handle
        self.handle = handle
        self.broker = parsed.broker
        self.since = now
        self.due = now + parsed.invisible_ms / 1000
        self.failures_before = failures_before
        self.renewed = 0
        self.failed = 0
        self.changing: asyncio.Future[None] | None = None
        self.is_over = False

    def changed(self, handle: str, now: float, invisible_ms: int) -> None:
        """Takes over the handle after a change to so many ms that was asked for at `now`.

        A broker may give less. The time in the handle of a lite topic's message is longer: it
        counts from when the message was popped.
        """
        self.handle = handle
        self.due = now + min(invisible_ms, PopHandle.parse(handle).invisible_ms) / 1000


#: Changes the invisible time of a message: group, topic, handle, ms; returns its new handle.
ChangeTime = Callable[[str, str, str, int], Awaitable[str]]
#: The settings of a group, by its name and a topic.
GroupOf = Callable[[str, str], Awaitable[GroupConfig | None]]


class _Lane:
    """What one broker is to be asked: messages, and whether each is given back; and how many of
    these requests are in progress."""

    __slots__ = ("in_progress", "waiting")

    def __init__(self) -> None:
        self.waiting: deque[tuple[KeptMessage, bool]] = deque()
        self.in_progress = 0


class Renewals:
    """All such messages.

    Args:
        change: see `ChangeTime`.
        group_of: see `GroupOf`.
    """

    def __init__(self, config: ProxyConfig, *, change: ChangeTime, group_of: GroupOf) -> None:
        self._config = config
        self._change = change
        self._group_of = group_of
        self._loop = asyncio.get_running_loop()
        #: By client and by the handle that it got.
        self._kept: dict[str, dict[str, KeptMessage]] = {}
        self._count = 0
        #: By when they are to be looked at.
        self._due: list[tuple[float, int, KeptMessage]] = []
        self._serial = count()
        #: By broker name.
        self._lanes: dict[str, _Lane] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def __len__(self) -> int:
        return self._count

    @property
    def planned(self) -> int:
        """How many times are remembered; some are of messages that are done."""
        return len(self._due)

    def is_full(self, client_id: str) -> bool:
        """Whether no more messages of a client can be kept."""
        most = self._config.renewals_max
        kept = len(self._kept.get(client_id, ()))
        return self._count >= most or kept >= max(1, most // _SHARE)

    def keep(self, message: KeptMessage) -> None:
        """Keeps a message invisible from now on."""
        self._remove(message.client_id, message.key)
        self._kept.setdefault(message.client_id, {})[message.key] = message
        self._count += 1
        self._plan(message, message.due - self._config.renew_ahead_ms / 1000)

    # Most messages are acknowledged long before their plan is due. Their plans would be many times
    # as many as the messages in hand.
    def _plan(self, message: KeptMessage, at: float) -> None:
        if len(self._due) > 2 * self._count + _DONE_MAX:
            self._due = [each for each in self._due if not each[2].is_over]
            heapq.heapify(self._due)
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
            self._enqueue(message, is_given_back=True)

    async def run(self) -> None:
        """Renews times that end soon, until cancelled."""
        while True:
            has_more = self.renew_due()
            await asyncio.sleep(0 if has_more else self._config.renew_scan_ms / 1000)

    def renew_due(self) -> bool:
        """Begins to renew times that end soon; returns whether there may be more of them."""
        now = self._loop.time()
        for _ in range(_LOOKS_AT_ONCE):
            if not self._due or self._due[0][0] > now:
                return False
            message = heapq.heappop(self._due)[2]
            if not message.is_over:
                self._enqueue(message, is_given_back=False)
        return True

    def _enqueue(self, message: KeptMessage, *, is_given_back: bool) -> None:
        lane = self._lanes.get(message.broker)
        if lane is None:
            lane = self._lanes[message.broker] = _Lane()
        lane.waiting.append((message, is_given_back))
        if lane.in_progress < _AT_ONCE:
            lane.in_progress += 1
            task = asyncio.ensure_future(self._work(message.broker, lane))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _work(self, broker: str, lane: _Lane) -> None:
        try:
            while lane.waiting:
                message, is_given_back = lane.waiting.popleft()
                if is_given_back:
                    await self._return(message)
                elif not message.is_over and message.changing is None:
                    await self._renew(message)
        finally:
            lane.in_progress -= 1
            if not lane.in_progress and not lane.waiting:
                self._lanes.pop(broker, None)

    async def _return(self, message: KeptMessage) -> None:
        if message.changing is not None:
            await asyncio.wait([message.changing])
        await self._changed(message, self._config.given_back_ms)

    async def _renew(self, message: KeptMessage) -> None:
        message.changing = changing = self._loop.create_future()
        try:
            await self._renewed(message)
        finally:
            message.changing = None
            if not changing.done():
                changing.set_result(None)

    async def _renewed(self, message: KeptMessage) -> None:
        now = self._loop.time()
        held_ms = int((now - message.since) * 1000)
        if held_ms >= self._config.renew_ms_max:
            logger.warning(
                "%s of group %s has a message in hand for %d ms: it is not renewed any more",
                message.client_id, message.group, held_ms,
            )  # fmt: skip
            group = await self._group_of(message.group, message.topic) or GroupConfig()
            await self._changed(message, pause_ms(group, message.failures_before))
            self._remove(message.client_id, message.key)
            return
        times = min(message.renewed, len(_TIMES_MS) - 1)
        if await self._changed(message, _TIMES_MS[times]):
            message.renewed, message.failed = message.renewed + 1, 0
            if not message.is_over:
                self._plan(message, message.due - self._config.renew_ahead_ms / 1000)
            return
        message.failed += 1
        if message.failed >= self._config.renew_failures_max:
            self._remove(message.client_id, message.key)
        elif not message.is_over:
            self._plan(message, now + self._config.renew_scan_ms / 1000)

    async def _changed(self, message: KeptMessage, invisible_ms: int) -> bool:
        now = self._loop.time()
        try:
            handle = await self._change(message.group, message.topic, message.handle, invisible_ms)
        except CallRefused as error:  # its handle does not count any more
            logger.debug("a message of group %s is not kept: %s", message.group, error)
            self._remove(message.client_id, message.key)
            return False
        except SprocketError as error:
            logger.info("a message of group %s cannot be kept: %s", message.group, error)
            return False
        message.changed(handle, now, invisible_ms)
        return True

    async def close(self, seconds: float) -> None:
        """Gives all messages back; whatever takes longer is left."""
        for client_id in list(self._kept):
            self.give_back(client_id)
        if self._tasks:
            await asyncio.wait(tuple(self._tasks), timeout=seconds)
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
