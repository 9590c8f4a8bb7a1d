"""Targets about who asks: signatures, users and policies. As in `targets`."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable

from sprocket.auth.accounts import AccountTable, User, UserKind
from sprocket.auth.guard import Guard, GuardRules
from sprocket.auth.plain_files import read_plain_file
from sprocket.auth.plain_import import import_plan
from sprocket.auth.requests import AccountRequests
from sprocket.base.errors import SprocketError
from sprocket.protocol.command import Command
from sprocket.protocol.connection import Connection
from sprocket.protocol.frame import encode_request
from sprocket.protocol.requests.pull import PullMessage
from sprocket.protocol.requests.topic import CreateTopic, CreateTopics
from sprocket.protocol.signing import Signer

_PLAIN_ACL = b"""globalWhiteRemoteAddresses:
- 10.10.103.*
- 192.168.0.0-50
accounts:
- accessKey: RocketMQ
  secretKey: 12345678
  whiteRemoteAddress:
  admin: false
  defaultTopicPerm: DENY
  defaultGroupPerm: SUB
  topicPerms:
  - topicA=DENY
  - topicB=PUB|SUB
  groupPerms:
  - groupA=DENY
"""
_RULES = GuardRules(True, True, frozenset({105}), frozenset({106}), "c")
_ROOT, _NORMAL = Signer("root", "root's"), Signer("alice", "alice's")


def _table() -> AccountTable:
    table = AccountTable()
    table.create(User("root", "root's", UserKind.SUPER))
    table.create(User("alice", "alice's"))
    return table


def signatures(data: bytes) -> None:
    """Frames at a closed server: a request passes only with a signature that is right.

    Nobody but the two users passes, and one of them only with what was signed.
    """
    guard, incoming = Guard(_table(), lambda: _RULES), Connection()
    with contextlib.suppress(SprocketError):
        for command in incoming.receive(data):
            try:
                name = guard.check(command, "10.0.0.7")
            except SprocketError:
                continue
            assert name in ("root", "alice") or (name == "" and command.code == 105)
            if name:
                fields = dict(command.fields)
                signature = fields["Signature"]
                assert signature in _known_signatures(), (name, command)


@functools.cache
def _known_signatures() -> frozenset[str]:
    found = set()
    for frame in _signed():
        for command in Connection().receive(frame):
            found.add(command.fields.get("Signature", ""))
    return frozenset(found)


def account_bodies(data: bytes) -> None:
    """Requests about users and policies, by a super user and by nobody: refused in words, or done.

    The first byte says which request; then fields by lines, a blank line, and the body. What is
    done can be saved and loaded again, and there is always a super user.
    """
    if not data:
        return
    head, _, body = data[1:].partition(b"\n\n")
    lines = (line.partition("=") for line in head.decode("utf-8", "replace").split("\n"))
    fields = {name: value for name, _, value in lines}
    table = _table()
    for user in ("root", ""):
        command = Command(3001 + data[0] % 10, body=body, source=dict(fields), user=user)
        with contextlib.suppress(SprocketError):
            AccountRequests(table, lambda: True).table()[command.code](command)
    assert any(each.is_super and each.is_enabled for each in table.users.values())
    again = AccountTable()
    again.load(table.to_json())
    assert again.to_json() == table.to_json()


def plain_acl_files(data: bytes) -> None:
    """RocketMQ 4's `plain_acl.yml`: refused in words, or taken over with a line for each thing."""
    with contextlib.suppress(SprocketError):
        import_plan([read_plain_file("plain_acl.yml", data)])


def plain_acl_lines(data: bytes) -> None:
    """The same of lines that may stand in such a file: each byte says which is next, so that YAML
    refuses fewer of them."""
    lines = [_ACL_LINES[each % len(_ACL_LINES)] for each in data[:60]]
    plain_acl_files("\n".join(["accounts:", *lines]).encode())


_ACL_LINES = (
    "- accessKey: RocketMQ", "  secretKey: 12345678", "  secretKey: '12345678'", "  admin: true",
    "  admin: maybe", "  whiteRemoteAddress: 10.0.0.*", "  whiteRemoteAddress: 10.0.0.1-9,*",
    "  whiteRemoteAddress: ::1", "  whiteRemoteAddress:", "  defaultTopicPerm: DENY",
    "  defaultGroupPerm: PUB|SUB", "  defaultGroupPerm: sub", "  topicPerms:", "  - t=PUB",
    "  - '*=SUB'", "  - =", "  - a=b=c", "  groupPerms:", "  - '%RETRY%g=SUB'", "  groupPerms: x",
    "- accessKey: another-account", "- &a", "- *a", "- []", "- {accessKey: 1234567}", "accounts:",
    "globalWhiteRemoteAddresses:", "- 192.168.1-9.*", "- '*'", "- {10.0.0.1,2}", "dataVersion: 1",
    "? [x]", "--- ",
)  # fmt: skip


def _signed() -> list[bytes]:
    topics = b'{"topicConfigList":[{"topicName":"t"}]}'
    pull = PullMessage(
        consumer_group="g", topic="t", queue_id=0, queue_offset=0, max_msg_nums=1, sys_flag=0
    )
    create = CreateTopic(
        topic="t", default_topic="x", read_queue_nums=1, write_queue_nums=1, perm=6,
        topic_filter_type="SINGLE_TAG",
    )  # fmt: skip
    found = []
    for serialization in (0, 1):
        for signer in (_ROOT, _NORMAL, Signer("eve", "eve's")):
            for header, body in ((pull, b""), (create, b""), (CreateTopics(), topics)):
                parts = encode_request(
                    header, 1, body=body, serialization=serialization, signer=signer
                )
                found.append(b"".join(bytes(part) for part in parts))
    return found


def _account_seeds() -> list[bytes]:
    user = b'{"username":"bob","password":"x","userType":"Normal","userStatus":"enable"}'
    policy = (
        b'{"subject":"User:alice","policies":[{"policyType":"Custom","entries":[{"resource":'
        b'"Topic:a*","actions":["Pub","Sub"],"sourceIps":["10.0.0.0/8"],"decision":"Allow"}]}]}'
    )
    found = []
    for number in range(10):
        for head in (b"username=bob", b"username=alice", b"subject=User:alice\nresource=Topic:a*",
                     b"username=root", b"filter=a"):  # fmt: skip
            found += [bytes([number]) + head + b"\n\n" + body for body in (user, policy, b"")]
    return found


ACCOUNTS = (signatures, account_bodies, plain_acl_files, plain_acl_lines)
ACCOUNT_SEEDS: dict[str, Callable[[], list[bytes]]] = {
    "signatures": _signed,
    "account_bodies": _account_seeds,
    "plain_acl_lines": lambda: [bytes([0, 1, 3, 5, 9, 12, 13]), bytes([0, 2, 17, 18, 26, 27, 30])],
    "plain_acl_files": lambda: [_PLAIN_ACL, _PLAIN_ACL.replace(b"PUB", b"DENY")],
}
