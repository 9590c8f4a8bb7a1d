"""Topics that keep batches: appends, copies at slaves, checks and repairs of their files."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace

import pytest

from sprocket.message.record import parse
from sprocket.store.inspection.dump import DumpSelection, dump
from sprocket.store.inspection.inspected import InspectedStore
from sprocket.store.inspection.repair import Repair
from sprocket.store.inspection.verify import Verification
from sprocket.store.log.drafts import IllegalDraft
from sprocket.store.store import Store
from sprocket.store.views.batch_unit import UNIT
from sprocket.store.views.tag_codes import TAGS_ONLY
from sprocket.testing.clock import ManualClock
from sprocket.testing.disk import MemoryDisk
from tests.store.batches import CONFIG, TOPIC, disk_with_topic, numbered, put
from tests.store.making import HOST, ROOT, a_draft, opened

FOLDER = f"{ROOT}/batchconsumequeue/{TOPIC}/0"


def test_a_batch_says_how_many_it_holds_and_where_it_begins() -> None:
    async def story() -> None:
        store = await opened(disk_with_topic(), config=CONFIG)
        put(store, b"a")
        appended = put(store, b"b", b"c")
        assert (appended.queue_offset, appended.count) == (1, 2)
        record = parse(store.lookup(appended.log_offset))
        assert record.sys_flag & 0xC0 == 0xC0
        assert bytes(record.properties) == (
            b"UNIQ_KEY\x01k\x02INNER_NUM\x012\x02INNER_BASE\x011\x02"
        )
        assert record.queue_offset == 1

    asyncio.run(story())


def test_another_topic_takes_no_batch_as_one_record() -> None:
    async def story() -> None:
        store = await opened(disk_with_topic(), config=CONFIG)
        with pytest.raises(IllegalDraft, match="keeps no batches"):
            store.batches.append(a_draft(), 2)

    asyncio.run(story())


async def copied(master: Store, disk: MemoryDisk, *, is_known: bool) -> Store:
    """A slave's store with what the master has; the slave may not know the topic yet."""
    slave = await Store.open(
        disk=disk, clock=ManualClock(), root=ROOT, config=CONFIG, store_host=HOST,
        tag_codes=TAGS_ONLY, is_copy=True,
    )  # fmt: skip
    if is_known:
        slave.batches.set_kind(TOPIC, is_batch=True)
    copy = slave.replica.copy()
    at = 0
    while at < master.replica.end:
        data = bytes(master.replica.read(at, 100))
        copy.append(at, data)
        at += len(data)
    return slave


@pytest.mark.parametrize("is_known", [True, False])
def test_a_slave_has_the_same_whether_it_knows_the_topic_or_not(is_known: bool) -> None:
    async def story() -> None:
        master = await opened(disk_with_topic(), config=CONFIG)
        put(master, b"a")
        put(master, b"b")
        put(master, b"c", b"d", b"e")
        put(master, b"f")
        disk = MemoryDisk()
        disk.make_directory(ROOT)
        slave = await copied(master, disk, is_known=is_known)
        assert numbered(slave) == numbered(master)
        await slave.close()
        assert disk.names(f"{ROOT}/consumequeue/{TOPIC}/0") == []
        again = await opened(disk, config=CONFIG)
        assert numbered(again) == numbered(master)

    asyncio.run(story())


def test_queues_of_single_messages_become_batch_queues_when_the_topic_is_known() -> None:
    async def story(*, is_killed: bool) -> None:
        master = await opened(disk_with_topic(), config=CONFIG)
        for body in (b"a", b"b", b"c"):
            put(master, body)
        disk = MemoryDisk()
        disk.make_directory(ROOT)
        slave = await copied(master, disk, is_known=False)
        arrival = slave.arrivals(TOPIC, 0)
        slave.batches.set_kind(TOPIC, is_batch=True)
        assert numbered(slave) == numbered(master)
        assert slave.arrivals(TOPIC, 0) is arrival
        if is_killed:
            disk = disk.after_kill()
        else:
            await slave.close()
            assert disk.names(f"{ROOT}/consumequeue/{TOPIC}/0") == []
        assert numbered(await opened(disk, config=CONFIG)) == numbered(master)

    asyncio.run(story(is_killed=False))
    asyncio.run(story(is_killed=True))


async def stopped() -> MemoryDisk:
    disk = disk_with_topic()
    store = await opened(disk, config=CONFIG)
    for number in range(6):
        put(store, b"%d" % number)
        put(store, b"x", b"y", b"z")
    await store.close()
    return disk


def found(disk: MemoryDisk) -> list[str]:
    check = Verification(InspectedStore(disk, ROOT, CONFIG))
    texts = [str(each) for each in check.findings() if each.is_fault]
    if not texts:
        assert (check.records, check.entries) == (12, 12)
    return texts


def test_a_sound_store_is_found_sound_and_dumped() -> None:
    async def story() -> None:
        disk = await stopped()
        assert found(disk) == []
        store = InspectedStore(disk, ROOT, CONFIG)
        chosen = DumpSelection(TOPIC, 0, begin=6, end=10)
        assert [each.queue_offset for each in dump(store, chosen)] == [5, 8, 9]  # type: ignore[union-attr]

    asyncio.run(story())


