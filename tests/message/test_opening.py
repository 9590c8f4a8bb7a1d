"""Opened bodies are bounded together, and no message is lost or repeated by it."""

from __future__ import annotations

from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sprocket.message import opening
from sprocket.message.compression import COMPRESSED, Compression, compress, open_body
from sprocket.message.opening import Opening, OpeningStopped, unbounded
from sprocket.message.record import Draft, Encoder, scan, topic_part

V4 = bytes([127, 0, 0, 1, 0, 0, 0x2A, 0x9F])
_BODIES = st.binary(min_size=1, max_size=40)
_KINDS = st.sampled_from([None, *Compression])


def stored(offset: int, body: bytes, sys_flag: int) -> bytes:
    draft = Draft("orders", 0, body, b"", 0, 0, sys_flag, 0, V4)
    return Encoder(V4).encode(draft, topic_part(b"orders"), offset * 500, offset, 0)


@st.composite
def records(draw: st.DrawFn) -> list[bytes]:
    made = []
    for offset in range(draw(st.integers(0, 8))):
        body, kind = draw(_BODIES), draw(_KINDS)
        if kind is None:
            made.append(stored(offset, body, 0))
        else:
            is_right = draw(st.booleans())
            made.append(stored(offset, compress(body, kind) if is_right else body, kind.sys_flag))
    return made


@given(records(), st.integers(1, 60), st.integers(1, 9))
def test_whatever_the_bound_all_messages_come_once_and_in_order(
    made: list[bytes], bytes_max: int, pulled_max: int
) -> None:
    whole = list(scan(b"".join(made), opening=unbounded()))
    found = []
    at = 0
    while at < len(made):
        part = Opening(bytes_max)
        answer = made[at : at + pulled_max]
        some = list(scan(b"".join(answer), opening=part))
        assert some, "there is always progress"
        opened = [len(m.body) for m, raw in zip(some, answer, strict=False) if is_opened(m, raw)]
        assert sum(opened[:-1]) < bytes_max
        found += some
        at = at + len(answer) if part.stopped_at is None else part.stopped_at
    assert found == whole


def is_opened(message: object, raw: bytes) -> bool:
    (plain,) = scan(raw)
    return message.sys_flag != plain.sys_flag  # type: ignore[attr-defined]


def test_what_opens_too_far_counts_as_the_largest_body() -> None:
    bomb = compress(bytes(5000), Compression.ZSTD)
    flag = Compression.ZSTD.sys_flag
    part = Opening(4000)
    with (
        mock.patch.object(opening, "OPENED_BYTES_MAX", 4000),
        mock.patch.object(opening, "open_body", lambda body, kind: open_body(body, kind, 4000)),
    ):
        assert part.open(bomb, flag, 7) == (bomb, flag)
    with pytest.raises(OpeningStopped):
        part.open(compress(b"x", Compression.ZSTD), flag, 8)
    assert part.stopped_at == 8


def test_an_answer_whose_rest_cannot_be_asked_for_keeps_it_compressed() -> None:
    body = compress(b"x" * 100, Compression.ZLIB)
    records = b"".join(stored(n, body, Compression.ZLIB.sys_flag) for n in range(3))
    found = list(scan(records, opening=Opening(150, keeps_rest=True)))
    assert [bool(m.sys_flag & COMPRESSED) for m in found] == [False, False, True]
    assert [len(m.body) for m in found] == [100, 100, len(body)]
