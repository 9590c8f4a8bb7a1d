"""Entries of queues, compared with records while those are read."""

from __future__ import annotations

from sprocket.store.inspection.inspected import InspectedStore
from sprocket.store.inspection.verify_agreed import Agreement
from sprocket.store.views.consume_queue import ENTRY
from sprocket.store.views.entry import Entry
from sprocket.store.views.record_batch import QueueColumns
from sprocket.testing.disk import MemoryDisk
from tests.store.making import ROOT, SMALL, a_draft, opened
from tests.support import run

COUNT = 30
PER_FILE = SMALL.queue_file_bytes // ENTRY.size


def a_store() -> tuple[Agreement, list[Entry], MemoryDisk]:
    """A queue of several files, and what its records say."""
    disk = MemoryDisk()
    entries = []

    async def fill() -> None:
        store = await opened(disk)
        for n in range(COUNT):
            at = store.append(a_draft())
            entries.append(
                Entry("orders", 0, n, int(at.log_offset), at.record_bytes, 97, at.stored_ms, 0)
            )
        await store.close()

    run(fill())
    return Agreement(InspectedStore(disk, ROOT, SMALL)), entries, disk


def columns(entries: list[Entry]) -> QueueColumns:
    return QueueColumns(
        [entry.queue_offset for entry in entries],
        [entry.log_offset for entry in entries],
        [entry.record_bytes for entry in entries],
        [entry.tag_code for entry in entries],
    )


def ends(agreement: Agreement) -> list[int]:
    return [agreement.of("orders", 0).end_of(offset) for offset in range(COUNT + 2)]


def test_entries_agree_over_all_files() -> None:
    agreement, entries, _ = a_store()
    agreement.compare("orders", 0, columns(entries[:5]))
    agreement.compare("orders", 0, columns(entries[5:]))
    assert ends(agreement) == [COUNT] * COUNT + [COUNT, COUNT + 1]


def test_a_wrong_entry_is_not_in_what_agrees() -> None:
    agreement, entries, disk = a_store()
    wrong = PER_FILE + 1
    path = f"{ROOT}/consumequeue/orders/0/{PER_FILE * ENTRY.size:020d}"
    disk.map(path, SMALL.queue_file_bytes).buffer[ENTRY.size + 19] ^= 1
    for entry in entries:
        agreement.compare("orders", 0, columns([entry]))
    assert ends(agreement)[: wrong + 3] == [wrong] * wrong + [wrong, COUNT, COUNT]


def test_a_queue_that_is_not_there_agrees_with_nothing() -> None:
    agreement, entries, _ = a_store()
    agreement.compare("orders", 1, columns(entries))
    assert agreement.of("orders", 1).end_of(0) == 0


def test_records_out_of_order_are_left_to_be_looked_at_one_by_one() -> None:
    agreement, entries, _ = a_store()
    agreement.compare("orders", 0, columns([entries[3], entries[1]]))
    assert agreement.of("orders", 0).end_of(1) == 1
