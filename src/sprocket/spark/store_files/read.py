"""Spark's readers of a broker's store: the driver plans log files, and tasks read them.

Named topics that have consume queues are read through those, which gives what the broker would
give. Everything else is read from the log itself, record by record: all topics, those of a pattern,
a deleted topic, and records that the broker has not put into consume queues yet.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyspark.sql.datasource import DataSourceReader, InputPartition

from sprocket.base.errors import CorruptRecord, RemoteProtocolError
from sprocket.filter.tags import TagFilter
from sprocket.message.inner_batch import WRAPPED
from sprocket.message.record import PREPARED, ROLLED_BACK, STORED_AT, TRANSACTION_MASK
from sprocket.message.topic import SCHEDULE, SYSTEM_PREFIX, TIMER, is_system_topic
from sprocket.spark.options.loss import ReadFailed, report_loss
from sprocket.spark.options.options import StoreOptions
from sprocket.spark.reading.pushdown import EVERYTHING, narrow_choice
from sprocket.spark.records import layout
from sprocket.spark.records.batches import taken_apart
from sprocket.spark.records.body_columns import BadBody, body_columns, check_decoded
from sprocket.spark.records.decode import Decoder, only_topic, topics_of
from sprocket.spark.records.layout import Layout
from sprocket.spark.store_files.plan import Piece, plan_store
from sprocket.spark.store_files.scan import LogReader, root_of
from sprocket.spark.store_files.synced import synced
from sprocket.spark.worker import task_counter


class PiecePartition(InputPartition):
    """The input of one task.

    Attributes:
        piece: a part of a log file.
    """

    def __init__(self, piece: Piece) -> None:
        super().__init__(None)
        self.piece = piece

    def __repr__(self) -> str:
        return f"PiecePartition({self.piece})"


class StoreReader(DataSourceReader):
    """A batch read of a store's files."""

    def __init__(self, options: StoreOptions, schema: pa.Schema) -> None:
        check_decoded(options, schema.names)
        self._options = options
        self._schema = schema
        self._wanted = EVERYTHING

    def partitions(self) -> list[Any]:
        """A partition for each piece of the log; an empty one if there is nothing to read."""
        return [PiecePartition(one) for one in plan_store(self._options, self._wanted)] or [
            InputPartition(None)
        ]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """The rows of one partition, as Arrow batches.

        Raises:
            ReadFailed: a file is damaged or gone; the text has its path and the position.
        """
        task_counter.task_begins()
        if isinstance(partition, PiecePartition):
            reader = PieceReader(self._options, self._schema, self._wanted.topics)
            yield from reader.batches(partition.piece)


class NarrowedStoreReader(StoreReader):
    """The same, with filters that Spark pushes down."""

    #: Columns whose filters are applied here.
    columns = ("topic", "store_timestamp", "tag")

    def pushFilters(self, filters: list[Any]) -> Iterable[Any]:
        """Takes the filters that it can apply, and returns those that Spark must apply."""
        self._wanted, self._options, left = narrow_choice(filters, self.columns, self._options)
        return left


