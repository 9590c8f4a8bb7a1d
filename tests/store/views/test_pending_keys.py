"""Keys wait in the order of their records, however they come."""

from __future__ import annotations

from array import array

from hypothesis import given
from hypothesis import strategies as st

from sprocket.store.views.entry import Entry, EntryColumns
from sprocket.store.views.key_hashes import KeyHashes
from sprocket.store.views.pending_keys import HashedKeys, PendingKeys

HASHES = KeyHashes()


def entries(first: int, count: int) -> list[Entry]:
    return [
        Entry("T", 0, n, n, 1, 0, 1000 + n, 0, "", f"k{n}") for n in range(first, first + count)
    ]


def hashed(first: int, count: int, stored_ms: int) -> HashedKeys:
    numbers = range(first, first + count)
    hashes = array("i", [HASHES.of("T", f"k{n}") for n in numbers])
    return HashedKeys(hashes.tobytes(), array("q", numbers).tobytes(), stored_ms)


@given(
    st.lists(
        st.tuples(st.sampled_from(["hashed", "each", "columns"]), st.integers(1, 9)), max_size=12
    ),
    st.lists(st.integers(1, 30), min_size=1, max_size=8),
)
def test_keys_leave_in_their_order_each_once(runs: list[tuple[str, int]], takes: list[int]) -> None:
    pending, count, wanted = PendingKeys(HASHES), 0, list[int]()
    for kind, size in runs:
        numbers = range(count, count + size)
        if kind == "hashed":
            pending.add_hashed(hashed(count, size, 7))
            wanted += [7] * size
        elif kind == "each":
            pending.add(entries(count, size))
            wanted += [1000 + n for n in numbers]
        else:
            pending.add(EntryColumns.of(entries(count, size)))
            wanted += [1000 + count] * size
        count += size
    assert pending.count == count
    hashes, log_offsets, times = list[int](), list[int](), list[int]()
    for take in (*takes, *[count + 1] * len(runs)):
        if pending.count:
            assert pending.first_log_offset == len(log_offsets)
            before = pending.count
            places = pending.take(take)
            assert len(places[0]) == before - pending.count > 0
            hashes += places[0]
            log_offsets += places[1]
            times += places[2]
    assert pending.count == 0
    assert pending.first_log_offset == -1
    assert log_offsets == list(range(count))
    assert hashes == [HASHES.of("T", f"k{n}") for n in range(count)]
    assert times == wanted


def test_what_is_dropped_is_gone() -> None:
    pending = PendingKeys(HASHES)
    pending.add(entries(0, 3))
    pending.clear()
    assert pending.count == 0
    assert pending.first_log_offset == -1
