"""The operations are tools, over HTTP and in the same process, by the SDK's own client."""

from __future__ import annotations

import json
from typing import Any

import pytest

pytest.importorskip("mcp", reason="MCP needs the extra mcp")

from mcp.client import Client

from sprocket import Standalone
from sprocket.console.api.callers import ANYBODY, ApiCaller, CallerEntry
from sprocket.console.api.mcp_tools import mcp_server, schema_of, tool_name
from sprocket.console.api.running import ApiSettings, OperationRunner
from sprocket.console.operations.table import OPERATIONS
from sprocket.testing.cluster import Cluster
from tests.console.parts import Browserless, served
from tests.support import run

CHANGES = [each for each in OPERATIONS.values() if each.is_change]


def used(test: Any, *, may_change: bool = True, who: ApiCaller = ANYBODY, mode: str) -> None:
    async def main() -> None:
        async with Standalone() as node:
            settings = ApiSettings([node.nameserver_address], may_change=may_change)
            async with OperationRunner(settings) as runner:
                server = mcp_server(runner, OPERATIONS, lambda request: who)
                async with Client(server, mode=mode) as client:
                    await test(client)

    run(main())


@pytest.mark.parametrize("mode", ["legacy", "auto"])
def test_an_assistant_looks_and_changes(mode: str) -> None:
    async def test(client: Client) -> None:
        tools = {each.name: each for each in (await client.list_tools()).tools}
        assert set(tools) == {tool_name(each) for each in OPERATIONS.values()}
        marks = tools["topics_delete"].annotations
        assert marks is not None
        assert (marks.read_only_hint, marks.destructive_hint) == (False, True)
        assert tools["topics_create"].input_schema["required"] == ["topic"]

        tried = await client.call_tool("topics_create", {"topic": "orders", "dry_run": True})
        assert not tried.is_error
        listed = await client.call_tool("topics_list", {})
        assert listed.structured_content == {"items": [], "total": 0, "next": None}
        await client.call_tool("topics_create", {"topic": "orders"})
        await client.call_tool("messages_send", {"topic": "orders", "body": "hello"})
        told = await client.call_tool("messages_tail", {"topic": "orders"})
        assert told.structured_content is not None
        assert told.structured_content["messages"][0]["body"] == "hello"
        assert json.loads(told.content[0].text) == told.structured_content  # type: ignore[union-attr]

        for name, arguments in (
            ("topics_describe", {"topic": "nothing"}),
            ("topics_describe", {}),
            ("topics_describe", {"topic": 7}),
            ("topics_describe", {"topic": "orders", "more": 1}),
            ("no_such_tool", {}),
        ):
            wrong = await client.call_tool(name, arguments)
            assert wrong.is_error, name
            assert json.loads(wrong.content[0].text)["status"] in (400, 404)  # type: ignore[union-attr]

    used(test, mode=mode)


@pytest.mark.parametrize(
    ("may_change", "who"), [(False, ANYBODY), (True, ApiCaller("reader", may_change=False))]
)
def test_no_tool_changes_anything_while_changes_are_off(may_change: bool, who: ApiCaller) -> None:
    async def test(client: Client) -> None:
        names = {each.name for each in (await client.list_tools()).tools}
        assert names == {tool_name(each) for each in OPERATIONS.values() if not each.is_change}
        for each in CHANGES:
            refused = await client.call_tool(tool_name(each), {"dry_run": True})
            assert refused.is_error
            assert json.loads(refused.content[0].text)["status"] == 403  # type: ignore[union-attr]

    used(test, may_change=may_change, who=who, mode="auto")


def call(method: str, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}


ACCEPT = {"accept": "application/json, text/event-stream"}


def test_over_http_the_caller_is_who_sends_the_request() -> None:
    token = "a-token-that-nobody-guesses"

    async def test(ask: Browserless, cluster: Cluster) -> None:
        assert (await ask("POST", "/mcp", call("tools/list"), **ACCEPT)).status == 401
        bearer = {"authorization": f"Bearer {token}"}
        answer = await ask("POST", "/mcp", call("tools/list"), **ACCEPT, **bearer)
        names = {each["name"] for each in answer.value["result"]["tools"]}
        assert "topics_list" in names
        assert "topics_create" not in names
        made = call("tools/call", name="topics_create", arguments={"topic": "orders"})
        answer = await ask("POST", "/mcp", made, **ACCEPT, **bearer)
        assert answer.value["result"]["isError"]
        assert (await ask("GET", "/mcp", **bearer)).status == 405

    served(test, entries=[CallerEntry(name="reader", token=token)])


BODIES = [b"", b"{", b"[]", b"\xff", b'{"jsonrpc":"2.0","id":1,"method":"x"}', b"[" * 10_000]


def test_what_is_no_request_of_the_protocol_is_answered() -> None:
    async def test(ask: Browserless, cluster: Cluster) -> None:
        for body in BODIES:
            answer = await ask("POST", "/mcp", body, content_type="application/json", **ACCEPT)
            assert 200 <= answer.status < 500
        assert (await ask("GET", "/api/v1/topics")).status == 200

    served(test)


def test_a_schema_is_an_object_at_its_root() -> None:
    for each in OPERATIONS.values():
        for kind in (each.parameters, each.result):
            assert schema_of(kind)["type"] == "object"