class PieceReader:
    """Reads pieces of a log into batches.

    Args:
        options: the options of the read.
        schema: the schema of the batches.
        topics: the topics to which a pushed filter narrows the read; None for all.
    """

    def __init__(
        self, options: StoreOptions, schema: pa.Schema, topics: frozenset[str] | None = None
    ) -> None:
        self._options = options
        self._topics = topics
        self._bodies = body_columns(options, schema)
        self._decoder = Decoder(schema, options.filter, self._bodies)
        self._chooses = choice(options)
        since, until = options.starting_time, options.ending_time
        self._since_ms = since.everywhere.value if since and since.everywhere else None
        self._until_ms = until.everywhere.value if until and until.everywhere else None

    def batches(self, piece: Piece) -> Iterator[pa.RecordBatch]:
        """The rows of a piece, in the order of the log.

        Raises:
            ReadFailed: the file is damaged or gone; the text has its path and the position.
        """
        file = piece.file
        try:
            reader = LogReader(
                file,
                checks_bodies=self._options.checks_bodies,
                synced=synced(root_of(self._options.store)),
                damaged=partial(self._damaged, file.path),
            )
        except (OSError, ValueError) as error:  # an empty file cannot be mapped
            report_loss(self._options, file.path, f"it cannot be read: {error}")
            return
        try:
            with reader:
                for places in self._runs(reader, piece):
                    yield from self._batches(places, file.path)
        except CorruptRecord as error:
            raise ReadFailed(f"{error}; read it with minPartitions 1") from error
        except BadBody as error:
            raise ReadFailed(f"{file.path}: {error}") from error
        if self._bodies is not None:
            self._bodies.report(file.path)

    def _runs(self, reader: LogReader, piece: Piece) -> Iterator[Layout]:
        if not piece.by_queues:
            return reader.runs(piece.begin, piece.end)
        # It loads the store's own queues, and those load asyncio; a scan of the log needs neither.
        from sprocket.spark.store_files.queues import QueueFiles

        start = piece.file.start
        found = QueueFiles(root_of(self._options.store)).records(
            self._options.topics,
            start + piece.begin,
            start + piece.end,
            tag_codes=tag_codes(self._options),
        )
        return reader.records(found.log_offsets - start, found.sizes)

    def _batches(self, places: Layout, path: str) -> Iterator[pa.RecordBatch]:
        keep = self._is_chosen(places)
        if not keep.all():
            places = places.filtered(keep)
        if ((places.sys_flags & WRAPPED) == WRAPPED).any():
            places = self._taken_apart(places, path)
        return self._decoder.rows(places, None, self._options.broker)

    def _taken_apart(self, places: Layout, path: str) -> Layout:
        """The same messages, each in a record of its own."""
        view, parts = memoryview(places.buffer), list[bytes]()
        for start, end in zip(places.starts.tolist(), places.ends.tolist(), strict=True):
            try:
                parts.append(taken_apart(view[start:end]))
            except RemoteProtocolError as error:
                self._damaged(path, start, end, f"the record holds no batch: {error}")
        return layout.lay_out(b"".join(parts))

    def _is_chosen(self, places: Layout) -> NDArray[np.bool_]:
        """A mask of the records of wanted topics and times that consumers may see."""
        keep: NDArray[np.bool_] = self._is_of_topic(places)
        states = places.sys_flags & TRANSACTION_MASK
        keep = keep & (states != PREPARED) & (states != ROLLED_BACK)
        if self._since_ms is not None or self._until_ms is not None:
            stored = places.of(STORED_AT, "i8")
            if self._since_ms is not None:
                keep = keep & (stored >= self._since_ms)
            if self._until_ms is not None:
                keep = keep & (stored < self._until_ms)
        return keep

    def _is_of_topic(self, places: Layout) -> NDArray[np.bool_]:
        """A mask of the records of wanted topics. Each topic is checked once for all of them."""
        only = only_topic(places)
        if only is not None:
            return np.full(len(places.starts), self._wants(only), np.bool_)
        topics = topics_of(places).dictionary_encode()
        wanted = [self._wants(name) for name in topics.dictionary.to_pylist()]
        mask = pc.take(pa.array(wanted, pa.bool_()), topics.indices)
        return cast("NDArray[np.bool_]", mask.to_numpy(zero_copy_only=False))

    def _wants(self, topic: str) -> bool:
        return self._chooses(topic) and (self._topics is None or topic in self._topics)

    def _damaged(self, path: str, begin: int, end: int, what: str) -> None:
        report_loss(self._options, path, f"at position {begin}, up to {end}: {what}")


def choice(options: StoreOptions) -> Callable[[str], bool]:
    """Makes a check for wanted topics; system and group topics need a pattern that names them."""
    if options.topics:
        return frozenset(options.topics).__contains__
    pattern = options.pattern or ".*"
    wanted = re.compile(pattern)
    is_special = pattern.startswith(("%", SYSTEM_PREFIX))
    return lambda topic: (
        bool(wanted.fullmatch(topic))
        and (is_special or not (topic.startswith("%") or is_system_topic(topic)))
    )


def tag_codes(options: StoreOptions) -> frozenset[int] | None:
    """Hashes of the wanted tags as in consume queues; None if those cannot be used to filter."""
    wanted = options.filter
    # Entries of waiting messages have a time instead of the hash.
    waiting = {SCHEDULE, TIMER} & set(options.topics)
    return wanted.codes if isinstance(wanted, TagFilter) and wanted.codes and not waiting else None
