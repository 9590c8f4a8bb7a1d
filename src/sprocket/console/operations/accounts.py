"""Operations about users and what they may do. No answer contains a password."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from sprocket.admin import acls, permission_tests, users
from sprocket.admin.permission_tests import PermissionTest
from sprocket.auth.policies import Action, Decision, PolicyEntry, word
from sprocket.auth.resources import Resource, ResourceKind, ResourcePattern
from sprocket.base.errors import UsageError
from sprocket.console.operations.declare import Declarations, OperationEnvironment
from sprocket.console.operations.values import (
    Asked,
    ChangeAsked,
    ChangeLine,
    ChangeReport,
    OnlyBroker,
    OnlyCluster,
    Page,
    PageAsked,
    UserName,
    page_of,
)
from sprocket.protocol.bodies.accounts import UserBody
from sprocket.protocol.codes import RequestCode

declared = Declarations()

_Kind = Annotated[
    Annotated[str, Meta(pattern="^(Normal|Super)$")] | None,
    Meta(description="`Normal`, or `Super`, who may do everything."),
]
_ResourceText = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=300,
        description="Topic:NAME, Group:NAME or Cluster:NAME, whose name may end with *; or *.",
    ),
]
_Actions = Annotated[
    list[Annotated[str, Meta(max_length=20)]],
    Meta(max_length=10, description="Pub, Sub, Create, Update, Delete, Get, List, All."),
]
_Networks = Annotated[
    list[Annotated[str, Meta(max_length=64)]],
    Meta(max_length=100, description="Networks that the entry is for, such as 10.0.0.0/8."),
]


class UserFacts(msgspec.Struct, frozen=True, kw_only=True):
    """A user at a broker."""

    broker: str
    user: str
    kind: str | None
    status: str | None


class PolicyFacts(msgspec.Struct, frozen=True, kw_only=True):
    """An entry of a user's policies at a broker."""

    broker: str
    user: str
    resource: str
    actions: list[str]
    decision: str
    networks: list[str]


class PermissionAsked(Asked, frozen=True, kw_only=True):
    """May this user do that?"""

    user: UserName
    action: Annotated[str, Meta(max_length=20, description="An action, such as Pub.")]
    resource: Annotated[str, Meta(max_length=300, description="Such as Topic:orders.")]
    source: Annotated[
        str, Meta(max_length=64, description="IP address that the request comes from; or none.")
    ] = ""


class PermissionFacts(msgspec.Struct, frozen=True, kw_only=True):
    """Whether it is allowed at a broker, and why."""

    broker: str
    is_allowed: bool
    why: str


class PermissionVerdicts(msgspec.Struct, frozen=True, kw_only=True):
    """Whether it is allowed, at each broker."""

    verdicts: list[PermissionFacts]


class UserWanted(ChangeAsked, frozen=True, kw_only=True):
    """A user, or what of it is to change."""

    user: UserName
    password: Annotated[
        Annotated[str, Meta(min_length=1, max_length=256)] | None,
        Meta(description="The secret key. No answer and no log shows it."),
    ] = None
    kind: _Kind = None
    is_enabled: Annotated[bool | None, Meta(description="Whether it may sign requests.")] = None
    cluster: OnlyCluster = None
    broker: OnlyBroker = None

    def __repr__(self) -> str:
        return f"UserWanted({self.user!r}, {self.kind!r}, {self.is_enabled!r})"


class UserDeleted(ChangeAsked, frozen=True, kw_only=True):
    """Which user goes, and where."""

    user: UserName
    cluster: OnlyCluster = None
    broker: OnlyBroker = None


class GrantAsked(ChangeAsked, frozen=True, kw_only=True):
    """What a user may do, or may not."""

    user: UserName
    resource: _ResourceText
    actions: _Actions
    is_denied: Annotated[bool, Meta(description="Whether it is denied, not allowed.")] = False
    networks: _Networks = msgspec.field(default_factory=list)
    replace: Annotated[
        bool, Meta(description="Whether an entry that says something else is replaced.")
    ] = False
    cluster: OnlyCluster = None
    broker: OnlyBroker = None


