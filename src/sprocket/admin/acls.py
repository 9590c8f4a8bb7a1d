"""What users may do: their policies, at each broker. Source: the `…Acl…` subcommands of RocketMQ
5.3.

A policy has one entry for a resource. RocketMQ replaces it when another one is given; here rights
are added to it and taken from it, so that giving one right does not take another.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import msgspec

from sprocket.admin import users
from sprocket.admin.account_servers import account_servers
from sprocket.admin.caller import Caller
from sprocket.admin.users import UserNotFound
from sprocket.auth.accounts import acl_body, entries_in
from sprocket.auth.policies import Action, PolicyEntry, PolicyKind, UserPolicies
from sprocket.auth.resources import ResourcePattern
from sprocket.base.errors import RemoteProtocolError, SprocketError, UsageError
from sprocket.protocol.bodies.accounts import AclBody
from sprocket.protocol.requests.account import AclOf, Acls, DeleteAcl, UpdateAcl

_SUBJECT = "User:"


class EntryNotFound(SprocketError):
    """No policy of a user has an entry that is to be taken from it."""


async def all_policies(
    caller: Caller, *, cluster: str | None = None, broker: str | None = None
) -> dict[str, dict[str, UserPolicies]]:
    """The policies of all users that have some: by broker name, and by the user's name.

    Raises:
        UsageError: there is no such broker.
        BrokersFailed, TransportError, ReplyError: a broker did not answer, or refused.
    """
    servers = await account_servers(caller, cluster=cluster, broker=broker)
    found = {}
    for name, reply in (await caller.ask_each(servers, Acls())).items():
        try:
            bodies = msgspec.json.decode(reply.body or b"[]", type=list[AclBody])
        except msgspec.MsgspecError as error:
            raise RemoteProtocolError(f"{name} sent no list of policies: {error}") from None
        found[name] = {(each.subject or "").removeprefix(_SUBJECT): _read(each) for each in bodies}
    return found


async def policies(
    caller: Caller, name: str, *, cluster: str | None = None, broker: str | None = None
) -> dict[str, UserPolicies]:
    """The policies of a user at each broker that has the user.

    Raises:
        UserNotFound: no broker has it.
        UsageError: there is no such broker.
        BrokersFailed, TransportError, ReplyError: a broker did not answer, or refused.
    """
    having = await _having(caller, name, cluster=cluster, broker=broker)

    async def asked(_: str, address: str) -> UserPolicies:
        return await policies_at(caller, address, name)

    return await caller.at_each(having, asked)


async def policies_at(caller: Caller, address: str, name: str) -> UserPolicies:
    """The policies of a user, who is there, at one broker.

    Raises:
        TransportError, ReplyError: the broker did not answer, or refused.
    """
    reply = await caller.ask(address, AclOf(subject=f"{_SUBJECT}{name}"))
    return _read(AclBody.decode(reply.body)) if reply.body else UserPolicies()


async def add_entries(
    caller: Caller, address: str, name: str, entries: Sequence[PolicyEntry]
) -> None:
    """Adds entries to a user's policies at one broker; those for the same resources are replaced.

    Raises:
        TransportError, ReplyError: the broker did not answer, or refused.
    """
    if entries:
        body = acl_body(name, UserPolicies(entries)).encode()
        await caller.ask(address, UpdateAcl(subject=f"{_SUBJECT}{name}"), body=body)


async def grant(
    caller: Caller,
    name: str,
    entry: PolicyEntry,
    *,
    replaces: bool = False,
    cluster: str | None = None,
    broker: str | None = None,
) -> dict[str, PolicyEntry]:
    """Adds what an entry says to a user's policies, at each broker that has the user.

    Args:
        replaces: whether an entry for the same resource that says something else is replaced.

    Returns:
        The entry for the resource as it is now, by broker.

    Raises:
        UserNotFound: no broker has the user.
        UsageError: there is an entry for the resource that allows, denies or counts elsewhere, and
            `replaces` is not given; or there is no such broker.
        BrokersFailed, TransportError, ReplyError: a broker did not answer, or refused.
    """
    having = await _having(caller, name, cluster=cluster, broker=broker)

    async def granted(_: str, address: str) -> PolicyEntry:
        old = _entry_of(await policies_at(caller, address, name), entry.kind, entry.resource)
        new = entry
        if old is not None and not replaces:
            new = replace(entry, actions=entry.actions | old.actions)
            if replace(old, actions=new.actions) != new:
                raise UsageError(
                    f"the policy of {name} says {old}: with --replace it says {entry} instead"
                )
        if new != old:
            await add_entries(caller, address, name, [new])
        return new

    return await caller.at_each(having, granted)


async def revoke(
    caller: Caller,
    name: str,
    resource: ResourcePattern | None,
    *,
    actions: frozenset[Action] = frozenset(),
    kind: PolicyKind = PolicyKind.CUSTOM,
    cluster: str | None = None,
    broker: str | None = None,
) -> dict[str, PolicyEntry | None]:
    """Takes the entry for a resource from a user's policies, or some of its actions.

    Args:
        resource: None takes all entries of all policies.
        actions: only these; none for all.

    Returns:
        The brokers that had something to take, with the entry that is left of it.

    Raises:
        UserNotFound: no broker has the user.
        UsageError: the entry has all actions, so that it cannot be without some; or there is no
            such broker.
        BrokersFailed, TransportError, ReplyError: a broker did not answer, or refused.
    """
    having = await _having(caller, name, cluster=cluster, broker=broker)
    subject = f"{_SUBJECT}{name}"

    async def revoked(_: str, address: str) -> tuple[bool, PolicyEntry | None]:
        found = await policies_at(caller, address, name)
        if resource is None:
            if found.entries:
                await caller.ask(address, DeleteAcl(subject=subject))
            return bool(found.entries), None
        old = _entry_of(found, kind, resource)
        if old is None or (actions and not old.actions & (actions | {Action.ALL})):
            return False, old
        left = old.actions - actions if actions else frozenset[Action]()
        if actions and Action.ALL in left:
            raise UsageError(f"{old} has all actions: grant those that stay with --replace")
        if left:
            new = replace(old, actions=left)
            await add_entries(caller, address, name, [new])
            return True, new
        await caller.ask(
            address, DeleteAcl(subject=subject, policy_type=kind, resource=str(resource))
        )
        return True, None

    done = await caller.at_each(having, revoked)
    return {broker: left for broker, (had, left) in done.items() if had}


async def _having(
    caller: Caller, name: str, *, cluster: str | None, broker: str | None
) -> dict[str, str]:
    """The brokers that have a user."""
    servers = await account_servers(caller, cluster=cluster, broker=broker)
    found = await users.at_each(caller, servers, name)
    if not found:
        raise UserNotFound(f"no broker has a user {name}")
    return {each: servers[each] for each in found}


def _entry_of(
    found: UserPolicies, kind: PolicyKind, resource: ResourcePattern
) -> PolicyEntry | None:
    return next(
        (each for each in found.entries if (each.kind, each.resource) == (kind, resource)), None
    )


def _read(body: AclBody) -> UserPolicies:
    try:
        return UserPolicies(entries_in(body)) if body.policies else UserPolicies()
    except UsageError as error:
        raise RemoteProtocolError(
            f"the policies of {body.subject} are no policies: {error}"
        ) from None
