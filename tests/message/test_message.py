"""Messages as values."""

from __future__ import annotations

import pickle

from sprocket.message.message import Message, StoredMessage
from sprocket.message.offsets import LogOffset, QueueOffset
from sprocket.message.queue import QueueId


def stored_with(told: bytes | dict[str, str]) -> StoredMessage:
    return StoredMessage(
        QueueId("orders", "a", 3), QueueOffset(1), LogOffset(2), b"", told,
        0, 0, 0, "1.1.1.1:1", 0, "1.1.1.1:1", 0, 0, 91, 0,
    )  # fmt: skip


def test_a_message_needs_a_topic_and_a_body_only() -> None:
    message = Message("orders", b"x")
    assert (message.tag, list(message.keys), dict(message.properties)) == (None, [], {})
    assert message.wait_stored


def test_a_stored_message_shows_tag_and_keys_of_its_properties() -> None:
    stored = stored_with({"TAGS": "t", "KEYS": "a  b"})
    assert (stored.topic, stored.tag, stored.keys) == ("orders", "t", ["a", "b"])
    stored.properties.clear()
    assert (stored.tag, stored.keys) == (None, [])


def test_tag_keys_and_id_are_found_without_taking_the_other_properties_apart() -> None:
    text = b"n\x01v\x02KEYS\x01a b\x02TAGS\x01t\x02UNIQ_KEY\x01X1\x02"
    stored = stored_with(text)
    assert (stored.tag, stored.keys, stored.message_id) == ("t", ["a", "b"], "X1")
    assert stored.as_read is text
    assert stored.properties == {"n": "v", "KEYS": "a b", "TAGS": "t", "UNIQ_KEY": "X1"}
    stored.properties["TAGS"] = "u"
    assert (stored.tag, stored.value("n"), stored.value("m")) == ("u", "v", None)


def test_messages_are_equal_whether_or_not_their_properties_were_asked_for() -> None:
    asked = stored_with(b"TAGS\x01t\x02")
    assert asked.properties
    assert asked == stored_with(b"TAGS\x01t\x02") == stored_with({"TAGS": "t"})
    assert asked != stored_with(b"TAGS\x01u\x02")
    assert asked != {"TAGS": "t"}
    assert pickle.loads(pickle.dumps(stored_with(b"TAGS\x01t\x02"))) == asked
