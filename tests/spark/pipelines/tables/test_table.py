from __future__ import annotations

import pytest

pytest.importorskip("pyarrow", reason="PyArrow is not installed")

import pyarrow as pa

from sprocket.base.errors import UsageError
from sprocket.spark.pipelines.tables.table import added_columns

HAVE = pa.schema(
    [
        ("a", pa.large_string()),
        ("data", pa.struct([("n", pa.int64()), ("inner", pa.struct([("x", pa.string())]))])),
        ("many", pa.large_list(pa.large_string())),
        ("pairs", pa.map_(pa.string(), pa.string())),
        ("at", pa.timestamp("us", "UTC")),
        ("body", pa.large_binary()),
    ]
)


def test_the_same_columns_in_other_words_are_no_change() -> None:
    same = pa.schema(
        [
            ("A", pa.string()),
            ("data", pa.struct([("inner", pa.struct([("x", pa.string())]))])),
            ("many", pa.list_(pa.field("element", pa.string()))),
            ("pairs", pa.map_(pa.string(), pa.large_string())),
            ("at", pa.timestamp("us", "+00:00")),
            ("body", pa.binary()),
        ]
    )
    assert not added_columns(HAVE, same)


@pytest.mark.parametrize(
    "more",
    [
        pa.field("b", pa.string()),
        pa.field("data", pa.struct([("inner", pa.struct([("y", pa.int32())]))])),
    ],
    ids=["at the top", "inside"],
)
def test_new_columns_are_seen(more: pa.Field) -> None:
    assert added_columns(HAVE, pa.schema([more]))


@pytest.mark.parametrize(
    "other",
    [
        pa.field("a", pa.int64()),
        pa.field("data", pa.string()),
        pa.field("data", pa.struct([("n", pa.decimal128(10, 2))])),
        pa.field("many", pa.list_(pa.int32())),
        pa.field("pairs", pa.map_(pa.string(), pa.int32())),
        pa.field("at", pa.timestamp("us")),
    ],
    ids=["text", "struct", "inside", "list", "map", "zone"],
)
def test_a_column_keeps_its_type(other: pa.Field) -> None:
    with pytest.raises(UsageError, match=rf"column {other.name}.*keeps its type"):
        added_columns(HAVE, pa.schema([other]))
