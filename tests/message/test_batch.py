"""Batches."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sprocket.base.errors import LocalProtocolError, RemoteProtocolError
from sprocket.message.batch import BatchedMessage, columns, decode, encode

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


alike = st.tuples(st.integers(0, 30), st.integers(0, 20), st.integers(1, 6)).flatmap(
    lambda sizes: st.lists(
        st.builds(
            BatchedMessage,
            st.integers(-(2**31), 2**31 - 1),
            st.binary(min_size=sizes[0], max_size=sizes[0]),
            st.text("ab", min_size=sizes[1], max_size=sizes[1]),
        ),
        min_size=sizes[2],
        max_size=sizes[2],
    )
)


@given(parts.filter(bool) | alike)
def test_the_columns_of_a_batch_are_what_its_messages_say(
    given_parts: list[BatchedMessage],
) -> None:
    found = columns(encode(given_parts), count_max=10)
    assert found is not None
    assert list(zip(*found, strict=True)) == [
        (p.flag, p.body, p.properties.encode()) for p in given_parts
    ]


@given(st.binary(max_size=80) | parts.map(encode).flatmap(lambda raw: st.just(raw[:-1])))
def test_columns_are_found_where_the_messages_are_and_nowhere_else(raw: bytes) -> None:
    try:
        wanted = decode(raw)
    except RemoteProtocolError:
        assert columns(raw, count_max=10) is None
        return
    found = columns(raw, count_max=10)
    assert (found is not None) == bool(wanted)
    if found is not None:
        assert list(found.bodies) == [bytes(p.body) for p in wanted]
        assert [text.decode("utf-8", "replace") for text in found.properties] == [
            p.properties for p in wanted
        ]


@given(alike, st.data())
def test_wrong_lengths_in_a_batch_of_like_messages_are_seen(
    given_parts: list[BatchedMessage], data: st.DataObject
) -> None:
    raw = bytearray(encode(given_parts))
    at = data.draw(st.integers(0, len(raw) - 1))
    raw[at] = data.draw(st.integers(0, 255))
    try:
        wanted = decode(bytes(raw))
    except RemoteProtocolError:
        assert columns(bytes(raw), count_max=10) is None
    else:
        found = columns(bytes(raw), count_max=10)
        assert found is not None
        assert list(found.bodies) == [bytes(p.body) for p in wanted]


def test_more_messages_than_may_be_have_no_columns() -> None:
    for more in (b"", b"longer"):
        some = [BatchedMessage(0, b"x", "")] * 10 + [BatchedMessage(0, b"x" + more, "")]
        assert columns(encode(some), count_max=10) is None
        assert columns(encode(some), count_max=11) is not None
