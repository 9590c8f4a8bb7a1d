"""What headers say about a call."""

from __future__ import annotations

import pytest

from sprocket.proxy.http2.call_form import Unary, call_form, seconds_in
from sprocket.proxy.http2.header_blocks import HeaderBlock
from sprocket.proxy.http2.status import GrpcError, GrpcStatus
from tests.proxy.http2.kit import request_headers

METHODS = {"/echo.Echo/Unary": Unary(lambda call, request: request)}


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("1S", 1.0), ("2H", 7200.0), ("3M", 180.0), ("500m", 0.5), ("10u", 1e-5), ("99999999n", 0.1)],
)
def test_timeouts(text: str, seconds: float) -> None:
    assert seconds_in(text) == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["", "S", "1", "1s", "-1S", "1.5S", "999999999S", "²S", " 1S"])
def test_what_is_no_timeout(text: str) -> None:
    with pytest.raises(GrpcError, match="grpc-timeout"):
        seconds_in(text)


def test_a_form_is_kept_with_its_headers() -> None:
    headers = HeaderBlock(request_headers(grpc_timeout="3S"))
    form = call_form(headers, METHODS)
    assert headers.kept is form
    assert (form.method, form.seconds) == (METHODS["/echo.Echo/Unary"], 3.0)
    assert (form.error, form.http_status) == (None, 0)


def test_what_is_no_call() -> None:
    headers = dict(request_headers())
    get = HeaderBlock(list({**headers, ":method": "GET"}.items()))
    page = HeaderBlock(list({**headers, "content-type": "text/html"}.items()))
    assert call_form(get, METHODS).http_status == 405
    assert call_form(page, METHODS).http_status == 415


def test_calls_that_are_refused() -> None:
    for headers in (request_headers("/echo.Echo/No"), request_headers(grpc_encoding="snappy")):
        error = call_form(HeaderBlock(headers), METHODS).error
        assert error is not None
        assert error.status == GrpcStatus.UNIMPLEMENTED