class RevokeAsked(ChangeAsked, frozen=True, kw_only=True):
    """What is taken from a user's policies."""

    user: UserName
    resource: _ResourceText
    actions: Annotated[_Actions, Meta(description="Only these; none for the whole entry.")] = (
        msgspec.field(default_factory=list)
    )
    cluster: OnlyCluster = None
    broker: OnlyBroker = None


@declared.reads("users.list", "/users", codes=[RequestCode.AUTH_LIST_USER])
async def listed(given: OperationEnvironment, asked: PageAsked) -> Page[UserFacts]:
    """Lists the users of all brokers, without their passwords."""
    rows = [
        _user(broker, each)
        for broker, those in (await users.everybody(given.caller)).items()
        for each in those
    ]
    return page_of(rows, asked, lambda row: f"{row.user}@{row.broker}")


@declared.reads("policies.list", "/policies", codes=[RequestCode.AUTH_LIST_ACL])
async def policies(given: OperationEnvironment, asked: PageAsked) -> Page[PolicyFacts]:
    """Lists what users may do, and what they may not."""
    rows = [
        _policy(broker, name, entry)
        for broker, those in (await acls.all_policies(given.caller)).items()
        for name, found in those.items()
        for entry in found.entries
    ]
    return page_of(rows, asked, lambda row: f"{row.user}@{row.broker} {row.resource}")


@declared.reads("policies.test", "/policies/test", codes=[RequestCode.AUTH_GET_ACL])
async def tested(given: OperationEnvironment, asked: PermissionAsked) -> PermissionVerdicts:
    """Says whether a user may do something at each broker, and which entry decides it."""
    kind, _, name = asked.resource.partition(":")
    if not name:
        raise UsageError("a resource is Topic:NAME, Group:NAME or Cluster:NAME")
    found: dict[str, PermissionTest] = await permission_tests.judge(
        given.caller, asked.user, word(Action, asked.action),
        Resource(word(ResourceKind, kind), name), source=asked.source,
    )  # fmt: skip
    return PermissionVerdicts(
        verdicts=[
            PermissionFacts(broker=broker, is_allowed=each.is_allowed, why=each.why)
            for broker, each in found.items()
        ]
    )


@declared.changes("users.create", "POST /users", codes=[RequestCode.AUTH_CREATE_USER])
async def create(given: OperationEnvironment, asked: UserWanted) -> ChangeReport:
    """Creates a user on all servers that keep users, those of a cluster, or one."""
    if asked.password is None:
        raise UsageError("a user needs a password")
    if asked.dry_run:
        done = list(await users.everybody(given.caller, cluster=asked.cluster, broker=asked.broker))
    else:
        done = await users.create(
            given.caller, asked.user, asked.password, kind=asked.kind, status=_status(asked),
            cluster=asked.cluster, broker=asked.broker,
        )  # fmt: skip
    after = {"kind": asked.kind or "Normal", "is_enabled": asked.is_enabled is not False}
    return ChangeReport(
        dry_run=asked.dry_run,
        changes=[ChangeLine(what=f"user {asked.user}", broker=each, after=after) for each in done],
    )


@declared.changes(
    "users.change", "PATCH /users/{user}", codes=[RequestCode.AUTH_UPDATE_USER], is_destructive=True
)
async def change(given: OperationEnvironment, asked: UserWanted) -> ChangeReport:
    """Changes what is named of a user: password, kind, whether it is enabled."""
    if asked.password is None and asked.kind is None and asked.is_enabled is None:
        raise UsageError("name what is to change: password, kind or is_enabled")
    found = await users.user(given.caller, asked.user, cluster=asked.cluster, broker=asked.broker)
    if not asked.dry_run:
        await users.update(
            given.caller, asked.user, password=asked.password, kind=asked.kind,
            status=_status(asked), cluster=asked.cluster, broker=asked.broker,
        )  # fmt: skip
    named = {
        "password": None if asked.password is None else "changed",
        "kind": asked.kind,
        "is_enabled": asked.is_enabled,
    }
    after = {name: value for name, value in named.items() if value is not None}
    changes = [
        ChangeLine(what=f"user {asked.user}", broker=each, before=_user(each, body), after=after)
        for each, body in found.items()
    ]
    return ChangeReport(dry_run=asked.dry_run, changes=changes)


