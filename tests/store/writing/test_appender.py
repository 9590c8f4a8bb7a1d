"""Writing messages."""

from __future__ import annotations

import errno
import random
import traceback
from typing import Any

import pytest

from sprocket.base.errors import ClosedError, DiskFull
from sprocket.message.draft_batch import DraftBatch
from sprocket.message.record import decode, parse
from sprocket.store.config import StoreConfig
from sprocket.store.log.drafts import IllegalDraft
from sprocket.store.views.entry import EntryColumns
from sprocket.testing.clock import ManualClock
from sprocket.testing.disk import FaultyDisk, MemoryDisk
from tests.store.making import ROOT, SENDER, SMALL, a_draft, bodies, messages, opened
from tests.support import run


def test_a_message_gets_its_place_in_log_and_queue() -> None:
    async def check() -> None:
        clock = ManualClock(5000)
        store = await opened(MemoryDisk(), clock=clock)
        first = store.append(a_draft(b"one"))
        other = store.append(a_draft(b"two", queue_number=3))
        third = store.append(a_draft(b"three"))
        assert [a.queue_offset for a in (first, other, third)] == [0, 0, 1]
        assert [a.log_offset for a in (first, other, third)] == [0, first.end, other.end]
        assert third.end == store.log_end == third.log_offset + third.record_bytes
        found = decode(store.lookup(third.log_offset), broker_name="b")
        assert (found.body, found.queue_offset, found.stored_ms) == (b"three", 1, 5000)
        assert (found.store_host, found.born_host) == ("127.0.0.1:10911", "10.0.0.7:4000")
        assert found.properties == {"TAGS": "a"}

    run(check())


def test_messages_go_on_over_the_ends_of_files() -> None:
    async def check() -> None:
        store = await opened(MemoryDisk())
        wanted = [b"x" * (n * 37 % 700) for n in range(200)]
        for body in wanted:
            store.append(a_draft(body))
        assert bodies(store) == wanted

    run(check())


def test_bodies_may_be_slices_of_something_larger() -> None:
    async def check() -> None:
        store = await opened(MemoryDisk())
        raw = bytearray(b"__body__")
        store.append(a_draft(memoryview(raw)[2:6]))  # type: ignore[arg-type]
        raw[:] = b"changed!"
        assert bodies(store) == [b"body"]

    run(check())


@pytest.mark.parametrize("sys_flag", [0x4, 0xC])
def test_prepared_and_rolled_back_messages_are_stored_but_in_no_queue(sys_flag: int) -> None:
    async def check() -> None:
        store = await opened(MemoryDisk())
        store.append(a_draft(b"one"))
        hidden = store.append(a_draft(b"half", sys_flag=sys_flag))
        store.append(a_draft(b"two"))
        assert hidden.queue_offset == 0
        assert decode(store.lookup(hidden.log_offset)).body == b"half"
        assert bodies(store) == [b"one", b"two"]

    run(check())


def test_limits_are_exact() -> None:
    async def check() -> None:
        config = StoreConfig(log_file_bytes=1 << 20, queue_file_bytes=160, message_bytes_max=1000)
        store = await opened(MemoryDisk(), config=config)
        store.append(a_draft(bytes(1000), properties=b"p" * 32767))
        for draft in (a_draft(bytes(1001)), a_draft(b"", properties=b"p" * 32768)):
            with pytest.raises(IllegalDraft):
                store.append(draft)
        assert store.max_offset("orders", 0) == 1

    run(check())


def test_a_record_that_no_file_can_hold_is_refused() -> None:
    async def check() -> None:
        store = await opened(MemoryDisk())
        overhead = store.append(a_draft(b"")).record_bytes
        largest = SMALL.log_file_bytes - 8 - overhead
        store.append(a_draft(bytes(largest)))
        with pytest.raises(IllegalDraft, match="a file of the log holds"):
            store.append(a_draft(bytes(largest + 1)))
        assert [len(body) for body in bodies(store)] == [0, largest]

    run(check())


@pytest.mark.parametrize(
    "field", ["flag", "sys_flag", "born_ms", "reconsume_times", "prepared_offset", "tag_code"]
)
@pytest.mark.parametrize("value", [1 << 63, -(1 << 63) - 1])
def test_a_number_that_does_not_fit_is_refused_and_leaves_no_trace(field: str, value: int) -> None:
    async def check() -> None:
        disk = MemoryDisk()
        store = await opened(disk)
        store.append(a_draft(b"before"))
        with pytest.raises(IllegalDraft, match=r"fit|range"):
            store.append(a_draft(b"", **{field: value}))
        with pytest.raises(IllegalDraft, match=field):
            store.append_batch([a_draft(b"good"), a_draft(b"", **{field: value})])
        assert bodies(store) == [b"before"]
        assert bodies(await opened(disk.after_kill())) == [b"before"]
        store.append(a_draft(b"after"))
        assert bodies(store) == [b"before", b"after"]
        assert bodies(await opened(disk.after_kill())) == [b"before", b"after"]

    run(check())


def test_a_batch_is_stored_in_order() -> None:
    async def check() -> None:
        store = await opened(MemoryDisk())
        places = store.append_batch([a_draft(b"%d" % n) for n in range(50)])
        assert [p.queue_offset for p in places] == list(range(50))
        assert bodies(store) == [b"%d" % n for n in range(50)]
        assert store.append_batch([]) == []

    run(check())


