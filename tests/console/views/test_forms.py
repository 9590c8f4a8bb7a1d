"""Forms are made from the declared parameters of operations."""

from __future__ import annotations

from datetime import UTC, datetime

import msgspec
import pytest

from sprocket.base.errors import UsageError
from sprocket.console.operations.table import OPERATIONS
from sprocket.console.views.forms import FieldKind, form_fields, parsed, time_in


def kinds(operation: str, *names: str) -> list[FieldKind]:
    return [each.kind for each in form_fields(OPERATIONS[operation], names)]


def test_a_field_takes_what_the_parameter_is() -> None:
    assert kinds("topics.create", "topic", "queues", "permission", "attributes") == [
        FieldKind.TEXT, FieldKind.NUMBER, FieldKind.CHOICE, FieldKind.PAIRS,
    ]  # fmt: skip
    assert kinds("groups.reset", "at") == [FieldKind.TIME]
    assert kinds("users.create", "password", "is_enabled") == [FieldKind.SECRET, FieldKind.SWITCH]
    assert kinds("messages.send", "body", "keys") == [FieldKind.LONG_TEXT, FieldKind.LIST]
    (choice,) = form_fields(OPERATIONS["groups.reset"], ["to"])
    assert choice.choices == ("first", "last")


@pytest.mark.parametrize("name", [each for each in OPERATIONS if OPERATIONS[each].is_change])
def test_every_change_has_a_form(name: str) -> None:
    operation = OPERATIONS[name]
    fields = form_fields(operation, operation.parameters.__struct_fields__)
    assert len(fields) == len(operation.parameters.__struct_fields__)
    assert all(field.about for field in fields if field.kind is FieldKind.NUMBER)


def test_what_is_empty_is_left_out_and_the_rest_is_typed() -> None:
    fields = form_fields(
        OPERATIONS["topics.create"], ["topic", "queues", "permission", "attributes", "may_hide"]
    )
    given = parsed(
        fields,
        {"topic": " orders ", "queues": 3.0, "permission": None,
         "attributes": "+message.type=FIFO\n\n-old", "may_hide": False},
    )  # fmt: skip
    assert given == {
        "topic": "orders", "queues": 3, "may_hide": False,
        "attributes": {"+message.type": "FIFO", "old": None},
    }  # fmt: skip
    msgspec.convert(given, OPERATIONS["topics.create"].parameters)


@pytest.mark.parametrize(
    ("values", "fault"),
    [
        ({"topic": ""}, "Topic is missing"),
        ({"topic": "t", "queues": 1.5}, "Queues is a whole number"),
        ({"topic": "t", "queues": "inf"}, "Queues is a whole number"),
        ({"topic": "t", "attributes": "abc"}, "a line is NAME=VALUE"),
    ],
)
def test_what_does_not_fit_is_said(values: dict[str, object], fault: str) -> None:
    fields = form_fields(OPERATIONS["topics.create"], ["topic", "queues", "attributes"])
    with pytest.raises(UsageError, match=fault):
        parsed(fields, values)


def test_times_are_in_utc() -> None:
    assert time_in("2030-01-31T08:00") == datetime(2030, 1, 31, 8, tzinfo=UTC)
    assert time_in(" ") is None
    with pytest.raises(UsageError, match="a time is such as"):
        time_in("tomorrow")
