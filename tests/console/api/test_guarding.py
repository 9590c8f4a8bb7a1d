"""Only requests that may are let through: by their origin, their sender and their size."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from sprocket.broker.config import BrokerConfig
from sprocket.console.api import signatures
from sprocket.console.api.callers import CallerEntry, KnownCallers
from sprocket.console.api.guarding import BODY_BYTES_MAX, ApiGuard
from sprocket.console.api.signatures import SignedRequest
from sprocket.console.operations.table import OPERATIONS
from sprocket.testing.clock import LoopClock
from sprocket.testing.cluster import Cluster
from sprocket.testing.loop import simulate
from tests.broker.accounts import CLOSED
from tests.console.parts import Browserless, served

TOKEN = "a-token-that-nobody-guesses"
READER = CallerEntry(name="reader", token=TOKEN)
ROOT = CallerEntry(name="root", access_key="root", secret_key="root's", may_change=True)


@pytest.mark.parametrize("path", ["/api/v1/topics", "/mcp"])
@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"sec_fetch_site": "cross-site"},
        {"sec_fetch_site": "same-site"},
    ],
)
def test_a_page_of_another_site_reaches_nothing(path: str, headers: dict[str, str]) -> None:
    async def test(ask: Browserless, cluster: Cluster) -> None:
        for more in ({}, {"cookie": f"session={TOKEN}"}):
            answer = await ask("POST", path, {"topic": "orders"}, **headers, **more)
            assert answer.status == 403
            assert "access-control-allow-origin" not in answer.headers
        assert (await ask("GET", "/api/v1/topics")).value["items"] == []

    served(test)


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:8088", "127.0.0.1.evil.example", ""]
)
def test_a_name_that_leads_here_from_elsewhere_reaches_nothing(host: str) -> None:
    async def test(ask: Browserless, cluster: Cluster) -> None:
        assert (await ask("GET", "/api/v1/topics", host=host)).status == 421
        assert (await ask("GET", "/api/v1/topics", host="[::1]:8088")).status == 200
        assert (await ask("GET", "/api/v1/topics", host="localhost:1")).status == 200

    served(test)


def test_a_cookie_is_nobody() -> None:
    async def test(ask: Browserless, cluster: Cluster) -> None:
        for cookie in (TOKEN, f"authorization=Bearer {TOKEN}", f"token={TOKEN}"):
            assert (await ask("GET", "/api/v1/topics", cookie=cookie)).status == 401

    served(test, entries=[READER])


def test_a_token_reads_what_it_may_and_changes_nothing() -> None:
    async def test(ask: Browserless, cluster: Cluster) -> None:
        bearer = f"Bearer {TOKEN}"
        answer = await ask("GET", "/api/v1/topics")
        assert (answer.status, answer.headers["www-authenticate"]) == (401, "Bearer")
        assert (await ask("GET", "/api/v1/topics", authorization=bearer)).status == 200
        refused = await ask("POST", "/api/v1/topics", {"topic": "a"}, authorization=bearer)
        assert refused.status == 403
        assert "may_change" in refused.value["setting"]
        for public in ("/api/", "/api/openapi.json"):
            assert (await ask("GET", public)).status == 200
        assert (await ask("GET", "/api")).status == 307

    served(test, entries=[READER])


def signed(method: str, target: str, body: bytes = b"", secret: str = "root's") -> str:
    request = SignedRequest(method, target, body)
    return signatures.authorization(request, "root", secret, LoopClock().now_ms())


def test_whoever_signs_asks_the_brokers_in_its_own_name() -> None:
    async def test(ask: Browserless, cluster: Cluster) -> None:
        target = "/api/v1/users?limit=5"
        header = signed("GET", target)
        answer = await ask("GET", target, authorization=header)
        assert [each["user"] for each in answer.value["items"]] == ["root"]
        assert (await ask("GET", target, authorization=header)).status == 401
        wrong = signed("GET", target, secret="guessed")
        assert (await ask("GET", target, authorization=wrong)).status == 401
        body = b'{"topic": "orders"}'
        header = signed("POST", "/api/v1/topics", body)
        made = await ask(
            "POST", "/api/v1/topics", body, authorization=header, content_type="application/json"
        )
        assert made.status == 200
        reader = await ask("GET", target, authorization=f"Bearer {TOKEN}")
        assert reader.status == 403
        assert "policies" in reader.value["setting"]

    served(test, entries=[ROOT, READER], broker=BrokerConfig(**CLOSED))


def test_connections_of_one_user_are_never_another_s() -> None:
    async def test(ask: Browserless, cluster: Cluster) -> None:
        target = "/api/v1/users"
        for _ in range(2):
            header = signed("GET", f"{target}?limit={_ + 1}")
            answer = await ask("GET", f"{target}?limit={_ + 1}", authorization=header)
            assert answer.status == 200
            assert (await ask("GET", target, authorization=f"Bearer {TOKEN}")).status == 403

    served(test, entries=[ROOT, READER], broker=BrokerConfig(**CLOSED))


def test_a_body_above_the_limit_is_refused() -> None:
    async def test(ask: Browserless, cluster: Cluster) -> None:
        body = b" " * (BODY_BYTES_MAX + 1)
        for path in ("/api/v1/topics", "/mcp"):
            answer = await ask("POST", path, body, content_type="application/json")
            assert answer.status == 413

    served(test)


class Upload:
    """A body that comes in pieces, one a second.

    Attributes:
        pieces: those that are left.
        read: how many were read.
    """

    def __init__(self, pieces: int) -> None:
        self.pieces = pieces
        self.read = 0

    async def receive(self) -> dict[str, Any]:
        """The next piece."""
        await asyncio.sleep(1)
        self.read += 1
        return {"type": "http.request", "body": b" " * 1024, "more_body": self.read < self.pieces}


async def _status(guard: ApiGuard, upload: Upload, authorization: str) -> int:
    got: list[Any] = []

    async def send(message: Any) -> None:
        got.append(message)

    headers = [(b"host", b"localhost"), (b"authorization", authorization.encode())]
    scope = {"type": "http", "method": "POST", "path": "/mcp", "headers": headers}
    await guard(scope, upload.receive, send)
    return int(got[0]["status"])


async def _done(scope: Any, receive: Any, send: Any) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": []})


@pytest.mark.parametrize(
    "authorization",
    [
        "Bearer of-nobody",
        f"{signatures.SCHEME} Credential=nobody, Date=1, Signature={'0' * 64}",
        "Basic cm9vdDpyb290",
    ],
)
def test_the_body_of_a_stranger_is_not_read(authorization: str) -> None:
    async def main(network: Any) -> None:
        guard = ApiGuard(_done, KnownCallers([READER, ROOT]), LoopClock().now_ms)
        upload = Upload(5)
        assert await _status(guard, upload, authorization) == 401
        assert upload.read == 0
        assert await _status(guard, upload, f"Bearer {TOKEN}") == 200
        assert upload.read == 5

    simulate(main)


def test_a_body_that_takes_too_long_is_given_up() -> None:
    async def main(network: Any) -> None:
        guard = ApiGuard(_done, KnownCallers([READER]), LoopClock().now_ms)
        assert await _status(guard, Upload(1_000), f"Bearer {TOKEN}") == 408
        assert asyncio.get_running_loop().time() < 60

    simulate(main)


def test_what_changes_something_is_refused_while_changes_are_off() -> None:
    async def test(ask: Browserless, cluster: Cluster) -> None:
        changes = [each for each in OPERATIONS.values() if each.is_change]
        assert len(changes) > 20
        for operation in changes:
            path = operation.path.format(**dict.fromkeys(operation.in_path, "orders"))
            for body in ({}, {"dry_run": True}):
                given = None if operation.method == "DELETE" else body
                answer = await ask(operation.method, f"/api/v1{path}", given)
                assert answer.status == 403, operation.name
                assert answer.value["setting"] == "--allow-changes"

    served(test, may_change=False)
