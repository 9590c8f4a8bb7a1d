"""The `rocketmq` data source, as Spark meets it: name, schema, readers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource

from sprocket.spark.options import batch_options, stream_options
from sprocket.spark.schema import arrow_schema_of, default_ddl

if TYPE_CHECKING:
    from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader
    from pyspark.sql.types import StructType


class RocketMQSource(DataSource):
    """`spark.read.format("rocketmq")`, `spark.readStream.format("rocketmq")`.

    Options: `sprocket.spark.options`; columns: `sprocket.spark.schema`.
    """

    @classmethod
    def name(cls) -> str:
        """What goes into `.format(…)`."""
        return "rocketmq"

    def schema(self) -> str:
        """The columns when the user names none."""
        wanted = {name.lower(): value for name, value in self.options.items()}
        return default_ddl(has_properties=wanted.get("includeheaders", "true").lower() != "false")

    def reader(self, schema: StructType) -> DataSourceReader:
        """A batch read of the columns in `schema`."""
        from sprocket.spark.read import RocketMQReader

        return RocketMQReader(batch_options(self.options), arrow_schema_of(schema))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """A streaming read of the columns in `schema`."""
        from sprocket.spark.stream import stream_reader

        return stream_reader(stream_options(self.options), arrow_schema_of(schema))
