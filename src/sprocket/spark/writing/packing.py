"""Rows as they stand in the bodies of batch sends, made column by column. Pure.

Most rows are alike: a body, perhaps a key, a tag and properties, all for one topic. For these Arrow
joins whole columns, and no object is made for a row. What is different goes through `rows` and
gives the same messages.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from sprocket.base.errors import UsageError
from sprocket.clientcore.envelope import JAVA_PACKING, check
from sprocket.message.ids import UniqueIds
from sprocket.message.message import Message
from sprocket.message.outgoing import text_of
from sprocket.message.properties import (
    KEYS,
    NAME_END,
    PAIR_END,
    RESERVED,
    SENT_PROPERTIES_BYTES_MAX,
    TAGS,
    UNIQUE_KEY,
    WAIT,
)
from sprocket.message.topic import is_retry_topic
from sprocket.spark.options.write_options import WriteOptions

#: What stands before a message's body, and before its properties; see `sprocket.message.batch`.
_HEAD = np.dtype([("size", ">i4"), ("unread", ">i8"), ("flag", ">i4"), ("body_bytes", ">i4")])
_LENGTH = np.dtype(">i2")
_INT_MAX = (1 << 31) - 1
#: What stands in front of a message's properties besides its body.
_FIXED_BYTES = _HEAD.itemsize + _LENGTH.itemsize
#: The last four digits of a unique key, by number.
_DIGITS = np.array([b"%04X" % number for number in range(1 << 16)])
_PAIR_END = pa.scalar(PAIR_END.encode())
#: Bytes of all messages of some rows at most, since Arrow counts them in 31 bits.
_TOGETHER_MAX = 1 << 30
#: Columns whose rows are sent one by one, or to a queue of their own.
_SPECIAL = ("broker", "queue_id", "delay_level", "deliver_at")
_RESERVED = pa.array(sorted(RESERVED))
#: Keys that are not what is sent: a blank too many, or a sign that might be a blank or a separator.
_NO_KEYS = r"^ |  | $|[^\x20-\x7e]"


class PackedRows(NamedTuple):
    """Messages for one topic, one behind the other.

    Attributes:
        content: all of them; they may be cut between two of them.
        offsets: where each begins, and where the last ends.
    """

    topic: str
    content: memoryview
    offsets: npt.NDArray[np.int32]


class RowPacker:
    """Packs rows.

    Args:
        options: the user's options.
        ids: makes the unique keys.
        id_prefix: begins the ids that rows keep in each attempt.
    """

    def __init__(self, options: WriteOptions, ids: UniqueIds, id_prefix: str) -> None:
        self._options = options
        self._ids = ids
        self._id_prefix = id_prefix
        self._is_usual = (
            options.batch_records > 1 and not options.delay_level and options.queue_by == "turn"
        )

    def pack(self, batch: pa.RecordBatch, now_ms: int, first_row: int) -> PackedRows | None:
        """The messages of some rows.

        Args:
            first_row: how many rows of the task came before.

        Returns:
            None if they have to be made one by one: something about them is unusual, or wrong.
        """
        count = batch.num_rows
        given = {name: batch.column(name) for name in batch.schema.names}
        if not (self._is_usual and count):
            return None
        if any(given[name].null_count < count for name in _SPECIAL if name in given):
            return None
        bodies = given["body"].cast(pa.binary())
        sizes = _sizes(bodies)
        largest = JAVA_PACKING.compress_over_bytes
        if bodies.null_count or not 0 < sizes.min() <= sizes.max() < largest:
            return None
        try:
            topic = self._topic(given.get("topic"))
            keys, tags = _keys(given.get("key")), self._tags(given.get("tag"), topic)
            flags = _flags(given.get("flag"), count)
            own = self._properties(given.get("properties"), first_row, count)
        except UsageError:  # by itself, each row is told what is wrong with it
            return None
        stem, first = self._ids.make_many(count, now_ms)
        digits = _DIGITS[(first + np.arange(count)) & 0xFFFF]
        texts = [
            *own,
            *_pairs(KEYS, keys),
            *_pairs(TAGS, tags),
            *_pairs(WAIT, pa.scalar("true")),
            pa.scalar(f"{UNIQUE_KEY}{NAME_END}{stem}".encode()),
            _fixed(digits),
            _PAIR_END,
        ]
        return _joined(topic, bodies, flags, texts)

    def _properties(self, column: pa.Array | None, first_row: int, count: int) -> list[pa.Array]:
        """The user's properties of each row as text.

        Raises:
            UsageError: one cannot be carried.
        """
        name = self._options.id_property
        texts = [] if column is None else [_map_texts(column, name)]
        if name is not None:
            rows = pa.array(range(first_row, first_row + count)).cast(pa.string())
            texts += _pairs(name, pc.binary_join_element_wise(self._id_prefix, rows, "-"))
        return texts

    def _topic(self, column: pa.Array | None) -> str:
        """The topic of all rows.

        Raises:
            UsageError: there are several, or it cannot be sent to like this.
        """
        topics = [None] if column is None else pc.unique(column).to_pylist()
        topic = topics[0] or self._options.topic
        if len(topics) > 1 or topic is None or is_retry_topic(topic):
            raise UsageError("not one topic for all")
        check(Message(topic, b"x"), JAVA_PACKING.body_bytes_max)
        return topic

    def _tags(self, column: pa.Array | None, topic: str) -> pa.Array | pa.Scalar:
        """The tag of each row or of all, an empty text for none.

        Raises:
            UsageError: one is not valid.
        """
        of_all = self._options.tag or ""
        tags, different = pa.scalar(of_all), [of_all]
        if column is not None and column.null_count < len(column):
            column = pc.fill_null(column, "")
            tags = pc.if_else(pc.equal(column, ""), of_all, column)
            different = pc.unique(tags).to_pylist()
        for tag in different:
            text_of(Message(topic, b"x", tag=tag))
        return tags


def _map_texts(column: pa.Array, id_property: str | None) -> pa.Array:
    """The text of each map's pairs, without RocketMQ's own properties and those without a value.

    Raises:
        UsageError: a pair cannot be carried, or has the name of the rows' ids.
    """
    ends = np.asarray(column.offsets, np.int64)
    names, values = column.keys, pc.fill_null(column.items, "")
    is_own = pc.or_(pc.is_in(names, _RESERVED), pc.equal(values, ""))
    wrong = pc.or_(pc.equal(names, ""), pc.equal(names, id_property or ""))
    for texts in (names, values):
        wrong = pc.or_(wrong, pc.match_substring_regex(texts, f"[{NAME_END}{PAIR_END}]"))
    if pc.any(pc.and_(wrong, pc.invert(is_own))).as_py():
        raise UsageError("a property cannot be carried")
    if np.diff(ends)[np.asarray(column.is_null())].any():
        raise UsageError("a map that is null has pairs")
    pieces = (names.cast(pa.binary()), NAME_END.encode(), values.cast(pa.binary()), _PAIR_END)
    texts = pc.if_else(is_own, b"", pc.binary_join_element_wise(*pieces, b""))
    _, offsets, content = texts.buffers()
    begins = np.frombuffer(offsets, np.int32)[ends]
    return pa.Array.from_buffers(pa.binary(), len(column), [None, pa.py_buffer(begins), content])


def _keys(column: pa.Array | None) -> pa.Array | pa.Scalar:
    """The keys of each row, separated by single blanks, an empty text for none.

    Raises:
        UsageError: one cannot be carried.
    """
    if column is None or column.null_count == len(column):
        return pa.scalar("")
    column = pc.fill_null(column, "")
    if pc.any(pc.match_substring_regex(column, _NO_KEYS)).as_py():
        column = pa.array([" ".join(words.split()) for words in column.to_pylist()], pa.string())
        if pc.any(pc.match_substring_regex(column, f"[{NAME_END}{PAIR_END}]")).as_py():
            raise UsageError("a key contains a separator")
    return column


def _flags(column: pa.Array | None, count: int) -> npt.NDArray[np.int64]:
    """The flag of each row.

    Raises:
        UsageError: one does not fit.
    """
    if column is None:
        return np.zeros(count, np.int64)
    flags: npt.NDArray[np.int64] = np.asarray(pc.fill_null(column, 0), np.int64)
    if not -_INT_MAX <= flags.min() <= flags.max() <= _INT_MAX:
        raise UsageError("a flag has 32 bits")
    return flags


def _pairs(name: str, values: pa.Array | pa.Scalar) -> list[pa.Array | pa.Scalar]:
    """A property of each row or of all, in pieces; there is none where its value is empty."""
    begin = f"{name}{NAME_END}".encode()
    if isinstance(values, pa.Scalar):
        text = values.as_py().encode()
        return [pa.scalar(begin + text + _PAIR_END.as_py())] if text else []
    values = values.cast(pa.binary())
    pieces = [pa.scalar(begin), values, _PAIR_END]
    if not pc.any(is_empty := pc.equal(values, b"")).as_py():
        return pieces
    return [pc.if_else(is_empty, b"", pc.binary_join_element_wise(*pieces, b""))]


def _joined(
    topic: str,
    bodies: pa.Array,
    flags: npt.NDArray[np.int64],
    texts: list[pa.Array | pa.Scalar],
) -> PackedRows | None:
    """The messages; None if one's properties are too long, or all messages together."""
    text_sizes = np.zeros(len(bodies), np.int64)
    for piece in texts:
        text_sizes += _sizes(piece)
    sizes = _sizes(bodies)
    heads = np.zeros(len(bodies), _HEAD)
    heads["size"] = _FIXED_BYTES + sizes + text_sizes
    heads["flag"], heads["body_bytes"] = flags, sizes
    if text_sizes.max() > SENT_PROPERTIES_BYTES_MAX or heads["size"].sum() > _TOGETHER_MAX:
        return None
    lengths = _fixed(text_sizes.astype(_LENGTH))
    found = pc.binary_join_element_wise(_fixed(heads), bodies, lengths, *texts, b"")
    _, offsets, content = found.buffers()
    ends = np.frombuffer(offsets, np.int32)[: len(bodies) + 1]
    return PackedRows(topic, memoryview(content), ends)


def _sizes(values: pa.Array | pa.Scalar) -> Any:
    """The bytes of each value, or of the only one; 0 for null."""
    if isinstance(values, pa.Scalar):
        return len(values.as_py())
    lengths = pc.fill_null(pc.binary_length(values), 0)
    return lengths.to_numpy(zero_copy_only=False).astype(np.int64)


def _fixed(rows: npt.NDArray[Any]) -> pa.Array:
    """The bytes of each row of an array as a column."""
    count, size = len(rows), rows.dtype.itemsize
    offsets = np.arange(0, (count + 1) * size, size, dtype=np.int32)
    content = pa.py_buffer(np.ascontiguousarray(rows))
    return pa.Array.from_buffers(pa.binary(), count, [None, pa.py_buffer(offsets), content])
