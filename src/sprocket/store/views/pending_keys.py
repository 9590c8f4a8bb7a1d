"""Keys of records that are not in the key index yet, oldest first."""

from __future__ import annotations

from array import array
from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

from sprocket.store.views.entry import Entry, EntryColumns
from sprocket.store.views.key_hashes import KeyHashes
from sprocket.store.views.record_batch import KeyColumns, keys_of, keys_of_columns

_OFFSET_BYTES = array("q").itemsize
_HASH_BYTES = array("i").itemsize

#: Hashes of keys, and where and when the record of each was stored.
Places = tuple[list[int], list[int], list[int]]


class HashedKeys(NamedTuple):
    """Keys of records whose hashes are known already, in the machine's byte order.

    Attributes:
        hashes: 4 bytes each.
        log_offsets: 8 bytes each: where the record of each key is.
        stored_ms: when all of them were stored.
    """

    hashes: bytes
    log_offsets: bytes
    stored_ms: int


class PendingKeys:
    """Receives records, or the keys of some, and gives the places of their keys in that order.

    Attributes:
        count: how many wait.
    """

    __slots__ = ("_hashes", "_runs", "count")

    def __init__(self, hashes: KeyHashes) -> None:
        self._hashes = hashes
        self._runs: deque[list[Entry] | EntryColumns | HashedKeys] = deque()
        self.count = 0

    def add(self, entries: Sequence[Entry] | EntryColumns) -> None:
        """Adds records; columns must not change any more."""
        runs = self._runs
        if isinstance(entries, EntryColumns):
            runs.append(entries)
        elif runs and isinstance(runs[-1], list):
            runs[-1] += entries
        else:
            runs.append(list(entries))
        self.count += len(entries)

    def add_hashed(self, keys: HashedKeys) -> None:
        """Adds keys."""
        self._runs.append(keys)
        self.count += len(keys.hashes) // _HASH_BYTES

    @property
    def first_log_offset(self) -> int:
        """Where the first record is; -1 if none waits."""
        if not self._runs:
            return -1
        first = self._runs[0]
        if isinstance(first, list):
            return first[0].log_offset
        if isinstance(first, EntryColumns):
            return first.log_offsets[0]
        return array("q", first.log_offsets[:_OFFSET_BYTES])[0]

    def take(self, count_max: int) -> Places:
        """Removes the first of one kind: about `count_max`, more if they were added together."""
        if isinstance(self._runs[0], list):
            return self.places(keys_of(self._first_entries(count_max)))
        if isinstance(self._runs[0], EntryColumns):
            return self.places(self._first_columns(count_max))
        hashes, log_offsets, times_ms = array("i"), array("q"), list[int]()
        while self._runs and len(hashes) < count_max:
            keys = self._runs[0]
            if not isinstance(keys, HashedKeys):
                break
            self._runs.popleft()
            hashes.frombytes(keys.hashes)
            log_offsets.frombytes(keys.log_offsets)
            times_ms += [keys.stored_ms] * (len(hashes) - len(times_ms))
        self.count -= len(hashes)
        return hashes.tolist(), log_offsets.tolist(), times_ms

    def places(self, keys: KeyColumns) -> Places:
        """The places of keys."""
        topics, words, log_offsets, times_ms = keys
        return self._hashes.of_all(topics, words), log_offsets, times_ms

    def _first_entries(self, count_max: int) -> list[Entry]:
        entries = self._runs.popleft()
        assert isinstance(entries, list)
        if len(entries) > count_max:
            self._runs.appendleft(entries[count_max:])
            entries = entries[:count_max]
        self.count -= len(entries)
        return entries

    def _first_columns(self, count_max: int) -> KeyColumns:
        found, taken = KeyColumns([], [], [], []), 0
        while self._runs and taken < count_max:
            columns = self._runs[0]
            if not isinstance(columns, EntryColumns):
                break
            self._runs.popleft()
            found.extend(keys_of_columns(columns))
            taken += len(columns)
        self.count -= taken
        return found

    def clear(self) -> None:
        """Drops all."""
        self._runs.clear()
        self.count = 0
