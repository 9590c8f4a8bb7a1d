from __future__ import annotations

import pytest

from sprocket.base.errors import UsageError
from sprocket.spark.records.decode import _COLUMNS
from sprocket.spark.records.schema import COLUMNS, arrow_schema, default_ddl


def test_the_columns_without_a_schema() -> None:
    assert default_ddl() == (
        "topic string, broker string, queue_id int, queue_offset bigint, key string, tag string, "
        "body binary, properties map<string,string>, born_timestamp timestamp, "
        "store_timestamp timestamp, message_id string"
    )
    assert "properties" not in default_ddl(has_properties=False)


def test_every_column_can_be_decoded_and_says_what_it_is() -> None:
    assert [column.name for column in COLUMNS] == list(_COLUMNS)
    assert all(column.doc.endswith(".") for column in COLUMNS)


def test_a_schema_chooses_and_orders_columns() -> None:
    found = arrow_schema([("tag", "string", True), ("queue_offset", "bigint", False)])
    assert found.names == ["tag", "queue_offset"]
    assert not found.field("queue_offset").nullable


@pytest.mark.parametrize(
    ("name", "kind", "said"),
    [
        ("offset", "bigint", r"no column offset: did you mean queue_offset\?"),
        ("Topic", "string", "did you mean topic"),
        ("xyzzy", "string", "there are: topic, broker, "),
        ("queue_offset", "int", "queue_offset is bigint, not int"),
        ("key", "binary", "key is string"),
    ],
)
def test_what_is_no_column_is_refused(name: str, kind: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        arrow_schema([(name, kind, True)])


def test_a_schema_without_columns_is_refused() -> None:
    with pytest.raises(UsageError, match="no column"):
        arrow_schema([])
