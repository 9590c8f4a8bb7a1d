"""Hashes of keys, many at a time."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from sprocket.message.hashing import java_hash
from sprocket.store.views.key_hashes import KeyHashes

topics = st.sampled_from(["orders", "T", "%RETRY%g"])
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
ascii_texts = st.text(st.characters(codec="ascii"), max_size=140)


#: Found by search: with topic "T" its hash is the smallest number, -2^31.
SMALLEST = "ANTVRBUG"


def index_hash(topic: str, key: str) -> int:
    """As Java's index takes it: the hash without its sign, 0 where there is no such number."""
    hashed = abs(java_hash(f"{topic}#{key}"))
    return 0 if hashed == 1 << 31 else hashed


def of_all(hashes: KeyHashes, keys: list[tuple[str, str]]) -> list[int]:
    return hashes.of_all([topic for topic, _ in keys], [key.encode() for _, key in keys])


@given(st.lists(st.tuples(topics, ascii_texts | texts), max_size=20))
def test_many_keys_hash_as_each_does_alone(keys: list[tuple[str, str]]) -> None:
    hashes = KeyHashes()
    wanted = [index_hash(topic, key) for topic, key in keys]
    for _ in range(2):
        assert of_all(hashes, keys) == wanted
    assert [hashes.of(topic, key) for topic, key in keys] == wanted


def test_more_keys_than_go_side_by_side() -> None:
    keys = [("orders", f"C0A8000A1A2B18B4AAC21E5A4C3D{n:04X}") for n in range(3000)]
    assert of_all(KeyHashes(), keys) == [index_hash(*key) for key in keys]


def test_the_number_without_a_positive_becomes_zero() -> None:
    assert java_hash(f"T#{SMALLEST}") == -(1 << 31)
    assert KeyHashes().of("T", SMALLEST) == 0
    assert of_all(KeyHashes(), [("T", SMALLEST)]) == [0]


def test_topics_are_forgotten_before_they_fill_memory() -> None:
    hashes = KeyHashes()
    keys = [(f"orders{n}", f"{n:020d}" + "x" * 12) for n in range(10_000)]
    assert of_all(hashes, keys) == [index_hash(*key) for key in keys]
    assert len(hashes._topics) <= 4096


def test_bytes_that_are_no_text_have_a_hash_too() -> None:
    assert KeyHashes().of_all(["T"], [b"a\xff"]) == [index_hash("T", "a\ufffd")]
