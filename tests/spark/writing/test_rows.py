from __future__ import annotations

import datetime
from typing import Any

import pyarrow as pa
import pytest

from sprocket.base.errors import UsageError
from sprocket.spark.options.write_options import write_options
from sprocket.spark.writing.rows import OutgoingMessage, RowMessages, check_columns


def options(**more: str) -> Any:
    return write_options({"namesrvAddr": "a:1", **more})


def messages(rows: list[dict[str, Any]], **more: str) -> list[OutgoingMessage]:
    return list(RowMessages(options(**more), "task").of(pa.RecordBatch.from_pylist(rows)))


def test_a_row_is_a_message() -> None:
    properties = pa.array([[("region", "eu"), ("UNIQ_KEY", "old"), ("none", None)]], MAP)
    batch = pa.RecordBatch.from_arrays(
        [
            pa.array(["orders"]), pa.array([b"\xff"]), pa.array(["k1 k2"]), pa.array(["paid"]),
            properties, pa.array(["broker-b"]), pa.array([3]), pa.array([2]), pa.array([7]),
        ],
        names=[
            "topic", "body", "key", "tag", "properties", "broker", "queue_id", "delay_level",
            "flag",
        ],
    )  # fmt: skip
    (found,) = RowMessages(options(), "task").of(batch)
    assert (found.broker, found.queue_number) == ("broker-b", 3)
    message = found.message
    assert (message.topic, message.body, message.tag) == ("orders", b"\xff", "paid")
    assert (message.keys, message.delay_level, message.flag) == (["k1", "k2"], 2, 7)
    assert message.properties == {"region": "eu"}


MAP = pa.map_(pa.string(), pa.string())


def test_options_stand_in_for_columns_that_are_absent_or_null() -> None:
    rows = [{"topic": None, "body": "text"}, {"topic": "returns", "body": "text"}]
    found = messages(rows, topic="orders", tag="new", delayLevel="4")
    assert [one.message.topic for one in found] == ["orders", "returns"]
    assert {(one.message.tag, one.message.delay_level) for one in found} == {("new", 4)}
    assert found[0].message.body == b"text"
    assert (found[0].broker, found[0].queue_number) == (None, None)


def test_each_row_gets_an_id_that_a_second_run_gives_again() -> None:
    rows = [{"body": b"a"}, {"body": b"b"}]
    more = {"topic": "orders", "idempotencyProperty": "row"}
    ids = [one.message.properties["row"] for one in messages(rows, **more)]
    assert ids == ["task-0", "task-1"]
    assert ids == [one.message.properties["row"] for one in messages(rows, **more)]


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ({"body": None}, "row 1 of this task: it has no body"),
        ({"body": b""}, "row 1 .* its body is empty"),
        ({"body": b"x", "topic": None}, "row 1 .* no topic"),
    ],
)
def test_a_row_that_is_no_message_is_named(row: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        messages([{"topic": "orders", "body": b"good"}, {"topic": "orders", **row}])


@pytest.mark.parametrize("bad", [None, b""])
def test_no_row_of_a_batch_comes_before_one_without_body(bad: bytes | None) -> None:
    batch = pa.RecordBatch.from_pydict({"body": pa.array([b"x"] * 300 + [bad], pa.binary())})
    rows = RowMessages(options(topic="orders"), "task").of(batch)
    with pytest.raises(UsageError, match="row 300 of this task"):
        next(rows)


def test_a_property_that_the_text_form_cannot_carry_is_refused() -> None:
    batch = pa.RecordBatch.from_arrays(
        [pa.array([b"x"]), pa.array([[("a", "b\x02TAGS\x01forged")]], MAP)],
        names=["body", "properties"],
    )
    with pytest.raises(UsageError, match="row 0"):
        list(RowMessages(options(topic="orders"), "task").of(batch))


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ([("body", "binary"), ("value", "binary")], "value cannot be written: did you mean body"),
        ([("body", "binary"), ("queue_offset", "bigint")], "queue_offset cannot be written"),
        ([("body", "int")], "body must be binary or string, not int"),
        ([("topic", "string")], "a column body is needed"),
        ([("body", "string")], "where to"),
    ],
)
def test_columns_are_checked_before_anything_is_sent(
    fields: list[tuple[str, str]], said: str
) -> None:
    with pytest.raises(UsageError, match=said):
        check_columns(fields, options())


def test_columns_of_a_read_can_be_written() -> None:
    fields = [("topic", "string"), ("key", "string"), ("tag", "string"), ("body", "binary")]
    check_columns([*fields, ("properties", "map<string,string>")], options())


def test_a_time_of_delivery_goes_before_the_delay_of_all() -> None:
    at = datetime.datetime(2030, 1, 31, 8, tzinfo=datetime.UTC)
    rows = [{"body": b"a", "deliver_at": at}, {"body": b"b", "deliver_at": None}]
    found = [one.message for one in messages(rows, topic="orders", delayLevel="4")]
    assert [(one.deliver_at, one.delay_level) for one in found] == [(at, 0), (None, 4)]
    check_columns([("body", "binary"), ("deliver_at", "timestamp")], options(topic="orders"))
    with pytest.raises(UsageError, match="deliver_at must be timestamp"):
        check_columns([("body", "binary"), ("deliver_at", "bigint")], options(topic="orders"))
