"""Numbers stay what was sent, and what is no JSON is refused."""

from __future__ import annotations

import contextlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sprocket.spark.pipelines.changes.json_values import (
    NumberText,
    UnfitMessage,
    parsed,
    text_of,
    whole_number,
)

_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@pytest.mark.parametrize("number", ["0.10", "12345678901234567890.00", "1e400", "-0", "1" * 5000])
def test_a_number_stays_the_text_that_was_sent(number: str) -> None:
    found = parsed(f'{{"n": {number}, "l": [{number}]}}'.encode())
    assert found["n"] == number
    assert isinstance(found["n"], NumberText)
    assert text_of(found) == f'{{"n":{number},"l":[{number}]}}'


@given(_VALUES)
def test_what_has_parts_becomes_json_of_the_same_value(value: object) -> None:
    text = text_of(parsed(json.dumps([value])))
    assert text is not None
    assert json.loads(text) == [value]


@pytest.mark.parametrize(
    "body", [b"", b"{", b"\xff", b"NaN", b'{"a": Infinity}', b"[" * 100_000, b'{"a": 1} x']
)
def test_what_is_no_json_is_refused(body: bytes) -> None:
    with pytest.raises(UnfitMessage, match="no JSON"):
        parsed(body)


@given(st.binary())
def test_no_bytes_end_in_another_error(body: bytes) -> None:
    with contextlib.suppress(UnfitMessage):
        assert text_of(parsed(body)) is None or body.strip() != b"null"


def test_whole_numbers_are_bounded() -> None:
    assert whole_number(NumberText("-12")) == -12
    for other in ("12", NumberText("1.5"), NumberText("9" * 20), NumberText("-"), None, True):
        assert whole_number(other) is None
