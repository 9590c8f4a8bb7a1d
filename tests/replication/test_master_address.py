"""Where the master is."""

from __future__ import annotations

import asyncio

from sprocket.replication.master_address import MasterAddress
from sprocket.testing.loop import simulate


def test_who_needs_the_master_waits_until_it_is_known() -> None:
    async def main(_: object) -> None:
        master = MasterAddress()
        waiting = asyncio.ensure_future(master.known())
        await asyncio.sleep(1)
        master.learn("", "")
        await asyncio.sleep(1)
        assert not waiting.done()
        master.learn("a:1", "a:2")
        assert await waiting == "a:2"
        assert (master.address, master.replication, master.changes.value) == ("a:1", "a:2", 1)

    simulate(main)


def test_it_changes_with_what_name_servers_say_and_stays_when_they_know_none() -> None:
    async def main(_: object) -> None:
        master = MasterAddress()
        for pair in (("a:1", "a:2"), ("a:1", "a:2"), ("", ""), ("b:1", "b:2"), ("b:1", "b:3")):
            master.learn(*pair)
        assert (master.address, master.replication, master.changes.value) == ("b:1", "b:3", 3)

    simulate(main)


def test_an_address_that_is_set_stays() -> None:
    async def main(_: object) -> None:
        master = MasterAddress("c:2")
        assert await master.known() == "c:2"
        master.learn("a:1", "a:2")
        assert (master.address, master.replication) == ("a:1", "c:2")

    simulate(main)


def test_a_master_that_says_that_it_is_back_is_tried_at_once_at_the_old_address_too() -> None:
    async def main(_: object) -> None:
        master = MasterAddress()
        master.came_back("a:1", "a:2")
        assert (master.address, master.changes.value, master.term) == ("a:1", 1, 0)
        master.learn("a:1", "a:2")
        assert master.changes.value == 1
        master.came_back("a:1", "a:2")
        assert (master.changes.value, master.term) == (2, 1)

    simulate(main)
