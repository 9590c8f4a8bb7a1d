"""Requests of HTTP reach the operations, and whatever they say gets an answer that says why."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sprocket.console.api.openapi import VERSION_PATH
from sprocket.console.operations.declare import Operation
from sprocket.console.operations.table import OPERATIONS
from sprocket.testing.cluster import Cluster
from tests.console.parts import Browserless, served


def test_a_topic_is_made_by_post_changed_by_patch_and_deleted() -> None:
    async def test(ask: Browserless, cluster: Cluster) -> None:
        assert (await ask("POST", "/api/v1/topics", {"topic": "orders"})).status == 200
        page = await ask("GET", "/api/v1/topics?search=ORD&limit=1")
        assert page.value == {"items": [{"topic": "orders"}], "total": 1, "next": None}
        changed = await ask("PATCH", "/api/v1/topics/orders", {"permission": "r"})
        assert changed.value["changes"][0]["after"]["permission"] == "r"
        gone = await ask("DELETE", "/api/v1/topics/orders?dry_run=true")
        assert gone.value["dry_run"]
        assert (await ask("DELETE", "/api/v1/topics/orders")).status == 200
        missing = await ask("GET", "/api/v1/topics/orders")
        assert missing.status == 404
        assert missing.headers["content-type"] == "application/problem+json"
        assert missing.value["title"] == "There is no such thing"

    served(test)


def test_names_with_signs_are_parts_of_paths() -> None:
    async def test(ask: Browserless, cluster: Cluster) -> None:
        await ask("POST", "/api/v1/topics", {"topic": "%RETRY%billing"})
        shown = await ask("GET", "/api/v1/topics/%25RETRY%25billing")
        assert shown.value["topic"] == "%RETRY%billing"

    served(test)


WRONG = [
    ("GET", "/api/v1/topics?limit=0", None, 400),
    ("GET", "/api/v1/topics?limit=1001", None, 400),
    ("GET", "/api/v1/topics?limit=x", None, 400),
    ("GET", "/api/v1/topics?limit=1&limit=2", None, 400),
    ("GET", "/api/v1/topics?unknown=1", None, 400),
    ("GET", "/api/v1/topics?after=null", None, 200),
    ("GET", "/api/v1/topics/orders/messages/by-time?until=null", None, 400),
    ("GET", "/api/v1/topics/orders/messages/by-time?since=2030-01-01", None, 400),
    ("GET", "/api/v1/topics/orders/messages/by-time?since=1700000000", None, 400),
    ("GET", "/api/v1/topics/orders/messages/by-time?until=0.5", None, 400),
    ("GET", "/api/v1/topics/TBW102/messages/by-time?until=2030-01-01T00:00:00Z", None, 200),
    ("POST", "/api/v1/topics", {"topic": "orders", "attributes": {"a": ""}}, 400),
    ("POST", "/api/v1/groups", {"group": "billing", "attributes": {"a": ""}}, 400),
    ("GET", "/api/v1/topics/orders/messages/by-key?key=k&topic=other", None, 400),
    ("GET", "/api/v1/messages/nonsense", None, 422),
    ("GET", "/api/v1/brokers/%F1%A8%A7%9D%C2%B2T%1C%C2%84%2A%0Az", None, 404),
    ("GET", "/api/v1/brokers/%1C", None, 400),
    ("GET", "/api/v1/nothing", None, 404),
    ("GET", "/api/v2/topics", None, 404),
    ("PUT", "/api/v1/topics/orders", None, 405),
    ("POST", "/api/v1/topics", None, 415),
    ("POST", "/api/v1/topics?topic=orders", {"topic": "orders"}, 400),
    ("POST", "/api/v1/topics", {}, 400),
    ("POST", "/api/v1/topics", {"topic": 7}, 400),
    ("POST", "/api/v1/topics", {"topic": None}, 400),
    ("POST", "/api/v1/topics", {"topic": "a/b"}, 400),
    ("POST", "/api/v1/topics", {"topic": "orders", "queues": 2**70}, 400),
    ("POST", "/api/v1/topics", {"topic": "orders", "broker": "nobody"}, 422),
    ("PATCH", "/api/v1/topics/orders", {"topic": "orders", "permission": "r"}, 400),
    ("PATCH", "/api/v1/topics/orders", {}, 422),
]


def test_what_is_not_as_it_should_be_is_told() -> None:
    async def test(ask: Browserless, cluster: Cluster) -> None:
        for method, target, body, status in WRONG:
            answer = await ask(method, target, body)
            assert answer.status == status, (method, target, body, answer.body)
            if status != 200:
                assert answer.headers["content-type"] == "application/problem+json"
                assert answer.value["status"] == status
                assert answer.value["detail"]

    served(test)


BODIES = [
    b"", b"{", b"[]", b"null", b'"x"', b"\xff", b'{"topic":"\\ud800"}', b"[" * 100_000, b"1e999",
]  # fmt: skip


def test_a_body_that_is_no_object_is_refused() -> None:
    async def test(ask: Browserless, cluster: Cluster) -> None:
        for body in BODIES:
            answer = await ask("POST", "/api/v1/topics", body, content_type="application/json")
            assert answer.status == 400, (body[:20], answer.body)
            answer = await ask("POST", "/api/v1/topics", body, content_type="text/plain")
            assert answer.status == 415

    served(test)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=8,
)
CHANGES = [each for each in OPERATIONS.values() if each.method in ("POST", "PATCH")]


@st.composite
def bodies(draw: st.DrawFn) -> tuple[Operation, dict[str, object]]:
    """A change, and a body for it that is more or less wrong."""
    operation = draw(st.sampled_from(CHANGES))
    names = st.sampled_from(operation.parameters.__struct_fields__)
    return operation, draw(st.dictionaries(names, JSON, max_size=6))


@settings(max_examples=4)
@given(st.lists(bodies(), min_size=20, max_size=40))
def test_no_body_makes_the_api_fail(asked: list[tuple[Operation, dict[str, object]]]) -> None:
    async def test(ask: Browserless, cluster: Cluster) -> None:
        for operation, body in asked:
            path = operation.path.format(**dict.fromkeys(operation.in_path, "orders"))
            answer = await ask(operation.method, f"/api{VERSION_PATH}{path}", body)
            assert answer.status not in (500, 501), (operation.name, body, answer.body)
            json.loads(answer.body)

    served(test)


def test_a_fault_of_ours_is_logged_and_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    from sprocket.admin import topics

    async def fails(*arguments: object, **more: object) -> None:
        raise ZeroDivisionError("a secret")

    monkeypatch.setattr(topics, "names", fails)

    async def test(ask: Browserless, cluster: Cluster) -> None:
        with pytest.raises(ZeroDivisionError):  # Starlette raises it for the server's log as well
            await ask("GET", "/api/v1/topics")

    served(test)


def test_messages_are_shown_as_data() -> None:
    hostile = "</script><script>alert(1)</script>\u2028"

    async def test(ask: Browserless, cluster: Cluster) -> None:
        await ask("POST", "/api/v1/topics", {"topic": "orders"})
        await ask("POST", "/api/v1/topics/orders/messages", {"body": hostile})
        answer = await ask("GET", "/api/v1/topics/orders/messages/tail")
        assert answer.value["messages"][0]["body"] == hostile
        assert answer.headers["content-type"] == "application/json"
        assert answer.headers["x-content-type-options"] == "nosniff"

    served(test)
