"""Lets a request pass or refuses it: its signature first, then the rights that it needs. Pure.

Nothing of the body is read before the signature is checked. A request that is refused gets code 16,
as from RocketMQ, and a text that says which right is missing. The signature of an unknown user is
checked against some key too, so that the time of a refusal does not show which users there are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

from sprocket.auth.accounts import User
from sprocket.auth.needs import RULES, Rule, needs_of
from sprocket.auth.policies import Judgement, Need
from sprocket.base.errors import NoPermission
from sprocket.base.suggestions import shown
from sprocket.protocol.command import Command
from sprocket.protocol.signing import is_signed_with, signer_of


class WhatUserMay(Protocol):
    """What one user may do."""

    def judge(self, need: Need, source: str) -> Judgement:
        """Whether a request from an IP address may have what it needs."""
        ...


class KnownUsers(Protocol):
    """Users, their keys, and what they may do."""

    @property
    def users(self) -> Mapping[str, User]:
        """The users by name."""
        ...

    def policies_of(self, name: str) -> WhatUserMay:
        """What a user may do."""
        ...

    def is_super(self, name: str | None) -> bool:
        """Whether there is a super user of this name who is enabled."""
        ...


@dataclass(frozen=True, slots=True)
class GuardRules:
    """What is checked.

    Attributes:
        authenticates: whether each request must be signed by a user.
        authorizes: whether the user must have the rights that it needs.
        unsigned: codes of requests that need no signature, and so no rights.
        unjudged: codes of requests that need a signature only.
        cluster: the name of the cluster, as a resource.
    """

    authenticates: bool
    authorizes: bool
    unsigned: frozenset[int]
    unjudged: frozenset[int]
    cluster: str


class Guard:
    """Checks requests.

    Args:
        rules: returns what is checked now.
        table: what each request needs.
        passes: whether a request with the key of a user, or with none, passes from an IP address
            without a signature; None if none does.

    Attributes:
        refused: how many requests were refused.
    """

    def __init__(
        self,
        accounts: KnownUsers,
        rules: Callable[[], GuardRules],
        table: Mapping[int, Rule] = RULES,
        *,
        passes: Callable[[str, str], bool] | None = None,
    ) -> None:
        self._passes = passes
        self._accounts = accounts
        self._table = table
        self._rules = rules
        self.refused = 0

    @property
    def is_on(self) -> bool:
        """Whether anything is checked."""
        return self._rules().authenticates

    def check(self, command: Command, source: str) -> str:
        """Returns if a request may pass: the user who signed it, or nobody, an empty text.

        Args:
            source: the IP address that it comes from.

        Raises:
            NoPermission: it may not.
            SprocketError: what it is about cannot be read.
        """
        rules = self._rules()
        if not rules.authenticates or command.code in rules.unsigned:
            return ""
        if self._passes is not None and self._passes(signer_of(command), source):
            return ""
        name = ""
        try:
            user = self._authenticated(command)
            name = user.name
            if rules.authorizes and not user.is_super and command.code not in rules.unjudged:
                needs = needs_of(command, rules.cluster, self._table)
                if needs is None:
                    raise NoPermission(f"only super users may make request {command.code}")
                self._judge(user, needs, source)
        except NoPermission as error:
            self.refused += 1
            error.user = name
            raise
        return name

    def require(self, command: Command, needs: Iterable[Need], source: str) -> None:
        """Checks rights of which the request itself does not say that it needs them.

        Raises:
            NoPermission: the user does not have one.
        """
        rules = self._rules()
        if not rules.authorizes or command.code in rules.unjudged:
            return
        user = self._accounts.users.get(command.user or "")
        if user is None:
            raise NoPermission(f"there is no user {shown(command.user or '')}")
        if not user.is_super:
            self._judge(user, needs, source)

    def _authenticated(self, command: Command) -> User:
        """The user who signed a request.

        Raises:
            NoPermission: nobody did, or one who may not.
        """
        name = signer_of(command)
        if not name:
            raise NoPermission(
                "the request is not signed: the client needs an access key and a secret key"
            )
        user = self._accounts.users.get(name)
        if not is_signed_with(command, "" if user is None else user.password) or user is None:
            raise NoPermission(
                f"there is no user {shown(name)} with this secret key: check signature failed."
            )
        if not user.is_enabled:
            raise NoPermission(f"User:{name} is disabled.")
        return user

    def _judge(self, user: User, needs: Iterable[Need], source: str) -> None:
        policies = self._accounts.policies_of(user.name)
        for need in needs:
            verdict = policies.judge(need, source)
            if not verdict.is_allowed:
                raise NoPermission(refusal(user.name, need, source, verdict))


def refusal(name: str, need: Need, source: str, verdict: Judgement) -> str:
    """Why somebody may not do something, as RocketMQ begins it, with the entry that decides."""
    actions = " or ".join(need.actions)
    why = verdict.why or "no matched policies"
    if verdict.entry is not None:
        why = f"its policy says {verdict.entry}"
    return (
        f"User:{name} has no permission to access {need.resource} from {source}, {why}; "
        f"needed: {actions}"
    )
