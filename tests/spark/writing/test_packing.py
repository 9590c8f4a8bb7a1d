"""Rows packed column by column: the same messages as one by one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sprocket.base.errors import UsageError
from sprocket.clientcore.envelope import JAVA_PACKING, seal_batch
from sprocket.message.batch import BatchedMessage, decode
from sprocket.message.ids import UniqueIds
from sprocket.spark.options.write_options import write_options
from sprocket.spark.writing.packing import PackedRows, RowPacker
from sprocket.spark.writing.rows import RowMessages

NOW_MS = 1_700_000_000_123
MAP = pa.map_(pa.string(), pa.string())


def ids() -> UniqueIds:
    return UniqueIds(address=b"1234", process=1, token=b"5678")


def packed(batch: pa.RecordBatch, **given: str) -> PackedRows | None:
    options = write_options({"namesrvAddr": "a:1", **given})
    return RowPacker(options, ids(), "task").pack(batch, NOW_MS, 0)


def one_by_one(batch: pa.RecordBatch, **given: str) -> list[BatchedMessage]:
    options = write_options({"namesrvAddr": "a:1", **given})
    messages = [row.message for row in RowMessages(options, "task").of(batch)]
    return decode(seal_batch(messages, ids(), NOW_MS, JAVA_PACKING).body)


def rows(**columns: list[Any]) -> pa.RecordBatch:
    kinds = {"flag": pa.int64(), "body": pa.binary(), "properties": MAP}
    return pa.RecordBatch.from_pydict(
        {name: pa.array(values, kinds.get(name, pa.string())) for name, values in columns.items()}
    )


words = st.none() | st.sampled_from(
    ["", " ", "k", "k l", " k", "k  l", "ß", "k\u3000l", "k\x01", "\x85"]
)
tags = st.none() | st.sampled_from(["", "paid", "new", "ü"])
pairs = st.tuples(
    st.sampled_from(["a", "größe", "UNIQ_KEY", "TAGS"]), st.none() | st.sampled_from(["", "b", "ü"])
)
maps = st.none() | st.lists(pairs, max_size=3, unique_by=lambda pair: pair[0])
row = st.tuples(
    st.binary(min_size=1, max_size=9), words, tags, st.none() | st.integers(-3, 3), maps
)


@given(
    st.lists(row, min_size=1, max_size=6),
    st.sampled_from([{}, {"tag": "all"}, {"idempotencyProperty": "row"}]),
    st.integers(0, 5),
)
def test_packed_rows_are_the_messages_that_they_are_one_by_one(
    some: list[tuple[bytes, str | None, str | None, int | None, list[tuple[str, str]] | None]],
    given: dict[str, str],
    first: int,
) -> None:
    body, key, tag, flag, properties = map(list, zip(*some, strict=True))
    batch = rows(body=body, key=key, tag=tag, flag=flag, properties=properties)
    batch = batch.slice(min(first, len(some) - 1))
    key = batch.column("key").to_pylist()
    found = packed(batch, topic="orders", **given)
    if any("\x01" in (each or "") for each in key):
        assert found is None
        return
    assert found is not None
    content = bytes(found.content[: found.offsets[-1]])
    assert decode(content) == one_by_one(batch, topic="orders", **given)
    for begin, end, wanted in zip(found.offsets, found.offsets[1:], decode(content), strict=False):
        assert decode(content[begin:end]) == [wanted]


def test_sliced_columns_and_texts_as_bodies_are_packed_too() -> None:
    batch = pa.RecordBatch.from_pydict(
        {"body": ["a", "b", "größe", "d"], "key": ["1", None, "3", "4"], "topic": ["orders"] * 4}
    ).slice(1, 2)
    found = packed(batch)
    assert found is not None
    assert found.topic == "orders"
    assert decode(bytes(found.content[: found.offsets[-1]])) == one_by_one(batch)


def test_unique_keys_go_on_over_the_end_of_their_digits() -> None:
    makes = ids()
    stem, first = makes.make_many(65_530, NOW_MS)
    assert (first, makes.make(NOW_MS)) == (0, f"{stem}FFFA")
    options = write_options({"namesrvAddr": "a:1", "topic": "orders"})
    found = RowPacker(options, makes, "task").pack(rows(body=[b"x"] * 8), NOW_MS, 0)
    assert found is not None
    texts = [each.properties for each in decode(bytes(found.content[: found.offsets[-1]]))]
    digits = [text.split("UNIQ_KEY\x01")[1][-5:-1] for text in texts]
    assert digits == ["FFFB", "FFFC", "FFFD", "FFFE", "FFFF", "0000", "0001", "0002"]


@pytest.mark.parametrize(
    ("more", "given"),
    [
        ({"topic": ["orders", "returns"]}, {}),
        ({"topic": ["%RETRY%g", "%RETRY%g"]}, {}),
        ({"topic": ["a b", "a b"]}, {}),
        ({"topic": ["SCHEDULE_TOPIC_XXXX"] * 2}, {}),
        ({"tag": ["a || b", "c"]}, {"topic": "orders"}),
        ({"flag": [1 << 31, 0]}, {"topic": "orders"}),
        ({"key": ["k" * 40_000, ""]}, {"topic": "orders"}),
        ({"properties": [[("a", "b\x02c")], None]}, {"topic": "orders"}),
        ({"properties": [[("", "b")], None]}, {"topic": "orders"}),
        ({"properties": [[("row", "b")], []]}, {"topic": "orders", "idempotencyProperty": "row"}),
        ({"body": [b"x", b""]}, {"topic": "orders"}),
        ({"body": [b"x", None]}, {"topic": "orders"}),
        ({"body": [b"x", bytes(4096)]}, {"topic": "orders"}),
        ({}, {"topic": "orders", "delayLevel": "2"}),
        ({}, {"topic": "orders", "queueBy": "key"}),
        ({}, {"topic": "orders", "batchMaxRecords": "1"}),
        ({}, {}),
    ],
)
def test_what_is_unusual_is_made_one_by_one(more: dict[str, Any], given: dict[str, str]) -> None:
    assert packed(rows(**({"body": [b"x", b"y"]} | more)), **given) is None
    assert packed(rows(body=[b"x"]), topic="orders") is not None


def test_no_row_is_no_request() -> None:
    assert packed(rows(body=[]), topic="orders") is None


def test_a_wrong_row_is_named_behind_packed_ones() -> None:
    options = write_options({"namesrvAddr": "a:1", "topic": "orders"})
    messages = RowMessages(options, "task")
    messages.skip(10)
    with pytest.raises(UsageError, match="row 11 of this task"):
        list(messages.of(rows(body=[b"x", b""])))


def test_offsets_are_of_this_batch_alone() -> None:
    found = packed(rows(body=[b"x", b"yy"]), topic="orders")
    assert found is not None
    assert found.offsets.dtype == np.int32
    assert (found.offsets[0], len(found.offsets)) == (0, 3)
