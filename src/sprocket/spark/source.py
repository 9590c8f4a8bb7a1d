"""The `rocketmq` data source that Spark loads: name, schema, readers and writers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyspark
from pyspark.sql.datasource import DataSource

from sprocket.base.errors import UsageError
from sprocket.spark.options.options import (
    BatchOptions,
    StoreOptions,
    StreamOptions,
    check_names,
    read_options,
    value_ddl_of,
)
from sprocket.spark.records.schema import arrow_schema_of, default_ddl
from sprocket.spark.worker import task_counter

if TYPE_CHECKING:
    from pyspark.sql.datasource import (
        DataSourceReader,
        DataSourceStreamReader,
        DataSourceStreamWriter,
        DataSourceWriter,
    )
    from pyspark.sql.types import StructType

    from sprocket.spark.options.write_options import WriteOptions


class RocketMQSource(DataSource):
    """`spark.read.format("rocketmq")`, `spark.readStream.format("rocketmq")`.

    Options: `sprocket.spark.options.options`; columns: `sprocket.spark.records.schema`.
    """

    @classmethod
    def name(cls) -> str:
        """The name for `.format(…)`."""
        return "rocketmq"

    def schema(self) -> str:
        """The columns when the user gives no schema."""
        # Spark calls this for batches and streams alike, so only names can be checked here. The
        # readers check the values.
        check_names(self.options)
        wanted = {name.lower(): value for name, value in self.options.items()}
        has_properties = wanted.get("includeheaders", "true").lower() != "false"
        bodies = wanted.get("bodyformat") is not None
        events = wanted.get("cloudevents", "false").lower() != "false"
        value = value_ddl_of(self.options) if bodies else None
        return default_ddl(has_properties=has_properties, value=value, has_event=events)

    def reader(self, schema: StructType) -> DataSourceReader:
        """A batch read of the columns in `schema`: from brokers, or from a store's files."""
        if any(name.lower() == "store" for name in self.options):
            from sprocket.spark.store_files.read import NarrowedStoreReader, StoreReader

            from_store = read_options(self.options, StoreOptions)
            # Spark fails a query whose reader has `pushFilters` while filter pushdown is off.
            store_kind = NarrowedStoreReader if from_store.takes_filters else StoreReader
            return store_kind(from_store, arrow_schema_of(schema))
        from sprocket.spark.reading.read import NarrowedReader, RocketMQReader

        options = read_options(self.options, BatchOptions)
        kind = NarrowedReader if options.takes_filters else RocketMQReader
        return kind(options, arrow_schema_of(schema))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """A streaming read of the columns in `schema`."""
        try:
            from sprocket.spark.reading.stream_reader import RocketMQStreamReader
        except ImportError:
            raise UsageError(
                f"streams need PySpark 4.2 or later, and this is {pyspark.__version__}; batch "
                "reads work with 4.0"
            ) from None
        options = read_options(self.options, StreamOptions)
        return RocketMQStreamReader(options, arrow_schema_of(schema))

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        """A batch write of rows with the columns in `schema`."""
        from sprocket.spark.writing.write import RocketMQWriter

        if overwrite:
            raise UsageError('a topic cannot be overwritten: write with .mode("append")')
        return RocketMQWriter(self._write_options(schema))

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:
        """A streaming write of rows with the columns in `schema`."""
        try:
            from sprocket.spark.writing.stream_write import RocketMQStreamWriter
        except ImportError:
            raise UsageError("writing a stream needs PySpark 4.1 or later") from None
        # Spark calls this in two processes for every micro-batch.
        task_counter.task_begins()
        return RocketMQStreamWriter(self._write_options(schema))

    def _write_options(self, schema: StructType) -> WriteOptions:
        from sprocket.spark.options.write_options import write_options
        from sprocket.spark.writing.rows import check_columns

        options = write_options(self.options)
        check_columns([(one.name, one.dataType.simpleString()) for one in schema.fields], options)
        return options
