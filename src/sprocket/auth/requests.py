"""The requests about users and their policies (3001 to 3010), over one table. Pure.

Only a super user may make, change or remove a super user, or see passwords: whoever copies users
to another broker needs these. Where nothing is authenticated anybody may make super users, as at
RocketMQ's broker, so that the first ones can be made; but nobody sees a password.

Making what is there already, exactly alike, is no error: mqadmin sends each change to the masters
and to the slaves. Source: AdminBrokerProcessor of RocketMQ 5.3.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from operator import itemgetter

import msgspec

from sprocket.auth.accounts import AccountTable, User, acl_body, entries_in, user_in
from sprocket.auth.policies import PolicyKind, UserPolicies, word
from sprocket.auth.resources import ResourcePattern
from sprocket.base.errors import NoPermission, UsageError
from sprocket.protocol.bodies.accounts import AclBody, UserBody
from sprocket.protocol.bodies.body import Body
from sprocket.protocol.codes import RequestCode
from sprocket.protocol.command import Command, Reply
from sprocket.protocol.requests.account import (
    AclOf,
    Acls,
    CreateAcl,
    CreateUser,
    DeleteAcl,
    DeleteUser,
    UpdateUser,
    UserOf,
    Users,
)

#: The requests that change something.
CHANGES = (
    RequestCode.AUTH_CREATE_USER,
    RequestCode.AUTH_UPDATE_USER,
    RequestCode.AUTH_DELETE_USER,
    RequestCode.AUTH_CREATE_ACL,
    RequestCode.AUTH_UPDATE_ACL,
    RequestCode.AUTH_DELETE_ACL,
)


class AccountRequests:
    """Answers the requests about one table.

    Args:
        is_on: whether requests are authenticated now.
    """

    def __init__(self, accounts: AccountTable, is_on: Callable[[], bool]) -> None:
        self._accounts = accounts
        self._is_on = is_on

    def table(self) -> Mapping[int, Callable[[Command], Reply]]:
        """What answers each request, by code. They raise `SprocketError`, before any change."""
        return {
            RequestCode.AUTH_CREATE_USER: self.create_user,
            RequestCode.AUTH_UPDATE_USER: self.update_user,
            RequestCode.AUTH_DELETE_USER: self.delete_user,
            RequestCode.AUTH_GET_USER: self.user,
            RequestCode.AUTH_LIST_USER: lambda each: encode_rows(self.users(each)),
            RequestCode.AUTH_CREATE_ACL: self.add_entries,
            RequestCode.AUTH_UPDATE_ACL: self.add_entries,
            RequestCode.AUTH_DELETE_ACL: self.delete_entries,
            RequestCode.AUTH_GET_ACL: self.acl,
            RequestCode.AUTH_LIST_ACL: lambda each: encode_rows(self.acls(each)),
        }

    def create_user(self, command: Command) -> Reply:
        """Makes a user."""
        name = command.read(CreateUser).username
        body = UserBody.of_request(command.body)
        if body.password is None:  # a user that another broker showed
            raise UsageError(
                "a user needs a password: brokers show it only to super users who sign in, so only "
                "they can copy users"
            )
        made = User.of_body(name, body)
        self._check_may_change(command, made)
        if self._accounts.users.get(name) != made:
            self._accounts.create(made)
        return Reply()

    def update_user(self, command: Command) -> Reply:
        """Changes a user."""
        old = self._accounts.user(command.read(UpdateUser).username)
        new = old.changed(UserBody.of_request(command.body))
        self._check_may_change(command, old, new)
        self._check_is_not_last(old, new)
        if new != old:
            self._accounts.update(new)
        return Reply()

    def delete_user(self, command: Command) -> Reply:
        """Removes a user and its policies."""
        old = self._accounts.users.get(command.read(DeleteUser).username)
        if old is not None:
            self._check_may_change(command, old)
            self._check_is_not_last(old, None)
            self._accounts.delete(old.name)
        return Reply()

    def user(self, command: Command) -> Reply:
        """One user."""
        found = self._accounts.users.get(command.read(UserOf).username)
        return Reply() if found is None else Reply(body=self._shown(found, command).encode())

    def users(self, command: Command) -> Iterator[UserBody]:
        """The users whose names contain a text, by name."""
        part = command.read(Users).filter or ""
        for name, user in sorted(self._accounts.users.items(), key=itemgetter(0)):
            if part in name:
                yield self._shown(user, command)

    def add_entries(self, command: Command) -> Reply:
        """Adds entries to a user's policies."""
        body = AclBody.of_request(command.body)
        name = user_in(body.subject or command.read(CreateAcl).subject)
        self._check_may_change(command, self._accounts.user(name))
        self._accounts.add_entries(name, entries_in(body))
        return Reply()

    def delete_entries(self, command: Command) -> Reply:
        """Removes entries from a user's policies."""
        header = command.read(DeleteAcl)
        user = self._accounts.user(user_in(header.subject))
        kind = word(PolicyKind, header.policy_type or PolicyKind.CUSTOM)
        resource = ResourcePattern.parse(header.resource) if header.resource else None
        self._check_may_change(command, user)
        self._accounts.delete_entries(user.name, kind, resource)
        return Reply()

    def acl(self, command: Command) -> Reply:
        """One user's policies."""
        name = self._accounts.user(user_in(command.read(AclOf).subject)).name
        policies = self._accounts.policies_of(name)
        return Reply(body=acl_body(name, policies).encode()) if policies.entries else Reply()

    def acls(self, command: Command) -> Iterator[AclBody]:
        """The policies of all users, by name, as the filters say."""
        header = command.read(Acls)
        part = header.resource_filter or ""
        for name, policies in sorted(self._accounts.policies.items(), key=itemgetter(0)):
            entries = [each for each in policies.entries if part in str(each.resource)]
            if entries and (header.subject_filter or "") in f"User:{name}":
                yield acl_body(name, UserPolicies(entries))

    def _shown(self, user: User, command: Command) -> UserBody:
        may_see = self._is_on() and self._accounts.is_super(command.user)
        return user.to_body(has_password=may_see)

    def _check_may_change(self, command: Command, *users: User) -> None:
        """
        Raises:
            NoPermission: one of the users is, or becomes, a super user, and whoever asks is none.
        """
        if not self._is_on() or self._accounts.is_super(command.user):
            return
        if any(each.is_super for each in users):
            raise NoPermission("only a super user may make, change or remove a super user")

    def _check_is_not_last(self, old: User, new: User | None) -> None:
        """
        Raises:
            UsageError: nobody would be left who may change users.
        """
        stays = new is not None and new.is_super and new.is_enabled
        if not self._is_on() or stays or not (old.is_super and old.is_enabled):
            return
        others = (each for each in self._accounts.users.values() if each.name != old.name)
        if not any(each.is_super and each.is_enabled for each in others):
            raise UsageError(
                f"{old.name} is the last super user that is enabled: make another one first"
            )


def encode_rows(rows: Iterable[Body]) -> Reply:
    """The reply that lists some rows."""
    return Reply(body=msgspec.json.encode(list(rows)))
