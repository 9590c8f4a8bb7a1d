"""Bytes of text files that people write."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as some

from sprocket.base.decoding import decode, decode_strictly, undecoded
from sprocket.base.errors import UsageError


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_a_byte_order_mark_is_no_part_of_the_text(encoding: str) -> None:
    assert decode("a=\u00e9\n".encode(encoding)) == "a=\u00e9\n"


@given(
    some.sampled_from([b"", b"\xff\xfe", b"\xfe\xff", b"\xef\xbb\xbf"]), some.binary(max_size=50)
)
def test_all_bytes_decode(mark: bytes, content: bytes) -> None:
    decode(mark + content)


def test_half_a_character_is_found() -> None:
    assert undecoded(decode("ab".encode("utf-16")[:-1])) == "byte 0xFF"


def test_bytes_of_another_encoding_are_found_where_they_matter() -> None:
    assert undecoded("caf\u00e9") is None
    assert undecoded(decode(b"caf\xe9")) == "byte 0xE9"
    assert decode_strictly(b"\xef\xbb\xbfx", "f.py") == "x"
    with pytest.raises(UsageError) as raised:
        decode_strictly(b"a\nb\xff", "f.py")
    assert str(raised.value) == "f.py:2: byte 0xFF is not UTF-8; save the file in UTF-8"
