"""Messages as rows and facts; what their senders wrote stays text."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec

from sprocket.console.operations.message_facts import MessageFacts
from sprocket.console.views import messages

MESSAGE = MessageFacts(
    topic="orders", broker="a", queue=3, offset=12_345, offset_id="7F", message_id="C0",
    tag="new", keys=["o-1"], retries=0, born_at=datetime.fromtimestamp(999, UTC),
    born_host="h:1", stored_at=datetime.fromtimestamp(940, UTC), properties={}, body_bytes=5,
    is_cut=False, body="hello",
)  # fmt: skip


def changed(**values: Any) -> MessageFacts:
    return msgspec.structs.replace(MESSAGE, **values)


def test_a_row_leads_to_its_message() -> None:
    (row,) = messages.message_rows([changed(offset_id="7F&x=<b>")], 1_000_000)
    assert row["id_link"] == "/message?id=7F%26x%3D%3Cb%3E"
    assert (row["offset_text"], row["size_text"], row["body"]) == ("12\u202f345", "5 B", "hello")
    assert row["stored_text"] == "1970-01-01 00:15:40.000"


def test_a_body_that_is_no_text_is_previewed_in_hex() -> None:
    binary = changed(body=None, body_base64="/wAB")
    assert messages.body_of(binary) == b"\xff\x00\x01"
    assert messages.preview(binary) == "ff 00 01"


def test_facts_show_what_cannot_be_seen() -> None:
    facts = messages.message_facts(changed(tag="a\u202eb", keys=[]), 1_000_000)
    assert (facts["Tag"], facts["Keys"]) == ("a\\u{202e}b", "none")
    assert facts["Stored"].endswith("1 min ago")
    (row,) = messages.property_rows({"<script>": "\x00"})
    assert (row["name"], row["value"]) == ("<script>", "\\u{0}")


def test_a_file_s_name_has_nothing_of_a_path() -> None:
    assert messages.file_name(changed(topic="../x", broker="a/b:c")) == ".._x-a_b_c-3-12345.bin"
