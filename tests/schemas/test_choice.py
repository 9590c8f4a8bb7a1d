"""What users write of formats and schemas is checked at once, and can be pickled."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastavro")

from sprocket.base.errors import UsageError
from sprocket.schemas.choice import choose
from sprocket.schemas.errors import BodyMismatch
from sprocket.schemas.http_registry import RegistryAccess
from tests.schemas.parts import AVRO_ORDER, ORDER, order_set


def test_a_schema_is_a_file_or_its_text(tmp_path: Path) -> None:
    (tmp_path / "order.avsc").write_text(AVRO_ORDER, encoding="utf-8-sig")
    (tmp_path / "order.desc").write_bytes(order_set())
    body = choose("avro", schema=AVRO_ORDER).codec().encode(ORDER)
    choice = choose("Avro", schema=str(tmp_path / "order.avsc"))
    (tmp_path / "order.avsc").unlink()
    assert pickle.loads(pickle.dumps(choice)).codec().decode(body) == ORDER
    shop = choose("protobuf", schema=str(tmp_path / "order.desc"), message="shop.Other")
    assert pickle.loads(pickle.dumps(shop)).codec().decode(b"\x08\x07") == {"n": 7}
    assert choose("json").codec().decode(b"{}") == {}
    (tmp_path / "order.json").write_text('{"type": "object"}')
    checked = pickle.loads(pickle.dumps(choose("json", schema=str(tmp_path / "order.json"))))
    assert checked.codec().decode(b"{}") == {}
    with pytest.raises(BodyMismatch, match="not of type 'object'"):
        checked.codec().decode(b"[]")
    (tmp_path / "1.avsc").write_text(AVRO_ORDER)
    folder = choose(None, registry=tmp_path, writes="1").codec()
    assert folder.decode(folder.encode(ORDER)) == ORDER


@pytest.mark.parametrize(
    ("kind", "given", "reason"),
    [
        (None, {}, "which format"),
        ("xml", {}, "'xml' is no format"),
        (None, {"schema": "{}", "registry": Path("/")}, "goes with the format json, avro or"),
        ("json", {"schema": '{"type": 7}'}, "no JSON Schema"),
        ("json", {"schema": "/nowhere/x.json"}, "No such file"),
        ("avro", {}, "avro needs a schema, or a registry"),
        ("protobuf", {}, "protobuf needs a schema"),
        ("avro", {"schema": "{}", "message": "x"}, "with the format protobuf"),
        ("avro", {"schema": "/nowhere/x.avsc"}, "No such file"),
        ("avro", {"schema": "{}"}, "no schema of Avro"),
        ("avro", {"schema": "\0"}, "null"),
        ("protobuf", {"schema": "/etc/hostname"}, "no descriptor set"),
        ("json", {"writes": "1"}, "none is given"),
        (None, {"registry": RegistryAccess("nothing")}, "no URL"),
        ("protobuf", {"registry": Path("/"), "message": "x"}, "goes with a descriptor set"),
    ],
)
def test_what_does_not_go_together_is_refused(
    kind: str | None, given: dict[str, Any], reason: str
) -> None:
    with pytest.raises(UsageError, match=reason):
        choose(kind, **given)


@pytest.mark.parametrize("subject", ["9" * 5000, "\u0663", "12345678901", "orders-value", "-1"])
def test_what_is_no_number_of_a_schema_is_a_subject(subject: str, tmp_path: Path) -> None:
    assert choose("avro", registry=tmp_path, writes=subject).writes == subject
