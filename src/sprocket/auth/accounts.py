"""The users of a broker and their policies, in one table and one file. Pure.

A user's password is the key of the signatures (HMAC-SHA1), so whoever checks a signature must have
it: it cannot be kept as a hash, as passwords should be. It is in the file in clear text, as in
RocketMQ's, so nobody but the broker's user should be able to read the file.

File: `{"users":{name:{...}},"policies":{name:{...}}}`, with RocketMQ's bodies. RocketMQ keeps them
in RocksDB. Source of the rules: AuthenticationMetadataManagerImpl, AuthorizationMetadataManagerImpl
of RocketMQ 5.3.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

import msgspec

from sprocket.auth.policies import Decision, PolicyEntry, PolicyKind, UserPolicies, word
from sprocket.auth.resources import ResourcePattern
from sprocket.base.errors import UsageError
from sprocket.base.suggestions import shown
from sprocket.protocol.bodies.accounts import AclBody, PolicyBody, PolicyEntryBody, UserBody

#: Users of a broker, and characters of a name or password, at most.
USERS_MAX = 10_000
_TEXT_MAX = 255
_SUBJECT = "User:"


#: Converts the rows of a table: all at once, or each when it is needed.
Rows = Callable[[Mapping[str, Any], Callable[[Any], Any]], Mapping[str, Any]]


class UserKind(StrEnum):
    """What a user is. The values are RocketMQ's words."""

    SUPER = "Super"
    NORMAL = "Normal"


class UserStatus(StrEnum):
    """Whether a user may do anything. The values are RocketMQ's words."""

    ENABLED = "enable"
    DISABLED = "disable"


@dataclass(frozen=True, slots=True)
class User:
    """Somebody who signs requests.

    Attributes:
        kind: a super user may do everything; a normal one what the policies allow.
    """

    name: str
    password: str = field(repr=False)
    kind: UserKind = UserKind.NORMAL
    status: UserStatus = UserStatus.ENABLED

    @property
    def is_super(self) -> bool:
        """Whether the user may do everything."""
        return self.kind == UserKind.SUPER

    @property
    def is_enabled(self) -> bool:
        """Whether the user may do anything."""
        return self.status == UserStatus.ENABLED

    @classmethod
    def of_body(cls, name: str, body: UserBody) -> User:
        """A new user from a request.

        Raises:
            UsageError: the name or password is not valid, or there is no such kind or status.
        """
        _check_text("a user's name", name)
        _check_text("a password", body.password or "")
        user = cls(name, body.password or "")
        return user.changed(UserBody(user_type=body.user_type, user_status=body.user_status))

    @classmethod
    def first(cls, name: str, password: str) -> User:
        """A super user of the settings.

        Raises:
            UsageError: the name or password is not valid.
        """
        return cls.of_body(name, UserBody(password=password, user_type=UserKind.SUPER))

    def changed(self, body: UserBody) -> User:
        """The user with what a request names; what it leaves out stays.

        Raises:
            UsageError: the password is not valid, or there is no such kind or status.
        """
        if body.password:
            _check_text("a password", body.password)
        return replace(
            self,
            password=body.password or self.password,
            kind=word(UserKind, body.user_type) if body.user_type else self.kind,
            status=word(UserStatus, body.user_status) if body.user_status else self.status,
        )

    def to_body(self, *, has_password: bool) -> UserBody:
        """The user as RocketMQ writes it; without the password unless it is asked for."""
        return UserBody(
            username=self.name,
            password=self.password if has_password else None,
            user_type=self.kind,
            user_status=self.status,
        )


def _check_text(what: str, text: str) -> None:
    if not text.strip():
        raise UsageError(f"{what} must not be blank")
    if len(text) > _TEXT_MAX or not text.isprintable():
        raise UsageError(f"{what} has at most {_TEXT_MAX} characters, all of them printable")


def user_in(subject: str) -> str:
    """The name in a subject of RocketMQ's, `User:name`.

    Raises:
        UsageError: it is none.
    """
    if not subject.startswith(_SUBJECT) or len(subject) == len(_SUBJECT):
        raise UsageError(f"a subject is User:NAME, not {shown(subject)}")
    return subject.removeprefix(_SUBJECT)


def entries_in(acl: AclBody) -> list[PolicyEntry]:
    """The entries in a request.

    Raises:
        UsageError: there are none, or one is not valid.
    """
    found = [
        PolicyEntry.of(
            entry.resource or "",
            entry.actions,
            entry.decision or "",
            entry.source_ips or (),
            policy.policy_type or PolicyKind.CUSTOM,
        )
        for policy in acl.policies
        for entry in policy.entries
    ]
    if not found:
        raise UsageError("a policy needs at least one entry")
    return found


def acl_body(name: str, policies: UserPolicies) -> AclBody:
    """A user's policies as RocketMQ writes them."""
    return AclBody(subject=f"{_SUBJECT}{name}", policies=_policy_bodies(policies))


