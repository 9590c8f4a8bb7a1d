"""Accounts of RocketMQ 4.x's files may do what it lets them do, but for what it forgot to check."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sprocket.auth.guard import Guard, GuardRules
from sprocket.auth.needs import RULES, needs_of
from sprocket.auth.plain_accounts import PlainAccounts
from sprocket.auth.plain_files import read_plain_file
from sprocket.auth.policies import Action, Need
from sprocket.auth.resources import Resource, ResourceKind
from sprocket.base.errors import ConfigError, NoPermission, UsageError
from sprocket.protocol.codes import RequestCode as R
from sprocket.protocol.command import Command
from sprocket.protocol.signing import Signer
from tests.compat.plain_acl_cases import (
    ADDRESSES,
    CLOSED_FILE,
    FILES,
    FROM,
    GOLDEN,
    account_cases,
    address_file,
    code_cases,
    who,
)

pytest.importorskip("yaml", reason="plain_acl.yml is read with PyYAML")

CLUSTER = "DefaultCluster"
CHECKED = GuardRules(True, True, frozenset(), frozenset(), CLUSTER)
HERE = "172.16.0.1"
ONE = "accounts: [{accessKey: somebody, secretKey: abcdefgh%s}]"
SOMEBODY = Signer("somebody", "abcdefgh")


def accounts_of(*texts: str) -> PlainAccounts:
    files = [read_plain_file(f"{at}.yml", text.encode()) for at, text in enumerate(texts)]
    return PlainAccounts(files, CLUSTER)


def guard_of(*texts: str) -> Guard:
    accounts = accounts_of(*texts)
    return Guard(accounts, lambda: CHECKED, passes=accounts.passes)


def request(
    code: int, signer: Signer | None = SOMEBODY, body: bytes = b"", **fields: str
) -> Command:
    return Command(code, source=signer.signed(fields, body) if signer else fields, body=body)


def allows(guard: Guard, command: Command, source: str = HERE) -> bool:
    try:
        guard.check(command, source)
    except NoPermission:
        return False
    return True


def recorded(file: str) -> Iterator[tuple[dict[str, Any], bool]]:
    rows = json.loads((GOLDEN / "accounts.json").read_text())
    allowed = {tuple(row[:4]): set(row[4]) for row in rows}
    for case in account_cases():
        if case["file"] == file:
            yield case, case["name"] in allowed[who(case)]


@pytest.mark.parametrize("file", FILES)
def test_what_4_x_checks_passes_as_there_and_nothing_else_does(file: str) -> None:
    guard = guard_of(FILES[file])
    differing = []
    for case, expected in recorded(file):
        signer = None if case["key"] is None else Signer(case["key"], case["secret"])
        body = (case["body"] or "").encode()
        command = request(case["code"], signer, body, **case["fields"])
        if allows(guard, command, case["from"]) != expected:
            differing.append((case["key"], case["from"], case["name"], f"4.x: {expected}"))
    assert differing == []


def test_white_addresses_are_those_of_4_x() -> None:
    rows = json.loads((GOLDEN / "addresses.json").read_text())
    unsigned = request(R.SEND_MESSAGE, None, topic="t")
    for white, sources in rows:
        if white not in ADDRESSES:
            continue  # refused here
        guard = guard_of(address_file(white))
        passing = [each for each in FROM if allows(guard, unsigned, each)]
        assert passing == sources, white


def test_a_white_address_of_an_account_needs_its_key_and_no_signature() -> None:
    guard = guard_of(ONE % ", whiteRemoteAddress: 10.0.0.*")
    command = Command(R.UPDATE_BROKER_CONFIG, source={"AccessKey": "somebody"})
    assert guard.check(command, "10.0.0.7") == ""  # nobody has proved to be that account
    assert guard.check(command, "::ffff:10.0.0.7") == ""
    for other in ("10.0.1.7", "", "unix"):
        assert not allows(guard, command, other)
    assert not allows(guard, Command(R.UPDATE_BROKER_CONFIG, source={}), "10.0.0.7")


#: Of what 4.9.8 lets each account do, what needs a permission here, and what needs `admin`.
FORGOTTEN = [
    (request(R.SEND_BATCH_MESSAGE, b="orders"), "PUB"),
    (request(R.END_TRANSACTION, topic="orders"), "PUB"),
    (request(R.LITE_PULL_MESSAGE, topic="orders", consumerGroup="g"), "SUB"),
    (request(R.SEND_MESSAGE, topic="%RETRY%other", group="g"), "SUB on the other group"),
    (request(R.QUERY_CONSUMER_OFFSET, topic="orders", consumerGroup="g"), "SUB"),
    (request(R.GET_TOPIC_STATS_INFO, topic="orders"), "PUB"),
]
ADMINS = [
    request(R.UPDATE_AND_CREATE_ACL_CONFIG, accessKey="somebody", secretKey="abcdefgh"),
    request(R.DELETE_ACL_CONFIG, accessKey="somebody"),
    request(R.UPDATE_GLOBAL_WHITE_ADDRS_CONFIG, globalWhiteAddrs="*"),
    request(R.GET_BROKER_CLUSTER_ACL_INFO),
    request(R.INVOKE_BROKER_TO_RESET_OFFSET, topic="orders", group="g"),
    request(R.VIEW_MESSAGE_BY_ID, offset="0"),
    request(R.GET_BROKER_CONFIG),
    request(R.GET_ALL_TOPIC_CONFIG),
    request(R.UPDATE_AND_CREATE_STATIC_TOPIC, topic="orders"),
]


@pytest.mark.parametrize(("command", "needs"), FORGOTTEN, ids=str)
def test_what_4_x_forgot_needs_the_permissions_of_its_topic_and_group(
    command: Command, needs: str
) -> None:
    allowing = ", topicPerms: [orders=PUB|SUB], groupPerms: [g=SUB, other=SUB]"
    assert allows(guard_of(ONE % allowing), command)
    assert not allows(guard_of(ONE % ", topicPerms: [a=PUB|SUB], groupPerms: [g=SUB]"), command)


@pytest.mark.parametrize("command", ADMINS, ids=lambda each: str(each.code))
def test_what_4_x_forgot_and_concerns_all_needs_an_administrator(command: Command) -> None:
    everything = ", defaultTopicPerm: PUB|SUB, defaultGroupPerm: PUB|SUB"
    assert not allows(guard_of(ONE % everything), command)
    assert allows(guard_of(ONE % f"{everything}, admin: true"), command)
    assert allows(guard_of(ONE % ", admin: true, topicPerms: [a=PUB]"), command)


def test_4_x_lets_everybody_do_what_it_does_not_check_and_this_does_not() -> None:
    """An account without permissions, and each request of a broker: what the module of 4.9.8 said
    of it is recorded."""
    guard = guard_of(CLOSED_FILE)
    recorded = json.loads((GOLDEN / "codes.json").read_text())
    checked = {code for code, is_allowed in recorded if not is_allowed}
    assert checked == {10, 11, 12, 15, 17, 25, 34, 35, 36, 38, 200, 207, 215, 310}
    for case in code_cases():
        signer = Signer(case["key"], case["secret"])
        body = (case["body"] or "").encode()
        assert not allows(guard, request(case["code"], signer, body, **case["fields"])), case


def test_replies_to_requests_need_no_permission() -> None:
    guard = guard_of(ONE % ", topicPerms: [orders=SUB]")
    assert allows(guard, request(R.SEND_REPLY_MESSAGE_V2, b=f"{CLUSTER}_REPLY_TOPIC"))
    assert not allows(guard, request(R.SEND_REPLY_MESSAGE_V2, b="another"))
    assert not allows(guard, request(R.SEND_REPLY_MESSAGE_V2, None, b=f"{CLUSTER}_REPLY_TOPIC"))


def test_a_request_without_a_row_is_a_super_users() -> None:
    assert R.REGISTER_BROKER not in RULES
    command = request(R.REGISTER_BROKER)
    assert not allows(guard_of(ONE % ", admin: true, topicPerms: [a=PUB]"), command)
    assert allows(guard_of(ONE % ", admin: true"), command)


def test_a_refusal_says_which_line_decides() -> None:
    guard = guard_of(ONE % ", topicPerms: [orders=SUB], defaultGroupPerm: SUB")
    for topic, why in (
        ("orders", "its line says orders=SUB; needed: Pub"),
        ("others", "its defaultTopicPerm is DENY; needed: Pub"),
    ):
        with pytest.raises(NoPermission, match=why):
            guard.check(request(R.SEND_MESSAGE, topic=topic), HERE)
    with pytest.raises(NoPermission, match="admin is false"):
        guard.check(request(R.GET_BROKER_CONFIG), HERE)


def test_the_first_account_of_a_name_counts_and_others_must_be_usable() -> None:
    accounts = accounts_of(ONE % "", ONE.replace("abcdefgh", "another-key") % ", admin: true")
    assert accounts.users["somebody"].password == "abcdefgh"
    assert not accounts.is_super("somebody")
    assert not accounts.is_super(None)
    with pytest.raises(UsageError, match="no account 'nobody'"):
        accounts.policies_of("nobody")
    with pytest.raises(ConfigError, match=r"0\.yml, line 1: a user's name"):
        accounts_of('accounts: [{accessKey: "abc\\u0007defg", secretKey: abcdefgh}]')


@given(
    st.sampled_from(["DENY", "PUB", "SUB", "PUB|SUB", "pub"]),
    st.sampled_from(["DENY", "PUB", "SUB", "PUB|SUB", ""]),
    st.sampled_from(list(Action)),
)
def test_a_named_permission_is_all_that_counts(named: str, default: str, action: Action) -> None:
    text = f", topicPerms: ['orders={named}'], defaultTopicPerm: '{default}'"
    policies = accounts_of(ONE % text).policies_of("somebody")
    need = Need(Resource(ResourceKind.TOPIC, "orders"), (action,))
    rights = {word.capitalize() for word in named.split("|")} & {"Pub", "Sub"}
    rights = rights if named != "pub" else set()
    expected = action in rights or (action in (Action.GET, Action.LIST) and bool(rights))
    assert policies.judge(need, HERE).is_allowed == expected


def test_each_code_that_4_x_checks_has_a_row() -> None:
    for case in account_cases():
        if case["key"] is not None:
            command = Command(
                case["code"], source=case["fields"], body=(case["body"] or "").encode()
            )
            assert needs_of(command, CLUSTER) is not None
