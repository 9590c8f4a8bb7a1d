"""Header blocks beside the library `hpack`: the same headers, and the same verdicts."""

from __future__ import annotations

import hpack
import pytest
from hpack.table import HeaderTable
from hypothesis import given, settings
from hypothesis import strategies as st

from sprocket.proxy.http2 import huffman
from sprocket.proxy.http2.faults import ConnectionFault
from sprocket.proxy.http2.field_decoder import FieldDecoder
from sprocket.proxy.http2.static_table import STATIC_TABLE
from tests.proxy.http2.kit import request_headers

MANY = 1 << 20
_TEXTS = st.text(st.characters(codec="ascii"), max_size=60)
_HEADERS = st.lists(
    st.tuples(
        st.sampled_from(["x", "te", ":path", "authorization", "x-mq-date-time", "y" * 40]), _TEXTS
    ),
    max_size=12,
)


def pairs(decoder: FieldDecoder, block: bytes) -> list[tuple[str, str]]:
    found = decoder.decode(block)
    assert found is not None
    return list(found.pairs)


def test_the_static_table_is_that_of_hpack() -> None:
    assert [(n.decode(), v.decode()) for n, v in HeaderTable.STATIC_TABLE] == list(STATIC_TABLE)


@settings(deadline=None)
@given(st.lists(st.tuples(_HEADERS, st.booleans(), st.sampled_from([None, 0, 100, 4096]))))
def test_blocks_of_another_encoder_are_read_as_they_were(
    blocks: list[tuple[list[tuple[str, str]], bool, int | None]],
) -> None:
    encoder, decoder = hpack.Encoder(), FieldDecoder(MANY)
    for headers, is_coded, size in blocks:
        if size is not None:
            encoder.header_table_size = size
        assert pairs(decoder, encoder.encode(headers, huffman=is_coded)) == headers


@settings(deadline=None, max_examples=300)
@given(st.lists(st.binary(max_size=24), max_size=4))
def test_any_bytes_get_the_verdict_of_hpack(blocks: list[bytes]) -> None:
    theirs, ours = hpack.Decoder(), FieldDecoder(MANY)
    for block in blocks:
        try:
            raw = theirs.decode(block, raw=True)
        except hpack.HPACKError:
            with pytest.raises(ConnectionFault):
                ours.decode(block)
            return
        assert pairs(ours, block) == [(n.decode("latin-1"), v.decode("latin-1")) for n, v in raw]


@settings(deadline=None)
@given(st.binary(max_size=100))
def test_huffman_reads_what_another_encoder_wrote(content: bytes) -> None:
    encoder = hpack.Encoder()
    assert huffman.decode(encoder.huffman_coder.encode(content)) == content


@pytest.mark.parametrize(
    "broken", [b"\xff\xff\xff\xff", b"\xff\xff\xff\xfc", b"\x00", b"\xf8\xff\xff"]
)
def test_huffman_refuses_bad_padding_and_the_end_symbol(broken: bytes) -> None:
    with pytest.raises(huffman.HuffmanError):
        huffman.decode(broken)


def test_a_block_that_repeats_is_the_same_object_until_the_table_changes() -> None:
    encoder, decoder = hpack.Encoder(), FieldDecoder(MANY)
    first = decoder.decode(encoder.encode(request_headers()))
    block = encoder.encode(request_headers())
    second, third = decoder.decode(block), decoder.decode(block)
    assert second is third
    assert second is not None
    assert first is not None
    assert list(second.pairs) == list(first.pairs)
    # The same bytes mean something else once the table has a newer entry.
    decoder.decode(encoder.encode([("x-new", "1")]))
    assert pairs(decoder, block) != request_headers()
    assert pairs(decoder, encoder.encode(request_headers())) == request_headers()


def test_a_small_block_of_many_bytes_is_refused_and_the_table_stays_right() -> None:
    encoder, decoder = hpack.Encoder(), FieldDecoder(5000)
    bomb = encoder.encode([("x", "y" * 1000)]) + b"\xbe" * 10_000
    assert decoder.decode(bomb) is None
    assert pairs(decoder, encoder.encode([("x", "y" * 1000)])) == [("x", "y" * 1000)]


@pytest.mark.parametrize(
    "block",
    [b"\x80", b"\xbe", b"\x00", b"\x00\x01", b"\x82\x20", b"\x3f\xff\x7f", b"\x7f" + b"\xff" * 9],
    ids=["nothing", "unknown", "no name", "cut", "late size", "size", "number"],
)
def test_broken_blocks_are_refused(block: bytes) -> None:
    with pytest.raises(ConnectionFault):
        FieldDecoder(MANY).decode(block)
