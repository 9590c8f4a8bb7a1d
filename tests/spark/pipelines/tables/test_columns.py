from __future__ import annotations

import pytest

pytest.importorskip("pyspark", reason="PySpark is not installed: pip install 'sprocketmq[spark]'")

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DateType,
    DoubleType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
)

from sprocket.base.errors import UsageError
from sprocket.spark.pipelines.tables.columns import arrow_columns, check_partition

TEXT = StringType()
INNER = StructType([StructField("a", LongType(), nullable=False)])
SCHEMA = StructType(
    [
        StructField("topic", TEXT, nullable=False),
        StructField("day", DateType()),
        StructField("body", BinaryType()),
        StructField("data", INNER, nullable=False),
        StructField("many", ArrayType(INNER)),
        StructField("pairs", MapType(TEXT, TEXT)),
        StructField("price", DoubleType()),
    ]
)


def test_all_columns_may_be_null_also_inside_of_others() -> None:
    found = arrow_columns(SCHEMA)
    assert [field.nullable for field in found] == [True] * 7
    assert found.field("data").type.field("a").nullable
    assert found.field("many").type.value_type.field("a").nullable


@pytest.mark.parametrize(
    ("names", "why"),
    [
        (("amount", "Amount"), "differ by capitals only"),
        (("unit price",), "'unit price'"),
        (("a=b",), "'a=b'"),
        (("a\n",), "no blanks"),
        (("é" * 200,), "255 bytes"),
    ],
)
def test_names_that_one_engine_or_another_refuses_are_refused(
    names: tuple[str, ...], why: str
) -> None:
    flat = [StructField(name, TEXT) for name in names]
    with pytest.raises(UsageError, match=why):
        arrow_columns(StructType(flat))
    for inside in (StructType(flat), ArrayType(StructType(flat)), MapType(TEXT, StructType(flat))):
        with pytest.raises(UsageError, match=why):
            arrow_columns(StructType([StructField("data", inside)]))


def test_what_a_table_is_partitioned_by() -> None:
    check_partition(SCHEMA, ("topic", "day"))
    for by, why in (
        (("tag",), "no column tag to partition by; there are: topic, day"),
        (("price",), "price is double"),
        (("body",), "body is binary"),
        (("topic", "topic"), "twice"),
    ):
        with pytest.raises(UsageError, match=why):
            check_partition(SCHEMA, by)
    with pytest.raises(UsageError, match="besides"):
        check_partition(StructType([StructField("topic", TEXT)]), ("topic",))
