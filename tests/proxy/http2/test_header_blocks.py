"""Which headers a request may have, and the constant blocks of replies."""

from __future__ import annotations

import hpack
import pytest

from sprocket.proxy.http2.header_blocks import (
    NO_TABLE,
    REPLY_HEAD,
    HeaderBlock,
    literal,
    status_head,
)
from tests.proxy.http2.kit import request_headers


def test_blocks_of_replies_are_read_by_others() -> None:
    decoder = hpack.Decoder()
    assert decoder.decode(NO_TABLE + REPLY_HEAD) == [
        (":status", "200"), ("content-type", "application/grpc"),
    ]  # fmt: skip
    assert decoder.decode(status_head(415)) == [(":status", "415")]
    assert decoder.decode(literal(b"x", b"y" * 1000)) == [("x", "y" * 1000)]


def test_a_header_that_comes_several_times_is_joined() -> None:
    block = HeaderBlock([("a", "1"), ("b", "2"), ("a", "3")])
    assert block.fields == {"a": "1,3", "b": "2"}


def test_headers_of_a_call_have_no_fault() -> None:
    assert HeaderBlock(request_headers(x_mq="ü€".encode().decode("latin-1"))).fault is None


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ([(":path", "/again")], "a pseudo-header"),
        ([(":status", "200")], "a pseudo-header"),
        ([("Te", "trailers")], "no name"),
        ([("", "x")], "no name"),
        ([("a b", "x")], "no name"),
        ([("te", "gzip")], "HTTP/1"),
        ([("transfer-encoding", "chunked")], "HTTP/1"),
        ([("x", "a\r\nb")], "line break"),
        ([("x", "a\0b")], "line break"),
    ],
)
def test_headers_that_no_request_may_have(change: list[tuple[str, str]], fault: str) -> None:
    found = HeaderBlock(request_headers() + change).fault
    assert found is not None
    assert fault in found


@pytest.mark.parametrize("name", [":method", ":scheme", ":path"])
def test_pseudo_headers_that_are_needed(name: str) -> None:
    assert (
        HeaderBlock([each for each in request_headers() if each[0] != name]).fault == f"no {name}"
    )


def test_a_pseudo_header_comes_once() -> None:
    fault = HeaderBlock([(":path", "/again"), *request_headers()]).fault
    assert fault == "a pseudo-header comes twice, or follows another header"


def test_an_unknown_pseudo_header_and_an_empty_path() -> None:
    assert HeaderBlock([(":status", "200"), *request_headers()]).fault == "an unknown pseudo-header"
    assert HeaderBlock(request_headers("")).fault == "an empty path"
