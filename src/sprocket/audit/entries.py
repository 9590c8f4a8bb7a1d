"""What is recorded of a request: one line of JSON. Pure.

Only declared fields of a header are recorded, and of a body only what is taken from it here, so
that neither a signature nor a password can come into a file.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

import msgspec

from sprocket.base.errors import ProtocolError
from sprocket.protocol.bodies.accounts import AclBody, UserBody
from sprocket.protocol.bodies.body import Body
from sprocket.protocol.bodies.client import LockBody
from sprocket.protocol.bodies.group import GroupConfig, GroupConfigList, RequestMode
from sprocket.protocol.bodies.topic import TopicConfigList
from sprocket.protocol.codes import OwnRequestCode, RequestCode, request_name
from sprocket.protocol.command import Buffer, Command
from sprocket.protocol.requests.table import REQUESTS

#: The longest text of a field, the most items of a list, and the most bytes of all that a request
#: names.
_TEXT_MAX, _ITEMS_MAX, _NAMED_BYTES_MAX = 400, 100, 8_000
#: Fields that prove who somebody is, now or later.
_PROOFS = frozenset({"signature", "secretKey"})

#: What a body names, by request code; it raises `ProtocolError` for a body that is none.
BodyNames = Mapping[int, Callable[[Buffer], dict[str, Any]]]


class AuditEntry(msgspec.Struct, rename="camel"):
    """One line of the audit log.

    Attributes:
        time: when the request was answered, as RFC 3339 in UTC.
        server: the name of the broker, or `nameserver`.
        user: who signed the request, if that was checked; else empty.
        address: `host:port` that it came from; empty for what the server does by itself.
        client: the id of the client at that address, if it sent heartbeats; else empty.
        request: RocketMQ's name of the request code.
        code: the request code; 0 for what the server does by itself.
        named: what it names: fields of the header, and of the body.
        result: the response code; 0 is success.
        remark: the text of a reply that is no success.
        times: how many requests of this kind this line stands for.
    """

    time: str
    server: str
    user: str
    address: str
    client: str
    request: str
    code: int
    named: dict[str, Any]
    result: int
    remark: str | None = None
    times: int = 1

    def encode(self) -> bytes:
        """The line, with its end."""
        return msgspec.json.encode(self) + b"\n"


def time_text(now_ms: int) -> str:
    """A time as lines have it: RFC 3339 with milliseconds, in UTC."""
    found = datetime.fromtimestamp(now_ms / 1000, UTC).isoformat(timespec="milliseconds")
    return found.replace("+00:00", "Z")


def named_by(command: Command, bodies: BodyNames) -> dict[str, Any]:
    """What a request names; what cannot be read is left out.

    Args:
        bodies: for codes whose body names something.
    """
    named: dict[str, Any] = {}
    if (declared := REQUESTS.get(command.code)) is not None:
        try:
            named |= command.read(declared).to_fields()
        except ProtocolError:
            named["unreadable"] = "header"
    if (of_body := bodies.get(command.code)) is not None and len(command.body):
        try:
            named |= of_body(command.body)
        except ProtocolError:
            named["unreadable"] = "body"
    named = _cut({name: value for name, value in named.items() if name not in _PROOFS})
    size = len(msgspec.json.encode(named))
    return named if size <= _NAMED_BYTES_MAX else {"tooLong": size}


def _cut(value: Any) -> Any:
    """A value with bounded texts and lists, and without halves of characters, which JSON lacks."""
    if isinstance(value, str):
        text = value if len(value) <= _TEXT_MAX else f"{value[:_TEXT_MAX]}…"
        return text.encode("utf-8", "replace").decode()
    if isinstance(value, list):
        more = ["…"] if len(value) > _ITEMS_MAX else []
        return [_cut(each) for each in value[:_ITEMS_MAX]] + more
    if isinstance(value, dict):
        return {_cut(name): _cut(each) for name, each in value.items()}
    return value


def _whole(kind: type[Body]) -> Callable[[Buffer], dict[str, Any]]:
    """All of a body, which has no secrets."""

    def read(data: Buffer) -> dict[str, Any]:
        found: dict[str, Any] = msgspec.to_builtins(kind.of_request(data))
        return found

    return read


def _topics(data: Buffer) -> dict[str, Any]:
    found = TopicConfigList.of_request(data).topic_config_list
    return {"topics": [each.topic_name for each in found]}


def _groups(data: Buffer) -> dict[str, Any]:
    found = GroupConfigList.of_request(data).group_config_list
    return {"groups": [each.group_name for each in found]}


def _leases(data: Buffer) -> dict[str, Any]:
    body = LockBody.of_request(data)
    queues = [f"{each.topic} {each.queue_id} at {each.broker_name}" for each in body.mq_set]
    return {"consumerGroup": body.consumer_group, "clientId": body.client_id, "queues": queues}


def _user(data: Buffer) -> dict[str, Any]:
    """Kind and status of a user, and whether the password changes; never the password."""
    body = UserBody.of_request(data)
    named = {"userType": body.user_type, "userStatus": body.user_status}
    found: dict[str, Any] = {name: text for name, text in named.items() if text}
    return found | ({"setsPassword": True} if body.password else {})


#: Of the bodies of requests that brokers and name servers have alike.
BODY_NAMES: BodyNames = {
    RequestCode.UPDATE_AND_CREATE_TOPIC_LIST: _topics,
    RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP: _whole(GroupConfig),
    RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST: _groups,
    RequestCode.SET_MESSAGE_REQUEST_MODE: _whole(RequestMode),
    RequestCode.AUTH_CREATE_USER: _user,
    RequestCode.AUTH_UPDATE_USER: _user,
    RequestCode.AUTH_CREATE_ACL: _whole(AclBody),
    RequestCode.AUTH_UPDATE_ACL: _whole(AclBody),
    RequestCode.LOCK_BATCH_MQ: _leases,
    RequestCode.UNLOCK_BATCH_MQ: _leases,
}


_OWN_NAMES = {int(code): code.name for code in OwnRequestCode}


def name_of_code(code: int) -> str:
    """RocketMQ's name of a request code, or ours; the number if it has none."""
    return _OWN_NAMES.get(code) or request_name(code)
