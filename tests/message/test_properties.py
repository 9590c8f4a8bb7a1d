"""Properties and their text."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sprocket.base.errors import UsageError
from sprocket.message import properties
from sprocket.message.message import Message
from sprocket.message.properties import of_message

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


def test_a_message_goes_with_its_tag_keys_delay_and_its_own_properties() -> None:
    message = Message(
        "t", b"", tag="paid", keys=["a", "b"], properties={"n": "1"}, delay_level=3,
        wait_stored=False,
    )  # fmt: skip
    assert properties.of_message(message) == {
        "n": "1", "KEYS": "a b", "TAGS": "paid", "DELAY": "3", "WAIT": "false",
    }  # fmt: skip


@pytest.mark.parametrize(
    "message",
    [
        Message("t", b"", tag="a\x02KEYS\x01forged"),
        Message("t", b"", keys=["a\x01b"]),
        Message("t", b"", properties={"TAGS": "x"}),
    ],
)
def test_a_message_cannot_smuggle_properties_in(message: Message) -> None:
    with pytest.raises(UsageError):
        properties.of_message(message)


@pytest.mark.parametrize(("wish", "expected"), [
    ({"delay": 2}, {"TIMER_DELAY_MS": "2000"}),
    ({"delay": 0.0011}, {"TIMER_DELAY_MS": "2"}),
    ({"delay": 0.1 + 0.2}, {"TIMER_DELAY_MS": "300"}),
    ({"delay": timedelta(days=400)}, {"TIMER_DELAY_MS": "34560000000"}),
    ({"deliver_at": 1_893_456_000_000}, {"TIMER_DELIVER_MS": "1893456000000"}),
    ({"deliver_at": datetime(2030, 1, 1, 1, tzinfo=timezone(timedelta(hours=1)))},
     {"TIMER_DELIVER_MS": "1893456000000"}),
    ({"deliver_at": datetime(2030, 1, 1, 0, 0, 0, 1, UTC)}, {"TIMER_DELIVER_MS": "1893456000001"}),
])  # fmt: skip
def test_a_message_says_when_it_is_to_come_and_never_a_moment_before(
    wish: dict[str, Any], expected: dict[str, str]
) -> None:
    message = Message("T", b"x", **wish)
    assert message.waits
    assert of_message(message) == {**expected, "WAIT": "true"}


@pytest.mark.parametrize(("wish", "fault"), [
    ({"delay": -1}, "0 s to 1000 years"),
    ({"delay": float("nan")}, "0 s to 1000 years"),
    ({"delay": 1e15}, "0 s to 1000 years"),
    ({"deliver_at": datetime(2030, 1, 1)}, "no time zone"),
    ({"delay": 1, "delay_level": 1}, "exclude each other"),
    ({"delay": 1, "deliver_at": 5}, "exclude each other"),
])  # fmt: skip
def test_a_time_that_cannot_be_is_refused(wish: dict[str, Any], fault: str) -> None:
    with pytest.raises(UsageError, match=fault):
        of_message(Message("T", b"x", **wish))