@pytest.mark.parametrize(
    ("field", "value", "fault"),
    [(0, 7, "no record begins"), (2, 5, "tag code"), (4, 9, "has its message"),
     (5, 2, "has 2 messages, its record 3")],
)  # fmt: skip
def test_a_wrong_unit_is_found(field: int, value: int, fault: str) -> None:
    async def story() -> None:
        disk = await stopped()
        file = disk.map(f"{FOLDER}/{0:020d}", 4 * 46)
        fields = list(UNIT.unpack(file[46:92]))
        fields[field] = value
        file.buffer[46:92] = UNIT.pack(*fields)
        assert any(fault in text for text in found(disk)), found(disk)
        again = await opened(disk, config=CONFIG)
        assert again.max_offset(TOPIC, 0) == 24

    asyncio.run(story())


def test_views_that_are_taken_away_are_built_again() -> None:
    async def story() -> None:
        disk = await stopped()
        before = numbered(await opened(disk.after_kill(), config=CONFIG))
        for step in Repair(InspectedStore(disk, ROOT, CONFIG), 0).rebuild_views():
            await step.do()
        assert disk.names(f"{ROOT}/batchconsumequeue") == []
        assert numbered(await opened(disk, config=CONFIG)) == before

    asyncio.run(story())


def test_messages_around_what_is_damaged_keep_their_offsets() -> None:
    async def story() -> None:
        disk = await stopped()
        config = replace(CONFIG)
        store = InspectedStore(disk, ROOT, config)
        record = next(each for each in dump(store, DumpSelection(TOPIC, 0, begin=5, end=8)))
        at = record.log_offset  # type: ignore[union-attr]
        file = disk.map(f"{ROOT}/commitlog/{0:020d}", config.log_file_bytes)
        assert at < config.log_file_bytes
        file.buffer[at + 4 : at + 8] = bytes(4)
        for step in Repair(InspectedStore(disk, ROOT, config), 0).skip_damaged():
            await step.do()
        again = await opened(disk, config=config)
        offsets = [offset for offset, _ in numbered(again)]
        assert offsets == [*range(5), *range(8, 24)]

    asyncio.run(story())


def test_a_batch_has_as_many_messages_as_a_unit_can_say() -> None:
    async def story() -> None:
        store = await opened(disk_with_topic(), config=CONFIG)
        for count in (0, 32_768):
            with pytest.raises(IllegalDraft, match="1 to 32767"):
                store.batches.append(a_draft(topic=TOPIC), count)
        store.batches.append(a_draft(topic=TOPIC), 32_767)
        assert store.max_offset(TOPIC, 0) == 32_767

    asyncio.run(story())


@pytest.mark.parametrize("text", [b"99999", b"0", b"-1", b"x", b"40000", b""])
def test_a_record_that_says_a_wrong_number_counts_as_one_message(text: bytes) -> None:
    async def story() -> None:
        disk = disk_with_topic()
        store = await opened(disk, config=CONFIG)
        draft = a_draft(
            topic=TOPIC, sys_flag=0xC0, properties=b"INNER_NUM\x01" + text + b"\x02TAGS\x01a\x02"
        )
        store.append(draft)
        put(store, b"b")
        again = await opened(disk.after_kill(), config=CONFIG)
        assert again.max_offset(TOPIC, 0) == 2

    asyncio.run(story())


def renamed(disk: MemoryDisk, kind: str) -> None:
    """Has the broker's file say that the topic is of a kind."""
    table = {"topicConfigTable": {TOPIC: {"attributes": {"queue.type": kind}}}}
    disk.replace(f"{ROOT}/config/topics.json", json.dumps(table).encode(), backup=False)


@pytest.mark.parametrize("leftover", ["files", "folders"])
def test_what_is_left_of_a_deleted_topic_does_not_make_a_new_one_a_batch_topic(
    leftover: str,
) -> None:
    async def story() -> None:
        disk = disk_with_topic()
        store = await opened(disk, config=CONFIG)
        put(store, b"a", b"b")
        await store.close()
        stale = disk.read(f"{FOLDER}/{0:020d}") or b""
        store = await opened(disk, config=CONFIG)
        store.delete_topic(TOPIC)
        store.batches.set_kind(TOPIC, is_batch=False)
        renamed(disk, "SimpleCQ")
        put(store, b"c")
        await store.close()
        if leftover == "files":
            disk.replace(f"{FOLDER}/{0:020d}", stale, backup=False)
        again = await opened(disk, config=CONFIG)
        assert numbered(again) == [(0, b"c")]
        put(again, b"d")
        assert again.batches.has(TOPIC) is False
        await again.close()
        assert disk.names(f"{ROOT}/consumequeue/{TOPIC}/0")
        assert disk.names(FOLDER) == []

    asyncio.run(story())


def test_a_topic_without_a_file_of_topics_is_what_its_folders_show() -> None:
    async def story() -> None:
        disk = await stopped()
        disk.remove(f"{ROOT}/config/topics.json")
        again = await opened(disk, config=CONFIG)
        assert again.batches.has(TOPIC)
        assert len(numbered(again)) == 24

    asyncio.run(story())
