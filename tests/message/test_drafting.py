"""A stored message once more."""

from __future__ import annotations

from sprocket.message.drafting import copy_draft
from sprocket.message.hashing import tag_code
from sprocket.message.record import Draft, Encoder, parse, topic_part

HOST = b"\x7f\x00\x00\x01\x00\x00\x2a\x9f"


def test_the_copy_has_another_place_and_what_its_properties_say_now() -> None:
    first = Draft(
        "orders", 3, b"body", b"TAGS\x01old\x02", 0, 7, 0x8, 11, HOST,
        reconsume_times=2, prepared_offset=99,
    )  # fmt: skip
    raw = Encoder(HOST).encode(
        first, topic_part(b"orders"), log_offset=5, queue_offset=6, stored_ms=8
    )
    now = {"TAGS": "new", "KEYS": "k l", "UNIQ_KEY": "u"}
    copy = copy_draft(parse(raw), now, "elsewhere", queue_number=1)
    assert (copy.topic, copy.queue_number, bytes(copy.body)) == ("elsewhere", 1, b"body")
    assert copy.properties == b"TAGS\x01new\x02KEYS\x01k l\x02UNIQ_KEY\x01u\x02"
    assert (copy.tag_code, copy.keys, copy.unique_key) == (tag_code("new"), "k l", "u")
    assert (copy.flag, copy.sys_flag, copy.born_ms, copy.born_host) == (7, 0x8, 11, HOST)
    assert (copy.reconsume_times, copy.prepared_offset) == (2, 0)
