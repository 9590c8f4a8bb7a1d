from __future__ import annotations

import contextlib
from enum import IntEnum

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sprocket.base.errors import RemoteProtocolError
from sprocket.protocol import fields
from sprocket.protocol.command import Header, Int, Long


class Sample(Header, kw_only=True):
    some_name: str
    count: Int
    at_ms: Long = 0
    is_good: bool = False
    maybe: str | None = None
    maybe_count: Int | None = None


samples = st.builds(
    Sample,
    some_name=st.text(),
    count=st.integers(-(2**31), 2**31 - 1),
    at_ms=st.integers(-(2**63), 2**63 - 1),
    is_good=st.booleans(),
    maybe=st.none() | st.text(),
    maybe_count=st.none() | st.integers(-(2**31), 2**31 - 1),
)


@given(samples)
def test_what_was_written_is_read(sample: Sample) -> None:
    assert fields.from_texts(fields.to_texts(sample), Sample) == sample


def test_fields_without_value_are_left_out() -> None:
    texts = fields.to_texts(Sample(some_name="", count=0))
    assert texts == {"someName": "", "count": "0", "atMs": "0", "isGood": "false"}


def test_kinds_of_numbers_are_written_as_numbers() -> None:
    class Level(IntEnum):
        HIGH = 3

    assert fields.to_texts(Sample(some_name="", count=Level.HIGH))["count"] == "3"


@given(
    st.dictionaries(st.sampled_from(["someName", "count", "atMs", "isGood", "maybe"]), st.text())
)
def test_any_texts_are_read_or_refused_with_a_name(texts: dict[str, str]) -> None:
    refusal = ""
    try:
        assert fields.from_texts(texts, Sample).some_name == texts["someName"]
    except RemoteProtocolError as error:
        refusal = str(error)
    assert refusal == "" or "the custom field <" in refusal


@given(st.binary(max_size=64))
def test_any_bytes_are_fields_or_refused(raw: bytes) -> None:
    with contextlib.suppress(RemoteProtocolError):
        assert isinstance(fields.texts_in_json(raw), dict)


def test_texts_are_unescaped() -> None:
    raw = b'{"a":"\\u0001\\"\\n","b":1}'
    assert fields.texts_in_json(raw) == {"a": '\x01"\n', "b": "1"}


def test_a_number_outside_of_its_type_is_refused() -> None:
    with pytest.raises(RemoteProtocolError, match="<atMs>"):
        fields.from_texts({"someName": "", "count": "1", "atMs": str(2**63)}, Sample)
