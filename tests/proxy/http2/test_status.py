"""The end of a call, as a client reads it."""

from __future__ import annotations

from urllib.parse import unquote

import hpack
from hypothesis import given
from hypothesis import strategies as st

from sprocket.proxy.http2.status import (
    OK_TRAILERS,
    TEXT_BYTES_MAX,
    GrpcError,
    GrpcStatus,
    percent_encoded,
    trailers_of,
)


def test_trailers_are_status_and_text() -> None:
    assert hpack.Decoder().decode(OK_TRAILERS) == [("grpc-status", "0")]
    block = trailers_of(GrpcStatus.NOT_FOUND, "no such topic")
    assert hpack.Decoder().decode(block) == [
        ("grpc-status", "5"), ("grpc-message", "no such topic"),
    ]  # fmt: skip


@given(st.text(max_size=200))
def test_any_text_comes_back(text: str) -> None:
    encoded = percent_encoded(text)
    assert encoded.isascii()
    assert not set(encoded) - set(range(0x20, 0x7F))
    assert unquote(encoded.decode()) == text.encode("utf-8", "replace").decode()


def test_a_long_text_is_cut() -> None:
    assert len(percent_encoded("x" * 10_000)) == TEXT_BYTES_MAX


def test_an_error_says_its_status() -> None:
    assert str(GrpcError(GrpcStatus.UNAVAILABLE, "later")) == "UNAVAILABLE: later"
