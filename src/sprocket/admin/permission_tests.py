"""Whether a user may do something, and why: judged from the brokers' own users and policies.

The verdict is that of Sprocket's brokers. RocketMQ 5.3.3 lets a shorter start of a name, or an
entry that allows, win where its documents say the reverse (`auth.policies`).
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from sprocket.admin import acls, users
from sprocket.admin.account_servers import account_servers
from sprocket.admin.caller import Caller
from sprocket.admin.users import UserNotFound
from sprocket.auth.accounts import User
from sprocket.auth.policies import Action, Need, PolicyEntry, UserPolicies
from sprocket.auth.resources import Resource
from sprocket.base.errors import UsageError
from sprocket.protocol.bodies.accounts import UserBody


class PermissionTest(NamedTuple):
    """Whether something is allowed at a broker.

    Attributes:
        why: one sentence.
        decides: the entry that decides; None if there is none.
        lost: the other entries that are about it, which do not count.
        elsewhere: entries that would be about it if the request came from their networks.
    """

    is_allowed: bool
    why: str
    decides: PolicyEntry | None = None
    lost: tuple[PolicyEntry, ...] = ()
    elsewhere: tuple[PolicyEntry, ...] = ()


async def judge(
    caller: Caller,
    name: str,
    action: Action,
    resource: Resource,
    *,
    source: str = "",
    cluster: str | None = None,
    broker: str | None = None,
) -> dict[str, PermissionTest]:
    """Whether a user may do something, at each broker.

    Args:
        source: the IP address that the request comes from; empty for any, from which entries that
            name networks do not count.

    Raises:
        UserNotFound: no broker has the user.
        UsageError: there is no such broker.
        BrokersFailed, TransportError, ReplyError: a broker did not answer, or refused.
    """
    servers = await account_servers(caller, cluster=cluster, broker=broker)
    found = await users.at_each(caller, servers, name)
    if not found:
        raise UserNotFound(f"no broker has a user {name}")

    async def judged(each: str, address: str) -> PermissionTest:
        if each not in found:
            return PermissionTest(False, f"the broker has no user {name}")
        policies = await acls.policies_at(caller, address, name)
        return judged_by(found[each], policies, Need(resource, (action,)), source)

    return await caller.at_each(servers, judged)


def judged_by(body: UserBody, policies: UserPolicies, need: Need, source: str) -> PermissionTest:
    """Whether a user with these policies may do something. Pure."""
    name = body.username or ""
    try:
        user = User(name, "unknown").changed(
            UserBody(user_type=body.user_type, user_status=body.user_status)
        )
    except UsageError as error:
        return PermissionTest(False, f"the broker has another kind of user: {error}")
    if not user.is_enabled:
        return PermissionTest(False, f"{name} is disabled")
    if user.is_super:
        return PermissionTest(True, f"{name} is a super user, for whom no policy counts")
    verdict = policies.judge(need, source)
    about = [each for each in policies.entries if _is_about(each, need.resource)]
    counting = [each for each in about if each.counts(need.actions[0], source)]
    elsewhere = tuple(
        each
        for each in about
        if each not in counting and replace(each, networks=()).counts(need.actions[0], "")
    )
    if verdict.entry is None:
        return PermissionTest(False, "no entry of a policy is about this", elsewhere=elsewhere)
    lost = tuple(each for each in counting if each != verdict.entry)
    why = f"its policy says {verdict.entry}"
    return PermissionTest(verdict.is_allowed, why, verdict.entry, lost, elsewhere)


def _is_about(entry: PolicyEntry, resource: Resource) -> bool:
    kind, name, is_prefix = entry.resource
    if kind is None:
        return True
    return kind == resource.kind and (
        resource.name.startswith(name) if is_prefix else resource.name == name
    )