@pytest.mark.parametrize(
    "bad",
    [
        a_draft(b"", properties=b"p" * 32768),
        a_draft(b"", properties=b"p" * 65536),
        a_draft(bytes(4096)),
        a_draft(b"", topic="../x"),
        a_draft(b"", queue_number=-1),
    ],
    ids=["properties", "properties that wrap", "record", "topic", "queue"],
)
def test_one_bad_message_refuses_the_whole_batch(bad: object) -> None:
    async def check() -> None:
        store = await opened(MemoryDisk())
        store.append(a_draft(b"before"))
        end = store.log_end
        with pytest.raises(IllegalDraft):
            store.append_batch([a_draft(b"good"), bad])  # type: ignore[list-item]
        assert store.log_end == end
        assert bodies(store) == [b"before"]

    run(check())


@pytest.mark.parametrize("maps", range(3))
def test_a_batch_that_finds_the_disk_full_is_refused_as_a_whole(maps: int) -> None:
    async def check() -> None:
        disk = FaultyDisk()
        store = await opened(disk)
        for _ in range(maps + 5):
            store.append(a_draft(b"before"))
        disk.fail("map", errno.ENOSPC, times=99)
        with pytest.raises(DiskFull):
            store.append_batch([a_draft(b"%d" % n) for n in range(50)])
        disk.fail("map", times=0)
        assert bodies(store) == [b"before"] * (maps + 5)
        store.append_batch([a_draft(b"%d" % n) for n in range(50)])
        assert len(bodies(store)) == maps + 55

    run(check())


def test_a_full_disk_refuses_a_message_and_leaves_no_trace() -> None:
    async def check() -> None:
        disk = FaultyDisk()
        store = await opened(disk)
        stored = 0
        refused = 0
        for n in range(60):
            disk.fail("map", errno.ENOSPC, times=n % 3)
            try:
                store.append(a_draft(b"%d" % n))
                stored += 1
            except DiskFull:
                refused += 1
        assert refused
        assert [m.queue_offset for m in messages(store)] == list(range(stored))

    run(check())


def test_a_refused_message_is_not_kept_by_the_refusal() -> None:
    async def check() -> None:
        store = await opened(MemoryDisk())
        await store.close()

        def refused() -> int:
            with pytest.raises(ClosedError) as seen:
                store.append(a_draft(b"x"))
            return sum(1 for _ in traceback.walk_tb(seen.value.__traceback__))

        assert refused() == refused()

    run(check())


def test_a_closed_store_takes_nothing() -> None:
    async def check() -> None:
        disk = MemoryDisk()
        store = await opened(disk)
        await store.close()
        with pytest.raises(ClosedError):
            store.append(a_draft())
        with pytest.raises(ClosedError):
            store.append_batch([a_draft()])
        assert disk.names(f"{ROOT}/commitlog") == []

    run(check())


def test_what_is_written_is_a_record_for_other_readers() -> None:
    async def check() -> None:
        disk = MemoryDisk()
        store = await opened(disk)
        place = store.append(a_draft(b"abc", topic="t" * 200))
        raw = disk.read(f"{ROOT}/commitlog/{0:020d}") or b""
        assert parse(raw, place.log_offset).topic == "t" * 200
        assert not any(raw[place.end :])

    run(check())


def a_batch(*bodies: bytes, **changes: Any) -> DraftBatch:
    count = len(bodies)
    fields: dict[str, Any] = {
        "topic": "orders", "queue_number": 0, "sys_flag": 0, "born_ms": 1, "born_host": SENDER,
        "flags": list(range(count)), "bodies": bodies,
        "properties": [b"KEYS\x01k%d\x02" % place for place in range(count)],
        "properties_end": b"C\x01c\x02", "tag_codes": [97] * count,
        "keys": [f"k{place}" for place in range(count)], "unique_keys": [b"U"] * count,
    }  # fmt: skip
    return DraftBatch(**(fields | changes))


@pytest.mark.parametrize("seed", range(3))
def test_batches_leave_the_same_files_as_their_messages_one_by_one(seed: int) -> None:
    async def check() -> None:
        chosen = random.Random(seed)
        disks = [MemoryDisk(), MemoryDisk()]
        batched, single = [await opened(disk) for disk in disks]
        for _ in range(30):
            run = [
                a_batch(
                    *(bytes(chosen.randrange(90)) for _ in range(chosen.randrange(1, 9))),
                    queue_number=chosen.randrange(2),
                )
                for _ in range(chosen.randrange(1, 4))
            ]
            found = batched.append_batches(run)
            wanted = [single.append_all(batch.drafts()) for batch in run]
            assert found == [EntryColumns.of(each) for each in wanted]
        for store in (batched, single):
            assert len(store.find("orders", "k0", count_max=99)) > 9
            await store.close()
        paths = [sorted(disk._files) for disk in disks]
        assert paths[0] == paths[1]
        for path in paths[0]:
            if "checkpoint" not in path:
                assert disks[0].read(path) == disks[1].read(path), path

    run(check())


@pytest.mark.parametrize(
    "bad",
    [
        a_batch(b"", properties=[b"p" * 32767]),
        a_batch(b"x", bytes(4096)),
        a_batch(b"", topic="../x"),
        a_batch(b"", b"", flags=[0, 1 << 31]),
        a_batch(b"", tag_codes=[1 << 63]),
    ],
)
def test_a_batch_that_is_refused_is_refused_whole_and_ends_the_run(bad: DraftBatch) -> None:
    async def check() -> None:
        store = await opened(MemoryDisk())
        with pytest.raises(IllegalDraft):
            store.append_batches([bad, a_batch(b"never")])
        assert store.log_end == 0
        assert len(store.append_batches([a_batch(b"1", b"2"), bad, a_batch(b"never")])) == 1
        assert bodies(store) == [b"1", b"2"]
        store.append_batches([a_batch(b"3")])
        assert bodies(store) == [b"1", b"2", b"3"]

    run(check())
