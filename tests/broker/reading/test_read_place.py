"""Where a consumer reads next."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from sprocket.broker.config import BrokerConfig
from sprocket.broker.reading.read_place import ReadPlaces
from sprocket.broker.settings import BrokerSettings
from sprocket.protocol.bodies import GroupConfig
from sprocket.store.store import Store
from sprocket.testing.disk import MemoryDisk
from tests.store.making import SMALL, a_draft, opened

CONFIG = BrokerConfig(slave_reads=True, memory_percent=50)


def asked(
    offset: int, config: BrokerConfig = CONFIG, *, is_slave: bool = False, has_master: bool = False
) -> int:
    """The broker for who reads one of 20 messages; half of the memory holds some five of them."""

    async def main() -> int:
        store: Store = await opened(MemoryDisk())
        for _ in range(20):
            store.append(a_draft())
        slave = SimpleNamespace(is_connected=has_master) if is_slave else None
        replication: Any = SimpleNamespace(is_slave=is_slave, slave=slave)
        places = ReadPlaces(
            store, BrokerSettings(config, SMALL), replication=replication, memory_bytes=1000
        )
        found = store.read("orders", 0, offset, count_max=1, bytes_max=1)
        group = GroupConfig(group_name="g", broker_id=0, which_broker_when_consume_slowly=7)
        return places.next_broker(found, group)

    return asyncio.run(main())


def test_who_is_far_behind_is_sent_to_the_slave_of_its_group_and_back() -> None:
    assert [asked(offset) for offset in (0, 10, 18, 19, 20)] == [7, 7, 0, 0, 0]


def test_nobody_is_sent_away_unless_slaves_may_be_read() -> None:
    assert asked(0, replace(CONFIG, slave_reads=False)) == 0


@pytest.mark.parametrize("has_master", [True, False])
def test_a_slave_sends_who_has_caught_up_to_its_master(has_master: bool) -> None:
    assert asked(0, is_slave=True, has_master=has_master) == 7
    assert asked(19, is_slave=True, has_master=has_master) == 0
