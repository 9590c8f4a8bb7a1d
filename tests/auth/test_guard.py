"""What passes and what is refused, by signature and by right."""

from __future__ import annotations

import contextlib
import struct

import pytest

from sprocket.auth.accounts import AccountTable, User, UserKind, UserStatus
from sprocket.auth.guard import Guard, GuardRules
from sprocket.auth.policies import PolicyEntry
from sprocket.base.errors import NoPermission
from sprocket.protocol.codes import RequestCode
from sprocket.protocol.command import Command, Header
from sprocket.protocol.connection import Connection
from sprocket.protocol.requests.client import Heartbeat
from sprocket.protocol.requests.offset import MaxOffset
from sprocket.protocol.requests.send import SendMessageV2
from sprocket.protocol.signing import Signer

HERE = "10.1.2.3"
SEND = SendMessageV2(producer_group="p", topic="orders", queue_id=0, born_timestamp=1)

ASK = MaxOffset(topic="orders", queue_id=0)


def guard(
    *,
    authenticates: bool = True,
    authorizes: bool = True,
    unsigned: tuple[int, ...] = (),
    unjudged: tuple[int, ...] = (),
) -> Guard:
    accounts = AccountTable()
    accounts.create(User("ann", "ann's"))
    accounts.create(User("root", "root's", UserKind.SUPER))
    accounts.create(User("gone", "gone's", UserKind.SUPER, UserStatus.DISABLED))
    accounts.add_entries("ann", [PolicyEntry.of("Topic:orders", ["Pub"], "Allow", ["10.0.0.0/8"])])
    rules = GuardRules(authenticates, authorizes, frozenset(unsigned), frozenset(unjudged), "C")
    return Guard(accounts, lambda: rules)


def signed(
    header: Header, name: str, key: str = "", *, body: bytes = b"", version: int = 479
) -> Command:
    fields = Signer(name, key or f"{name}'s").signed(header.to_fields(), body)
    return Command(header.code, source=fields, body=body, version=version)


def refusal(command: Command, source: str = HERE, **rules: object) -> str:
    with pytest.raises(NoPermission) as raised:
        guard(**rules).check(command, source)  # type: ignore[arg-type]
    return raised.value.remark


def test_a_right_signature_and_a_right_pass() -> None:
    assert guard().check(signed(SEND, "ann"), HERE) == "ann"


def test_a_super_user_needs_no_rights() -> None:
    assert guard().check(signed(Command.request(SEND).read(SendMessageV2), "root"), "") == "root"
    assert guard().check(Command(12345, source=Signer("root", "root's").signed({}, b"")), "")


def test_nothing_is_checked_where_it_is_off() -> None:
    assert guard(authenticates=False).check(Command.request(SEND), HERE) == ""


@pytest.mark.parametrize(
    ("command", "why"),
    [
        (Command.request(SEND), "is not signed"),
        (signed(SEND, "ann", "wrong"), "'ann' with this secret key: check signature failed"),
        (signed(SEND, "bob", "x"), "'bob' with this secret key: check signature failed"),
        (signed(SEND, "gone"), "User:gone is disabled"),
        (
            signed(MaxOffset(topic="orders", queue_id=0), "ann"),
            "no permission to access Topic:orders",
        ),
        (Command(12345, source=Signer("ann", "ann's").signed({}, b"")), "only super users"),
    ],
)
def test_what_may_not_pass_is_refused(command: Command, why: str) -> None:
    assert why in refusal(command)


def test_who_it_is_shows_no_difference_between_a_wrong_key_and_no_such_user() -> None:
    known = refusal(signed(SEND, "ann", "wrong")).replace("ann", "")
    assert known == refusal(signed(SEND, "bob", "wrong")).replace("bob", "")
    assert "disabled" not in refusal(signed(SEND, "gone", "wrong"))


