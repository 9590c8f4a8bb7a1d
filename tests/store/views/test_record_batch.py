"""What views learn of many records at once."""

from __future__ import annotations

import struct

from sprocket.store.views.entry import Entry
from sprocket.store.views.record_batch import KeyColumns, RecordBatch, keys_of

PREPARED, ROLLED_BACK = 0x4, 0xC


def an_entry(
    number: int, topic: str = "orders", *, sys_flag: int = 0, keys: str = "", unique_key: str = "u"
) -> Entry:
    return Entry(topic, 1, number, number * 100, 100, 7, 5000, sys_flag, keys, unique_key)


def a_stretch(*entries: Entry) -> RecordBatch:
    stretch = RecordBatch()
    for entry in entries:
        stretch.add(entry)
    return stretch


def test_queues_get_their_messages_in_order() -> None:
    stretch = a_stretch(
        an_entry(0), an_entry(1, "paid"), an_entry(2), an_entry(3, sys_flag=PREPARED)
    )
    assert (stretch.count, stretch.end, stretch.stored_ms) == (4, 400, 5000)
    queues = dict(stretch.queue_columns())
    assert list(queues) == [("orders", 1), ("paid", 1)]
    assert queues["orders", 1].queue_offsets == [0, 2]
    packed = struct.pack(">qiqqiq", 0, 100, 7, 200, 100, 7)
    assert queues["orders", 1].packed() == packed


def test_each_word_of_a_record_is_a_key_once_and_the_unique_key_comes_first() -> None:
    entries = [
        an_entry(0, unique_key="u0"),
        an_entry(1, keys="a b  a", unique_key="u1"),
        an_entry(2, keys="ü", unique_key=""),
        an_entry(3, unique_key=""),
        an_entry(4, keys="c", unique_key="u4", sys_flag=ROLLED_BACK),
    ]
    wanted = KeyColumns(
        ["orders"] * 5,
        [b"u0", b"u1", b"a", b"b", "ü".encode()],
        [0, 100, 100, 100, 200],
        [5000] * 5,
    )
    assert a_stretch(*entries).key_columns() == wanted
    assert keys_of(entries) == wanted


def test_a_key_with_the_sign_that_ends_properties_is_one_key() -> None:
    assert keys_of([an_entry(0, unique_key="a\x02b"), an_entry(1)]).keys == [b"a\x02b", b"u"]


def test_records_from_before_their_topic_was_deleted_are_left_out() -> None:
    stretch = a_stretch(
        *[an_entry(number, "odd" if number % 2 else "orders") for number in range(6)]
    )
    stretch.leave_out({"odd": 300, "orders": 0}.__getitem__)
    queues = {topic: columns.queue_offsets for (topic, _), columns in stretch.queue_columns()}
    assert queues == {"orders": [0, 2, 4], "odd": [3, 5]}
    assert stretch.key_columns().log_offsets == [0, 200, 300, 400, 500]
    assert stretch.count == 6