@declared.changes(
    "users.delete",
    "DELETE /users/{user}",
    codes=[RequestCode.AUTH_DELETE_USER],
    is_destructive=True,
)
async def delete(given: OperationEnvironment, asked: UserDeleted) -> ChangeReport:
    """Deletes a user and its policies."""
    found = await users.user(given.caller, asked.user, cluster=asked.cluster, broker=asked.broker)
    if not asked.dry_run:
        await users.delete(given.caller, asked.user, cluster=asked.cluster, broker=asked.broker)
    changes = [
        ChangeLine(what=f"user {asked.user}", broker=each, before=_user(each, body))
        for each, body in found.items()
    ]
    return ChangeReport(dry_run=asked.dry_run, changes=changes)


@declared.changes(
    "policies.grant",
    "POST /policies/grant",
    codes=[RequestCode.AUTH_UPDATE_ACL],
    is_destructive=True,
)
async def grant(given: OperationEnvironment, asked: GrantAsked) -> ChangeReport:
    """Adds to what a user may do, or may not."""
    decision = Decision.DENY if asked.is_denied else Decision.ALLOW
    entry = PolicyEntry.of(asked.resource, asked.actions, decision, tuple(asked.networks))
    before = await acls.policies(
        given.caller, asked.user, cluster=asked.cluster, broker=asked.broker
    )
    after = dict.fromkeys(before, entry)
    if not asked.dry_run:
        after = await acls.grant(
            given.caller, asked.user, entry, replaces=asked.replace,
            cluster=asked.cluster, broker=asked.broker,
        )  # fmt: skip
    changes = [
        ChangeLine(what=f"policy of {asked.user}", broker=broker, after=str(each))
        for broker, each in after.items()
    ]
    return ChangeReport(dry_run=asked.dry_run, changes=changes)


@declared.changes(
    "policies.revoke",
    "POST /policies/revoke",
    codes=[RequestCode.AUTH_DELETE_ACL],
    is_destructive=True,
)
async def revoke(given: OperationEnvironment, asked: RevokeAsked) -> ChangeReport:
    """Takes the entry for a resource from a user's policies, or some of its actions."""
    pattern = ResourcePattern.parse(asked.resource)
    actions = frozenset(word(Action, each) for each in asked.actions)
    found = await acls.policies(
        given.caller, asked.user, cluster=asked.cluster, broker=asked.broker
    )
    before = {
        broker: str(entry)
        for broker, each in found.items()
        for entry in each.entries
        if entry.resource == pattern
    }
    left: dict[str, PolicyEntry | None] = dict.fromkeys(before)
    if not asked.dry_run:
        left = await acls.revoke(
            given.caller, asked.user, pattern, actions=actions,
            cluster=asked.cluster, broker=asked.broker,
        )  # fmt: skip
    changes = [
        ChangeLine(
            what=f"policy of {asked.user}",
            broker=broker,
            before=before.get(broker),
            after=None if each is None else str(each),
        )
        for broker, each in left.items()
    ]
    return ChangeReport(dry_run=asked.dry_run, changes=changes)


def _status(asked: UserWanted) -> str | None:
    return None if asked.is_enabled is None else "enable" if asked.is_enabled else "disable"


def _user(broker: str, body: UserBody) -> UserFacts:
    return UserFacts(
        broker=broker, user=body.username or "", kind=body.user_type, status=body.user_status
    )


def _policy(broker: str, name: str, entry: PolicyEntry) -> PolicyFacts:
    return PolicyFacts(
        broker=broker,
        user=name,
        resource=str(entry.resource),
        actions=sorted(entry.actions),
        decision=entry.decision,
        networks=list(entry.networks),
    )
