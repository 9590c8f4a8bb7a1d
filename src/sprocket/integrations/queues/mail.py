"""Mail: messages to processes that are there now, in one topic that every process reads for itself.

Commands for all workers, and replies to one process, are of no use to anybody who comes later, and
a process that is gone leaves nothing behind. So they need no group and no topic of their own: each
box of a process that waits for mail reads the topic from the moment when it was opened, as the
members of a broadcasting group do, and keeps its positions in memory. Whoever sends mail names an
address, and its hash is the message's tag, so brokers send a box only what it waits for. A full box
reads no further until something is taken from it, so nothing is lost and others do not wait.
"""

from __future__ import annotations

import asyncio
import contextlib
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
#: A box with so many messages, or with bodies of so many bytes, reads no further.
BOX_MAX, BOX_BYTES_MAX = 1_000, 16 * 1024 * 1024
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

    It is made on the event loop; `take`, `put_back` and `clear` may be called in any thread.

    Attributes:
        routes: for each address the patterns of the keys that are wanted, each a whole match.
    """

    def __init__(self) -> None:
        self.routes: dict[str, set[str]] = {}
        self._kept: deque[StoredMessage] = deque()
        self._takers: list[Taker] = []
        self._loop = asyncio.get_running_loop()
        #: Not set while a reader waits until something is taken.
        self._was_taken = asyncio.Event()
        self._was_taken.set()

    def __len__(self) -> int:
        return len(self._kept)

    @property
    def is_full(self) -> bool:
        """Whether nothing more should be put in."""
        kept = self._kept.copy()  # takers have threads of their own
        return len(kept) >= BOX_MAX or sum(len(each.body) for each in kept) >= BOX_BYTES_MAX

    async def capacity(self) -> None:
        """Waits until the box is not full."""
        while self.is_full:
            self._was_taken.clear()
            if self.is_full:  # what is taken from now on sets the event
                await self._was_taken.wait()

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
        self._kept.append(message)
        for tell in self._takers:
            tell()

    def take(self) -> StoredMessage | None:
        """Takes the oldest message, if there is one."""
        try:
            message = self._kept.popleft()
        except IndexError:
            return None
        if not self._was_taken.is_set():
            with contextlib.suppress(RuntimeError):  # the loop is closed, and nobody reads
                self._loop.call_soon_threadsafe(self._was_taken.set)
        return message

    def put_back(self, message: StoredMessage) -> None:
        """Keeps a message that was taken, before all others."""
        self._kept.appendleft(message)

    def clear(self) -> int:
        """Discards all messages, and returns how many that were."""
        count = 0
        while self.take() is not None:
            count += 1
        return count

    def attach(self, taker: Taker) -> None:
        """Adds a taker."""
        self._takers.append(taker)
        if self._kept:
            taker()

    def detach(self, taker: Taker) -> None:
        """Removes a taker; else does nothing."""
        if taker in self._takers:
            self._takers.remove(taker)


class Mail:
    """The open boxes of one process.

    Args:
        reader: a pull consumer that is started.
        topic: the topic of all mail.
        now_ms: the wall clock.
    """

    def __init__(self, reader: PullConsumer, topic: str, now_ms: Callable[[], int]) -> None:
        self._reader = reader
        self.topic = topic
        self._now_ms = now_ms
        self.boxes: dict[str, MailBox] = {}
        self._readings: dict[str, BoxReading] = {}

    async def open(self, name: str, address: str, pattern: str = ANY_KEY) -> MailBox:
        """Opens a box, or adds an address to it; all such mail that is sent from now on is in it.

        Raises:
            TransportError, ReplyError: the ends of the queues cannot be read, so mail could be
                missed.
        """
        if name not in self.boxes:
            now_ms, ends = self._now_ms(), await self._ends()
            if name not in self.boxes:  # nobody else opened it meanwhile
                box = self.boxes[name] = MailBox()
                self._readings[name] = BoxReading(self._reader, self.topic, box, ends, now_ms)
        box = self.boxes[name]
        is_new = address not in box.routes
        box.routes.setdefault(address, set()).add(pattern)
        if is_new:
            self._readings[name].restart()
        return box

    def close_box(self, name: str) -> None:
        """Closes a box; else does nothing."""
        self.boxes.pop(name, None)
        if (reading := self._readings.pop(name, None)) is not None:
            reading.close()

    def close(self) -> None:
        """Closes all boxes."""
        for name in list(self.boxes):
            self.close_box(name)

    async def _ends(self) -> dict[QueueId, QueueOffset]:
        queues = await self._reader.queues(self.topic)
        return {queue: await self._reader.max_offset(queue) for queue in queues}


class BoxReading:
    """Reads what comes for a box, from the ends that the queues had when it was opened.

    Args:
        ends: of the queues that were there then.
        opened_ms: when that was, ms since 1970; queues that come later are read from then on.
    """

    def __init__(
        self,
        reader: PullConsumer,
        topic: str,
        box: MailBox,
        ends: dict[QueueId, QueueOffset],
        opened_ms: int,
    ) -> None:
        self._reader = reader
        self._topic = topic
        self._box = box
        self._opened_ms = opened_ms
        #: Where each queue is read next.
        self._offsets = ends
        self._readers: dict[QueueId, asyncio.Task[None]] = {}
        #: Set for those that pull now, when the addresses have changed.
        self._changed = asyncio.Event()
        self._troubles = Troubles(asyncio.get_running_loop().time, logger)
        self._finding = asyncio.ensure_future(self._find())

    def restart(self) -> None:
        """Has the next pulls ask for all addresses that the box has now."""
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()

    def close(self) -> None:
        """Stops."""
        for task in (*self._readers.values(), self._finding):
            task.cancel()

    async def _find(self) -> None:
        """Reads all queues, also those of brokers that come later."""
        while True:
            try:
                for queue in await self._reader.queues(self._topic):
                    if queue not in self._offsets:
                        self._offsets[queue] = await self._reader.offset_at(queue, self._opened_ms)
            except SprocketError as error:
                logger.debug("queues of %s are not found: %s", self._topic, error)
            for queue in self._offsets:
                if queue not in self._readers:
                    self._readers[queue] = asyncio.ensure_future(self._read(queue))
            await asyncio.sleep(_REFRESH_SECONDS)

    async def _read(self, queue: QueueId) -> None:
        pause = _PAUSE_FIRST
        while True:
            await self._box.capacity()
            changed = self._changed
            tags = " || ".join(sorted(map(tag_of, self._box.routes)))
            pulling = asyncio.ensure_future(
                self._reader.pull_blocking(
                    queue, self._offsets[queue], count=_PULL_BATCH, tags=tags
                )
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
            self._offsets[queue] = pulled.next_offset
            for message in pulled.messages:
                if self._box.wants(message):
                    self._box.put(message)

    def _report(self, queue: QueueId, error: SprocketError | None) -> None:
        name = f"mail of {queue.broker}"
        if error is None:
            if self._troubles.is_any:
                self._troubles.ended(name, f"{name} is read")
        elif not isinstance(error, RouteNotFound):
            self._troubles.failed(name, f"cannot read {name}", error)
