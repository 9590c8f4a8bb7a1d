"""Reads staged batches: what they must be to be staged, and the drafts that are published.

What would be refused at a send is refused when it is staged, since a decision to publish cannot be
taken back.
"""

from __future__ import annotations

from sprocket.base.errors import IllegalMessage, InvalidParameter, TopicNotFound
from sprocket.base.ports import Clock
from sprocket.broker.sending.batch_reader import PlainBatch
from sprocket.broker.sending.destination import Destination, check_batched
from sprocket.broker.sending.intake import BATCH_COUNT_MAX, Placing, check_room, stored_flag
from sprocket.broker.sending.plain import PlainTexts
from sprocket.broker.sending.plain_batches import PlainBatches
from sprocket.broker.sending.stamp import Stamp
from sprocket.broker.settings import BrokerSettings
from sprocket.message import properties as names
from sprocket.message.batch import BatchColumns, columns
from sprocket.message.draft_batch import DraftBatch
from sprocket.message.drafting import drafted
from sprocket.message.properties import SENT_TEXT_SHORT, decode, encode
from sprocket.message.record import Draft, Record
from sprocket.message.topic_attributes import has_batch_queues
from sprocket.protocol.bodies import TopicConfig
from sprocket.protocol.requests.staged import StageBatch
from sprocket.transaction.staged import StagedHead, mark_of

#: A batch with one of these in its properties is read message by message before it is staged. Each
#: is one search, so the names of timers, which all begin with the last one, are one.
_REFUSED = (
    *(f"{name}{names.NAME_END}".encode() for name in (names.HALF, names.DELAY, names.LITE_TOPIC)),
    b"TIMER_DEL",
)


class StagedReader:
    """Reads staged batches."""

    def __init__(
        self, placing: Placing, stamp: Stamp, *, settings: BrokerSettings, clock: Clock
    ) -> None:
        self._placing = placing
        self._stamp = stamp
        self._settings = settings
        self._clock = clock
        self._batches = PlainBatches(PlainTexts())

    def check(self, header: StageBatch, body: bytes) -> int:
        """Checks a batch before it is staged, and creates its topic if that is missing and may be.

        Returns:
            How many messages it has.

        Raises:
            TopicNotFound, InvalidParameter, IllegalMessage, NoPermission: it could not be
                published.
        """
        count = self._count(body)
        self._placing.checked_topic(
            header.topic, template=header.default_topic, queues=header.default_topic_queue_nums
        )
        self.place(header.topic, header.queue_id)
        return count

    def _count(self, body: bytes) -> int:
        bytes_max = self._settings.store.message_bytes_max
        if len(body) > bytes_max:
            raise IllegalMessage(
                f"the batch has {len(body)} bytes, at most {bytes_max} are allowed"
            )
        parts = columns(body, count_max=BATCH_COUNT_MAX)
        if parts is None or not all(parts.bodies):
            raise IllegalMessage(
                f"the body is no batch of 1 to {BATCH_COUNT_MAX} messages, each with a body"
            )
        is_long = max(map(len, parts.properties)) > SENT_TEXT_SHORT
        together = b"".join(parts.properties)
        if is_long or any(name in together for name in _REFUSED):
            for text in parts.properties:
                self._properties(text)
        return len(parts.bodies)

    def place(self, name: str, queue: int) -> TopicConfig:
        """The topic, if its queue takes staged messages.

        Raises:
            TopicNotFound: there is no such topic, or not one for any sender.
            InvalidParameter: the queue is not one to write to, or keeps batches as one record.
        """
        topic = self._placing.staged_topic(name)
        if topic is None:
            raise TopicNotFound(f"topic[{name}] does not exist, or takes no staged messages")
        if has_batch_queues(topic.attributes):
            raise InvalidParameter(f"topic {name} keeps batches as one record: they are not staged")
        if not 0 <= queue < topic.write_queue_nums:
            raise InvalidParameter(
                f"request queueId[{queue}] is illegal, topic {name} has {topic.write_queue_nums} "
                "queues to write"
            )
        return topic

    def drafts(self, record: Record, head: StagedHead) -> PlainBatch | list[Draft]:
        """The messages of a staged record, each with its mark.

        Raises:
            TopicNotFound, InvalidParameter, IllegalMessage: they cannot be published any more.
        """
        topic = self.place(head.topic, head.queue)
        parts = columns(bytes(record.body), count_max=BATCH_COUNT_MAX)
        if parts is None:
            raise IllegalMessage(f"the record at {record.log_offset} holds no batch")
        plain = self._batches.read(parts.properties)
        if plain is None:
            return self._each(record, head, parts, stored_flag(0, topic))
        drafts = DraftBatch(
            topic=head.topic,
            queue_number=head.queue,
            sys_flag=stored_flag(0, topic),
            born_ms=record.born_ms,
            born_host=record.born_host,
            flags=parts.flags,
            bodies=parts.bodies,
            properties=plain.texts,
            properties_end=self._stamp.behind(""),
            tag_codes=plain.tag_codes,
            keys=plain.keys,
            unique_keys=plain.unique_keys,
            prepared_offset=mark_of(record),
        )
        return plain_batch(drafts)

    def _each(
        self, record: Record, head: StagedHead, parts: BatchColumns, sys_flag: int
    ) -> list[Draft]:
        """The messages one by one, if something about one of them is unusual."""
        found = []
        for flag, body, text in zip(*parts, strict=True):
            properties = self._properties(text)
            found.append(
                drafted(
                    properties,
                    topic=head.topic,
                    queue_number=head.queue,
                    body=body,
                    flag=flag,
                    sys_flag=sys_flag,
                    born_ms=record.born_ms,
                    born_host=record.born_host,
                    prepared_offset=mark_of(record),
                    text=encode(properties).encode("utf-8", "replace"),
                )
            )
        return found

    def _properties(self, raw: bytes) -> dict[str, str]:
        text = str(raw, "utf-8", "replace")
        properties = decode(text)
        check_batched(properties)
        self._stamp.mark(properties, self._clock.now_ms())
        check_room(text, properties)
        return properties


def plain_batch(drafts: DraftBatch) -> PlainBatch:
    """A batch whose sender waits until it is safe."""
    name, number = drafts.topic, drafts.queue_number
    envelope = Draft(name, number, b"", b"", 0, 0, 0, 0, b"")
    return PlainBatch(drafts, Destination(envelope, name, number, is_awaited=True))
