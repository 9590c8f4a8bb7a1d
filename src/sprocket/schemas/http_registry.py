"""A schema registry over HTTP: the interface of Confluent's, which Karapace, Redpanda and Apicurio
(`/apis/ccompat/v7`) have too.

Facts: Confluent's documentation of the interface, and its Python client: an answer of
`/schemas/ids/17` has `schema`, `schemaType` (absent for Avro) and `references`; with
`format=serialized` a Protobuf schema comes as a file descriptor in base64.
"""

from __future__ import annotations

import base64
import binascii
import ssl
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated
from urllib.parse import SplitResult, quote, urlsplit

import msgspec

from sprocket.base.errors import ConfigError
from sprocket.schemas import http_answer
from sprocket.schemas.descriptors import named
from sprocket.schemas.errors import RegistryUnavailable, SchemaInvalid, SchemaNotFound
from sprocket.schemas.framing import ID_MAX
from sprocket.schemas.registered import RegisteredSchema, SchemaKind

#: Variables of the environment with who asks, by attribute of `RegistryAccess`.
ENVIRONMENT = {
    "user": "SPROCKET_REGISTRY_USER",
    "password": "SPROCKET_REGISTRY_PASSWORD",
    "token": "SPROCKET_REGISTRY_TOKEN",
    "authorities": "SPROCKET_REGISTRY_AUTHORITIES",
}
_ANSWER_BYTES_MAX = 4 << 20
#: Schemas that one schema refers to, in all, and the characters of all of them.
_REFERENCES_MAX = 100
_CHARACTERS_MAX = 8 << 20
_SERIALIZED = "format=serialized"


@dataclass(frozen=True, slots=True)
class RegistryAccess:
    """Where a registry is, and who asks it. Secrets are in no text of it.

    Attributes:
        url: `http://host:8081` or `https://…`, without a user.
        user, password: for basic authentication.
        token: a bearer token instead.
        authorities: file (PEM) of the authorities that its certificate is checked against; None
            for those of the system.
        timeout_ms: limit for each request, from the connection to the last byte.
    """

    url: str
    user: str | None = None
    password: str | None = field(default=None, repr=False)
    token: str | None = field(default=None, repr=False)
    authorities: str | None = None
    timeout_ms: int = 5_000


def registry_at(
    place: str,
    *,
    user: str | None = None,
    password: str | None = None,
    token: str | None = None,
    authorities: str | None = None,
) -> RegistryAccess | Path:
    """A registry by the text that names it: a URL, or else a folder, which nobody needs to ask."""
    if "://" not in place:
        return Path(place)
    return RegistryAccess(place, user, password, token, authorities)


class _SchemaReference(msgspec.Struct):
    name: str
    subject: str
    version: int


class _SchemaAnswer(msgspec.Struct, rename="camel"):
    schema: str
    schema_type: str = "AVRO"
    id: Annotated[int, msgspec.Meta(ge=0, le=ID_MAX)] | None = None
    references: list[_SchemaReference] = []


