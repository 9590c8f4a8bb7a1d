"""The memory of one lite topic: offsets are found among the entries of all, whatever is removed."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sprocket.message.lite import LiteName
from sprocket.store.views import lite_queue
from sprocket.store.views.lite_queue import NONE, LiteQueue

NAME = LiteName("parent", "lite")


@pytest.fixture(autouse=True)
def short_strides(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lite_queue, "STRIDE", 4)


def filled(begins_at: int, indexes: Sequence[int]) -> LiteQueue:
    queue = LiteQueue(NAME, begins_at)
    for index in indexes:
        queue.add(index)
    return queue


@given(st.integers(0, 9), st.sets(st.integers(0, 200), min_size=1), st.data())
def test_every_offset_is_found_from_what_is_near(
    begins_at: int, places: set[int], data: st.DataObject
) -> None:
    indexes = sorted(places)
    before = dict(zip(indexes, [NONE, *indexes], strict=False))
    queue = filled(begins_at, indexes)
    assert queue.max_offset == begins_at + len(indexes)
    firsts = data.draw(st.lists(st.integers(0, 201), max_size=4).map(sorted))
    for first in [0, *firsts]:
        left = [index for index in indexes if index >= first]
        low = queue.low(first, lambda index: before[index])
        assert low == queue.max_offset - len(left)
        for at, index in enumerate(left, low):
            offset, near = queue.near(at)
            assert at <= offset < at + 4 or offset == queue.max_offset - 1
            while offset > at:
                offset, near = offset - 1, before[near]
            assert near == index


def test_a_queue_without_messages_begins_where_the_next_one_comes() -> None:
    queue = LiteQueue(NAME, 5)
    assert queue.low(7, lambda index: NONE) == 5
