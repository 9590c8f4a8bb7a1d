"""What every request to the console passes: where it comes from, and safe headers for its answer.

A page of another site can have a browser send requests here, and open a WebSocket, with our cookie.
It cannot change the headers `Origin`, `Sec-Fetch-Site` and `Host`, which the browser writes.
"""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Iterable, MutableMapping
from typing import Any

from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from sprocket.console.api.callers import origins_fault

#: Nothing is loaded from elsewhere or sent elsewhere, and no other page shows ours. NiceGUI's pages
#: contain scripts in the page, and Vue compiles its templates in the browser.
_POLICY = (
    "default-src 'self'; script-src 'self' 'unsafe-inline' 'unsafe-eval'; "
    "style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; font-src 'self' data:; "
    "connect-src 'self'; object-src 'none'; base-uri 'none'; form-action 'self'; "
    "frame-src 'none'; frame-ancestors 'none'"
)
_SAFE_HEADERS = {
    "content-security-policy": _POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "x-frame-options": "DENY",
    "cross-origin-opener-policy": "same-origin",
    "permissions-policy": "camera=(), microphone=(), geolocation=()",
}


class EntryGuard:
    """Lets requests and WebSockets of our own pages pass.

    Args:
        app: what is guarded.
        host_names: names by which browsers may call the console.
    """

    def __init__(self, app: ASGIApp, host_names: Iterable[str] = ()) -> None:
        self._app = app
        self._names = {"localhost", socket.gethostname().lower()} | {
            each.lower() for each in host_names
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serves one request, or one WebSocket."""
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        fault, status = self._fault(scope)
        if fault is None:
            await self._app(scope, receive, _with_safe_headers(send))
        elif scope["type"] == "websocket":
            await receive()
            await send({"type": "websocket.close", "code": 1008, "reason": fault[:120]})
        else:
            refusal = PlainTextResponse(f"The console refuses this: {fault}.\n", status)
            await refusal(scope, receive, _with_safe_headers(send))

    def _fault(self, scope: Scope) -> tuple[str | None, int]:
        headers = Headers(scope=scope)
        host = headers.get("host", "")
        # A name that a stranger's name server leads here makes a browser take the console for a
        # part of the stranger's page. An address has no such name.
        if not self._is_ours(host):
            return f"it is for the host {host[:100]!r}: --host-name allows a name", 421
        # A link from another site may lead to a page; nothing else of another site may come here.
        is_visit = (
            scope["type"] == "http"
            and scope["method"] in ("GET", "HEAD")
            and headers.get("sec-fetch-mode") == "navigate"
            and headers.get("sec-fetch-dest") == "document"
        )
        if is_visit:
            return None, 200
        fault = origins_fault(headers.items(), host)
        return (None, 200) if fault is None else (fault, 403)

    def _is_ours(self, host: str) -> bool:
        name = host.rpartition(":")[0] if ":" in host and not host.endswith("]") else host
        name = name.lower()
        if name in self._names:
            return True
        try:
            ipaddress.ip_address(name.strip("[]"))
        except ValueError:
            return False
        return True


def _with_safe_headers(send: Send) -> Send:
    async def sent(message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            headers = Headers(raw=message.get("headers", []))
            more = [
                (name.encode(), value.encode())
                for name, value in _SAFE_HEADERS.items()
                if name not in headers
            ]
            if "cache-control" not in headers:
                more.append((b"cache-control", b"no-store"))
            message["headers"] = [*message.get("headers", []), *more]
        await send(message)

    return sent
