"""The HTTP routes of the operations, their OpenAPI document, and the page that shows it."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from sprocket import __version__
from sprocket.base.errors import SprocketError
from sprocket.console.api import openapi, reference_page
from sprocket.console.api.guarding import CALLER, problem_response
from sprocket.console.api.openapi import VERSION_PATH, has_body
from sprocket.console.api.problems import ApiRefusal, problem_of, refused
from sprocket.console.api.running import OperationRunner
from sprocket.console.operations.declare import Operation

logger = logging.getLogger(__name__)

#: Paths that everybody may read: they say the same of every server.
PUBLIC = frozenset({"", "/", "/openapi.json"})


def http_app(
    runner: OperationRunner, operations: Mapping[str, Operation], *, base: str
) -> Starlette:
    """The application of the routes, for a guard to be put before it.

    Args:
        runner: runs the operations.
        base: the path at which it is mounted.
    """
    document = openapi.document(operations, __version__, base)
    document_bytes = msgspec.json.encode(document)
    shown = reference_page.page(operations, document, may_change=runner.settings.may_change)

    async def as_document(request: Request) -> Response:
        return Response(document_bytes, media_type="application/json")

    async def as_page(request: Request) -> Response:
        return HTMLResponse(shown)

    routes = [
        Route("/", as_page, methods=["GET"]),
        Route("/openapi.json", as_document, methods=["GET"]),
        *_operation_routes(runner, operations),
    ]
    return Starlette(routes=routes, exception_handlers={HTTPException: no_route, Exception: _bug})


def _operation_routes(runner: OperationRunner, operations: Mapping[str, Operation]) -> list[Route]:
    """A route for each path; paths without parameters come first, which others would hide."""
    by_path: dict[str, dict[str, Operation]] = {}
    for each in operations.values():
        by_path.setdefault(each.path, {})[each.method] = each
    paths = sorted(by_path, key=lambda path: path.count("{"))
    return [
        Route(f"{VERSION_PATH}{path}", _endpoint(runner, by_path[path]), methods=[*by_path[path]])
        for path in paths
    ]


def _endpoint(runner: OperationRunner, operations: Mapping[str, Operation]) -> Any:
    async def answer(request: Request) -> Response:
        # Starlette answers HEAD wherever it answers GET.
        method = "GET" if request.method == "HEAD" else request.method
        operation = operations[method]
        try:
            given = await _parameters(request, operation)
            result = await runner.run(
                operation, given, request.scope[CALLER], is_text=not has_body(operation)
            )
        except SprocketError as error:
            return problem_response(problem_of(error))
        return Response(msgspec.json.encode(result), media_type="application/json")

    return answer


async def _parameters(request: Request, operation: Operation) -> dict[str, Any]:
    """What a request says, by name of parameter.

    Raises:
        ApiRefusal: a parameter is there twice, or the body is no object of JSON.
    """
    named: dict[str, Any] = dict(request.path_params)
    if not has_body(operation):
        for name, value in request.query_params.multi_items():
            if name in named:
                raise ApiRefusal(400, f"the parameter {name!r} is there twice")
            named[name] = value
        return named
    if request.query_params:
        raise ApiRefusal(400, "the parameters of a change are in the body")
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise ApiRefusal(415, "the body of a change is application/json")
    try:
        body = msgspec.json.decode(await request.body())
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ApiRefusal(400, f"the body is no JSON: {error}") from None
    if not isinstance(body, dict):
        raise ApiRefusal(400, "the body is an object of JSON")
    if both := named.keys() & body.keys():
        raise ApiRefusal(400, f"{', '.join(sorted(both))} is in the path already")
    return body | named


async def no_route(request: Request, error: Exception) -> Response:
    """The answer where there is no route, or none with this method."""
    assert isinstance(error, HTTPException)
    response = problem_response(refused(error.status_code, error.detail))
    if error.headers:
        response.headers.update(error.headers)
    return response


async def _bug(request: Request, error: Exception) -> Response:
    """A mistake of ours: the log has it, the answer does not."""
    logger.error("the API failed", exc_info=error)
    return problem_response(refused(500, "the server's log says more"))
