"""Carries out a plan of users and policies at brokers: that of RocketMQ 4.x's files.

A user who is there already stays as it is, unless it is to be replaced; so an import that was
interrupted can be repeated.
"""

from __future__ import annotations

from enum import StrEnum

from sprocket.admin import acls, users
from sprocket.admin.account_servers import account_servers
from sprocket.admin.caller import Caller
from sprocket.auth.accounts import User
from sprocket.auth.plain_import import ImportPlan
from sprocket.auth.policies import PolicyEntry, UserPolicies
from sprocket.protocol.bodies.accounts import UserBody
from sprocket.protocol.requests.account import CreateUser, DeleteAcl, UpdateUser


class ImportOutcome(StrEnum):
    """What was done with a user at a broker."""

    CREATED = "created"
    REPLACED = "replaced"
    UNCHANGED = "unchanged"
    KEPT = "kept as it is"


async def carry_out(
    caller: Caller,
    plan: ImportPlan,
    *,
    replaces: bool = False,
    cluster: str | None = None,
    broker: str | None = None,
) -> dict[str, dict[str, ImportOutcome]]:
    """Makes the users of a plan, with their policies, on all servers, those of a cluster, or one.

    Args:
        replaces: whether a user who is there otherwise becomes as the plan says.

    Returns:
        What was done, by broker and by user.

    Raises:
        UsageError: there is no such broker.
        BrokersFailed, TransportError, ReplyError: a broker did not answer, or refused; users before
            that are made there.
    """
    servers = await account_servers(caller, cluster=cluster, broker=broker)

    async def made(_: str, address: str) -> dict[str, ImportOutcome]:
        return {
            user.name: await _make(
                caller, address, user, plan.policies.get(user.name, ()), replaces=replaces
            )
            for user in plan.users
        }

    return await caller.at_each(servers, made)


async def _make(
    caller: Caller,
    address: str,
    user: User,
    entries: tuple[PolicyEntry, ...],
    *,
    replaces: bool,
) -> ImportOutcome:
    body = user.to_body(has_password=True)
    found = (await users.at_each(caller, {"": address}, user.name)).get("")
    if found is None:
        await caller.ask(address, CreateUser(username=user.name), body=body.encode())
        await acls.add_entries(caller, address, user.name, entries)
        return ImportOutcome.CREATED
    policies = await acls.policies_at(caller, address, user.name)
    if _is_like(found, body) and set(policies.entries) == set(UserPolicies(entries).entries):
        return ImportOutcome.UNCHANGED
    if not replaces:
        return ImportOutcome.KEPT
    await caller.ask(address, UpdateUser(username=user.name), body=body.encode())
    if policies.entries:
        await caller.ask(address, DeleteAcl(subject=f"User:{user.name}"))
    await acls.add_entries(caller, address, user.name, entries)
    return ImportOutcome.REPLACED


def _is_like(found: UserBody, wanted: UserBody) -> bool:
    """Whether a user is as it is wanted, as far as the broker shows it."""
    return found.password in (None, wanted.password) and (
        found.user_type,
        found.user_status,
    ) == (wanted.user_type, wanted.user_status)
