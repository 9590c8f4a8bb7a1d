"""The elector that a setting names."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from sprocket.base.errors import ConfigError
from sprocket.election.controller_elector import ControllerElector
from sprocket.election.elector import Elector
from sprocket.election.key_elector import KeyElector
from sprocket.election.opening import ElectorRequest, open_elector
from sprocket.testing.clock import ManualClock
from sprocket.testing.disk import MemoryDisk
from sprocket.testing.entropy import SeededEntropy


def opened(place: str, **more: Any) -> Elector:
    async def open_it() -> Elector:
        return open_elector(
            ElectorRequest(
                place, "C", "b", MemoryDisk(), "/data", SeededEntropy(1),
                ManualClock(),
                **more,
            )
        )  # fmt: skip

    return asyncio.run(open_it())


@pytest.mark.parametrize("place", ["etcd://a:1,b:2", "https://me@a:1"])
def test_etcd_is_a_store_of_keys(place: str) -> None:
    pytest.importorskip("aiohttp", reason="needs the extra `etcd`")
    assert isinstance(opened(place), KeyElector)


def test_a_controller_decides_itself() -> None:
    assert isinstance(opened("controller://a:1;b:2"), ControllerElector)


def test_what_is_no_place_is_refused() -> None:
    with pytest.raises(ConfigError, match="the elector begins with etcd://"):
        opened("redis://a:1")
