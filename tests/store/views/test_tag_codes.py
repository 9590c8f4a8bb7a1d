"""What queue entries hold for filters."""

from __future__ import annotations

from sprocket.message.hashing import tag_code
from sprocket.store.views.tag_codes import code_of

CODES = {"later": lambda stored_ms, properties: stored_ms + int(properties["after"])}


def code(topic: str = "orders", **properties: str) -> int:
    return code_of(CODES, topic, 1_000_000, properties)


def test_a_tag_gives_its_hash_and_none_gives_zero() -> None:
    assert code(TAGS="paid") == tag_code("paid")
    assert code(KEYS="k") == 0
    assert code() == 0


def test_a_topic_with_a_rule_of_its_own_gives_what_the_rule_says() -> None:
    assert code("later", after="5", TAGS="paid") == 1_000_005
    assert code("orders", after="5", TAGS="paid") == tag_code("paid")
