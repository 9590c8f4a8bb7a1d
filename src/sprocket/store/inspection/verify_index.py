"""Checks whether the files of the key index are consistent."""

from __future__ import annotations

import sys
from array import array
from collections.abc import Iterator
from operator import lt

from sprocket.base.ports import FileBytes
from sprocket.store.inspection.inspected import Finding, InspectedStore
from sprocket.store.views.index_file import ENTRY, HEADER, SLOT, file_bytes

#: This many entries are checked together.
_STEP = 8192


def verify_index(store: InspectedStore, log_end: int) -> Iterator[Finding | int]:
    """Findings, and between them the numbers of entries that were checked.

    Args:
        log_end: log offset after the last record.
    """
    folder = f"{store.root}/index"
    slots, entries = store.config.index_slots, store.config.index_entries
    size = file_bytes(slots, entries)
    for name in store.disk.names(folder):
        path = f"{folder}/{name}"
        found = store.disk.size(path) or 0
        if not name.isdigit():
            continue
        if found != size:
            text = f"it has {found} bytes, by the settings {size}: not used, and not checked"
            yield Finding("index", path, 0, text, is_fault=False)
            continue
        yield from _file(store, path, (slots, entries), log_end)


# An index file of production has 20 million entries, and most are sound. So each step compares the
# least and greatest values of a stretch of entries first, and counts one by one only where these
# show a fault. What a start after a crash repairs by itself is no fault while the store is live.
def _file(
    store: InspectedStore, path: str, sizes: tuple[int, int], log_end: int
) -> Iterator[Finding | int]:
    slots, entries = sizes
    file = store.disk.peek(path)
    begin_ms, end_ms, begin_offset, end_offset, _, count = HEADER.unpack(file[: HEADER.size])
    if not 0 <= count <= entries:
        yield Finding("index", path, 36, f"its header counts {count} entries, {entries} fit")
        return
    if count > 1 and (begin_ms > end_ms or begin_offset > end_offset):
        text = "its first record comes after its last one"
        yield Finding("index", path, 0, text, is_fault=False)
    entries_at = HEADER.size + slots * SLOT.size
    lost = [] if store.is_live else _lost_slots(bytes(file[HEADER.size : entries_at]), count)
    if lost:
        text = f"{len(lost)} slots lead nowhere; a start after a crash repairs that"
        at = HEADER.size + lost[0] * SLOT.size
        yield Finding("index", path, at, text, is_fault=store.was_stopped)
    astray, ahead = _wrong_entries(file, entries_at, count, log_end)
    if astray:
        text = f"{astray} entries do not lead to earlier ones, which are not found by key"
        yield Finding("index", path, entries_at, text)
    if ahead and store.was_stopped:
        text = f"{ahead} entries lead behind the end of the log, and are ignored"
        yield Finding("index", path, entries_at, text, is_fault=False)
    yield max(count - 1, 0)


def _lost_slots(raw: bytes, count: int) -> list[int]:
    """The slots that lead to no entry of a file with so many."""
    heads = array("i", raw)
    if sys.byteorder == "little":
        heads.byteswap()
    if min(heads) >= 0 and max(heads) < max(count, 1):
        return []
    return [slot for slot, number in enumerate(heads) if not 0 <= number < max(count, 1)]


def _wrong_entries(file: FileBytes, at: int, count: int, log_end: int) -> tuple[int, int]:
    """How many of a file's entries do not lead to an earlier one, and how many lead behind the end
    of the log."""
    astray = ahead = 0
    for first in range(1, count, _STEP):
        last = min(first + _STEP, count)
        raw = file[at + first * ENTRY.size : at + last * ENTRY.size]
        hashes, offsets, _, before = zip(*ENTRY.iter_unpack(raw), strict=True)
        if max(offsets) >= log_end:
            ahead += sum(offset >= log_end for offset in offsets)
        if min(hashes) < 0 or min(before) < 0 or not all(map(lt, before, range(first, last))):
            astray += sum(
                hashed < 0 or not 0 <= earlier < number
                for number, hashed, earlier in zip(range(first, last), hashes, before, strict=True)
            )
    return astray, ahead
