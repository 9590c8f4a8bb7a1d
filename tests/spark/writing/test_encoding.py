"""A column `value` is encoded into bodies."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

pytest.importorskip("fastavro")

from sprocket.base.errors import UsageError
from sprocket.schemas.avro_bodies import AvroBodies
from sprocket.schemas.framing import join
from sprocket.spark.options.write_options import write_options
from sprocket.spark.writing.encoding import encoded
from sprocket.spark.writing.rows import check_columns
from tests.schemas.parts import AVRO_ORDER

KIND = pa.struct(
    [("id", pa.string()), ("amount", pa.float64()), ("counts", pa.map_(pa.string(), pa.int32()))]
)


def bodies(values: list[Any], **given: str) -> list[bytes]:
    options = write_options({"namesrvAddr": "n:1", "topic": "t", **given})
    batch = pa.RecordBatch.from_pydict(
        {"key": ["k"] * len(values), "value": pa.array(values, KIND)}
    )
    made = list(encoded([batch, batch], options))
    assert made[0].schema.names == ["key", "body"]
    found: list[bytes] = made[1].column("body").to_pylist()
    return found


def test_json_leaves_out_what_is_null_and_maps_are_objects() -> None:
    found = bodies([{"id": "a", "amount": None, "counts": [("x", 1)]}, None], bodyFormat="json")
    assert json.loads(found[0]) == {"id": "a", "counts": {"x": 1}}
    assert found[1] is None


def test_avro_is_by_its_schema_and_a_row_that_does_not_fit_is_named() -> None:
    schema = json.dumps({**json.loads(AVRO_ORDER), "fields": json.loads(AVRO_ORDER)["fields"][:2]})
    one = {"id": "a", "amount": 1.5}
    options = write_options(
        {"namesrvAddr": "n:1", "topic": "t", "bodyFormat": "avro", "bodySchema": schema}
    )
    kind = pa.struct([("id", pa.string()), ("amount", pa.float64())])
    batch = pa.RecordBatch.from_pydict({"value": pa.array([one], kind)})
    (made,) = encoded([batch], options)
    assert AvroBodies(schema).decode(made.column("body")[0].as_py()) == one
    wrong = pa.RecordBatch.from_pydict({"value": pa.array([one, {"id": None}], kind)})
    with pytest.raises(UsageError, match="row 2 of this task"):
        list(encoded([batch, wrong], options))


def test_json_is_checked_by_its_schema(tmp_path: Path) -> None:
    pytest.importorskip("jsonschema")
    schema = '{"properties": {"amount": {"minimum": 1}}}'
    (tmp_path / "7.json").write_text(schema)
    fits, misfit = {"id": "a", "amount": 1.5}, {"id": "b", "amount": 0.5}
    folder = {"schemaRegistry": str(tmp_path), "schemaSubject": "7"}
    assert bodies([fits], bodyFormat="json", bodySchema=schema) == [b'{"id":"a","amount":1.5}']
    assert bodies([fits], bodyFormat="json", **folder) == [join(7, b'{"id":"a","amount":1.5}')]
    for given in ({"bodySchema": schema}, folder):
        with pytest.raises(UsageError, match=r"row 1 of this task: .*at \$\.amount: 0\.5 is less"):
            bodies([fits, misfit], bodyFormat="json", **given)


def test_without_a_format_batches_are_as_they_were() -> None:
    options = write_options({"namesrvAddr": "n:1", "topic": "t"})
    batch = pa.RecordBatch.from_pydict({"body": [b"x"]})
    assert list(encoded([batch], options)) == [batch]


def test_columns_are_checked_with_the_format() -> None:
    json_options = write_options({"namesrvAddr": "n:1", "topic": "t", "bodyFormat": "json"})
    check_columns([("value", "struct<a:int>")], json_options)
    with pytest.raises(UsageError, match="not both"):
        check_columns([("value", "struct<a:int>"), ("body", "binary")], json_options)
    plain = write_options({"namesrvAddr": "n:1", "topic": "t"})
    with pytest.raises(UsageError, match="did you mean body"):
        check_columns([("value", "binary")], plain)
