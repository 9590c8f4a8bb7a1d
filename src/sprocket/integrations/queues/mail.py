"""Mail: messages to processes that are there now, in one topic that every process reads for itself.

Commands for all workers, and replies to one process, are of no use to anybody who comes later, and
a process that is gone leaves nothing behind. So they need no group and no topic of their own: each
process that waits for mail reads the topic from the moment when it began to wait, as the members of
a broadcasting group do, and keeps its positions in memory. Whoever sends mail names an address, and
its hash is the message's tag, so brokers send a process only what it waits for.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections import deque
from collections.abc import Callable

from sprocket.base.errors import RouteNotFound, SprocketError
from sprocket.base.troubles import Troubles
from sprocket.client.base.waiting import either
from sprocket.client.pull_consumer import PullConsumer
from sprocket.integrations.queues.names import tag_of
from sprocket.message.message import StoredMessage
from sprocket.message.offsets import QueueOffset
from sprocket.message.queue import QueueId

logger = logging.getLogger(__name__)

#: The property that names the address of mail.
ADDRESS = "SPROCKET_ADDRESS"
#: The property with a key by which boxes choose among the mail of one address.
KEY = "SPROCKET_KEY"
#: The pattern of all keys.
ANY_KEY = ".*"
#: Mail that a box keeps while nobody takes it; then the oldest is discarded.
BOX_MAX = 10_000
#: How often the topic's queues are looked up, s.
_REFRESH_SECONDS = 30.0
#: Pauses after failures, s: the first and the longest.
_PAUSE_FIRST, _PAUSE_MAX = 0.2, 5.0
#: Messages of one pull.
_PULL_BATCH = 32

#: Is told, on the loop, that a box has something.
Taker = Callable[[], None]


class MailBox:
    """What came for some addresses, kept until one of its takers takes it.

    `take` and `put_back` may be called in any thread.

    Attributes:
        routes: for each address the patterns of the keys that are wanted, each a whole match.
    """

    def __init__(self) -> None:
        self.routes: dict[str, set[str]] = {}
        self.kept: deque[StoredMessage] = deque(maxlen=BOX_MAX)
        self._takers: list[Taker] = []

    def wants(self, message: StoredMessage) -> bool:
        """Whether a message is for this box."""
        patterns = self.routes.get(message.value(ADDRESS) or "", ())
        key = message.value(KEY) or ""
        return any(re.fullmatch(pattern, key, re.DOTALL) for pattern in patterns)

    @property
    def is_taken(self) -> bool:
        """Whether anybody takes what comes."""
        return bool(self._takers)

    def put(self, message: StoredMessage) -> None:
        """Keeps a message, and tells the takers."""
        self.kept.append(message)
        for tell in self._takers:
            tell()

    def take(self) -> StoredMessage | None:
        """Takes the oldest message, if there is one."""
        try:
            return self.kept.popleft()
        except IndexError:
            return None

    def put_back(self, message: StoredMessage) -> None:
        """Keeps a message that was taken, before all others; a full box discards it."""
        if len(self.kept) < BOX_MAX:
            self.kept.appendleft(message)

    def attach(self, taker: Taker) -> None:
        """Adds a taker."""
        self._takers.append(taker)
        if self.kept:
            taker()

    def detach(self, taker: Taker) -> None:
        """Removes a taker; else does nothing."""
        if taker in self._takers:
            self._takers.remove(taker)


class Mail:
    """Reads the mail of one process, while there are boxes.

    Args:
        reader: a pull consumer that is started when the first box is opened.
        topic: the topic of all mail.
        now_ms: the wall clock.
    """

    def __init__(self, reader: PullConsumer, topic: str, now_ms: Callable[[], int]) -> None:
        self._reader = reader
        self.topic = topic
        self._now_ms = now_ms
        self.boxes: dict[str, MailBox] = {}
        self._opened_ms = 0
        #: Where each queue is read next.
        self._offsets: dict[QueueId, QueueOffset] = {}
        self._readers: dict[QueueId, asyncio.Task[None]] = {}
        self._finding: asyncio.Task[None] | None = None
        #: Set for those that pull now, when the addresses have changed.
        self._changed = asyncio.Event()
        self._troubles: Troubles | None = None

    async def open(self, name: str, address: str, pattern: str = ANY_KEY) -> MailBox:
        """Opens a box, or adds an address to it; all such mail that is sent from now on is in it.

        Raises:
            TransportError, ReplyError: the ends of the queues cannot be read, so mail could be
                missed.
        """
        if not self.boxes:
            now_ms, ends = self._now_ms(), await self._ends()
            if not self.boxes:  # nobody else opened one meanwhile
                self._begin(now_ms, ends)
        box = self.boxes.setdefault(name, MailBox())
        is_new = not any(address in each.routes for each in self.boxes.values())
        box.routes.setdefault(address, set()).add(pattern)
        if is_new:
            changed, self._changed = self._changed, asyncio.Event()
            changed.set()
        return box

    def close_box(self, name: str) -> None:
        """Closes a box; else does nothing. Without boxes nothing is read."""
        self.boxes.pop(name, None)

    def close(self) -> None:
        """Closes all boxes, and stops."""
        self.boxes.clear()
        for task in (*self._readers.values(), self._finding):
            if task is not None:
                task.cancel()
        self._readers.clear()
        self._finding = None

    async def _ends(self) -> dict[QueueId, QueueOffset]:
        queues = await self._reader.queues(self.topic)
        return {queue: await self._reader.max_offset(queue) for queue in queues}

    def _begin(self, now_ms: int, ends: dict[QueueId, QueueOffset]) -> None:
        """Reads from these ends on."""
        self._opened_ms, self._offsets = now_ms, ends
        if self._finding is None:
            self._troubles = Troubles(asyncio.get_running_loop().time, logger)
            self._finding = asyncio.ensure_future(self._find())

    async def _find(self) -> None:
        """Reads all queues, also those of brokers that come later."""
        while True:
            try:
                for queue in await self._reader.queues(self.topic):
                    if queue not in self._offsets:
                        self._offsets[queue] = await self._reader.offset_at(queue, self._opened_ms)
            except SprocketError as error:
                logger.debug("queues of %s are not found: %s", self.topic, error)
            for queue in self._offsets:
                if queue not in self._readers:
                    self._readers[queue] = asyncio.ensure_future(self._read(queue))
            await asyncio.sleep(_REFRESH_SECONDS)

    async def _read(self, queue: QueueId) -> None:
        pause = _PAUSE_FIRST
        while True:
            changed = self._changed
            if not self.boxes or queue not in self._offsets:
                await changed.wait()
                continue
            offset = self._offsets[queue]
            addresses = {each for box in self.boxes.values() for each in box.routes}
            tags = " || ".join(sorted(map(tag_of, addresses)))
            pulling = asyncio.ensure_future(
                self._reader.pull_blocking(queue, offset, count=_PULL_BATCH, tags=tags)
            )
            turning = asyncio.ensure_future(changed.wait())
            try:
                await asyncio.wait({pulling, turning}, return_when=asyncio.FIRST_COMPLETED)
                if not pulling.done():
                    continue  # pulled again, with the new addresses and from the same offset
                pulled = pulling.result()
            except SprocketError as error:
                self._report(queue, error)
                await either(changed, pause)
                pause = min(pause * 2, _PAUSE_MAX)
                continue
            finally:
                pulling.cancel()
                turning.cancel()
            pause = _PAUSE_FIRST
            self._report(queue, None)
            if self._offsets.get(queue) != offset:
                continue  # all boxes were closed, and others begin at another place
            self._offsets[queue] = pulled.next_offset
            for message in pulled.messages:
                self._deliver(message)

    def _deliver(self, message: StoredMessage) -> None:
        for box in list(self.boxes.values()):
            if box.wants(message):
                box.put(message)

    def _report(self, queue: QueueId, error: SprocketError | None) -> None:
        if self._troubles is None:
            return
        name = f"mail of {queue.broker}"
        if error is None:
            if self._troubles.is_any:
                self._troubles.ended(name, f"{name} is read")
        elif not isinstance(error, RouteNotFound):
            self._troubles.failed(name, f"cannot read {name}", error)
