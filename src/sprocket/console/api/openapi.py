"""The OpenAPI document of the HTTP routes, made from the table of operations. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from sprocket.console.api.problems import CONTENT_TYPE, Problem
from sprocket.console.api.signatures import SCHEME
from sprocket.console.operations.declare import Operation

#: The path of the operations, below that of the API.
VERSION_PATH = "/v1"

_REFERENCE = "#/components/schemas/{name}"
_ABOUT = f"""What an operator sees and steers of RocketMQ brokers.

Changes are switched off unless the server was started with `--allow-changes`. Each takes `dry_run`,
which says what would change. Who asks is told by the header `Authorization`: `Bearer TOKEN`, or
`{SCHEME} Credential=KEY, Date=MS, Signature=HEX`. Cookies mean nothing. Errors are problems
(RFC 9457); `setting` in them is what to change. Bodies and properties of messages are what their
senders wrote."""


def document(operations: Mapping[str, Operation], version: str, base: str) -> dict[str, Any]:
    """The document.

    Args:
        version: of the package.
        base: the path of the API.
    """
    types = [kind for each in operations.values() for kind in (each.parameters, each.result)]
    _, schemas = msgspec.json.schema_components([*types, Problem], ref_template=_REFERENCE)
    paths: dict[str, dict[str, Any]] = {}
    for each in operations.values():
        path = f"{VERSION_PATH}{each.path}"
        paths.setdefault(path, {})[each.method.lower()] = _route(each, schemas)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Sprocket", "version": version, "description": _ABOUT},
        "servers": [{"url": base}],
        "paths": paths,
        "components": {
            "schemas": schemas | _bodies(operations, schemas),
            "securitySchemes": {
                "token": {"type": "http", "scheme": "bearer"},
                "signature": {"type": "apiKey", "in": "header", "name": "Authorization"},
            },
        },
        "security": [{}, {"token": []}, {"signature": []}],
    }


def has_body(operation: Operation) -> bool:
    """Whether its parameters come in a body, besides those of the path."""
    return operation.method in ("POST", "PATCH")


def _route(operation: Operation, schemas: Mapping[str, Any]) -> dict[str, Any]:
    about = operation.about
    if operation.rights:
        about = f"{about}\n\nRights, where the brokers have users: {operation.rights}."
    route: dict[str, Any] = {
        "operationId": operation.name,
        "tags": [operation.name.partition(".")[0]],
        "summary": operation.title,
        "description": about,
        "parameters": list(_parameters(operation, schemas)),
        "responses": {
            "200": {
                "description": "Done.",
                "content": {"application/json": {"schema": _reference(operation.result)}},
            },
            "default": {
                "description": "Not done.",
                "content": {CONTENT_TYPE: {"schema": _reference(Problem)}},
            },
        },
    }
    if has_body(operation):
        route["requestBody"] = {
            "required": True,
            "content": {
                "application/json": {
                    "schema": {"$ref": _REFERENCE.format(name=_body_name(operation))}
                }
            },
        }
    return route


def _parameters(operation: Operation, schemas: Mapping[str, Any]) -> list[dict[str, Any]]:
    own = schemas[operation.parameters.__name__]
    required = own.get("required", ())
    found = []
    for name, schema in own["properties"].items():
        in_path = name in operation.in_path
        if not in_path and has_body(operation):
            continue
        shown = _of_query(schema)
        parameter = {
            "name": name,
            "in": "path" if in_path else "query",
            "required": in_path or name in required,
            "schema": shown,
        }
        if "description" in shown:
            parameter["description"] = shown.pop("description")
        found.append(parameter)
    return found


def _of_query(schema: Mapping[str, Any]) -> dict[str, Any]:
    """A parameter's schema without null, which no query can say: it leaves the parameter out."""
    rest = {name: value for name, value in schema.items() if name != "default" or value is not None}
    kinds = [each for each in rest.pop("anyOf", ()) if each != {"type": "null"}]
    return {**kinds[0], **rest} if kinds else rest


def _bodies(operations: Mapping[str, Operation], schemas: Mapping[str, Any]) -> dict[str, Any]:
    """The schemas of bodies: those of the parameters, without what is in the path."""
    found = {}
    for each in operations.values():
        if has_body(each) and each.in_path:
            own = schemas[each.parameters.__name__]
            found[_body_name(each)] = {
                **own,
                "title": _body_name(each),
                "properties": {
                    name: schema
                    for name, schema in own["properties"].items()
                    if name not in each.in_path
                },
                "required": [name for name in own.get("required", ()) if name not in each.in_path],
            }
    return found


def _body_name(operation: Operation) -> str:
    name = operation.parameters.__name__
    return f"{name}_of_{'_'.join(operation.in_path)}" if operation.in_path else name


def _reference(kind: type) -> dict[str, Any]:
    (schema,), _ = msgspec.json.schema_components([kind], ref_template=_REFERENCE)
    return schema
