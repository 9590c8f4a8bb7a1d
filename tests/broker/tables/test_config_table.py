"""Configurations by name: what cannot be saved is taken back."""

from __future__ import annotations

import asyncio

import pytest

from sprocket.base.errors import StoreError
from sprocket.broker.tables.config_table import ConfigTable
from sprocket.testing.clock import ManualClock


class Table(ConfigTable[list[int]]):
    def __init__(self) -> None:
        self.changed: list[str] = []
        super().__init__({"known": [1]}, clock=ManualClock(), on_change=self.changed.append)

    def put(self, name: str, config: list[int]) -> list[int]:
        self._replace(name, config)
        return config


async def refused() -> None:
    raise StoreError("the disk is full")


def test_what_is_saved_stays() -> None:
    table = Table()

    async def save() -> None:
        assert table.get("new") == [2]

    asyncio.run(table.save_or_undo(save, {"new": table.put("new", [2])}, {"new": None}))
    assert table.by_name == {"known": [1], "new": [2]}
    assert table.changed == ["new"]


def test_what_cannot_be_saved_is_as_before_with_a_new_version() -> None:
    table = Table()
    before = {"known": table.get("known"), "new": None}
    made = {"known": table.put("known", [3]), "new": table.put("new", [2])}
    version = table.version
    with pytest.raises(StoreError, match="nothing is created or changed: the disk is full"):
        asyncio.run(table.save_or_undo(refused, made, before))
    assert table.by_name == {"known": [1]}
    assert table.changed == ["known", "new", "known", "new"]
    assert table.version.counter == version.counter + 2


def test_what_somebody_has_changed_since_stays() -> None:
    table = Table()
    made = {"new": table.put("new", [2])}
    table.put("new", [4])
    with pytest.raises(StoreError):
        asyncio.run(table.save_or_undo(refused, made, {"new": None}))
    assert table.get("new") == [4]
