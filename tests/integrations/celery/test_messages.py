from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from sprocket.integrations.celery.messages import body_of, due_of, expiry_of, message_of


def sent(**headers: Any) -> dict[str, Any]:
    info = {"exchange": "", "routing_key": "celery"}
    properties = {"delivery_tag": "theirs", "delivery_info": info, "body_encoding": "base64"}
    return {"body": "W10=", "headers": headers, "properties": properties}


def test_a_delivery_has_a_tag_of_its_own_and_says_whether_it_came_before() -> None:
    message = sent(id="1")
    first, again = (message_of(body_of(message), tag, n) for n, tag in enumerate(("a", "b")))
    assert (first["properties"]["delivery_tag"], again["properties"]["delivery_tag"]) == ("a", "b")
    infos = [each["properties"]["delivery_info"] for each in (first, again)]
    assert [each["redelivered"] for each in infos] == [False, True]
    assert first["body"] == message["body"]
    assert infos[0]["routing_key"] == "celery"


@pytest.mark.parametrize("body", [b"", b"[]", b"{}", b'{"properties": 3}', b"\xff", b"null",
                                  b"[" * 100_000])  # fmt: skip
def test_what_is_no_message_of_kombu_is_refused(body: bytes) -> None:
    with pytest.raises(ValueError, match="no message of kombu's"):
        message_of(body, "tag", 0)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("body", 5), ("body", None), ("body", "W"), ("content-type", 5), ("content-encoding", []),
        ("body_encoding", 7), ("body_encoding", "rot13"),
        ("headers", {"x": {"__type__": "uuid", "__value__": 5}}),
        ("headers", {"x": {"__type__": "decimal", "__value__": "x"}}),
        ("headers", {"x": {"__type__": [], "__value__": 5}}),
    ],
)  # fmt: skip
def test_what_would_end_a_worker_is_refused(name: str, value: Any) -> None:
    message = sent()
    (message["properties"] if name == "body_encoding" else message)[name] = value
    with pytest.raises(ValueError, match="no message of kombu's"):
        message_of(json.dumps(message).encode(), "tag", 0)


def test_a_task_is_due_at_its_eta() -> None:
    at = datetime(2030, 1, 1, tzinfo=UTC)
    assert due_of(sent(eta=at.isoformat())) == int(at.timestamp() * 1000)
    for eta in (None, "", "soon", 5, "2030-01-01T00:00:00"):
        assert due_of(sent(eta=eta)) is None
    assert due_of({}) is None


def test_a_message_expires_after_it_was_sent_or_is_due() -> None:
    at = datetime(2030, 1, 1, tzinfo=UTC)
    plain, late = sent(), sent(eta=at.isoformat())
    for message in (plain, late):
        message["properties"]["expiration"] = "500"
    assert expiry_of(plain, 1_000) == 1_500
    assert expiry_of(late, 1_000) == int(at.timestamp() * 1000) + 500
    for none in (None, "", "-1", "soon", 5, "9" * 5_000):
        plain["properties"]["expiration"] = none
        assert expiry_of(plain, 1_000) is None
