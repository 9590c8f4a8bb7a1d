"""A topic that was deleted does not come back."""

from __future__ import annotations

import errno

import pytest

from sprocket.base.errors import StoreError
from sprocket.store.state.deleted_topics import DeletedTopics
from sprocket.store.store import Store
from sprocket.testing.disk import FaultyDisk, MemoryDisk
from tests.store.making import ROOT, a_draft, bodies, opened
from tests.support import run

FILE = f"{ROOT}/config/deletedTopics.json"


async def filled(disk: MemoryDisk) -> Store:
    store = await opened(disk)
    for n in range(20):
        store.append(a_draft(b"old %d" % n))
        store.append(a_draft(b"kept %d" % n, topic="kept"))
    store.delete_topic("orders")
    return store


def without_views(disk: MemoryDisk) -> MemoryDisk:
    left = disk.after_kill()
    for path in [path for path in left._files if "/consumequeue/" in path or "/index/" in path]:
        left.remove(path)
    return left


def test_a_deleted_topic_stays_deleted_when_its_queues_are_built_anew() -> None:
    async def check() -> None:
        disk = MemoryDisk()
        store = await filled(disk)
        for crashed in (disk.after_kill(), without_views(disk)):
            again = await opened(crashed)
            assert again.queues() == {"kept": [0]}
            assert bodies(again, "kept") == [b"kept %d" % n for n in range(20)]
            assert again.append(a_draft(b"new")).queue_offset == 0
        store.append(a_draft(b"newer"))
        again = await opened(without_views(disk))
        assert bodies(again) == [b"newer"]

    run(check())


def test_queues_that_a_crash_kept_are_removed() -> None:
    async def check() -> None:
        disk = MemoryDisk()
        store = await opened(disk)
        for n in range(20):
            store.append(a_draft(b"old %d" % n))
        before = disk.after_kill()
        store.delete_topic("orders")
        before.make_directory(f"{ROOT}/config")
        before.replace(FILE, disk.read(FILE) or b"")
        again = await opened(before)
        assert again.queues() == {}
        assert again.append(a_draft(b"new")).queue_offset == 0
        assert bodies(await opened(before.after_kill())) == [b"new"]

    run(check())


@pytest.mark.parametrize("seed", range(20))
def test_a_topic_made_again_has_its_new_messages_only_whatever_crashes(seed: int) -> None:
    async def check() -> None:
        disk = FaultyDisk(seed)
        store = await filled(disk)
        for n in range(seed % 7):
            store.append(a_draft(b"new %d" % n))
        if seed % 2:
            await store.sync()
        if seed % 3:
            await store._flush.sync_views(is_thorough=True)
        again = await opened(disk.after_power_loss())
        found = bodies(again)
        assert found == [b"new %d" % n for n in range(len(found))]

    run(check())


def test_what_was_deleted_before_the_log_begins_is_forgotten() -> None:
    disk = MemoryDisk()
    disk.make_directory(ROOT)
    deleted = DeletedTopics(disk, ROOT)
    deleted.load()
    assert not deleted
    deleted.record("a", 100, log_start=0)
    deleted.record("b", 300, log_start=200)
    again = DeletedTopics(disk, ROOT)
    again.load()
    assert (again.end_of("a"), again.end_of("b"), again.end_of("c")) == (0, 300, 0)
    assert again


def test_a_topic_is_not_deleted_if_that_cannot_be_kept_in_mind() -> None:
    disk = FaultyDisk(1)
    store = run(opened(disk))
    store.append(a_draft())
    disk.fail("replace", errno.ENOSPC)
    with pytest.raises(StoreError, match="orders cannot be deleted"):
        store.delete_topic("orders")
    assert len(bodies(store)) == 1


@pytest.mark.parametrize("content", [b'{"deletedTopics":[1]}', b'{"deletedTopics":{"a":"x"}}'])
def test_a_file_that_holds_something_else_is_refused(content: bytes) -> None:
    disk = MemoryDisk()
    disk.make_directory(f"{ROOT}/config")
    disk.replace(FILE, content)
    with pytest.raises(StoreError, match="no such table"):
        DeletedTopics(disk, ROOT).load()


def test_what_is_written_where_deleted_messages_were_lost_is_kept() -> None:
    async def check() -> None:
        disk = FaultyDisk(seed=5)
        store = await opened(disk)
        store.append(a_draft(b"old"))
        store.delete_topic("orders")
        again_disk = disk.after_power_loss()
        again = await opened(again_disk)
        assert again.log_end == 0, "nothing had been synced"
        again.append(a_draft(b"new"))
        assert bodies(await opened(again_disk.after_kill())) == [b"new"]

    run(check())
