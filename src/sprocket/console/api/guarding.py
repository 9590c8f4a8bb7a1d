"""What every request to the API passes: its size, where it comes from, and who sends it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, MutableMapping
from typing import Any

import msgspec
from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sprocket.base.errors import SprocketError
from sprocket.console.api.callers import ApiCaller, KnownCallers, is_of_this_machine, origins_fault
from sprocket.console.api.problems import CONTENT_TYPE, ApiRefusal, Problem, problem_of
from sprocket.console.api.signatures import SignedRequest

#: Bytes of a body: more than any operation takes.
BODY_BYTES_MAX = 4 << 20
#: Bytes of all bodies that are not complete yet, and seconds in which one has to be.
_UNFINISHED_BYTES_MAX, _BODY_SECONDS = 64 << 20, 30.0
#: Where the guard writes into a request's scope who sends it.
CALLER = "sprocket.caller"

#: No page of another site may show an answer, run it, or keep it.
_SAFE_HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; "
    "frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}


class ApiGuard:
    """Lets a request pass to an application, with who sends it, or answers that it may not.

    Cookies are not read, so a page of another site cannot use those of a browser.

    Args:
        app: what is guarded.
        callers: tells who sends a request.
        now_ms: the time, ms since 1970 UTC.
        is_public: whether a path is shown to everybody, such as the document.
    """

    def __init__(
        self,
        app: ASGIApp,
        callers: KnownCallers,
        now_ms: Callable[[], int],
        *,
        is_public: Callable[[Scope], bool] = lambda scope: False,
    ) -> None:
        self._app = app
        self._callers = callers
        self._now_ms = now_ms
        self._is_public = is_public
        self._unfinished_bytes = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serves one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        try:
            self._check(scope)
            body = b""
            scope[CALLER] = None
            if not self._is_public(scope):
                # Only now, so that strangers cannot fill the memory with bodies.
                found = await self._body_of(receive)
                if found is None:  # the client is gone
                    return
                body = found
                scope[CALLER] = self._caller(scope, body)
        except SprocketError as error:
            await problem_response(problem_of(error))(scope, receive, send)
            return
        await self._app(scope, _replayed(body, receive), _with_safe_headers(send))

    def _check(self, scope: Scope) -> None:
        """Checks what the headers say.

        Raises:
            ApiRefusal: the request may not pass, whatever its body is.
        """
        headers = Headers(scope=scope)
        host = headers.get("host", "")
        if fault := origins_fault(headers.items(), host):
            raise ApiRefusal(403, f"the request is refused: {fault}")
        # A name that a stranger's name server leads here makes a browser take this API for a part
        # of the stranger's page. A token or a signature is nothing that the browser has.
        if self._callers.is_open and not _is_here(host):
            raise ApiRefusal(
                421, "without callers only requests to localhost are answered",
                setting="--callers FILE",
            )  # fmt: skip
        if not self._is_public(scope):
            self._callers.check(headers.get("authorization"))

    def _caller(self, scope: Scope, body: bytes) -> ApiCaller:
        path = scope.get("raw_path") or scope["path"].encode()
        query = scope.get("query_string", b"")
        target = (path + b"?" + query if query else path).decode("latin-1")
        request = SignedRequest(scope["method"], target, body)
        header = Headers(scope=scope).get("authorization")
        return self._callers.caller(header, request, self._now_ms())

    async def _body_of(self, receive: Receive) -> bytes | None:
        """The whole body; None if the client goes before it is there.

        Raises:
            ApiRefusal: it is too large or too slow, or there are too many.
        """
        parts: list[bytes] = []
        size = 0
        try:
            async with asyncio.timeout(_BODY_SECONDS):
                while True:
                    message = await receive()
                    if message["type"] != "http.request":
                        return None
                    part = message.get("body", b"")
                    size += len(part)
                    self._unfinished_bytes += len(part)
                    if size > BODY_BYTES_MAX:
                        raise ApiRefusal(413, f"a body has at most {BODY_BYTES_MAX} bytes")
                    if self._unfinished_bytes > _UNFINISHED_BYTES_MAX:
                        raise ApiRefusal(503, "too many bodies are on their way: try later")
                    parts.append(part)
                    if not message.get("more_body", False):
                        return b"".join(parts)
        except TimeoutError:
            raise ApiRefusal(408, f"the body took longer than {_BODY_SECONDS:.0f} s") from None
        finally:
            self._unfinished_bytes -= size


def problem_response(problem: Problem) -> Response:
    """The answer for a problem."""
    headers = dict(_SAFE_HEADERS)
    if problem.status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    return Response(
        msgspec.json.encode(problem),
        status_code=problem.status,
        media_type=CONTENT_TYPE,
        headers=headers,
    )


def _is_here(host: str) -> bool:
    name = host.rpartition(":")[0] if not host.endswith("]") and ":" in host else host
    return is_of_this_machine(name.strip("[]").lower())


def _replayed(body: bytes, receive: Receive) -> Receive:
    """Gives the body that was read already, then whatever comes."""
    is_given = False

    async def replay() -> Message:
        nonlocal is_given
        if is_given:
            return await receive()
        is_given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return replay


def _with_safe_headers(send: Send) -> Send:
    async def sent(message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            headers = Headers(raw=message.get("headers", []))
            missing = [
                (name.lower().encode(), value.encode())
                for name, value in _SAFE_HEADERS.items()
                if name not in headers
            ]
            message["headers"] = [*message.get("headers", []), *missing]
        await send(message)

    return sent
