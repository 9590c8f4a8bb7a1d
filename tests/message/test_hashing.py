"""Java's text hash."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from sprocket.message.hashing import java_hash, tag_code


def plainly(text: str) -> int:
    """The definition, one UTF-16 unit after the other."""
    raw = text.encode("utf-16-be", "surrogatepass")
    hashed = 0
    for at in range(0, len(raw), 2):
        hashed = (31 * hashed + (raw[at] << 8 | raw[at + 1])) & 0xFFFFFFFF
    return hashed - (1 << 32) if hashed >= 1 << 31 else hashed


@given(st.text(max_size=60) | st.text(alphabet="aB9-", max_size=2000))
def test_every_text_hashes_as_in_java(text: str) -> None:
    assert java_hash(text) == plainly(text)


def test_a_character_outside_the_basic_plane_counts_as_two_units() -> None:
    assert java_hash("😀") == plainly("😀") == 1772899


def test_different_words_may_share_a_hash() -> None:
    assert java_hash("Aa") == java_hash("BB") == 2112


def test_no_tag_has_code_zero() -> None:
    assert tag_code(None) == tag_code("") == 0
