"""Bodies become columns; those that do not fit keep their rows."""

from __future__ import annotations

import logging
from typing import Any

import pyarrow as pa
import pytest

from sprocket.base.errors import UsageError
from sprocket.filter.tags import TagFilter
from sprocket.message.compression import Compression, compress
from sprocket.message.queue import QueueId
from sprocket.schemas.errors import RegistryUnavailable
from sprocket.schemas.framing import join
from sprocket.spark.options.options import BatchOptions, read_options
from sprocket.spark.records.body_columns import BadBody, body_columns, check_decoded
from sprocket.spark.records.decode import Decoder
from sprocket.spark.records.schema import EVENT_TYPE, arrow_schema
from tests.spark.support import record

QUEUE = QueueId("orders", "broker-a", 0)
VALUE = pa.struct([("id", pa.string()), ("n", pa.int32())])
FIELDS = [("body", "binary", True), ("value", "", True), ("value_error", "string", True)]


def options(**given: str) -> BatchOptions:
    return read_options({"namesrvAddr": "n:1", "subscribe": "orders", **given}, BatchOptions)


def decoded(bodies: list[bytes], fields: Any = FIELDS, **given: Any) -> list[dict[str, Any]]:
    marks = given.pop("properties", [b""] * len(bodies))
    buffer = b"".join(
        record(at, body=body, properties=marks[at],
               sys_flag=0x301 if body[:1] == b"\x78" else 0)
        for at, body in enumerate(bodies)
    )  # fmt: skip
    schema = arrow_schema(fields, VALUE)
    columns = body_columns(options(**given), schema)
    decoder = Decoder(schema, TagFilter.parse("*"), columns)
    batches = list(decoder.decode(buffer, QUEUE, 0, 1 << 60))
    if columns is not None:
        columns.report("orders 0")
    return pa.Table.from_batches(batches, schema).to_pylist()


def test_a_body_that_does_not_fit_has_its_row_with_the_reason(
    caplog: pytest.LogCaptureFixture,
) -> None:
    bodies = [
        b'{"id":"a","n":1}',
        b"{",
        b'{"id":"b","n":5000000000}',
        compress(b'{"id":"c"}', Compression.ZLIB),
    ]
    with caplog.at_level(logging.WARNING):
        found = decoded(bodies, bodyFormat="json")
    assert [row["value"] for row in found] == [
        {"id": "a", "n": 1}, None, None, {"id": "c", "n": None},
    ]  # fmt: skip
    assert [row["body"] for row in found] == [*bodies[:3], b'{"id":"c"}']
    assert "no JSON" in found[1]["value_error"]
    assert "n: 5000000000 has more than 32 bits" in found[2]["value_error"]
    assert found[0]["value_error"] is None
    assert "2 of 4 bodies do not fit; the first: it is no JSON" in caplog.text


def test_json_is_checked_by_a_schema_of_a_file_and_of_a_registry(tmp_path: Any) -> None:
    pytest.importorskip("jsonschema")
    schema = '{"required": ["id"], "properties": {"n": {"type": "integer", "minimum": 1}}}'
    (tmp_path / "7.json").write_text(schema)
    bodies = [b'{"id":"a","n":1}', b'{"id":"b","n":0}', b'{"n":1}', b"{"]
    by_file = decoded(bodies, bodyFormat="json", bodySchema=str(tmp_path / "7.json"))
    framed = [join(7, body) for body in bodies]
    by_number = decoded(framed, bodyFormat="json", schemaRegistry=str(tmp_path))
    for found in (by_file, by_number):
        assert [row["value"] for row in found] == [{"id": "a", "n": 1}, None, None, None]
        assert [row["value_error"] is None for row in found] == [True, False, False, False]
        assert "at $.n: 0 is less than the minimum of 1" in found[1]["value_error"]
        assert "'id' is a required property" in found[2]["value_error"]
    assert [row["body"] for row in by_number] == framed
    # Columns as DDL alone check nothing else, and need no schema of the number.
    columns = {"bodyFormat": "json", "bodySchema": "id string, n int"}
    found = decoded([join(99, bodies[1])], **columns, schemaRegistry=str(tmp_path))
    assert found[0]["value"] == {"id": "b", "n": 0}


def test_it_may_fail_instead() -> None:
    with pytest.raises(BadBody, match="no JSON"):
        decoded([b"{"], bodyFormat="json", failOnBadBody="true")


def test_a_registry_that_is_away_is_no_fault_of_bodies(tmp_path: Any) -> None:
    given = {"bodyFormat": "avro", "schemaRegistry": str(tmp_path)}
    assert "no 1.avsc" in decoded([join(1, b"x")], **given)[0]["value_error"]
    tmp_path.rmdir()
    with pytest.raises(RegistryUnavailable):
        decoded([join(1, b"x")], **given)


def test_events_are_columns_and_their_data_is_decoded() -> None:
    fields = [("event", EVENT_TYPE, True), *FIELDS[1:]]
    binary = (
        b"CE_specversion\x011.0\x02CE_id\x017\x02CE_source\x01/s\x02CE_type\x01t\x02"
        b"CE_region\x01eu\x02"
    )
    structured = b"contentType\x01application/cloudevents+json\x02"
    whole = b'{"specversion":"1.0","id":"8","source":"/s","type":"t","data":{"id":"b"}}'
    found = decoded(
        [b'{"id":"a"}', whole, b'{"id":"c"}', b"[]"], fields, bodyFormat="json",
        cloudEvents="true", properties=[binary, structured, b"", structured],
    )  # fmt: skip
    assert [row["value"] and row["value"]["id"] for row in found] == ["a", "b", "c", None]
    assert found[0]["event"]["id"] == "7"
    assert found[0]["event"]["extensions"] == [("region", "eu")]
    assert found[1]["event"]["id"] == "8"
    assert found[2]["event"] is None
    assert "no JSON object" in found[3]["value_error"]


@pytest.mark.parametrize(
    ("fields", "reason"),
    [(FIELDS, "bodyFormat"), ([("event", EVENT_TYPE, True)], "cloudEvents")],
)
def test_a_column_names_the_option_that_it_needs(fields: Any, reason: str) -> None:
    with pytest.raises(UsageError, match=reason):
        check_decoded(options(), [name for name, _, _ in fields])


def test_nothing_is_decoded_that_is_not_asked_for() -> None:
    schema = arrow_schema([("body", "binary", True)])
    assert body_columns(options(bodyFormat="json"), schema) is None
