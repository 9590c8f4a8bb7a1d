"""The `rocketmq` data source, as Spark meets it: name, schema, readers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource

from sprocket.spark.options import read_options
from sprocket.spark.schema import arrow_schema_of, default_ddl

if TYPE_CHECKING:
    from pyspark.sql.datasource import DataSourceReader
    from pyspark.sql.types import StructType


class RocketMQSource(DataSource):
    """`spark.read.format("rocketmq")`. Options: `sprocket.spark.options`."""

    @classmethod
    def name(cls) -> str:
        """What goes into `.format(…)`."""
        return "rocketmq"

    def schema(self) -> str:
        """The columns when the user names none."""
        options = read_options(self.options)
        return default_ddl(has_properties=options.has_properties)

    def reader(self, schema: StructType) -> DataSourceReader:
        """A batch read of the columns in `schema`."""
        from sprocket.spark.read import RocketMQReader

        return RocketMQReader(read_options(self.options), arrow_schema_of(schema))
