"""Handles of popped messages, and the lists from which clients make them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sprocket.base.errors import UsageError
from sprocket.message.pop_handle import (
    NORMAL,
    ORDER_QUEUE,
    PopHandle,
    PoppedSpan,
    kind_of,
    message_offsets_text,
    order_counts_text,
    read_offsets,
    start_offsets_text,
    topic_of,
)
from sprocket.message.topic import pop_retry_topic, popped_topic

_longs = st.integers(0, (1 << 63) - 1)
_names = st.from_regex(r"[%|a-zA-Z0-9_-]{1,20}", fullmatch=True)
_handles = st.builds(
    PopHandle, _longs, _longs, _longs, st.integers(0, 1000), st.sampled_from("012"), _names,
    st.integers(0, 1 << 30), _longs,
)  # fmt: skip


@pytest.mark.parametrize(("topic", "queue", "text"), [
    ("%RETRY%g+t", 4, "5 1700000000000 60000 4 2 broker-a 3 7"),
    ("%RETRY%g_t", 4, "5 1700000000000 60000 4 1 broker-a 3 7"),
    ("t", ORDER_QUEUE, "5 1700000000000 60000 999 0 broker-a 3 7"),
])  # fmt: skip
def test_handles_are_those_that_java_makes(topic: str, queue: int, text: str) -> None:
    handle = PopHandle(5, 1700000000000, 60000, queue, kind_of(topic), "broker-a", 3, 7)
    assert handle.encode() == text
    assert PopHandle.parse(text) == handle
    assert handle.is_in_order == (queue == ORDER_QUEUE)
    assert handle.due_ms == 1700000060000


def test_lists_are_those_that_java_makes() -> None:
    spans = [PoppedSpan("t", 3, 5, [5, 7]), PoppedSpan("%RETRY%g_t", 0, 9, [9])]
    assert start_offsets_text(spans) == "0 3 5;1 0 9"
    assert message_offsets_text(spans) == "0 3 5,7;1 0 9"
    assert start_offsets_text([PoppedSpan("%RETRY%g+t", 0, 9, [9])]) == "2 0 9"
    assert order_counts_text("t", 3, [5, 7, 8], {}) == "0 3 0"
    assert order_counts_text("t", 3, [7, 8, 9], {7: 1, 8: 1}) == "0 qo3%7 1;0 qo3%8 1;0 3 0"
    assert order_counts_text("t", 3, [7, 8], {7: 2, 8: 1}) == "0 qo3%7 2;0 qo3%8 1;0 3 1"


@given(_handles)
def test_a_handle_reads_back(handle: PopHandle) -> None:
    assert PopHandle.parse(handle.encode()) == handle
    assert PopHandle.parse(f"{handle.encode()} 123") == handle


@given(st.one_of(st.text(max_size=60), _handles.map(lambda handle: handle.encode()[:-1] + "x")))
def test_what_is_no_handle_is_refused(text: str) -> None:
    try:
        handle = PopHandle.parse(text)
    except UsageError:
        return
    assert PopHandle.parse(handle.encode()) == handle


@pytest.mark.parametrize("text", [
    "", "1 2 3 4 0 b 5", "1 2 3 4 3 b 5 6", "1 2 3 4 0  5 6", "-1 2 3 4 0 b 5 6", "٣ 2 3 4 0 b 5 6",
    "9223372036854775808 2 3 4 0 b 5 6", "1 2 3 4 0 " + "b" * 2000 + " 5 6",
])  # fmt: skip
def test_words_that_are_no_numbers_or_kinds_are_refused(text: str) -> None:
    with pytest.raises(UsageError, match="no handle"):
        PopHandle.parse(text)


@given(st.lists(st.tuples(st.integers(0, 99), _longs, st.lists(_longs, min_size=1, max_size=32)),
                unique_by=lambda each: each[0]))  # fmt: skip
def test_lists_read_back(rows: list[tuple[int, int, list[int]]]) -> None:
    spans = [PoppedSpan("t", *row) for row in rows]
    assert read_offsets(start_offsets_text(spans)) == {(NORMAL, n): [at] for n, at, _ in rows}
    assert read_offsets(message_offsets_text(spans)) == {(NORMAL, n): all_ for n, _, all_ in rows}


@pytest.mark.parametrize("text", ["1", "0 1", "0 1 2 3", "0 x 1", "0 1 1,,2"])
def test_what_is_no_list_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="no list"):
        read_offsets(text)


@given(_names, _names, st.booleans())
def test_a_retry_topic_leads_back_to_its_topic(topic: str, group: str, is_v2: bool) -> None:
    name = pop_retry_topic(topic, group, is_v2=is_v2)
    assert popped_topic(name, group) == topic
    assert topic_of(topic, group, kind_of(name)) == name
    assert popped_topic("t", group) == "t"
