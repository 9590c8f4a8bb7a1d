"""A registry over HTTP is asked within bounds, whatever it answers, and no secret gets out."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import Any

import pytest

from sprocket.base.errors import ConfigError
from sprocket.schemas.errors import RegistryUnavailable, SchemaInvalid, SchemaNotFound
from sprocket.schemas.http_registry import HttpRegistry, RegistryAccess
from sprocket.schemas.registered import SchemaKind
from tests.schemas.parts import AVRO_ORDER, order_files
from tests.schemas.serving import Answers, registry


@pytest.fixture
def served() -> Iterator[Answers]:
    with registry() as answers:
        yield answers


def source(served: Answers, **given: Any) -> HttpRegistry:
    return HttpRegistry(RegistryAccess(served.url, **given))


def test_a_schema_of_avro_is_found_by_number_and_by_subject(served: Answers) -> None:
    served.by_path["/schemas/ids/17"] = (200, {"schema": AVRO_ORDER})
    served.by_path["/subjects/orders%2Fnew-value/versions/latest"] = (
        200, {"id": 17, "version": 3, "schema": AVRO_ORDER},
    )  # fmt: skip
    found = source(served).by_id(17)
    assert (found.schema_id, found.kind, found.text) == (17, SchemaKind.AVRO, AVRO_ORDER)
    assert source(served).latest("orders/new-value") == found


def test_schemas_that_one_refers_to_come_before_it(served: Answers) -> None:
    def refers(*names: str) -> list[dict[str, Any]]:
        return [{"name": name, "subject": f"s {name}", "version": 2} for name in names]

    served.by_path["/schemas/ids/1"] = (200, {"schema": '"c"', "references": refers("b", "a")})
    for name, inner in (("a", ()), ("b", ("a",))):
        path = f"/subjects/s%20{name}/versions/2?deleted=true"
        served.by_path[path] = (200, {"schema": name, "references": refers(*inner)})
    assert source(served).by_id(1).named == ("a", "b")


def test_a_json_schema_comes_with_the_names_of_what_it_refers_to(served: Answers) -> None:
    reference = {"name": "line.json", "subject": "line", "version": 3}
    schema = '{"$ref": "line.json"}'
    served.by_path["/schemas/ids/5"] = (
        200, {"schemaType": "JSON", "schema": schema, "references": [reference]},
    )  # fmt: skip
    line = '{"type": "integer"}'
    served.by_path["/subjects/line/versions/3?deleted=true"] = (200, {"schema": line})
    found = HttpRegistry(RegistryAccess(served.url)).by_id(5)
    assert (found.kind, found.text) == (SchemaKind.JSON, schema)
    assert found.references == (("line.json", line),)


def test_references_in_a_circle_and_without_end_are_bounded(served: Answers) -> None:
    def refers(number: int) -> list[dict[str, Any]]:
        return [{"name": f"n{number}", "subject": f"s{number}", "version": 1}]

    served.by_path["/schemas/ids/1"] = (200, {"schema": '"c"', "references": refers(0)})
    served.by_path["/subjects/s0/versions/1?deleted=true"] = (
        200, {"schema": "a", "references": refers(0)},
    )  # fmt: skip
    assert source(served).by_id(1).named == ("a",)
    for number in range(200):
        served.by_path[f"/subjects/s{number}/versions/1?deleted=true"] = (
            200, {"schema": "a", "references": refers(number + 1)},
        )  # fmt: skip
    with pytest.raises(SchemaInvalid, match="more than 100"):
        source(served).by_id(1)


@pytest.mark.parametrize("number", [-1, 1 << 31, 10**30, "7"])
def test_a_number_that_no_schema_has_is_no_answer(served: Answers, number: Any) -> None:
    served.by_path["/subjects/s/versions/latest"] = (200, {"id": number, "schema": AVRO_ORDER})
    with pytest.raises(RegistryUnavailable, match="something else than a schema"):
        source(served).latest("s")


def test_what_a_schema_refers_to_is_bounded_together(served: Answers) -> None:
    references = [{"name": f"n{number}", "subject": "s", "version": 1} for number in range(3)]
    served.by_path["/schemas/ids/1"] = (200, {"schema": '"c"', "references": references})
    served.by_path["/subjects/s/versions/1?deleted=true"] = (200, {"schema": " " * (3 << 20)})
    with pytest.raises(SchemaInvalid, match=r"what it refers to have \d+ characters"):
        source(served).by_id(1)


def test_protobuf_comes_as_descriptors_under_the_names_of_its_imports(served: Answers) -> None:
    money, shop = (base64.b64encode(each).decode() for each in order_files())
    reference = {"name": "money.proto", "subject": "money", "version": 1}
    served.by_path["/schemas/ids/5"] = (
        200, {"schemaType": "PROTOBUF", "schema": "syntax …", "references": [reference]},
    )  # fmt: skip
    served.by_path["/schemas/ids/5?format=serialized"] = (200, {"schema": shop})
    served.by_path["/subjects/money/versions/1?deleted=true&format=serialized"] = (
        200, {"schema": money},
    )  # fmt: skip
    found = source(served).by_id(5)
    assert found.kind is SchemaKind.PROTOBUF
    assert len(found.files) == 2
    served.by_path["/schemas/ids/5?format=serialized"] = (200, {"schema": 'syntax = "proto3";'})
    with pytest.raises(RegistryUnavailable, match="descriptor set"):
        source(served).by_id(5)


@pytest.mark.parametrize(
    ("answer", "error", "reason"),
    [
        ((404, {"error_code": 40403}), SchemaNotFound, "has no schemas/ids/1"),
        ((500, b""), RegistryUnavailable, "status 500"),
        ((401, b""), RegistryUnavailable, "status 401"),
        ((302, b""), RegistryUnavailable, "not followed"),
        ((200, b"<html>"), RegistryUnavailable, "something else than a schema"),
        ((200, b""), RegistryUnavailable, "something else"),
        ((200, b"[" * 100_000), RegistryUnavailable, "something else"),
        ((200, {"schema": 3}), RegistryUnavailable, "something else"),
        ((200, {"schema": "x", "schemaType": "THRIFT"}), SchemaInvalid, "THRIFT"),
        ((200, b" " * ((4 << 20) + 1)), RegistryUnavailable, "more than"),
    ],
)
def test_whatever_it_answers_there_is_one_clear_error(
    served: Answers, answer: tuple[int, Any], error: type[Exception], reason: str
) -> None:
    served.headers["Location"] = served.url + "/elsewhere"
    served.by_path["/schemas/ids/1"] = answer
    with pytest.raises(error, match=reason):
        source(served).by_id(1)
    assert [path for path, _ in served.asked] == ["/schemas/ids/1"]


def test_secrets_go_to_the_registry_only(served: Answers) -> None:
    served.by_path["/schemas/ids/1"] = (500, b"")
    access = RegistryAccess(served.url, user="u", password="hidden-1")
    with pytest.raises(RegistryUnavailable) as failed:
        HttpRegistry(access).by_id(1)
    assert (
        served.asked[0][1]["Authorization"] == f"Basic {base64.b64encode(b'u:hidden-1').decode()}"
    )
    token = RegistryAccess(served.url, token="hidden-2")
    with pytest.raises(RegistryUnavailable):
        HttpRegistry(token).by_id(1)
    assert served.asked[1][1]["Authorization"] == "Bearer hidden-2"
    for shown in (str(failed.value), repr(access), repr(token), repr(HttpRegistry(access))):
        assert "hidden" not in shown


@pytest.mark.parametrize(
    "url",
    [
        "", "registry:8081", "ftp://registry", "http://", "http://u:hidden@registry:8081",
        "http://registry:port", "http://registry:8081/?x=hidden", "http://registry\r\nX: y",
        "http://[::1", "http://registry:8081/#a", "file:///etc/passwd",
    ],
)  # fmt: skip
def test_an_address_that_is_none_is_refused_and_not_repeated(url: str) -> None:
    with pytest.raises(ConfigError) as failed:
        HttpRegistry(RegistryAccess(url))
    assert "hidden" not in str(failed.value)


@pytest.mark.parametrize(
    "given",
    [{"password": "p"}, {"user": "u", "token": "t"}, {"token": "a\r\nX-Other: b"}, {"token": "ä"}],
)
def test_credentials_that_contradict_or_do_not_fit_http_are_refused(given: dict[str, str]) -> None:
    with pytest.raises(ConfigError):
        HttpRegistry(RegistryAccess("http://registry:8081", **given))  # type: ignore[arg-type]


def test_a_file_of_authorities_that_is_none_is_refused() -> None:
    with pytest.raises(ConfigError, match="nowhere"):
        HttpRegistry(RegistryAccess("https://registry", authorities="/nowhere/ca.pem"))
