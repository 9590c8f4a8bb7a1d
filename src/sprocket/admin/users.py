"""Users of brokers that check signatures: list, create, change, delete.

Each broker keeps users of its own, and its slaves copy them. So does each closed name server, which
counts as a broker in what follows (`account_servers`). A slave of RocketMQ's copies no users.
Source: the `…User…` subcommands of RocketMQ 5.3.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from sprocket.admin.account_servers import account_servers
from sprocket.admin.caller import Caller
from sprocket.auth.accounts import User
from sprocket.base.errors import RemoteProtocolError, SprocketError, UsageError
from sprocket.protocol.bodies.accounts import UserBody
from sprocket.protocol.requests.account import CreateUser, DeleteUser, UpdateUser, UserOf, Users


class UserNotFound(SprocketError):
    """No broker has a user of this name."""


async def everybody(
    caller: Caller, *, cluster: str | None = None, broker: str | None = None
) -> dict[str, list[UserBody]]:
    """The users of each broker, by its name. Whether passwords are among it, the brokers decide.

    Raises:
        UsageError: there is no such broker.
        BrokersFailed, TransportError, ReplyError: a broker did not answer, or refused.
    """
    servers = await account_servers(caller, cluster=cluster, broker=broker)
    replies = await caller.ask_each(servers, Users())
    found = {}
    for name, reply in replies.items():
        try:
            users = msgspec.json.decode(reply.body or b"[]", type=list[UserBody])
        except msgspec.MsgspecError as error:
            raise RemoteProtocolError(f"{name} sent no list of users: {error}") from None
        found[name] = users
    return found


async def names(caller: Caller) -> list[str]:
    """The names of the users of all brokers, sorted.

    Raises:
        BrokersFailed, TransportError, ReplyError: a broker did not answer, or refused.
    """
    users = await everybody(caller)
    return sorted({each.username or "" for those in users.values() for each in those})


async def user(
    caller: Caller, name: str, *, cluster: str | None = None, broker: str | None = None
) -> dict[str, UserBody]:
    """A user as each broker that has it knows it.

    Raises:
        UserNotFound: no broker has it.
        UsageError: there is no such broker.
        BrokersFailed, TransportError, ReplyError: a broker did not answer, or refused.
    """
    servers = await account_servers(caller, cluster=cluster, broker=broker)
    found = await at_each(caller, servers, name)
    if not found:
        raise UserNotFound(f"no broker has a user {name}")
    return found


async def at_each(caller: Caller, servers: Mapping[str, str], name: str) -> dict[str, UserBody]:
    """A user as those of these brokers that have it know it."""
    replies = await caller.ask_each(servers, UserOf(username=name))
    return {broker: UserBody.decode(reply.body) for broker, reply in replies.items() if reply.body}


async def create(
    caller: Caller,
    name: str,
    password: str,
    *,
    kind: str | None = None,
    status: str | None = None,
    cluster: str | None = None,
    broker: str | None = None,
) -> list[str]:
    """Creates a user on all servers, those of a cluster, or one.

    Args:
        kind: `Super` or `Normal`, which is the usual one.
        status: `enable`, which is the usual one, or `disable`.

    Returns:
        Names of the brokers where it is made, or was there exactly so.

    Raises:
        UsageError: a value is not valid, or there is no such broker.
        BrokersFailed, TransportError, ReplyError: a broker did not answer, or refused, as if it has
            such a user.
    """
    body = UserBody(username=name, password=password, user_type=kind, user_status=status)
    made = User.of_body(name, body).to_body(has_password=True)
    servers = await account_servers(caller, cluster=cluster, broker=broker)
    return list(await caller.ask_each(servers, CreateUser(username=name), body=made.encode()))


async def update(
    caller: Caller,
    name: str,
    *,
    password: str | None = None,
    kind: str | None = None,
    status: str | None = None,
    cluster: str | None = None,
    broker: str | None = None,
) -> list[str]:
    """Changes what is named of a user, on the brokers that have it. The rest stays.

    Returns:
        Names of these brokers.

    Raises:
        UserNotFound: no broker has it.
        UsageError: a value is not valid, or there is no such broker.
        BrokersFailed, TransportError, ReplyError: a broker did not answer, or refused.
    """
    wanted = UserBody(password=password, user_type=kind, user_status=status)
    known = User(name, "unknown").changed(wanted).to_body(has_password=True)
    if wanted == UserBody():
        raise UsageError("nothing of the user is to be changed")
    body = UserBody(
        username=name,
        password=password,
        user_type=known.user_type if kind else None,
        user_status=known.user_status if status else None,
    )
    servers = await account_servers(caller, cluster=cluster, broker=broker)
    found = await at_each(caller, servers, name)
    if not found:
        raise UserNotFound(f"no broker has a user {name}: create it first")
    having = {each: servers[each] for each in found}
    return list(await caller.ask_each(having, UpdateUser(username=name), body=body.encode()))


async def delete(
    caller: Caller, name: str, *, cluster: str | None = None, broker: str | None = None
) -> list[str]:
    """Deletes a user and its policies on all servers, those of a cluster, or one.

    Returns:
        Names of the brokers that had it. Where it was not there, it is no error.

    Raises:
        UsageError: there is no such broker.
        BrokersFailed, TransportError, ReplyError: a broker did not answer, or refused.
    """
    servers = await account_servers(caller, cluster=cluster, broker=broker)
    found = await at_each(caller, servers, name)
    having = {each: servers[each] for each in found}
    return list(await caller.ask_each(having, DeleteUser(username=name)))
