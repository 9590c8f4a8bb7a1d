"""A folder of files is a registry by number."""

from __future__ import annotations

from pathlib import Path

import pytest

from sprocket.schemas.errors import RegistryUnavailable, SchemaInvalid, SchemaNotFound
from sprocket.schemas.folder_registry import FolderRegistry
from sprocket.schemas.registered import SchemaKind
from tests.schemas.parts import AVRO_ORDER, order_set


def test_the_ending_says_the_kind(tmp_path: Path) -> None:
    (tmp_path / "1.avsc").write_text(AVRO_ORDER)
    (tmp_path / "2.desc").write_bytes(order_set())
    (tmp_path / "3.json").write_text("{}")
    source = FolderRegistry(tmp_path)
    kinds = [source.by_id(number).kind for number in (1, 2, 3)]
    assert kinds == [SchemaKind.AVRO, SchemaKind.PROTOBUF, SchemaKind.JSON]


def test_what_is_not_there_or_cannot_be_read_is_told_apart(tmp_path: Path) -> None:
    source = FolderRegistry(tmp_path)
    with pytest.raises(SchemaNotFound, match=r"no 1\.avsc"):
        source.by_id(1)
    with pytest.raises(SchemaNotFound, match="no subject"):
        source.latest("orders-value")
    (tmp_path / "2.desc").write_bytes(b"\xff")
    with pytest.raises(SchemaInvalid):
        source.by_id(2)
    (tmp_path / "3.avsc").mkdir()
    with pytest.raises(RegistryUnavailable):
        source.by_id(3)
    with pytest.raises(RegistryUnavailable, match="no folder"):
        FolderRegistry(tmp_path / "gone").by_id(1)
    with (tmp_path / "4.avsc").open("wb") as file:
        file.truncate(1 << 30)
    with pytest.raises(RegistryUnavailable, match="larger"):
        source.by_id(4)
