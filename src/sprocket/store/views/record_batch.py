"""What the views receive of consecutive records of the log when they are rebuilt.

An object for each record would cost more than all other work on it. So the fields of many records
are in one flat list, record after record: to add a record makes no object that stays, and a column
is a slice with a step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple, TypeVar

from sprocket.message.inner_batch import INNER_BATCH
from sprocket.message.properties import PAIR_END
from sprocket.message.record import ROLLED_BACK, TRANSACTION_MASK
from sprocket.store.views.columns import INT, LONG, big_endian, rows
from sprocket.store.views.entry import IN_NO_QUEUE, Entry, EntryColumns

T = TypeVar("T")

#: For each message of a queue: queue offset, log offset, bytes of its record, tag code.
QUEUE_FIELDS = 4
#: For each record: topic, unique key and keys in UTF-8, log offset, and when it was stored, ms.
KEY_FIELDS = 5

_PAIR_END_BYTE = PAIR_END.encode()


class QueueColumns(NamedTuple):
    """Messages of one queue, column by column."""

    queue_offsets: list[int]
    log_offsets: list[int]
    record_bytes: list[int]
    tag_codes: list[int]
    #: How many messages a record holds, by its log offset, if it is not one.
    counts: Mapping[int, int] = MappingProxyType({})

    def count_of(self, log_offset: int) -> int:
        """How many messages the record at a log offset holds."""
        return self.counts.get(log_offset, 1)

    def packed(self) -> bytes:
        """Their entries as the bytes of the queue's files."""
        return rows(
            big_endian(LONG, self.log_offsets),
            big_endian(INT, self.record_bytes),
            big_endian(LONG, self.tag_codes),
        )


class KeyColumns(NamedTuple):
    """The keys of records, column by column; keys in UTF-8."""

    topics: list[str]
    keys: list[bytes]
    log_offsets: list[int]
    times_ms: list[int]

    def extend(self, more: KeyColumns) -> None:
        """Adds the keys of later records."""
        self.topics.extend(more.topics)
        self.keys.extend(more.keys)
        self.log_offsets.extend(more.log_offsets)
        self.times_ms.extend(more.times_ms)


class RecordBatch:
    """Some consecutive records.

    Attributes:
        count: how many.
        end: log offset after the last one.
        stored_ms: when the last one was stored.
        queues: `QUEUE_FIELDS` of each record that is in a queue, by topic and then by number.
        keyed: `KEY_FIELDS` of each record that can be found by key.
        counts: how many messages a record holds, by its log offset, for those that hold batches.
    """

    __slots__ = ("count", "counts", "end", "keyed", "queues", "stored_ms")

    def __init__(self) -> None:
        self.count = 0
        self.end = 0
        self.stored_ms = 0
        self.queues: dict[str, dict[int, list[int]]] = {}
        self.keyed: list[Any] = []
        self.counts: dict[int, int] = {}

    def count_of(self, log_offset: int) -> int:
        """How many messages the record at a log offset holds."""
        return self.counts.get(log_offset, 1)

    def batch_topics(self) -> set[str]:
        """The topics of records that hold batches."""
        return {
            topic
            for topic, queues in self.queues.items()
            if any(
                not self.counts.keys().isdisjoint(flat[1::QUEUE_FIELDS]) for flat in queues.values()
            )
        }

    def queue(self, topic: str, number: int) -> list[int]:
        """The flat list of a queue."""
        return self.queues.setdefault(topic, {}).setdefault(number, [])

    def add(self, entry: Entry) -> None:
        """Adds the next record."""
        log_offset = entry.log_offset
        self.count += 1
        self.end = log_offset + entry.record_bytes
        self.stored_ms = entry.stored_ms
        if not entry.sys_flag & IN_NO_QUEUE:
            self.queue(entry.topic, entry.queue_number).extend(
                (entry.queue_offset, log_offset, entry.record_bytes, entry.tag_code)
            )
            if entry.sys_flag & INNER_BATCH:
                self.counts[log_offset] = entry.count
        if not _is_rolled_back(entry.sys_flag):
            unique_key = entry.unique_key.encode("utf-8", "surrogatepass")
            keys = entry.keys.encode("utf-8", "surrogatepass")
            self.keyed += (entry.topic, unique_key, keys, log_offset, entry.stored_ms)

    def leave_out(self, deleted: Callable[[str], int]) -> None:
        """Removes records that were written before their topic was last deleted.

        Args:
            deleted: gives the log offset before which a topic's records are deleted; 0 if none are.
        """
        if not any(map(deleted, {*self.queues, *self.keyed[::KEY_FIELDS]})):
            return
        for topic, queues in self.queues.items():
            for flat in queues.values():
                rows = zip(*_columns(flat, QUEUE_FIELDS), strict=True)
                flat[:] = [each for row in rows if row[1] >= deleted(topic) for each in row]
        rows = zip(*_columns(self.keyed, KEY_FIELDS), strict=True)
        self.keyed = [each for row in rows if row[3] >= deleted(row[0]) for each in row]

    def key_columns(self) -> KeyColumns:
        """The keys of the records, in order."""
        topics, unique_keys, words, log_offsets, times_ms = _columns(self.keyed, KEY_FIELDS)
        texts = _PAIR_END_BYTE.join(words).decode("utf-8", "replace").split(PAIR_END)
        return _each_key(topics, unique_keys, texts, log_offsets, times_ms)

    def queue_columns(self) -> Iterator[tuple[tuple[str, int], QueueColumns]]:
        """Topic and number of each queue with messages, and the columns of these messages."""
        for topic, queues in self.queues.items():
            for number, flat in queues.items():
                if flat:
                    offsets, log_offsets, sizes, codes = _columns(flat, QUEUE_FIELDS)
                    yield (
                        (topic, number),
                        QueueColumns(offsets, log_offsets, sizes, codes, self.counts),
                    )


