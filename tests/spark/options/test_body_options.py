"""Options of bodies are checked by the driver, which reads the files that they name."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastavro")

from sprocket.base.errors import ConfigError
from sprocket.schemas.errors import SchemaNotFound
from sprocket.schemas.http_registry import RegistryAccess
from sprocket.spark.options.options import BatchOptions, read_options, value_ddl_of
from sprocket.spark.options.write_options import write_options
from tests.schemas.parts import AVRO_ORDER, ORDER, order_set


def read(**given: str) -> BatchOptions:
    return read_options({"namesrvAddr": "n:1", "subscribe": "orders", **given}, BatchOptions)


def test_a_file_is_read_once_and_travels(tmp_path: Path) -> None:
    path = tmp_path / "order.avsc"
    path.write_text(AVRO_ORDER)
    options = pickle.loads(pickle.dumps(read(bodyFormat="Avro", bodySchema=str(path))))
    path.unlink()
    codec = options.choice(None).codec()
    assert codec.decode(codec.encode(ORDER)) == ORDER


def test_the_columns_of_each_format(tmp_path: Path) -> None:
    (tmp_path / "1.avsc").write_text(
        '{"type":"record","name":"R","fields":[{"name":"a","type":"int"}]}'
    )
    (tmp_path / "o.desc").write_bytes(order_set())
    assert value_ddl_of({"bodyFormat": "json", "bodySchema": "a int"}) == "struct<a int>"
    (tmp_path / "2.json").write_text('{"properties":{"a":{"type":"integer"}}}')
    for given in (
        {"bodySchema": str(tmp_path / "2.json")},
        {"bodySchema": (tmp_path / "2.json").read_text()},
        {"schemaRegistry": str(tmp_path), "schemaSubject": "2"},
    ):
        assert value_ddl_of({"bodyFormat": "json", **given}) == "struct<`a`: bigint>"
    folder = {"bodyFormat": "avro", "schemaRegistry": str(tmp_path), "subscribe": "x"}
    assert value_ddl_of({**folder, "schemaSubject": "1"}) == "struct<`a`: int>"
    with pytest.raises(SchemaNotFound, match="has no subject 999"):
        value_ddl_of({**folder, "schemaSubject": "9" * 5000})
    other = {"bodyFormat": "protobuf", "bodySchema": str(tmp_path / "o.desc")}
    assert value_ddl_of({**other, "bodyMessage": "shop.Other"}) == "struct<`n`: int>"


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"bodySchema": "a int"}, "bodySchema goes with bodyFormat"),
        ({"schemaRegistry": "x"}, "schemaRegistry goes with bodyFormat"),
        ({"bodyFormat": "xml"}, "takes json, avro or protobuf"),
        ({"bodyFormat": "avro"}, "avro needs bodySchema"),
        ({"bodyFormat": "avro", "bodySchema": "{}"}, "no schema of Avro"),
        ({"bodyFormat": "protobuf", "bodySchema": "nowhere.desc"}, "no such file: nowhere"),
        ({"bodyFormat": "json", "bodySchema": "nowhere.json"}, "no such file: nowhere"),
        ({"bodyFormat": "json", "bodySchema": '{"type": 7}'}, "no JSON Schema"),
        ({"bodyFormat": "json", "bodyMessage": "x"}, "goes with bodyFormat protobuf"),
        ({"bodyFormat": "json", "schemaSubject": "x"}, "goes with schemaRegistry"),
        ({"bodyFormat": "avro", "schemaRegistry": "http://u:p@x"}, "does not belong into the URL"),
        ({"cloudEvents": "a b"}, "true, false or a prefix"),
    ],
)
def test_what_does_not_go_together_is_refused(given: dict[str, str], reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        read(**given)


def test_json_without_columns_says_how_to_give_them() -> None:
    with pytest.raises(ConfigError, match="give bodySchema"):
        value_ddl_of({"bodyFormat": "json"})


def test_secrets_of_a_registry_are_in_no_text() -> None:
    given: Any = {
        "bodyFormat": "avro", "schemaRegistry": "http://r:1", "schemaRegistryUser": "u",
        "schemaRegistryPassword": "hidden",
    }  # fmt: skip
    options = read(**given)
    assert "hidden" not in repr(options)
    assert "hidden" not in repr(options.choice("orders"))
    assert options.choice("orders").registry == RegistryAccess("http://r:1", "u", "hidden")
    assert options.choice("orders").writes == "orders-value"
    assert "hidden" not in repr(write_options({"namesrvAddr": "n:1", "topic": "t", **given}))
