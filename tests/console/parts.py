"""The API of a cluster in virtual time, called as a web server calls it, without sockets."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, NamedTuple
from urllib.parse import unquote

import pytest

pytest.importorskip("mcp", reason="the API needs the extra mcp")

from sprocket.admin.caller import Caller
from sprocket.console.api.api import Api, api_app
from sprocket.console.api.callers import CallerEntry, KnownCallers
from sprocket.console.api.running import ApiSettings
from sprocket.console.operations.declare import OperationEnvironment
from sprocket.console.operations.table import OPERATIONS
from sprocket.message.ids import UniqueIds
from sprocket.remoting.pool import Pool
from sprocket.testing.clock import LoopClock
from sprocket.testing.cluster import Cluster
from sprocket.testing.loop import simulate
from sprocket.testing.network import Network


class Answer(NamedTuple):
    """An answer of the API."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def value(self) -> Any:
        """The body's JSON."""
        return json.loads(self.body)


class Browserless:
    """Sends requests to an ASGI application."""

    def __init__(self, app: Any) -> None:
        self._app = app

    async def __call__(
        self,
        method: str,
        target: str,
        body: bytes | Mapping[str, Any] | None = None,
        **headers: str,
    ) -> Answer:
        """Sends one request; `_` in the names of headers stands for `-`."""
        path, _, query = target.partition("?")
        sent = {"host": "localhost"}
        if body is not None and not isinstance(body, bytes):
            body = json.dumps(body).encode()
            sent["content-type"] = "application/json"
        sent |= {name.replace("_", "-"): value for name, value in headers.items()}
        scope = {
            "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "scheme": "http",
            "method": method, "path": unquote(path), "raw_path": path.encode(),
            "query_string": query.encode(), "root_path": "", "client": ("127.0.0.1", 5),
            "server": ("127.0.0.1", 80),
            "headers": [(n.encode(), v.encode("latin-1")) for n, v in sent.items()],
        }  # fmt: skip
        given = [{"type": "http.request", "body": body or b"", "more_body": False}]
        got: list[dict[str, Any]] = []

        async def receive() -> dict[str, Any]:
            return given.pop() if given else {"type": "http.disconnect"}

        async def send(message: dict[str, Any]) -> None:
            got.append(message)

        await self._app(scope, receive, send)
        start = next(each for each in got if each["type"] == "http.response.start")
        return Answer(
            start["status"],
            {name.decode(): value.decode() for name, value in start["headers"]},
            b"".join(each.get("body", b"") for each in got),
        )


def served(
    test: Callable[[Browserless, Cluster], Awaitable[None]],
    *,
    brokers: int = 1,
    entries: list[CallerEntry] | None = None,
    may_change: bool = True,
    broker: Any = None,
    **settings: Any,
) -> None:
    """Runs a test with the API of some brokers."""

    async def main(network: Network) -> None:
        cluster = Cluster(network, 0, brokers=brokers, broker=broker)
        await cluster.start()
        made = ApiSettings(cluster.nameserver_addresses, may_change=may_change, **settings)
        clock = LoopClock()
        async with Api(made, KnownCallers(entries), now_ms=clock.now_ms) as api:
            await test(Browserless(api_app(api)), cluster)

    simulate(main)


class Operating:
    """Does operations by their names, with parameters by theirs."""

    def __init__(self, given: OperationEnvironment) -> None:
        self.given = given

    async def __call__(self, operation_name: str, /, **asked: Any) -> Any:
        operation = OPERATIONS[operation_name]
        return await operation.run(self.given, operation.parameters(**asked))


def operated(
    test: Callable[[Operating, Cluster], Awaitable[None]],
    *,
    brokers: int = 1,
    broker: Any = None,
    signer: Any = None,
    **more: Any,
) -> None:
    """Runs a test that does operations at some brokers."""

    async def main(network: Network) -> None:
        cluster = Cluster(network, 0, brokers=brokers, broker=broker)
        await cluster.start()
        async with Pool(signer=signer) as pool:
            given = OperationEnvironment(
                caller=Caller(pool, cluster.nameserver_addresses),
                now_ms=LoopClock().now_ms,
                ids=UniqueIds(address=bytes(4), process=1, token=bytes(4)),
                **more,
            )
            await test(Operating(given), cluster)

    simulate(main)
