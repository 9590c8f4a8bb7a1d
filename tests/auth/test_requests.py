"""Users and policies, changed and listed by requests."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from sprocket.auth.accounts import AccountTable, User, UserKind, UserStatus
from sprocket.auth.requests import CHANGES, AccountRequests
from sprocket.base.errors import NoPermission, UsageError
from sprocket.protocol.bodies import AclBody, PolicyBody, PolicyEntryBody, UserBody
from sprocket.protocol.command import Command, Header, Reply
from sprocket.protocol.requests.account import (
    AclOf,
    Acls,
    CreateAcl,
    CreateUser,
    DeleteAcl,
    DeleteUser,
    UpdateAcl,
    UpdateUser,
    UserOf,
    Users,
)


class Desk:
    """The requests over a table with a super user, `root`, and a normal one, `ann`."""

    def __init__(self, *, is_on: bool = True) -> None:
        self.accounts = AccountTable()
        self.accounts.create(User.first("root", "root's"))
        self.accounts.create(User("ann", "ann's"))
        self.table = AccountRequests(self.accounts, lambda: is_on).table()

    def ask(self, header: Header, body: bytes = b"", *, user: str = "root") -> Reply:
        command = Command.request(header, body=body)
        command.user = user
        return self.table[header.code](command)

    def rows(self, header: Header, *, user: str = "root") -> list[Any]:
        body = self.ask(header, user=user).body
        assert isinstance(body, bytes)
        found: list[Any] = msgspec.json.decode(body)
        return found


def acl(*resources: str, actions: tuple[str, ...] = ("Pub",)) -> bytes:
    entries = [
        PolicyEntryBody(resource=each, actions=list(actions), decision="Allow")
        for each in resources
    ]
    return AclBody(policies=[PolicyBody(entries=entries)]).encode()


def test_a_user_is_made_changed_shown_and_removed() -> None:
    desk = Desk()
    desk.ask(CreateUser(username="bob"), b'{"password":"p","userType":"Super"}')
    desk.ask(UpdateUser(username="bob"), b'{"userStatus":"disable"}')
    assert desk.accounts.user("bob") == User("bob", "p", UserKind.SUPER, UserStatus.DISABLED)
    shown = UserBody.of_request(bytes(desk.ask(UserOf(username="bob")).body))  # type: ignore[arg-type]
    assert shown == UserBody("p", "disable", "Super", "bob")
    desk.ask(DeleteUser(username="bob"))
    desk.ask(DeleteUser(username="bob"))
    assert desk.ask(UserOf(username="bob")) == Reply()


def test_a_user_that_is_made_again_exactly_alike_is_no_error_and_no_change() -> None:
    desk = Desk()
    before = desk.accounts.to_json()
    desk.ask(CreateUser(username="ann"), UserBody(password="ann's").encode())
    assert desk.accounts.to_json() == before
    with pytest.raises(UsageError, match="already"):
        desk.ask(CreateUser(username="ann"), UserBody(password="other").encode())
    with pytest.raises(UsageError, match="no user 'bob'"):
        desk.ask(UpdateUser(username="bob"), UserBody(password="other").encode())


def test_users_are_listed_by_a_part_of_their_names() -> None:
    desk = Desk()
    desk.accounts.create(User("anton", "x"))
    names = [each["username"] for each in desk.rows(Users(filter="an"))]
    assert names == ["ann", "anton"]
    assert len(desk.rows(Users())) == 3
    assert desk.rows(Users(filter="nobody")) == []


@pytest.mark.parametrize(
    ("user", "is_on", "sees"),
    [("root", True, True), ("ann", True, False), ("", True, False), ("", False, False)],
)
def test_a_super_user_sees_passwords_and_nobody_else(user: str, is_on: bool, sees: bool) -> None:
    desk = Desk(is_on=is_on)
    rows = desk.rows(Users(), user=user)
    assert [("password" in each) for each in rows] == [sees] * 2
    one = desk.ask(UserOf(username="ann"), user=user).body
    assert (b"ann's" in bytes(one)) == sees  # type: ignore[arg-type]


SUPER = UserBody(password="x", user_type="Super").encode()


@pytest.mark.parametrize(
    ("header", "body"),
    [
        (CreateUser(username="new"), SUPER),
        (UpdateUser(username="ann"), SUPER),
        (UpdateUser(username="root"), UserBody(password="stolen").encode()),
        (UpdateUser(username="root"), UserBody(user_type="Normal").encode()),
        (DeleteUser(username="root"), b""),
        (CreateAcl(subject="User:root"), acl("*")),
        (DeleteAcl(subject="User:root"), b""),
    ],
)
def test_super_users_are_made_changed_and_removed_by_super_users_only(
    header: Header, body: bytes
) -> None:
    desk = Desk()
    desk.accounts.create(User.first("second", "x"))
    before = desk.accounts.to_json()
    for user in ("ann", ""):
        with pytest.raises(NoPermission, match="only a super user"):
            desk.ask(header, body, user=user)
        assert desk.accounts.to_json() == before
    desk.ask(header, body)
    open_desk = Desk(is_on=False)
    open_desk.ask(header, body, user="")


@pytest.mark.parametrize(
    ("header", "body"),
    [
        (DeleteUser(username="root"), b""),
        (UpdateUser(username="root"), UserBody(user_status="disable").encode()),
        (UpdateUser(username="root"), UserBody(user_type="Normal").encode()),
    ],
)
def test_the_last_super_user_that_is_enabled_stays(header: Header, body: bytes) -> None:
    desk = Desk()
    off = User("off", "x", UserKind.SUPER, UserStatus.DISABLED)
    desk.accounts.create(off)
    with pytest.raises(UsageError, match="root is the last super user that is enabled"):
        desk.ask(header, body)
    desk.ask(UpdateUser(username="root"), UserBody(password="new").encode())
    desk.accounts.update(User.first("off", "x"))
    desk.ask(header, body)
    Desk(is_on=False).ask(header, body)


def test_entries_are_added_replaced_listed_and_removed() -> None:
    desk = Desk()
    desk.ask(CreateAcl(subject="User:ann"), acl("Topic:a", "Topic:b"))
    desk.ask(UpdateAcl(subject="User:ann"), acl("Topic:b", "Group:g", actions=("Sub", "Get")))
    body = desk.ask(AclOf(subject="User:ann")).body
    (policy,) = AclBody.of_request(bytes(body)).policies  # type: ignore[arg-type]
    assert [(each.resource, each.actions) for each in policy.entries] == [
        ("Topic:a", ["Pub"]), ("Topic:b", ["Get", "Sub"]), ("Group:g", ["Get", "Sub"]),
    ]  # fmt: skip
    (row,) = desk.rows(Acls(subject_filter="an", resource_filter="Topic"))
    assert row["subject"] == "User:ann"
    assert len(row["policies"][0]["entries"]) == 2
    assert desk.rows(Acls(subject_filter="bob")) == desk.rows(Acls(resource_filter="Q")) == []
    desk.ask(DeleteAcl(subject="User:ann", resource="Topic:a", policy_type="custom"))
    assert len(desk.accounts.policies_of("ann").entries) == 2
    desk.ask(DeleteAcl(subject="User:ann"))
    assert desk.ask(AclOf(subject="User:ann")) == Reply()


@pytest.mark.parametrize(
    ("header", "body"),
    [
        (CreateAcl(subject="User:bob"), acl("*")),
        (CreateAcl(subject="ann"), acl("*")),
        (CreateAcl(subject="User:ann"), acl()),
        (CreateAcl(subject="User:ann"), acl("Topic:a", "Queue:b")),
        (DeleteAcl(subject="User:ann", resource="odd"), b""),
        (DeleteAcl(subject="User:ann", policy_type="odd"), b""),
        (AclOf(subject="User:bob"), b""),
    ],
)
def test_what_is_not_valid_changes_nothing(header: Header, body: bytes) -> None:
    desk = Desk()
    before = desk.accounts.to_json()
    with pytest.raises(UsageError):
        desk.ask(header, body)
    assert desk.accounts.to_json() == before


def test_the_changes_are_all_that_change_something() -> None:
    assert set(CHANGES) == Desk().table.keys() - {3004, 3005, 3009, 3010}
