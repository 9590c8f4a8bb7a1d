"""The broker's audit topic: who changed what, each entry as a message of one queue.

An entry is stored through the one door in the same step as its request, which neither waits for it
nor fails with it. What the store does not take now, such as while the disk is full or the broker
copies from a master, waits in memory, at most `WAITING_BYTES_MAX` of it, and is stored later in the
same order. What has no place any more is lost and counted, and an entry says so once the store
works. Storing an entry is no request, so it makes no entry.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable

from sprocket.audit.audit_log import WAITING_BYTES_MAX, AuditLog
from sprocket.audit.entries import AuditEntry
from sprocket.audit.recorder import AuditRecorder
from sprocket.base.errors import SprocketError
from sprocket.base.ports import Clock
from sprocket.base.troubles import Troubles
from sprocket.broker.sending.ingress import Ingress
from sprocket.broker.sending.stamp import Stamp
from sprocket.message import properties as names
from sprocket.message.hashing import tag_code
from sprocket.message.record import Draft
from sprocket.store.log.drafts import IllegalDraft

logger = logging.getLogger(__name__)

#: Pause before entries that wait are tried again, s.
_AGAIN_SECONDS = 1.0
_TROUBLE = "store"


class AuditTopic(AuditRecorder):
    """Keeps the entries of a broker in a topic, and in its files if there are any.

    Args:
        topic: the broker's own, of one queue.
        server: the broker's name.
        host: the broker's packed address, from which the messages come.
        files: the audit log in files; None if there is none.
        is_slave: whether the broker copies from a master now, and so stores nothing itself.

    Attributes:
        lost: entries that never came into the topic.
    """

    def __init__(
        self,
        topic: str,
        ingress: Ingress,
        stamp: Stamp,
        *,
        server: str,
        clock: Clock,
        host: bytes,
        files: AuditLog | None,
        is_slave: Callable[[], bool],
    ) -> None:
        super().__init__(server, clock)
        self._topic = topic
        self._ingress = ingress
        self._stamp = stamp
        self._host = host
        self._files = files
        self._is_slave = is_slave
        self._waiting: deque[Draft] = deque()
        self._waiting_bytes = 0
        self._unreported = 0
        self._troubles = Troubles(asyncio.get_running_loop().time, logger)
        self.lost = 0

    def put(self, entry: AuditEntry) -> None:
        """Stores an entry, or has it wait."""
        if self._files is not None:
            self._files.put(entry)
        draft = self._draft(entry)
        if self._waiting_bytes + len(draft.body) > WAITING_BYTES_MAX:
            self._lose()
            return
        self._waiting.append(draft)
        self._waiting_bytes += len(draft.body)
        self._store()

    async def run(self) -> None:
        """Stores what waits, while the broker is a master."""
        while True:
            self._store()
            await asyncio.sleep(_AGAIN_SECONDS)

    def _store(self) -> None:
        while self._waiting and not self._is_slave():
            try:
                self._ingress.accept_due(self._waiting[0])
            except IllegalDraft as error:  # longer than messages may be
                logger.error("an entry of the audit topic cannot be stored: %s", error)
                self._lose()
                self._remove_first()
                continue
            except SprocketError as error:
                text = f"entries of the audit topic {self._topic} wait"
                self._troubles.failed(_TROUBLE, text, error, level=logging.ERROR)
                return
            self._remove_first()
            self._troubles.ended(_TROUBLE, f"the audit topic {self._topic} has all entries again")
            if lost := self._unreported:
                self._unreported = 0
                draft = self._draft(self.event("ENTRIES_LOST", {"count": lost}))
                self._waiting.appendleft(draft)
                self._waiting_bytes += len(draft.body)

    def _remove_first(self) -> None:
        self._waiting_bytes -= len(self._waiting.popleft().body)

    def _lose(self) -> None:
        self.lost += 1
        self._unreported += 1

    def _draft(self, entry: AuditEntry) -> Draft:
        now_ms = self._clock.now_ms()
        properties = {names.TAGS: entry.request}
        unique_key = self._stamp.mark(properties, now_ms)
        return Draft(
            topic=self._topic, queue_number=0, body=entry.encode().rstrip(b"\n"),
            properties=names.encode(properties).encode(), tag_code=tag_code(entry.request), flag=0,
            sys_flag=0, born_ms=now_ms, born_host=self._host, unique_key=unique_key,
        )  # fmt: skip
