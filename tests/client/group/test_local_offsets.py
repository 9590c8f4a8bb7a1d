from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from sprocket.base.errors import DirectoryInUse, StoreError, UsageError
from sprocket.client.group.local_offsets import LocalOffsets, decode, encode
from sprocket.message.offsets import QueueOffset
from sprocket.message.queue import QueueId
from sprocket.runtime.disk import SystemDisk
from sprocket.testing.disk import FaultyDisk, MemoryDisk

GOLDEN = Path(__file__).parents[2] / "golden" / "stores" / "broadcast-offsets.json"
FILE = "/home/10.0.0.9@DEFAULT/readers/offsets.json"
FIRST, SECOND = QueueId("news", "broker-a", 0), QueueId("news", "broker-b", 3)


def opened(disk: MemoryDisk) -> LocalOffsets:
    return LocalOffsets.open(disk, "/home", client_id="10.0.0.9@DEFAULT", group="readers")


def committed(offsets: LocalOffsets, queue: QueueId, offset: int) -> None:
    asyncio.run(offsets.commit(queue, offset))


def saved(*positions: tuple[QueueId, int]) -> MemoryDisk:
    """A disk to which those positions were saved one after the other."""
    disk = MemoryDisk()
    offsets = opened(disk)
    for queue, offset in positions:
        committed(offsets, queue, offset)
        offsets.save()
    offsets.close()
    return disk


def test_a_file_of_a_java_client_is_read_and_written_back_byte_for_byte() -> None:
    raw = GOLDEN.read_bytes()
    table = decode(raw)
    assert table == {QueueId("StBroad", "broker-a", 0): 5, QueueId("StBroad", "broker-a", 1): 5}
    assert encode(table) == raw


def test_text_that_must_be_escaped_survives() -> None:
    table = {QueueId('%a"\\b', "brökér\n", 2**31 - 1): QueueOffset(2**63 - 1)}
    assert decode(encode(table)) == table


def test_positions_come_back_after_the_client_was_closed() -> None:
    offsets = opened(saved((FIRST, 5), (SECOND, 7)))
    assert offsets.positions == {FIRST: 5, SECOND: 7}
    assert asyncio.run(offsets.committed(SECOND)) == 7
    assert asyncio.run(offsets.committed(QueueId("other", "broker-a", 0))) is None


def test_a_client_that_is_killed_loses_what_was_not_saved_and_nothing_else() -> None:
    disk = MemoryDisk()
    offsets = opened(disk)
    committed(offsets, FIRST, 5)
    offsets.save()
    committed(offsets, FIRST, 9)
    assert opened(disk.after_kill()).positions == {FIRST: 5}


DAMAGES: dict[str, Callable[[bytes], bytes | None]] = {
    "missing": lambda raw: None,
    "empty": lambda raw: b"",
    "cut": lambda raw: raw[: len(raw) // 2],
    "zeros": lambda raw: bytes(len(raw)),
    "no-table": lambda raw: b"{}",
    "no-object": lambda raw: b"[1]",
    "no-queue": lambda raw: b'{"offsetTable":{"news":5}}',
    "no-topic": lambda raw: raw.replace(b"topic", b"tepic"),
    "no-number": lambda raw: raw.replace(b":5", b':"five"'),
    "below-zero": lambda raw: raw.replace(b":5", b":-5"),
}


def damaged(disk: MemoryDisk, path: str, damage: str) -> None:
    raw = disk.read(FILE)
    assert raw is not None
    content = DAMAGES[damage](raw)
    disk.remove(path)
    if content is not None:
        disk.replace(path, content, backup=False)


@pytest.mark.parametrize("damage", sorted(DAMAGES))
def test_a_damaged_file_is_made_up_for_by_its_backup(damage: str) -> None:
    disk = saved((FIRST, 4), (FIRST, 5))
    damaged(disk, FILE, damage)
    offsets = opened(disk)
    assert offsets.positions == {FIRST: 4}
    offsets.close()
    assert opened(disk).positions == {FIRST: 4}


@pytest.mark.parametrize("damage", sorted(set(DAMAGES) - {"missing", "empty"}))
def test_two_damaged_files_fail_the_start_and_stay_as_they_are(damage: str) -> None:
    disk = saved((FIRST, 4), (FIRST, 5))
    damaged(disk, f"{FILE}.bak", damage)
    damaged(disk, FILE, damage)
    left = disk.read(FILE), disk.read(f"{FILE}.bak")
    with pytest.raises(StoreError, match=r"offsets\.json is broken .* remove both to begin anew"):
        opened(disk)
    assert (disk.read(FILE), disk.read(f"{FILE}.bak")) == left
    disk.remove(FILE)
    disk.remove(f"{FILE}.bak")
    assert opened(disk).positions == {}


def test_a_good_backup_is_not_replaced_by_a_broken_file() -> None:
    disk = saved((FIRST, 4), (FIRST, 5))
    damaged(disk, FILE, "cut")
    opened(disk).close()
    assert disk.read(f"{FILE}.bak") == encode({FIRST: QueueOffset(4)})


def test_what_the_disk_refused_is_written_the_next_time() -> None:
    disk = FaultyDisk("readers")
    offsets = opened(disk)
    committed(offsets, FIRST, 5)
    disk.fail("replace")
    offsets.save()
    assert disk.read(FILE) is None
    offsets.save()
    assert disk.read(FILE) == encode({FIRST: QueueOffset(5)})


def test_an_unchanged_table_is_not_written_again() -> None:
    disk = saved((FIRST, 5))
    disk.remove(FILE)
    offsets = opened(saved((FIRST, 5)))
    committed(offsets, FIRST, 5)
    offsets.save()
    assert disk.read(f"{FILE}.bak") is None


def test_two_clients_of_one_id_do_not_share_a_folder() -> None:
    disk = MemoryDisk()
    first = opened(disk)
    with pytest.raises(DirectoryInUse, match="need an `instance` each"):
        opened(disk)
    first.close()
    opened(disk).close()


def test_a_client_id_cannot_lead_out_of_the_folder() -> None:
    with pytest.raises(UsageError, match="cannot be the name of a folder"):
        LocalOffsets.open(MemoryDisk(), "/home", client_id="10.0.0.9@../../etc", group="readers")


def test_it_works_on_a_real_disk(tmp_path: Path) -> None:
    folder = tmp_path / "10.0.0.9@DEFAULT" / "readers"
    folder.mkdir(parents=True)
    shutil.copy(GOLDEN, folder / "offsets.json")
    offsets = LocalOffsets.open(
        SystemDisk(), str(tmp_path), client_id="10.0.0.9@DEFAULT", group="readers"
    )
    committed(offsets, QueueId("StBroad", "broker-a", 1), 6)
    offsets.close()
    assert (folder / "offsets.json.bak").read_bytes() == GOLDEN.read_bytes()
    table = decode((folder / "offsets.json").read_bytes())
    assert table[QueueId("StBroad", "broker-a", 1)] == 6
