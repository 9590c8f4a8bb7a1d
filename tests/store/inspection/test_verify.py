"""Each kind of damage: what a look at the store tells, and what a start makes of it."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

import pytest

from sprocket.base.errors import DamagedLog, StoreError
from sprocket.store.inspection.inspected import Finding, InspectedStore
from sprocket.store.inspection.verify import Verification
from sprocket.store.store import Store
from sprocket.testing.clock import ManualClock
from sprocket.testing.disk import MemoryDisk
from tests.store.making import ROOT, SMALL, a_draft, messages, opened
from tests.support import run

FILE = SMALL.log_file_bytes
LOG = f"{ROOT}/commitlog"
QUEUE = f"{ROOT}/consumequeue/orders/0"
COUNT = 60


async def filled(disk: MemoryDisk) -> Store:
    store = await opened(disk, clock=ManualClock(1000))
    for n in range(COUNT):
        body = b"%d" % n
        word = f"k{n}"
        properties = f"TAGS\x01a\x02KEYS\x01{word}\x02".encode()
        store.append(a_draft(body, properties=properties, keys=word))
        store.append(a_draft(body, topic="other", queue_number=n % 2))
    disk.make_directory(f"{ROOT}/config")
    disk.replace(f"{ROOT}/config/topics.json", b'{"topicConfigTable":{}}')
    disk.replace(f"{ROOT}/config/topics.json", b'{"topicConfigTable":{"a":1}}')
    return store


async def stopped(disk: MemoryDisk) -> int:
    store = await filled(disk)
    await store.close()
    return int(store.log_end)


async def killed(disk: MemoryDisk) -> int:
    store = await filled(disk)
    await store.sync()
    await store._flush.sync_views(is_thorough=True)
    store._flush._ends.save(store._flush._ends.note(store.log_end))
    return int(store.log_end)


def look(disk: MemoryDisk) -> tuple[list[Finding], Verification]:
    before = {path: disk.read(path) for path in disk._files}
    verification = Verification(InspectedStore(disk, ROOT, SMALL))
    passed: list[int] = []
    found = list(verification.findings(passed.append))
    assert {path: disk.read(path) for path in disk._files} == before, "it changed something"
    assert sum(passed) == verification.total_bytes or found
    return found, verification


def at(disk: MemoryDisk, path: str) -> memoryview:
    return disk.map(path, disk.size(path) or 0).buffer


def log_path(log_offset: int) -> str:
    return f"{LOG}/{log_offset - log_offset % FILE:020d}"


def flip(disk: MemoryDisk, log_offset: int) -> None:
    at(disk, log_path(log_offset))[log_offset % FILE] ^= 1


@pytest.mark.parametrize("made", [stopped, killed])
def test_a_whole_store_has_no_faults(made: Callable[[MemoryDisk], object]) -> None:
    disk = MemoryDisk()
    run(made(disk))  # type: ignore[arg-type]
    found, verification = look(disk.after_kill())
    assert found == []
    assert (verification.records, verification.entries) == (2 * COUNT, 2 * COUNT)
    assert verification.index_entries == COUNT


def test_a_store_that_somebody_has_open_is_looked_at_up_to_what_is_on_the_disk() -> None:
    async def check() -> None:
        disk = MemoryDisk()
        store = await filled(disk)
        await store._flush.finish()
        end = store.log_end
        store.append(a_draft(b"later"))
        found, verification = look(disk)
        assert [finding.text for finding in found] == [
            f"a process has it open: checked up to log offset {end}"
        ]
        assert not found[0].is_fault
        assert verification.log_end == end

    run(check())


class Case(NamedTuple):
    """One kind of damage.

    Attributes:
        do: does it, given the disk and the log's end.
        told: what a look tells of it: kind, end of the file's path, words.
        start: how many of the first messages of the queue are there after a start, or what is
            raised.
    """

    do: Callable[[MemoryDisk, int], None]
    told: tuple[str, str, str]
    start: int | type[Exception] = COUNT


def cut_files(disk: MemoryDisk, folder: str, size: int) -> None:
    path = f"{folder}/{disk.names(folder)[-1]}"
    disk.replace(path, (disk.read(path) or b"")[:size], backup=False)


def overwrite(path: str, place: int, content: bytes) -> Callable[[MemoryDisk, int], None]:
    def do(disk: MemoryDisk, end: int) -> None:
        at(disk, path)[place : place + len(content)] = content

    return do


def replaced(path: str, content: bytes) -> Callable[[MemoryDisk, int], None]:
    return lambda disk, end: disk.replace(path, content, backup=False)


def remove_all(folder: str) -> Callable[[MemoryDisk, int], None]:
    def do(disk: MemoryDisk, end: int) -> None:
        for name in disk.names(folder):
            disk.remove(f"{folder}/{name}")

    return do


FIRST = f"{0:020d}"
INDEX_FILE_BYTES = 40 + 8 * 4 + 32 * 20


def first_index(disk: MemoryDisk) -> str:
    return f"{ROOT}/index/{disk.names(f'{ROOT}/index')[0]}"


def index_astray(disk: MemoryDisk, end: int) -> None:
    at(disk, first_index(disk))[72 + 20 + 16 : 72 + 20 + 20] = (31).to_bytes(4, "big")


def index_slot_astray(disk: MemoryDisk, end: int) -> None:
    at(disk, first_index(disk))[40:44] = (1 << 30).to_bytes(4, "big")


def index_count(disk: MemoryDisk, end: int) -> None:
    at(disk, first_index(disk))[36:40] = (99).to_bytes(4, "big")


def short_index(disk: MemoryDisk, end: int) -> None:
    cut_files(disk, f"{ROOT}/index", 100)


CASES = {
    "the body of a record": Case(
        lambda disk, end: flip(disk, 88), ("log", FIRST, "byte 0: its body does not agree")
    ),
    "zeros in the middle": Case(
        overwrite(f"{LOG}/{FIRST}", 500, bytes(300)), ("log", FIRST, "bytes are no messages")
    ),
    "a log file that is missing": Case(
        lambda disk, end: disk.remove(f"{LOG}/{2048:020d}"),
        ("log", f"{2048:020d}", "byte 0: the file is missing; 2048 bytes"),
        DamagedLog,
    ),
    "a log file that is empty": Case(
        replaced(f"{LOG}/{2048:020d}", b""), ("log", f"{2048:020d}", "it has 0 bytes"), DamagedLog
    ),
    "a log file that is short": Case(
        replaced(f"{LOG}/{2048:020d}", b"x" * 100),
        ("log", f"{2048:020d}", "it has 100 bytes, the files of this log have 2048"),
        StoreError,
    ),
    "no mark at the end of a log file": Case(
        lambda disk, end: at(disk, f"{LOG}/{FIRST}").__setitem__(
            slice(1900, 2048), bytes(148)
        ),
        ("log", FIRST, "bytes are no messages"),
    ),
    "noise behind the end": Case(
        lambda disk, end: at(disk, log_path(end)).__setitem__(
            slice(end % FILE + 9, end % FILE + 20), b"x" * 11
        ),
        ("log", "", "the log ends here, and 20 bytes behind it are no message"),
    ),
    "a queue file that is missing": Case(
        lambda disk, end: disk.remove(f"{QUEUE}/{160:020d}"),
        ("queue", f"{320:020d}", f"the file {160:020d} before it is missing"),
    ),
    "a queue file that is short": Case(
        replaced(f"{QUEUE}/{160:020d}", b"x" * 20),
        ("queue", f"{160:020d}", "it has 20 bytes, the others of this queue have 160"),
    ),
    "all queue files missing": Case(
        remove_all(QUEUE), ("queue", "orders/0", "it ends at 0, but the log has its message 59")
    ),
    "the last queue file missing": Case(
        lambda disk, end: disk.remove(f"{QUEUE}/{disk.names(QUEUE)[-1]}"),
        ("queue", "orders/0", f"it ends at 56, but the log has its message {COUNT - 1}"),
    ),
    "an entry of another message": Case(
        overwrite(f"{QUEUE}/{FIRST}", 20, bytes(8)),
        ("queue", FIRST, "byte 20: entry 1 leads to log offset 0, where orders 0 has its"),
    ),
    "an entry that leads nowhere": Case(
        overwrite(f"{QUEUE}/{FIRST}", 20, (7).to_bytes(8, "big")),
        ("queue", FIRST, "byte 20: entry 1 leads to log offset 7, where no record begins"),
    ),
    "an entry of another tag": Case(
        overwrite(f"{QUEUE}/{FIRST}", 12, (98).to_bytes(8, "big")),
        ("queue", FIRST, "byte 0: entry 0 has the tag code 98, its message has 97"),
    ),
    "entries in the middle are empty": Case(
        overwrite(f"{QUEUE}/{FIRST}", 100, bytes(60)),
        ("queue", f"{160:020d}", "entries before it are missing"),
    ),
    "an entry behind the end of the log": Case(
        overwrite(f"{QUEUE}/{FIRST}", 20, (1 << 40).to_bytes(8, "big")),
        ("queue", FIRST, "behind the end of the log"),
    ),
    "an index file that is short": Case(short_index, ("index", "", "it has 100 bytes")),
    "a wrong number of index entries": Case(index_count, ("index", "", "its header counts 99")),
    "index entries that lead astray": Case(index_astray, ("index", "", "1 entries do not lead")),
    "index slots that lead astray": Case(index_slot_astray, ("index", "", "1 slots lead nowhere")),
    "a short checkpoint": Case(
        replaced(f"{ROOT}/checkpoint", b"x"), ("checkpoint", "", "it has 1 bytes, not 4096")
    ),
    "an empty checkpoint": Case(
        replaced(f"{ROOT}/checkpoint", b""), ("checkpoint", "", "it has 0 bytes, not 4096")
    ),
    "a checkpoint of zeros": Case(
        replaced(f"{ROOT}/checkpoint", bytes(4096)), ("checkpoint", "", "no fields of ours")
    ),
    "a checkpoint of noise": Case(
        replaced(f"{ROOT}/checkpoint", b"\x7f" * 4096), ("checkpoint", "", "no fields of ours")
    ),
    "no checkpoint": Case(
        lambda disk, end: disk.remove(f"{ROOT}/checkpoint"), ("checkpoint", "", "it is missing")
    ),
    "an empty state file": Case(
        replaced(f"{ROOT}/config/topics.json", b""), ("state", "topics.json", "it is empty")
    ),
    "a state file of zeros": Case(
        replaced(f"{ROOT}/config/topics.json", bytes(9)), ("state", "topics.json", "it is broken")
    ),
    "half a state file": Case(
        replaced(f"{ROOT}/config/topics.json", b'{"topicCo'),
        ("state", "topics.json", "it is broken"),
    ),
    "a broken backup": Case(
        replaced(f"{ROOT}/config/topics.json.bak", b"{"), ("state", ".bak", "it is broken")
    ),
}  # fmt: skip

#: Only a look through all tells of these: a start does not read what was on the disk in order.
UNSEEN_BY_A_START = {
    "the body of a record", "zeros in the middle", "no mark at the end of a log file",
    "an entry of another message", "an entry that leads nowhere", "an entry of another tag",
    "entries in the middle are empty",
    "an entry behind the end of the log",
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_a_look_tells_what_is_wrong_and_where(name: str) -> None:
    case = CASES[name]
    disk = MemoryDisk()
    end = run(stopped(disk))
    case.do(disk, end)
    found, _ = look(disk)
    kind, path, words = case.told
    assert any(
        f.what == kind and f.path.endswith(path) and re.search(re.escape(words), str(f))
        for f in found
    ), [str(f) for f in found]


@pytest.mark.parametrize("name", sorted(set(CASES) - UNSEEN_BY_A_START))
@pytest.mark.parametrize("stop", [False, True], ids=["killed", "stopped"])
def test_a_start_mends_it_or_refuses(name: str, stop: bool) -> None:
    async def check() -> None:
        case = CASES[name]
        disk = MemoryDisk()
        end = await (stopped(disk) if stop else killed(disk))
        case.do(disk, end)
        disk = disk.after_kill()
        if not isinstance(case.start, int):
            with pytest.raises(case.start):
                await opened(disk)
            return
        store = await opened(disk)
        assert [m.body for m in messages(store)] == [b"%d" % n for n in range(case.start)]
        for n in range(2):
            assert len(messages(store, "other", n)) == COUNT // 2
        store.append(a_draft(b"next"))
        await store.close()
        faults = [f for f in look(disk)[0] if f.is_fault and f.what not in ("state", "index")]
        assert faults == []

    run(check())


def test_the_state_before_is_told_to_be_whole_or_not() -> None:
    disk = MemoryDisk()
    run(stopped(disk))
    assert look(disk)[0] == []


def test_a_folder_without_a_store_is_refused() -> None:
    with pytest.raises(StoreError, match="there is no store in /nowhere"):
        InspectedStore(MemoryDisk(), "/nowhere", SMALL)
    disk = MemoryDisk()
    disk.make_directory("/nowhere")
    disk.replace("/nowhere/letter.txt", b"not a store's")
    with pytest.raises(StoreError, match="there is no store in /nowhere"):
        InspectedStore(disk, "/nowhere", SMALL)


def test_many_wrong_entries_are_counted_and_not_all_told() -> None:
    disk = MemoryDisk()
    run(stopped(disk))
    for name in disk.names(QUEUE):
        buffer = at(disk, f"{QUEUE}/{name}")
        for place in range(0, 160, 20):
            if any(buffer[place : place + 20]):
                buffer[place + 19] ^= 1
    found, _ = look(disk)
    assert len(found) == 21
    assert found[-1].text == "40 more entries of this queue are wrong"


@pytest.mark.parametrize("is_made_again", [False, True])
def test_the_folders_of_a_deleted_topic_are_no_fault(is_made_again: bool) -> None:
    async def check() -> None:
        disk = MemoryDisk()
        store = await filled(disk)
        store.delete_topic("other")
        if is_made_again:
            store.append(a_draft(b"new", topic="other"))
        await store.close()
        assert disk.names(f"{ROOT}/consumequeue/other")
        found, _ = look(disk)
        assert not [each for each in found if each.is_fault]

    run(check())
