"""What the messages of a batch say, told at a glance."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sprocket.broker.sending.destination import SPECIAL
from sprocket.broker.sending.plain import PlainTexts
from sprocket.broker.sending.plain_batches import PlainBatches
from sprocket.broker.sending.stamp import REWRITTEN
from sprocket.message.hashing import tag_code
from sprocket.message.properties import KEYS, PRIORITY, TAGS, UNIQUE_KEY, decode, encode

JAVA_LIKE = "KEYS\x01{}\x02UNIQ_KEY\x01{}\x02WAIT\x01true\x02TAGS\x01paid\x02"

pieces = st.sampled_from(
    [
        "UNIQ_KEY\x01K\x02", "UNIQ_KEY\x01K\x02", "UNIQ_KEY\x01L\x02", "UNIQ_KEY\x01\x02",
        "UNIQ_KEY\x01größe\x02", "KEYS\x01k\x02", "KEYS\x01l\x02", "KEYS\x01\x02",
        "KEYS\x01UNIQ_KEY\x01m\x02", "UNIQ_KEY\x01KEYS\x01m\x02", "KEYS", "UNIQ_KEY",
        "WAIT\x01true\x02", "TAGS\x01t\x02", "TAGS\x01ü\x02", "DELAY\x011\x02", "a\x01b\x02", "a",
        "\x01", "\x02", "CLUSTER\x01c\x02", "aKEYS\x01k\x02", "\udce4",
    ]
)  # fmt: skip
texts = st.lists(pieces, max_size=5).map(
    lambda some: "".join(some).encode("utf-8", "surrogateescape")
)
#: Of one form, as one sender writes them.
like = st.tuples(
    texts, st.lists(st.sampled_from([b"K", b"L", b"\x02"]), min_size=1, max_size=4)
).map(lambda each: [each[0].replace(b"K\x02", key + b"\x02") for key in each[1]])


@given(st.lists(st.lists(texts, min_size=1, max_size=4) | like, min_size=1, max_size=4))
@example([[b"UNIQ_KEY\x01K\x02", b"UNIQ_KEY\x01\x02\x02"]])
@example([[b"KEYS\x01k\x02UNIQ_KEY\x01K\x02", b"KEYS\x01\x02\x02UNIQ_KEY\x01K\x02"]])
def test_whatever_was_read_before_plain_batches_mean_what_they_say(
    batches: list[list[bytes]],
) -> None:
    reader = PlainBatches(PlainTexts())
    for batch in batches:
        found = reader.read(batch)
        if found is None:
            continue
        for place, text in enumerate(batch):
            properties = decode(text.decode("utf-8", "replace"))
            assert found.texts[place] == encode(properties).encode(), "it is stored as it came"
            assert (SPECIAL | REWRITTEN | {PRIORITY}).isdisjoint(properties)
            assert found.unique_keys[place].decode() == properties[UNIQUE_KEY]
            assert found.keys[place] == properties.get(KEYS, "")
            assert found.tag_codes[place] == tag_code(properties.get(TAGS))


@pytest.mark.parametrize("words", [["k1", "k2", "k3"], ["k", "longer", "k l"], ["k1", "k2", "ü"]])
@pytest.mark.parametrize("end", ["", "\x02"])
def test_most_batches_are_plain(words: list[str], end: str) -> None:
    reader = PlainBatches(PlainTexts())
    batch = [JAVA_LIKE.format(word, f"U{n}")[:-1] + end for n, word in enumerate(words)]
    found = reader.read([text.encode() for text in batch])
    assert found is not None
    assert (found.keys, found.unique_keys) == (words, [b"U0", b"U1", b"U2"])
    assert list(found.texts) == [text.rstrip("\x02").encode() + b"\x02" for text in batch]


@pytest.mark.parametrize("name", sorted(SPECIAL | REWRITTEN | {PRIORITY}))
def test_a_batch_with_one_message_that_the_broker_changes_is_not_plain(name: str) -> None:
    good, bad = encode({UNIQUE_KEY: "A"}), encode({UNIQUE_KEY: "A", name: "1"})
    reader = PlainBatches(PlainTexts())
    for batch in ([good, bad], [bad, good], [bad, bad]):
        assert reader.read([text.encode() for text in batch]) is None


def test_memory_for_texts_is_bounded() -> None:
    reader = PlainBatches(PlainTexts())
    for number in range(3000):
        assert reader.read([f"UNIQ_KEY\x01A\x02n\x01{number}\x02".encode()]) is not None
    assert len(reader._known) <= 1024
