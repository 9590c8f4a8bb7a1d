"""What every store of leased keys promises, played by a coroutine on any loop."""

from __future__ import annotations

import asyncio

import pytest

from sprocket.election.leased_keys import Compare, Delete, LeasedKeys, LeaseGone, Put


async def keeps_its_promises(keys: LeasedKeys, other: LeasedKeys) -> None:
    """Plays everything that an elector relies on, through two clients of one store."""
    await _compares(keys, other)
    await _shows_a_prefix_only(keys)
    await _ends_leases(keys, other)
    await _watches(keys, other)


async def _compares(keys: LeasedKeys, other: LeasedKeys) -> None:
    made = await keys.transact([Compare("/a/x", 0)], [Put("/a/x", "one")])
    assert made.is_done
    assert not (await other.transact([Compare("/a/x", 0)], [Put("/a/x", "two")])).is_done
    picture = await other.get("/a/")
    assert picture.revision >= made.revision
    assert picture.keys["/a/x"] == ("/a/x", "one", made.revision)
    again = await other.transact([Compare("/a/x", made.revision)], [Put("/a/x", "täglich\n")])
    assert again.is_done
    assert again.revision > made.revision
    assert (await keys.get("/a/")).keys["/a/x"] == ("/a/x", "täglich\n", again.revision)
    both = [Compare("/a/x", again.revision), Compare("/a/y", 7)]
    assert not (await keys.transact(both, [Delete("/a/x")])).is_done
    assert (await keys.transact(both[:1], [Put("/a/y", ""), Delete("/a/x")])).is_done
    assert {key: kept.value for key, kept in (await keys.get("/a/")).keys.items()} == {"/a/y": ""}


async def _shows_a_prefix_only(keys: LeasedKeys) -> None:
    await keys.transact([], [Put("/b/1", "in"), Put("/b/10", "in"), Put("/b0", "out")])
    assert sorted((await keys.get("/b/")).keys) == ["/b/1", "/b/10"]
    assert (await keys.get("/nothing/")).keys == {}


async def _ends_leases(keys: LeasedKeys, other: LeasedKeys) -> None:
    lease = await keys.grant(1)
    assert lease.seconds >= 1
    await keys.transact([], [Put("/c/bound", "", lease.id), Put("/c/moved", "", lease.id)])
    await keys.transact([], [Put("/c/moved", "free")])
    assert await keys.keep_alive(lease.id) >= 1
    await other.revoke(lease.id)
    await other.revoke(lease.id)
    assert sorted((await keys.get("/c/")).keys) == ["/c/moved"]
    assert await keys.keep_alive(lease.id) == 0
    with pytest.raises(LeaseGone):
        await keys.transact([], [Put("/c/late", "", lease.id)])
    short = await keys.grant(1)
    await keys.transact([], [Put("/c/short", "", short.id)])
    while "/c/short" in (await keys.get("/c/")).keys:  # noqa: ASYNC110 - the store ends it
        await asyncio.sleep(0.1)


async def _watches(keys: LeasedKeys, other: LeasedKeys) -> None:
    first = (await keys.transact([], [Put("/d/1", "")])).revision
    watch = aiter(other.watch("/d/", first))
    assert await anext(watch) == first
    await keys.transact([], [Put("/e/1", "elsewhere")])
    second = (await keys.transact([], [Put("/d/2", "")])).revision
    assert await anext(watch) == second
    third = (await keys.transact([], [Delete("/d/1")])).revision
    assert await anext(watch) == third
    lease = await keys.grant(1)
    await keys.transact([], [Put("/d/3", "", lease.id)])
    assert await anext(watch) > third
    await keys.revoke(lease.id)
    assert await anext(watch) > third + 1
