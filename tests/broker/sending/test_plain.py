"""What most messages say, told at a glance."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sprocket.broker.sending.destination import SPECIAL
from sprocket.broker.sending.plain import PlainTexts
from sprocket.broker.sending.stamp import REWRITTEN
from sprocket.message.hashing import tag_code
from sprocket.message.properties import KEYS, PRIORITY, TAGS, UNIQUE_KEY, decode, encode

JAVA_LIKE = "KEYS\x01k1 k2\x02UNIQ_KEY\x01{}\x02WAIT\x01true\x02TAGS\x01paid\x02"


def test_a_plain_text_tells_keys_and_tag_the_first_time_and_again() -> None:
    texts = PlainTexts()
    for unique_key in ("A1", "A2", "A1"):
        found = texts.read(JAVA_LIKE.format(unique_key))
        assert found is not None
        assert found[0] == unique_key
        assert (found[1].keys, found[1].tag_code) == ("k1 k2", tag_code("paid"))
        assert found[1].properties["WAIT"] == "true"


@pytest.mark.parametrize("name", sorted(SPECIAL | REWRITTEN | {PRIORITY}))
def test_what_the_broker_changes_is_not_plain(name: str) -> None:
    texts = PlainTexts()
    text = encode({name: "1", UNIQUE_KEY: "A1"})
    assert texts.read(text) is None
    assert texts.read(encode({UNIQUE_KEY: "A1", name: "1"})) is None


@pytest.mark.parametrize(
    "text",
    [
        "",
        "WAIT\x01true\x02",
        "UNIQ_KEY\x01A1",
        "UNIQ_KEY\x01\x02",
        "XUNIQ_KEY\x01A1\x02",
        "WAIT\x01trueUNIQ_KEY\x01A1\x02",
        "UNIQ_KEY\x01A1\x02UNIQ_KEY\x01A2\x02",
        "UNIQ_KEY\x01A1\x02WAIT\x01\x02",
        "UNIQ_KEY\x01A1\x02WAIT\x02",
        "UNIQ_KEY\x01A1\x02WAIT\x01true",
    ],
)
def test_what_would_be_written_otherwise_is_not_plain(text: str) -> None:
    texts = PlainTexts()
    texts.read("UNIQ_KEY\x01A0\x02WAIT\x01true\x02")
    assert texts.read(text) is None
    assert texts.read(text) is None, "what was seen before changes nothing"


pieces = st.sampled_from(
    [
        "UNIQ_KEY",
        "WAIT",
        "TAGS",
        "KEYS",
        "DELAY",
        "CLUSTER",
        "a",
        "b",
        "\x01",
        "\x01",
        "\x02",
        "\x02",
    ]
)


@given(st.lists(st.lists(pieces, max_size=12).map("".join), max_size=6))
def test_whatever_was_read_before_a_plain_text_means_what_it_says(some: list[str]) -> None:
    texts = PlainTexts()
    for text in some:
        found = texts.read(text)
        if found is not None:
            properties = decode(text)
            assert encode(properties) == text
            assert (SPECIAL | REWRITTEN).isdisjoint(properties)
            assert found[1].keys == properties.get(KEYS, "")
            assert found[1].tag_code == tag_code(properties.get(TAGS))
            assert properties == {UNIQUE_KEY: found[0], **found[1].properties}


def test_memory_for_texts_is_bounded() -> None:
    texts = PlainTexts()
    for number in range(5000):
        assert texts.read(f"UNIQ_KEY\x01A\x02n\x01{number}\x02") is not None
    assert len(texts._known) <= 1024
