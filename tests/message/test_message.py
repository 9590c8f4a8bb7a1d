"""Messages as values."""

from __future__ import annotations

from sprocket.message.message import Message, StoredMessage
from sprocket.message.offsets import LogOffset, QueueOffset
from sprocket.message.queue import QueueId


def test_a_message_needs_a_topic_and_a_body_only() -> None:
    message = Message("orders", b"x")
    assert (message.tag, list(message.keys), dict(message.properties)) == (None, [], {})
    assert message.wait_stored


def test_a_stored_message_shows_tag_and_keys_of_its_properties() -> None:
    stored = StoredMessage(
        QueueId("orders", "a", 3), QueueOffset(1), LogOffset(2), b"", {"TAGS": "t", "KEYS": "a  b"},
        0, 0, 0, "1.1.1.1:1", 0, "1.1.1.1:1", 0, 0, 91, 0,
    )  # fmt: skip
    assert (stored.topic, stored.tag, stored.keys) == ("orders", "t", ["a", "b"])
    stored.properties.clear()
    assert (stored.tag, stored.keys) == (None, [])
