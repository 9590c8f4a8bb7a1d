"""One file of the key index."""

from __future__ import annotations

import struct

from sprocket.store.views.index_file import IndexFile, file_bytes
from sprocket.testing.disk import MemoryDisk

SLOTS, ENTRIES = 4, 10


def a_file(disk: MemoryDisk) -> IndexFile:
    disk.make_directory("/index")
    return IndexFile(disk.map("/index/1", file_bytes(SLOTS, ENTRIES)), SLOTS, ENTRIES)


def put(file: IndexFile, hashes: list[int], places: list[tuple[int, int]]) -> int:
    return file.put(hashes, [at for at, _ in places], [ms for _, ms in places])


def found(file: IndexFile, hashed: int) -> list[tuple[int, int]]:
    return [pair for pair in file.walk(hashed) if pair[0] >= 0]


def test_sizes_are_those_of_java() -> None:
    assert file_bytes(5_000_000, 20_000_000) == 420_000_040
    assert file_bytes(100, 400) == 8440


def test_entries_are_walked_from_the_newest_on() -> None:
    file = a_file(MemoryDisk())
    assert put(file, [7, 3, 7], [(100, 5000), (200, 6500), (300, 9999)]) == 3
    assert found(file, 7) == [(300, 9000), (100, 5000)]
    assert found(file, 3) == [(200, 6000)]
    assert found(file, 11) == []


def test_others_in_the_same_slot_can_be_counted() -> None:
    file = a_file(MemoryDisk())
    put(file, [3, 7, 3], [(100, 0), (200, 0), (300, 0)])
    assert [offset for offset, _ in file.walk(3)] == [300, -1, 100]


def test_a_file_is_the_same_after_a_restart() -> None:
    disk = MemoryDisk()
    put(a_file(disk), [7, 3], [(100, 5000), (200, 6500)])
    again = a_file(disk)
    assert (again.count, again.begin_ms, again.end_ms) == (3, 5000, 6500)
    assert (again.begin_offset, again.end_offset) == (100, 200)
    put(again, [7], [(300, 7000)])
    assert [offset for offset, _ in found(again, 7)] == [300, 100]


def test_bytes_are_those_of_java() -> None:
    disk = MemoryDisk()
    put(a_file(disk), [7, 3], [(100, 5000), (200, 6500)])
    raw = disk.read("/index/1") or b""
    assert struct.unpack_from(">qqqqii", raw) == (5000, 6500, 100, 200, 1, 3)
    assert struct.unpack_from(">iiii", raw, 40) == (0, 0, 0, 2)
    assert struct.unpack_from(">iqii", raw, 56 + 20) == (7, 100, 0, 0)
    assert struct.unpack_from(">iqii", raw, 56 + 40) == (3, 200, 1, 1)


def test_a_full_file_takes_as_much_as_fits() -> None:
    file = a_file(MemoryDisk())
    places = [(n * 100, 0) for n in range(20)]
    assert put(file, list(range(20)), places) == 9
    assert file.is_full
    assert file.end_offset == 800
    assert put(file, [1], [(1, 0)]) == 0


def test_times_before_the_first_count_as_its_own() -> None:
    file = a_file(MemoryDisk())
    put(file, [1, 1], [(100, 50_000), (200, 10_000)])
    assert found(file, 1) == [(200, 50_000), (100, 50_000)]


def test_slots_that_lead_nowhere_lead_to_no_entry() -> None:
    disk = MemoryDisk()
    file = a_file(disk)
    raw = disk.map("/index/1", file_bytes(SLOTS, ENTRIES)).buffer
    struct.pack_into(">iiii", raw, 40, 3, 2, -5, 99)
    put(file, [0, 1, 2, 3, 2], [(n * 100, 0) for n in range(1, 6)])
    assert [struct.unpack_from(">iqii", raw, 56 + n * 20)[3] for n in range(1, 6)] == [0] * 4 + [3]
    assert struct.unpack_from(">i", raw, 32) == (4,)


def test_a_damaged_file_ends_the_walk_and_nothing_else() -> None:
    disk = MemoryDisk()
    file = a_file(disk)
    put(file, [3] * 5, [(n * 100, 0) for n in range(5)])
    raw = disk.map("/index/1", file_bytes(SLOTS, ENTRIES)).buffer
    entry_at = 56 + 3 * 20
    for before in (3, 4, 99, -1, 0):
        struct.pack_into(">i", raw, entry_at + 16, before)
        assert len(list(file.walk(3))) == 3
    for slot in (-1, 6, 2**31 - 1):
        struct.pack_into(">i", raw, 40 + 3 * 4, slot)
        assert list(file.walk(3)) == []
    struct.pack_into(">i", raw, 36, 2**31 - 1)
    assert a_file(disk).count == ENTRIES


def filled(disk: MemoryDisk, count: int) -> IndexFile:
    file = a_file(disk)
    put(file, [n % 7 for n in range(1, count + 1)], [(n * 100, 1000) for n in range(1, count + 1)])
    return file


def offsets(file: IndexFile) -> list[int]:
    return sorted(offset for hashed in range(7) for offset, _ in found(file, hashed))


def test_a_file_whose_process_died_stays_as_it_is() -> None:
    file = filled(MemoryDisk(), 8)
    assert file.repair(300)
    assert offsets(file) == [n * 100 for n in range(1, 9)]


def test_slots_that_lead_to_lost_entries_lead_to_whole_ones_again() -> None:
    for lost in ({5, 6, 7, 8}, {5}, {8}, {6, 7}):
        disk = MemoryDisk()
        filled(disk, 8)
        raw = disk.map("/index/1", file_bytes(SLOTS, ENTRIES)).buffer
        for number in lost:
            raw[56 + number * 20 : 76 + number * 20] = bytes(20)
        file = a_file(disk)
        assert file.repair(500)
        assert offsets(file) == [100, 200, 300, 400]
        assert (file.count, file.end_offset) == (5, 400)
        put(file, [5, 6], [(500, 2000), (600, 2000)])
        assert offsets(a_file(disk)) == [100, 200, 300, 400, 500, 600]


def test_a_header_that_never_reached_the_disk_is_made_up_for() -> None:
    disk = MemoryDisk()
    filled(disk, 8)
    raw = disk.map("/index/1", file_bytes(SLOTS, ENTRIES)).buffer
    struct.pack_into(">qi", raw, 24, 300, 0)
    struct.pack_into(">i", raw, 36, 4)
    file = a_file(disk)
    assert file.repair(400)
    assert offsets(file) == [100, 200, 300]


def test_a_file_without_a_whole_entry_is_worth_nothing() -> None:
    disk = MemoryDisk()
    assert not a_file(disk).repair(100)
    filled(disk, 3)
    raw = disk.map("/index/1", file_bytes(SLOTS, ENTRIES)).buffer
    raw[76:96] = bytes(20)
    assert not a_file(disk).repair(100)
