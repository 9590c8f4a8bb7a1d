"""etcd as a store of leased keys, by the JSON gateway that each of its servers has.

Requests are HTTP POSTs with JSON; keys and values are in base64, numbers of 64 bits are texts, and
fields with the value zero are left out. A watch is an answer that does not end, with one object a
line. Facts: `api/etcdserverpb/rpc.proto` of etcd, with its `google.api.http` options; tried with
3.4.23.
"""

from __future__ import annotations

import asyncio
import json
import math
import ssl
from base64 import b64decode, b64encode
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from sprocket.base.errors import ConfigError
from sprocket.election.elector import ElectorUnavailable
from sprocket.election.leased_keys import (
    Compare,
    Delete,
    GrantedLease,
    KeyValue,
    LeaseGone,
    Picture,
    Put,
    Transacted,
)
from sprocket.election.places import ElectorPlace

if TYPE_CHECKING:
    import aiohttp

#: The part of a lease that one attempt at one server may take.
_ATTEMPT = 0.2
#: The longest line of a watch, and the largest answer that is read, bytes.
_ANSWER_BYTES_MAX = 4 << 20
#: gRPC's codes, as answers carry them.
_NOT_FOUND, _UNAUTHENTICATED = 5, 16
#: Those that another server may not answer: cancelled, unknown, deadline exceeded, aborted,
#: internal, unavailable.
_ELSEWHERE = frozenset({1, 2, 4, 10, 13, 14})


class EtcdSecurity(NamedTuple):
    """How etcd and this broker recognise each other.

    Attributes:
        password: of the user that the place names.
        ca: file with certificates of who may vouch for etcd; without it those of the system.
        cert, key: files with this broker's certificate and its key.
    """

    password: str | None = None
    ca: str | None = None
    cert: str | None = None
    key: str | None = None

    def __repr__(self) -> str:
        return f"EtcdSecurity(ca={self.ca!r}, cert={self.cert!r}, key={self.key!r})"


