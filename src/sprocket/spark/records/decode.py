"""Records of one queue to an Arrow batch, column by column.

Only the columns that were asked for are decoded. Whatever the sender did (compression, IPv6,
bent properties, missing ids) gives a row; only bytes that are no records raise.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sprocket.base.errors import CorruptRecord
from sprocket.filter.tags import TagFilter
from sprocket.message.compression import COMPRESSED, open_body
from sprocket.message.hosts import V4_BYTES, unpack
from sprocket.message.ids import offset_id
from sprocket.message.properties import KEYS, TAGS, UNIQUE_KEY
from sprocket.message.queue import QueueId
from sprocket.spark.records import layout
from sprocket.spark.records.layout import Buffer, Layout
from sprocket.spark.records.property_texts import Texts

if TYPE_CHECKING:
    from sprocket.filter.sql92 import SqlFilter

#: Years 1 to 9999, in ms: what Spark and Python can show. Times outside are set to the edge.
_EARLIEST_MS = -62_135_596_800_000
_LATEST_MS = 253_402_300_799_999


class Decoder:
    """Decodes records into batches of one Arrow schema."""

    def __init__(self, schema: pa.Schema, wanted: TagFilter | SqlFilter) -> None:
        self._schema = schema
        self._filter = wanted

    def decode(self, buffer: Buffer, queue: QueueId, start: int, end: int) -> pa.RecordBatch:
        """The rows of the wanted records of one queue whose offset lies in [start, end).

        Raises:
            CorruptRecord: the bytes are not one record after the other.
        """
        places = layout.lay_out(buffer)
        offsets = places.of(layout.QUEUE_OFFSET_AT, "i8")
        inside = (offsets >= start) & (offsets < end)
        if not inside.all():
            places = places.keep(inside)
        return self.rows(places, queue, queue.broker)

    def rows(self, places: Layout, queue: QueueId | None, broker: str | None) -> pa.RecordBatch:
        """The rows of the wanted ones of some records.

        Args:
            queue: where they all lie; None if their own words are to be taken.
            broker: what the column `broker` shows.
        """
        rows = _Rows(places, queue, broker)
        if not self._filter.is_all and rows.count:
            rows = _Rows(places.keep(self._wanted(rows)), queue, broker)
        columns = [_COLUMNS[field.name](rows, field.type) for field in self._schema]
        return pa.RecordBatch.from_arrays(columns, schema=self._schema)

    def _wanted(self, rows: _Rows) -> NDArray[np.bool_]:
        if isinstance(self._filter, TagFilter):
            found = pc.is_in(rows.tag(), pa.array(self._filter.tags, pa.string()))
            return cast("NDArray[np.bool_]", found.to_numpy(zero_copy_only=False))
        # A broker has judged already, if it can; judging again costs a microsecond.
        is_wanted = self._filter.matches_text
        view = memoryview(rows.layout.buffer)
        spans = zip(rows.layout.properties.tolist(), rows.layout.ends.tolist(), strict=True)
        return np.fromiter((is_wanted(bytes(view[a:b])) for a, b in spans), np.bool_, rows.count)


class _Rows:
    """The columns of a run of records."""

    def __init__(self, places: Layout, queue: QueueId | None, broker: str | None) -> None:
        self.layout = places
        self.queue = queue
        self.broker = broker
        self._texts: Texts | None = None

    @property
    def count(self) -> int:
        return len(self.layout.starts)

    def constant(self, value: Any, kind: pa.DataType) -> pa.Array:
        return pa.repeat(pa.scalar(value, kind), self.count)

    def topic(self) -> pa.Array:
        if self.queue is not None:
            return self.constant(self.queue.topic, pa.string())
        return topics_of(self.layout)

    def queue_id(self) -> pa.Array:
        if self.queue is not None:
            return self.constant(self.queue.number, pa.int32())
        return self.number(layout.QUEUE_NUMBER_AT, "i4")

    def number(self, offset: int, kind: str) -> pa.Array:
        return pa.array(self.layout.of(offset, kind))

    def time(self, at: NDArray[np.int64]) -> pa.Array:
        stamps = layout.numbers(self.layout.buffer, at, "i8")
        micros = np.clip(stamps, _EARLIEST_MS, _LATEST_MS) * 1000
        return pa.array(micros).cast(pa.timestamp("us", tz="UTC"))

    def body(self, kind: pa.DataType) -> pa.Array:
        places = self.layout
        compressed = np.flatnonzero(places.sys_flags & COMPRESSED)
        bodies = _slices(places.buffer, places.bodies, places.body_ends)
        if len(compressed):
            opened = bodies.to_pylist()
            for index in compressed.tolist():
                opened[index] = _opened(opened[index], int(places.sys_flags[index]))
            bodies = pa.array(opened, pa.binary())
        return bodies if kind == pa.binary() else _as_text(bodies)

    def properties(self) -> pa.Array:
        return self.texts.maps()

    def tag(self) -> pa.Array:
        return self.texts.values_of(TAGS)

    def key(self) -> pa.Array:
        return self.texts.values_of(KEYS)

    @property
    def texts(self) -> Texts:
        if self._texts is None:
            places = self.layout
            joined = _slices(places.buffer, places.properties, places.ends)
            lengths = places.ends - places.properties
            ends = np.concatenate(([0], np.cumsum(lengths)))
            data = joined.buffers()[2]
            self._texts = Texts(memoryview(data)[: int(ends[-1])] if data else b"", ends)
        return self._texts

    def message_id(self) -> pa.Array:
        ids = self.texts.values_of(UNIQUE_KEY)
        return pc.coalesce(ids, self.offset_id()) if ids.null_count else ids

    def offset_id(self) -> pa.Array:
        logs = self.layout.of(layout.LOG_OFFSET_AT, "i8").tolist()
        hosts = self._hosts(self.layout.stored_at + 8, self.layout.store_more)
        made = [offset_id(host, log) for host, log in zip(hosts, logs, strict=True)]
        return pa.array(made, pa.string())

    def born_host(self) -> pa.Array:
        places = self.layout
        hosts = self._hosts(places.starts + layout.BORN_HOST_AT, places.born_more)
        return pa.array([unpack(host) for host in hosts], pa.string())

    def store_host(self) -> pa.Array:
        hosts = self._hosts(self.layout.stored_at + 8, self.layout.store_more)
        return pa.array([unpack(host) for host in hosts], pa.string())

    def _hosts(self, at: NDArray[np.int64], more: NDArray[np.int64]) -> list[bytes]:
        view = memoryview(self.layout.buffer)
        ends = (at + V4_BYTES + more).tolist()
        return [bytes(view[a:b]) for a, b in zip(at.tolist(), ends, strict=True)]


def topics_of(places: Layout) -> pa.Array:
    """The topic that each record names."""
    return _as_text(_slices(places.buffer, places.topics, places.properties - 2))


def _slices(buffer: Buffer, begin: NDArray[np.int64], end: NDArray[np.int64]) -> pa.Array:
    """Copies [begin, end) of each record; begins and ends only rise."""
    edges = np.empty(2 * len(begin) + 1, np.int32)
    edges[0:-1:2], edges[1::2] = begin, end
    edges[-1] = end[-1] if len(end) else 0
    pieces = pa.BinaryArray.from_buffers(
        pa.binary(), len(edges) - 1, [None, pa.py_buffer(edges), pa.py_buffer(buffer)]
    )
    return pieces.take(pa.array(np.arange(0, 2 * len(begin), 2, dtype=np.int64)))


def _opened(body: bytes, sys_flag: int) -> bytes:
    """The body opened; as it is if it cannot be, as RocketMQ's own clients do."""
    try:
        return open_body(body, sys_flag)
    except CorruptRecord:
        return body


