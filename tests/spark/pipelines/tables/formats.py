"""The table formats whose library is installed, and what another reader sees in a table."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

_LIBRARIES = {"delta": "deltalake", "iceberg": "pyiceberg"}


def of(form: str) -> Any:
    """A parameter of a test; it is skipped where the format's library is missing."""
    library = _LIBRARIES[form]
    is_here = importlib.util.find_spec(library) is not None
    why = f"{library} is not installed: make test-lake installs it and runs this"
    return pytest.param(form, marks=pytest.mark.skipif(not is_here, reason=why))


FORMATS = [of(form) for form in _LIBRARIES]


def newest_metadata(folder: str | Path) -> str:
    """The path of an Iceberg table's newest metadata."""
    found = Path(folder).glob("metadata/v*.metadata.json")
    return str(max(found, key=lambda path: int(path.name[1:].partition(".")[0])))


def by_its_library(form: str, folder: str | Path) -> list[dict[str, Any]]:
    """The rows as the format's own library reads them."""
    if form == "delta":
        from deltalake import DeltaTable

        found: list[dict[str, Any]] = DeltaTable(folder).to_pyarrow_table().to_pylist()
        return found
    from pyiceberg.table import StaticTable

    table = StaticTable.from_metadata(newest_metadata(folder))
    rows: list[dict[str, Any]] = table.scan().to_arrow().to_pylist()
    return rows


def cut(patch: pytest.MonkeyPatch, owner: Any, name: str, when: str, calls_before: int = 1) -> None:
    """Makes a call of a method, after so many whole ones, raise before or after its work."""
    whole = getattr(owner, name)
    calls = iter(range(calls_before, -1, -1))

    def cut_off(*given: Any, **named: Any) -> Any:
        if next(calls):
            return whole(*given, **named)
        if when == "after":
            whole(*given, **named)
        raise OSError("the machine is gone")

    patch.setattr(owner, name, cut_off)
