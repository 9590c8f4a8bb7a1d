from __future__ import annotations

import json
from typing import Any

import pytest

from sprocket.clientcore.witness import Witness
from sprocket.message.queue import QueueId
from sprocket.spark.options.checkpoint import StreamOffsets, shape_checkpoint, shape_offsets
from sprocket.spark.query_progress import SourceProgress, bytes_observed, progress

A, B, C = (QueueId("orders", "broker-a", number) for number in range(3))
AT_MS = 1_700_000_000_000


def seen(
    start: StreamOffsets | None,
    end: StreamOffsets,
    latest: dict[QueueId, int] | None,
    rows: int,
    **more: Any,
) -> dict[str, Any]:
    """A progress as Spark has it, with a second source that is another's."""
    ours = {
        "description": "PythonMicroBatchStream@1",
        "startOffset": None if start is None else json.dumps(shape_checkpoint(start)),
        "endOffset": json.dumps(shape_checkpoint(end)),
        "latestOffset": None if latest is None else json.dumps(shape_offsets(latest)),
        "numInputRows": rows,
    }
    other = {**ours, "startOffset": "3", "endOffset": '{"t":{"0":7}}', "latestOffset": "9"}
    return {"timestamp": "2023-11-14T22:13:20.000Z", "sources": [other, ours], **more}


def test_what_waits_is_counted_and_its_age_is_bounded() -> None:
    witnesses = {A: Witness(9, 100, AT_MS - 5_000), B: Witness(4, 200, AT_MS - 60_000)}
    found = progress(
        seen(
            StreamOffsets({A: 0, B: 0}), StreamOffsets({A: 10, B: 5}, witnesses), {A: 17, B: 5}, 15
        )
    )
    assert found == (SourceProgress(1, 15, 15, 0, (), {A: 7, B: 0}, 5_000),)
    assert found[0].messages_behind == 7


def test_nothing_that_waits_has_no_age() -> None:
    end = StreamOffsets({A: 10}, {A: Witness(9, 100, AT_MS - 5_000)})
    (found,) = progress(seen(StreamOffsets({A: 0}), end, {A: 10}, 10))
    assert (found.messages_behind, found.behind_ms) == (0, 0)
    (unread,) = progress(seen(StreamOffsets({A: 0}), StreamOffsets({A: 0}), {A: 3}, 0))
    assert (unread.messages_behind, unread.behind_ms) == (3, None)


def test_messages_that_are_no_rows_and_queues_begun_anew_are_counted() -> None:
    start = StreamOffsets({A: 0, B: 800})
    end = StreamOffsets({A: 10, B: 5}, anew={B: 2})
    (found,) = progress(seen(start, end, None, 11))
    assert (found.offsets, found.missing, found.anew) == (13, 2, (B,))
    assert found.behind == {}


def test_where_a_beginning_is_not_known_nothing_is_said_to_be_missing() -> None:
    (found,) = progress(seen(StreamOffsets({A: 0}), StreamOffsets({A: 10, C: 50}), {}, 60))
    assert (found.rows, found.offsets, found.missing) == (60, None, None)
    (first,) = progress(seen(None, StreamOffsets({A: 10}), {A: 10}, 10))
    assert (first.offsets, first.missing) == (None, None)


def test_offsets_as_pythons_str_writes_them_are_read_too() -> None:
    given = seen(StreamOffsets({A: 0}), StreamOffsets({A: 10}), {A: 17}, 10)
    for source in given["sources"]:
        for name in ("startOffset", "endOffset", "latestOffset"):
            source[name] = str(json.loads(source[name]))
    (found,) = progress(given)
    assert (found.offsets, found.messages_behind) == (10, 7)


@pytest.mark.parametrize(
    "end", ["[]", "(" * 999, "7", "null", '{"t":{"0":7}}', '{"t":{"b":{"0":"7"}}}', "{"]
)
def test_sources_of_others_are_left_out(end: str) -> None:
    given = seen(None, StreamOffsets({}), {}, 0)
    given["sources"] = [{**given["sources"][0], "endOffset": end}]
    assert progress(given) == ()
    assert progress(None) == ()


def test_bytes_are_those_that_the_query_observes() -> None:
    assert bytes_observed({"observedMetrics": {"rocketmq": {"bytes": 700}}}) == 700
    assert bytes_observed({"observedMetrics": {"rocketmq": {"bytes": None}}}) == 0
    assert bytes_observed({"observedMetrics": {"other": {"bytes": 700}}}) is None
    assert bytes_observed({}) is None
