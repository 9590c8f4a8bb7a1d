"""Bodies in an archive: kept as they are, or parsed as JSON. No body is ever lost.

A body that is no JSON of the schema is kept whole in the column `body_corrupt`; `data` then holds
the fields that could be read, or null.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sprocket.base.errors import UsageError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

DATA = "data"
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


def opened(frame: DataFrame, schema: StructType, *, keeps_body: bool) -> DataFrame:
    """The rows with `data` and `body_corrupt` in place of `body`, or beside it."""
    from pyspark.sql import functions as f
    from pyspark.sql.types import StringType, StructField, StructType

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