class _Refusal(Exception):
    """etcd answered with an error: gRPC's code and the text."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.code = code


class EtcdKeys:
    """A `LeasedKeys` over etcd.

    Args:
        place: its servers; they are tried in turn, beginning with the last that answered.
        security: certificates and password.
        lease_ms: of the elector: one attempt at one server takes at most a fifth of it.

    Raises:
        ConfigError: the package for HTTP is missing, or a certificate cannot be read.
    """

    def __init__(self, place: ElectorPlace, security: EtcdSecurity, *, lease_ms: int) -> None:
        _aiohttp()
        scheme = "https" if place.is_tls else "http"
        self._servers = [f"{scheme}://{_bracketed(each)}" for each in place.addresses]
        self._user = place.user
        self._password = security.password or ""
        self._tls = _tls(security) if place.is_tls else None
        self._attempt_seconds = lease_ms / 1000 * _ATTEMPT
        self._token = ""
        self._session: aiohttp.ClientSession | None = None

    async def get(self, prefix: str) -> Picture:
        """All keys that begin with a prefix."""
        answer = await self._ask("kv/range", _range(prefix))
        keys = {}
        for each in answer.get("kvs", ()):
            key = _text(each.get("key", ""))
            value = KeyValue(key, _text(each.get("value", "")), int(each.get("mod_revision", 0)))
            keys[key] = value
        return Picture(_revision(answer), keys)

    async def transact(
        self, compares: Sequence[Compare], changes: Sequence[Put | Delete]
    ) -> Transacted:
        """Makes all changes if all comparisons hold, else none."""
        request = {
            "compare": [
                {
                    "key": _base64(each.key),
                    "target": "MOD",
                    "result": "EQUAL",
                    "mod_revision": str(each.revision),
                }
                for each in compares
            ],
            "success": [_operation(each) for each in changes],
        }
        try:
            answer = await self._ask("kv/txn", request, passes=_NOT_FOUND)
        except _Refusal as error:
            raise LeaseGone(f"{error}") from error
        return Transacted(bool(answer.get("succeeded")), _revision(answer))

    async def grant(self, seconds: float) -> GrantedLease:
        """Makes a lease of whole seconds; etcd's own minimum may make it longer."""
        answer = await self._ask("lease/grant", {"TTL": str(math.ceil(seconds))})
        return GrantedLease(int(answer["ID"]), float(answer["TTL"]))

    async def keep_alive(self, lease: int) -> float:
        """Lets a lease begin anew."""
        answer = await self._ask("lease/keepalive", {"ID": str(lease)})
        return float(answer.get("result", {}).get("TTL", 0))

    async def revoke(self, lease: int) -> None:
        """Ends a lease."""
        try:
            await self._ask("lease/revoke", {"ID": str(lease)}, passes=_NOT_FOUND)
        except _Refusal:
            return  # it has ended by itself

    async def watch(self, prefix: str, revision: int) -> AsyncIterator[int]:
        """The revisions of changes under a prefix."""
        aiohttp = _aiohttp()
        request = {"create_request": {**_range(prefix), "start_revision": str(revision)}}
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=self._attempt_seconds)
        try:
            async with self._opened().post(
                f"{self._servers[0]}/v3/watch",
                data=json.dumps(request),
                headers=self._headers(),
                timeout=timeout,
            ) as answer:
                async for line in answer.content:
                    result = json.loads(line).get("result")
                    if result is None or result.get("canceled"):
                        return
                    if result.get("events"):
                        yield _revision(result)
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise ElectorUnavailable(f"the watch at etcd is lost: {_said(error)}") from error

    async def close(self) -> None:
        """Closes connections."""
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    async def _ask(
        self, path: str, request: Mapping[str, Any], *, passes: int | None = None
    ) -> dict[str, Any]:
        """Asks one server after the other.

        Raises:
            ElectorUnavailable: none of them answered, or one refused.
            _Refusal: one refused with the code that `passes`.
        """
        failures = []
        for server in [*self._servers]:
            try:
                return await self._ask_as_user(server, path, request)
            except _Refusal as error:
                if error.code == passes:
                    raise
                if error.code not in _ELSEWHERE:
                    raise ElectorUnavailable(f"etcd at {server} refuses: {error}") from error
                failures.append(f"{server}: {error}")
            except (_aiohttp().ClientError, OSError, ValueError) as error:
                failures.append(f"{server}: {_said(error)}")
            if server in self._servers:
                self._servers.remove(server)
                self._servers.append(server)
        raise ElectorUnavailable(f"etcd does not answer: {'; '.join(failures)}")

    async def _ask_as_user(
        self, server: str, path: str, request: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Asks with a token, which is renewed once where it has become invalid."""
        if not self._user:
            return await self._post(server, path, request)
        if self._token:
            try:
                return await self._post(server, path, request)
            except _Refusal as error:
                if error.code != _UNAUTHENTICATED and "auth" not in f"{error}":
                    raise
        self._token = ""
        who = {"name": self._user, "password": self._password}
        self._token = str((await self._post(server, "auth/authenticate", who)).get("token", ""))
        return await self._post(server, path, request)

    async def _post(self, server: str, path: str, request: Mapping[str, Any]) -> dict[str, Any]:
        """Asks one server; again if a connection of a server that was restarted breaks."""
        try:
            return await self._post_once(server, path, request)
        except _aiohttp().ServerDisconnectedError:
            return await self._post_once(server, path, request)

    async def _post_once(
        self, server: str, path: str, request: Mapping[str, Any]
    ) -> dict[str, Any]:
        async with asyncio.timeout(self._attempt_seconds):
            async with self._opened().post(
                f"{server}/v3/{path}", data=json.dumps(request), headers=self._headers()
            ) as answer:
                content = b""
                async for piece in answer.content.iter_any():
                    content += piece
                    if len(content) > _ANSWER_BYTES_MAX:
                        raise ValueError("an answer that is too long")
                is_error = answer.status >= 400
                if is_error and not content.startswith(b"{"):
                    raise _Refusal(0, f"HTTP {answer.status}: it has no JSON gateway at /v3")
        found = json.loads(content)
        if not isinstance(found, dict):
            raise ValueError("an answer that is no object")
        # A stream's error comes with the status 200, inside of an object of its own.
        fault = found if is_error else found.get("error")
        if isinstance(fault, dict):
            code = fault.get("code") or fault.get("grpc_code") or 0
            raise _Refusal(int(code), str(fault.get("message", fault.get("error", "?"))))
        return found

    def _opened(self) -> aiohttp.ClientSession:
        if self._session is None:
            aiohttp = _aiohttp()
            connector = aiohttp.TCPConnector(ssl=self._tls if self._tls is not None else True)
            self._session = aiohttp.ClientSession(
                connector=connector, read_bufsize=_ANSWER_BYTES_MAX
            )
        return self._session

    def _headers(self) -> dict[str, str]:
        return {"Authorization": self._token} if self._token else {}


def _aiohttp() -> Any:
    """The package for HTTP, which only an elector at etcd needs.

    Raises:
        ConfigError: it is missing.
    """
    try:
        import aiohttp
    except ImportError as error:
        raise ConfigError(
            "an elector at etcd needs the package aiohttp, which the extra `etcd` brings: "
            "pip install 'sprocketmq[etcd]'"
        ) from error
    return aiohttp


def _tls(security: EtcdSecurity) -> ssl.SSLContext:
    if bool(security.cert) != bool(security.key):
        raise ConfigError("broker.elector_cert and broker.elector_key go together")
    try:
        made = ssl.create_default_context(cafile=security.ca)
        if security.cert:
            made.load_cert_chain(security.cert, security.key)
    except OSError as error:  # ssl.SSLError is one
        files = ", ".join(each for each in (security.ca, security.cert, security.key) if each)
        raise ConfigError(f"the certificates for etcd cannot be used ({files}): {error}") from error
    return made


def _bracketed(address: str) -> str:
    """An address as it stands in a URL: RocketMQ writes IPv6 without brackets."""
    host, _, port = address.rpartition(":")
    return f"[{host}]:{port}" if ":" in host and not host.startswith("[") else address


def _range(prefix: str) -> dict[str, str]:
    """All keys that begin with a prefix: up to the prefix with its last byte raised."""
    raw = prefix.encode()
    end = raw[:-1] + bytes([raw[-1] + 1])
    return {"key": b64encode(raw).decode(), "range_end": b64encode(end).decode()}


def _operation(change: Put | Delete) -> dict[str, Any]:
    key = _base64(change.key)
    if isinstance(change, Delete):
        return {"request_delete_range": {"key": key}}
    value = _base64(change.value)
    return {"request_put": {"key": key, "value": value, "lease": str(change.lease)}}


def _base64(text: str) -> str:
    return b64encode(text.encode()).decode()


def _text(base64: str) -> str:
    return b64decode(base64).decode(errors="replace")


def _revision(answer: Mapping[str, Any]) -> int:
    return int(answer.get("header", {}).get("revision", 0))


def _said(error: BaseException) -> str:
    return f"{error}" or type(error).__name__
