"""Users and policies for a proxy: of a broker in the same process, or of brokers elsewhere.

Those elsewhere are asked for a user when it first signs, and then again from time to time, so a
change counts after that time at the latest. Names of nobody are not kept: whoever makes them up
could fill the memory. Source: ClusterMetadataService of RocketMQ 5.3 (module proxy), which keeps
users for 20 s.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import NamedTuple, Protocol

from sprocket.auth.accounts import User, entries_in
from sprocket.auth.guard import KnownUsers, WhatUserMay
from sprocket.auth.policies import UserPolicies
from sprocket.base.errors import SprocketError, UsageError
from sprocket.protocol.bodies.accounts import AclBody, UserBody
from sprocket.protocol.requests.account import AclOf, UserOf
from sprocket.proxy.brokers.brokers import Brokers
from sprocket.proxy.brokers.fresh_values import FreshValues
from sprocket.proxy.messages import rocketmq_pb2 as pb
from sprocket.proxy.messages.statuses import CallRefused

#: Users that are asked for at the same time.
_ASKED_MAX = 64


class KnownAccount(NamedTuple):
    """A user with its policies."""

    user: User
    policies: WhatUserMay


class Accounts(Protocol):
    """Knows users."""

    def account(self, name: str) -> KnownAccount | Awaitable[KnownAccount | None] | None:
        """A user, at once if nobody need be asked; None if there is none.

        Raises:
            SprocketError: nobody can be asked.
        """
        ...

    async def close(self) -> None:
        """Cancels what is in progress."""
        ...


class InnerAccounts:
    """The users of a broker in the same process.

    Args:
        table: returns its table; None while the broker opens.
    """

    def __init__(self, table: Callable[[], KnownUsers | None]) -> None:
        self._table = table

    def account(self, name: str) -> KnownAccount | None:
        """See `Accounts`."""
        table = self._table()
        if table is None:
            raise CallRefused(pb.INTERNAL_SERVER_ERROR, "the broker is not open")
        user = table.users.get(name)
        return None if user is None else KnownAccount(user, table.policies_of(name))

    async def close(self) -> None:
        """See `Accounts`."""


class UserUnknown(SprocketError):
    """There is no such user."""


class BrokerAccounts:
    """The users of brokers elsewhere.

    Args:
        brokers: requests to them are signed with the keys of a super user.
        fresh_seconds: how old a user gets before it is asked for again.
        users_max: how many are kept.
    """

    def __init__(self, brokers: Brokers, *, fresh_seconds: float, users_max: int) -> None:
        self._brokers = brokers
        self._asked = 0
        self._known = FreshValues(
            self._fetch, fresh_seconds=fresh_seconds, gone=(UserUnknown,), values_max=users_max
        )

    def account(self, name: str) -> KnownAccount | Awaitable[KnownAccount | None]:
        """See `Accounts`."""
        return self._known.known(name) or self._ask(name)

    async def _ask(self, name: str) -> KnownAccount | None:
        if self._asked >= _ASKED_MAX:
            raise CallRefused(pb.TOO_MANY_REQUESTS, "too many users are asked for: try again")
        self._asked += 1
        try:
            return await self._known.of(name, self._brokers.deadline())
        except UserUnknown:
            return None
        finally:
            self._asked -= 1

    async def _fetch(self, name: str) -> KnownAccount:
        reply = await self._brokers.ask_any(UserOf(username=name))
        if not reply.body:
            raise UserUnknown(f"there is no user {name!r}")
        body = UserBody.decode(reply.body)
        if not body.password:
            raise CallRefused(
                pb.INTERNAL_SERVER_ERROR,
                "the brokers do not show the proxy the users' keys: proxy.inner_keys must be those "
                "of a super user",
            )
        reply = await self._brokers.ask_any(AclOf(subject=f"User:{name}"))
        try:
            user = User.of_body(name, body)
            policies = UserPolicies(entries_in(AclBody.decode(reply.body)) if reply.body else ())
        except UsageError as error:
            raise CallRefused(
                pb.INTERNAL_SERVER_ERROR, f"the brokers' user is none: {error}"
            ) from error
        return KnownAccount(user, policies)

    async def close(self) -> None:
        """See `Accounts`."""
        await self._known.close()
