"""Reads many batches of one read together, if the broker changes almost nothing in their messages.

The text of each message's properties is stored unchanged, followed by the broker's own properties.
The values are those that `SendReader` gives for the same batch. One whose messages ask for more
ends the run.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from sprocket.base.errors import SprocketError
from sprocket.broker.sending.destination import Destination
from sprocket.broker.sending.intake import BATCH_COUNT_MAX, Placing, stored_flag
from sprocket.broker.sending.plain import PlainTexts
from sprocket.broker.sending.plain_batches import PlainBatches
from sprocket.broker.sending.stamp import Stamp
from sprocket.broker.settings import BrokerSettings
from sprocket.message.batch import columns
from sprocket.message.compression import COMPRESSED
from sprocket.message.draft_batch import DraftBatch
from sprocket.message.hosts import pack
from sprocket.message.properties import SENT_TEXT_SHORT
from sprocket.message.record import Draft
from sprocket.message.topic import is_retry_topic
from sprocket.message.topic_attributes import has_batch_queues
from sprocket.protocol.command import Command
from sprocket.protocol.requests.send import SendBatch
from sprocket.remoting.transport import Peer

#: So many messages, some milliseconds of work, end a run.
_RUN_MESSAGES_MAX = 2048


class PlainBatch(NamedTuple):
    """A batch whose messages are stored as they came.

    Attributes:
        destination: of the batch itself.
    """

    drafts: DraftBatch
    destination: Destination


class BatchReader:
    """Reads runs of batches."""

    def __init__(self, placing: Placing, stamp: Stamp, settings: BrokerSettings) -> None:
        self._placing = placing
        self._settings = settings
        self._behind = stamp.behind("")
        self._texts = PlainTexts()
        self._batches = PlainBatches(self._texts)

    # No error leaves here: a batch that is refused ends the run, and the reader of single sends
    # reports what is wrong.
    def read_run(self, commands: Sequence[Command], peer: Peer) -> list[PlainBatch]:
        """The first batches: up to one that must be read alone, or up to many messages."""
        found: list[PlainBatch] = []
        count = 0
        try:
            for command in commands:
                batch = self._read(command, peer) if command.code == SendBatch.code else None
                if batch is None:
                    break
                found.append(batch)
                count += len(batch.drafts.flags)
                if count >= _RUN_MESSAGES_MAX:
                    break
        except SprocketError:
            pass
        return found

    def _read(self, command: Command, peer: Peer) -> PlainBatch | None:
        header = command.read(SendBatch)
        name, number, text = header.topic, header.queue_id, header.properties or ""
        topic = self._placing.open_topic(name)
        if (
            topic is None
            or is_retry_topic(name)
            or has_batch_queues(topic.attributes)
            or not 0 <= number < topic.write_queue_nums
            or header.sys_flag & COMPRESSED
            or not 0 < len(command.body) <= self._settings.store.message_bytes_max
            or len(text) > SENT_TEXT_SHORT
        ):
            return None
        own, parts = self._texts.read(text), columns(bytes(command.body), count_max=BATCH_COUNT_MAX)
        if own is None or parts is None:
            return None
        plain = self._batches.read(parts.properties)
        if plain is None:
            return None
        unique_key, rest = own
        drafts = DraftBatch(
            topic=name,
            queue_number=number,
            sys_flag=stored_flag(header.sys_flag, topic),
            born_ms=header.born_timestamp,
            born_host=pack(peer.address),
            flags=parts.flags,
            bodies=parts.bodies,
            properties=plain.texts,
            properties_end=self._behind,
            tag_codes=plain.tag_codes,
            keys=plain.keys,
            unique_keys=plain.unique_keys,
        )
        envelope = Draft(name, number, b"", b"", 0, 0, 0, 0, b"", unique_key=unique_key)
        return PlainBatch(drafts, Destination(envelope, name, number, rest.is_awaited))
