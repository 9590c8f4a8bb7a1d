"""The OpenAPI document is complete, and each part of it is valid."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from sprocket.console.api.openapi import document, has_body
from sprocket.console.operations.declare import Operation
from sprocket.console.operations.table import OPERATIONS
from tests.console.parts import Browserless, served

DOCUMENT = document(OPERATIONS, "1.0", "/api")
jsonschema = pytest.importorskip("jsonschema", reason="it comes with the extra mcp")


def references(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        if "$ref" in value:
            yield value["$ref"]
        for each in value.values():
            yield from references(each)
    elif isinstance(value, list):
        for each in value:
            yield from references(each)


def test_every_reference_leads_somewhere_and_every_schema_is_one() -> None:
    schemas = DOCUMENT["components"]["schemas"]
    assert {each.rpartition("/")[2] for each in references(DOCUMENT)} <= set(schemas)
    for schema in schemas.values():
        jsonschema.Draft202012Validator.check_schema(schema)
    assert json.loads(json.dumps(DOCUMENT)) == DOCUMENT


@pytest.mark.parametrize("operation", OPERATIONS.values(), ids=lambda each: each.name)
def test_every_operation_is_there_with_all_its_parameters(operation: Operation) -> None:
    route = DOCUMENT["paths"][f"/v1{operation.path}"][operation.method.lower()]
    assert route["operationId"] == operation.name
    named = {each["name"] for each in route["parameters"]}
    if has_body(operation):
        schema = route["requestBody"]["content"]["application/json"]["schema"]["$ref"]
        body = DOCUMENT["components"]["schemas"][schema.rpartition("/")[2]]
        assert body["additionalProperties"] is False
        assert set(body["required"]) <= set(body["properties"])
        named |= set(body["properties"])
    assert named == set(operation.parameters.__struct_fields__)
    in_path = {each["name"] for each in route["parameters"] if each["in"] == "path"}
    assert in_path == set(operation.in_path)
    assert operation.rights in route["description"]


def test_answers_are_as_the_document_says() -> None:
    async def test(ask: Browserless, cluster: Any) -> None:
        assert (await ask("GET", "/api/openapi.json")).value["openapi"] == "3.1.0"
        for body in (
            {"topic": "orders", "queues": 2},
            {"topic": "%DLQ%billing", "queues": 1},
        ):
            assert (await ask("POST", "/api/v1/topics", body)).status == 200
        await ask("POST", "/api/v1/groups", {"group": "billing"})
        sent = await ask("POST", "/api/v1/topics/orders/messages", {"body": "x", "keys": ["k"]})
        place = sent.value["changes"][0]["after"]
        values = {
            "topic": "orders", "group": "billing", "broker": "broker-0", "key": "k",
            "id": place["offset_id"], "queue": place["queue_number"], "client": "none",
            "user": "ann", "action": "Pub", "resource": "Topic:orders",
        }  # fmt: skip
        whole = {"components": DOCUMENT["components"]}
        played = set()
        for each in OPERATIONS.values():
            if each.is_change:
                continue
            route = DOCUMENT["paths"][f"/v1{each.path}"]["get"]
            needed = [p["name"] for p in route["parameters"] if p["required"]]
            path = each.path.format(**values)
            query = "&".join(
                f"{name}={values[name]}" for name in needed if name not in each.in_path
            )
            if each.name == "messages.journey":
                query = f"id={place['message_id']}"
            answer = await ask("GET", f"/api/v1{path}?{query}")
            responses = route["responses"]
            said = responses["200" if answer.status == 200 else "default"]["content"]
            kind = answer.headers["content-type"].partition(";")[0]
            jsonschema.validate(answer.value, {**said[kind]["schema"], **whole})
            if answer.status == 200:
                played.add(each.name)
        refused = {each.name for each in OPERATIONS.values() if not each.is_change} - played
        assert refused == {"groups.running", "audit.list", "policies.test"}

    served(test)
