"""What accounts of RocketMQ 4.x become says the same as 4.x said, where users and policies can."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from sprocket.auth.accounts import AccountTable
from sprocket.auth.guard import Guard, GuardRules
from sprocket.auth.plain_files import read_plain_file
from sprocket.auth.plain_import import ImportPlan, import_plan
from sprocket.base.errors import ConfigError, NoPermission
from sprocket.protocol.command import Command
from sprocket.protocol.signing import Signer
from tests.compat.plain_acl_cases import FILES, GOLDEN, account_cases, who

pytest.importorskip("yaml", reason="plain_acl.yml is read with PyYAML")

RULES = GuardRules(True, True, frozenset(), frozenset(), "DefaultCluster")


def planned(*texts: str) -> ImportPlan:
    files = [read_plain_file(f"{at}.yml", text.encode()) for at, text in enumerate(texts)]
    return import_plan(files)


def guard_of(plan: ImportPlan) -> Guard:
    accounts = AccountTable()
    for user in plan.users:
        accounts.create(user)
    for name, entries in plan.policies.items():
        accounts.add_entries(name, entries)
    return Guard(accounts, lambda: RULES)


def allows(guard: Guard, case: dict[str, Any]) -> bool:
    body = (case["body"] or "").encode()
    fields = case["fields"]
    if case["key"] is not None:
        fields = Signer(case["key"], case["secret"]).signed(fields, body)
    command = Command(case["code"], source=fields, body=body)
    try:
        guard.check(command, case["from"])
    except NoPermission:
        return False
    return True


def recorded(file: str) -> Iterator[tuple[dict[str, Any], bool]]:
    rows = json.loads((GOLDEN / "accounts.json").read_text())
    allowed = {tuple(row[:4]): set(row[4]) for row in rows}
    for case in account_cases():
        if case["file"] == file:
            yield case, case["name"] in allowed[who(case)]


#: From a white address 4.x does not look at the signature.
@pytest.mark.parametrize("file", FILES)
def test_requests_pass_that_rocketmq_lets_pass_and_no_others(file: str) -> None:
    guard = guard_of(planned(FILES[file]))
    differing = [
        (case["key"], case["from"], case["name"], f"4.x allows: {allowed}")
        for case, allowed in recorded(file)
        if allows(guard, case) != allowed
    ]
    assert differing == []


def test_the_addresses_of_the_file_are_lost_and_named() -> None:
    plan = planned("globalWhiteRemoteAddresses:\n- 10.10.103.*\n")
    assert plan.users == ()
    assert [(each.line, each.user) for each in plan.lost] == [(2, "")]


def test_a_white_account_does_everything_from_there_but_signs() -> None:
    guard = guard_of(planned(FILES["white"]))
    case: dict[str, Any] = {
        "key": "white-some",
        "secret": "12345678",
        "from": "10.0.0.7",
        "code": 17,
        "fields": {"topic": "t"},
        "body": None,
    }
    assert allows(guard, case)
    assert not allows(guard, {**case, "from": "10.0.0.8"})
    assert not allows(guard, {**case, "secret": "wrong-secret"})


def test_each_line_says_what_it_becomes() -> None:
    plan = planned(FILES["open"])
    told = {each.text: each.becomes for each in plan.lines}
    assert told["topicA=DENY"] == "Deny Pub,Sub on Topic:topicA (default)"
    assert told["topicB=PUB"] == "Allow Pub on Topic:topicB; Deny Sub on Topic:topicB (default)"
    assert told["topicC=sub"].endswith("(4.x knows no such word, and refuses)")
    assert told["defaultGroupPerm: SUB|PUB"] == "Allow Pub,Sub on Group:* (default)"
    assert [each.line for each in plan.lines] == sorted(each.line for each in plan.lines)
    assert "secret-1" not in str(plan.lines)


def test_a_star_in_a_name_does_not_become_a_prefix() -> None:
    plan = planned('accounts: [{accessKey: starlike, secretKey: abcdefgh, topicPerms: ["a*=PUB"]}]')
    entries = plan.policies["starlike"]
    assert [str(each.resource) for each in entries] == ["Topic:RMQ_SYS_TRACE_TOPIC"]
    assert [each.text for each in plan.lost] == ["a*=PUB"]


def test_the_first_of_several_accounts_of_a_name_counts() -> None:
    one = "accounts: [{accessKey: same-name, secretKey: %s}]"
    plan = planned(one % "first-key", one % "second-key")
    assert [(user.name, user.password) for user in plan.users] == [("same-name", "first-key")]
    assert [(each.file, each.becomes) for each in plan.lost] == [
        ("1.yml", "nothing: the first account of this name counts")
    ]


def test_what_a_user_here_cannot_be_is_a_fault_with_its_line() -> None:
    begun = "accounts:\n- accessKey: somebody\n  secretKey: "
    with pytest.raises(ConfigError, match=r"0\.yml, line 2: a password"):
        planned(f"{begun}{'x' * 300}\n")
    many = ", ".join(f"t{at}=SUB" for at in range(1_001))
    with pytest.raises(ConfigError, match=r"0\.yml, line 2: a user has at most 1000"):
        planned(f"{begun}abcdefgh\n  topicPerms: [{many}]\n")
    odd = ",".join(str(at) for at in range(1, 250, 2))
    with pytest.raises(ConfigError, match="an entry has at most 100"):
        planned(f'{begun}abcdefgh\n  whiteRemoteAddress: "1.1.1.{{{odd}}}"\n')
