from __future__ import annotations

import datetime
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="PySpark is not installed: pip install 'sprocketmq[spark]'")

from pyspark.sql.datasource import (
    EqualTo,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    IsNull,
    LessThan,
    LessThanOrEqual,
    Not,
    StringStartsWith,
)

from sprocket.message.queue import QueueId
from sprocket.spark.options.options import BatchOptions, read_options
from sprocket.spark.reading.pushdown import NOTHING, PushedConditions, narrow, narrow_choice
from sprocket.spark.reading.read import NarrowedReader

COLUMNS = NarrowedReader.columns
MS = 1_700_000_000_000
TIME = datetime.datetime.fromtimestamp(MS / 1000, datetime.UTC)


def taken(*filters: Any) -> PushedConditions:
    wanted, left = narrow(filters, COLUMNS)
    assert left == []
    return wanted


def left_over(*filters: Any) -> None:
    wanted, left = narrow(filters, COLUMNS)
    assert (wanted, left) == (PushedConditions(), list(filters))


def test_queues_are_chosen() -> None:
    wanted = taken(
        EqualTo(("topic",), "orders"), In(("broker",), ["a", "b"]), EqualTo(("queue_id",), 3)
    )
    assert wanted.admits(QueueId("orders", "a", 3))
    for topic, broker, number in (("returns", "a", 3), ("orders", "c", 3), ("orders", "a", 4)):
        assert not wanted.admits(QueueId(topic, broker, number))
    both = taken(In(("topic",), ["a", "b"]), EqualTo(("topic",), "c"))
    assert both.topics == frozenset()


@pytest.mark.parametrize(
    ("one", "first", "end"),
    [
        (EqualTo(("queue_offset",), 5), 5, 6),
        (GreaterThan(("queue_offset",), 5), 6, None),
        (GreaterThanOrEqual(("queue_offset",), 5), 5, None),
        (LessThan(("queue_offset",), 5), None, 5),
        (LessThanOrEqual(("queue_offset",), 5), None, 6),
    ],
)
def test_offsets_are_bounds(one: Any, first: int | None, end: int | None) -> None:
    wanted = taken(one)
    assert (wanted.first, wanted.end) == (first, end)


def test_bounds_that_come_together_are_the_narrower() -> None:
    wanted = taken(
        GreaterThan(("queue_offset",), 5),
        GreaterThan(("queue_offset",), 9),
        LessThan(("queue_offset",), 30),
        LessThan(("queue_offset",), 20),
    )
    assert (wanted.first, wanted.end) == (10, 20)


def test_times_narrow_with_allowance_for_clocks_and_stay_with_spark() -> None:
    filters = [GreaterThanOrEqual(("store_timestamp",), TIME), LessThan(("store_timestamp",), TIME)]
    wanted, left = narrow(filters, COLUMNS)
    assert left == filters
    assert (wanted.since_ms, wanted.until_ms) == (MS - 60_000, MS + 60_000)
    left_over(EqualTo(("store_timestamp",), TIME.replace(tzinfo=None)))


def test_what_is_never_null_need_not_be_asked() -> None:
    assert taken(IsNotNull(("topic",)), IsNotNull(("queue_offset",))) == PushedConditions()
    left_over(IsNotNull(("tag",)), IsNotNull(("broker",)))


def test_anything_else_stays_with_spark() -> None:
    left_over(
        IsNull(("tag",)),
        Not(EqualTo(("topic",), "orders")),
        StringStartsWith(("topic",), "ord"),
        EqualTo(("body",), b"x"),
        EqualTo(("properties", "topic"), "x"),
        EqualTo(("queue_id",), True),
        EqualTo(("topic",), None),
        EqualTo(("tag",), "a || b"),
        EqualTo(("tag",), " a"),
        EqualTo(("tag",), "*"),
        EqualTo(("tag",), ""),
    )


def narrowed(one: Any, **given: str) -> tuple[PushedConditions, str, list[Any]]:
    options = read_options({"namesrvAddr": "a:1", "subscribe": "orders", **given}, BatchOptions)
    wanted, options, left = narrow_choice([one], COLUMNS, options)
    return wanted, options.tags, left


def test_tags_are_those_that_both_want() -> None:
    one = In(("tag",), ["paid", "new"])
    assert narrowed(one)[1:] == ("new || paid", [])
    assert narrowed(one, tags="paid || late")[1:] == ("paid", [])
    assert narrowed(one, tags="late") == (NOTHING, "late", [])


def test_tags_stay_with_spark_where_the_queue_does_not_have_them() -> None:
    one = EqualTo(("tag",), "paid")
    assert narrowed(one, sql="amount > 5")[2] == [one]
    assert narrowed(one, subscribe="SCHEDULE_TOPIC_XXXX")[2] == [one]
