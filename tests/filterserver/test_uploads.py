from __future__ import annotations

import msgspec
import pytest

from sprocket.base.errors import SystemBusy
from sprocket.filterserver import uploads
from sprocket.filterserver.uploads import Uploaded, Uploads
from sprocket.store.state.snapshot import Snapshot
from sprocket.testing.disk import MemoryDisk


def version(number: int, name: str = "f", source: str = "x") -> Uploaded:
    return Uploaded("g", "t", name, f"{number:016x}", source, number, "10.0.0.1:1")


def test_the_newest_counts_unless_a_version_is_named() -> None:
    table = Uploads()
    table.put(version(1))
    table.put(version(2))
    assert table.find(("g", "t", "f")) == version(2)
    assert table.find(("g", "t", "f"), f"{1:016x}") == version(1)
    assert table.find(("g", "t", "f"), f"{9:016x}") is None
    assert table.find(("g", "other", "f")) is None


def test_an_old_version_that_comes_again_is_the_newest() -> None:
    table = Uploads()
    for number in (1, 2, 1):
        table.put(version(number))
    assert table.find(("g", "t", "f")) == version(1)
    assert len(table) == 2


def test_a_few_versions_are_kept() -> None:
    table = Uploads()
    gone = [each for number in range(7) for each in table.put(version(number))]
    assert len(table) == uploads.VERSIONS_MAX
    assert [each.uploaded_ms for each in gone] == [0, 1, 2]


def test_there_is_a_limit_of_filters(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uploads, "FILTERS_MAX", 2)
    table = Uploads()
    for name in ("a", "b"):
        table.put(version(1, name))
    with pytest.raises(SystemBusy):
        table.put(version(1, "c"))
    table.put(version(2, "a"))


def test_removal_takes_one_version_or_all() -> None:
    changes: list[int] = []
    table = Uploads(lambda key: changes.append(1))
    for number in range(3):
        table.put(version(number))
    assert table.remove(("g", "t", "f"), f"{1:016x}") == [version(1)]
    assert [each.uploaded_ms for each in table] == [0, 2]
    assert len(table.remove(("g", "t", "f"))) == 2
    assert table.remove(("g", "t", "f")) == []
    assert len(changes) == 5


def test_a_table_comes_back_from_its_file_whatever_its_sources_hold() -> None:
    table = Uploads()
    table.put(version(1, source='{1:2, "\ue000": \'"\'}\n\x00\x85'))
    table.put(version(2))
    known = table.find(("g", "t", "f"))
    assert known is not None
    table.switch_off(known, "it fails")
    disk = MemoryDisk()
    disk.make_directory("/d")
    file = Snapshot(disk, "/d/filterCode.json")
    file.load()
    file.save(table.to_json())
    again = Uploads()
    again.load(Snapshot(disk, "/d/filterCode.json").load())
    assert list(again) == list(table)
    found = again.find(("g", "t", "f"))
    assert found is not None
    assert found.off == "it fails"


def test_a_file_of_another_form_is_refused() -> None:
    with pytest.raises((msgspec.ValidationError, ValueError)):
        Uploads().load({"filters": [{"group": 1}]})
