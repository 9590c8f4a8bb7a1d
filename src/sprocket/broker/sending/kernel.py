"""Sends that a kernel in Rust stores, if it is installed: from the bytes of a read to the replies.

The kernel (`native/`, package `sprocketmq-native`) takes the first sends of a read that nothing is
special about, without a Python object for each, and leaves the others to `Sends`. What it writes
and replies is the same, byte by byte. It is not used where sends wait for the disk or for slaves.
"""

from __future__ import annotations

import importlib
import importlib.util
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from sprocket.broker.sending.acknowledgement import Acknowledgement
from sprocket.broker.sending.ingress import Ingress
from sprocket.broker.sending.intake import SENDERS_BITS, Placing
from sprocket.broker.sending.plain import CHANGED, TIME
from sprocket.broker.sending.stamp import Stamp
from sprocket.message.hosts import pack
from sprocket.message.properties import KEYS, SENT_TEXT_SHORT, TAGS, UNIQUE_KEY
from sprocket.message.record import HOSTS_MASK
from sprocket.remoting.transport import Peer
from sprocket.store.log.commit_log import CommitLog
from sprocket.store.views.consume_queue import ConsumeQueue
from sprocket.store.writing.appender import Stored

logger = logging.getLogger(__name__)

#: The topic's write queues, and bits for the system flags of its messages.
_TopicOf = Callable[[str], tuple[int, int] | None]


class _SendKernel(Protocol):
    """The kernel; `native/src/lib.rs` describes it."""

    def take(
        self,
        data: bytes,
        born_host: bytes,
        stored_ms: int,
        body_max: int,
        log: CommitLog,
        queues: Mapping[tuple[str, int], ConsumeQueue],
        topic_of: _TopicOf,
    ) -> tuple[int, bytes, int, Sequence[tuple[str, int, int]], bytes, bytes] | None:
        """Stores the first sends of a read."""
        ...


def is_installed() -> bool:
    """Whether the kernel can be used."""
    return importlib.util.find_spec("sprocket_native") is not None


class KernelSends:
    """Takes the first sends of a read.

    Args:
        store_host: the broker's address in binary form.
        is_wanted: whether the kernel is used, if it is installed.
    """

    def __init__(
        self,
        placing: Placing,
        stamp: Stamp,
        ingress: Ingress,
        acknowledgement: Acknowledgement,
        *,
        store_host: bytes,
        is_wanted: bool = True,
    ) -> None:
        self._placing = placing
        self._ingress = ingress
        self._stamp = stamp
        self._acknowledgement = acknowledgement
        self._store_host = store_host
        self._kernel: _SendKernel | None = None
        self.change(is_wanted=is_wanted)

    def change(self, *, is_wanted: bool) -> None:
        """Makes the kernel anew, since what is stored and replied may have changed."""
        acknowledgement, had_one = self._acknowledgement, self._kernel is not None
        self._kernel = None
        if is_wanted and acknowledgement.is_at_once and is_installed():
            if not had_one:
                logger.info("plain sends are taken by the native kernel")
            self._kernel = importlib.import_module("sprocket_native").SendKernel(
                (TAGS.encode(), KEYS.encode(), UNIQUE_KEY.encode()),
                [name.encode() for name in sorted(CHANGED)],
                TIME.encode(),
                self._stamp.behind(""),
                self._store_host,
                acknowledgement.reply_pieces,
                SENDERS_BITS & ~HOSTS_MASK,
                SENT_TEXT_SHORT,
                ConsumeQueue,
            )

    def take(self, data: bytes, peer: Peer) -> Stored | None:
        """Stores the first sends of a read, which begins with a frame; None if it stores none."""
        kernel = self._kernel
        if kernel is None:
            return None
        born_host = pack(peer.address)

        def write(
            log: CommitLog,
            queues: Mapping[tuple[str, int], ConsumeQueue],
            now_ms: int,
            body_max: int,
        ) -> Stored | None:
            taken = kernel.take(
                data, born_host, now_ms, body_max, log, queues, self._placing.plain_topic
            )
            return None if taken is None else Stored(*taken)

        return self._ingress.store_run(write)
