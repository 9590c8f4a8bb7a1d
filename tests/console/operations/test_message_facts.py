"""Messages are shown in part, and as what they are."""

from __future__ import annotations

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sprocket.console.operations.message_facts import MessageFacts, facts_of, size_of
from sprocket.message.message import StoredMessage
from sprocket.message.queue import QueueId


def stored(body: bytes, **properties: str) -> StoredMessage:
    return StoredMessage(
        QueueId("orders", "broker-a", 3), 7, 1_000, body, properties, 0, 0, 1_700_000_000_000,
        "10.0.0.1:5", 1_700_000_000_500, "10.0.0.2:10911", 0, 0, 200, 0,
    )  # fmt: skip


def body_of(facts: MessageFacts) -> bytes:
    if facts.body is not None:
        return facts.body.encode()
    return base64.b64decode(facts.body_base64 or "")


@given(st.binary(max_size=40) | st.text(max_size=20).map(str.encode), st.integers(0, 50))
def test_a_body_is_shown_as_far_as_it_may(body: bytes, limit: int) -> None:
    facts = facts_of(stored(body), limit)
    shown = body_of(facts)
    assert body.startswith(shown)
    assert limit - 3 <= len(shown) <= limit or shown == body
    assert facts.is_cut == (len(body) > limit)
    assert facts.body_bytes == len(body)


@pytest.mark.parametrize(
    ("body", "limit", "text"),
    [
        ("größe".encode(), 100, "größe"),
        ("größe".encode(), 3, "gr"),
        (b"a\0b", 100, None),
        (b"\xff\xfe", 100, None),
        (b"abc\xc3", 100, None),
        (b"<script>alert(1)</script>", 100, "<script>alert(1)</script>"),
    ],
)
def test_a_body_is_text_if_it_is_some(body: bytes, limit: int, text: str | None) -> None:
    facts = facts_of(stored(body), limit)
    assert facts.body == text
    assert (facts.body_base64 is None) == (text is not None)


def test_a_long_property_is_cut_and_that_is_said() -> None:
    facts = facts_of(stored(b"x", KEYS="a b", long="v" * 10_000), 10)
    assert facts.keys == ["a", "b"]
    assert len(facts.properties["long"]) == 4_096
    assert facts.is_cut
    assert size_of(stored(b"x" * 100, long="v" * 10_000), 10) > 10_000
