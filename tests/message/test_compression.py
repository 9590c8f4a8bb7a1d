"""Compressed bodies."""

from __future__ import annotations

import gzip
import zlib

import pytest

from sprocket.base.errors import CorruptRecord
from sprocket.message.compression import COMPRESSED, Compression, compress, is_compressed, open_body

BODY = bytes(range(256)) * 256


@pytest.mark.parametrize("kind", list(Compression))
def test_every_kind_opens_to_the_original(kind: Compression) -> None:
    packed = compress(BODY, kind)
    assert len(packed) < len(BODY)
    assert is_compressed(kind.sys_flag)
    assert open_body(packed, kind.sys_flag) == BODY


def test_the_bits_are_those_of_java() -> None:
    assert [kind.sys_flag for kind in Compression] == [0x101, 0x201, 0x301]
    assert compress(b"hello hello", Compression.ZLIB)[:1] == b"\x78"


def test_a_zlib_body_without_type_bits_is_opened() -> None:
    assert open_body(zlib.compress(BODY), COMPRESSED) == BODY


def test_gzip_and_raw_deflate_from_the_field_are_opened() -> None:
    raw = zlib.compressobj(wbits=-15)
    assert open_body(gzip.compress(BODY), 0x301) == BODY
    assert open_body(raw.compress(BODY) + raw.flush(), 0x301) == BODY


@pytest.mark.parametrize("kind", [Compression.LZ4, Compression.ZSTD])
def test_frames_that_follow_each_other_are_one_body(kind: Compression) -> None:
    first, second = compress(BODY, kind), compress(b"more", kind)
    assert open_body(first + second, kind.sys_flag) == BODY + b"more"
    many = compress(b"", kind) * 2_000 + second
    assert open_body(many, kind.sys_flag) == b"more"
    with pytest.raises(CorruptRecord, match="more than"):
        open_body(first + first, kind.sys_flag, len(BODY))
    for broken in (first + second[:-3], first + b"what is this"):
        with pytest.raises(CorruptRecord):
            open_body(broken, kind.sys_flag)


@pytest.mark.parametrize("kind", [4, 5, 6, 7])
def test_an_unknown_kind_is_named(kind: int) -> None:
    with pytest.raises(CorruptRecord, match=f"type {kind}"):
        open_body(b"", COMPRESSED | kind << 8)


@pytest.mark.parametrize("kind", list(Compression))
def test_a_broken_or_cut_body_is_refused(kind: Compression) -> None:
    packed = compress(BODY, kind)
    for broken in (b"", packed[: len(packed) // 2], b"\xff" * 40):
        with pytest.raises(CorruptRecord):
            open_body(broken, kind.sys_flag)


@pytest.mark.parametrize("kind", list(Compression))
def test_a_body_that_opens_to_too_much_is_refused(kind: Compression) -> None:
    bomb = compress(bytes(1 << 20), kind)
    assert len(open_body(bomb, kind.sys_flag, 1 << 20)) == 1 << 20
    with pytest.raises(CorruptRecord, match="more than"):
        open_body(bomb, kind.sys_flag, (1 << 20) - 1)


def test_blocks_of_lz4_stand_alone_since_java_opens_no_others() -> None:
    frame = compress(b"a long story " * 20_000, Compression.LZ4)
    assert frame[4] & 0x20, "the frame's flag for independent blocks"
