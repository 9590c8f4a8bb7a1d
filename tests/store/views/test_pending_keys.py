"""What waits for the key index."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from sprocket.store.views.entry import Entry, EntryColumns
from sprocket.store.views.pending_keys import PendingKeys
from sprocket.store.views.record_batch import keys_of

keys = st.tuples(st.sampled_from(["", "k", "k l", "ß"]), st.sampled_from(["", "U1", "größe"]))


def entries(first: int, some: list[tuple[str, str]]) -> list[Entry]:
    return [
        Entry("orders", 0, first + n, (first + n) * 100, 100, 0, 1000, 0, words, unique_key)
        for n, (words, unique_key) in enumerate(some)
    ]


@given(
    st.lists(st.tuples(st.booleans(), st.lists(keys, min_size=1, max_size=5)), max_size=6),
    st.integers(1, 8),
)
def test_keys_come_out_in_the_order_of_the_log_however_they_were_appended(
    runs: list[tuple[bool, list[tuple[str, str]]]], count: int
) -> None:
    pending, every = PendingKeys(), list[Entry]()
    for is_batch, some in runs:
        run = entries(len(every), some)
        pending.add(EntryColumns.of(run) if is_batch else run)
        every += run
    assert len(pending) == len(every)
    if every:
        assert pending.first_log_offset == every[0].log_offset
    found = keys_of([])
    while left := len(pending):
        found.extend(pending.take(count))
        assert len(pending) < left
    assert found == keys_of(every)


def test_a_cleared_one_is_empty() -> None:
    pending = PendingKeys()
    pending.add(entries(0, [("k", "U")]))
    pending.clear()
    assert not pending
    assert pending.take(10).keys == []
