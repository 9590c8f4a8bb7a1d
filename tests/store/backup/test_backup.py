"""A backup made while messages come in, and stores that are made from it."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sprocket.base.errors import DamagedLog, DirectoryInUse, StoreError, UsageError
from sprocket.store.backup.making import BackupReport, back_up
from sprocket.store.backup.manifest import read_manifest
from sprocket.store.backup.restoring import RestoreReport, check_backup, restore
from sprocket.store.inspection.inspected import InspectedStore
from sprocket.store.inspection.verify import Verification
from sprocket.store.state.snapshot import decode_state, encode_state
from sprocket.store.store import Store
from sprocket.store.views.tag_codes import TAGS_ONLY
from sprocket.testing.clock import ManualClock
from sprocket.testing.disk import FaultyDisk, MemoryDisk
from sprocket.testing.loop import simulate
from sprocket.testing.network import Network
from tests.store.making import HOST, ROOT, SMALL, a_draft, bodies, opened

BACKUP, AGAIN = "/backup", "/again"
FILE = SMALL.log_file_bytes


async def backed_up(disk: MemoryDisk, now_ms: int = 5_000) -> BackupReport:
    return await back_up(disk, ROOT, BACKUP, SMALL, now_ms=now_ms)


async def restored(
    disk: MemoryDisk, root: str = AGAIN, *, at_ms: int | None = None, replaces: bool = False
) -> RestoreReport:
    return await restore(disk, BACKUP, root, SMALL, now_ms=9_000, at_ms=at_ms, replaces=replaces)


async def open_again(disk: MemoryDisk, root: str = AGAIN) -> Store:
    """The restored store; a look at it finds no fault."""
    store = await Store.open(
        disk=disk, clock=ManualClock(), root=root, config=SMALL, store_host=HOST,
        tag_codes=TAGS_ONLY,
    )  # fmt: skip
    await store.sync()
    await store._flush.finish()
    findings = list(Verification(InspectedStore(disk, root, SMALL)).findings())
    assert not [each for each in findings if each.is_fault]
    return store


def append(store: Store, count: int, *, begin: int = 0, **changes: Any) -> None:
    for number in range(begin, begin + count):
        store.append(a_draft(b"%d" % number, **changes))


def save(disk: MemoryDisk, name: str, state: dict[str, Any]) -> None:
    disk.make_directory(f"{ROOT}/config")
    disk.replace(f"{ROOT}/config/{name}", encode_state(state).encode())


def table(disk: MemoryDisk, name: str, root: str = AGAIN) -> Any:
    raw = disk.read(f"{root}/config/{name}")
    assert raw is not None
    return decode_state(raw.decode())


def numbers(count: int) -> list[bytes]:
    return [b"%d" % number for number in range(count)]


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_what_was_acknowledged_before_is_in_it_and_the_rest_is_a_beginning(
    data: st.DataObject,
) -> None:
    """Random messages come while it is made, again and again; files expire meanwhile."""

    async def check(_: Network) -> None:
        disk = FaultyDisk(data.draw(st.integers(0, 1 << 16)))
        store = await opened(disk, clock=ManualClock(1_000))
        written: list[bytes] = []

        def write(count: int, size: int) -> None:
            for _ in range(count):
                body = b"%d:" % len(written) + b"x" * size
                store.append(a_draft(body, queue_number=len(written) % 2))
                written.append(body)

        async def write_on(pauses: list[int]) -> None:
            for pause in pauses:
                for _ in range(pause):
                    await asyncio.sleep(0.005)
                write(3, data.draw(st.integers(0, 600)))

        for turn in range(data.draw(st.integers(1, 3))):
            write(data.draw(st.integers(0, 40)), data.draw(st.integers(0, 300)))
            before = len(written)
            pauses = data.draw(st.lists(st.integers(0, 6), max_size=8))
            work = asyncio.ensure_future(write_on(pauses))
            await backed_up(disk, now_ms=5_000 + turn)
            await work
            await restored(disk, f"{AGAIN}{turn}")
            again = await open_again(disk, f"{AGAIN}{turn}")
            got = [bodies(again, number=number) for number in range(2)]
            count = sum(map(len, got))
            assert count >= before
            for number in range(2):
                assert got[number] == written[:count][number::2]
            append(again, 1)  # it takes messages
            await again.close()
        await store.close()

    simulate(check)


def test_only_what_is_new_is_copied() -> None:
    async def check(_: Network) -> None:
        disk = MemoryDisk()
        store = await opened(disk)
        append(store, 50)
        first = await backed_up(disk)
        assert (first.start, first.end, first.copied_bytes) == (0, store.log_end, store.log_end)
        append(store, 2, begin=50)
        second = await backed_up(disk)
        assert second.end == store.log_end
        assert second.copied_bytes == store.log_end - first.end
        assert second.states == 2
        await store.close()
        await restored(disk)
        assert bodies(await open_again(disk)) == numbers(52)

    simulate(check)


def test_files_that_expire_at_the_broker_stay_in_the_backup_for_the_times_before() -> None:
    async def check(_: Network) -> None:
        disk = MemoryDisk()
        clock = ManualClock(1_000)
        store = await opened(disk, clock=clock)
        append(store, 50)
        await backed_up(disk)
        clock.move(19_000)
        append(store, 10, begin=50)
        for name in disk.names(f"{ROOT}/commitlog")[:2]:
            disk.remove(f"{ROOT}/commitlog/{name}")
        await backed_up(disk)
        await restored(disk, at_ms=10_000)
        assert bodies(await open_again(disk)) == numbers(50)
        await restored(disk, "/now")
        kept = bodies(await open_again(disk, "/now"))
        assert kept == numbers(60)[-len(kept) :]
        assert len(kept) < 60

    simulate(check)


def test_a_store_is_as_it_was_at_a_time() -> None:
    async def check(_: Network) -> None:
        disk, clock = MemoryDisk(), ManualClock(1_000)
        store = await opened(disk, clock=clock)
        for number in range(40):
            store.append(a_draft(b"%d" % number))
            clock.move(10)
        save(disk, "consumerOffset.json", {"offsetTable": {"orders@g": {0: 35}}})
        save(disk, "delayOffset.json", {"offsetTable": {1: 7}})
        save(disk, "queueLocks.json", {"locks": {}})
        await backed_up(disk)
        found = (await restored(disk, at_ms=1_000 + 20 * 10)).found
        assert (found.records, found.stored_ms) == (21, 1_200)
        # A position behind the end would pass over messages that come later.
        assert table(disk, "consumerOffset.json")["offsetTable"] == {"orders@g": {0: 21}}
        assert table(disk, "delayOffset.json")["offsetTable"] == {1: 7}
        assert disk.read(f"{AGAIN}/config/queueLocks.json") is None
        again = await open_again(disk)
        assert bodies(again) == numbers(21)
        append(again, 1, begin=21)
        assert bodies(again) == numbers(22)

    simulate(check)


def test_a_time_of_which_the_backup_knows_nothing_is_refused() -> None:
    async def check(_: Network) -> None:
        disk, clock = MemoryDisk(), ManualClock(20_000)
        store = await opened(disk, clock=clock)
        append(store, 3)
        await store.sync()
        await backed_up(disk, now_ms=30_000)
        await store.close()
        with pytest.raises(UsageError, match=r"earliest time is 1970-01-01 00:00:20\.000\+00:00"):
            await restored(disk, at_ms=19_999)
        assert (await restored(disk, "/first", at_ms=20_000)).found.records == 3

        # A store that was empty at first is known from then on.
        disk = MemoryDisk()
        store = await opened(disk, clock=clock)
        await backed_up(disk, now_ms=10_000)
        append(store, 3)
        await store.sync()
        await backed_up(disk, now_ms=30_000)
        await store.close()
        with pytest.raises(UsageError, match=r"earliest time is 1970-01-01 00:00:10\.000\+00:00"):
            await restored(disk, at_ms=9_999)
        assert (await restored(disk, at_ms=10_000)).found.records == 0

    simulate(check)


def test_positions_of_the_state_before_the_time_are_kept_and_later_topics_are_added() -> None:
    async def check(_: Network) -> None:
        disk, clock = MemoryDisk(), ManualClock(1_000)
        store = await opened(disk, clock=clock)
        append(store, 20)
        save(disk, "topics.json", {"topicConfigTable": {"orders": {"perm": 6}}})
        save(disk, "consumerOffset.json", {"offsetTable": {"orders@g": {0: 15}}})
        await backed_up(disk)
        clock.move(1_000)
        append(store, 5, topic="new")
        topics = {"orders": {"perm": 4}, "new": {"perm": 6}}
        save(disk, "topics.json", {"topicConfigTable": topics})
        clock.move(1_000)
        append(store, 5, begin=20)
        save(disk, "consumerOffset.json", {"offsetTable": {"orders@g": {0: 25}}})
        await backed_up(disk, 6_000)
        await restored(disk, at_ms=2_500)
        rows = table(disk, "topics.json")["topicConfigTable"]
        assert rows == {"orders": {"perm": 6}, "new": {"perm": 6}}
        assert table(disk, "consumerOffset.json")["offsetTable"] == {"orders@g": {0: 15}}
        again = await open_again(disk)
        assert bodies(again) == numbers(20)
        assert bodies(again, "new") == numbers(5)

    simulate(check)


def test_a_topic_that_was_made_again_has_only_its_own_messages() -> None:
    """Its offsets begin again; without the deletion the log could not be read."""

    async def check(_: Network) -> None:
        disk, clock = MemoryDisk(), ManualClock(1_000)
        store = await opened(disk, clock=clock)
        append(store, 20)
        await backed_up(disk)
        store.delete_topic("orders")
        append(store, 5, begin=100)
        clock.move(1_000)
        append(store, 1, begin=105)
        await backed_up(disk, 6_000)
        for root, at_ms, count in (("/a", None, 6), ("/b", 1_500, 5)):
            await restored(disk, root, at_ms=at_ms)
            expected = [b"%d" % number for number in range(100, 100 + count)]
            assert bodies(await open_again(disk, root)) == expected

    simulate(check)


def test_queues_go_on_behind_messages_that_expired() -> None:
    async def check(_: Network) -> None:
        disk = MemoryDisk()
        store = await opened(disk)
        append(store, 10, topic="old")
        append(store, 40)
        await store.sync()
        await store._flush.sync_views(is_thorough=True)
        store._flush._ends.save(store._flush._ends.note(store.log_end))
        for name in disk.names(f"{ROOT}/commitlog")[:2]:
            disk.remove(f"{ROOT}/commitlog/{name}")
        await backed_up(disk)
        await restored(disk)
        again = await open_again(disk)
        assert again.max_offset("old", 0) == 10

    simulate(check)


def test_a_store_that_is_not_the_one_of_the_backup_is_refused() -> None:
    async def check(_: Network) -> None:
        disk = MemoryDisk()
        store = await opened(disk)
        append(store, 30)
        await backed_up(disk)
        await store.close()
        disk.move(ROOT, "/elsewhere")
        other = await opened(disk, clock=ManualClock(77))
        append(other, 40, begin=500)
        with pytest.raises(StoreError, match="other messages"):
            await backed_up(disk)

    simulate(check)


def test_messages_that_expired_between_two_backups_leave_no_hole() -> None:
    async def check(_: Network) -> None:
        disk = MemoryDisk()
        store = await opened(disk)
        append(store, 10)
        await backed_up(disk)
        append(store, 60, begin=10)
        for name in disk.names(f"{ROOT}/commitlog")[:3]:
            disk.remove(f"{ROOT}/commitlog/{name}")
        with pytest.raises(StoreError, match="deleted already: begin a new backup"):
            await backed_up(disk)
        await restored(disk)
        assert bodies(await open_again(disk)) == numbers(10)

    simulate(check)


def test_what_a_member_of_a_group_takes_back_is_taken_back_in_the_backup() -> None:
    """Its log above the confirmed offset may be replaced by that of a new master."""

    async def check(_: Network) -> None:
        disk = MemoryDisk()
        store = await opened(disk)
        append(store, 20)
        confirmed = int(store.log_end)
        append(store, 10, begin=20)
        await store.sync()
        store._flush._checkpoint.confirmed = confirmed
        await store._flush._checkpoint.save()
        report = await backed_up(disk)
        manifest = read_manifest(disk, BACKUP)
        assert manifest is not None
        assert (manifest.settled, manifest.end) == (confirmed, report.end)
        await store.close()
        cut = await Store.open(
            disk=disk, clock=ManualClock(), root=ROOT, config=SMALL, store_host=HOST,
            tag_codes=TAGS_ONLY, cut_at=confirmed,
        )  # fmt: skip
        append(cut, 3, begin=900)
        await backed_up(disk)
        await restored(disk)
        assert bodies(await open_again(disk)) == [*numbers(20), b"900", b"901", b"902"]

    simulate(check)


def test_a_folder_with_something_in_it_is_never_overwritten() -> None:
    async def check(_: Network) -> None:
        disk = MemoryDisk()
        store = await opened(disk)
        append(store, 5)
        await backed_up(disk)
        append(store, 5, begin=5)
        with pytest.raises(UsageError, match="not empty"):
            await restored(disk, ROOT)
        with pytest.raises(DirectoryInUse):
            await restored(disk, ROOT, replaces=True)
        await store.close()
        report = await restored(disk, ROOT, replaces=True)
        assert bodies(await open_again(disk, ROOT)) == numbers(5)
        assert bodies(await open_again(disk, report.moved_to)) == numbers(10)

    simulate(check)


def test_damage_of_a_backup_is_found() -> None:
    async def check(_: Network) -> None:
        disk = MemoryDisk()
        store = await opened(disk)
        append(store, 50)
        save(disk, "topics.json", {"topicConfigTable": {}})
        await backed_up(disk)
        assert (await check_backup(disk, BACKUP)).records == 50
        path = f"{BACKUP}/commitlog/{FILE:020d}"
        disk.map(path, FILE).buffer[100] ^= 1
        with pytest.raises(DamagedLog):
            await check_backup(disk, BACKUP)
        with pytest.raises(DamagedLog):
            await restored(disk)
        assert disk.names(AGAIN) == []
        disk.map(path, FILE).buffer[100] ^= 1
        disk.remove(path)
        with pytest.raises(DamagedLog):
            await check_backup(disk, BACKUP)

    simulate(check)


def test_damage_of_a_state_file_is_found() -> None:
    async def check(_: Network) -> None:
        disk = MemoryDisk()
        await opened(disk)
        save(disk, "topics.json", {"topicConfigTable": {}})
        await backed_up(disk)
        path = f"{BACKUP}/states/5000/topics.json"
        disk.replace(path, b"{}")
        with pytest.raises(StoreError, match="damaged"):
            await check_backup(disk, BACKUP)
        disk.remove(path)
        with pytest.raises(StoreError, match="missing"):
            await check_backup(disk, BACKUP)

    simulate(check)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("states", 0, "files"), {"../../../etc/cron.d/x": 0}),
        (("states", 0, "files"), {"a/b": 0}),
        (("states", 0, "files"), {"..": 0}),
        (("states", 0, "files"), {"": 0}),
        (("states", 0, "files"), {"a\0b": 0}),
        (("logs",), {"../../etc/passwd": 0}),
        (("logs",), {"7": 0}),
        (("fileBytes",), -1),
        (("start",), -1),
        (("settled",), 1 << 40),
        (("end",), -1),
    ],
)
def test_a_list_that_names_what_no_backup_has_is_refused(path: tuple[Any, ...], value: Any) -> None:
    async def check(_: Network) -> None:
        disk = MemoryDisk()
        append(await opened(disk), 3)
        save(disk, "topics.json", {"topicConfigTable": {}})
        await backed_up(disk)
        found = json.loads(disk.read(f"{BACKUP}/backup.json") or b"")
        place = found
        for step in path[:-1]:
            place = place[step]
        place[path[-1]] = value
        disk.replace(f"{BACKUP}/backup.json", json.dumps(found).encode())
        with pytest.raises(StoreError, match=r"backup\.json is broken"):
            await restored(disk)
        assert disk.names(AGAIN) == []

    simulate(check)


def test_a_full_disk_leaves_the_backup_as_it_was() -> None:
    async def check(_: Network) -> None:
        disk = FaultyDisk(1)
        store = await opened(disk)
        append(store, 20)
        await backed_up(disk)
        append(store, 40, begin=20)
        disk.fail("zero")
        with pytest.raises(OSError, match="/backup/"):
            await backed_up(disk)
        await restored(disk)
        assert bodies(await open_again(disk)) == numbers(20)
        await backed_up(disk)
        await restored(disk, "/later")
        assert bodies(await open_again(disk, "/later")) == numbers(60)

    simulate(check)


def test_a_record_that_is_being_written_is_no_damage() -> None:
    """The broker is another process: a later record may be whole before it is."""

    async def check(_: Network) -> None:
        disk = MemoryDisk()
        store = await opened(disk)
        append(store, 3)
        end = int(store.log_end)
        append(store, 3, begin=3)
        byte = disk.map(f"{ROOT}/commitlog/{0:020d}", FILE).buffer
        byte[end + 4] ^= 1

        async def written() -> None:
            await asyncio.sleep(0.06)
            byte[end + 4] ^= 1

        work = asyncio.ensure_future(written())
        report = await backed_up(disk)
        await work
        assert (report.end, report.damaged) == (end, ())
        assert (await backed_up(disk, 6_000)).end == store.log_end
        await restored(disk)
        assert bodies(await open_again(disk)) == numbers(6)

    simulate(check)


def test_damage_of_the_log_is_told_and_copied_as_it_is() -> None:
    async def check(_: Network) -> None:
        disk = MemoryDisk()
        store = await opened(disk)
        append(store, 3)
        end = int(store.log_end)
        append(store, 3, begin=3)
        disk.map(f"{ROOT}/commitlog/{0:020d}", FILE).buffer[end + 4] ^= 1
        report = await backed_up(disk)
        assert report.end == store.log_end
        assert [each.start for each in report.damaged] == [end]

    simulate(check)


def test_states_are_read_as_of_one_time() -> None:
    """Two files that change together are never of two times."""

    async def check(_: Network) -> None:
        disk = MemoryDisk()
        await opened(disk)

        def change(number: int) -> None:
            save(disk, "a.json", {"n": number})
            save(disk, "b.json", {"n": number})

        async def change_on() -> None:
            for number in range(1, 6):
                save(disk, "a.json", {"n": number})
                await asyncio.sleep(0.015)
                save(disk, "b.json", {"n": number})
                await asyncio.sleep(0.03)

        change(0)
        work = asyncio.ensure_future(change_on())
        await backed_up(disk)
        await work
        folder = f"{BACKUP}/states/5000"
        a, b = (json.loads(disk.read(f"{folder}/{name}.json") or b"") for name in "ab")
        assert a == b

    simulate(check)


def test_an_empty_store_can_be_backed_up_and_goes_on() -> None:
    async def check(_: Network) -> None:
        disk = MemoryDisk()
        store = await opened(disk)
        assert (await backed_up(disk)).end == 0
        append(store, 5)
        assert (await backed_up(disk)).end == store.log_end
        await restored(disk)
        assert bodies(await open_again(disk)) == numbers(5)
        with pytest.raises(StoreError, match="no backup"):
            await check_backup(disk, "/nothing")
        with pytest.raises(StoreError, match="no store"):
            await back_up(disk, "/nothing", BACKUP, SMALL, now_ms=1)

    simulate(check)