def test_a_refusal_names_the_right_and_where_it_comes_from() -> None:
    text = refusal(signed(SEND, "ann"), "11.0.0.1")
    assert text == (
        "User:ann has no permission to access Topic:orders from 11.0.0.1, no matched policies; "
        "needed: Pub"
    )


def test_a_changed_request_is_no_longer_signed() -> None:
    command = signed(SEND, "ann", body=b"paid")
    command.body = b"gift"
    assert "check signature failed" in refusal(command)
    command = signed(SEND, "ann")
    command.source = {**command.fields, "b": "other"}
    assert "check signature failed" in refusal(command)
    command.source = {**command.fields, "extra": "1"}
    assert "check signature failed" in refusal(command)


@pytest.mark.parametrize("signature", ["", "é", "\ud800", "x" * 10_000])
def test_a_signature_that_is_none_is_refused(signature: str) -> None:
    command = signed(SEND, "ann")
    command.source = {**command.fields, "Signature": signature}
    assert "check signature failed" in refusal(command)


def test_an_unknown_user_has_no_empty_key() -> None:
    fields = Signer("nobody", "").signed(SEND.to_fields(), b"")
    assert "check signature failed" in refusal(Command(SEND.code, source=fields))


def test_a_field_that_old_clients_add_after_signing_counts_for_these_only() -> None:
    for version, passes in ((399, True), (400, False)):
        command = signed(ASK, "root", version=version)
        command.source = {**command.fields, "_UNIQUE_KEY_QUERY": "true"}
        if passes:
            guard().check(command, HERE)
        else:
            assert "check signature failed" in refusal(command)


def test_codes_may_be_let_pass_unsigned_or_without_rights() -> None:
    code = int(RequestCode.HEART_BEAT)
    guard(unsigned=(code,)).check(Command.request(Heartbeat()), HERE)
    body = b'{"consumerDataSet":[{"groupName":"g"}]}'
    command = signed(Heartbeat(), "ann", body=body)
    guard(unjudged=(code,)).check(command, HERE)
    assert "Group:g" in refusal(command)
    assert "is not signed" in refusal(Command.request(Heartbeat()), unjudged=(code,))


def test_rights_are_not_asked_for_without_authorization() -> None:
    other = signed(MaxOffset(topic="secret", queue_id=0), "ann")
    guard(authorizes=False).check(other, HERE)
    assert "check signature" in refusal(signed(SEND, "ann", "wrong"), authorizes=False)


def test_a_body_is_not_read_before_the_signature_is_checked() -> None:
    command = signed(Heartbeat(), "ann", "wrong", body=b"[[[")
    assert "check signature failed" in refusal(command)


def test_refusals_are_counted() -> None:
    checks = guard()
    for command in (Command.request(SEND), signed(SEND, "ann")):
        with contextlib.suppress(NoPermission):
            checks.check(command, HERE)
    assert checks.refused == 1


_REST = b'"a":"p","c":"x","d":"4","e":"0","f":"0","g":"1","h":"0"'


@pytest.mark.parametrize(
    "fields",
    [
        b',"b":"one","b":"two"',
        b',"b":"one","\\u0062":"two"',
        b',"\\u0062":"two","b":"one"',
        b',"b":null,"b":"one"',
        b',"b":5',
        b',"b":"one"},"extFields":{"a":"p","c":"x","d":"4","e":"0","f":"0","g":"1","h":"0","b":"2"',
        b',b:\'one\',"b":"two"',
        b",'b':'one'",
    ],
)
def test_what_is_judged_is_what_the_endpoint_reads(fields: bytes) -> None:
    header = b'{"code":310,"extFields":{%s%s},"opaque":1,"version":479}' % (_REST, fields)
    frame = struct.pack(">II", 4 + len(header), len(header)) + header
    (read,), (judged,) = Connection().receive(frame), Connection().receive(frame)
    assert read.read(SendMessageV2).topic == judged.fields["b"]
