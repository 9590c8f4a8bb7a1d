from __future__ import annotations

import pytest

from sprocket.base.errors import UsageError
from sprocket.message.queue import QueueId
from sprocket.spark.options.positions import (
    EARLIEST,
    LATEST,
    Position,
    PositionKind,
    format_offsets,
    parse_offsets,
    parse_queues,
    parse_time,
    parse_times,
)

A0 = QueueId("orders", "broker-a", 0)
A1 = QueueId("orders", "broker-a", 1)
B0 = QueueId("orders", "broker-b", 0)
BOTH = ("earliest", "latest")


def test_words_hold_for_every_queue() -> None:
    assert parse_offsets("startingOffsets", " Earliest ", words=BOTH).of(A0) == EARLIEST
    assert parse_offsets("startingOffsets", "latest", words=BOTH).of(B0) == LATEST


def test_json_names_offsets_by_topic_broker_and_queue() -> None:
    text = '{"orders": {"broker-a": {"0": 17, "1": -1}, "broker-b": {"0": -2}}}'
    found = parse_offsets("startingOffsets", text, words=BOTH)
    assert found.of(A0) == Position(PositionKind.OFFSET, 17)
    assert found.of(A1) == LATEST
    assert found.of(B0) == EARLIEST


def test_a_queue_that_is_not_named_is_an_error_that_names_it() -> None:
    found = parse_offsets("startingOffsets", '{"orders": {"broker-a": {"0": 1}}}', words=BOTH)
    with pytest.raises(UsageError, match=r"startingOffsets.*orders@broker-a:1"):
        found.of(A1)


def test_a_name_that_is_not_read_is_an_error() -> None:
    found = parse_offsets("endingOffsets", '{"orders": {"broker-b": {"0": 1}}}', words=("latest",))
    with pytest.raises(UsageError, match="orders@broker-b:0"):
        found.check_names({A0})
    with pytest.raises(UsageError, match="returns"):
        parse_times("startingOffsetsByTimestamp", '{"returns": 5}').check_names({A0})


def test_times_are_for_topics_or_for_queues() -> None:
    text = '{"orders": {"broker-a": {"0": 5}}, "returns": 7}'
    found = parse_times("startingOffsetsByTimestamp", text)
    assert found.of(A0) == Position(PositionKind.TIME, 5)
    assert found.of(QueueId("returns", "broker-b", 3)) == Position(PositionKind.TIME, 7)
    assert parse_time("startingTimestamp", "9").of(B0) == Position(PositionKind.TIME, 9)


@pytest.mark.parametrize(
    "text",
    [
        "first", "", "{", "[]", '{"orders": 5}', '{"orders": {"broker-a": 5}}',
        '{"orders": {"broker-a": {"zero": 5}}}', '{"orders": {"broker-a": {"-1": 5}}}',
        '{"orders": {"broker-a": {"0": "5"}}}', '{"orders": {"broker-a": {"0": -3}}}',
        '{"orders": {"broker-a": {"0": 1.5}}}', '{"orders": {"broker-a": {"0": true}}}',
        "[" * 100_000,
    ],
)  # fmt: skip
def test_what_is_no_position_is_refused_by_name(text: str) -> None:
    with pytest.raises(UsageError, match="startingOffsets"):
        parse_offsets("startingOffsets", text, words=BOTH)


def test_earliest_is_no_end() -> None:
    with pytest.raises(UsageError, match="endingOffsets"):
        parse_offsets("endingOffsets", "earliest", words=("latest",))
    with pytest.raises(UsageError, match="-2"):
        parse_offsets("endingOffsets", '{"orders": {"broker-a": {"0": -2}}}', words=("latest",))


@pytest.mark.parametrize("text", ["soon", "-5", "1.5"])
def test_a_time_is_ms_since_1970(text: str) -> None:
    with pytest.raises(UsageError, match="ms since 1970"):
        parse_time("startingTimestamp", text)


