"""Decodes records into an Arrow batch, column by column.

Only the columns of the schema are decoded. Every record becomes a row, whatever its sender did
(compression, IPv6, irregular properties, missing ids); only bytes that are no records raise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sprocket.base.errors import CorruptRecord, RemoteProtocolError
from sprocket.filter.tags import TagFilter
from sprocket.message.compression import COMPRESSED, open_body
from sprocket.message.inner_batch import WRAPPED
from sprocket.message.properties import KEYS, TAGS, UNIQUE_KEY
from sprocket.message.queue import QueueId
from sprocket.message.record import (
    BODY_CRC_AT,
    BORN_AT,
    FLAG_AT,
    LOG_OFFSET_AT,
    PREPARED_OFFSET_AT,
    QUEUE_NUMBER_AT,
    QUEUE_OFFSET_AT,
    RECONSUME_TIMES_AT,
    STORED_AT,
)
from sprocket.spark.records import layout
from sprocket.spark.records.batches import taken_apart
from sprocket.spark.records.heads import Buffer, window
from sprocket.spark.records.hosts import born_hosts, offset_ids, store_hosts
from sprocket.spark.records.layout import Layout
from sprocket.spark.records.property_texts import PropertyTexts
from sprocket.spark.records.slices import slices

if TYPE_CHECKING:
    from sprocket.filter.sql92 import SqlFilter
    from sprocket.spark.records.body_columns import BodyColumns

#: When the opened bodies of a batch have so many bytes, the next one begins another batch: Arrow
#: and Spark copy a batch a few times.
OPENED_BYTES = 16 * 1024 * 1024

#: Years 1 to 9999, in ms, the range of Spark and Python. Times outside are set to its bounds.
_EARLIEST_MS = -62_135_596_800_000
_LATEST_MS = 253_402_300_799_999
#: Of a run that may have one topic, one in so many records is compared first.
_SAMPLED = 512


class Decoder:
    """Decodes records into batches of one Arrow schema."""

    def __init__(
        self,
        schema: pa.Schema,
        wanted: TagFilter | SqlFilter,
        bodies: BodyColumns | None = None,
    ) -> None:
        self._schema = schema
        self._filter = wanted
        self._bodies = bodies
        self._reads_bodies = "body" in schema.names or bodies is not None

    def decode(
        self, buffer: Buffer, queue: QueueId, start: int, end: int
    ) -> Iterator[pa.RecordBatch]:
        """The rows of those records of one queue that pass the filter and are in [start, end).

        Raises:
            CorruptRecord: the buffer is not a sequence of records.
        """
        places = layout.lay_out(buffer)
        if ((places.sys_flags & WRAPPED) == WRAPPED).any():
            try:
                places = layout.lay_out(taken_apart(buffer))
            except RemoteProtocolError as error:
                raise CorruptRecord(f"a record of {queue} holds no batch: {error}") from error
        offsets = places.of(QUEUE_OFFSET_AT, "i8")
        inside = (offsets >= start) & (offsets < end)
        if not inside.all():
            places = places.filtered(inside)
        return self.rows(places, queue, queue.broker)

    def rows(
        self, places: Layout, queue: QueueId | None, broker: str | None
    ) -> Iterator[pa.RecordBatch]:
        """The rows of those records that pass the filter, in batches that are not empty.

        There is one batch, unless compressed bodies open to more than `OPENED_BYTES`.

        Args:
            queue: the queue of all records; None to read topic and queue number from each.
            broker: the value of the column `broker`.
        """
        rows = _Rows(places, queue, broker)
        if not self._filter.is_all and rows.count:
            rows = _Rows(places.filtered(self._wanted(rows)), queue, broker)
        if not rows.count:
            return
        if not self._reads_bodies or not (rows.layout.sys_flags & COMPRESSED).any():
            yield self._batch(rows)
            return
        for part, bodies in _opened_parts(rows.layout):
            yield self._batch(_Rows(part, queue, broker, bodies))

    def _batch(self, rows: _Rows) -> pa.RecordBatch:
        made: dict[str, pa.Array] = {}
        if self._bodies is not None:
            properties = rows.properties if self._bodies.reads_properties else None
            made = self._bodies.of(rows.body(pa.binary()), properties)
        columns = [
            made[field.name] if field.name in made else _COLUMNS[field.name](rows, field.type)
            for field in self._schema
        ]
        return pa.RecordBatch.from_arrays(columns, schema=self._schema)

    def _wanted(self, rows: _Rows) -> NDArray[np.bool_]:
        if isinstance(self._filter, TagFilter):
            found = pc.is_in(rows.tag(), pa.array(self._filter.tags, pa.string()))
            return cast("NDArray[np.bool_]", found.to_numpy(zero_copy_only=False))
        # A broker that can filter by SQL has done so; a second time costs 1 µs a record.
        is_wanted = self._filter.matches_text
        view = memoryview(rows.layout.buffer)
        spans = zip(rows.layout.properties.tolist(), rows.layout.ends.tolist(), strict=True)
        return np.fromiter((is_wanted(bytes(view[a:b])) for a, b in spans), np.bool_, rows.count)


class _Rows:
    """The columns of a run of records; properties are parsed only when a column needs them."""

    def __init__(
        self,
        places: Layout,
        queue: QueueId | None,
        broker: str | None,
        bodies: list[bytes] | None = None,
    ) -> None:
        self.layout = places
        self._bodies = bodies
        self.queue = queue
        self.broker = broker
        self._texts: PropertyTexts | None = None

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
        return self.number(QUEUE_NUMBER_AT, "i4")

    def number(self, offset: int, kind: str) -> pa.Array:
        return pa.array(self.layout.of(offset, kind))

    def time(self, offset: int) -> pa.Array:
        micros = np.clip(self.layout.of(offset, "i8"), _EARLIEST_MS, _LATEST_MS) * 1000
        return pa.array(micros).cast(pa.timestamp("us", tz="UTC"))

    # Bodies that are not compressed, usually all, are copied in one go; only if one is compressed
    # do they become Python objects.
    def body(self, kind: pa.DataType) -> pa.Array:
        places = self.layout
        if self._bodies is None:
            bodies = slices(places.buffer, places.bodies, places.body_ends)
        else:
            bodies = pa.array(self._bodies, pa.binary())
        return bodies if kind == pa.binary() else _as_text(bodies)

    def properties(self) -> pa.Array:
        return self.texts.maps()

    def tag(self) -> pa.Array:
        return self.texts.values_of(TAGS)

    def key(self) -> pa.Array:
        return self.texts.values_of(KEYS)

    @property
    def texts(self) -> PropertyTexts:
        if self._texts is None:
            places = self.layout
            self._texts = PropertyTexts(places.buffer, places.properties, places.ends)
        return self._texts

    def message_id(self) -> pa.Array:
        ids = self.texts.values_of(UNIQUE_KEY)
        return pc.coalesce(ids, offset_ids(self.layout)) if ids.null_count else ids


def topics_of(places: Layout) -> pa.Array:
    """The topic in each record."""
    only = only_topic(places)
    if only is not None:
        return pa.repeat(pa.scalar(only, pa.string()), len(places.starts))
    return _as_text(slices(places.buffer, places.topics, places.properties - 2))


def only_topic(places: Layout) -> str | None:
    """The topic that all records have; None if there are several, or no records."""
    ends = places.properties - 2
    sizes = ends - places.topics
    if len(sizes) == 0 or sizes[0] == 0 or bool((sizes != sizes[0]).any()):
        return None
    topics = window(places.buffer, f"S{sizes[0]}")
    # Most runs of several topics are found out by some of their records.
    for at in (places.topics[::_SAMPLED], places.topics):
        if bool((topics[at] != topics[at[0]]).any()):
            return None
    return bytes(memoryview(places.buffer)[places.topics[0] : ends[0]]).decode("utf-8", "replace")


def _opened_parts(places: Layout) -> Iterator[tuple[Layout, list[bytes]]]:
    """Runs of records with their opened bodies: each run opens to the bound and one body at most.

    A body that cannot be opened stays as it is, as in RocketMQ's own clients.
    """
    view = memoryview(places.buffer)
    spans = zip(
        places.bodies.tolist(),
        places.body_ends.tolist(),
        places.sys_flags.tolist(),
        strict=True,
    )
    begin, size = 0, 0
    bodies: list[bytes] = []
    for index, (start, end, sys_flag) in enumerate(spans):
        body = bytes(view[start:end])
        if sys_flag & COMPRESSED:
            if bodies and size >= OPENED_BYTES:
                yield places.part(begin, index), bodies
                begin, size, bodies = index, 0, []
            with suppress(CorruptRecord):
                body = open_body(body, sys_flag)
            size += len(body)
        bodies.append(body)
    yield places.part(begin, len(places.starts)), bodies


def _as_text(bodies: pa.Array) -> pa.Array:
    try:
        return bodies.cast(pa.string())
    except pa.ArrowInvalid:
        return pa.array([body.decode("utf-8", "replace") for body in bodies.to_pylist()])


_COLUMNS: dict[str, Callable[[_Rows, pa.DataType], pa.Array]] = {
    "topic": lambda rows, _: rows.topic(),
    "broker": lambda rows, kind: rows.constant(rows.broker, kind),
    "queue_id": lambda rows, _: rows.queue_id(),
    "queue_offset": lambda rows, _: rows.number(QUEUE_OFFSET_AT, "i8"),
    "key": lambda rows, _: rows.key(),
    "tag": lambda rows, _: rows.tag(),
    "body": lambda rows, kind: rows.body(kind),
    "properties": lambda rows, _: rows.properties(),
    "born_timestamp": lambda rows, _: rows.time(BORN_AT),
    "store_timestamp": lambda rows, _: rows.time(STORED_AT),
    "message_id": lambda rows, _: rows.message_id(),
    "log_offset": lambda rows, _: rows.number(LOG_OFFSET_AT, "i8"),
    "flag": lambda rows, _: rows.number(FLAG_AT, "i4"),
    "sys_flag": lambda rows, _: pa.array(rows.layout.sys_flags),
    "reconsume_times": lambda rows, _: rows.number(RECONSUME_TIMES_AT, "i4"),
    "prepared_offset": lambda rows, _: rows.number(PREPARED_OFFSET_AT, "i8"),
    "record_bytes": lambda rows, _: pa.array(
        (rows.layout.ends - rows.layout.starts).astype(np.int32)
    ),
    "body_crc": lambda rows, _: rows.number(BODY_CRC_AT, "i4"),
    "born_host": lambda rows, _: born_hosts(rows.layout),
    "store_host": lambda rows, _: store_hosts(rows.layout),
    "offset_id": lambda rows, _: offset_ids(rows.layout),
}
