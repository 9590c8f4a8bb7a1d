"""Types that a schema gives the column `value`."""

from __future__ import annotations

import pyarrow as pa
import pytest

pytest.importorskip("pyspark")

from pyspark.sql import types as t

from sprocket.base.errors import UsageError
from sprocket.spark.records.value_types import arrow_type_of


def test_nested_types_keep_what_may_be_null() -> None:
    kind = t.StructType(
        [
            t.StructField("a", t.ArrayType(t.TimestampType(), containsNull=False)),
            t.StructField("b", t.MapType(t.StringType(), t.DecimalType(9, 2)), nullable=False),
        ]
    )
    found = arrow_type_of(kind)
    assert found.field("a").type.value_type == pa.timestamp("us", tz="UTC")
    assert not found.field("a").type.value_field.nullable
    assert found.field("b").type.item_type == pa.decimal128(9, 2)
    assert not found.field("b").nullable


def test_a_type_that_no_body_has_is_refused() -> None:
    with pytest.raises(UsageError, match="cannot hold"):
        arrow_type_of(t.YearMonthIntervalType())
