"""Bodies in an archive: kept as they are, parsed as JSON, or decoded. None is ever lost.

A body that does not fit the schema is kept whole in the column `body_corrupt`; `data` then holds
the fields that could be read, or null.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from sprocket.base.errors import UsageError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import DataType, StructType

DATA = "data"
#: Columns of the source that has decoded bodies.
VALUE, VALUE_ERROR = "value", "value_error"
CORRUPT = "body_corrupt"
_REST = "_sprocket_corrupt"


def struct(ddl: str) -> StructType:
    """Spark's schema for a DDL text such as `amount double, items array<string>`.

    Raises:
        UsageError: the text is no DDL, or has no columns.
    """
    from pyspark.errors import PySparkException
    from pyspark.sql.types import StructType

    try:
        made = StructType.fromDDL(ddl)
    except PySparkException as error:
        reason = str(error).strip().splitlines()[0]
        raise UsageError(f"the schema of bodies is no DDL text: {reason}") from None
    if not isinstance(made, StructType) or not made.fields:
        raise UsageError(f"the schema of bodies has no columns: {ddl!r}")
    return made


def is_wider(schema: StructType, than: StructType) -> bool:
    """Whether a schema has all columns of another one, also inside of structs, in their types."""
    from pyspark.sql.types import StructType

    types = {field.name: field.dataType for field in schema.fields}
    for field in than.fields:
        now, before = types.get(field.name), field.dataType
        if isinstance(now, StructType) and isinstance(before, StructType):
            if not is_wider(now, before):
                return False
        elif now != before:
            return False
    return True


def inferred(session: SparkSession, frame: DataFrame, rows: int) -> StructType:
    """The schema of JSON bodies in a sample.

    Args:
        rows: size of the sample; the executors read it, and it never comes to the driver.

    Raises:
        UsageError: none of them is a JSON object.
    """
    from pyspark.sql import functions as f
    from pyspark.sql.types import StructType

    sample = frame.select(f.col("body").cast("string").alias("text")).limit(rows)
    texts = sample.rdd.map(lambda row: row[0])
    found = session.read.json(texts, columnNameOfCorruptRecord=_REST).schema
    named = [one for one in found.fields if one.name != _REST]
    if not named:
        raise UsageError(f"none of the first {rows} bodies is a JSON object: give a schema")
    return StructType(named)


def decoded_ddl(given: Mapping[str, str]) -> str:
    """The type of bodies that options of the source say, as DDL.

    Raises:
        UsageError: they say none.
        SchemaNotFound, RegistryUnavailable: the registry does not say it.
    """
    from sprocket.spark.options.options import value_ddl_of

    if not any(name.lower() == "bodyformat" for name in given):
        raise UsageError("decoded bodies need --option bodyFormat=json, avro or protobuf")
    return value_ddl_of(given)


def decoded(given: Mapping[str, str]) -> StructType:
    """The schema of bodies that options of the source say; errors as `decoded_ddl`.

    Raises:
        UsageError: bodies are no records.
    """
    from pyspark.sql.types import StructType

    whole = StructType.fromDDL(f"{VALUE} {decoded_ddl(given)}")
    assert isinstance(whole, StructType), "columns are"
    kind = whole.fields[0].dataType
    if not isinstance(kind, StructType):
        raise UsageError(f"the bodies are no records, but {kind.simpleString()}")
    return kind


def without_intervals(schema: StructType) -> StructType:
    """The schema with texts in place of intervals of time, which no table has: `1.5s`."""
    from pyspark.sql.types import StructField, StructType

    return StructType([StructField(one.name, _plain(one.dataType)) for one in schema.fields])


def _plain(kind: DataType) -> DataType:
    from pyspark.sql import types

    if isinstance(kind, types.DayTimeIntervalType):
        return types.StringType()
    if isinstance(kind, types.StructType):
        return without_intervals(kind)
    if isinstance(kind, types.ArrayType):
        return types.ArrayType(_plain(kind.elementType))
    if isinstance(kind, types.MapType):
        return types.MapType(_plain(kind.keyType), _plain(kind.valueType))
    return kind


def with_value(columns: str, schema: StructType | None) -> StructType:
    """The columns to read, as DDL, and those of decoded bodies."""
    from pyspark.sql.types import StringType, StructField, StructType

    plain = StructType.fromDDL(columns)
    assert isinstance(plain, StructType), "columns are"
    made = [StructField(VALUE, schema or StringType()), StructField(VALUE_ERROR, StringType())]
    return StructType([*plain.fields, *made])


def opened(frame: DataFrame, schema: StructType, *, keeps_body: bool) -> DataFrame:
    """The rows with `data` and `body_corrupt` in place of `body`, or beside it."""
    from pyspark.sql import functions as f
    from pyspark.sql.types import StringType, StructField, StructType

    if VALUE in frame.columns:  # the source has decoded them
        is_misfit = f.col(VALUE_ERROR).isNotNull()
        made = frame.withColumn(CORRUPT, f.when(is_misfit, f.col("body")))
        return made.withColumnRenamed(VALUE, DATA).drop(VALUE_ERROR)
    whole = StructType([*schema.fields, StructField(_REST, StringType())])
    read = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": _REST}
    made = frame.withColumn(DATA, f.from_json(f.col("body").cast("string"), whole, read))
    is_lost = f.col(DATA).isNull() | f.col(f"{DATA}.{_REST}").isNotNull()
    made = made.withColumn(CORRUPT, f.when(is_lost, f.col("body")))
    made = made.withColumn(DATA, f.col(DATA).dropFields(_REST))
    return made if keeps_body else made.drop("body")


def closed(frame: DataFrame) -> DataFrame:
    """The rows of an archive with a column `body`, encoded from `data` where it was not kept."""
    from pyspark.sql import functions as f

    names = frame.columns
    if DATA not in names:
        return frame
    sources = [f.col(CORRUPT), f.to_json(DATA, {"ignoreNullFields": "true"}).cast("binary")]
    if "body" in names:
        sources.insert(0, f.col("body"))
    return frame.withColumn("body", f.coalesce(*sources)).drop(DATA, CORRUPT)
