"""CloudEvents are read from properties and from JSON, as Java's binding writes them."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from sprocket.schemas.cloud_events import event_of
from sprocket.schemas.errors import BodyMismatch

BINARY = {
    "CE_specversion": "1.0", "CE_id": "1", "CE_source": "/shop", "CE_type": "order.paid",
    "CE_contenttype": "application/json", "CE_time": "2030-01-31T08:00:00Z", "CE_region": "eu",
    "TAGS": "new",
}  # fmt: skip
STRUCTURED = {"CE_contenttype": "application/cloudevents+json; charset=utf-8"}


def test_attributes_are_properties_in_binary_mode() -> None:
    event = event_of(BINARY, b'{"a":1}')
    assert event is not None
    assert event.attributes["type"] == "order.paid"
    assert event.attributes["datacontenttype"] == "application/json"
    assert event.attributes["subject"] is None
    assert event.time == datetime(2030, 1, 31, 8, tzinfo=UTC)
    assert event.extensions == {"region": "eu"}
    assert event.data == b'{"a":1}'
    assert event_of(BINARY, b"\0").data is None  # type: ignore[union-attr]


def test_another_prefix_may_be_agreed() -> None:
    properties = {f"ce-{name[3:]}": value for name, value in BINARY.items()}
    assert event_of(properties, b"x") is None
    event = event_of(properties, b"x", "ce-")
    assert event is not None
    assert event.attributes["id"] == "1"


def test_the_whole_event_is_json_in_structured_mode() -> None:
    body = (
        b'{"specversion":"1.0","id":"1","source":"/s","type":"t","n":3,'
        b'"dataschema":"http://example/x","data":{"a":1}}'
    )
    event = event_of(STRUCTURED, body)
    assert event is not None
    assert event.data == b'{"a":1}'
    assert event.extensions == {"n": "3"}
    assert event.attributes["dataschema"] == "http://example/x"
    other = event_of({"contentType": "application/cloudevents+json"}, body)
    assert other == event


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b'"data_base64":"/w=="', b"\xff"),
        (b'"datacontenttype":"text/plain","data":"hi"', b"hi"),
        (b'"datacontenttype":"application/json","data":"hi"', b'"hi"'),
        (b'"data":null', b"null"),
        (b'"subject":"s"', None),
    ],
)
def test_data_keeps_its_bytes(data: bytes, expected: bytes | None) -> None:
    body = b'{"specversion":"1.0","id":"1","source":"/s","type":"t",%b}' % data
    assert event_of(STRUCTURED, body).data == expected  # type: ignore[union-attr]


def test_a_message_without_attributes_is_no_event() -> None:
    assert event_of({"TAGS": "x"}, b"x") is None
    assert event_of({"CE_contenttype": "text/plain"}, b"x") is None


@pytest.mark.parametrize(
    ("properties", "body", "reason"),
    [
        ({"CE_specversion": "1.0"}, b"", "without id"),
        (STRUCTURED, b"[]", "no JSON object"),
        (STRUCTURED, b"x", "no JSON"),
        (STRUCTURED, b'{"id":"1"}', "without source"),
        (STRUCTURED, b'{"specversion":"1.0","data_base64":3}', "no base64"),
        ({"CE_contenttype": "application/cloudevents+avro"}, b"x", "only JSON"),
    ],
)
def test_what_says_it_is_an_event_and_is_none_does_not_fit(
    properties: dict[str, str], body: bytes, reason: str
) -> None:
    with pytest.raises(BodyMismatch, match=reason):
        event_of(properties, body)


@pytest.mark.parametrize("text", ["yesterday", "99999-01-01T00:00:00Z", "2030-01-31", ""])
def test_a_time_that_is_none_is_none(text: str) -> None:
    event = event_of({**BINARY, "CE_time": text}, b"x")
    assert event is not None
    assert event.time is None