def _as_text(bodies: pa.Array) -> pa.Array:
    try:
        return bodies.cast(pa.string())
    except pa.ArrowInvalid:
        return pa.array([body.decode("utf-8", "replace") for body in bodies.to_pylist()])


_COLUMNS: dict[str, Callable[[_Rows, pa.DataType], pa.Array]] = {
    "topic": lambda rows, _: rows.topic(),
    "broker": lambda rows, kind: rows.constant(rows.broker, kind),
    "queue_id": lambda rows, _: rows.queue_id(),
    "queue_offset": lambda rows, _: rows.number(layout.QUEUE_OFFSET_AT, "i8"),
    "key": lambda rows, _: rows.key(),
    "tag": lambda rows, _: rows.tag(),
    "body": lambda rows, kind: rows.body(kind),
    "properties": lambda rows, _: rows.properties(),
    "born_timestamp": lambda rows, _: rows.time(rows.layout.starts + layout.BORN_AT),
    "store_timestamp": lambda rows, _: rows.time(rows.layout.stored_at),
    "message_id": lambda rows, _: rows.message_id(),
    "log_offset": lambda rows, _: rows.number(layout.LOG_OFFSET_AT, "i8"),
    "flag": lambda rows, _: rows.number(16, "i4"),
    "sys_flag": lambda rows, _: pa.array(rows.layout.sys_flags),
    "reconsume_times": lambda rows, _: pa.array(
        layout.numbers(rows.layout.buffer, rows.layout.tail_at, "i4")
    ),
    "prepared_offset": lambda rows, _: pa.array(
        layout.numbers(rows.layout.buffer, rows.layout.tail_at + 4, "i8")
    ),
    "record_bytes": lambda rows, _: pa.array(
        (rows.layout.ends - rows.layout.starts).astype(np.int32)
    ),
    "body_crc": lambda rows, _: rows.number(8, "i4"),
    "born_host": lambda rows, _: rows.born_host(),
    "store_host": lambda rows, _: rows.store_host(),
    "offset_id": lambda rows, _: rows.offset_id(),
}
