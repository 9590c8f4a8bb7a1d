"""Properties and their text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sprocket.base.errors import UsageError
from sprocket.message import properties

clean = st.text(
    st.characters(exclude_characters="\x01\x02", exclude_categories=["Cs"]), min_size=1, max_size=12
)


def as_java_reads(text: str) -> dict[str, str]:
    """Piece by piece: a name and a value, both not empty, parted by the first U+0001."""
    found = {}
    for piece in text.split("\x02"):
        name, separator, value = piece.partition("\x01")
        if name and separator and value:
            found[name] = value
    return found


@given(st.dictionaries(clean, clean))
def test_properties_come_back_as_they_were(given_ones: dict[str, str]) -> None:
    assert properties.decode(properties.encode(given_ones)) == given_ones


@given(st.text(alphabet="ab\x01\x02", max_size=24))
def test_any_text_reads_as_java_reads_it(text: str) -> None:
    assert properties.decode(text) == as_java_reads(text)


def test_the_order_of_the_map_is_kept_and_each_pair_ends_with_a_separator() -> None:
    assert properties.encode({"b": "1", "a": "2"}) == "b\x011\x02a\x012\x02"


def test_a_missing_last_separator_makes_no_difference() -> None:
    assert properties.decode("TAGS\x01A\x02KEYS\x01k") == {"TAGS": "A", "KEYS": "k"}


def test_bytes_that_are_no_text_do_not_stop_reading() -> None:
    assert properties.decode_bytes(b"a\x01\xff\x02b\x01c\x02") == {"a": "�", "b": "c"}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("", "v"), ("n", ""), ("n\x01", "v"), ("n\x02", "v"), ("n", "x\x02TAGS\x01forged"),
        ("n", "a\x01b"), ("TAGS", "v"), ("DELAY", "3"), ("TRAN_MSG", "true"), ("UNIQ_KEY", "x"),
    ],
)  # fmt: skip
def test_a_user_property_that_could_become_another_is_refused(name: str, value: str) -> None:
    with pytest.raises(UsageError):
        properties.check_user_property(name, value)


def test_a_user_property_may_be_any_other_text() -> None:
    properties.check_user_property("Stadt", "Köln-中文 = ☺")
