"""A log is cut where the copy of another broker has something else: whatever happens meanwhile."""

from __future__ import annotations

import errno

import pytest

from sprocket.base.errors import StoreError
from sprocket.store.store import Store
from sprocket.store.views.tag_codes import TAGS_ONLY
from sprocket.testing.clock import ManualClock
from sprocket.testing.disk import FaultyDisk, MemoryDisk
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