def test_queues_are_assigned_by_number() -> None:
    assert parse_queues("assign", '{"orders": {"broker-a": [0, "1"]}}') == {A0, A1}
    for wrong in ('{"orders": {"broker-a": 0}}', '{"orders": {"broker-a": [-1]}}', "{}"):
        with pytest.raises(UsageError, match="assign"):
            parse_queues("assign", wrong)


def test_offsets_are_written_as_they_are_read() -> None:
    text = format_offsets({B0: 3, A1: 2, A0: 1})
    assert text == '{"orders":{"broker-a":{"0":1,"1":2},"broker-b":{"0":3}}}'
    found = parse_offsets("startingOffsets", text, words=BOTH)
    assert [found.of(one).value for one in (A0, A1, B0)] == [1, 2, 3]


def test_a_group_or_the_checkpoint_of_a_query_may_be_the_beginning() -> None:
    words = (*BOTH, "committed")
    found = parse_offsets("startingOffsets", "group:Billing", words=words)
    assert (found.of(A0).kind, found.group) == (PositionKind.COMMITTED, "Billing")
    found = parse_offsets("startingOffsets", " checkpoint: /data/Check point ", words=words)
    assert (found.of(A0), found.checkpoint) == (EARLIEST, "/data/Check point")


@pytest.mark.parametrize("wrong", ["group:", "group", "checkpoint: ", "topic:orders", "groups:a"])
def test_what_is_neither_is_refused_with_what_there_is(wrong: str) -> None:
    with pytest.raises(UsageError, match='"committed", "group:NAME", "checkpoint:FOLDER"'):
        parse_offsets("startingOffsets", wrong, words=(*BOTH, "committed"))
    with pytest.raises(UsageError, match='takes "latest" or a JSON'):
        parse_offsets("endingOffsets", "group:billing", words=("latest",))


def test_a_time_in_seconds_is_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    parse_time("startingTimestamp", "1700000000000")
    parse_times("startingOffsetsByTimestamp", '{"orders": 0}')
    assert caplog.messages == []
    parse_time("startingTimestamp", "1700000000")
    parse_times("startingOffsetsByTimestamp", '{"orders": {"broker-a": {"0": 1700000000}}}')
    assert caplog.messages == [
        f"option {name} is 1700000000, a time in 1970: the unit is milliseconds, not seconds"
        for name in ("startingTimestamp", "startingOffsetsByTimestamp")
    ]


@pytest.mark.parametrize(
    "number",
    ["1.9", "1e999", "NaN", "true", "null", "2147483648", '"00"', '"\u0663"', '"1_0"', "-1"],
)
def test_what_is_no_queue_number_is_refused(number: str) -> None:
    with pytest.raises(UsageError, match=r"option assign: .* is no queue number"):
        parse_queues("assign", f'{{"orders": {{"broker-a": [{number}]}}}}')


def test_a_name_that_is_there_twice_is_refused() -> None:
    text = '{"orders": {"broker-a": {"0": 1}}, "orders": {"broker-a": {"1": 2}}}'
    with pytest.raises(UsageError, match="startingOffsets is no JSON: 'orders' is in it twice"):
        parse_offsets("startingOffsets", text, words=BOTH)


def test_offsets_and_times_have_63_bits() -> None:
    with pytest.raises(UsageError, match="option startingOffsets: 9223372036854775808 is no"):
        parse_offsets("startingOffsets", f'{{"o": {{"b": {{"0": {1 << 63}}}}}}}', words=BOTH)
    with pytest.raises(UsageError, match="option startingTimestamp takes ms since 1970"):
        parse_time("startingTimestamp", str(1 << 63))
    with pytest.raises(UsageError, match="option startingOffsetsByTimestamp takes ms since 1970"):
        parse_times("startingOffsetsByTimestamp", f'{{"orders": {1 << 63}}}')


@pytest.mark.parametrize("wrong", ["1e3", "\u0663", "1_000", "", "9" * 5000])
def test_what_is_no_time_is_refused(wrong: str) -> None:
    with pytest.raises(UsageError, match="option startingTimestamp takes ms since 1970"):
        parse_time("startingTimestamp", wrong)
