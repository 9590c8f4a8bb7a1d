"""A log is cut where the copy of another broker has something else: whatever happens meanwhile."""

from __future__ import annotations

import errno
from contextlib import suppress

import pytest

from sprocket.base.errors import StoreError
from sprocket.store.store import Store
from sprocket.store.views.tag_codes import TAGS_ONLY
from sprocket.testing.clock import ManualClock
from sprocket.testing.disk import FaultyDisk, MemoryDisk, MemoryMappedFile
from sprocket.testing.loop import simulate
from tests.store.making import HOST, ROOT, SMALL, a_draft, messages, opened

COUNT = 40


class StoppingDisk(FaultyDisk):
    """Fails at its n-th sync or state file and all later ones, as a machine that loses power."""

    left = 1 << 30

    async def before_sync(self, path: str) -> None:
        self._step()
        await super().before_sync(path)

    def replace(self, path: str, content: bytes, *, backup: bool = True) -> None:
        self._step()
        super().replace(path, content, backup=backup)

    def _step(self) -> None:
        self.left -= 1
        if self.left < 0:
            raise OSError(errno.EIO, "no power")


async def filled(disk: MemoryDisk, *, is_stopped: bool) -> list[int]:
    """A store with messages in two queues and with keys; the log offsets where each begins."""
    store = await opened(disk)
    offsets = []
    for number in range(COUNT):
        draft = a_draft(
            b"%d" % number,
            queue_number=number % 2,
            properties=b"TAGS\x01a\x02KEYS\x01k%d\x02" % number,
            keys=f"k{number}",
        )
        offsets.append(store.append(draft).log_offset)
    await store.sync()
    if is_stopped:
        await store.close()
    return offsets


async def cut(disk: MemoryDisk, at: int) -> Store:
    return await Store.open(
        disk=disk,
        clock=ManualClock(),
        root=ROOT,
        config=SMALL,
        store_host=HOST,
        tag_codes=TAGS_ONLY,
        cut_at=at,
    )


async def check(store: Store, kept: int, at: int) -> None:
    """The first messages are there, and others take the places of the rest."""
    assert store.log_end == at
    found = [*messages(store), *messages(store, number=1)]
    assert sorted(int(each.body) for each in found) == list(range(kept))
    await store.close()


@pytest.mark.parametrize("is_stopped", [True, False])
def test_what_is_behind_the_cut_is_gone_from_log_queues_and_index(is_stopped: bool) -> None:
    async def main(_: object) -> None:
        for kept in (0, 1, 7, 15, 16, 31, COUNT - 1):
            disk = MemoryDisk()
            offsets = await filled(disk, is_stopped=is_stopped)
            disk = disk.after_kill()
            store = await cut(disk, offsets[kept])
            assert not store.find("orders", f"k{kept}", count_max=9)
            assert len(store.find("orders", f"k{kept - 1}", count_max=9)) == (kept > 0)
            again = store.append(a_draft(b"%d" % kept, queue_number=kept % 2))
            assert (again.log_offset, again.queue_offset) == (offsets[kept], kept // 2)
            end = store.log_end
            await store.close()
            await check(await opened(disk.after_kill()), kept + 1, end)

    simulate(main)


def test_a_cut_at_the_end_changes_nothing() -> None:
    async def main(_: object) -> None:
        disk = MemoryDisk()
        await filled(disk, is_stopped=True)
        end = (await opened(disk)).log_end
        store = await cut(disk.after_kill(), end)
        await check(store, COUNT, end)

    simulate(main)


@pytest.mark.parametrize("is_stopped", [True, False])
def test_a_loss_of_power_during_the_cut_leaves_a_store_that_is_cut_again(is_stopped: bool) -> None:
    async def main(_: object) -> None:
        for seed in range(4):
            for steps in range(40):
                disk = StoppingDisk(seed)
                offsets = await filled(disk, is_stopped=is_stopped)
                kept = 5 + 8 * seed
                disk.left = steps
                try:
                    await (await cut(disk, offsets[kept])).close()
                except StoreError:
                    pass
                else:
                    assert steps
                disk.left = 1 << 30
                after = disk.after_power_loss()
                uncut = await opened(after)  # at whatever start: what it has is in order
                assert all(int(each.body) % 2 == 0 for each in messages(uncut))
                assert uncut.log_end >= offsets[kept]
                await uncut.close()
                await check(await cut(after.after_kill(), offsets[kept]), kept, offsets[kept])

    simulate(main)


class StoppingFiles(StoppingDisk):
    """The same at each file that is made or removed as well."""

    def remove(self, path: str) -> None:
        self._step()
        super().remove(path)

    def map(self, path: str, size: int) -> MemoryMappedFile:
        self._step()
        return super().map(path, size)


@pytest.mark.parametrize("is_killed", [True, False])
def test_a_queue_of_which_all_is_cut_begins_anew_also_after_a_crash(is_killed: bool) -> None:
    async def main(_: object) -> None:
        for steps in range(40):
            disk = StoppingFiles(steps)
            store = await opened(disk)
            offsets = [
                store.append(a_draft(b"%d" % each, queue_number=each // 20)).log_offset
                for each in range(COUNT)
            ]
            await store.close()
            disk.left = steps
            with suppress(StoreError):
                await (await cut(disk, offsets[20])).close()
            disk.left = 1 << 30
            disk = disk.after_kill() if is_killed else disk.after_power_loss()
            store = await cut(disk, offsets[20])
            assert store.max_offset("orders", 0) == 20
            assert store.append(a_draft(queue_number=1)).queue_offset == 0
            await store.close()

    simulate(main)


def test_a_queue_of_which_only_expired_messages_are_left_continues_behind_them() -> None:
    async def main(_: object) -> None:
        disk = MemoryDisk()
        store = await opened(disk)
        offsets = [store.append(a_draft(b"%d" % each)).log_offset for each in range(16)]
        for each in range(20):
            store.append(a_draft(b"%d" % each, queue_number=1))
        last = [store.append(a_draft(b"%d" % each)).log_offset for each in range(16, 24)]
        await store.close()
        disk = disk.after_kill()
        start = offsets[-1] - offsets[-1] % SMALL.log_file_bytes + SMALL.log_file_bytes
        for name in disk.names(f"{ROOT}/commitlog"):
            if int(name) < start:
                disk.remove(f"{ROOT}/commitlog/{name}")
        store = await opened(disk)  # it drops the files of the queue that lead nowhere
        assert store.min_offset("orders", 0) == 16
        await store.close()
        store = await cut(disk.after_kill(), last[0])
        assert store.append(a_draft()).queue_offset == 16
        await store.close()

    simulate(main)


def test_what_was_cut_does_not_come_back_with_a_loss_of_power_behind_the_cut() -> None:
    async def main(_: object) -> None:
        for seed in range(10):
            for kept in (0, 7, 15):
                disk = FaultyDisk(seed)
                offsets = await filled(disk, is_stopped=True)
                disk = disk.after_power_loss()
                await cut(disk, offsets[kept])  # nothing is synced from here on
                store = await opened(disk.after_power_loss())
                assert store.log_end == offsets[kept]
                await store.close()

    simulate(main)
