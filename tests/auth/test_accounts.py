"""Users and their policies, in one table and one file."""

from __future__ import annotations

import json
from collections.abc import Callable

import msgspec
import pytest

from sprocket.auth.accounts import (
    USERS_MAX,
    AccountTable,
    User,
    UserKind,
    UserStatus,
    acl_body,
    entries_in,
    user_in,
)
from sprocket.auth.policies import PolicyEntry, PolicyKind, UserPolicies
from sprocket.auth.resources import ResourcePattern
from sprocket.base.errors import UsageError
from sprocket.protocol.bodies.accounts import AclBody, PolicyBody, PolicyEntryBody, UserBody

ENTRY = PolicyEntry.of("Topic:orders-*", ["Pub", "Sub"], "Allow", ["10.0.0.0/8"])
DEFAULT = PolicyEntry.of("*", ["Get"], "Deny", kind="Default")


def table(*names: str) -> tuple[AccountTable, list[str]]:
    changed: list[str] = []
    accounts = AccountTable(changed.append)
    for name in names:
        accounts.create(User(name, f"secret-{name}"))
    return accounts, changed


def test_a_user_is_made_changed_and_removed_and_each_change_is_reported() -> None:
    accounts, changed = table("ann")
    ann = accounts.user("ann")
    accounts.update(ann.changed(UserBody(user_type="super", user_status="DISABLE")))
    assert accounts.user("ann") == User("ann", "secret-ann", UserKind.SUPER, UserStatus.DISABLED)
    accounts.add_entries("ann", [ENTRY, DEFAULT])
    accounts.delete_entries("ann", PolicyKind.CUSTOM, ENTRY.resource)
    assert accounts.policies_of("ann").entries == (DEFAULT,)
    accounts.delete("ann")
    accounts.delete("ann")
    assert changed == ["ann"] * 5
    assert not accounts.users
    assert not accounts.policies


def test_a_user_made_again_has_none_of_the_rights_of_the_one_before() -> None:
    accounts, _ = table("ann")
    accounts.add_entries("ann", [ENTRY])
    accounts.delete("ann")
    accounts.create(User("ann", "other"))
    assert not accounts.policies_of("ann").entries


def test_all_entries_of_a_user_go_at_once() -> None:
    accounts, _ = table("ann")
    accounts.add_entries("ann", [ENTRY, DEFAULT])
    accounts.delete_entries("ann", PolicyKind.CUSTOM, None)
    assert not accounts.policies


@pytest.mark.parametrize(
    ("do", "why"),
    [
        (lambda t: t.create(User("ann", "x")), "there is a user 'ann' already"),
        (lambda t: t.update(User("bob", "x")), "there is no user 'bob'"),
        (lambda t: t.user("bob"), "there is no user 'bob'"),
        (lambda t: t.add_entries("bob", [ENTRY]), "there is no user 'bob'"),
        (lambda t: t.delete_entries("bob", PolicyKind.CUSTOM, None), "there is no user 'bob'"),
    ],
)
def test_what_names_no_user_or_one_twice_is_refused(
    do: Callable[[AccountTable], None], why: str
) -> None:
    accounts, changed = table("ann")
    before = accounts.to_json()
    with pytest.raises(UsageError, match=why):
        do(accounts)
    assert accounts.to_json() == before
    assert len(changed) == 1


def test_there_is_a_bounded_number_of_users() -> None:
    accounts, _ = table()
    accounts.users = {str(number): User(str(number), "x") for number in range(USERS_MAX)}
    with pytest.raises(UsageError, match="as many as there may be"):
        accounts.create(User("one more", "x"))


@pytest.mark.parametrize(
    ("name", "body", "why"),
    [
        ("", UserBody(password="x"), "name must not be blank"),
        ("a\nb", UserBody(password="x"), "all of them printable"),
        ("a" * 256, UserBody(password="x"), "at most 255"),
        ("ann", UserBody(), "a password must not be blank"),
        ("ann", UserBody(password="x\0"), "a password has at most"),
        ("ann", UserBody(password="x", user_type="Root"), "not one of Super, Normal"),
        ("ann", UserBody(password="x", user_status="on"), "not one of enable, disable"),
    ],
)
def test_a_user_that_is_not_valid_is_refused_and_its_password_not_repeated(
    name: str, body: UserBody, why: str
) -> None:
    with pytest.raises(UsageError, match=why):
        User.of_body(name, body)


def test_what_a_change_leaves_out_stays() -> None:
    user = User.of_body("ann", UserBody(password="p", user_type="Super"))
    assert user.changed(UserBody(password="q")) == User("ann", "q", UserKind.SUPER)
    assert user.changed(UserBody()) == user


def test_a_password_is_shown_only_where_it_is_asked_for() -> None:
    user = User("ann", "hidden")
    assert "hidden" not in repr(user)
    assert user.to_body(has_password=False).password is None
    assert user.to_body(has_password=True).password == "hidden"


def test_the_table_is_read_back_as_it_was_saved() -> None:
    accounts, _ = table("ann", "5", "bob%")
    accounts.add_entries("ann", [ENTRY, DEFAULT])
    accounts.update(User("5", "x", UserKind.SUPER, UserStatus.DISABLED))
    again = AccountTable()
    again.load(json.loads(json.dumps(accounts.to_json())))
    assert again.users == accounts.users
    assert again.policies_of("ann").entries == accounts.policies_of("ann").entries


@pytest.mark.parametrize(
    "state",
    [
        {"users": []},
        {"users": {"ann": {"password": 5}}},
        {"users": {"ann": {"username": "ann"}}},
        {"users": {"ann": {"password": "x", "userType": "Root"}}},
        {
            "users": {"ann": {"password": "x"}},
            "policies": {"ann": {"policies": [{"entries": [{"resource": "odd"}]}]}},
        },
    ],
)
def test_a_file_of_another_form_is_refused_as_a_whole(state: dict[str, object]) -> None:
    accounts, _ = table("bob")
    with pytest.raises((msgspec.ValidationError, ValueError)):
        accounts.load(state)
    assert list(accounts.users) == ["bob"]


def test_a_row_is_copied_from_a_master() -> None:
    accounts, changed = table("ann")
    accounts.add_entries("ann", [ENTRY])
    accounts.copy("ann", User("ann", "new"), UserPolicies())
    assert accounts.user("ann").password == "new"
    assert not accounts.policies_of("ann").entries
    accounts.copy("ann", None, UserPolicies())
    assert not accounts.users
    assert len(changed) == 4


def test_policies_travel_in_rocketmqs_form() -> None:
    body = acl_body("ann", UserPolicies([ENTRY, DEFAULT]))
    assert body.subject == "User:ann"
    assert [policy.policy_type for policy in body.policies] == ["Custom", "Default"]
    assert entries_in(AclBody.of_request(body.encode())) == [ENTRY, DEFAULT]
    assert not acl_body("ann", UserPolicies()).policies


def test_an_entry_without_a_kind_of_policy_is_a_custom_one() -> None:
    plain = PolicyEntryBody(resource="Topic:a", actions=["Pub"], decision="Allow")
    (entry,) = entries_in(AclBody(policies=[PolicyBody(entries=[plain])]))
    assert entry.kind == PolicyKind.CUSTOM
    assert entry.resource == ResourcePattern.parse("Topic:a")
    with pytest.raises(UsageError, match="at least one entry"):
        entries_in(AclBody())


def test_a_subject_is_a_user() -> None:
    assert user_in("User:ann") == "ann"
    for wrong in ("ann", "User:", "Group:ann"):
        with pytest.raises(UsageError, match="a subject is User:NAME"):
            user_in(wrong)