def _policy_bodies(policies: UserPolicies) -> list[PolicyBody]:
    kinds = {kind: PolicyBody(policy_type=kind, entries=[]) for kind in PolicyKind}
    for entry in policies.entries:
        kinds[entry.kind].entries.append(
            PolicyEntryBody(
                resource=str(entry.resource),
                actions=sorted(entry.actions),
                source_ips=list(entry.networks) or None,
                decision=Decision(entry.decision),
            )
        )
    return [each for each in kinds.values() if each.entries]


def _user_row(user: User) -> Any:
    return msgspec.to_builtins(user.to_body(has_password=True))


def _policy_row(policies: UserPolicies) -> Any:
    return msgspec.to_builtins(AclBody(policies=_policy_bodies(policies)))


def _rows_at_once(rows: Mapping[str, Any], convert: Callable[[Any], Any]) -> Mapping[str, Any]:
    return {name: convert(row) for name, row in rows.items()}


class AccountTable:
    """The users and their policies.

    Args:
        on_change: is called with the name of a user of whom something has changed.

    Attributes:
        users, policies: by the user's name. A user without policies may have none there.
    """

    def __init__(self, on_change: Callable[[str], None] = lambda name: None) -> None:
        self._on_change = on_change
        self.users: dict[str, User] = {}
        self.policies: dict[str, UserPolicies] = {}

    def user(self, name: str) -> User:
        """A user.

        Raises:
            UsageError: there is none of this name.
        """
        found = self.users.get(name)
        if found is None:
            raise UsageError(f"there is no user {shown(name)}")
        return found

    def is_super(self, name: str | None) -> bool:
        """Whether there is a super user of this name who is enabled."""
        user = self.users.get(name or "")
        return user is not None and user.is_super and user.is_enabled

    def create(self, user: User) -> None:
        """Adds a user.

        Raises:
            UsageError: there is one of this name, or there are too many.
        """
        if user.name in self.users:
            raise UsageError(f"there is a user {shown(user.name)} already")
        if len(self.users) >= USERS_MAX:
            raise UsageError(f"there are {USERS_MAX} users, as many as there may be")
        self.users[user.name] = user
        self._on_change(user.name)

    def update(self, user: User) -> None:
        """Replaces a user.

        Raises:
            UsageError: there is none of this name.
        """
        self.user(user.name)
        self.users[user.name] = user
        self._on_change(user.name)

    def delete(self, name: str) -> None:
        """Removes a user, if there is one, and its policies."""
        if self.users.pop(name, None) is not None:
            self.policies.pop(name, None)
            self._on_change(name)

    def add_entries(self, name: str, entries: Iterable[PolicyEntry]) -> None:
        """Adds entries to a user's policies, or replaces those for the same resources.

        Raises:
            UsageError: there is no such user, or there are too many entries.
        """
        self.user(name)
        self.policies[name] = self.policies_of(name).with_entries(entries)
        self._on_change(name)

    def delete_entries(self, name: str, kind: PolicyKind, resource: ResourcePattern | None) -> None:
        """Removes the entry for a resource; without a resource all entries of the user.

        Raises:
            UsageError: there is no such user.
        """
        self.user(name)
        kept = UserPolicies()
        if resource is not None:
            kept = self.policies_of(name).without(kind, resource)
        self.policies[name] = kept
        if not kept.entries:
            del self.policies[name]
        self._on_change(name)

    def policies_of(self, name: str) -> UserPolicies:
        """A user's policies."""
        return self.policies.get(name) or UserPolicies()

    def copy(self, name: str, user: User | None, policies: UserPolicies) -> None:
        """Makes one user's row as it is at a master; None for a user who is gone."""
        self.users.pop(name, None)
        self.policies.pop(name, None)
        if user is not None:
            self.users[name] = user
            if policies.entries:
                self.policies[name] = policies
        self._on_change(name)

    def replace_by(self, other: AccountTable) -> None:
        """Makes the table as another one. Nothing is reported."""
        self.users, self.policies = other.users, other.policies

    def draft(self) -> AccountTable:
        """A copy whose changes change nothing here."""
        copy = AccountTable()
        copy.users, copy.policies = dict(self.users), dict(self.policies)
        return copy

    def to_json(self, rows: Rows = _rows_at_once) -> dict[str, Any]:
        """The table as JSON for its file.

        Args:
            rows: makes the rows of the JSON of those here, which never change.
        """
        return {
            "users": rows(dict(self.users), _user_row),
            "policies": rows(dict(self.policies), _policy_row),
        }

    def load(self, state: Mapping[str, Any]) -> None:
        """Loads the table from the JSON of its file.

        Raises:
            msgspec.ValidationError, ValueError: the JSON has another form.
        """
        users = msgspec.convert(state.get("users", {}), dict[str, UserBody])
        policies = msgspec.convert(state.get("policies", {}), dict[str, AclBody])
        try:
            loaded = {name: User.of_body(name, body) for name, body in users.items()}
            entries = {
                name: UserPolicies(entries_in(body))
                for name, body in policies.items()
                if name in users
            }
        except UsageError as error:
            raise ValueError(str(error)) from error
        self.users, self.policies = loaded, entries
