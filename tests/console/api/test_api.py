"""The API as a part of another application, and by itself."""

from __future__ import annotations

import asyncio

from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from sprocket.console.api.api import Api
from sprocket.console.api.callers import KnownCallers
from sprocket.console.api.running import ApiSettings
from sprocket.testing.cluster import Cluster
from sprocket.testing.loop import simulate
from sprocket.testing.network import Network
from tests.console.parts import Browserless


def test_its_routes_serve_inside_an_application_that_has_others() -> None:
    async def main(network: Network) -> None:
        cluster = Cluster(network)
        await cluster.start()
        api = Api(ApiSettings(cluster.nameserver_addresses), KnownCallers(None))

        async def page(request: object) -> PlainTextResponse:
            return PlainTextResponse("the console")

        app = Starlette(routes=[*api.routes, Route("/{rest:path}", page)])
        # Opened and closed in two tasks, as a framework's events are.
        await asyncio.create_task(api.__aenter__())
        ask = Browserless(app)
        assert (await ask("GET", "/api/v1/topics")).status == 200
        assert (await ask("GET", "/anything")).body == b"the console"
        assert (await ask("GET", "/api/")).headers["content-type"].startswith("text/html")
        listing = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
        accept = "application/json, text/event-stream"
        assert (await ask("POST", "/mcp", listing, accept=accept)).value["result"]["tools"]
        await asyncio.create_task(api.__aexit__(None, None, None))

    simulate(main)