class HttpRegistry:
    """A `SchemaSource` over HTTP. Redirects are refused: they would carry the secrets elsewhere.

    Args:
        access: where it is.

    Raises:
        ConfigError: the URL is none, has a user in it, or the file of authorities is none.
    """

    def __init__(self, access: RegistryAccess) -> None:
        self._server = _server(access.url)
        self._seconds = access.timeout_ms / 1000
        self._headers = _headers(access)
        self._tls: ssl.SSLContext | None = None
        if self._server.scheme == "https":
            try:
                self._tls = ssl.create_default_context(cafile=access.authorities)
            except (OSError, ValueError) as error:
                raise ConfigError(f"{access.authorities}: {error}") from None

    def __repr__(self) -> str:
        return f"{self._server.scheme}://{self._server.netloc}{self._server.path}"

    def by_id(self, schema_id: int) -> RegisteredSchema:
        """The schema of a number; see `SchemaSource.by_id`."""
        path = f"/schemas/ids/{schema_id}"
        return self._complete(path, self._ask(path), schema_id)

    def latest(self, subject: str) -> RegisteredSchema:
        """The newest schema of a subject; see `SchemaSource.latest`."""
        path = f"/subjects/{quote(subject, safe='')}/versions/latest"
        found = self._ask(path)
        if found.id is None:
            raise RegistryUnavailable(f"the registry {self!r} says no number of {subject}")
        return self._complete(path, found, found.id)

    def _complete(self, path: str, found: _SchemaAnswer, schema_id: int) -> RegisteredSchema:
        """A schema with all that it refers to."""
        try:
            kind = SchemaKind(found.schema_type.lower())
        except ValueError:
            raise SchemaInvalid(
                f"schema {schema_id} is {found.schema_type[:50]!r}, which nobody here reads"
            ) from None
        inner: dict[str, _SchemaAnswer] = {}
        query = f"?deleted=true&{_SERIALIZED}" if kind is SchemaKind.PROTOBUF else "?deleted=true"
        self._follow(found, query, inner)
        if kind is SchemaKind.JSON:
            others = tuple((name, each.schema) for name, each in inner.items())
            return RegisteredSchema(schema_id, kind, found.schema, references=others)
        if kind is SchemaKind.AVRO:
            texts = tuple(each.schema for each in inner.values())
            return RegisteredSchema(schema_id, kind, found.schema, texts)
        main = self._ask(f"{path}?{_SERIALIZED}").schema
        files = [named(_bytes(each.schema), name) for name, each in inner.items()]
        return RegisteredSchema(
            schema_id, kind, files=(*files, named(_bytes(main), f"schema-{schema_id}.proto"))
        )

    def _follow(self, found: _SchemaAnswer, query: str, inner: dict[str, _SchemaAnswer]) -> None:
        """Adds the schemas that one refers to, each after those that it needs itself."""
        waiting: list[tuple[str, _SchemaAnswer | None, list[_SchemaReference]]] = [
            ("", None, list(found.references))
        ]
        began: set[str] = set()
        size = len(found.schema)
        while waiting:
            name, answer, left = waiting[-1]
            if not left:
                waiting.pop()
                if answer is not None:
                    inner[name] = answer
                continue
            each = left.pop(0)
            if each.name in began:
                continue
            if len(began) >= _REFERENCES_MAX:
                raise SchemaInvalid(f"a schema refers to more than {_REFERENCES_MAX} others")
            began.add(each.name)
            subject = quote(each.subject, safe="")
            answer = self._ask(f"/subjects/{subject}/versions/{each.version}{query}")
            size += len(answer.schema)
            if size > _CHARACTERS_MAX:
                raise SchemaInvalid(f"a schema and what it refers to have {size} characters")
            waiting.append((each.name, answer, list(answer.references)))

    def _ask(self, path: str) -> _SchemaAnswer:
        answer = http_answer.get(
            self._server,
            self._server.path.rstrip("/") + path,
            headers=self._headers,
            tls=self._tls,
            seconds=self._seconds,
            bytes_max=_ANSWER_BYTES_MAX,
        )
        if answer.status == 404:
            raise SchemaNotFound(f"the registry {self!r} has no {path.partition('?')[0][1:]}")
        if 300 <= answer.status < 400:
            raise RegistryUnavailable(
                f"the registry {self!r} sends elsewhere (status {answer.status}), which is not "
                "followed: give the address where it is"
            )
        if answer.status != 200:
            raise RegistryUnavailable(f"the registry {self!r} answers with status {answer.status}")
        try:
            return msgspec.json.decode(answer.body, type=_SchemaAnswer)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            raise RegistryUnavailable(
                f"the registry {self!r} answers with something else than a schema: {error}"
            ) from None


def _server(url: str) -> SplitResult:
    """The parts of a registry's URL.

    Raises:
        ConfigError: it is no URL, or has a secret in it. The text does not repeat it.
    """
    try:
        found = urlsplit(url)
        is_right = found.scheme in ("http", "https") and bool(found.hostname)
        _ = found.port
    except ValueError:
        is_right = False
    if not is_right or any(not 32 < ord(each) < 127 for each in url):
        raise ConfigError("the registry is no URL such as http://registry.example:8081")
    if found.username is not None or found.password is not None:
        raise ConfigError("a user does not belong into the URL of the registry: give it by itself")
    if found.query or found.fragment:
        raise ConfigError("the URL of a registry ends with its path")
    return found


def _headers(access: RegistryAccess) -> dict[str, str]:
    headers = {
        "Accept": "application/vnd.schemaregistry.v1+json, application/json",
        "Connection": "close",
    }
    if access.token is not None and access.user is not None:
        raise ConfigError("give a registry's user or a token, not both")
    if access.token is not None:
        headers["Authorization"] = f"Bearer {access.token}"
    elif access.user is not None:
        pair = f"{access.user}:{access.password or ''}".encode()
        headers["Authorization"] = f"Basic {base64.b64encode(pair).decode()}"
    elif access.password is not None:
        raise ConfigError("a registry's password is given without its user")
    given = headers.get("Authorization", "")
    if not given.isascii() or not given.isprintable():
        raise ConfigError("the registry's token has characters that HTTP does not carry")
    return headers


def _bytes(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise RegistryUnavailable(
            "the registry gives the source of a Protobuf schema, and no descriptor of it "
            "(format=serialized): give a descriptor set"
        ) from None