def _columns(flat: list[Any], fields: int) -> list[list[Any]]:
    return [flat[field::fields] for field in range(fields)]


def _paired(first: list[T], second: list[T]) -> list[T]:
    """The items of both lists, alternately."""
    both = [*first, *second]
    both[::2], both[1::2] = first, second
    return both


def _is_rolled_back(sys_flag: int) -> bool:
    """Whether a record marks a transaction as rolled back: it is not found by key."""
    return sys_flag & TRANSACTION_MASK == ROLLED_BACK


def keys_of(entries: Sequence[Entry]) -> KeyColumns:
    """The keys of records, in order."""
    entries = [entry for entry in entries if not _is_rolled_back(entry.sys_flag)]
    unique_keys = [entry.unique_key for entry in entries]
    # No property contains the separator, so all keys are encoded with one call.
    encoded = PAIR_END.join(unique_keys).encode("utf-8", "surrogatepass").split(_PAIR_END_BYTE)
    if len(encoded) != len(entries):
        encoded = [key.encode("utf-8", "surrogatepass") for key in unique_keys]
    return _each_key(
        [entry.topic for entry in entries],
        encoded,
        [entry.keys for entry in entries],
        [entry.log_offset for entry in entries],
        [entry.stored_ms for entry in entries],
    )


def keys_of_columns(columns: EntryColumns) -> KeyColumns:
    """The keys of records that were appended together, in order."""
    count = len(columns)
    return _each_key(
        [columns.topic] * count,
        columns.unique_keys,
        columns.keys,
        columns.log_offsets,
        [columns.stored_ms] * count,
    )


def _each_key(
    topics: list[str],
    unique_keys: list[bytes],
    words: list[str],
    log_offsets: list[int],
    times_ms: list[int],
) -> KeyColumns:
    """The unique key of each record, if it has one, and then each of its other keys once."""
    # The two usual cases need no loop over records: no keys besides the unique ones, and exactly
    # one key each. The joined texts show which case it is.
    if all(unique_keys) and not any(words):
        return KeyColumns(topics, unique_keys, log_offsets, times_ms)
    joined = PAIR_END.join(words)
    if joined.split() == [joined] and all(words) and all(unique_keys):
        encoded = joined.encode("utf-8", "surrogatepass").split(_PAIR_END_BYTE)
        if len(encoded) == len(words):  # one key each
            return KeyColumns(
                _paired(topics, topics),
                _paired(unique_keys, encoded),
                _paired(log_offsets, log_offsets),
                _paired(times_ms, times_ms),
            )
    found = KeyColumns([], [], [], [])
    for topic, unique_key, text, log_offset, stored_ms in zip(
        topics, unique_keys, words, log_offsets, times_ms, strict=True
    ):
        keys = [word.encode("utf-8", "surrogatepass") for word in dict.fromkeys(text.split())]
        if unique_key:
            keys.insert(0, unique_key)
        found.keys.extend(keys)
        found.topics.extend([topic] * len(keys))
        found.log_offsets.extend([log_offset] * len(keys))
        found.times_ms.extend([stored_ms] * len(keys))
    return found
