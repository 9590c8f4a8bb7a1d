"""Batches."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sprocket.base.errors import LocalProtocolError, RemoteProtocolError
from sprocket.message.batch import BatchedMessage, decode, encode

parts = st.lists(
    st.builds(
        BatchedMessage,
        st.integers(-(2**31), 2**31 - 1),
        st.binary(max_size=40),
        st.text(st.characters(exclude_categories=["Cs"]), max_size=20),
    ),
    max_size=6,
)


@given(parts)
def test_messages_come_back_as_they_were(given_parts: list[BatchedMessage]) -> None:
    assert [(p.flag, bytes(p.body), p.properties) for p in decode(encode(given_parts))] == [
        (p.flag, p.body, p.properties) for p in given_parts
    ]


@given(st.binary(max_size=80))
def test_garbage_is_read_or_refused_and_nothing_else(raw: bytes) -> None:
    try:
        found = decode(raw)
    except RemoteProtocolError:
        return
    assert sum(len(p.body) for p in found) <= len(raw)


@given(parts.filter(bool), st.data())
def test_a_batch_cut_anywhere_inside_a_message_is_refused(
    given_parts: list[BatchedMessage], data: st.DataObject
) -> None:
    whole = encode(given_parts)
    last = len(encode(given_parts[-1:]))
    cut = data.draw(st.integers(len(whole) - last + 1, len(whole) - 1))
    with pytest.raises(RemoteProtocolError):
        decode(whole[:cut])


def test_properties_that_wrap_the_length_are_refused() -> None:
    encode([BatchedMessage(0, b"", "x" * 32767)])
    with pytest.raises(LocalProtocolError, match="32768"):
        encode([BatchedMessage(0, b"", "x" * 32768)])


def test_bodies_are_not_copied() -> None:
    raw = bytearray(encode([BatchedMessage(0, b"abc", "")]))
    (part,) = decode(raw)
    raw[20:23] = b"xyz"
    assert bytes(part.body) == b"xyz"
