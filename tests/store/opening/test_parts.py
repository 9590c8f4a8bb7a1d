"""The parts of a store are made without the disk."""

from __future__ import annotations

from typing import Any, cast

import pytest

from sprocket.base.ports import Disk
from sprocket.store.config import StoreConfig
from sprocket.store.opening.parts import StoreParts
from sprocket.store.views.tag_codes import TAGS_ONLY
from sprocket.testing.clock import ManualClock
from tests.store.making import HOST


class Untouchable:
    """A disk that fails whatever it is asked, but for its bounds."""

    open_files_max = 1024

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(f"the disk was asked for {name}")


def parts(config: StoreConfig) -> StoreParts:
    disk = cast("Disk", Untouchable())
    return StoreParts(
        disk,
        ManualClock(),
        root="/store",
        config=config,
        store_host=HOST,
        tag_codes=TAGS_ONLY,
    )


@pytest.mark.parametrize(
    "config",
    [StoreConfig(), StoreConfig(flush="SYNC_FLUSH"), StoreConfig(log_paths=("/a", "/b"))],
)
def test_making_the_parts_touches_no_disk(config: StoreConfig) -> None:
    made = parts(config)
    assert str(made.flags.refusal) == "the store is not open"
    with pytest.raises(AssertionError, match="the disk was asked for names"):
        made.load()
