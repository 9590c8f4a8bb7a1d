"""Only our own pages may send requests and open WebSockets, and answers say what they may load."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from sprocket.console.web.entry_guard import EntryGuard


async def app(scope: Any, receive: Any, send: Any) -> None:
    if scope["type"] == "websocket":
        await send({"type": "websocket.accept"})
        return
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"hello"})


def sent(headers: dict[str, str], *, kind: str = "http", method: str = "GET") -> list[Any]:
    got: list[Any] = []

    async def receive() -> Any:
        return {"type": "websocket.connect"}

    async def send(message: Any) -> None:
        got.append(message)

    scope = {
        "type": kind, "method": method, "path": "/", "headers": [
            (name.encode(), value.encode()) for name, value in headers.items()
        ],
    }  # fmt: skip
    asyncio.run(EntryGuard(app, ["console.example.com"])(scope, receive, send))  # type: ignore[arg-type]
    return got


def status(headers: dict[str, str], method: str = "GET") -> int:
    return int(sent({"host": "localhost:8080"} | headers, method=method)[0]["status"])


@pytest.mark.parametrize(
    "host",
    ["localhost:8080", "127.0.0.1:8080", "[::1]:8080", "[::1]", "10.0.0.7", "Console.Example.com"],
)
def test_addresses_and_allowed_names_are_answered(host: str) -> None:
    assert status({"host": host}) == 200


@pytest.mark.parametrize("host", ["evil.example:8080", "127.0.0.1.evil.example", "", "a\x00b"])
def test_a_name_of_strangers_that_leads_here_is_refused(host: str) -> None:
    assert status({"host": host}) == 421


def test_a_page_of_another_site_may_link_here_and_do_nothing_else() -> None:
    cross = {"sec-fetch-site": "cross-site"}
    visit = cross | {"sec-fetch-mode": "navigate", "sec-fetch-dest": "document"}
    assert status(visit) == 200
    assert status(visit, "POST") == 403
    assert status(cross | {"sec-fetch-mode": "no-cors"}) == 403
    assert status(visit | {"sec-fetch-dest": "iframe"}) == 403
    assert status({"origin": "https://evil.example"}, "POST") == 403
    assert status({"origin": "http://localhost:8080"}, "POST") == 200


def test_a_websocket_of_another_site_is_closed() -> None:
    host = {"host": "localhost:8080"}
    (closed,) = sent(host | {"origin": "https://evil.example"}, kind="websocket")
    assert (closed["type"], closed["code"]) == ("websocket.close", 1008)
    (accepted,) = sent(host | {"origin": "http://localhost:8080"}, kind="websocket")
    assert accepted["type"] == "websocket.accept"


def test_answers_allow_nothing_from_elsewhere() -> None:
    headers = dict(sent({"host": "localhost"})[0]["headers"])
    policy = headers[b"content-security-policy"].decode()
    assert "default-src 'self'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "http" not in policy
    assert "*" not in policy
    assert headers[b"cache-control"] == b"no-store"
